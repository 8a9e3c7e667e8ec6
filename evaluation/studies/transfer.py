"""Train on each of several probes, and evaluate on all of them.

Listed under: Commands to train models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter, itemgetter
from statistics import fmean
from typing import Any

from pydantic import Field

from evaluation.items.sampling import check_count, draw_items
from evaluation.items.sources import UnknownSplit, open_probe
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.registry import choose_learner
from evaluation.options import TRAINING
from evaluation.report import cells
from evaluation.results.words import difference, percent, points
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import group_by, train_overlap
from evaluation.studies.entries import (
    open_model,
    refuse_idle_options,
    with_options_of,
    zero_shot_scorer,
)
from evaluation.studies.table import (
    PROBE,
    Column,
    DataTable,
    RunRow,
    Section,
    StudyTables,
    run_rows,
    runs_table,
    summary_of,
)
from kbprobe import document as doc
from kbprobe.columns import single_chunk
from kbprobe.errors import UsageError
from kbprobe.options import Options


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


def _expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, grouped by model and by training."""
    if request.values.get("train") is None:
        raise UsageError(
            "transfer trains on rows of each probe: give their number with --train N, such as "
            "--train 500"
        )
    probes, train = _open_probes(request), request.defaults.run.train or 0
    for splits in probes:
        check_count(splits.train.items, train, source=splits.source)
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
    names = [splits.tested.name for splits in opened]
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
    for splits in probes:
        if odd := sorted(setup for setup in splits.setups if not learner.takes(setup)):
            raise UsageError(
                f"{splits.source} has rows of the setup {odd[0]}, and {learner.name} takes "
                f"only {', '.join(learner.setups)}: leave the probe out, or name another --learner"
            )
    specs = []
    scorer, *others = {
        zero_shot_scorer(checkpoint.capabilities, splits.setups) for splits in probes
    }
    if scorer is not None and not others:
        plain = {name: v for name, v in request.values.items() if name not in TRAINING}
        asked = with_options_of(replace(request, values=plain), scorer)
        for splits in probes:
            spec = asked.spec(splits.source, model, facts=False)
            folder = "untrained", request.probe_folder(splits.source)
            specs.append(request.within_model(spec, *folder))
    asked = with_options_of(request, learner, learner.scorer)
    sources = [splits.source for splits in probes]
    # All evaluations after one training are consecutive, so that it is done only once.
    for trained, seed, tested in product(sources, range(request.options.seeds), sources):
        changes: dict[str, Any] = {"learner": learner.name, "train_on": trained, "train_seed": seed}
        spec = asked.spec(tested, model, **changes, facts=False)
        own, other = (request.probe_folder(probe) for probe in (trained, tested))
        specs.append(request.within_model(spec, own, f"seed-{seed}", other))
    return specs


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    probes = {splits.source: splits for splits in _open_probes(request)}
    by_model = group_by(finished, lambda run: run.asked.model)
    sections = [_section(request, probes, runs) for runs in by_model.values()]
    return summary_of("transfer", "Transfer between probes", sections, "models")


def _section(
    request: StudyRequest, probes: Mapping[str, Splits], runs: Sequence[Finished]
) -> Section:
    """Report one model, trained on each probe and evaluated on all."""

    def training(run: Finished) -> Splits | None:
        source = run.asked.run.train_on
        return None if source is None else probes[source]

    def tested(run: Finished) -> Splits:
        return probes[str(run.asked.probe)]

    axes: dict[str, Column[Finished]] = {
        "trained_on": Column(
            "Name of the probe trained on.",
            lambda run: None if (own := training(run)) is None else own.tested.name,
        ),
        "tested_on": Column("Name of the probe evaluated.", lambda run: tested(run).tested.name),
    }
    rows: list[RunRow] = []
    for own in group_by(runs, lambda run: run.asked.probe).values():
        # What is evaluated on the same rows is resampled together.
        rows += run_rows(own, axes, request.defaults.run.seed)
    before = {row.axes["tested_on"]: row for row in rows if row.axes["trained_on"] is None}
    names = {splits.tested.name: place for place, splits in enumerate(probes.values())}
    trained = sorted(
        (row for row in rows if row.axes["trained_on"] is not None),
        key=lambda row: names[row.axes["trained_on"]],
    )

    def seen(row: RunRow) -> float:
        splits = [(training(run), run) for run in row.runs]
        return fmean(_share_seen(own.train, run) for own, run in splits if own is not None)

    further: dict[str, Column[RunRow]] = {
        "difference": Column(
            "Accuracy minus that of the model before training or, if it cannot be evaluated then, "
            "minus chance, in percentage points.",
            lambda row: row.less(before.get(row.axes["tested_on"], row.chance)),
            cells.points,
        ),
        "train_overlap": Column(
            "Rows evaluated whose cluster is in the train split of the probe trained on.",
            lambda row: train_overlap(row.runs),
            None,
        ),
        "seen": Column(
            "Share of the rows evaluated whose concept also occurs in a training row; mean over "
            "the seeds.",
            seen,
            None,
        ),
    }
    about: dict[str, Column[Finished]] = {
        "probe": Column("The probe's name.", lambda run: run.results.probe.name),
        "split": Column("The split evaluated.", lambda run: run.results.probe.split),
        **PROBE,
        "train_rows": Column(
            "Rows of its train split.",
            lambda run: len(tested(run).train.items),
            head="rows in train split",
        ),
        "reference": Column(
            "Accuracy of the model before training; null if it cannot be evaluated.",
            lambda run: (
                before[name].runs[0].results.metrics.accuracy
                if (name := tested(run).tested.name) in before
                else None
            ),
            head="before training",
        ),
    }
    table = runs_table(trained, axes, further)
    tested_probes = DataTable("probes", [row.runs[0] for row in trained if _own(row)], about)
    less = "without training" if before else "chance"
    captions = {
        "accuracy": "Accuracy: rows are the probe trained on, columns the probe evaluated. "
        "Outlined: trained and evaluated on the same probe.",
        "difference": f"Difference from {less}, in percentage points",
        "seen": "Share of the questions evaluated whose concept a row trained on is about",
    }
    if not any(values["seen"] for values in table.values):
        del captions["seen"]
    scales: dict[str, doc.Scale] = {"difference": "points"}
    count = f"{request.defaults.run.train:,} rows, {request.options.seeds} seeds"
    return Section(
        {
            "model": runs[0].asked.model,
            "learner": str(trained[0].runs[0].learnt["learner"]),
        },
        [table, tested_probes],
        [
            doc.Text(f"Trained on {count}."),
            *(
                table.heat_map(
                    caption,
                    *("trained_on", "tested_on", number),
                    scale=scales.get(number, "share"),
                    marked=_own,
                    chance=attrgetter("chance") if number == "accuracy" else None,
                )
                for number, caption in captions.items()
            ),
            tested_probes.shown("The probes"),
        ],
        [_sentence(own, less) for own in group_by(table.values, itemgetter("trained_on")).values()],
        _notes(table.values, bool(before), request),
    )


