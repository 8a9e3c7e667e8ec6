"""Evaluations of tiny seeded models whose numbers must never change, whatever the code looks like.

``golden.json`` holds the numbers of the code before scorers, learners and runs were registered
(commit cd9cb6a). To make it again: ``python -m tests.evaluation.golden_cases``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.evaluation import tiny_causal, tiny_masked, tiny_multiple_choice

NUMBERS = Path(__file__).parent / "data" / "golden.json"
ROWS = 24
NOUNS = ["dog", "cat", "mouse", "robin", "penguin", "car", "bus", "truck", "piano", "house"]
GOLDS = ["older", "younger", "larger", "smaller", "never", "always"]

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "masked cloze": ("clozes", "bert", {}),
    "masked cloze, log-probabilities": ("clozes", "bert", {"log_probs": True}),
    "masked cloze, several pieces skipped": ("clozes", "roberta", {"multi_piece": "skip"}),
    "masked questions": ("questions", "roberta", {"limit": 12}),
    "causal cloze": ("clozes", "gpt2", {}),
    "causal questions": ("questions", "gpt2", {"seed": 3, "limit": 15}),
    "causal questions, shots": ("questions", "llama", {"shots": 2}),
    "causal questions, prompt": ("questions", "llama", {"prompt": r"Q: {question}\nA:"}),
    "causal letters": ("questions", "gpt2", {"letters": True}),
    "multiple choice": ("questions", "choice", {}),
    "fine-tuned": ("questions", "encoder", {"train": 12, "epochs": 2, "learning_rate": 1e-3}),
}
"""Probe, model and options of each."""


def write_world(folder: Path) -> None:
    """Write two probes with train and test splits, and five models."""
    for split, first in (("train", 100), ("test", 0)):
        numbers = range(first, first + ROWS)
        _write(folder / "clozes" / f"{split}.jsonl", [_cloze(number) for number in numbers])
        _write(folder / "questions" / f"{split}.jsonl", [_question(number) for number in numbers])
    tiny_masked.write("bert-uncased", folder / "bert")
    tiny_masked.write("roberta", folder / "roberta")
    tiny_causal.write("gpt2", folder / "gpt2")
    tiny_causal.write("llama", folder / "llama")
    tiny_multiple_choice.write(folder / "choice", "Bert")
    tiny_multiple_choice.write(folder / "encoder", "Bert", "Model")


def numbers_of(evaluate: Callable[..., Any], folder: Path, case: str) -> dict[str, Any]:
    """Evaluate a case and return its numbers."""
    probe, model, options = CASES[case]
    done = evaluate(str(folder / probe), str(folder / model), device="cpu", **options)
    metrics = done.results.metrics
    return {
        "accuracy": metrics.accuracy.value,
        "accuracies": {name: one.value for name, one in metrics.accuracies.items()},
        "normalization": metrics.normalization,
        "score": done.results.scoring.score,
        "predictions": done.predictions["prediction"].to_pylist(),
        "scores": [
            [round(score, 5) for score in row] for row in done.predictions["scores"].to_pylist()
        ],
    }


def _cloze(n: int) -> dict[str, Any]:
    first, second = NOUNS[n % 10], NOUNS[(n * 7 + n // 10 + 1) % 10]
    choices = [GOLDS[(n + step) % 6] for step in range(3)]
    return _row("mc_mlm", n, f"A {first} is [MASK] than a {second}, number {n}.", choices)


def _question(n: int) -> dict[str, Any]:
    choices = [f"a {NOUNS[(n + 3 * step) % 10]}" for step in range(2 + n % 3)]
    return _row("mc_qa", n, f"What is a {NOUNS[n % 7]} like number {n // 2}?", choices)


def _row(setup: str, n: int, question: str, choices: list[str]) -> dict[str, Any]:
    answer, labels = n % len(choices), ["A", "B", "C", "D"][: len(choices)]
    return {
        "id": f"{setup}-{n}",
        "setup": setup,
        "question": question,
        "choices": {"text": choices, "label": labels},
        "answer": answer,
        "answerKey": labels[answer],
        "cluster": f"cluster-{n // 3}",
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def main() -> None:
    """Write the numbers that the installed code gives."""
    import evaluation

    with TemporaryDirectory() as folder:
        write_world(Path(folder))
        found = {case: numbers_of(evaluation.evaluate, Path(folder), case) for case in CASES}
    NUMBERS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
