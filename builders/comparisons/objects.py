"""Things of typical sizes, weights and speeds, the pairs asked about, and oracles."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.comparisons.options import Dimension, ObjectOptions
from builders.engine.draw.balanced import select_equally
from builders.engine.drops import DropLog, beyond
from builders.engine.plan import Facts, Nodes, Oracle, Plan, Questions, text_keys
from builders.engine.rows import RowArrays, plan_rows
from builders.engine.strategies import BalancedWordings
from kbprobe.arrays import Bools, Floats, Ints, joined
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.format.items import Coded
from kbprobe.rng import RandomGenerator


def seen_alone(knows: str, below: Floats, extreme: Ints, seen: int, target: float) -> Oracle:
    """Return an oracle that sees only the first arguments of each row.

    The oracle names the extreme of what it sees, or one of the others at random, whichever is more
    likely.

    Args:
        knows: a description of what it knows.
        below: (rows, K) for each argument, the share of the row's possible values that it
            surpasses.
        extreme: (rows,) the position of the argument that surpasses all others.
        seen: the number of arguments that it sees.
        target: the maximum accuracy it should have.

    >>> below, extreme = np.array([[0.9, 0.1], [0.2, 0.7], [0.6, 0.8]]), np.array([0, 1, 1])
    >>> seen_alone("the first", below, extreme, 1, 0.75).credit
    array([1., 1., 0.])
    """
    hidden = below.shape[1] - seen
    best = below[:, :seen].argmax(axis=1)
    likely = below[:, :seen].max(axis=1) ** hidden
    unsure = np.isclose(likely, (1 - likely) / hidden)
    guesses = likely > (1 - likely) / hidden
    when_seen = (extreme == best).astype(np.float64)
    when_hidden = (extreme >= seen) / hidden
    credit = np.where(guesses, when_seen, when_hidden)
    return Oracle(knows, np.where(unsure, (when_seen + when_hidden) / 2, credit), target)


def divided(clusters: int, shares: Sequence[float], rng: RandomGenerator) -> Ints:
    """Divide clusters between validation and test at random: return 1 or 2 for each.

    Args:
        clusters: the number of clusters.
        shares: of train, validation and test; only those of validation and test matter.
        rng: the random generator.
    """
    _, validation, test = shares
    first = round(clusters * validation / (validation + test))
    split = np.full(clusters, 2, dtype=np.int64)
    split[np.argsort(rng.uniform(np.arange(clusters)), kind="stable")[:first]] = 1
    return split


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

LENGTH_CLASSES, FREQUENCY_CLASSES = 4, 3
"""Number of classes of length and of frequency by which names are balanced."""

ONE_THING = 0.9
"""Maximum accuracy of an oracle that sees one thing and knows how many things are larger."""

SHARES = 4096
"""Resolution of the search for the share of pairs to draw."""

FAMILIES = (
    "1 order of magnitude apart",
    "2 orders apart",
    "3 orders or more apart",
    "same order of magnitude",
)
BUCKET_FAMILIES = ("1 bucket apart", "2 buckets apart", "3 buckets or more apart", "same bucket")
"""The families used if bounds of buckets are given."""


LEAST_RATIO: dict[Dimension, float] = {"size": 4, "weight": 10, "speed": 3}
UNEVEN_RATIO = 6.0
"""Dimension -> minimum ratio of two estimates at which people agree without measuring."""

UNEVEN: dict[Dimension, tuple[str, ...]] = {
    "size": ("long", "flat", "varies"),
    "weight": ("varies",),
    "speed": ("varies",),
}
"""Dimension -> shapes of things whose estimate alone says little."""


class Thing(NamedTuple):
    """A thing and our estimates; None if there is no estimate, or no typical one.

    ``shape`` is "long" or "flat" if a thing is much longer than it is thick, "varies" if things of
    that name differ much in size, and empty otherwise.
    """

    name: str
    article: str
    domain: str
    kind: str
    shape: str
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
            line["shape"],
            *(float(line[column]) if line[column] else None for column in COLUMNS.values()),
        )
        for line in lines
    )
    return Things(things, hashlib.sha256(content).hexdigest())


def bucket(estimate: float) -> int:
    """Return the order of magnitude: the nearest power of ten on a logarithmic scale.

    >>> bucket(0.06), bucket(12), bucket(40)
    (-1, 1, 2)
    """
    return math.floor(math.log10(estimate) + 0.5)


def far_apart(things: Sequence[Thing], x: Ints, y: Ints, options: ObjectOptions) -> Bools:
    """Mark the pairs of things whose order is clear to people.

    Their estimates are in different buckets and differ by :data:`LEAST_RATIO`, or by
    :data:`UNEVEN_RATIO` if one is long, flat, or of varying size. The larger is also the heavier,
    if weights are known: a thing that is only longer does not count as larger.

    Args:
        things: all things.
        x: (pairs,) indices of things that have an estimate.
        y: (pairs,) the others.
        options: the dimension and the buckets.
    """
    one, other = (_estimates(things, options.dimension)[ends] for ends in (x, y))
    uneven = np.array([thing.shape in UNEVEN[options.dimension] for thing in things])
    least = LEAST_RATIO[options.dimension]
    ratio = np.where(uneven[x] | uneven[y], max(UNEVEN_RATIO, least), least)
    apart = np.abs(np.log(one / other)) >= np.log(ratio)
    if not options.same_bucket:
        apart &= _buckets(one, options) != _buckets(other, options)
    if options.dimension == "size":
        weight = _estimates(things, "weight")
        # Comparisons with an unknown weight are false.
        apart &= ~(
            ((one > other) & (weight[x] < weight[y])) | ((one < other) & (weight[x] > weight[y]))
        )
    return np.asarray(apart)


def _estimates(things: Sequence[Thing], dimension: Dimension) -> Floats:
    """Return every thing's estimate, NaN if there is none."""
    given = [getattr(thing, COLUMNS[dimension]) for thing in things]
    return np.array([math.nan if value is None else value for value in given])


