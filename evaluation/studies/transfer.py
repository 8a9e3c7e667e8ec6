"""Transfer: a model trained on each of several probes, and evaluated on all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from statistics import fmean
from typing import Any, Literal, TypeAlias

from pydantic import Field

from evaluation.items.sampling import check_count, draw_items
from evaluation.items.sources import UnknownSplit, open_probe
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.registry import choose_learner
from evaluation.models.checkpoint import NO_MODEL
from evaluation.options import TRAINING
from evaluation.results.types import Estimate, Model
from evaluation.results.words import difference, last_name, name_or_count, percent, points
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import average_groups, group_by, train_overlap
from evaluation.studies.entries import (
    open_model,
    refuse_idle_options,
    with_options_of,
    zero_shot_scorer,
)
from evaluation.studies.records import Record
from kbprobe import document as doc
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError
from kbprobe.options import Options


class TestedProbe(Record):
    """A probe whose rows are both trained on and evaluated."""

    __test__ = False  # Keeps pytest from collecting it because of its name.

    probe: str = Field(description="The probe's name.")
    source: str = Field(description="Folder, file or Hub id, as it was given.")
    split: str = Field(description="The split evaluated.")
    rows: int = Field(description="Rows evaluated.")
    clusters: int = Field(description="Clusters that they belong to.")
    chance: float = Field(description="Mean of one over the number of choices.")
    train_rows: int = Field(description="Rows of its train split.")
    reference: Estimate | None = Field(
        description="Accuracy of the model before training; null if it cannot be evaluated."
    )


class Transferred(Model):
    """A model trained on one probe and evaluated on another, or on the same."""

    trained_on: str = Field(description="Name of the probe trained on.")
    tested_on: str = Field(description="Name of the probe evaluated.")
    own: bool = Field(description="Whether they are the same.")
    accuracy: Estimate = Field(
        description="Mean accuracy over the seeds; intervals resample clusters and seeds."
    )
    difference: Estimate = Field(
        description="Accuracy minus that of the model before training, or minus chance, in points."
    )
    train_overlap: int = Field(
        description="Rows evaluated whose cluster is in the train split of the probe trained on."
    )
    seen: float = Field(
        description="Share of the rows evaluated whose concept also occurs in a training row; mean "
        "over the seeds."
    )


class ModelTransfer(Model):
    """One model trained on each probe, and evaluated on all."""

    model: str = Field(description="The checkpoint, as it was given.")
    learner: str = Field(description="What was trained.")
    train: int = Field(description="Rows trained on.")
    seeds: int = Field(description="Draws of training rows.")
    less: Literal["untrained", "chance"] = Field(
        description="What differences are from: the model before training, or chance."
    )
    probes: list[TestedProbe] = Field(description="The probes, as they were given.")
    cells: list[Transferred] = Field(description="Each probe trained on, evaluated on each.")
    notes: list[str] = Field(description="Caveats for the reader.")

    def cell(self, trained_on: str, tested_on: str) -> Transferred:
        """Return the cell for a training probe and an evaluated probe."""
        return next(
            cell
            for cell in self.cells
            if (cell.trained_on, cell.tested_on) == (trained_on, tested_on)
        )


class TransferSummary(Model):
    """All of ``transfer.json``."""

    schema_version: str = "1.0"
    models: list[ModelTransfer] = Field(description="Each model.")


class TransferOptions(Options):
    """The number of repetitions of each training."""

    seeds: int = Field(3, ge=1, description="Draws of training rows for each probe trained on.")


@dataclass(frozen=True)
class Splits:
    """A probe's rows for training and evaluation, read before anything is trained."""

    source: str
    train: ProbeSplit
    tested: ProbeSplit

    @property
    def setups(self) -> frozenset[str]:
        """The setups of all rows."""
        return setups_of(self.train.items) | setups_of(self.tested.items)


Runs: TypeAlias = dict[tuple[str | None, str], list[Finished]]
"""Runs by training probe (None: without training) and evaluated probe, in the order of seeds."""


