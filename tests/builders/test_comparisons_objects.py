"""Comparisons of things: the table of estimates, and the pairs made of it."""

from __future__ import annotations

import csv
import hashlib
from bisect import bisect_right
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.object_sizes import compare
from builders.comparisons.objects import (
    ANSWERS,
    COLUMNS,
    FAMILIES,
    FILE,
    LEAST_RATIO,
    UNEVEN,
    Thing,
    bucket,
    load_things,
)
from builders.engine.pipeline import Built, build
from builders.engine.probe import find_probe
from builders.engine.request import Request
from kb_cache.frequency import zipf_frequencies
from kbprobe.errors import UsageError
from tests.real_data import beside

NAME = "object_comparison"
Rows = list[dict[str, Any]]
DATA = Path(__file__).resolve().parents[2] / "builders/comparisons/data" / FILE


@cache
def made(given: tuple[tuple[str, Any], ...]) -> Built:
    probe = find_probe(NAME)
    return build(Request(probe, probe.options.parse(dict(given), NAME), audit=not given))


def rows_of(**options: Any) -> Rows:
    """All rows, each with its split, its arguments by name, and its right answer."""
    return _rows(tuple(options.items()))


@cache
def _rows(given: tuple[tuple[str, Any], ...]) -> Rows:
    rows: Rows = []
    for split, items in made(given).splits.items():
        for row in items.table().to_pylist():
            values = {one["name"]: one["value"] for one in row["arguments"]}
            gold = row["choices"]["text"][row["answer"]]
            rows.append({**row, **values, "split": split, "gold": gold})
    return rows


@cache
def things() -> dict[str, Thing]:
    return {thing.name: thing for thing in load_things().things}


# The table


def test_the_table_holds_enough_things_of_each_domain() -> None:
    domains = Counter(thing.domain for thing in things().values() if thing.metres)
    assert domains["animal"] >= 150
    assert domains["thing"] >= 150
    assert len(things()) == len(load_things().things)
    assert load_things().digest == hashlib.sha256(DATA.read_bytes()).hexdigest()
    assert load_things().licence == "CC0-1.0"


def test_the_file_is_well_formed() -> None:
    with DATA.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        assert line["name"] == line["name"].strip() != ""
        assert line["article"] in ("a", "an", "the")
        if line["article"] != "the":
            assert (line["article"] == "an") == (line["name"][0].lower() in "aeiou"), line
        assert line["kind"]
        assert line["shape"] in ("", "long", "flat", "varies")
        for column in COLUMNS.values():
            assert not line[column] or float(line[column]) > 0


def test_no_name_has_two_meanings_that_differ_in_size() -> None:
    ambiguous = {"bat", "bug", "crane", "fly", "jaguar", "mole", "mouse", "seal", "swallow"}
    ambiguous |= {"bank", "battery", "cricket", "kite", "pen", "ring", "ruler", "tank", "watch"}
    assert ambiguous.isdisjoint(things())


@pytest.mark.parametrize(
    ("estimate", "order"), [(0.06, -1), (0.02, -2), (1.0, 0), (3.0, 0), (4.0, 1), (12, 1), (40, 2)]
)
def test_buckets_are_orders_of_magnitude(estimate: float, order: int) -> None:
    assert bucket(estimate) == order


# The rows


@pytest.mark.slow
def test_the_published_size_is_reached() -> None:
    splits = Counter(row["split"] for row in rows_of())
    assert splits["train"] >= 4950
    assert splits["validation"] + splits["test"] >= 950
    assert splits.total() >= 5500


@pytest.mark.slow
@pytest.mark.parametrize("dimension", ["size", "weight", "speed"])
def test_the_greater_is_greater_by_a_bucket(dimension: Any) -> None:
    column = COLUMNS[dimension]
    rows = rows_of() if dimension == "size" else rows_of(dimension=dimension)
    assert {row["split"] for row in rows} == {"train", "validation", "test"}
    for row in rows:
        x, y = (getattr(things()[row[name]], column) for name in ("x", "y"))
        assert row["gold"] == ANSWERS[dimension][x > y]
        uneven = {things()[row[name]].shape for name in ("x", "y")} & set(UNEVEN[dimension])
        least = max(LEAST_RATIO[dimension], 6 if uneven else 0)
        assert max(x, y) / min(x, y) >= least * (1 - 1e-9)
        assert bucket(x) != bucket(y)
        apart = abs(bucket(x) - bucket(y))
        assert row["distractor_family"].startswith(str(min(apart, 3)))
        assert [fact["subject"] for fact in row["triples"]] == [row["x"], row["y"]]
        assert float(row["triples"][0]["object"].split()[0]) == x


@pytest.mark.slow
def test_buckets_may_have_bounds_and_pairs_may_share_one() -> None:
    bounds = (0.1, 0.6, 3.0, 60.0, 100_000.0)
    rows = rows_of(bucket_bounds=bounds, same_bucket=True)
    names = {0: "same bucket", 1: "1 bucket apart", 2: "2 buckets apart"}
    for row in rows:
        x, y = (things()[row[name]].metres or 0.0 for name in ("x", "y"))
        assert max(x, y) / min(x, y) >= LEAST_RATIO["size"] * (1 - 1e-9)
        apart = abs(bisect_right(bounds, x) - bisect_right(bounds, y))
        assert row["distractor_family"] == names.get(apart, "3 buckets or more apart")
    assert len({row["distractor_family"] for row in rows}) == 4
    assert "same order of magnitude" in {
        row["distractor_family"] for row in rows_of(same_bucket=True, evaluation_rows=100)
    }


