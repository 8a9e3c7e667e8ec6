"""Files of votes in every state that people send them in, and what is made of the votes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.labels import read_labels, write_labels
from kbprobe.format.sheets import Key, Shown
from kbprobe.intervals import Estimate
from release.annotation.report import accuracy, agreement
from release.annotation.votes import MatchedVotes, Rule, Vote, match_votes, read_votes
from tests.release.annotation_toy import long_csv

ITEMS = [f"q{at}" for at in range(6)]
ORDERS = list(itertools.permutations(range(4)))
KEY = Key(
    probe="toy",
    config="default",
    split="test",
    rows_sha256="",
    seed=0,
    scheme="choices",
    items=tuple(
        Shown(item, f"row-{item}", "test", 1, "item", ORDERS[at * 3])
        for at, item in enumerate(ITEMS)
    ),
)
ROWS = {
    f"row-{item}": {"setup": "mc_qa", "choices": {"text": ["w", "x", "y", "z"]}, "answer": 0}
    for item in ITEMS
}


def matched(path: Path) -> MatchedVotes:
    raw, problems = read_votes([path])
    found = match_votes(raw, KEY, ROWS)
    return MatchedVotes(found.votes, (*problems, *found.problems), found.missing)


def written(folder: Path, text: str | bytes, name: str = "v.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    return path


votes = st.lists(
    st.tuples(
        st.sampled_from([*ITEMS, "unknown"]),
        st.sampled_from(["ann", "bob", "Jörg, Dr."]),
        st.sampled_from(["A", "b", " C ", "d.", "E", "none", "Two", "nonsense", "", "?"]),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    said=votes,
    delimiter=st.sampled_from(",;\t"),
    end=st.sampled_from(["\r\n", "\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    hint=st.booleans(),
)
def test_any_table_of_votes_equals_a_plain_reading(
    tmp_path: Path,
    said: list[tuple[str, str, str]],
    delimiter: str,
    end: str,
    encoding: str,
    hint: bool,
) -> None:
    text = f"sep={delimiter}{end}" * hint + long_csv(said, delimiter, end)
    found = matched(written(tmp_path, text.encode(encoding)))
    first: dict[tuple[str, str], str] = {}
    bad = empty = 0
    for item, who, answer in said:
        plain = answer.strip().strip(".").lower()
        if item == "unknown" or plain in ("e", "?"):
            bad += 1
        elif not plain:
            empty += 1
        elif (who, item) in first:
            bad += 1
        else:
            first[who, item] = plain
    got = {(vote.annotator, vote.item.item_id): vote for vote in found.votes}
    assert len(got) == len(found.votes)
    assert len(found.problems) == bad
    orders = {item.item_id: item.order for item in KEY.items}
    expected = {
        place: (orders[place[1]]["abcd".index(plain)], "") if len(plain) == 1 else (-1, plain)
        for place, plain in first.items()
    }
    assert {place: (vote.answer, vote.mark) for place, vote in got.items()} == expected
    for vote in found.votes:
        row = int(vote.place.rsplit(" ", 1)[1])
        assert said[row - 2][:2] == (vote.item.item_id, vote.annotator)
    assert sum("no answer to" in place for place in found.missing) <= empty
    nobody = {item for item in ITEMS if all(item != i for _, i in first)}
    assert {place.split()[-1] for place in found.missing if "nobody" in place} == nobody


@pytest.mark.slow
@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_file_whatever_breaks_the_reader(tmp_path: Path, data: bytes) -> None:
    read_votes([written(tmp_path, data)])


@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(said=votes, data=st.data())
def test_the_order_of_rows_does_not_matter(
    tmp_path: Path, said: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    once = list({(item, who): (item, who, answer) for item, who, answer in said}.values())
    mixed = data.draw(st.permutations(once))
    one, two = (matched(written(tmp_path, long_csv(rows))) for rows in (once, mixed))
    strip = [{vote._replace(place="") for vote in found.votes} for found in (one, two)]
    assert strip[0] == strip[1]
    assert len(one.problems) == len(two.problems)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("a,b\n1,2\n", "no column item_id; its columns are a, b"),
        ("item_id,who\nq0,A\n", "no column answer; its columns are item_id, who"),
        ("item_id,answer,answer\nq0,A,B\n", "two columns are named 'answer'"),
        ("item_id,answer\nq0,A\n", "names no annotator; write the name"),
        ("item_id,annotator,answer\nq0,a,A\nq1,b,A\nq2,,A\n", "row 4: names no annotator"),
        ("item_id,annotator,answer\nq0,a,A,B\n", "row 2: 4 cells, but the header has 3"),
        ("item_id,annotator,answer\n,a,A\n", "row 2: no item id"),
        ('item_id,annotator,answer\nq0,a,A\nq1,a,"A"B\n', "row 3: not CSV"),
        ("item_id,annotator,answer\nq0,a,A B\n", "row 2: 'A B' is none of A, B, C, D, none"),
        ("item_id,annotator,answer\nq9,a,A\n", "row 2: no item 'q9' was exported"),
        ("item_id,annotator,answer\nq0,a,A\nq0,a,a\n", "row 3: repeats the vote of a at"),
        ("item_id,annotator,answer\n\nq0,a,A\n\nq0,a,B\n", "row 5: contradicts the vote of a at"),
        (b"item_id,annotator,answer\nq0,J\xf6rg,A\n", "not UTF-8 at byte 29"),
        (
            "item_id,question,answer,annotator\nq0,Why?,A,b\nq1,How?,B,a\nq0,Why?,A,c\n",
            "one sheet, but its rows name 3 annotators (a, b, c)",
        ),
        (
            "item_id,premise,hypothesis,answer,annotator\nq0,A.,B.,5,a\nq0,A.,B.,5,b\n",
            "If it is a table of votes, remove the column premise",
        ),
    ],
)
def test_what_is_wrong_is_named_by_file_and_row(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    path = written(tmp_path, text)
    problems = matched(path).problems
    assert len(problems) == 1
    assert problems[0].startswith(str(path))
    assert message in problems[0]


def test_a_sheet_of_several_annotators_counts_for_nobody(tmp_path: Path) -> None:
    """One person could otherwise make figures of agreement; a table of votes names them all."""
    lines = ["item_id,annotator,answer", "q0,a,A", "q0,b,A"]
    assert {vote.annotator for vote in matched(written(tmp_path, "\n".join(lines))).votes} == {
        "a",
        "b",
    }
    sheet = written(
        tmp_path,
        "\n".join(
            f"{line},{text}" for line, text in zip(lines, ("question", "Why?", "Why?"), strict=True)
        ),
    )
    assert not matched(sheet).votes


def test_a_missing_file_does_not_hide_other_problems(tmp_path: Path) -> None:
    bad = written(tmp_path, "item_id\n")
    _, problems = read_votes([tmp_path / "lost.csv", bad])
    assert len(problems) == 2
    assert "no such file" in problems[0]


def vote_of(row: str, who: str, answer: int, said: str = "") -> Vote:
    return Vote("", Shown(row, row, "test", 1, "item", (0, 1, 2, 3)), who, answer, said)


class TestAgreement:
    # Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", data of section C:
    # four observers, twelve units, missing values; alpha is 0.743 (nominal), 0.815 (ordinal).
    OBSERVERS = (
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    )

    def test_the_published_example(self) -> None:
        said = [
            vote_of(f"unit-{unit}", f"observer-{who}", int(value) - 1, value)
            for who, line in enumerate(self.OBSERVERS)
            for unit, value in enumerate(line.split())
            if value != "."
        ]
        rows = {vote.item.id: {"choices": {"text": list("12345")}, "answer": -1} for vote in said}
        found = agreement(said, rows, scale=True)
        assert found.alpha == pytest.approx(0.743, abs=5e-4)
        assert found.alpha_ordinal == pytest.approx(0.815, abs=5e-4)
        assert found.rows == 11

    def test_equal_answers_in_another_order_agree(self) -> None:
        rows = {
            f"r{at}": {"choices": {"text": order}, "answer": 0}
            for at, order in enumerate((["not", "really"], ["really", "not"]))
        }
        said = [vote_of("r0", who, 0) for who in "ab"] + [vote_of("r1", who, 1) for who in "ab"]
        # All say "not": nothing tells agreement from habit.
        assert agreement(said, rows, scale=False).alpha is None
        assert agreement(said, rows, scale=False).pairwise == 1

    def test_no_pairs(self) -> None:
        found = agreement([vote_of("row-q0", "a", 1)], ROWS, scale=False)
        assert (found.pairwise, found.alpha, found.rows) == (None, None, 0)
        assert agreement([], {}, scale=False).alpha is None


def accuracy_of(right: Mapping[Any, Sequence[bool]]) -> Estimate | None:
    """The accuracy of votes that are given by cluster."""
    said = [(one, name) for name, votes in right.items() for one in votes]
    table = pd.DataFrame(said, columns=["right", "cluster"])
    return accuracy(table["right"], table["cluster"])


class TestAccuracy:
    @settings(deadline=None, max_examples=100)
    @given(st.lists(st.lists(st.booleans(), min_size=1, max_size=5), min_size=6, max_size=60))
    def test_it_is_what_evaluation_computes(self, said: list[list[bool]]) -> None:
        import numpy

        from evaluation.results.intervals import quick_accuracy

        found = accuracy_of(dict(enumerate(said)))
        assert found is not None
        cluster = numpy.repeat(numpy.arange(len(said)), [len(one) for one in said])
        other = quick_accuracy(numpy.concatenate(said), cluster)
        assert found.value == pytest.approx(other.value)
        assert found.low == pytest.approx(other.low, abs=2e-3)
        assert found.high == pytest.approx(other.high, abs=2e-3)
        assert found.n == other.n

    def test_wilsons_interval_of_independent_rows(self) -> None:
        # 81 of 263: Newcombe (1998), Table I, method 3 (score).
        found = accuracy_of({at: [at < 81] for at in range(263)})
        assert found is not None
        assert (round(found.low, 4), round(found.high, 4)) == (0.2553, 0.3662)

    def test_nothing_to_count(self) -> None:
        assert accuracy_of({}) is None
        assert accuracy_of({"a": []}) is None


class TestRules:
    @given(st.lists(st.integers(-1, 3), max_size=7), st.integers(1, 5))
    def test_rules_equal_their_definitions(self, said: list[int], least: int) -> None:
        counts = Counter(answer for answer in said if answer >= 0)
        for name in ("majority", "unanimous", f"at-least-{least}"):
            expected = [
                answer
                for answer, votes in counts.items()
                if {
                    "majority": 2 * votes > len(said),
                    "unanimous": votes == len(said),
                }.get(name, votes >= least)
                and all(votes > other for rival, other in counts.items() if rival != answer)
            ]
            assert Rule.parse(name).label(said) == (expected[0] if expected else -1)

    @pytest.mark.parametrize("name", ["", "most", "at-least-0", "at-least-", "Majority"])
    def test_other_names_are_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match="at-least-N"):
            Rule.parse(name)


class TestLabelsFile:
    def test_bad_files_are_named_by_row(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="no labels file"):
            read_labels(tmp_path / "lost.jsonl")
        path = written(tmp_path, '{"id": "a", "answer": 1}\n\n{"id": 7}\n', "l.jsonl")
        with pytest.raises(UsageError, match="row 3: a label has an id"):
            read_labels(path)
        with pytest.raises(KbprobeError, match=r"ends in \.jsonl or \.parquet"):
            write_labels(tmp_path / "labels.csv", [])
