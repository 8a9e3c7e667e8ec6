"""The runs of the study: which baselines apply to a probe, and with what they are trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from evaluation.items.sources import UnknownSplit
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.base import LearnerEntry
from evaluation.learners.registry import LEARNERS
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.words import last_name
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.registry import SCORERS
from evaluation.studies.base import StudyRequest, finished_in
from evaluation.studies.baselines.options import BaselinesOptions
from evaluation.studies.baselines.record import check_recordable
from evaluation.studies.baselines.types import LeftOut
from evaluation.studies.entries import refuse_idle_options, with_options_of
from evaluation.studies.models import open_model
from evaluation.vectors.options import VectorsOptions, word_vectors
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.setups import QUESTION

if TYPE_CHECKING:
    from evaluation.items.sources import ProbeSource

Entry: TypeAlias = ScorerEntry | LearnerEntry

FIXED = (
    *("scorer", "learner", "train", "train_seed", "labels", "inputs", "facts", "normalization"),
    *(
        "mix_in",
        "mix_rows",
        "train_on",
        "next_size",
        "guess_seed",
        "random_weights",
        "keep_checkpoint",
    ),
)
"""Options of runs that the study sets itself, or has no use for."""

CHOICES_ALONE = "full"
"""The learner that is fitted on choices alone, where a model is given."""


_NO_TRAIN = "there is no train split to fit it on: give a folder that has one"


@dataclass(frozen=True)
class Rows:
    """What the study must know of a probe.

    Attributes:
        test: the rows to evaluate.
        train: how many rows there are to train on; 0: there is no train split.
    """

    test: ProbeSplit
    train: int

    @property
    def setups(self) -> list[str]:
        """The setups of the rows."""
        return sorted(setups_of(self.test.items))


def known_baselines() -> dict[str, Entry]:
    """Return the scorers and learners that need no model, by name."""
    entries: list[Entry] = [*SCORERS, *LEARNERS]
    return {entry.name: entry for entry in entries if not entry.needs}


def read_rows(request: StudyRequest, probe: ProbeSource) -> Rows:
    """Read the rows to evaluate, and count those to train on.

    Raises:
        UsageError: there is no such probe, config or split.
        KbprobeError: it cannot be read.
    """
    reader, options = SplitReader(), request.defaults.run
    test = reader.rows(probe, options)
    try:
        train = reader.train(probe, options)
    except UnknownSplit:
        return Rows(test, 0)
    # A single file stands for any split.
    return Rows(test, 0 if train.split == test.split else len(train.items))


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, those of one model after each other.

    Raises:
        UsageError: a baseline is unknown, cannot be used with a probe although it was named, or
            lacks word vectors; results that are to be put beside are of other rows; or figures
            cannot be recorded in a probe.
    """
    check_recordable(request)
    read = [(probe, read_rows(request, probe)) for probe in request.probes]
    _check_beside(request, [rows for _, rows in read])
    specs: list[RunSpec] = []
    for probe, rows in read:
        entries, left_out = applying(request, rows)
        if (named := set(request.options.baselines)) and left_out:
            refused = [one for one in left_out if one.name in named]
            raise UsageError(
                f"--baselines {refused[0].name} cannot be used with {rows.test.source}: "
                f"{refused[0].why}"
            )
        specs += _of_probe(request, probe, rows, entries)
    _check_vectors(request, specs)
    for model in request.models:
        if Capability.TRAINABLE in open_model(request, model).capabilities:
            for probe, rows in read:
                specs += _choices_alone(request, probe, rows, model)
    refuse_idle_options(request, specs)
    return specs


