"""The classes of classifiers as labels, and the tokens that classifiers read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluation.scorers.encoder import EncoderRunner, Tokenized
from kbprobe.errors import UsageError
from kbprobe.format.setups import ACCEPTABILITY, NLI, SETUPS

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_TEXTS_AT_A_TIME = 8192


def tokenize(
    texts: Sequence[tuple[str, str]], tokenizer: PreTrainedTokenizerBase, runner: EncoderRunner
) -> Tokenized:
    """Tokenize texts, each a pair of a premise ("" for none) and what is asked about it.

    A text that is too long is cut as the tokenizer cuts it: the longer text of a pair loses tokens
    first.
    """

    def encoding(some: Sequence[tuple[str, str]], paired: bool, cut: bool = False) -> Any:
        first, second = zip(*some, strict=True)
        return tokenizer(
            *((list(first), list(second)) if paired else (list(second),)),
            truncation=cut,
            max_length=runner.limit if cut else None,
            return_token_type_ids=runner.takes_types,
            return_attention_mask=False,
            verbose=False,
        )

    ids: list[Sequence[int]] = [()] * len(texts)
    types: list[Sequence[int]] = [()] * len(texts)
    cut: set[int] = set()
    for paired in (False, True):
        numbers = [number for number, text in enumerate(texts) if bool(text[0]) is paired]
        for start in range(0, len(numbers), _TEXTS_AT_A_TIME):
            part = numbers[start : start + _TEXTS_AT_A_TIME]
            encoded = encoding([texts[number] for number in part], paired)
            for row, number in enumerate(part):
                found, at = encoded, row
                if len(encoded["input_ids"][row]) > runner.limit:
                    cut.add(number)
                    found, at = encoding([texts[number]], paired, cut=True), 0
                ids[number] = found["input_ids"][at]
                if runner.takes_types:
                    types[number] = found["token_type_ids"][at]
    return Tokenized.of(ids, types if runner.takes_types else None, cut)


SPELLINGS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    ACCEPTABILITY: {
        "unacceptable": ("unacceptable", "not acceptable", "ungrammatical", "not grammatical"),
        "acceptable": ("acceptable", "grammatical"),
    },
    NLI: {
        "entailment": ("entailment", "entail", "entails"),
        "neutral": ("neutral",),
        "contradiction": ("contradiction", "contradict", "contradicts"),
    },
}
"""How checkpoints name the labels of a setup, in lower case with spaces between words."""

_OPTION = "--class-labels"


def classes_of(
    setup: str, id2label: Mapping[int, str], stated: Sequence[str], model: str
) -> dict[str, int]:
    """Return the class that stands for each label of a setup.

    Args:
        setup: the setup of the rows: ``acceptability`` or ``nli``.
        id2label: the checkpoint's names of its classes.
        stated: the labels of the classes, in order, as stated by the user; may be empty.
        model: the checkpoint, for messages.

    Raises:
        UsageError: the checkpoint has other classes, or their names do not tell which is which.

    >>> classes_of("nli", {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}, (), "m")
    {'entailment': 2, 'neutral': 1, 'contradiction': 0}
    """
    labels = SETUPS[setup].labels
    names = list(stated) or [id2label[number] for number in sorted(id2label)]
    shown = ", ".join(names)
    if stated and len(stated) != len(id2label):
        raise UsageError(
            f"{_OPTION} {','.join(stated)} names {len(stated)} classes, and {model} tells "
            f"{len(id2label)} apart. Name each of them once."
        )
    if len(names) != len(labels):
        raise UsageError(
            f"{model} tells {len(names)} classes apart ({shown}), and rows of the setup {setup} "
            f"have {len(labels)} labels: {', '.join(labels)}. {_other_number(setup, names)}"
        )
    spelled = {text: label for label, texts in SPELLINGS[setup].items() for text in texts}
    meant = [spelled.get(_plain(name)) for name in names]
    if set(meant) == set(labels):
        return {label: meant.index(label) for label in labels}
    if stated:
        raise UsageError(
            f"{_OPTION} {','.join(stated)}: rows of the setup {setup} have the labels "
            f"{', '.join(labels)}. Name each of them once, in the order of the checkpoint's "
            "classes."
        )
    if all(_plain(name).removeprefix("label").strip().isdigit() for name in names):
        raise UsageError(
            f"{model} does not say what its classes mean ({shown}). Look it up where the "
            f"checkpoint is described, and state it from the first class on, such as "
            f"{_OPTION} {','.join(labels)}"
        )
    raise UsageError(
        f"the classes of {model} ({shown}) are not the labels of rows of the setup {setup} "
        f"({', '.join(labels)}). Give a checkpoint that was trained for these labels; if its "
        f"classes mean them under other names, state it from the first class on, such as "
        f"{_OPTION} {','.join(labels)}"
    )


def _plain(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _other_number(setup: str, names: Sequence[str]) -> str:
    if setup == NLI and len(names) == 2:
        return (
            "A checkpoint that tells entailment from everything else (as RTE has it) cannot tell "
            "neutral from contradiction: give one that was trained on three classes, as MNLI has."
        )
    return "Give a checkpoint that was trained for these labels."
