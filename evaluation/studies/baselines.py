"""Baselines: accuracy without a language model, or without the question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pydantic import Field

from evaluation.items.sources import ProbeSource, UnknownSplit
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.base import LearnerEntry
from evaluation.learners.registry import LEARNERS
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.options import SELECTING, TRAINING, not_default, written_out
from evaluation.report import cells
from evaluation.results.intervals import Resampled
from evaluation.results.types import Estimate, Model
from evaluation.results.words import last_name, name_or_count, percent
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.registry import SCORERS
from evaluation.studies.base import Finished, Study, StudyRequest, finished_in
from evaluation.studies.counting import average_groups, group_by, train_overlap
from evaluation.studies.entries import open_model, refuse_idle_options, with_options_of
from evaluation.studies.records import Record
from evaluation.vectors.options import VectorsOptions, word_vectors
from kbprobe import document as doc
from kbprobe.audit.recorded import BaselineFigure, BaselineFigures, record_baselines, rows_digests
from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import DEFAULT_CONFIG, QUESTION
from kbprobe.options import Options, option_name


class BaselinesOptions(Options):
    """Which baselines are run, and where their accuracies are recorded."""

    baselines: tuple[str, ...] = Field(
        (),
        description="Scorers and learners that need no model, by name; none: all that apply to "
        "the rows.",
    )
    rows: int = Field(3000, ge=1, description="Rows to train on; all if the train split has fewer.")
    seeds: int = Field(3, ge=1, description="Draws of training rows, and of guesses.")
    beside: tuple[str, ...] = Field(
        (), description="Folders of results on the same rows, to show next to the baselines."
    )
    record: bool = Field(
        False, description="Also write the accuracies to the probe's folder and its card."
    )


class Measured(Model):
    """The accuracy of a baseline, or of a model compared with the baselines."""

    name: str = Field(description="Name of the scorer or learner; for another model, its id.")
    reads: str = Field(description="Description of what it sees of a row.")
    model: str = Field(description="none, or the model that was used.")
    train_rows: int | None = Field(description="Rows trained on; null: not trained.")
    draws: list[float] = Field(
        description="Accuracy with each draw of training rows, or of guesses, by its seed."
    )
    accuracy: Estimate = Field(
        description="Mean over the draws; the interval resamples test clusters and draws."
    )
    over_chance: Estimate = Field(description="Accuracy minus chance, in percentage points.")
    seconds: float = Field(description="Total time of all draws when first run.")
    unknown_words: int | None = Field(
        description="Number of distinct words without a vector in the rows evaluated; null if not "
        "reported."
    )


class LeftOut(Model):
    """A baseline that was not run."""

    name: str = Field(description="Its name.")
    why: str = Field(description="Why it was not run.")


class Measurement(Record):
    """The baselines of one probe."""

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="Folder, file or Hub id, as it was given.")
    config: str | None = Field(description="Its config; null: the default one.")
    split: str = Field(description="The split evaluated.")
    setups: list[str] = Field(description="Setups of its rows.")
    rows: int = Field(description="Rows evaluated.")
    clusters: int = Field(description="Clusters that they belong to.")
    fingerprint: str = Field(description="sha256 of the rows evaluated.")
    chance: float = Field(description="Mean of one over the number of choices.")
    train_rows: int = Field(description="Rows of its train split; 0 if there is none.")
    baselines: list[Measured] = Field(description="The baselines, in the order of the registry.")
    beside: list[Measured] = Field(description="Other results on the same rows.")
    left_out: list[LeftOut] = Field(description="Baselines that could not be run.")
    notes: list[str] = Field(description="Caveats for the reader.")


class BaselinesSummary(Model):
    """The baselines of one or more probes."""

    schema_version: str = Field("1.0", description="Version of this schema.")
    probes: list[Measurement] = Field(description="One entry for each probe.")


Entry: TypeAlias = ScorerEntry | LearnerEntry

_NO_TRAIN = "there is no train split to fit it on: give a folder that has one"


@dataclass(frozen=True)
class _Rows:
    """What the study needs to know about the rows of a probe.

    Attributes:
        test: the rows to evaluate.
        train: the number of training rows; 0 if there is no train split.
    """

    test: ProbeSplit
    train: int

    @property
    def setups(self) -> list[str]:
        """The setups of the rows."""
        return sorted(setups_of(self.test.items))


def _known_baselines() -> dict[str, Entry]:
    """Return the scorers and learners that need no model, by name."""
    entries: list[Entry] = [*SCORERS, *LEARNERS]
    return {entry.name: entry for entry in entries if not entry.needs}


def _read_rows(request: StudyRequest, probe: ProbeSource) -> _Rows:
    """Read the rows to evaluate, and count those to train on."""
    reader, options = SplitReader(), request.defaults.run
    test = reader.rows(probe, options)
    try:
        train = reader.train(probe, options)
    except UnknownSplit:
        return _Rows(test, 0)
    # A single file is used for every split.
    return _Rows(test, 0 if train.split == test.split else len(train.items))


def _expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, grouped by model."""
    _check_recordable(request)
    read = [(probe, _read_rows(request, probe)) for probe in request.probes]
    _check_beside(request, [rows for _, rows in read])
    specs: list[RunSpec] = []
    for probe, rows in read:
        entries, left_out = _applying(request, rows)
        if request.options.baselines and left_out:
            raise UsageError(
                f"--baselines {left_out[0].name} cannot be used with {rows.test.source}: "
                f"{left_out[0].why}"
            )
        specs += _of_probe(request, probe, rows, entries)
    _check_vectors(request, specs)
    learner = LEARNERS.get("full")  # fits models on the choices alone
    for model in request.models:
        for probe, rows in read:
            if _not_on_choices(request, rows, model) is None:
                specs += _trained(request, probe, rows, model, learner, inputs="choices")
    refuse_idle_options(request, specs)
    return specs


