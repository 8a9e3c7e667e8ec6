"""Marks of numbers that differ in kind from the published ones, derived from what was run.

A paper's number is of the paper's rows, of all its training sizes, and of models trained as the
paper trained them. What a number of a reproduction is of is read from its runs and their results;
where that differs, the number has a letter, and the legend says what differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, Field

from evaluation.items.sources import open_probe
from evaluation.learners.entries import RECORD
from evaluation.models.capabilities import CAUSAL_LM
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import folder_name
from evaluation.results.types import Model, Results, read_results
from evaluation.runs.spec import RunSpec
from evaluation.scorers.registry import SCORERS
from evaluation.studies.curve.axes import LARGE
from kbprobe.format.manifest import holds_manifest, read_manifest
from kbprobe.options import Options
from kbprobe.parsing import read_record

Kind: TypeAlias = Literal[
    "rows",
    "limit",
    "split",
    "wording",
    "answers",
    "sizes",
    "settings",
    "learner",
    "step",
    "scoring",
]

_LETTERS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
"""Letters, each with its superscript: Unicode has none for q."""

_SETTINGS = {
    "seeds": "draws of the training rows",
    "large_seeds": "draws of 1,000 training rows or more",
    "learning_rates": "learning rates",
    "epoch_counts": "numbers of epochs",
    "random_init": "randomly initialised encoders",
}
"""Options of studies that say how often, or with what, a model is trained."""

_LIKELIHOODS = ("causal_lm", "seq2seq_lm")
_DIVIDED = {"token": "tokens", "char": "characters", "byte": "bytes"}


class MarkedDifference(NamedTuple):
    """In what kind a number differs from the published ones, and in what way."""

    kind: Kind
    text: str


class Mark(Model):
    """An entry of the legend."""

    letter: str = Field(description="The letter that marks numbers.")
    kind: Kind = Field(
        description="In what kind they differ from the published ones: of other rows, fewer "
        "(limit), those of another split, or in another wording; answers that no person gave; "
        "other training sizes; fewer settings tried; another learner; a step left out or done in "
        "another way; another way of scoring."
    )
    text: str = Field(description="In what way, in a sentence.")

    def __str__(self) -> str:
        return f"{superscript([self.letter])} {self.text}"


def superscript(letters: Iterable[str]) -> str:
    """Return letters raised above the line.

    >>> superscript(["a", "bb"])
    'ᵃᵇᵇ'
    """
    return "".join(_LETTERS[sign] for letter in sorted(letters, key=_place) for sign in letter)


def _place(letter: str) -> tuple[int, str]:
    return len(letter), letter


@dataclass
class Legend:
    """Differences by letter, in the order in which numbers have them."""

    letters: dict[MarkedDifference, str] = field(default_factory=dict)

    def letter(self, difference: MarkedDifference) -> str:
        """Return the letter of a difference; after the last letter come doubled ones."""
        number = len(self.letters)
        sign = [*_LETTERS][number % len(_LETTERS)] * (1 + number // len(_LETTERS))
        return self.letters.setdefault(difference, sign)

    @property
    def marks(self) -> list[Mark]:
        """The entries."""
        return [Mark(letter=own, kind=of.kind, text=of.text) for of, own in self.letters.items()]


@dataclass(frozen=True)
class Protocol:
    """How a paper made its numbers, as far as studies may do it in another way.

    Attributes:
        learners: those of its models, by name.
        settings: options of its studies, by name, such as the training sizes.
    """

    learners: frozenset[str]
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Before:
    """What a paper's models are trained on before they are asked, or trained on, a probe's rows.

    Attributes:
        what: in words.
        task: the task that models are trained for first, as the user named it.
        names: what names of the paper's own task contain: a regular expression; "": it has none.
    """

    what: str
    task: str | None = None
    names: str = ""


def differences(
    specs: Sequence[RunSpec],
    options: Options,
    protocol: Protocol,
    before: Before | None = None,
    split: str = "",
    wording: str = "",
) -> Iterator[MarkedDifference]:
    """Yield in what kinds a number differs from the paper's.

    Args:
        specs: the finished runs that it is made of.
        options: those of their study.
        protocol: the paper's.
        before: what the paper's models are trained on first; None: nothing.
        split: the split that the published number is of; "": the one that the runs are of.
        wording: the published wording, as the probe's builder names it; "": it has no name there.

    Raises:
        UsageError: a run has no results, or damaged ones.
    """
    spec = specs[0]
    if spec.folder is None:
        return
    results = read_results(spec.folder)
    # Of the probe: results of further configs do not repeat what its manifest says.
    place = Path(spec.probe) if isinstance(spec.probe, str) else None
    manifest = None
    if place is not None and holds_manifest(place):
        manifest = read_manifest(place)
        yield MarkedDifference("rows", "Newly built rows, not the paper's.")
    if (limit := spec.run.limit) is not None and results.probe.split_rows is not None:
        yield MarkedDifference("limit", f"A sample of the rows (--limit {limit}).")
    if split and results.probe.split != split:
        text = f"Of the {results.probe.split} split; the published numbers are of {split}."
        yield MarkedDifference("split", text)
    own_wording = manifest.request.options.get("wording") if manifest else None
    if manifest and wording and own_wording not in (None, wording):
        asked = f"Asked in the wording {own_wording}; the published numbers are of {wording}"
        again = f"build-probe {manifest.probe} --wording {wording}"
        yield MarkedDifference("wording", f"{asked} ({again}).")
    kind = manifest.annotation.annotator_kind if manifest and manifest.annotation else None
    if kind not in (None, "human"):
        yield MarkedDifference("answers", f"Answers given by a {kind}, not by people.")
    if spec.model != NO_MODEL and results.scoring.scorer in _LIKELIHOODS:
        yield _scoring(results)
    if before is not None and spec.model != NO_MODEL:
        done = _trained_before(spec, results, before)
        if done is not None:
            yield MarkedDifference("step", f"{done}; the paper's models: on {before.what}.")
    trained = [one for one in specs if one.run.train is not None]
    if trained:
        yield from _training(trained, results, options, protocol)


def _scoring(results: Results) -> MarkedDifference:
    label = SCORERS.get(results.scoring.scorer).label
    divided = _DIVIDED.get(results.metrics.normalization)
    by = f"divided by its number of {divided}" if divided else "not divided by its length"
    return MarkedDifference(
        "scoring",
        f"Scored as a {label}, unlike any model of the paper: by the log-likelihood of each "
        f"choice, {by}.",
    )


class _TrainedRows(BaseModel):
    """What is read of the record of a fine-tuned model: the rows that it was trained on."""

    rows: int


def _trained_before(spec: RunSpec, results: Results, before: Before) -> str | None:
    """Return what a model was trained on before a probe's rows; None: what the paper says."""
    if spec.options.get("facts_first"):
        return None
    record, task = Path(spec.model) / RECORD, before.task
    if record.is_file() and task is not None:
        return _of_task(task, read_record(record, _TrainedRows).rows, before)
    if spec.run.train_on not in (None, spec.probe) and spec.run.train is not None:
        return _of_task(str(spec.run.train_on), spec.run.train, before)
    if results.scoring.scorer == "classifier" and spec.run.train is None:
        return "Taken as it was given"
    if task is not None and results.scoring.scorer not in _LIKELIHOODS:
        return f"Trained on {folder_name(task)} first, as the command says"
    return "Not trained on anything first"


