"""Time of models whose state is copied for each choice, against reading the question again.

    python benchmarks/forked.py [--types mamba,jamba] [--lengths 16,64,256] [--rounds 5]

Weights are random (6 layers of 256), questions have five choices of four tokens, and batches 1,024
tokens. Both ways run in turn in one process; times are the least of all rounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch
import transformers

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from evaluation.scorers.batching import cut_batches  # noqa: E402
from evaluation.scorers.causal.forward import score_sequences  # noqa: E402
from evaluation.scorers.causal.layout import (  # noqa: E402
    CausalEncoded,
    LayoutBuilder,
    grow_trees,
)

VOCABULARY = 1000
QUESTIONS = 6
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 256, "num_hidden_layers": 6}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 4, "intermediate_size": 512}
FURTHER = {
    "bloom": {"n_layer": 6, "n_head": 8},
    "falcon_h1": {
        **HEADS, "mamba_d_ssm": 512, "mamba_n_heads": 8, "mamba_d_head": 64, "mamba_d_state": 16,
    },
    "jamba": {**HEADS, "num_experts": 2, "attn_layer_period": 3, "attn_layer_offset": 1},
    "mamba2": {"num_heads": 8, "head_dim": 64, "n_groups": 1, "state_size": 16},
}  # fmt: skip


def encoded(length: int, *, forked: bool) -> CausalEncoded:
    """Return questions of some tokens, each with five choices of four tokens."""
    rng, builder = np.random.default_rng(length), LayoutBuilder()
    for item in range(QUESTIONS):
        context = rng.integers(VOCABULARY, size=length).tolist()
        choices = rng.integers(VOCABULARY, size=(5, 4)).tolist()
        numbers = [[5 * item + choice] for choice in range(5)]
        for tree in grow_trees(context, choices, limit=1 << 20 if forked else 0):
            builder.add(tree, item, choices, numbers, 1.0)
    return builder.build(np.full(5 * QUESTIONS, 4), {}, {}, forked=forked)


def timed(model: transformers.PreTrainedModel, held: CausalEncoded) -> tuple[float, np.ndarray]:
    """Return the seconds of scoring, and the score of each choice."""
    scores, began = np.zeros(5 * QUESTIONS), time.perf_counter()
    for batch in cut_batches(held.lengths, 1024):
        _, slots = held.slots(batch)
        scores[held.slot_choice[slots]] = score_sequences(model, held, batch)
    return time.perf_counter() - began, scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--types", default="mamba,mamba2,falcon_h1,jamba,bloom")
    parser.add_argument("--lengths", default="16,64,256")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'type':12}{'tokens':>8}{'again (s)':>12}{'copied (s)':>12}{'ratio':>8}")
    for name in args.types.split(","):
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(name, **{**SIZES, **FURTHER.get(name, {})})
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        for length in map(int, args.lengths.split(",")):
            ways = [encoded(length, forked=forked) for forked in (False, True)]
            seconds = []
            for _ in range(args.rounds):
                (again, plain), (copied, scores) = (timed(model, held) for held in ways)
                assert np.abs(scores - plain).max() < 1e-3, "the ways differ"
                seconds.append((again, copied))
            again, copied = np.min(seconds, axis=0)
            print(f"{name:12}{length:8}{again:12.3f}{copied:12.3f}{again / copied:8.2f}")


if __name__ == "__main__":
    main()