def _applying(request: StudyRequest, rows: _Rows) -> tuple[list[Entry], list[LeftOut]]:
    """Return the baselines that can be run on a probe's rows, and those that cannot.

    Baselines for other setups that were not asked for are in neither list.
    """
    known, names = _known_baselines(), request.options.baselines
    if odd := [name for name in names if name not in known]:
        raise UsageError(
            f"--baselines {odd[0]}: there is no such baseline.{did_you_mean(odd[0], known)} "
            f"Available: {', '.join(known)}."
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
            left_out.append(LeftOut(name=name, why=_NO_TRAIN))
        elif not others:
            entries.append(entry)
    return entries, left_out


def _not_on_choices(request: StudyRequest, rows: _Rows, model: str) -> str | None:
    """Return why a model cannot be fitted on the choices alone; None if it can."""
    able = open_model(request, model).capabilities
    if rows.setups != [QUESTION]:
        return "only rows of questions with choices can be shown without the question"
    if not rows.train:
        return _NO_TRAIN
    return None if Capability.TRAINABLE in able else "a model of this kind cannot be fine-tuned"


def _of_probe(
    request: StudyRequest, probe: ProbeSource, rows: _Rows, entries: Sequence[Entry]
) -> Iterator[RunSpec]:
    """Yield the runs of baselines on one probe."""
    for entry in entries:
        if isinstance(entry, LearnerEntry):
            yield from _trained(request, probe, rows, NO_MODEL, entry)
        else:
            own = with_options_of(request, entry)
            seeded = "guess_seed" in entry.options.model_fields
            for seed in range(request.options.seeds if seeded else 1):
                drawn = {"guess_seed": seed} if seeded else {}
                yield own.spec(probe, NO_MODEL, scorer=entry.name, **drawn, facts=False)


def _trained(
    request: StudyRequest,
    probe: ProbeSource,
    rows: _Rows,
    model: str,
    entry: LearnerEntry,
    **changes: str,
) -> Iterator[RunSpec]:
    """Yield a run for each draw of training rows."""
    own = with_options_of(request, entry, entry.scorer)
    count = min(request.options.rows, rows.train)
    for seed in range(request.options.seeds):
        learnt = {"learner": entry.name, **changes, "train": count, "train_seed": seed}
        yield own.spec(probe, model, **learnt, facts=False)


def _check_beside(request: StudyRequest, read: Sequence[_Rows]) -> None:
    """Refuse results given with ``--beside`` that are on different rows from the baselines."""
    known = {rows.test.fingerprint for rows in read}
    for folder in request.options.beside:
        probe = finished_in(Path(folder)).results.probe
        if probe.fingerprint not in known:
            raise UsageError(
                f"--beside {folder}: it holds results on {probe.rows:,} rows of {probe.name} "
                f"({probe.split}), but the baselines are run on other rows. Run both with "
                "the same probe, --split, --config, --limit and --seed."
            )


def _check_vectors(request: StudyRequest, specs: Sequence[RunSpec]) -> None:
    """Refuse to start without the word vectors that some baselines read."""
    known = _known_baselines()
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
"""The parts of a row that each baseline sees."""


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> BaselinesSummary:
    """Summarise the runs of the study, probe by probe."""
    beside = [finished_in(Path(folder)) for folder in request.options.beside]
    return BaselinesSummary(
        probes=[
            _measurement(request, probe, [run for run in finished if run.asks(probe)], beside)
            for probe in request.probes
        ]
    )


def _measurement(
    request: StudyRequest, probe: ProbeSource, runs: list[Finished], beside: list[Finished]
) -> Measurement:
    """Return the numbers of one probe."""
    rows, first = _read_rows(request, probe), runs[0].results
    left_out = _applying(request, rows)[1] + [
        LeftOut(name=f"{last_name(model)}, choices alone", why=why)
        for model in request.models
        if model != NO_MODEL and (why := _not_on_choices(request, rows, model)) is not None
    ]
    shown = [run for run in beside if run.results.probe.fingerprint == first.probe.fingerprint]
    named = [*group_by(runs, _name).items()]
    named += [((_label(run), run.results.model.id), [run]) for run in shown]
    averages = average_groups(dict(enumerate(own for _, own in named)), first.seed)
    chance = first.metrics.chance
    measured = [_measured(*one, averages[at], chance) for at, one in enumerate(named)]
    others = len(named) - len(shown)
    return Measurement.of(
        runs[0],
        config=request.defaults.run.config,
        setups=rows.setups,
        train_rows=rows.train,
        baselines=measured[:others],
        beside=measured[others:],
        left_out=left_out,
        notes=_notes(request, rows, runs, left_out),
    )


def _name(run: Finished) -> tuple[str, str]:
    """Return the name of a baseline, and of the model that it uses."""
    options, model = run.asked.run, run.asked.model
    name = options.learner or options.scorer or ""
    return (name if model == NO_MODEL else f"{last_name(model)}, choices alone"), model


def _label(run: Finished) -> str:
    """Return the name of results that are shown with the baselines."""
    model = run.results.model.id
    name = run.results.scoring.scorer if model == NO_MODEL else last_name(model)
    return f"{name}, {run.learnt['learner']}" if run.learnt else name


def _measured(
    name: tuple[str, str], runs: Sequence[Finished], average: Resampled, chance: float
) -> Measured:
    found = [run.results for run in runs]
    called, model = name
    reads = "each choice alone" if called.endswith("choices alone") else "question and choices"
    if model == NO_MODEL:
        reads = READS.get(called, found[0].scoring.scorer)
    return Measured(
        name=called,
        reads=reads,
        model=model,
        train_rows=runs[0].learnt.get("train"),
        draws=[results.metrics.accuracy.value for results in found],
        accuracy=average.estimate(),
        over_chance=average.less(chance).estimate(100),
        seconds=round(sum(results.timings.total for results in found), 1),
        unknown_words=found[0].scoring.notes.get("unknown_words"),
    )


def _notes(
    request: StudyRequest, rows: _Rows, runs: Sequence[Finished], left_out: Sequence[LeftOut]
) -> list[str]:
    """Return caveats about the numbers."""
    options, notes = request.options, []
    if 0 < rows.train < options.rows:
        notes.append(
            f"The train split has {rows.train:,} rows, fewer than the {options.rows:,} requested: "
            "all of them were used."
        )
    if any(run.learnt for run in runs) and options.seeds < 5:
        few = "one draw" if options.seeds == 1 else f"{options.seeds} draws"
        notes.append(f"Trained on {few} of rows: intervals are rough with so few.")
    aside = sorted({run.results.metrics.items - run.results.metrics.scored for run in runs})
    if aside != [0]:
        notes.append(f"Up to {aside[-1]:,} rows could not be scored by a baseline.")
    if overlap := train_overlap(runs):
        notes.append(f"{overlap:,} rows belong to clusters that are also in train.")
    for why in dict.fromkeys(one.why for one in left_out):
        names = ", ".join(one.name for one in left_out if one.why == why)
        notes.append(f"Not run: {names} ({why}).")
    return notes


def _check_recordable(request: StudyRequest) -> None:
    """Check that the accuracies are of whole probes, and can be recorded."""
    if not request.options.record:
        return
    run = request.defaults.run
    if selected := not_default(SELECTING, vars(run)):
        raise UsageError(f"--record is for all rows of a probe: leave {written_out(selected)} out")
    if run.config not in (None, DEFAULT_CONFIG):
        raise UsageError("--record is for a probe's default config: leave --config out")
    for probe in request.probes:
        if not isinstance(probe, str) or not Path(probe).is_dir():
            raise UsageError(
                f"--record writes into the folder of a built probe, but {probe} is not one: leave "
                f"{option_name('record')} out, or build one with: build-probe NAME -o DIR"
            )
        read_manifest(Path(probe))


def _record_figures(request: StudyRequest, summary: BaselinesSummary) -> None:
    """Record the accuracies in the folders of the probes, if the request asks for it."""
    if not request.options.record:
        return
    for probe, one in zip(request.probes, summary.probes, strict=True):
        folder = Path(str(probe))
        trained = any(held.train_rows is not None for held in one.baselines)
        splits = [one.split, *(["train"] if trained else [])]
        figures = BaselineFigures(
            probe=one.probe,
            split=one.split,
            rows=one.rows,
            chance=one.chance,
            rows_sha256=rows_digests(read_manifest(folder), splits),
            kbprobe_version=kbprobe_version(),
            figures=[
                BaselineFigure(
                    name=held.name,
                    reads=held.reads,
                    train_rows=held.train_rows,
                    draws=len(held.draws),
                    accuracy=held.accuracy.value,
                    low=held.accuracy.low,
                    high=held.accuracy.high,
                )
                for held in one.baselines
            ],
        )
        record_baselines(folder, figures)


def _document(summary: BaselinesSummary) -> doc.Document:
    """Return the document: a section for each probe."""
    title = name_or_count(dict.fromkeys(one.probe for one in summary.probes), "probes")
    return doc.Document("Baselines", title, [_section(one) for one in summary.probes])


def _section(one: Measurement) -> doc.Section:
    config = "" if one.config is None else f", config {one.config}"
    best = max(one.baselines, key=lambda measured: measured.accuracy.value)
    tiles = {
        "Strongest baseline": doc.Cell(percent(best.accuracy.value), best.name),
        **cells.asked(one.chance, one.rows, one.clusters),
        "Training rows available": cells.count(one.train_rows),
    }
    dots = doc.Dots(
        f"Accuracy of each baseline on {one.probe}, with 95% intervals and chance.",
        [
            *(doc.Dot(measured.name, measured.accuracy) for measured in one.baselines),
            *(doc.Dot(measured.name, measured.accuracy, reference=True) for measured in one.beside),
        ],
        [doc.Level("chance", one.chance)],
    )
    return doc.Section(
        f"{one.probe}{config} ({one.split})",
        [doc.Tiles(tiles), dots, _table(one), doc.Caveats(one.notes)],
        link=one.probe,
    )


def _table(one: Measurement) -> doc.Table:
    return doc.Table.of(
        [*one.baselines, *one.beside],
        {
            "baseline": lambda measured: measured.name,
            "reads": lambda measured: measured.reads,
            "accuracy": lambda measured: measured.accuracy,
            "less chance": lambda measured: cells.points(measured.over_chance),
            "trained on": lambda measured: measured.train_rows,
            "draws": lambda measured: len(measured.draws),
            "seconds": lambda measured: f"{measured.seconds:,.1f}",
        },
        f"Accuracy of each baseline on {one.rows:,} rows in {one.clusters:,} clusters, with 95% "
        "intervals: mean over draws of training rows, and of guesses. Chance is "
        f"{percent(one.chance)}; differences from it are in percentage points",
        names=2,
    )


BASELINES = Study(
    name="baselines",
    help="Baselines without a language model: guessing, majority, word vectors, and models that "
    "see only the choices.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
    options=BaselinesOptions,
    fixed=TRAINING
    | {
        *("facts", "scorer", "inputs", "normalization", "guess_seed", "random_weights"),
        *("next_size", "keep_checkpoint"),
    },
    finish=_record_figures,
    modelless=True,
)
"""The study."""
