"""Evaluate baselines: guessing, majority, word vectors, choices alone.

Listed under: Commands to evaluate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pydantic import Field

from evaluation.items.sources import ProbeSource, UnknownSplit
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.base import LearnerEntry
from evaluation.learners.registry import LEARNERS
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import model_name
from evaluation.options import SELECTING, TRAINING, not_default, written_out
from evaluation.report import cells
from evaluation.results.similarity import similarity_name
from evaluation.results.words import percent
from evaluation.runs.encoders import encoder_options, open_encoder
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.entries import EMBEDDING
from evaluation.scorers.registry import SCORERS
from evaluation.studies.base import Finished, Study, StudyRequest, finished_in
from evaluation.studies.counting import train_overlap
from evaluation.studies.entries import open_model, refuse_idle_options, with_options_of
from evaluation.studies.table import (
    PROBE,
    Column,
    DataTable,
    RunRow,
    Section,
    StudyTables,
    fields,
    place_of,
    run_rows,
    runs_table,
    summary_of,
)
from evaluation.vectors.options import VectorsOption, word_vectors
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


class LeftOut(NamedTuple):
    """A baseline that was not run, and why."""

    name: str
    why: str


Entry: TypeAlias = ScorerEntry | LearnerEntry

CHOICES_ALONE = "choices alone"
"""The end of the names of models that see each choice without the question."""

_NO_TRAIN = "there is no train split to fit it on: give a folder that has one"


@dataclass(frozen=True)
class _RowCounts:
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


def _read_rows(request: StudyRequest, probe: ProbeSource) -> _RowCounts:
    """Read the rows to evaluate, and count those to train on."""
    reader, options = SplitReader(), request.defaults.run
    test = reader.rows(probe, options)
    try:
        train = reader.train(probe, options)
    except UnknownSplit:
        return _RowCounts(test, 0)
    # A single file is used for every split.
    return _RowCounts(test, 0 if train.split == test.split else len(train.items))


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
    specs += _of_encoder(request, read)
    learner = LEARNERS.get("full")  # fits models on the choices alone
    for model in request.models:
        for probe, rows in read:
            if _not_on_choices(request, rows, model) is None:
                specs += _trained(request, probe, rows, model, learner, inputs="choices")
    refuse_idle_options(request, specs)
    return specs


def _applying(request: StudyRequest, rows: _RowCounts) -> tuple[list[Entry], list[LeftOut]]:
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
            left_out.append(LeftOut(name, f"it does not take rows of {others[0]}"))
        elif not others and isinstance(entry, LearnerEntry) and not rows.train:
            left_out.append(LeftOut(name, _NO_TRAIN))
        elif not others:
            entries.append(entry)
    return entries, left_out


def _not_on_choices(request: StudyRequest, rows: _RowCounts, model: str) -> str | None:
    """Return why a model cannot be fitted on the choices alone; None if it can."""
    able = open_model(request, model).capabilities
    if rows.setups != [QUESTION]:
        return "only rows of questions with choices can be shown without the question"
    if not rows.train:
        return _NO_TRAIN
    return None if Capability.TRAINABLE in able else "a model of this kind cannot be fine-tuned"


def _of_probe(
    request: StudyRequest, probe: ProbeSource, rows: _RowCounts, entries: Sequence[Entry]
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


def _of_encoder(
    request: StudyRequest, read: Sequence[tuple[ProbeSource, _RowCounts]]
) -> Iterator[RunSpec]:
    """Yield the runs of the encoder of --similarity, as it is, on each probe of choices."""
    run = request.defaults.run
    if (encoder := open_encoder(run)) is None or run.similarity is None:
        return
    own = with_options_of(request, EMBEDDING)
    options = {"scorer": EMBEDDING.name, "dtype": "float32", **encoder_options(encoder)}
    for probe, rows in read:
        if not all(map(EMBEDDING.takes, rows.setups)):
            continue
        yield own.spec(probe, run.similarity, **options, facts=False)


def _trained(
    request: StudyRequest,
    probe: ProbeSource,
    rows: _RowCounts,
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


def _check_beside(request: StudyRequest, read: Sequence[_RowCounts]) -> None:
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
    readers = [name for name in used if issubclass(known[name].options, VectorsOption)]
    if not readers:
        return
    try:
        word_vectors(VectorsOption(vectors=request.values.get("vectors")))
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


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Summarise the runs of the study, probe by probe."""
    beside = [finished_in(Path(folder)) for folder in request.options.beside]
    sections = [
        _section(request, probe, [run for run in finished if run.asks(probe)], beside)
        for probe in request.probes
    ]
    return summary_of("baselines", "Baselines", sections, "probes")


