"""The papers' quick reproductions on one GPU, and the scorers' speed beside the bare model.

    python benchmarks/gpu.py [MODEL ...] [--device cuda] [--only A,B,...] [--rows N] [--json]

A checkpoint of each kind is used: a masked LM, a causal LM, and a multiple-choice model. Without
MODEL these are written first, with seeded random weights, of a base model's size on a GPU and tiny
on a CPU: their accuracies mean nothing, their times do. For each model it prints

- **ratio**: the time of the bare model's forward passes, on the same batches and without a head,
  divided by the time of scoring, with tokenizing, batching, head and writing. The target is 0.9.
- rows and tokens per second, and peak memory: allocated on the GPU, or resident on a CPU.
- **reproduce**: the wall time of ``evaluate-probe reproduce PAPER --quick`` with this model, and
  how many of its numbers were filled in, or why there are none.

Probes that need a dump (ConceptNet, Wikidata) are left out if the cache lacks it. Probes are built
before anything is timed, on the CPU, in ``--probes`` (default: a scratch folder).
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Read once, when tqdm is imported.
os.environ["TQDM_DISABLE"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

TARGET = 0.9
JUDGED = (50e6, 256)
"""Parameters and rows from which on the ratio is compared with it; below it is of overheads."""

GEOMETRIES = {"base": (768, 12, 12), "tiny": (64, 2, 2)}
"""Units, layers and attention heads of the models that are written."""

CLOZES, QUESTIONS = "object_comparison", "wordnet_definitions"
"""The probes whose rows are scored."""

TASK, NLI = "task", "nli"
"""Folders of stand-ins for what models are trained on first."""


def write_models(folder: Path, texts: Sequence[str], geometry: str) -> list[str]:
    """Write a seeded checkpoint of each kind, with a tokenizer trained on texts."""
    import tokenizers
    import torch
    import transformers

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    width, depth, heads = GEOMETRIES[geometry]
    vocabulary = tokenizers.BertWordPieceTokenizer()
    vocabulary.train_from_iterator(texts, vocab_size=30_000, special_tokens=special)
    bert = transformers.BertTokenizerFast(tokenizer_object=vocabulary._tokenizer)
    pieces = tokenizers.ByteLevelBPETokenizer()
    pieces.train_from_iterator(texts, vocab_size=30_000, special_tokens=["<|endoftext|>"])
    gpt = transformers.GPT2TokenizerFast(tokenizer_object=pieces._tokenizer)
    sizes = {
        "hidden_size": width,
        "num_hidden_layers": depth,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
    }
    encoder = transformers.BertConfig(vocab_size=len(bert), **sizes)
    ends = {"bos_token_id": gpt.eos_token_id, "eos_token_id": gpt.eos_token_id}
    decoder = transformers.GPT2Config(
        vocab_size=len(gpt), n_embd=width, n_layer=depth, n_head=heads, **ends
    )
    written = []
    for name, kind, config, tokenizer in (
        ("masked", transformers.BertForMaskedLM, encoder, bert),
        ("causal", transformers.GPT2LMHeadModel, decoder, gpt),
        ("multiple_choice", transformers.BertForMultipleChoice, encoder, bert),
    ):
        torch.manual_seed(0)
        kind(config).save_pretrained(folder / f"seeded-{name}")
        tokenizer.save_pretrained(folder / f"seeded-{name}")
        written.append(str(folder / f"seeded-{name}"))
    return written


def write_tasks(folder: Path) -> None:
    """Write stand-ins for the tasks that models are trained on first."""
    drawn = random.Random(0)
    colours = ["red", "green", "blue", "white", "black"]
    labels = ["entailment", "neutral", "contradiction"]
    for split, count in (("train", 600), ("validation", 120)):
        asked, pairs = [], []
        for number in range(count):
            choices, gold = drawn.sample(colours, 4), drawn.randrange(4)
            asked.append(
                {
                    "id": f"{split}-{number}",
                    "question": f"Thing {number} is {choices[gold]}. What colour is it?",
                    "choices": {"text": choices, "label": ["A", "B", "C", "D"]},
                    "answerKey": "ABCD"[gold],
                }
            )
            answer = drawn.randrange(3)
            said = (f"It is {choices[0]}.", "It is large.", f"It is not {choices[0]}.")[answer]
            pairs.append(
                {
                    "id": f"{split}-{number}",
                    "premise": f"Thing {number} is {choices[0]}.",
                    "hypothesis": said,
                    "label": labels[answer],
                }
            )
        for name, rows in ((TASK, asked), (NLI, pairs)):
            (folder / name).mkdir(parents=True, exist_ok=True)
            text = "".join(json.dumps(row) + "\n" for row in rows)
            (folder / name / f"{split}.jsonl").write_text(text, encoding="utf-8")


def speed(model: str, probe: Path, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Time the scorer that evaluates a model, and the model's forward passes alone."""
    import resource

    import torch

    from evaluation.models.handle import ModelHandle
    from evaluation.runs.ready import ReadyScorers
    from evaluation.runs.run import open_run
    from evaluation.runs.score_cache import ScoreCache
    from evaluation.runs.scoring import score_items
    from evaluation.runs.spec import RunSpec
    from evaluation.workers import Session

    given = {"limit": options.rows, "limit_by": "rows", "facts": False, "device": options.device}
    spec = RunSpec.parse(str(probe), model, given)
    handle = ModelHandle(model, spec.run)
    run = open_run(spec, handle)
    with ReadyScorers(Session()) as scorers, torch.inference_mode():
        scorer: Any = scorers.get(run).scorer
        network = scorer.model if hasattr(scorer, "model") else scorer._model
        body, cuda = network.base_model, network.device.type == "cuda"
        seen: list[tuple[Any, dict[str, Any]]] = []

        def ours() -> None:
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                cache = ScoreCache({}, Path(folder))
                score_items(run.items, scorer, cache, handle.batch_tokens, 0)

        def bare() -> None:
            for words, inputs in seen:
                body(*words, **copy.deepcopy(inputs) if inputs.get("past_key_values") else inputs)
            if cuda:
                torch.cuda.synchronize()

        ours()  # what a scorer tries out before its first batch is no part of the others
        hook = body.register_forward_pre_hook(
            lambda _module, words, inputs: seen.append((words, dict(inputs))), with_kwargs=True
        )
        ours()
        hook.remove()
        bare()
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        seconds: dict[str, list[float]] = {"ours": [], "bare": []}
        for _ in range(options.rounds):
            for name, side in (("ours", ours), ("bare", bare)):
                began = time.perf_counter()
                side()
                seconds[name].append(time.perf_counter() - began)
        unit = 1 << (20 if sys.platform == "darwin" else 10)
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
        peak = torch.cuda.max_memory_allocated() / (1 << 20) if cuda else resident
    own, alone = (statistics.median(seconds[name]) for name in ("ours", "bare"))
    read = [words[0] if words else inputs.get("input_ids") for words, inputs in seen]
    return {
        "model": Path(model).name,
        "parameters": network.num_parameters(),
        "dtype": handle.dtype_name,
        "scorer": run.scorer.name,
        "probe": probe.name,
        "rows": len(run.items),
        "ratio": alone / own,
        "rows_per_second": len(run.items) / own,
        "tokens_per_second": sum(ids.numel() for ids in read if ids is not None) / own,
        "peak_mib": peak,
    }