TOLD_BY_NAMES = "the length or frequency of names would tell which is greater"


class ChosenPairs(NamedTuple):
    """Pairs to ask about, each in one order only: indices of things, and splits."""

    x: Ints
    y: Ints
    split: Ints


def object_plan(things: Things, options: ObjectOptions, rng: RandomGenerator) -> Plan:
    """Plan questions about pairs of things from different buckets, each pair in both orders."""
    estimate = _estimates(things.things, options.dimension)
    split = _splits(things.things, estimate, options, rng.child("splits"))
    dropped = DropLog()
    chosen = _pairs(things.things, estimate, split, options, rng.child("pairs"), dropped)
    if chosen.x.size == 0:
        raise UsageError(
            "object_comparison: under these options no two things differ in "
            f"{options.dimension} by a bucket and a factor of {LEAST_RATIO[options.dimension]:g}. "
            "Choose more domains with --train-domains and --evaluation-domains."
        )
    return replace(_plan(things.things, estimate, chosen, options), dropped=dropped)


def _splits(
    things: Sequence[Thing], estimate: Floats, options: ObjectOptions, rng: RandomGenerator
) -> Ints:
    """Assign each thing to one split, -1 for none.

    Raises:
        UsageError: a domain is unknown, or a thing would be in train and in another split.
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
    dropped: DropLog,
) -> ChosenPairs:
    """Choose pairs within each split: all of them, or a balanced subset if there are too many."""
    _, validation, test = options.split_shares
    first = round(options.evaluation_rows * validation / (validation + test))
    limits = (options.train_rows, options.evaluation_rows, options.evaluation_rows)
    most = (options.train_rows, first, options.evaluation_rows - first)
    level = _buckets(estimate, options)
    parts = []
    for code in range(len(most)):
        here = np.flatnonzero(split == code)
        x, y = (here[index] for index in np.triu_indices(here.size, k=1))
        apart = far_apart(things, x, y, options)
        x, y = x[apart], y[apart]
        if limits[code] and x.size > most[code] // 2:
            greater = np.where(estimate[x] > estimate[y], x, y)
            less = x + y - greater
            family = _families(level[greater] - level[less])
            drawn, more = _balanced(things, greater, less, family, most[code] // 2, rng)
            limit = "evaluation_rows" if code else "train_rows"
            dropped[beyond(limit) if more else TOLD_BY_NAMES] += 2 * (x.size - drawn.size)
            x, y = x[drawn], y[drawn]
        parts.append(ChosenPairs(x, y, np.full(x.size, code, dtype=np.int64)))
    return joined(parts)


def _balanced(
    things: Sequence[Thing],
    greater: Ints,
    less: Ints,
    family: Ints,
    most: int,
    rng: RandomGenerator,
) -> tuple[Ints, bool]:
    """Draw pairs such that length and frequency of names do not reveal the greater thing.

    Names are divided into classes by both. In every family, for any two classes, each of them names
    the greater thing in half of the pairs. Otherwise names would give things away: those of large
    things are often short and frequent (sea, moon), those of small ones long (grain of salt).

    Returns:
        The pairs drawn, at most ``most``, and whether there are more.
    """
    from kb_cache.frequency import zipf_frequencies

    names = [thing.name for thing in things]
    frequency = zipf_frequencies(names)
    used = np.unique(np.concatenate([greater, less]))
    kind = np.zeros(len(names), dtype=np.int64)
    for values, classes in (
        (np.array([len(name) for name in names]), LENGTH_CLASSES),
        (frequency, FREQUENCY_CLASSES),
    ):
        bounds = np.quantile(values[used], np.arange(1, classes) / classes)
        kind = kind * classes + np.searchsorted(bounds, values)
    classes = LENGTH_CLASSES * FREQUENCY_CLASSES
    one, other = kind[greater], kind[less]
    # Within a class, the more frequent name comes first.
    first = np.where(one == other, frequency[greater] > frequency[less], one > other)
    stratum = (family * classes + np.maximum(one, other)) * classes + np.minimum(one, other)
    chance, label = rng.uniform(greater, less), first.astype(np.int64)

    def taken(share: int) -> Ints:
        return np.flatnonzero(select_equally(stratum, label, 2, share / SHARES, chance))

    # Pairs of two classes of which only one names greater things are dropped; a larger share of the
    # others is taken instead.
    too_large = bisect_right(range(SHARES + 1), most, key=lambda share: taken(share).size)
    return taken(max(too_large - 1, 0)), too_large <= SHARES


def _families(orders: Ints) -> Ints:
    """Return the family of pairs by their distance in buckets, as an index of a plan's names."""
    most = len(FAMILIES) - 1
    return np.where(orders == 0, len(FAMILIES), np.minimum(np.abs(orders), most))


