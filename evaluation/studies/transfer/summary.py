"""The summary of the study: accuracies and differences, probe trained on by probe tested on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from statistics import fmean

from evaluation.items.types import ProbeSplit
from evaluation.learners.base import draw_rows
from evaluation.results.intervals import Resampled
from evaluation.results.types import Estimate
from evaluation.results.words import percent
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import bootstrap_runs
from evaluation.studies.transfer.runs import Splits, TransferOptions, open_probes
from evaluation.studies.transfer.types import (
    ModelTransfer,
    TestedProbe,
    Transferred,
    TransferSummary,
)
from kbprobe.columns import single_chunk

_NAMED = 4
"""Pairs of probes that a note names."""


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> TransferSummary:
    """Summarise the runs of all models."""
    probes = open_probes(request)
    return TransferSummary(
        models=[_Numbers(request, probes, finished, model).summary() for model in request.models]
    )


class _Numbers:
    """The numbers of one model."""

    def __init__(
        self,
        request: StudyRequest,
        probes: Sequence[Splits],
        finished: Sequence[Finished],
        model: str,
    ) -> None:
        options: TransferOptions = request.options
        self._model, self._probes = model, probes
        self._seeds = range(options.seeds)
        self._seed = request.defaults.run.seed
        self._runs: dict[tuple[str | None, int, str], Finished] = {}
        for run in finished:
            if run.spec is not None and run.spec.model == model:
                own = run.spec.run
                self._runs[own.train_on, own.train_seed or 0, str(run.spec.probe)] = run
        self._size = request.defaults.run.train or 0
        self._cells = {one.source: self._of_tested(one) for one in probes}

    def summary(self) -> ModelTransfer:
        """Return all numbers."""
        trained = self._runs[self._probes[0].source, 0, self._probes[0].source]
        learnt = trained.evaluation.results.model.finetuning or {}
        tested = [self._tested(one) for one in self._probes]
        cells = [
            self._cells[other.source][number]
            for number, _ in enumerate(self._probes)
            for other in self._probes
        ]
        return ModelTransfer(
            model=self._model,
            learner=str(learnt["learner"]),
            train=self._size,
            seeds=len(self._seeds),
            less="chance" if tested[0].reference is None else "untrained",
            probes=tested,
            cells=cells,
            notes=self._notes(),
        )

    def _tested(self, one: Splits) -> TestedProbe:
        untrained = self._untrained(one)
        results = self._runs[one.source, 0, one.source].evaluation.results
        return TestedProbe(
            probe=results.probe.name,
            source=one.source,
            split=results.probe.split,
            rows=results.metrics.items,
            clusters=results.metrics.clusters,
            chance=results.metrics.chance,
            train_rows=len(one.train.items),
            reference=None if untrained is None else untrained.evaluation.results.metrics.accuracy,
        )

    def _untrained(self, tested: Splits) -> Finished | None:
        return self._runs.get((None, 0, tested.source))

    def _of_tested(self, tested: Splits) -> list[Transferred]:
        """Return the cells of a probe evaluated, by the probe trained on."""
        untrained = self._untrained(tested)
        trained = [
            [self._runs[one.source, seed, tested.source] for seed in self._seeds]
            for one in self._probes
        ]
        groups = [*([] if untrained is None else [[untrained]]), *trained]
        bootstrap = bootstrap_runs([run for held in groups for run in held], self._seed)
        numbers = count()
        averages = [
            bootstrap.average({seed: next(numbers) for seed in range(len(held))}) for held in groups
        ]
        reference = None if untrained is None else averages.pop(0)
        return [
            self._cell(one, tested, runs, average, reference)
            for one, runs, average in zip(self._probes, trained, averages, strict=True)
        ]

    def _cell(
        self,
        trained: Splits,
        tested: Splits,
        runs: Sequence[Finished],
        average: Resampled,
        reference: Resampled | None,
    ) -> Transferred:
        results = [run.evaluation.results for run in runs]
        accuracy = average.estimate()
        return Transferred(
            trained_on=trained.tested.name,
            tested_on=tested.tested.name,
            own=trained is tested,
            accuracy=accuracy,
            difference=_over_chance(accuracy, results[0].metrics.chance)
            if reference is None
            else average.less(reference).estimate(100),
            train_overlap=max(one.scoring.notes.get("train_overlap", 0) for one in results),
            seen=fmean(
                self._share_seen(trained.train, run, seed)
                for seed, run in zip(self._seeds, runs, strict=True)
            ),
        )

    def _share_seen(self, train: ProbeSplit, run: Finished, seed: int) -> float:
        """Return the share of rows whose concept is that of a row trained on."""
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = pa.array(draw_rows(train.items, self._size, seed))
        learnt = single_chunk(train.about["concept"]).take(rows).drop_null()
        asked = single_chunk(run.evaluation.predictions["concept"])
        seen = pc.is_in(asked, value_set=learnt.cast(asked.type))
        return float(pc.mean(pc.and_(seen, asked.is_valid())).as_py())

    def _notes(self) -> list[str]:
        notes = []
        if self._untrained(self._probes[0]) is None:
            notes.append(
                "The model cannot be evaluated before training: differences are from chance, "
                "which any training on rows of the same form may exceed."
            )
        if len(self._seeds) == 1:
            notes.append(
                "Each training was done once: intervals do not account for the variation between "
                "draws of training rows."
            )
        cells = [cell for held in self._cells.values() for cell in held]
        seen = sorted(
            (cell for cell in cells if cell.seen and not cell.own), key=lambda cell: -cell.seen
        )
        if seen:
            notes.append(
                f"Some rows evaluated share their concept with training rows: {_most(seen)}. "
                "Gains there may come from knowledge of these concepts."
            )
        if known := [cell for cell in cells if cell.train_overlap and cell not in seen]:
            pairs = ", ".join(
                f"{cell.train_overlap:,} of {cell.tested_on} ({cell.trained_on})"
                for cell in known[:_NAMED]
            )
            more = f", and {len(known) - _NAMED} more pairs" if len(known) > _NAMED else ""
            notes.append(
                "Some rows evaluated belong to clusters in the train split of the probe trained "
                f"on, although the training rows share no concept with them: {pairs}{more}."
            )
        return notes


def _most(cells: Sequence[Transferred]) -> str:
    """Name the pairs of probes that share the most, as trained on and evaluated."""
    named = ", ".join(
        f"{percent(cell.seen)} of {cell.tested_on} ({cell.trained_on})" for cell in cells[:_NAMED]
    )
    return named + (f", and {len(cells) - _NAMED} more pairs" if len(cells) > _NAMED else "")


def _over_chance(accuracy: Estimate, chance: float) -> Estimate:
    """Return an accuracy less chance, in points."""
    ends = {name: 100 * (getattr(accuracy, name) - chance) for name in ("value", "low", "high")}
    return accuracy.model_copy(update=ends)