@pytest.mark.slow
def test_one_thing_tells_as_much_as_its_rank_in_the_split() -> None:
    report = made(()).manifest["audit"]["oracles"]["one thing"]
    assert report["target"] == 0.9
    assert 0.7 < report["families"]["all"] < 0.85
    near, far = (report["families"][name] for name in (FAMILIES[0], FAMILIES[2]))
    assert near < far


@pytest.mark.slow
def test_a_thing_is_not_larger_for_being_merely_long() -> None:
    for row in rows_of():
        x, y = things()[row["x"]], things()[row["y"]]
        if x.kilograms and y.kilograms:
            assert x.kilograms == y.kilograms or (x.kilograms > y.kilograms) == (
                row["gold"] == "larger"
            )
    pairs = {frozenset((row["x"], row["y"])) for row in rows_of(train_rows=0, evaluation_rows=0)}
    assert frozenset(("python", "cat")) in pairs
    for merely_long in (("python", "eel"), ("python", "dog"), ("broom", "brick")):
        assert frozenset(merely_long) not in pairs


@pytest.mark.slow
def test_pairs_stand_in_both_orders_and_things_in_one_split() -> None:
    home: dict[str, str] = {}
    pairs = set()
    for row in rows_of():
        assert home.setdefault(row["x"], row["split"]) == row["split"]
        assert home.setdefault(row["y"], row["split"]) == row["split"]
        assert (row["x"], row["y"]) not in pairs
        pairs.add((row["x"], row["y"]))
        domain = "animal" if row["split"] == "train" else "thing"
        assert things()[row["x"]].domain == things()[row["y"]].domain == domain
    assert all((y, x) in pairs for x, y in pairs)


def test_sentences_have_their_articles() -> None:
    for row in rows_of():
        for name in ("x", "y"):
            thing = things()[row[name]]
            assert f"{thing.article} {thing.name}" in row["question"].replace("A", "a", 1).replace(
                "The ", "the ", 1
            )
    stems = {row["question"] for row in rows_of() if row["template"] == "dimension"}
    assert all(stem.startswith("In terms of size, ") and stem.endswith(".") for stem in stems)


def test_names_do_not_tell_which_is_greater() -> None:
    """Drawn without regard to names, the greater thing's is the shorter one in most pairs."""
    sides: dict[str, Counter[str]] = defaultdict(Counter)
    names = sorted(things())
    zipf = dict(zip(names, zipf_frequencies(names).tolist(), strict=True))
    for row in rows_of():
        greater, less = (row["x"], row["y"])[:: 1 if row["gold"] == "larger" else -1]
        sides[row["split"]]["rows"] += 1
        sides[row["split"]]["longer"] += len(greater) > len(less)
        sides[row["split"]]["shorter"] += len(greater) < len(less)
        sides[row["split"]]["frequent"] += zipf[greater] > zipf[less]
    for split, counts in sides.items():
        # Two standard errors of a share of the pairs, which are asked about in both orders.
        least = (counts["rows"] / 2) ** -0.5
        assert abs(counts["frequent"] / counts["rows"] - 0.5) < least, split
        assert abs(counts["longer"] - counts["shorter"]) / counts["rows"] < 0.02 + 2 * least, split


def test_names_learned_in_one_domain_do_not_help_in_the_other() -> None:
    report = made(()).manifest["audit"]
    cells = {name: families["all"] for name, families in report["baselines"].items()}
    assert cells["template only"]["low"] <= 0.5 <= cells["template only"]["high"]
    for name in ("x alone", "y alone", "length of x", "frequency of y"):
        assert cells[name]["accuracy"] <= 0.55, name
    assert cells["arguments without the carrier sentence"]["accuracy"] <= 0.60


# Options


def test_domains_may_be_kinds() -> None:
    rows = rows_of(train_domains=("vehicle", "building"), evaluation_domains=("mammal", "sky"))
    kinds: dict[bool, set[str]] = defaultdict(set)
    for row in rows:
        kinds[row["split"] == "train"] |= {things()[row[name]].kind for name in ("x", "y")}
    assert kinds == {True: {"vehicle", "building"}, False: {"mammal", "sky"}}


def test_all_pairs_by_option() -> None:
    given = (("train_domains", ("fish", "bird")), ("evaluation_domains", ("vehicle",)))
    every = made((*given, ("train_rows", 0), ("evaluation_rows", 0))).manifest["counts"]
    few = made((*given, ("train_rows", 400), ("evaluation_rows", 100))).manifest["counts"]
    assert few["rows"] <= 500
    assert every["rows"] > 2 * few["rows"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"train_domains": ("anmal",)}, "no things of domain 'anmal'.*animal"),
        ({"train_domains": ("vehicle",)}, "is in --train-domains and in --evaluation-domains"),
        ({"bucket_bounds": (3.0, 1.0)}, "each greater than the one before"),
    ],
)
def test_options_that_leave_nothing_to_ask(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        made(tuple(given.items()))


# Other people's judgements


@pytest.mark.real_data
def test_people_agree_with_what_can_be_asked() -> None:
    report = compare(beside("object_sizes"))
    assert report["size"]["asked"] > 500
    assert report["size"]["asked_alike"] == report["size"]["asked"]
    assert report["weight"]["asked_alike"] / report["weight"]["asked"] > 0.99
    assert report["size"]["alike"] / report["size"]["pairs"] > 0.98
