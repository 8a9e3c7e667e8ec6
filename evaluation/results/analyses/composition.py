"""Accuracy on questions that rest on several facts, compared with the single facts.

A right answer to a fact may be a guess, and so may the answer to the question. Two shares are
corrected for guessing: that of known facts, and that of questions that fail although their facts
are known. The model is that of formula scoring (Lord, 1975): known questions are answered right,
all others by guessing uniformly and independently among the choices. An answer then counts ``1``
if right and ``-c / (1 - c)`` if wrong, where ``c`` is one over the number of choices: its expected
value is 1 if the answer is known and 0 if not. The product over a row's questions is an unbiased
estimate of whether all of them are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evaluation.results import intervals
from evaluation.results.analyses.facts import COLUMNS, Composition, Facts, KnownPart
from evaluation.results.breakdown import bools, cluster_codes, named_rows
from evaluation.results.types import Estimate, Metrics
from kbprobe.arrays import Bools, Floats, Ints
from kbprobe.columns import to_numpy

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluation.items.types import Links

NOT_NAMED = "names no facts"
NO_ROW = "a fact that no row asks for"
NOT_THERE = "a fact that the probe does not hold"
SET_ASIDE = "a fact was set aside"


class _ComposedRows(NamedTuple):
    """Rows whose facts were all asked and scored: arrays [rows].

    Attributes:
        right: whether the row is answered right.
        cluster: the row's cluster.
        chance: one over the number of choices.
        facts: the number of facts that it rests on.
        facts_right: how many of these are answered right.
        facts_chance: the probability that guessing gets all of them right.
        facts_known: the product of what their answers count (see the module).
        place_right: whether the first, second, ... fact is answered right; True beyond the last.
            Shape [rows, places].
    """

    right: Bools
    cluster: Ints
    chance: Floats
    facts: Ints
    facts_right: Ints
    facts_chance: Floats
    facts_known: Floats
    place_right: Bools

    def take(self, rows: Ints) -> _ComposedRows:
        return _ComposedRows._make(values[rows] for values in self)


def with_facts(predictions: pa.Table, links: Links, facts: pa.Table) -> pa.Table:
    """Add columns to the predictions: each row's facts, and how many are answered right.

    ``facts_right`` is null if a fact was not asked or not scored, and if a row names no facts.
    """
    import pyarrow as pa

    outcome = _outcomes(facts)
    counts = [
        None if _reason(ids, outcome) else sum(bool(outcome[name]) for name in set(ids))
        for ids in links.fact_ids
    ]
    held = predictions.select([n for n in predictions.column_names if n not in COLUMNS])
    with_ids = held.append_column("fact_ids", pa.array(links.fact_ids, pa.list_(pa.string())))
    return with_ids.append_column("facts_right", pa.array(counts, pa.int32()))


def relate(
    predictions: pa.Table,
    links: Links,
    facts: pa.Table,
    fact_metrics: Metrics,
    configs: Sequence[str],
    seed: int,
) -> Facts:
    """Relate rows to the facts that they rest on, asked in ``configs``.

    ``seed`` is that of the bootstrap.
    """
    import pyarrow as pa

    outcome = _outcomes(facts)
    scored = np.flatnonzero(bools(predictions["correct"].is_valid())).tolist()
    reasons = {row: _reason(links.fact_ids[row], outcome) for row in scored}
    counted = np.array([row for row, reason in reasons.items() if not reason], dtype=np.int64)
    links, predictions = links.take(counted.tolist()), predictions.take(counted)
    rows = _rows(predictions, links, facts)
    hops = predictions["hops"].to_pylist()

    def split(names: Sequence[str | None]) -> list[Composition]:
        return [
            _composition(name, rows.take(part), intervals.quick_accuracy)
            for name, part in named_rows(pa.array(names, pa.string()))
        ]

    def resampled(right: Bools, cluster: Ints) -> Estimate:
        return intervals.accuracy(right, cluster, seed)

    return Facts(
        configs=list(configs),
        asked=fact_metrics.items,
        scored=fact_metrics.scored,
        accuracy=fact_metrics.accuracy,
        chance=fact_metrics.chance,
        left_out=dict(sorted(Counter(filter(None, reasons.values())).items())),
        rows=_composition("all rows", rows, resampled) if counted.size else None,
        by_hops=split([None if k is None else f"{k} hop{'s' * (k != 1)}" for k in hops]),
        by_relation=split(links.relations),
        by_family=split(predictions["distractor_family"].to_pylist()),
    )


def _outcomes(facts: pa.Table) -> dict[str, bool | None]:
    """Whether each fact is right, by id; None: set aside."""
    return dict(zip(facts["id"].to_pylist(), facts["correct"].to_pylist(), strict=True))


def _reason(ids: Sequence[str], outcome: Mapping[str, bool | None]) -> str:
    """Return why a row with these facts is not counted; "" if it is."""
    if not ids:
        return NOT_NAMED
    if "" in ids:
        return NO_ROW
    if any(name not in outcome for name in ids):
        return NOT_THERE
    return SET_ASIDE if any(outcome[name] is None for name in ids) else ""


def _rows(predictions: pa.Table, links: Links, facts: pa.Table) -> _ComposedRows:
    """Return the rows that can be counted."""
    import pyarrow.compute as pc

    place = {name: at for at, name in enumerate(facts["id"].to_pylist())}
    right = bools(facts["correct"])
    chance = 1.0 / to_numpy(pc.list_value_length(facts["choices"]))
    named = [[place[name] for name in dict.fromkeys(ids)] for ids in links.fact_ids]
    counts = np.array([len(ids) for ids in named], dtype=np.int64)
    # Places that a row does not fill refer to an extra fact, which is right and not a guess.
    at = np.full((counts.size, counts.max(initial=0)), right.size)
    for row, ids in enumerate(named):
        at[row, : len(ids)] = ids
    right, chance = np.append(right, True), np.append(chance, 1.0)
    filled = np.arange(at.shape[1]) < counts[:, None]
    return _ComposedRows(
        right=bools(predictions["correct"]),
        cluster=cluster_codes(predictions),
        chance=1.0 / to_numpy(pc.list_value_length(predictions["choices"])),
        facts=counts,
        facts_right=(right[at] & filled).sum(axis=1),
        facts_chance=chance[at].prod(axis=1),
        facts_known=_known(right, chance)[at].prod(axis=1),
        place_right=right[at],
    )


def _known(right: Bools, chance: Floats) -> Floats:
    """Return what answers count: 1 if right, ``-c / (1 - c)`` if wrong."""
    odds = chance / np.where(right, 1.0, 1.0 - chance)
    return np.where(right, 1.0, -odds)


def _composition(
    name: str, rows: _ComposedRows, share: Callable[[Bools, Ints], Estimate]
) -> Composition:
    """Summarise rows; ``share`` estimates a share from whether each row counts and its cluster."""
    right, cluster = rows.right, rows.cluster
    every, none = rows.facts_right == rows.facts, rows.facts_right == 0
    independent = fails_independent = 0.0
    for count in np.unique(rows.facts):
        same = rows.facts == count
        # Places beyond a row's last fact are all right, which leaves the product unchanged.
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
