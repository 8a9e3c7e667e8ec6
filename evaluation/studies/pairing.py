"""The rows that two runs share, and the answers of several runs to the same items, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evaluation.results.breakdown import bools, cluster_codes
from evaluation.results.items import NOT_SCORED, ItemAnswers
from evaluation.studies.base import Finished
from evaluation.studies.labels import are_of_one_probe
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import single_chunk, to_numpy
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


class PairedRows(NamedTuple):
    """The rows that both runs scored, side by side, and how many were left out.

    Attributes:
        first, second: the predictions of the two runs, with the same item in each row.
        set_aside: items that both runs were asked and at least one did not score.
        only_first, only_second: items that only one run was asked.
        translated: whether the rows are the same in two languages or wordings, with choices in one
            order.
    """

    first: pa.Table
    second: pa.Table
    set_aside: int
    only_first: int
    only_second: int
    translated: bool = False

    @property
    def right(self) -> tuple[Bools, Bools]:
        """Whether each run gets each row right."""
        return bools(self.first["correct"]), bools(self.second["correct"])

    @property
    def same(self) -> Bools:
        """Whether both runs give the same answer to each row."""
        import pyarrow.compute as pc

        if self.translated or self.first["choices"].equals(self.second["choices"]):
            same: Bools = to_numpy(self.first["prediction"]) == to_numpy(self.second["prediction"])
            return same
        # Another config of the probe may have the choices in a different order.
        return bools(pc.equal(_chosen(self.first), _chosen(self.second)))

    @property
    def choices(self) -> Ints:
        """The number of choices of each row."""
        import pyarrow.compute as pc

        return to_numpy(pc.list_value_length(self.first["choices"])).astype(np.int64)

    @property
    def clusters(self) -> Ints:
        """The number of each row's cluster."""
        return cluster_codes(self.first)


def pair_rows(one: Finished, two: Finished, *, partial: bool = False) -> PairedRows:
    """Pair the rows of two runs on one probe, by position or by id.

    If the runs are not on the same rows, ``partial`` pairs the rows that they share. Configs of one
    build, such as a probe and its control, are paired by the ids that they share, and so are the
    probes in several languages made by ``build-probe NAME --language en,it --parallel``, and those
    in several wordings made by ``build-probe NAME --wording ID``.

    Raises:
        UsageError: the runs are on different rows with ``partial`` off; or they share no scored
            item, or have different golds for the same ids.
    """
    probe, other = one.results.probe, two.results.probe
    names = f"{one.folder} and {two.folder}"
    if probe.fingerprint == other.fingerprint:
        return _scored(one, two, one.predictions, two.predictions, names)
    configs = are_configs(one, two)
    renderings = are_languages(one, two) or are_wordings(one, two)
    first, second, shared = _shared(one, two, names)
    whole = first.num_rows == one.predictions.num_rows
    whole &= second.num_rows == two.predictions.num_rows
    if not partial and not ((configs or renderings) and whole):
        raise UsageError(
            f"{names} are not on the same rows of {probe.name}: {shared}. Evaluate both on the "
            "same rows, or compare those they share with --partial"
        )
    if not configs and not first["answer"].equals(second["answer"]):
        raise UsageError(
            f"{names} have the same ids with other golds: they are of two builds of {probe.name}. "
            "Evaluate both on one"
        )
    return _scored(one, two, first, second, names)._replace(translated=renderings)


def are_configs(one: Finished, two: Finished) -> bool:
    """Return whether two runs are on two configs of one build, such as a probe and its control."""
    if one.spec is not None and two.spec is not None:
        return one.spec.run.config != two.spec.run.config and one.asks(two.spec.probe)
    first, second = (run.results.probe for run in (one, two))
    if first.request is None or second.request is None:
        # Only the default config's results hold the request.
        built = first.source == second.source
    else:
        built = first.request == second.request
    return built and first.name != second.name and first.split == second.split


def are_renderings(one: Finished, two: Finished) -> bool:
    """Return whether two runs are on one probe, or on two configs or languages of it."""
    return are_of_one_probe(one, two) or are_configs(one, two) or are_languages(one, two)


def are_wordings(one: Finished, two: Finished) -> bool:
    """Return whether two runs are on the same questions in two wordings, from two builds."""
    (first, shown), (second, also_shown) = (_without_wording(run) for run in (one, two))
    return first is not None and first == second and shown != also_shown


def _without_wording(run: Finished) -> tuple[dict[str, Any] | None, str]:
    """Return a run's build request without its wording, and that wording."""
    request = run.results.probe.request
    if request is None:
        return None, ""
    options = dict(request.get("options", {}))
    wording = str(options.pop("wording", ""))
    return {**request, "options": options, "template_digest": ""}, wording


def are_languages(one: Finished, two: Finished) -> bool:
    """Return whether two runs are on the same questions in two languages, from a parallel build."""
    (first, shown), (second, also_shown) = (_without_language(run) for run in (one, two))
    return first is not None and first == second and shown != also_shown


def _without_language(run: Finished) -> tuple[dict[str, Any] | None, str]:
    """Return a run's build request without what depends on its language, and that language."""
    request = run.results.probe.request
    options = dict(request.get("options", {})) if request else {}
    if request is None or not options.get("parallel"):
        return None, ""
    languages = str(options.pop("language")).split(",")
    apart = {"options": options, "languages": sorted(languages), "template_digest": ""}
    return {**request, **apart}, languages[0]


