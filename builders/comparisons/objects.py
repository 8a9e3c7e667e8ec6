"""Things of typical sizes, weights and speeds, and which pairs of them are asked about."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.comparisons.numbers import divided
from builders.comparisons.options import Dimension, ObjectOptions
from builders.engine.draw.selection import select_equally
from builders.engine.plan import Facts, Nodes, Plan, Questions, text_keys
from builders.engine.rows import plan_rows
from builders.engine.strategies import BalancedWordings
from kbprobe.arrays import Floats, Ints, joined
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.items import Coded
from kbprobe.rng import RandomGenerator

FILE = "object_estimates.csv"

COLUMNS: dict[Dimension, str] = {
    "size": "metres",
    "weight": "kilograms",
    "speed": "metres_per_second",
}
"""Dimension -> the column that holds its estimates."""

UNITS: dict[Dimension, str] = {"size": "m", "weight": "kg", "speed": "m/s"}

ANSWERS: dict[Dimension, tuple[str, str]] = {
    "size": ("smaller", "larger"),
    "weight": ("lighter", "heavier"),
    "speed": ("slower", "faster"),
}
"""Dimension -> the answers: the first thing has the lower estimate, or the higher."""

FAMILIES = ("1 order of magnitude apart", "2 orders apart", "3 orders or more apart")


class Thing(NamedTuple):
    """A thing and our estimates of it; None where it has none, or none that is typical."""

    name: str
    article: str
    domain: str
    kind: str
    metres: float | None
    kilograms: float | None
    metres_per_second: float | None


@dataclass(frozen=True)
class Things:
    """The table of estimates as a knowledge base."""

    things: tuple[Thing, ...]
    digest: str
    name: str = "object-estimates"
    version: str = "1"
    licence: str = "CC0-1.0"


@cache
def load_things() -> Things:
    """Read the table of estimates that comes with kbprobe."""
    content = resources.files("builders.comparisons").joinpath("data", FILE).read_bytes()
    lines = csv.DictReader(io.StringIO(content.decode("utf-8")))
    things = tuple(
        Thing(
            line["name"],
            line["article"],
            line["domain"],
            line["kind"],
            *(float(line[column]) if line[column] else None for column in COLUMNS.values()),
        )
        for line in lines
    )
    return Things(things, hashlib.sha256(content).hexdigest())


def bucket(estimate: float) -> int:
    """Return the order of magnitude: the power of ten that is nearest on a logarithmic scale.

    >>> bucket(0.06), bucket(12), bucket(40)
    (-1, 1, 2)
    """
    return math.floor(math.log10(estimate) + 0.5)


class Chosen(NamedTuple):
    """Pairs to ask about, in one order: indices of things, and the split of each pair."""

    x: Ints
    y: Ints
    split: Ints


def object_plan(things: Things, options: ObjectOptions, rng: RandomGenerator) -> Plan:
    """Ask about pairs of things from different buckets, each pair in both orders."""
    column = COLUMNS[options.dimension]
    given = [getattr(thing, column) for thing in things.things]
    estimate = np.array([math.nan if value is None else value for value in given])
    split = _splits(things.things, estimate, options, rng.child("splits"))
    chosen = _pairs(things.things, estimate, split, options, rng.child("pairs"))
    if chosen.x.size == 0:
        raise UsageError(
            "object_comparison: under these options no two things differ in "
            f"{options.dimension} by a bucket and {options.min_ratio} times. Loosen one of them."
        )
    return _plan(things.things, estimate, chosen, options.dimension)


def _splits(
    things: Sequence[Thing], estimate: Floats, options: ObjectOptions, rng: RandomGenerator
) -> Ints:
    """Give each thing its split, -1 for none: no thing is in two.

    Raises:
        UsageError: a domain is unknown, or a thing would be in train and elsewhere.
    """
    known = sorted({name for thing in things for name in (thing.domain, thing.kind)})
    for name in (*options.train_domains, *options.evaluation_domains):
        if name not in known:
            raise UsageError(
                f"object_comparison: no things of domain {name!r}.{did_you_mean(name, known)} "
                f"There are: {', '.join(known)}."
            )
    train, evaluation = (
        np.array([not {thing.domain, thing.kind}.isdisjoint(names) for thing in things])
        for names in (options.train_domains, options.evaluation_domains)
    )
    if (train & evaluation).any():
        both = things[int(np.argmax(train & evaluation))].name
        raise UsageError(
            f"object_comparison: {both!r} is in --train-domains and in --evaluation-domains; "
            "choose domains that share nothing"
        )
    split = np.where(train, 0, -1)
    tested = np.flatnonzero(evaluation & ~np.isnan(estimate))
    split[tested] = divided(tested.size, options.split_shares, rng)
    return np.where(np.isnan(estimate), -1, split)


def _pairs(
    things: Sequence[Thing],
    estimate: Floats,
    split: Ints,
    options: ObjectOptions,
    rng: RandomGenerator,
) -> Chosen:
    """Choose pairs within each split: all, or, where these are too many, balanced ones."""
    _, validation, test = options.split_shares
    first = round(options.evaluation_rows * validation / (validation + test))
    limits = (options.train_rows, options.evaluation_rows, options.evaluation_rows)
    most = (options.train_rows, first, options.evaluation_rows - first)
    level = _buckets(estimate)
    parts = []
    for code in range(len(most)):
        here = np.flatnonzero(split == code)
        x, y = (here[index] for index in np.triu_indices(here.size, k=1))
        ratio = np.abs(np.log(estimate[x] / estimate[y]))
        apart = (level[x] != level[y]) & (ratio >= math.log(options.min_ratio))
        x, y = x[apart], y[apart]
        if limits[code] and x.size > most[code] // 2:
            greater = np.where(estimate[x] > estimate[y], x, y)
            less = x + y - greater
            family = _families(level[greater] - level[less])
            drawn = _balanced(things, greater, less, family, most[code] // 2, rng)
            x, y = x[drawn], y[drawn]
        parts.append(Chosen(x, y, np.full(x.size, code, dtype=np.int64)))
    return joined(parts)


def _balanced(
    things: Sequence[Thing],
    greater: Ints,
    less: Ints,
    family: Ints,
    most: int,
    rng: RandomGenerator,
) -> Ints:
    """Draw pairs such that the greater thing's name is the longer one in half of them.

    And the more frequent one in half of these and of the rest, in every family. Else large things
    would be told by their names, short and frequent words (sea, moon), and small ones by theirs
    (grain of salt).

    Returns:
        The pairs drawn, at most ``most``: as many of each of the four kinds of a family, and of
        families as many as there are among all pairs, where enough can be balanced.
    """
    from kb_cache.frequency import zipf_frequencies

    names = [thing.name for thing in things]
    kind = np.zeros_like(greater)
    for at, values in enumerate((np.array([len(name) for name in names]), zipf_frequencies(names))):
        more = values[greater] - values[less]
        # Equals count as either, by lot.
        up = np.where(more == 0, rng.child("equal", at).uniform(greater, less) < 0.5, more > 0)
        kind = 2 * kind + up
    share = min(most / greater.size, 1)
    return np.flatnonzero(select_equally(family, kind, 4, share, rng.uniform(greater, less)))


def _families(orders: Ints) -> Ints:
    """Return the family of pairs that are so many buckets apart, an index into a plan's names."""
    return np.minimum(np.abs(orders), len(FAMILIES))


