"""Items as columns: equal to the same items one by one, and refused where single rows are."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.items.columns import ItemColumns
from evaluation.items.own_schema import row_problems, row_questions, table_questions
from evaluation.items.rows import UNLABELLED, Records
from evaluation.items.types import (
    Item,
    choice_starts,
    ids_of,
    questions_of,
    setups_of,
    take_items,
)
from evaluation.runs.scoring import _Parts
from kbprobe.errors import KbprobeError
from kbprobe.format.items import arrow_schema
from kbprobe.format.rows import CodedRows
from kbprobe.format.setups import SETUPS

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
items_lists = st.lists(
    st.builds(
        Item,
        id=texts,
        setup=st.sampled_from(["mc_qa", "mc_mlm", "nli"]),
        question=texts,
        choices=st.lists(texts, max_size=4).map(tuple),
        answer=st.integers(0, 3),
        premise=texts,
    ),
    max_size=20,
)


def hashed(items):
    """The fingerprint, from its definition."""
    digest = hashlib.sha256()
    for item in items:
        parts = [item.id, item.setup, item.question, str(item.answer), *item.choices]
        for part in [*parts, item.premise] if item.premise else parts:
            encoded = part.encode()
            digest.update(len(encoded).to_bytes(8, "little") + encoded)
        digest.update(b"\xff")
    return digest.hexdigest()


@pytest.mark.slow
@given(items_lists, items_lists, st.data())
def test_columns_hold_the_same_items(items, others, data):
    columns = ItemColumns.of(items)
    assert list(columns) == items
    assert columns == items == columns
    assert columns.fingerprint() == hashed(items)
    rows = data.draw(st.lists(st.integers(0, max(len(items) - 1, 0)), max_size=9 * bool(items)))
    assert columns.take(rows) == [items[row] for row in rows] == take_items(columns, rows)
    assert columns.take(rows).fingerprint() == hashed([items[row] for row in rows])
    cut = slice(*data.draw(st.tuples(*[st.none() | st.integers(-25, 25)] * 2)))
    assert columns[cut] == items[cut]
    assert columns[cut].fingerprint() == hashed(items[cut])
    assert columns[::-2] == items[::-2]
    assert [columns[row] for row in range(-len(items), len(items))] == items + items
    joined = ItemColumns.joined([columns, ItemColumns.of(others)])
    assert joined == items + others
    assert joined.fingerprint() == hashed(items + others)
    for both in (choice_starts, ids_of, setups_of):
        one, two = both(columns), both(items)
        assert np.array_equal(one, two) if both is choice_starts else one == two
    numbers, distinct = questions_of(columns)
    assert [distinct[number] for number in numbers] == [item.question for item in items]
    assert len(set(distinct)) == len(distinct)


def test_there_is_no_item_beyond_the_last():
    columns = ItemColumns.of([Item("1", "mc_qa", "?", ("a", "b"), 0)])
    for at in (1, -2):
        with pytest.raises(IndexError, match=f"no item {at} among 1"):
            columns[at]
    assert columns != []
    assert columns[:0] == []


def test_parts_of_items_are_made_when_they_are_asked_for():
    items = [Item(str(n), "mc_qa", f"q{n}", ("a", "b", "c")[: 2 + n % 2], 0) for n in range(7)]
    parts = _Parts(ItemColumns.of(items), [np.array([4, 0]), np.array([], int), np.array([1])])
    assert len(parts) == 3
    assert parts[0] == [items[4], items[0]]
    assert parts[1:][1] == [items[1]]
    assert [starts.tolist() for starts in parts.starts()] == [[0, 2, 4], [0], [0, 3]]


# Rows of kbprobe's schema: checked as columns, they are judged as they are one by one.

words = st.sampled_from(["a", "b", "c", " ", "", "[MASK]", "x [MASK]", "é\u2003", "\u2003"])
labels = st.sampled_from(["A", "B", "C", "0", "1", " "])


def sound_row(setup, number):
    choices = {"text": ["a", "b", "c"], "label": ["A", "B", "C"]}
    if setup in ("nli", "acceptability"):
        given_labels = list(SETUPS[setup].labels)
        choices = {"text": given_labels, "label": ["A", "B", "C"][: len(given_labels)]}
    return {
        "id": f"row {number}",
        "question": None if setup == "nli" else "x [MASK]" if setup == "mc_mlm" else "x",
        "choices": choices,
        "answer": 1,
        "answerKey": "B",
        "setup": setup,
        "premise": "it rains" if setup == "nli" else None,
        "hypothesis": "it pours" if setup == "nli" else None,
        "cluster": "c",
        "hops": 2,
    }


faults = st.one_of(
    st.tuples(st.just("id"), st.sampled_from(["row 0", "", " ", "row 1"])),
    st.tuples(st.sampled_from(["question", "premise", "hypothesis"]), words | st.none()),
    st.tuples(st.just("answer"), st.integers(-2, 4) | st.none()),
    st.tuples(st.just("answerKey"), labels | st.none()),
    st.tuples(st.just("setup"), st.sampled_from(["mc_qa", "mc_mlm", "nli", "acceptability", "?"])),
    st.tuples(
        st.just("choices"),
        st.integers(0, 4).flatmap(
            lambda n: st.fixed_dictionaries(
                {
                    "text": st.lists(words, min_size=n, max_size=n),
                    "label": st.lists(labels, min_size=n, max_size=n, unique=True),
                }
            )
        ),
    ),
    st.tuples(st.just("cluster"), words | st.none()),
    st.tuples(st.just("hops"), st.sampled_from([0, -1, None])),
)
rows_with_faults = st.lists(
    st.tuples(
        st.sampled_from(["mc_qa", "mc_mlm", "nli", "acceptability"]), st.lists(faults, max_size=2)
    ),
    min_size=1,
    max_size=5,
)


def is_scorable(row):
    """Whether a model can be scored on a row, by the rules of the schema one after another."""
    texts, marks, setup = row["choices"]["text"], row["choices"]["label"], row["setup"]
    shown = [row[name] for name in SETUPS[setup].texts] if setup in SETUPS else [None]
    wanted = [row["id"], *shown, *texts, *marks]
    if not all(text and text.strip() for text in wanted) or len(texts) < 2:
        return False
    if not 0 <= row["answer"] < len(texts) or row["answerKey"] not in (None, marks[row["answer"]]):
        return False
    if len(set(marks)) < len(marks) or texts.count(texts[row["answer"]]) > 1:
        return False
    if SETUPS[setup].labels and sorted(texts) != sorted(SETUPS[setup].labels):
        return False
    masks = [text.count("[MASK]") for text in shown]
    if setup != "mc_qa" and masks != [SETUPS[setup].masks] * len(masks):
        return False
    blank = row["cluster"] and not row["cluster"].strip()
    return not blank and (row["hops"] or 0) >= 0


@given(rows_with_faults, st.booleans())
def test_columns_and_single_rows_are_judged_alike(described, coded):
    rows = []
    for number, (setup, changes) in enumerate(described):
        row = sound_row(setup, number) | dict(changes)
        rows.append(row | {"answer": -1} if row["answer"] is None else row)
    schema = pa.schema([arrow_schema().field(name) for name in rows[0]])
    table = pa.Table.from_pylist(rows, schema=schema)
    if coded:
        at = table.schema.get_field_index("question")
        table = table.set_column(at, "question", table["question"].dictionary_encode())
    faulty = [number for number, row in enumerate(rows) if not is_scorable(row)]
    found = row_problems(CodedRows(table), range(len(rows)))
    assert sorted(problem.place for problem in found) == faulty
    unlabelled = [problem.place for problem in found if problem.what == UNLABELLED]
    assert all(rows[place]["answer"] == -1 for place in unlabelled)
    records = Records("row", enumerate(table.to_pylist(), 1))
    if faulty:
        for read in (
            lambda: table_questions(table, "rows"),
            lambda: row_questions(records, "rows"),
        ):
            with pytest.raises(KbprobeError, match=f"{len(faulty)} of {len(rows)} rows"):
                read()
        return
    columns, single = table_questions(table, "rows"), row_questions(records, "rows")
    assert columns.items == single.items
    assert columns.items.fingerprint() == hashed(single.items)
    assert columns.about.equals(single.about)