def _chosen(predictions: pa.Table) -> pa.Array:
    """Return the text of each row's predicted choice."""
    choices, chosen = single_chunk(predictions["choices"]), to_numpy(predictions["prediction"])
    return choices.values.take(to_numpy(choices.offsets)[:-1] + chosen)


def _scored(
    one: Finished, two: Finished, first: pa.Table, second: pa.Table, names: str
) -> PairedRows:
    """Keep the rows that both runs scored; ``first`` and ``second`` hold the rows they share."""
    import pyarrow.compute as pc

    shared = first.num_rows
    scored = pc.and_(first["prediction"].is_valid(), second["prediction"].is_valid())
    if not pc.all(scored).as_py():
        first, second = first.filter(scored), second.filter(scored)
    if first.num_rows == 0:
        raise UsageError(
            f"{names}: no item was scored by both ({shared} were asked of both), so there is "
            "nothing to compare"
        )
    alone = (run.predictions.num_rows - shared for run in (one, two))
    return PairedRows(first, second, shared - first.num_rows, *alone)


def _shared(one: Finished, two: Finished, names: str) -> tuple[pa.Table, pa.Table, str]:
    """Return the rows with ids in both runs, in the order of the first, and counts in words."""
    import pyarrow.compute as pc

    tables = [run.predictions for run in (one, two)]
    ids, other_ids = (single_chunk(table["id"]) for table in tables)
    for run in (one, two):
        _require_distinct_ids(run)
    places = pc.index_in(ids, value_set=other_ids)
    shared = len(places) - places.null_count
    counted = f"of {len(ids)} and {len(other_ids)} items they share {shared}"
    if not shared:
        raise UsageError(f"{names} have no rows in common: {counted}. Is it another split?")
    return tables[0].filter(places.is_valid()), tables[1].take(places.drop_null()), counted


def _require_distinct_ids(run: Finished) -> None:
    if len(single_chunk(run.predictions["id"]).unique()) < run.predictions.num_rows:
        raise UsageError(
            f"{run.folder} has items with the same id: they pair only with a run on exactly the "
            "same rows. Evaluate again on the same rows"
        )


_SHOWN = ("id", "cluster", "question", "choices", "answer", "template")


class Gathered(NamedTuple):
    """Items that at least one run scored, and all runs' answers to them.

    Attributes:
        items: id, cluster, question, choices, answer and template of each item.
        answers: what each run answered; items in the order of ``items``, runs as they were given.
    """

    items: pa.Table
    answers: ItemAnswers


def gather(finished: Sequence[Finished], *, partial: bool = False) -> Gathered:
    """Align the answers of several runs on one probe: by position on the same rows, or by id.

    Raises:
        UsageError: the runs are on different rows and ``partial`` is off; the same ids have
            different choices or golds; or no run scored any item.
    """
    import pyarrow.compute as pc

    tables = [run.predictions for run in finished]
    if len({run.results.probe.fingerprint for run in finished}) == 1:
        shown = _shown(tables[0])
        chosen = [_predictions(table) for table in tables]
    else:
        shown, chosen = _by_ids(finished, tables, partial)
    answers = ItemAnswers(
        to_numpy(shown["answer"]).astype(np.int64),
        to_numpy(pc.list_value_length(shown["choices"])).astype(np.int64),
        np.stack(chosen, axis=1),
    )
    kept = answers.scored.any(axis=1)
    if not kept.any():
        raise UsageError(
            f"no item of {finished[0].folder} and the other runs was scored: their reasons are in "
            "the column set_aside of predictions.parquet"
        )
    if kept.all():
        return Gathered(shown, answers)
    return Gathered(shown.filter(kept), ItemAnswers(*(part[kept] for part in answers)))


def _shown(table: pa.Table) -> pa.Table:
    """Keep the columns that are shown of an item, with the premise prepended to the question."""
    import pyarrow.compute as pc

    shown = table.select(_SHOWN)
    if "premise" not in table.column_names:
        return shown
    joined = pc.binary_join_element_wise(
        table["premise"], table["question"], " ", null_handling="skip"
    )
    return shown.set_column(_SHOWN.index("question"), "question", joined)


def _predictions(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return to_numpy(table["prediction"].fill_null(NOT_SCORED)).astype(np.int64)


def _by_ids(
    finished: Sequence[Finished], tables: Sequence[pa.Table], partial: bool
) -> tuple[pa.Table, list[np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    """Align runs by id: the rows of the first run, then those that later runs add."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = ", ".join(str(run.folder) for run in finished)
    for run in finished:
        _require_distinct_ids(run)
    union = pa.concat_tables([_shown(table) for table in tables])
    ids = single_chunk(union["id"])
    known = ids.unique()
    if not partial and any(table.num_rows < len(known) for table in tables):
        raise UsageError(
            f"{names} are not on the same rows of {finished[0].results.probe.name}. "
            "Evaluate all on the same rows, or take the items that each has with --partial"
        )
    first = single_chunk(pc.index_in(known, value_set=ids))
    whole = union.take(first)
    alike = whole.take(pc.index_in(ids, value_set=known))
    if not (union["answer"].equals(alike["answer"]) and union["choices"].equals(alike["choices"])):
        raise UsageError(
            f"{names} have the same ids with other choices or golds: they are of several builds. "
            "Evaluate all on one"
        )
    chosen = []
    for table in tables:
        own = np.full(len(known), NOT_SCORED, dtype=np.int64)
        own[to_numpy(pc.index_in(single_chunk(table["id"]), value_set=known))] = _predictions(table)
        chosen.append(own)
    return whole, chosen