def _buckets(estimate: Floats) -> Ints:
    return np.array([0 if math.isnan(value) else bucket(value) for value in estimate.tolist()])


def _plan(things: Sequence[Thing], estimate: Floats, chosen: Chosen, dimension: Dimension) -> Plan:
    """Lay the pairs out in both orders."""
    x, y = np.concatenate([chosen.x, chosen.y]), np.concatenate([chosen.y, chosen.x])
    split = np.tile(chosen.split, 2)
    gold = (estimate[x] > estimate[y]).astype(np.int64)
    level = _buckets(estimate)
    names = pa.array([thing.name for thing in things])
    articles = pa.array([thing.article for thing in things])
    fields = {
        "x": names.take(pa.array(x)),
        "y": names.take(pa.array(y)),
        "article_1": articles.take(pa.array(x)),
        "article_2": articles.take(pa.array(y)),
        "dimension": dimension,
    }
    key = text_keys([dimension] * x.size, fields["x"].to_pylist(), fields["y"].to_pylist())
    pairs = zip(chosen.x.tolist(), chosen.y.tolist(), strict=True)
    clusters = [f"{things[one].name} and {things[other].name}" for one, other in pairs]
    return plan_rows(
        questions=Questions.from_columns(key, fields, BalancedWordings(split)),
        choices=Nodes.from_columns(ANSWERS[dimension], field="answer"),
        nodes=np.stack([gold, 1 - gold], axis=1),
        split=split,
        families=FAMILIES,
        family=_families(level[x] - level[y]),
        relation=dimension,
        concept=x,
        concepts=names,
        facts=_facts(names, estimate, x, y, dimension),
        choice_hops=1,
        cluster=Coded(pa.array(clusters), np.tile(np.arange(chosen.x.size, dtype=np.int64), 2)),
    )


def _facts(names: pa.Array, estimate: Floats, x: Ints, y: Ints, dimension: Dimension) -> Facts:
    """The estimates of both things."""
    things = np.stack([x, y], axis=1).ravel()
    shown, code = np.unique(estimate[things], return_inverse=True)
    values = pa.array([f"{value:g} {UNITS[dimension]}" for value in shown.tolist()])
    terms = pa.concat_arrays([names, values])
    return Facts.from_codes(things, 0, code + len(names), terms, (f"{dimension} (estimate)",), 2)