def _expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, grouped by model and by training."""
    if request.values.get("train") is None:
        raise UsageError(
            "transfer trains on rows of each probe: give their number with --train N, such as "
            "--train 500"
        )
    probes, train = _open_probes(request), request.defaults.run.train or 0
    for one in probes:
        check_count(one.train.items, train, source=one.source)
    specs: list[RunSpec] = []
    for model in request.models:
        specs += _of_model(request, model, probes)
    refuse_idle_options(request, specs)
    return specs


def _open_probes(request: StudyRequest) -> list[Splits]:
    """Read the splits of all probes."""
    sources = request.named_probes()
    if len(sources) < 2:
        raise UsageError(
            "transfer is from one probe to others: name two probes or more. For one: "
            f"evaluate-probe {sources[0]} --model MODEL --train N"
        )
    split, named = request.defaults.run.split, request.defaults.run.label_names
    if split == "train":
        raise UsageError("--split train is what transfer trains on: leave --split out")
    opened = []
    for source in sources:
        try:
            train, tested = (
                open_probe(source, split=name, label_names=named) for name in ("train", split)
            )
        except UnknownSplit as error:
            raise UsageError(
                f"transfer trains on the train split of each probe, and evaluates the {split} "
                f"split of all of them. {error}"
            ) from error
        opened.append(Splits(source, train, tested))
    names = [one.tested.name for one in opened]
    if again := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"several of the probes are called {again[0]} and cannot be told apart: leave out all "
            "but one"
        )
    return opened


def _of_model(request: StudyRequest, model: str, probes: Sequence[Splits]) -> list[RunSpec]:
    """Return a model's runs; refuse probes that its learner cannot handle."""
    checkpoint = open_model(request, model)
    learner = choose_learner(checkpoint, request.defaults.run.learner, None)
    for one in probes:
        if odd := sorted(setup for setup in one.setups if not learner.takes(setup)):
            raise UsageError(
                f"{one.source} has rows of the setup {odd[0]}, and {learner.name} takes "
                f"only {', '.join(learner.setups)}: leave the probe out, or name another --learner"
            )
    specs = []
    scorer, *others = {zero_shot_scorer(checkpoint.capabilities, one.setups) for one in probes}
    if scorer is not None and not others:
        plain = {name: v for name, v in request.values.items() if name not in TRAINING}
        asked = with_options_of(replace(request, values=plain), scorer)
        for one in probes:
            spec = asked.spec(one.source, model, facts=False)
            folder = "untrained", request.probe_folder(one.source)
            specs.append(request.within_model(spec, *folder))
    asked = with_options_of(request, learner, learner.scorer)
    sources = [one.source for one in probes]
    # All evaluations after one training are consecutive, so that it is done only once.
    for trained, seed, tested in product(sources, range(request.options.seeds), sources):
        changes: dict[str, Any] = {"learner": learner.name, "train_on": trained, "train_seed": seed}
        spec = asked.spec(tested, model, **changes, facts=False)
        own, other = (request.probe_folder(probe) for probe in (trained, tested))
        specs.append(request.within_model(spec, own, f"seed-{seed}", other))
    return specs


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> TransferSummary:
    probes = _open_probes(request)
    models = []
    for model in request.models:
        runs = group_by(
            (run for run in finished if run.asked.model == model),
            lambda run: (run.asked.run.train_on, str(run.asked.probe)),
        )
        models.append(_of_runs(request, model, probes, runs))
    return TransferSummary(models=models)