AXES: dict[str, Column[Finished]] = {
    "baseline": Column(
        "Name of the scorer or learner; of other results, of what was evaluated.",
        lambda run: _name(run) if run.spec is not None else _label(run),
    ),
    "model": Column("none, or the model that was used.", lambda run: run.results.model.id, None),
    "beside": Column(
        "The folder of other results, given with --beside; null for a baseline.",
        lambda run: None if run.spec is not None else str(run.folder),
        None,
    ),
}
FURTHER: dict[str, Column[RunRow]] = {
    "reads": Column("What it sees of a row.", lambda row: _reads(row.runs[0])),
    "over_chance": Column(
        "Accuracy minus chance, in percentage points.",
        lambda row: row.less(row.chance),
        cells.points,
        "less chance",
    ),
    "train_rows": Column(
        "Rows trained on; null: not trained.",
        lambda row: row.runs[0].learnt.get("train"),
        head="trained on",
    ),
    "sha256": Column(
        "Hash of an encoder's weights and configuration; null: no encoder.",
        lambda row: row.runs[0].results.model.weights_sha256 or None,
        None,
    ),
    "seconds": Column(
        "Total time of all draws when first run.",
        lambda row: round(sum(run.results.timings.total for run in row.runs), 1),
        lambda seconds: f"{seconds:,.1f}",
    ),
    "unknown_words": Column(
        "Distinct words without a vector in the rows evaluated; null if not reported.",
        lambda row: row.runs[0].results.scoring.notes.get("unknown_words"),
        None,
    ),
}
LEFT_OUT = fields({"name": "A baseline that was not run.", "why": "Why it was not run."})


def _section(
    request: StudyRequest, probe: ProbeSource, runs: list[Finished], beside: list[Finished]
) -> Section:
    """Report the baselines of one probe."""
    rows, first = _read_rows(request, probe), runs[0].results
    left_out = _applying(request, rows)[1] + [
        LeftOut(f"{model_name(model)}, {CHOICES_ALONE}", why)
        for model in request.models
        if model != NO_MODEL and (why := _not_on_choices(request, rows, model)) is not None
    ]
    shown = [run for run in beside if run.results.probe.fingerprint == first.probe.fingerprint]
    measured = run_rows([*runs, *shown], AXES, first.seed)
    probes: dict[str, Column[Finished]] = {
        **PROBE,
        "config": Column(
            "Its config; null: the default one.", lambda _: request.defaults.run.config
        ),
        "setups": Column("Setups of its rows.", lambda _: rows.setups),
        "train_rows": Column("Rows of its train split; 0 if there is none.", lambda _: rows.train),
    }
    table = runs_table(measured, AXES, FURTHER)
    asked = f"{first.metrics.items:,} rows in {first.metrics.clusters:,} clusters"
    chance = first.metrics.chance
    own = [row for row in measured if row.axes["beside"] is None]
    best = max(own, key=lambda row: row.accuracy.value)
    return Section(
        place_of(runs[0], "probe", "split"),
        [
            table,
            DataTable("probes", runs[:1], probes),
            DataTable("left_out", left_out, LEFT_OUT),
        ],
        [
            table.dots(
                "Accuracy of each baseline, with 95% intervals and chance.",
                [doc.Level("chance", chance)],
                reference=lambda row: row.axes["beside"] is not None,
            ),
            table.shown(
                f"Accuracy of each baseline on {asked}, with 95% intervals: mean over draws of "
                f"training rows, and of guesses. Chance is {percent(chance)}; differences from it "
                "are in percentage points",
                ("baseline", "reads", "accuracy", "over_chance", "train_rows", "draws", "seconds"),
                names=2,
            ),
        ],
        [f"Strongest baseline: {best.axes['baseline']}, {percent(best.accuracy.value)}."],
        _notes(request, rows, runs, left_out),
    )


