"""What is read back: read right, or refused with the file and the place named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from kbprobe.errors import UsageError
from kbprobe.parsing import json_value, read_json, read_record, read_yaml, yaml_value

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"), max_size=8)
"""Texts without the line ends of YAML that PyYAML's writer folds to spaces."""
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 62), 1 << 62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(PLAIN)
def test_what_json_writes_is_read(value: Any) -> None:
    assert json_value(json.dumps(value), "x") == value
    assert json_value(json.dumps(value, ensure_ascii=False).encode(), "x") == value


@given(PLAIN)
def test_what_yaml_writes_is_read(value: Any) -> None:
    assert yaml_value(yaml.safe_dump(value, allow_unicode=True), "x") == value


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def test_numbers_to_base_60_stay_texts() -> None:
    long = "1:" + "59:" * 300_000 + "1"
    assert yaml_value(f"a: 1:30\nb: {long}\nc: -1_000\nd: 1.5", "recipe.yaml") == {
        "a": "1:30", "b": long, "c": -1000, "d": 1.5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: " + "9" * 5000, "beyond 64 bits"),
        ("a: 0x" + "f" * 60, "beyond 64 bits"),
        ("a: .inf", "finite"),
        (BOMB, "line 5: more than 100,000 values"),
        ("[" * 100_000, "nested too deeply"),
        ("a: &a [*a]", "alias of itself"),
        ("a: 1\nb: 2\na: 3", "line 3: the key 'a' is given twice"),
        ("no: 3", "line 1: a key must be a text; put quotes around it"),
        ("? [a]\n: b", "a key must be a text"),
        ("a: !!binary aGk=", "'binary' is not a kind of value"),
        ("a: !!python/object:os.system x", "is not a kind of value"),
        ("a: !!bool x", "cannot be read as YAML"),
        ("a: {<<: 3}", "expected a mapping"),
        ("a: 'x", "line 1: found unexpected end of stream"),
        ("a: \x00", "line 1: special characters"),
        (b"a: \xff", "not UTF-8 text (line 1, byte 4)"),
    ],
)
def test_yaml_that_is_refused(text: str | bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=r"^recipe.yaml .*\. Mend it\.$") as caught:
        yaml_value(text, "recipe.yaml", "Mend it.")
    assert problem in str(caught.value)


def test_dates_stay_texts_and_anchors_work() -> None:
    text = "day: 2001-02-03\nnone: 2001-99-99\nx: &x {a: 1}\ny:\n  <<: *x\n  b: 2\n"
    expected = {"day": "2001-02-03", "none": "2001-99-99", "x": {"a": 1}, "y": {"a": 1, "b": 2}}
    assert yaml_value(text, "x") == expected
    assert yaml_value("", "x") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' is given twice"),
        ("[NaN]", "NaN is not a number"),
        ("[1e999]", "finite"),
        ("1" * 30, "beyond 64 bits"),
        (str(1 << 63), "beyond 64 bits"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 70 + "]" * 70, "more than 64 levels"),
        ('["\\ud800"]', "surrogate"),
        ('{"a"', "line 1, column 5"),
        ("", "line 1, column 1"),
        (b"\xff", "not UTF-8 text (line 1, byte 1)"),
    ],
)
def test_json_that_is_refused(text: str | bytes, problem: str) -> None:
    with pytest.raises(UsageError, match=r"^x\.json ") as caught:
        json_value(text, "x.json")
    assert problem in str(caught.value)


def test_pairs_of_surrogates_are_a_character() -> None:
    assert json_value('["\\ud83d\\ude00"]', "x") == ["\N{GRINNING FACE}"]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")
    rows: int


class Whole(BaseModel):
    parts: list[Part]


def test_a_record_names_the_field_that_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text('{"parts": [{"rows": 1}, {"rows": "many"}]}')
    with pytest.raises(UsageError, match=r"record.json: parts\.1\.rows: .*'many'.* Write it again"):
        read_record(path, Whole, "Write it again.")
    path.write_text('{"parts": [{"rows": 1}]}')
    assert read_record(path, Whole) == Whole(parts=[Part(rows=1)])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "none.json")
    with pytest.raises(UsageError, match="is not a plain file"):
        read_json(tmp_path)
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(UsageError, match=r"large.yaml has more than 1,048,576 bytes"):
        read_yaml(large)
