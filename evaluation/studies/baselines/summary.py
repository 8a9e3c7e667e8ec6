"""The summary of the study: the accuracy of each baseline, with what is put beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.intervals import Resampled, TwoWayBootstrap
from evaluation.results.types import Results
from evaluation.results.words import last_name
from evaluation.studies.base import Finished, StudyRequest, finished_in
from evaluation.studies.baselines.runs import Rows, applying, models_left_out, read_rows
from evaluation.studies.baselines.types import (
    BaselinesSummary,
    LeftOut,
    Measured,
    Measurement,
)
from evaluation.studies.counting import bootstrap_runs
from kbprobe.errors import KbprobeError

if TYPE_CHECKING:
    from evaluation.items.sources import ProbeSource

READS = {
    "random": "nothing",
    "majority": "the training rows' answers",
    "vec_similarity": "question and choice, as bags of content words",
    "vec_similarity_published": "question and choice, as bags of words",
    "choice_only": "each choice alone",
    "choice_to_choice": "the choices, without the question",
    "question_to_choice": "question and choice, one vector each",
    "esim": "question and choice, word by word",
    "mlm_baseline": "the question's first words",
}
"""What each baseline sees of a row."""

_FEW = 5
"""Fewer draws are said to be few."""


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> BaselinesSummary:
    """Summarise the runs of the study, probe by probe."""
    beside = [finished_in(Path(folder)) for folder in request.options.beside]
    return BaselinesSummary(
        probes=[
            _measurement(request, probe, [run for run in finished if _is_of(run, probe)], beside)
            for probe in request.probes
        ]
    )


def _is_of(run: Finished, probe: ProbeSource) -> bool:
    own = run.spec.probe if run.spec is not None else None
    return own == probe if isinstance(probe, str) else own is probe


def _results(run: Finished) -> Results:
    return run.evaluation.results


def _measurement(
    request: StudyRequest, probe: ProbeSource, runs: list[Finished], beside: list[Finished]
) -> Measurement:
    """Return the numbers of one probe."""
    rows, first = read_rows(request, probe), _results(runs[0])
    left_out = applying(request, rows)[1] + models_left_out(request, rows)
    fingerprint = first.probe.fingerprint
    shown = [run for run in beside if _results(run).probe.fingerprint == fingerprint]
    every = [*runs, *shown]
    bootstrap, chance = bootstrap_runs(every, first.seed), first.metrics.chance
    groups: dict[tuple[str, str], list[int]] = {}
    for number, run in enumerate(runs):
        groups.setdefault(_name(run), []).append(number)
    return Measurement(
        probe=first.probe.name,
        source=first.probe.source,
        config=request.defaults.run.config,
        split=first.probe.split,
        setups=rows.setups,
        rows=first.metrics.items,
        clusters=first.metrics.clusters,
        fingerprint=fingerprint,
        chance=chance,
        train_rows=rows.train,
        baselines=[
            _measured(name, every, numbers, bootstrap, chance) for name, numbers in groups.items()
        ],
        beside=[
            _measured((_label(run), _results(run).model.id), every, [number], bootstrap, chance)
            for number, run in enumerate(shown, len(runs))
        ],
        left_out=left_out,
        notes=_notes(request, rows, runs, left_out),
    )


def _name(run: Finished) -> tuple[str, str]:
    """Return the name of a baseline, and of the model that it uses."""
    if run.spec is None:
        raise KbprobeError("baselines are runs, not folders of results")
    options, model = run.spec.run, run.spec.model
    name = options.learner or options.scorer or ""
    return (name if model == NO_MODEL else f"{last_name(model)}, choices alone"), model


def _label(run: Finished) -> str:
    """Name results that are put beside the baselines."""
    results = _results(run)
    learnt = results.model.finetuning
    name = last_name(results.model.id)
    if results.model.id == NO_MODEL:
        name = results.scoring.scorer
    return name if learnt is None else f"{name}, {learnt['learner']}"


def _measured(
    name: tuple[str, str],
    runs: Sequence[Finished],
    numbers: Sequence[int],
    bootstrap: TwoWayBootstrap,
    chance: float,
) -> Measured:
    found = [_results(runs[number]) for number in numbers]
    average = bootstrap.average(dict(enumerate(numbers)))
    learnt, unknown = found[0].model.finetuning, found[0].scoring.notes.get("unknown_words")
    return Measured(
        name=name[0],
        reads=_reads(name, found[0]),
        model=name[1],
        train_rows=None if learnt is None else learnt["train"],
        draws=[float(bootstrap.accuracies[number]) for number in numbers],
        accuracy=average.estimate(),
        over_chance=_less(average, chance).estimate(100),
        seconds=round(sum(results.timings.total for results in found), 1),
        unknown_words=unknown,
    )


def _reads(name: tuple[str, str], results: Results) -> str:
    if name[1] == NO_MODEL:
        return READS.get(name[0], results.scoring.scorer)
    return "each choice alone" if name[0].endswith("choices alone") else "question and choices"


def _less(number: Resampled, chance: float) -> Resampled:
    """Return a number less chance, which is known."""
    bounds = None
    if number.bounds is not None:
        bounds = (number.bounds[0] - chance, number.bounds[1] - chance)
    return Resampled(number.value - chance, number.samples - chance, number.n, bounds)


def _notes(
    request: StudyRequest, rows: Rows, runs: Sequence[Finished], left_out: Sequence[LeftOut]
) -> list[str]:
    """Say what a reader of the numbers must know."""
    options, notes = request.options, []
    if 0 < rows.train < options.rows:
        notes.append(
            f"The train split has {rows.train:,} rows, fewer than the {options.rows:,} requested: "
            "all of them were used."
        )
    trained = any(_results(run).model.finetuning is not None for run in runs)
    if trained and options.seeds < _FEW:
        few = "one draw" if options.seeds == 1 else f"{options.seeds} draws"
        notes.append(f"Trained on {few} of rows: intervals are rough with so few.")
    aside = sorted({_results(run).metrics.items - _results(run).metrics.scored for run in runs})
    if aside != [0]:
        notes.append(f"Up to {aside[-1]:,} rows could not be scored by a baseline.")
    overlap = max(_results(run).scoring.notes.get("train_overlap", 0) for run in runs)
    if overlap:
        notes.append(f"{overlap:,} rows belong to clusters that are also in train.")
    for why in dict.fromkeys(one.why for one in left_out):
        names = ", ".join(one.name for one in left_out if one.why == why)
        notes.append(f"Not run: {names} ({why}).")
    return notes