def _name(run: Finished) -> str:
    """Return the name of a baseline, with the model that it uses."""
    options, model = run.asked.run, run.asked.model
    name = options.learner or options.scorer or ""
    if name == EMBEDDING.name:
        return similarity_name(model)
    return name if model == NO_MODEL else f"{model_name(model)}, {CHOICES_ALONE}"


def _label(run: Finished) -> str:
    """Return the name of results that are shown with the baselines."""
    model = run.results.model.id
    name = run.results.scoring.scorer if model == NO_MODEL else model_name(model)
    return f"{name}, {run.learnt['learner']}" if run.learnt else name


def _reads(run: Finished) -> str:
    """Describe what a baseline, or a model shown with them, sees of a row."""
    if run.results.model.id == NO_MODEL:
        scorer = run.results.scoring.scorer
        return READS.get(_name(run) if run.spec is not None else _label(run), scorer)
    if run.spec is not None and run.asked.run.scorer == EMBEDDING.name:
        return "question and choice, one vector each"
    alone = run.spec is not None and _name(run).endswith(CHOICES_ALONE)
    return "each choice alone" if alone else "question and choices"


def _notes(
    request: StudyRequest, rows: _RowCounts, runs: Sequence[Finished], left_out: Sequence[LeftOut]
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
    counts = [run.results.scoring.notes for run in runs]
    shares = [
        own["known_words"] / (own["known_words"] + own["unknown_words"])
        for own in counts
        if "known_words" in own
    ]
    if shares:
        notes.append(
            f"The word vectors know only {percent(min(shares))} of the different words: they may "
            "be of another language. Name others with --vectors."
        )
    if overlap := train_overlap(runs):
        notes.append(f"{overlap:,} rows belong to clusters that are also in train.")
    for why in dict.fromkeys(entry.why for entry in left_out):
        names = ", ".join(entry.name for entry in left_out if entry.why == why)
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


def _record_figures(request: StudyRequest, summary: StudyTables) -> None:
    """Record the accuracies in the folders of the probes, if the request asks for it."""
    if not request.options.record:
        return
    for probe, about in zip(request.probes, summary.tables["probes"], strict=True):
        folder, names = Path(str(probe)), {name: about[name] for name in ("probe", "split")}
        # Two builds of a probe have the same name.
        rows = summary.rows("runs", beside=None, source=about["source"], **names)
        trained = any(row["train_rows"] is not None for row in rows)
        splits = [about["split"], *(["train"] if trained else [])]
        figures = BaselineFigures(
            **names,
            rows=about["rows"],
            chance=about["chance"],
            rows_sha256=rows_digests(read_manifest(folder), splits),
            kbprobe_version=kbprobe_version(),
            figures=[
                BaselineFigure(
                    name=row["baseline"],
                    reads=row["reads"],
                    train_rows=row["train_rows"],
                    draws=len(row["draws"]),
                    accuracy=row["accuracy"].value,
                    low=row["accuracy"].low,
                    high=row["accuracy"].high,
                    sha256=row["sha256"],
                )
                for row in rows
            ],
        )
        record_baselines(folder, figures)


BASELINES = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
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