def applying(request: StudyRequest, rows: Rows) -> tuple[list[Entry], list[LeftOut]]:
    """Return the baselines that can be run on a probe's rows, and those that cannot.

    Those that were not asked for, and are of other setups, are in neither list.

    Raises:
        UsageError: a baseline was asked for that there is not.
    """
    known, names = known_baselines(), request.options.baselines
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(
                f"--baselines {name}: there is no such baseline.{hint} Available: "
                f"{', '.join(known)}."
            )
    entries: list[Entry] = []
    left_out: list[LeftOut] = []
    for name, entry in known.items():
        if names and name not in names:
            continue
        others = [setup for setup in rows.setups if not entry.takes(setup)]
        if others and names:
            left_out.append(LeftOut(name=name, why=f"it does not take rows of {others[0]}"))
        elif not others and isinstance(entry, LearnerEntry) and not rows.train:
            left_out.append(
                LeftOut(
                    name=name,
                    why=_NO_TRAIN,
                )
            )
        elif not others:
            entries.append(entry)
    return entries, left_out


def models_left_out(request: StudyRequest, rows: Rows) -> list[LeftOut]:
    """Say why choices alone are not asked of the models that were given, where they are not."""
    found = []
    for model in request.models:
        if model == NO_MODEL:
            continue
        if rows.setups != [QUESTION]:
            why = "only rows of questions with choices can be shown without the question"
        elif not rows.train:
            why = _NO_TRAIN
        elif Capability.TRAINABLE not in open_model(request, model).capabilities:
            why = "a model of this kind cannot be fine-tuned"
        else:
            continue
        found.append(LeftOut(name=f"{last_name(model)}, choices alone", why=why))
    return found


def _of_probe(
    request: StudyRequest, probe: ProbeSource, rows: Rows, entries: Sequence[Entry]
) -> Iterator[RunSpec]:
    """Yield the runs of baselines on one probe."""
    options: BaselinesOptions = request.options
    for entry in entries:
        if isinstance(entry, LearnerEntry):
            own = with_options_of(request, entry, entry.scorer)
            count = min(options.rows, rows.train)
            for seed in range(options.seeds):
                changes = {"learner": entry.name, "train": count, "train_seed": seed}
                yield own.spec(probe, NO_MODEL, **changes, facts=False)
        else:
            own = with_options_of(request, entry)
            seeded = "guess_seed" in entry.options.model_fields
            for seed in range(options.seeds if seeded else 1):
                drawn = {"guess_seed": seed} if seeded else {}
                yield own.spec(probe, NO_MODEL, scorer=entry.name, **drawn, facts=False)


def _choices_alone(
    request: StudyRequest, probe: ProbeSource, rows: Rows, model: str
) -> Iterator[RunSpec]:
    """Yield the runs of a model that is fitted on choices alone."""
    if rows.setups != [QUESTION] or not rows.train:
        return
    entry = LEARNERS.get(CHOICES_ALONE)
    own = with_options_of(request, entry, entry.scorer)
    count = min(request.options.rows, rows.train)
    for seed in range(request.options.seeds):
        changes = {"learner": entry.name, "inputs": "choices", "train": count}
        yield own.spec(probe, model, **changes, train_seed=seed, facts=False)


def _check_beside(request: StudyRequest, read: Sequence[Rows]) -> None:
    """Refuse to put results on other rows beside the baselines."""
    known = {rows.test.fingerprint for rows in read}
    for folder in request.options.beside:
        probe = finished_in(Path(folder)).evaluation.results.probe
        if probe.fingerprint not in known:
            raise UsageError(
                f"--beside {folder}: it holds results on {probe.rows:,} rows of {probe.name} "
                f"({probe.split}), but the baselines are run on other rows. Run both with "
                "the same probe, --split, --config, --limit and --seed."
            )


def _check_vectors(request: StudyRequest, specs: Sequence[RunSpec]) -> None:
    """Refuse to start without the word vectors that some baselines read."""
    known = known_baselines()
    used = dict.fromkeys(spec.run.learner or spec.run.scorer or "" for spec in specs)
    readers = [name for name in used if issubclass(known[name].options, VectorsOptions)]
    if not readers:
        return
    try:
        word_vectors(VectorsOptions(vectors=request.values.get("vectors")))
    except UsageError as error:
        others = [name for name in used if name not in readers]
        instead = f" Or run those that need none: --baselines {','.join(others)}" if others else ""
        raise UsageError(f"{', '.join(readers)} read word vectors, and {error}{instead}") from error