def _of_task(task: str, rows: int, before: Before) -> str | None:
    every = _train_rows(task)
    if rows == every and before.names and re.search(before.names, task.lower()):
        return None
    return f"Trained on {rows:,} of {every:,} rows of {folder_name(task)} first"


@lru_cache(maxsize=64)
def _train_rows(source: str) -> int:
    return len(open_probe(source, split="train").items)


def _training(
    specs: Sequence[RunSpec], results: Results, options: Options, protocol: Protocol
) -> Iterator[MarkedDifference]:
    """Yield what differs in how a number's models were trained on the probe."""
    spec, own = specs[0], sorted({spec.run.train or 0 for spec in specs})
    is_random = spec.run.random_weights is not None
    learner = spec.run.learner
    own_learner = spec.model == NO_MODEL or is_random or learner in protocol.learners
    if not own_learner:
        named = " or ".join(sorted(protocol.learners))
        yield MarkedDifference("learner", f"Learnt by {learner}; the paper's models by {named}.")
    elif learner == "linear" and _is_causal(results):
        yield MarkedDifference(
            "learner",
            "A linear head on a causal LM's vector after the question; the paper's is on a masked "
            "LM's vector at the mask.",
        )
    if hasattr(options, "sizes"):
        published = protocol.settings["sizes"]
        further = [size for size in own if size not in published]
        left_out = [size for size in published if size not in own]
        if further or left_out:
            text = f"Over the training size{'s' * (len(own) > 1)} {_listed(own)}"
            text += f"; not in the paper: {_listed(further)}" if further else ""
            text += f"; left out: {_listed(left_out)}" if left_out else ""
            yield MarkedDifference("sizes", f"{text}.")
    elif (
        spec.run.fold is None
        and spec.run.train_on is None
        and own[-1] < _train_rows(str(spec.probe))
    ):
        yield MarkedDifference("sizes", f"Learnt from {own[-1]:,} rows, not from all to train on.")
    for name, what in _SETTINGS.items():
        most, count = protocol.settings.get(name), getattr(options, name, None)
        if most is None or count is None or (name == "random_init") != is_random:
            continue
        if (name == "large_seeds") and own[-1] < LARGE:
            continue
        if _count(count) < _count(most):
            yield MarkedDifference("settings", f"{_count(count)} instead of {_count(most)} {what}.")


def _is_causal(results: Results) -> bool:
    from transformers import PretrainedConfig

    return CAUSAL_LM.fits(results.model.architecture, PretrainedConfig())


def _count(value: int | Sequence[Any]) -> int:
    return value if isinstance(value, int) else len(value)


def _listed(numbers: Sequence[int]) -> str:
    *most, last = (f"{number:,}" for number in numbers)
    return f"{', '.join(most)} and {last}" if most else last