def reproduce(paper: str, model: str, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Time the quick reproduction of a paper with a model, in a process of its own."""
    output = scratch / "results" / f"{paper}+{Path(model).name}"
    words = ["evaluate-probe", "reproduce", paper, "--quick", "-m", model, "-o", str(output)]
    words += ["--probes", str(options.probes), "--device", options.device]
    words += ["--only", ",".join(options.chosen[paper])]
    if paper != "olmpics":
        words += ["--task", str(scratch / (TASK if paper == "wordnetqa" else NLI))]
    # A cache of its own: scores of an earlier run would be found in the user's.
    environment = {**os.environ, "KBPROBE_CACHE": str(scratch / "cache"), "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "kbprobe", *words],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall = time.perf_counter() - began
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    found: dict[str, Any] = {"paper": paper, "model": Path(model).name, "seconds": wall}
    if done.returncode:
        return found | {"numbers": 0, "problem": lines[-1] if lines else ""}
    record = json.loads((output / "reproduction.json").read_text(encoding="utf-8"))
    own = [row["cells"] for table in record["tables"] for row in table["own"]]
    count = sum(len(cell) for cells in own for cell in cells.values())
    expected = [line for line in lines if "to evaluate" in line]
    return found | {"numbers": count, "forecast": expected[-1] if expected else ""}


def speed_line(one: dict[str, Any]) -> str:
    """Return what was timed of a scorer, as a line."""
    if "problem" in one:
        return f"{one['model']}: not timed {one['problem']}"
    verdict = "reached" if one["ratio"] >= TARGET else "missed"
    if one["parameters"] < JUDGED[0] or one["rows"] < JUDGED[1]:
        verdict = "too small to judge"
    return (
        f"{one['model']} ({one['parameters'] / 1e6:.1f} M, {one['dtype']}), {one['scorer']} on "
        f"{one['rows']:,} rows of {one['probe']}: ratio {one['ratio']:.2f} (target {TARGET}: "
        f"{verdict}), {one['rows_per_second']:,.0f} rows/s, "
        f"{one['tokens_per_second']:,.0f} tokens/s, peak {one['peak_mib']:,.0f} MiB"
    )


def reproduction_line(one: dict[str, Any]) -> str:
    """Return what a reproduction took, as a line."""
    problem = f"; {one['problem']}" if "problem" in one else ""
    return (
        f"reproduce {one['paper']} --quick with {one['model']}: {one['seconds']:.0f} s, "
        f"{one['numbers']:,} numbers{problem}"
    )


def device_name(device: str) -> str:
    """Return a device's name, and its memory or processors."""
    import torch

    if torch.device(device).type == "cuda":
        about = torch.cuda.get_device_properties(torch.device(device))
        return f"{about.name}, {about.total_memory / (1 << 30):.0f} GiB"
    return (
        f"{device}: {platform.processor() or platform.machine()}, {torch.get_num_threads()} threads"
    )


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--geometry", choices=list(GEOMETRIES), help="[base on a GPU, else tiny]")
    parser.add_argument("--probes", type=Path, help="folder of built probes [a scratch folder]")
    parser.add_argument("--only", help="probes of the papers to use, by name [all]")
    parser.add_argument("--rows", type=int, help="rows to time [20,000 on a GPU, else 200]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    from evaluation.items.sources import open_probe
    from evaluation.reproduce.command import PAPERS, paper_of
    from evaluation.reproduce.sources import built_probes
    from kbprobe.errors import KbprobeError

    small = torch.device(options.device).type == "cpu"
    options.rows = options.rows or (200 if small else 20_000)
    with tempfile.TemporaryDirectory() as temporary:
        scratch, left_out = Path(temporary), list[str]()
        options.probes = options.probes or scratch / "probes"
        wanted = options.only.split(",") if options.only else None
        papers = {name: list(paper_of(name).published.probes) for name in PAPERS}
        names = [name for own in papers.values() for name in own if not wanted or name in wanted]
        names = list(dict.fromkeys([CLOZES, QUESTIONS, *names]))
        built = built_probes(names, options.probes, (), False, left_out, lambda *_: None)
        options.chosen = {
            paper: [name for name in own if name in built and (not wanted or name in wanted)]
            for paper, own in papers.items()
        }
        models = options.models
        if not models:
            items = [item for name in (CLOZES, QUESTIONS) for item in open_probe(built[name]).items]
            texts = [text for item in items[:20_000] for text in (item.question, *item.choices)]
            models = write_models(scratch, texts, options.geometry or ("tiny" if small else "base"))
        write_tasks(scratch)

        def told(line: str) -> None:
            if not options.json:
                print(line, flush=True)

        report: dict[str, Any] = {
            "device": device_name(options.device),
            "torch": torch.__version__,
            "speed": [],
            "reproduce": [],
            "left_out": left_out,
        }
        told(f"{report['device']}; torch {report['torch']}")
        for model in models:
            for probe in (CLOZES, QUESTIONS):
                try:
                    one = speed(model, Path(built[probe]), options, scratch)
                except KbprobeError as error:
                    one = {"model": Path(model).name, "problem": f"on {probe}: {error}"}
                report["speed"].append(one)
                told(speed_line(one))
        for model in models:
            for paper in (paper for paper, own in options.chosen.items() if own):
                one = reproduce(paper, model, options, scratch)
                report["reproduce"].append(one)
                told(reproduction_line(one))
        for line in left_out:
            told(f"left out: {line}")
    if options.json:
        print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