def _of_runs(
    request: StudyRequest, model: str, probes: Sequence[Splits], runs: Runs
) -> ModelTransfer:
    by_tested = [_cells(request, probes, one, runs) for one in probes]
    tested = []
    for one in probes:
        untrained = runs.get((None, one.source))
        tested.append(
            TestedProbe.of(
                runs[one.source, one.source][0],
                source=one.source,
                train_rows=len(one.train.items),
                reference=untrained[0].results.metrics.accuracy if untrained else None,
            )
        )
    less: Literal["untrained", "chance"] = "untrained" if tested[0].reference else "chance"
    return ModelTransfer(
        model=model,
        learner=str(runs[probes[0].source, probes[0].source][0].learnt["learner"]),
        train=request.defaults.run.train or 0,
        seeds=request.options.seeds,
        less=less,
        probes=tested,
        cells=[cell for trained in zip(*by_tested, strict=True) for cell in trained],
        notes=_notes([*chain.from_iterable(by_tested)], less, request),
    )


def _cells(
    request: StudyRequest, probes: Sequence[Splits], tested: Splits, runs: Runs
) -> list[Transferred]:
    """Return the cells of one evaluated probe, one for each training probe."""
    trained_on = [None, *(one.source for one in probes)]
    groups = {one: held for one in trained_on if (held := runs.get((one, tested.source)))}
    averages = average_groups(groups, request.defaults.run.seed)
    found = []
    for one in probes:
        average, own = averages[one.source], groups[one.source]
        before = averages.get(None, own[0].results.metrics.chance)
        found.append(
            Transferred(
                trained_on=one.tested.name,
                tested_on=tested.tested.name,
                own=one is tested,
                accuracy=average.estimate(),
                difference=average.less(before).estimate(100),
                train_overlap=train_overlap(own),
                seen=fmean(_share_seen(one.train, run) for run in own),
            )
        )
    return found