def _buckets(estimate: Floats, options: ObjectOptions) -> Ints:
    if options.bucket_bounds:
        return np.searchsorted(options.bucket_bounds, estimate, side="right")
    return np.array([0 if math.isnan(value) else bucket(value) for value in estimate.tolist()])


def _plan(
    things: Sequence[Thing], estimate: Floats, chosen: ChosenPairs, options: ObjectOptions
) -> Plan:
    """Make the plan: each pair in both orders."""
    dimension = options.dimension
    x, y = np.concatenate([chosen.x, chosen.y]), np.concatenate([chosen.y, chosen.x])
    split = np.tile(chosen.split, 2)
    gold = (estimate[x] > estimate[y]).astype(np.int64)
    level = _buckets(estimate, options)
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
    below = _shares_below(estimate, np.stack([x, y], axis=1), split)
    one = seen_alone("one of the two things", below, 1 - gold, 1, ONE_THING)
    return plan_rows(
        RowArrays(
            nodes=np.stack([gold, 1 - gold], axis=1),
            split=split,
            family=_families(level[x] - level[y]),
            concept=x,
            choice_hops=1,
        ),
        questions=Questions.from_columns(key, fields, BalancedWordings(split)),
        choices=Nodes.from_columns(ANSWERS[dimension], field="answer"),
        families=BUCKET_FAMILIES if options.bucket_bounds else FAMILIES,
        relation=dimension,
        concepts=names,
        facts=_facts(names, estimate, x, y, dimension),
        cluster=Coded(pa.array(clusters), np.tile(np.arange(chosen.x.size, dtype=np.int64), 2)),
        oracles={"one thing": one},
    )


def _shares_below(estimate: Floats, things: Ints, split: Ints) -> Floats:
    """Return the share of the split's other things that each thing surpasses."""
    below = np.zeros(things.shape)
    for code in np.unique(split):
        here = split == code
        values = np.sort(estimate[np.unique(things[here])])
        own = estimate[things[here]]
        low, high = (np.searchsorted(values, own, side) for side in ("left", "right"))
        below[here] = (low + (high - 1)) / 2 / max(values.size - 1, 1)
    return below


def _facts(names: pa.Array, estimate: Floats, x: Ints, y: Ints, dimension: Dimension) -> Facts:
    """Return the estimates of both things as facts."""
    things = np.stack([x, y], axis=1).ravel()
    shown, code = np.unique(estimate[things], return_inverse=True)
    values = pa.array([f"{value:g} {UNITS[dimension]}" for value in shown.tolist()])
    terms = pa.concat_arrays([names, values])
    return Facts.from_codes(things, 0, code + len(names), terms, (f"{dimension} (estimate)",), 2)
