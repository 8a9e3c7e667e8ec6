"""Readings that come with kbprobe: what they decide, and what default builds make of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.engine.pipeline import Built, build
from builders.engine.plan import text_keys
from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.labels.verdicts import NONSENSE, TIE, Readings, nominal_alpha, readings
from kbprobe.format.labels import LabelVote
from kbprobe.format.setups import NLI, SETUPS

LABELS = SETUPS[NLI].labels
PROBES = {
    "fw_prepositions": "enc",
    "fw_comparatives": "enc",
    "fw_quantification": "enc",
    "fw_spatial": "enc",
    "fw_negation": "enc",
    "always_never": "nrsoa",
}


def shipped(probe: str) -> Readings:
    package = "always_never" if probe == "always_never" else "function_words"
    return readings(probe, f"builders.{package}")


@pytest.mark.parametrize("probe", PROBES)
def test_every_row_has_three_readings(probe: str) -> None:
    votes = shipped(probe).votes
    assert len(votes) >= 250
    assert {len(said) for said in votes.values()} == {3}
    assert set("".join(votes.values())) <= set(PROBES[probe]) | {"x"}


def test_the_majority_is_the_answer() -> None:
    said = {("a",): "een", ("b",): "enc", ("c",): "eex", ("d",): "ccc"}
    keys = text_keys(["a", "b", "c", "d", "unread"])
    found = {one.id: one for one in Readings(said).verdicts("abcdu", keys, LABELS)}
    assert sorted(found) == ["a", "b", "c", "d"]
    assert [found[name].kept for name in "abcd"] == [True, False, False, True]
    assert LABELS[found["a"].answer] == "entailment"
    assert found["a"].agreement == pytest.approx(2 / 3)
    assert (found["b"].reason, found["c"].reason) == (TIE, NONSENSE)
    assert LABELS[found["d"].answer] == "contradiction"


def votes_of(rows: Sequence[Sequence[int]]) -> list[list[LabelVote]]:
    return [
        [LabelVote("", str(who), said, str(said)) for who, said in enumerate(row)] for row in rows
    ]


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=12))
def test_alpha_is_that_of_the_package(rows: list[list[int]]) -> None:
    import krippendorff

    paired = [row for row in rows if len(row) > 1]
    counts = np.array([np.bincount(row, minlength=4) for row in paired])
    if not paired or (counts.sum(axis=0) > 0).sum() < 2:
        assert nominal_alpha(votes_of(rows)) is None
        return
    expected = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    assert nominal_alpha(votes_of(rows)) == pytest.approx(expected)


def built(seed: int = 0, **options: object) -> Built:
    probe = find_probe("fw_spatial")
    return build(Request(probe, probe.options.parse(options, probe.name), seed, audit=False))


def ids_of(done: Built) -> set[str]:
    return {
        name
        for items in done.configs["default"].values()
        for name in items.table()["id"].to_pylist()
    }


@pytest.mark.slow
def test_a_default_build_has_the_rows_that_were_read_and_their_answers() -> None:
    done, candidates = built(), built(readings=False)
    about, counts = done.manifest["annotation"], done.manifest["counts"]
    assert about["annotator_kind"] == "language model"
    assert "unlabelled" not in counts
    lost = sum(rows for why, rows in counts["dropped"].items() if why.startswith("labels"))
    assert counts["rows"] + lost == len(shipped("fw_spatial").votes)
    assert about["dropped_share"] == pytest.approx(lost / (counts["rows"] + lost), abs=1e-4)
    assert candidates.manifest["counts"]["unlabelled"] == len(ids_of(candidates))
    # People who label the candidates, or the rows read, label the same rows.
    assert ids_of(done) < ids_of(candidates)
    assert ids_of(built(1)) == ids_of(done)