def _share_seen(train: ProbeSplit, run: Finished) -> float:
    """Return the share of rows whose concept also occurs in the training rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    own = run.asked.run
    rows = pa.array(draw_items(train.items, own.train or 0, own.train_seed or 0))
    learnt = single_chunk(train.about["concept"]).take(rows).drop_null()
    asked = single_chunk(run.predictions["concept"])
    seen = pc.is_in(asked, value_set=learnt.cast(asked.type))
    return float(pc.mean(pc.and_(seen, asked.is_valid())).as_py())


_NAMED = 4
"""Maximum number of pairs of probes named in a note."""


def _notes(cells: Sequence[Transferred], less: str, request: StudyRequest) -> list[str]:
    notes = []
    if less == "chance":
        notes.append(
            "The model cannot be evaluated before training: differences are from chance, "
            "which any training on rows of the same form may exceed."
        )
    if request.options.seeds == 1:
        notes.append(
            "Each training was done once: intervals do not account for the variation between "
            "draws of training rows."
        )
    seen = sorted(
        (cell for cell in cells if cell.seen and not cell.own), key=lambda cell: -cell.seen
    )
    if seen:
        pairs = _pairs(seen, lambda cell: percent(cell.seen))
        notes.append(
            f"Some rows evaluated share their concept with training rows: {pairs}. "
            "Gains there may come from knowledge of these concepts."
        )
    if known := [cell for cell in cells if cell.train_overlap and cell not in seen]:
        pairs = _pairs(known, lambda cell: f"{cell.train_overlap:,}")
        notes.append(
            "Some rows evaluated belong to clusters in the train split of the probe trained "
            f"on, although the training rows share no concept with them: {pairs}."
        )
    return notes


def _pairs(cells: Sequence[Transferred], spell: Callable[[Transferred], str]) -> str:
    """List the first pairs of probes, each with a number: ``X of EVALUATED (TRAINED ON)``."""
    named = [f"{spell(cell)} of {cell.tested_on} ({cell.trained_on})" for cell in cells[:_NAMED]]
    more = [f"and {len(cells) - _NAMED} more pairs"] if len(cells) > _NAMED else []
    return ", ".join([*named, *more])


def _document(summary: TransferSummary) -> doc.Document:
    names = [_name(one) for one in summary.models]
    probes = len(summary.models[0].probes)
    return doc.Document(
        "Transfer between probes",
        f"{name_or_count(names, 'models')} on {probes} probes",
        [_section(one) for one in summary.models],
    )


def _section(one: ModelTransfer) -> doc.Section:
    names = [tested.probe for tested in one.probes]
    seeds = f"{one.seeds} seed{'' if one.seeds == 1 else 's'}"
    return doc.Section(
        f"{_name(one)}: {one.train:,} rows, {seeds}",
        [
            doc.Findings([_sentence(one, name) for name in names]),
            doc.Caveats(one.notes),
            *_maps(one, names),
            doc.Table.of(
                one.probes,
                {
                    "probe": lambda tested: tested.probe,
                    "split": lambda tested: tested.split,
                    "questions": lambda tested: tested.rows,
                    "clusters": lambda tested: tested.clusters,
                    "chance": lambda tested: tested.chance,
                    "rows in train split": lambda tested: tested.train_rows,
                },
                "The probes",
                names=2,
            ),
        ],
        link=_name(one),
    )


def _maps(one: ModelTransfer, names: Sequence[str]) -> list[doc.HeatMap]:
    """Return the heat maps of accuracies, of differences, and of shared concepts if any."""
    found = {(cell.trained_on, cell.tested_on): cell for cell in one.cells}
    untrained = [
        tested.chance if tested.reference is None else tested.reference for tested in one.probes
    ]
    places = range(len(names))
    corner, own = "trained on / tested on", frozenset((at, at) for at in places)
    maps = [
        doc.HeatMap(
            "Accuracy: rows are the probe trained on, columns the probe evaluated. Outlined: "
            "trained and evaluated on the same probe.",
            corner,
            ["chance" if one.less == "chance" else "none", *names],
            names,
            [untrained, *([found[row, column].accuracy for column in names] for row in names)],
            marked=frozenset((at + 1, at) for at in places),
        ),
        doc.HeatMap.of_pairs(
            f"Difference from {_LESS[one.less]}, in percentage points",
            corner,
            names,
            {pair: cell.difference for pair, cell in found.items()},
            "points",
            own,
        ),
    ]
    if any(cell.seen for cell in one.cells):
        caption = "Share of the questions evaluated whose concept a row trained on is about"
        seen = {pair: cell.seen for pair, cell in found.items()}
        maps.append(doc.HeatMap.of_pairs(caption, corner, names, seen, marked=own))
    return maps


_LESS = {"untrained": "without training", "chance": "chance"}
"""Descriptions of what differences are relative to."""


def _name(one: ModelTransfer) -> str:
    """Return the name of a model, with what was trained."""
    return one.learner if one.model == NO_MODEL else f"{last_name(one.model)}, {one.learner}"


def _sentence(one: ModelTransfer, trained_on: str) -> str:
    """Describe where accuracy rises, where it falls, and where neither is shown."""
    own = one.cell(trained_on, trained_on)
    others = [cell for cell in one.cells if cell.trained_on == trained_on and not cell.own]
    up = [cell for cell in others if cell.difference.low > 0]
    down = [cell for cell in others if cell.difference.high < 0]
    same = [cell for cell in others if cell not in up and cell not in down]
    parts = [
        f"above {_LESS[one.less]} on {_listed(up)}" if up else "",
        f"below it on {_listed(down)}" if down and up else "",
        f"below {_LESS[one.less]} on {_listed(down)}" if down and not up else "",
        f"no difference is shown on {_listed(same)}" if same else "",
    ]
    found = "; ".join(part for part in parts if part)
    return f"Trained on {trained_on}: {difference(own.difference)} on {trained_on} itself; {found}."


def _listed(cells: Sequence[Transferred]) -> str:
    return ", ".join(f"{cell.tested_on} ({points(cell.difference.value)})" for cell in cells)


TRANSFER = Study(
    name="transfer",
    help="Transfer: train a model on each of several probes, and evaluate it on all of them.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
    options=TransferOptions,
    fixed=TRAINING - {"train", "learner", "mix_in", "mix_rows"}
    | {"config", "scorer", "facts", "next_size", "keep_checkpoint"},
)
"""The study."""
