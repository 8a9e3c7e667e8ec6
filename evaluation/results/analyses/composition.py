"""How questions that rest on several facts do, beside the facts asked one by one.

A fact that is answered right may have been guessed, and so may the question. Corrected for this
are two shares, of facts known and of questions that fail although theirs are known, under the
model of formula scoring (Lord, 1975): what is known is answered right; anything else is guessed
evenly among the choices, each question on its own. An answer then counts ``1`` if right and
for ``-c / (1 - c)`` if wrong, ``c`` being one over the choices: a number whose expectation is 1
where the answer is known and 0 where it is not. Products over a row's questions estimate that all
of them are known, without bias.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from evaluation.results import intervals
from evaluation.results.analyses.facts import COLUMNS, Composition, Facts, KnownPart
from evaluation.results.types import Estimate, Metrics
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import single_chunk, to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluation.items.types import Links

_Share = Callable[[Bools, Ints], Estimate]
"""How a share of rows is estimated: whether each row counts, and its cluster."""

NOT_NAMED = "names no facts"
NO_ROW = "a fact that no row asks for"
NOT_THERE = "a fact that the probe does not hold"
SET_ASIDE = "a fact was set aside"


@dataclass(frozen=True)
class _Rows:
    """Rows whose facts were all asked and scored: arrays [rows].

    Attributes:
        right: whether the row is answered right.
        cluster: the row's cluster.
        chance: one over its choices.
        facts: how many facts it rests on.
        facts_right: how many of them are right.
        facts_chance: that all of them are right, if guessed.
        facts_known: product over them of what each answer counts (see the module).
        place_right: whether the first, second, ... fact is right; True beyond the last. Shape
            [rows, places].
    """

    right: Bools
    cluster: Ints
    chance: Floats
    facts: Ints
    facts_right: Ints
    facts_chance: Floats
    facts_known: Floats
    place_right: Bools

    def take(self, rows: Ints) -> _Rows:
        return _Rows(*(getattr(self, field.name)[rows] for field in fields(self)))


def with_facts(predictions: pa.Table, links: Links, facts: pa.Table) -> pa.Table:
    """Add each row's facts, and how many of them are answered right.

    Args:
        predictions: of the rows that rest on facts.
        links: of these rows.
        facts: predictions of the facts.

    Returns:
        The predictions with the columns of :mod:`evaluation.results.analyses.facts`;
        ``facts_right`` is null where a fact was not asked or not scored, and where a row names
        none.
    """
    import pyarrow as pa

    outcome = _outcomes(facts)
    counts: list[int | None] = []
    for ids in links.fact_ids:
        found = [outcome.get(name) for name in dict.fromkeys(ids)]
        scored = [right for right in found if right is not None]
        counts.append(sum(scored) if ids and len(scored) == len(found) else None)
    predictions = predictions.select([n for n in predictions.column_names if n not in COLUMNS])
    for name, values in zip(COLUMNS, (links.fact_ids, counts), strict=True):
        kind = pa.list_(pa.string()) if name == "fact_ids" else pa.int32()
        predictions = predictions.append_column(name, pa.array(values, kind))
    return predictions


def relate(
    predictions: pa.Table,
    links: Links,
    facts: pa.Table,
    fact_metrics: Metrics,
    configs: Sequence[str],
    seed: int,
) -> Facts:
    """Relate the rows to the facts that they rest on.

    Args:
        predictions: of the rows.
        links: of these rows.
        facts: predictions of the facts.
        fact_metrics: their metrics.
        configs: the probe's configs that ask for facts.
        seed: of the bootstrap.
    """
    counted, left_out = _sorted_out(predictions, links, facts)
    rows = _rows(predictions.take(counted), links.take(counted.tolist()), facts)
    hops = predictions["hops"].take(counted).to_pylist()
    families = predictions["distractor_family"].take(counted).to_pylist()

    def resampled(right: Bools, cluster: Ints) -> Estimate:
        return intervals.accuracy(right, cluster, seed)

    return Facts(
        configs=list(configs),
        asked=fact_metrics.items,
        scored=fact_metrics.scored,
        accuracy=fact_metrics.accuracy,
        chance=fact_metrics.chance,
        left_out=left_out,
        rows=_composition("all rows", rows, resampled) if counted.size else None,
        by_hops=_split(rows, [None if k is None else f"{k} hop{'s' * (k != 1)}" for k in hops]),
        by_relation=_split(rows, [links.relations[row] for row in counted]),
        by_family=_split(rows, families),
    )


def _outcomes(facts: pa.Table) -> dict[str, bool | None]:
    """Whether each fact is right, by id; None: set aside."""
    return dict(zip(facts["id"].to_pylist(), facts["correct"].to_pylist(), strict=True))


def _sorted_out(
    predictions: pa.Table, links: Links, facts: pa.Table
) -> tuple[Ints, dict[str, int]]:
    """Return the scored rows whose facts were all scored, and count the other ones by reason."""
    outcome = _outcomes(facts)
    counted: list[int] = []
    reasons: Counter[str] = Counter()
    for row, (scored, ids) in enumerate(
        zip(predictions["correct"].is_valid().to_pylist(), links.fact_ids, strict=True)
    ):
        if not scored:
            continue
        if not ids:
            reasons[NOT_NAMED] += 1
        elif "" in ids:
            reasons[NO_ROW] += 1
        elif any(name not in outcome for name in ids):
            reasons[NOT_THERE] += 1
        elif any(outcome[name] is None for name in ids):
            reasons[SET_ASIDE] += 1
        else:
            counted.append(row)
    return np.array(counted, dtype=np.int64), dict(sorted(reasons.items()))


def _rows(predictions: pa.Table, links: Links, facts: pa.Table) -> _Rows:
    """Gather what is needed of rows that can be counted."""
    import pyarrow.compute as pc

    place = {name: at for at, name in enumerate(facts["id"].to_pylist())}
    right = to_numpy(facts["correct"].fill_null(False).cast("int8")).astype(np.bool_)
    chance = 1.0 / to_numpy(pc.list_value_length(facts["choices"]))
    named = [[place[name] for name in dict.fromkeys(ids)] for ids in links.fact_ids]
    counts = np.array([len(ids) for ids in named], dtype=np.int64)
    # One more fact, right and no guess, stands in the places that a row does not fill.
    at = np.full((counts.size, counts.max(initial=0)), right.size)
    for row, ids in enumerate(named):
        at[row, : len(ids)] = ids
    right, chance = np.append(right, True), np.append(chance, 1.0)
    filled = np.arange(at.shape[1]) < counts[:, None]
    return _Rows(
        right=to_numpy(predictions["correct"].cast("int8")).astype(np.bool_),
        cluster=to_numpy(single_chunk(predictions["cluster"]).dictionary_encode().indices),
        chance=1.0 / to_numpy(pc.list_value_length(predictions["choices"])),
        facts=counts,
        facts_right=(right[at] & filled).sum(axis=1),
        facts_chance=chance[at].prod(axis=1),
        facts_known=_known(right, chance)[at].prod(axis=1),
        place_right=right[at],
    )


def _known(right: Bools, chance: Floats) -> Floats:
    """What answers count: 1 if right, ``-c / (1 - c)`` if wrong."""
    odds = chance / np.where(right, 1.0, 1.0 - chance)
    return np.where(right, 1.0, -odds)


def _split(rows: _Rows, names: Sequence[str | None]) -> list[Composition]:
    """Split the rows by name, in order; those without one are in no part."""
    place: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        if name:
            place.setdefault(name, []).append(row)
    return [
        _composition(name, rows.take(np.array(place[name])), intervals.quick_accuracy)
        for name in sorted(place)
    ]


def _composition(name: str, rows: _Rows, share: _Share) -> Composition:
    right, cluster = rows.right, rows.cluster
    every, none = rows.facts_right == rows.facts, rows.facts_right == 0
    independent = fails_independent = 0.0
    for count in np.unique(rows.facts):
        same = rows.facts == count
        # In places beyond the last all are right: they leave the product as it is.
        product = float(rows.place_right[same].mean(axis=0).prod())
        independent += float(same.mean()) * product
        fails_independent += float(same.mean()) * product * (1.0 - float(right[same].mean()))

    def part(chosen: Bools) -> KnownPart:
        if not chosen.any():
            return KnownPart(rows=0, accuracy=None)
        return KnownPart(rows=int(chosen.sum()), accuracy=share(right[chosen], cluster[chosen]))

    return Composition(
        name=name,
        rows=right.size,
        accuracy=share(right, cluster),
        chance=float(rows.chance.mean()),
        all_facts=part(every),
        some_facts=part(~every & ~none),
        no_facts=part(none),
        all_facts_share=share(every, cluster),
        all_facts_independent=independent,
        all_facts_chance=float(rows.facts_chance.mean()),
        fails=share(every & ~right, cluster),
        fails_independent=fails_independent,
        fails_chance=float((rows.facts_chance * (1.0 - rows.chance)).mean()),
        right_without=share(~every & right, cluster),
        known=intervals.mean(rows.facts_known, cluster),
        known_fails=intervals.mean(rows.facts_known * (1.0 - _known(right, rows.chance)), cluster),
    )
