"""Published rows in one form: those of oLMpics, WordNetQA, DictionaryQA, ARC and kbprobe.

All say the same in different shapes: an id, a question, choices with labels, the gold's label.
The question's text is ``question``, ``question.stem`` or ``question_stem``; choices are a list of
``{"text", "label"}`` or a pair of lists; labels and answers are text or integers. WordNetQA and
DictionaryQA add ``notes``, kbprobe columns of its own. Texts are kept to the letter.

Here values get their types, or the row is refused; :mod:`evaluation.items.questions` checks them.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from evaluation.items.questions import ABOUT, Questions, RowColumns, questions, unknown_setup
from evaluation.items.rows import Problem, Records, Unreadable
from evaluation.items.types import arguments_type

_POS_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
"""WordNet's letters, as ``notes`` has them, in the words of kbprobe's own probes."""

_INT32, _INT64 = range(2**31), range(-(2**63), 2**63)


class _RowError(Exception):
    """A row that cannot be scored: the field, and what is wrong with it."""

    def __init__(self, where: str, what: str) -> None:
        super().__init__(where, what)
        self.field, self.what = where, what


def row_questions(records: Records, source: str) -> Questions:
    """Read every row as a question.

    Raises:
        KbprobeError: any row is malformed or unlabelled, as :func:`questions` says.
    """
    return questions(row_columns(records), source)


def row_columns(records: Records) -> RowColumns:
    """Bring rows of any published shape into columns; what has another type becomes a problem."""
    import pyarrow as pa

    kinds: dict[str, Any] = dict.fromkeys(("id", "question", "setup", "key"), pa.string())
    kinds |= dict.fromkeys(("answer", "key_number"), pa.int64())
    kinds |= dict.fromkeys(("texts", "labels", "fact_ids"), pa.list_(pa.string()))
    kinds |= {name: pa.type_for_alias(kind) for name, kind in ABOUT.items()}
    kinds |= {"relation": pa.string(), "arguments": arguments_type()}
    problems, places, values = [], [], []
    for place, row in records.rows:
        try:
            values.append(_fields(row))
            places.append(place)
        except _RowError as error:
            problems.append(Problem(place, error.field, error.what))
    table = pa.table(
        {name: pa.array([row.get(name) for row in values], kind) for name, kind in kinds.items()}
    )
    nested = np.array([row["nested"] for row in values], dtype=np.bool_)
    at = np.array(places, dtype=np.int64)
    return RowColumns(records.unit, at, nested, table, problems)


def _fields(row: Any) -> dict[str, Any]:
    if isinstance(row, Unreadable):
        raise _RowError("", row.what)
    if not isinstance(row, Mapping):
        raise _RowError("", f"{_kind(row)} where an object with id, question, choices should be")
    question: Any = row.get("question", row.get("question_stem"))
    given: Any = row.get("choices")
    nested = isinstance(question, Mapping)
    path, at = ("question.stem", "question.") if nested else ("question", "")
    if nested:
        question, given = question.get("stem"), question.get("choices")
    question = _text(question, path)
    texts, labels = _choices(given, f"{at}choices")
    setup = row.get("setup")
    if setup is not None and not isinstance(setup, str):
        raise _RowError("setup", unknown_setup(setup))
    return {
        "id": _label(row.get("id"), "id"),
        "question": question,
        "nested": nested,
        "texts": texts,
        "labels": labels,
        "setup": setup,
        **_answer(row),
        **_about(row),
        **_own(row),
    }


def _choices(given: Any, at: str) -> tuple[list[str], list[str]]:
    """Return texts and labels of choices given as a list of objects or as two lists."""
    if isinstance(given, Mapping):
        texts, labels = given.get("text"), given.get("label")
        if not isinstance(texts, list) or not isinstance(labels, list):
            raise _RowError(at, "must hold two lists, text and label")
        if len(texts) != len(labels):
            raise _RowError(at, f"hold {len(texts)} texts but {len(labels)} labels")
        named = ((f"{at}.text[{i}]", text) for i, text in enumerate(texts))
        marked = ((f"{at}.label[{i}]", label) for i, label in enumerate(labels))
        return [_text(v, path) for path, v in named], [_label(v, path) for path, v in marked]
    if not isinstance(given, list):
        raise _RowError(at, "are missing" if given is None else f"are {_kind(given)}, not a list")
    for i, choice in enumerate(given):
        if not isinstance(choice, Mapping):
            raise _RowError(f"{at}[{i}]", f"is {_kind(choice)}, not an object: text and label")
    return (
        [_text(choice.get("text"), f"{at}[{i}].text") for i, choice in enumerate(given)],
        [_label(choice.get("label"), f"{at}[{i}].label") for i, choice in enumerate(given)],
    )


def _answer(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the gold as the row gives it: an index, a label, or a number that may be either."""
    answer = row.get("answer") if "setup" in row else None
    key = row.get("answerKey")
    if answer is None and "answerKey" not in row:
        raise _RowError("answerKey", "is missing")
    if answer is not None and not _is_integer(answer):
        raise _RowError("answer", f"is {_kind(answer)}, not the index of a choice")
    if _is_integer(key):
        return {"answer": answer, "key_number": key}
    if key is not None and not isinstance(key, str):
        raise _RowError("answerKey", f"is {_kind(key)}, not a label")
    return {"answer": answer, "key": None if key is None else _whole(key, "answerKey")}