def _own(row: RunRow) -> bool:
    """Return whether a row is of the probe that was trained on."""
    return bool(row.axes["trained_on"] == row.axes["tested_on"])


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


def _notes(pairs: Sequence[Mapping[str, Any]], untrained: bool, request: StudyRequest) -> list[str]:
    notes = []
    if not untrained:
        notes.append(
            "The model cannot be evaluated before training: differences are from chance, "
            "which any training on rows of the same form may exceed."
        )
    if request.options.seeds == 1:
        notes.append(
            "Each training was done once: intervals do not account for the variation between "
            "draws of training rows."
        )
    others = [pair for pair in pairs if pair["trained_on"] != pair["tested_on"]]
    if seen := sorted((c for c in others if c["seen"]), key=lambda pair: -pair["seen"]):
        named = _list_pairs(seen, lambda pair: percent(pair["seen"]))
        notes.append(
            f"Some rows evaluated share their concept with training rows: {named}. "
            "Gains there may come from knowledge of these concepts."
        )
    if known := [pair for pair in pairs if pair["train_overlap"] and pair not in seen]:
        named = _list_pairs(known, lambda pair: f"{pair['train_overlap']:,}")
        notes.append(
            "Some rows evaluated belong to clusters in the train split of the probe trained "
            f"on, although the training rows share no concept with them: {named}."
        )
    return notes


def _list_pairs(
    pairs: Sequence[Mapping[str, Any]], spell: Callable[[Mapping[str, Any]], str]
) -> str:
    """List the first pairs of probes, each with a number: ``X of EVALUATED (TRAINED ON)``."""
    named = [f"{spell(c)} of {c['tested_on']} ({c['trained_on']})" for c in pairs[:_NAMED]]
    more = [f"and {len(pairs) - _NAMED} more pairs"] if len(pairs) > _NAMED else []
    return ", ".join([*named, *more])


def _sentence(pairs: Sequence[Mapping[str, Any]], less: str) -> str:
    """Describe where accuracy rises and falls after training on a probe."""
    (own,) = [pair for pair in pairs if pair["trained_on"] == pair["tested_on"]]
    others = [pair for pair in pairs if pair is not own]
    groups = {
        "above": [pair for pair in others if pair["difference"].low > 0],
        "below": [pair for pair in others if pair["difference"].high < 0],
    }
    shown = [pair for group in groups.values() for pair in group]
    groups["not shown to differ"] = [pair for pair in others if pair not in shown]
    parts = [
        f"{how} on {', '.join(_gain(pair) for pair in group)}"
        for how, group in groups.items()
        if group
    ]
    name, gain = own["trained_on"], difference(own["difference"])
    return f"Trained on {name}, compared with {less}: {gain} on it; {'; '.join(parts)}."


def _gain(pair: Mapping[str, Any]) -> str:
    return f"{pair['tested_on']} ({points(pair['difference'].value)})"


TRANSFER = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    options=TransferOptions,
    fixed=TRAINING - {"train", "learner", "mix_in", "mix_rows"}
    | {"config", "scorer", "facts", "next_size", "keep_checkpoint"},
)
"""The study."""