def _about(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read what is known of a row: from ``notes``, or from kbprobe's own columns."""
    notes = row.get("notes")
    if not isinstance(notes, Mapping):
        return {
            name: _number(row, name) if kind == "int32" else _optional_text(row, name)
            for name, kind in ABOUT.items()
        }
    # The synset asked about; that of the right choice is at the other end of ``chain``.
    concept = _optional_text(notes, "gold_synset") or _optional_text(notes, "concept")
    family = _optional_text(notes, "distractor_type")
    distance = _number(notes, "distractor_hops")
    pos = _optional_text(notes, "pos")
    return {
        "cluster": concept,
        "concept": concept,
        "hops": _number(notes, "hops"),
        "distractor_family": family,
        # Random distractors have no distance there, and 0 here. DictionaryQA says 0 throughout
        # and no family, which means nothing.
        "distractor_hops": None if family is None else 0 if family == "random" else distance,
        "pos": None if pos is None else _POS_NAMES.get(pos, pos),
    }


def _own(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read what only kbprobe's own rows hold: facts, relation, and what fills the template."""
    if "setup" not in row:
        return {}
    ids, relation, arguments = row.get("fact_ids"), row.get("relation"), row.get("arguments")
    if ids is not None and not (
        isinstance(ids, list) and all(isinstance(name, str) for name in ids)
    ):
        raise _RowError("fact_ids", "must be a list of ids")
    parts = ("name", "value")
    if arguments is not None and not (
        isinstance(arguments, list)
        and all(isinstance(entry, Mapping) for entry in arguments)
        and all(isinstance(entry.get(part), str) for entry in arguments for part in parts)
    ):
        raise _RowError("arguments", "must be a list of objects with name and value, both text")
    return {
        "fact_ids": [_whole(name, "fact_ids") for name in ids or ()],
        "relation": _whole(relation, "relation") if isinstance(relation, str) else None,
        "arguments": [
            {part: _whole(entry[part], "arguments") for part in parts} for entry in arguments or ()
        ],
    }


def _optional_text(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    if value is None or value == "" or value != value:  # NaN: what pandas makes of null
        return None
    return _text(value, name)


def _number(values: Mapping[str, Any], name: str) -> int | None:
    value = values.get(name)
    if value is None or value != value:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is_integer(value) or value not in _INT32:
        raise _RowError(name, f"is {reprlib.repr(value)}, not a number from 0")
    return int(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _text(value: Any, where: str) -> str:
    if value is None:
        raise _RowError(where, "is missing")
    if not isinstance(value, str):
        raise _RowError(where, f"is {_kind(value)}, not text")
    if not value.strip():
        raise _RowError(where, "is empty")
    return _whole(value, where)


def _whole(value: str, where: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise _RowError(where, "holds half a character (a lone surrogate)") from None
    return value


def _label(value: Any, where: str) -> str:
    """Return an id or a label, which may be integers, as text."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return _text(str(value) if is_integer else value, where)


def _kind(value: Any) -> str:
    """Say in JSON's words what a value is, with the value where it is short."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {reprlib.repr(value)}"
    if isinstance(value, str):
        return f"the text {reprlib.repr(value)}"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return f"a {type(value).__name__}"
