"""Rows of oLMpics, WordNetQA, DictionaryQA, ARC and kbprobe, brought into kbprobe's schema.

Labelled texts from other sources are converted first (:mod:`evaluation.items.recast`).

All have the same content in different forms: an id, a question, choices with labels, the gold's
label. The question's text is ``question``, ``question.stem`` or ``question_stem``; choices are a
list of ``{"text", "label"}`` or a pair of lists; labels and answers are text or integers. WordNetQA
and DictionaryQA add ``notes``, kbprobe columns of its own. Texts are kept to the letter.
"""

from __future__ import annotations

import codecs
import json
import os
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from evaluation.items.recast import (
    MARK,
    UNNAMED,
    RowError,
    folds_beside,
    is_pair,
    own_form,
    pair_form,
)
from evaluation.items.types import ABOUT
from kbprobe.errors import KbprobeError
from kbprobe.format.items import UNKNOWN
from kbprobe.format.rows import UNLABELLED
from kbprobe.format.setups import CLOZE, MASK, NLI, QUESTION, SETUPS
from kbprobe.reading import MAX_TABLE_BYTES, open_file

if TYPE_CHECKING:
    import pyarrow as pa

ASKED = ("id", "question", "choices", "answer", "answerKey", "setup")
PAIR = ("premise", "hypothesis")
FURTHER = ("fact_ids", "relation", "arguments")
"""Columns of the schema that are evaluated, besides what is known about an item (`ABOUT`)."""

_COPIES = "copies"
"""Whether copies of the gold among the choices were left out of a row."""

LISTED = 5
"""Maximum number of bad rows listed; the rest are counted."""

_POS_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
"""WordNet's letters, as ``notes`` has them, in the words of kbprobe's own probes."""

_INT32, _INT64 = range(2**31), range(-(2**63), 2**63)
_Texts: TypeAlias = list[Any] | None


@dataclass(frozen=True)
class Records:
    """Rows as read, not yet parsed.

    Attributes:
        unit: the unit in which positions are counted: line, row or item.
        rows: each row's place, from 1, and what it holds: any JSON value, or a :class:`RowError`
            where it could not be read. Iterate over it once: rows are read lazily, since holding
            many of them at once takes five times as long.
        folds: the fold of rows that name none themselves, by id
            (:mod:`evaluation.items.recast`).
    """

    unit: str
    rows: Iterable[tuple[int, Any]]
    folds: Mapping[str, int] = field(default_factory=dict)


class RowProblem(NamedTuple):
    """What is wrong with a row, at its place in a file."""

    place: int
    field: str
    what: str


def read_json(path: Path) -> Records:
    """Read a file of JSON lines or one JSON list, gzipped or not.

    Raises:
        KbprobeError: the file cannot be read, or is not UTF-8 text. A bad line does not raise;
            it is a :class:`RowError` among the rows.
    """
    from kb_cache.unpack import DAMAGE, Allowance, unpacking

    try:
        with open_file(path) as file:
            packed = path.suffix if path.suffix == ".gz" else ""
            size = os.fstat(file.fileno()).st_size
            data = Allowance(size, MAX_TABLE_BYTES).read(unpacking(file, packed))
    except (OSError, *DAMAGE) as error:
        raise KbprobeError(f"{path} cannot be read: {error}") from None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise KbprobeError(f"{path} is UTF-16. Save it as UTF-8.")
    data = data.removeprefix(codecs.BOM_UTF8)
    if data[:4096].lstrip().startswith(b"["):
        rows, folds = _json(data), folds_beside(path)
        if isinstance(rows, RowError):
            raise KbprobeError(
                f"{path}: {rows.args[1]}. The file must be one JSON list, or an object a line."
            )
        return Records("item", enumerate(rows, 1), folds)
    # Not splitlines: it also ends lines at characters that may occur within text.
    lines = enumerate(data.split(b"\n"), 1)
    return Records("line", ((place, _json(line)) for place, line in lines if line.strip()))


def _json(data: bytes) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        what = f"not UTF-8: byte {error.start + 1} is 0x{error.object[error.start]:02x}"
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, " if error.lineno > 1 else ""
        what = f"not JSON: {error.msg} at {where}character {error.colno}"
    except RecursionError:
        what = "not JSON that can be read: nested too deeply"
    except ValueError as error:
        what = f"not JSON that can be read: {error}"
    return RowError("", what)


@dataclass(frozen=True)
class Normalised:
    """Rows brought into the schema of kbprobe's items, not yet checked.

    Attributes:
        table: the columns that are evaluated, see :func:`read_columns`.
        places: the place of each of these rows.
        problems: rows that cannot be brought into the schema.
        undecided: rows of NLI collections whose annotators agreed on no label.
        copied: the number of rows of which copies of the gold were left out.
    """

    table: pa.Table
    places: Sequence[int]
    problems: Sequence[RowProblem]
    undecided: Sequence[RowProblem]
    copied: int


def normalised(records: Records, label_names: Sequence[str] = ()) -> Normalised:
    """Bring rows of any published form into the schema; what they say is checked afterwards.

    ``label_names`` are the names of NLI labels that are numbers, in order from 0.
    """
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    places: list[int] = []
    problems: list[RowProblem] = []
    undecided: list[RowProblem] = []
    for place, row in records.rows:
        try:
            if isinstance(row, Mapping) and is_pair(row):
                row = pair_form(row, place, label_names)
                if row["answerKey"] is None:
                    undecided.append(RowProblem(place, "answerKey", UNLABELLED))
                    continue
            rows.append(_normalised(row, records.folds))
            places.append(place)
        except RowError as error:
            problems.append(RowProblem(place, *error.args))
    types = read_columns()
    table = pa.table(
        {name: pa.array([row.get(name) for row in rows], kind) for name, kind in types.items()}
    )
    copied = sum(row[_COPIES] for row in rows)
    return Normalised(table, places, problems, undecided, copied)


def read_columns() -> dict[str, pa.DataType]:
    """Return the columns of the schema that are evaluated, with their types."""
    from kbprobe.format.items import arrow_schema

    own = arrow_schema()
    return {name: own.field(name).type for name in (*ASKED, *PAIR, *ABOUT, *FURTHER)}


def refusal(source: str, unit: str, problems: Sequence[RowProblem], total: int) -> str:
    """Return the error for a file: the first bad rows by position and field, others as a count."""
    if all(problem.what == UNLABELLED for problem in problems):
        return (
            f"{source}: {len(problems):,} of {total:,} rows have no answer yet (the first at "
            f"{unit} {problems[0].place}), and nothing is scored on the others alone. Label "
            "them (answer: the index of the right choice; release-probe annotate asks people), "
            "or name a split that has answers."
        )
    if unnamed := [problem for problem in problems if problem.what == UNNAMED]:
        return (
            f"{source}: {unnamed[0].field} is a number in {len(unnamed):,} of {total:,} rows (the "
            f"first at {unit} {unnamed[0].place}), and nothing names them; sets number the labels "
            "of NLI in different orders. Look up the order of this one, and state it from 0 on, "
            f"such as --label-names {','.join(SETUPS[NLI].labels)}"
        )
    lines = [f"{source}: {len(problems):,} of {total:,} rows cannot be scored:"]
    for place, name, what in problems[:LISTED]:
        lines.append(f"  {unit} {place}: {name} {what}" if name else f"  {unit} {place}: {what}")
    if len(problems) > LISTED:
        lines.append(f"  and {len(problems) - LISTED:,} more")
    lines.append("Nothing is scored on the other rows alone. Correct these, or take them out.")
    return "\n".join(lines)


def unique_ids(ids: Sequence[str]) -> list[str]:
    """Make ids of rows unique.

    Published files repeat questions with their ids, and reuse ids for different questions: the
    second becomes ``ID#2``, so that every row is scored, as in the published figures.
    """
    taken = set(ids)
    if len(taken) == len(ids):
        return list(ids)
    times: dict[str, int] = {}
    result = []
    for own in ids:
        number = times.get(own, 0) + 1
        name = own
        while number > 1 and (name := f"{own}#{number}") in taken:
            number += 1
        times[own] = number
        taken.add(name)
        result.append(name)
    return result


def _gold(labels: Sequence[str], key: int | str | None) -> int:
    """Return the index of the gold, given its label, or its index if the labels are letters."""
    if key in (None, "", -1, "-1"):
        return UNKNOWN
    if isinstance(key, int) and not any(map(str.isdigit, labels)):
        if not 0 <= key < len(labels):
            choices = f"the {len(labels)} choices are 0 to {len(labels) - 1}"
            raise RowError("answerKey", f"is {key}; {choices}")
        return key
    if str(key) not in labels:
        shown = f"is {reprlib.repr(key)}, which is not among the labels {', '.join(labels)}"
        raise RowError("answerKey", shown)
    return labels.index(str(key))


def _with_gold(texts: _Texts, labels: _Texts, key: int | str | None) -> dict[str, Any]:
    """Return choices with the index and label of the gold, which is given by its label or index.

    Copies of the gold among the choices, which published rows have, are left out. Where choices
    are incomplete, nothing can be the gold.
    """
    columns: dict[str, Any] = {
        "choices": {"text": texts, "label": labels},
        "answer": UNKNOWN,
        "answerKey": "",
    }
    if texts is None or labels is None or len(texts) < 2 or len(texts) != len(labels):
        return columns
    if None in texts or None in labels:
        return columns
    gold = _gold(labels, key)
    if gold == UNKNOWN:
        return columns
    right = texts[gold]
    if 1 < texts.count(right) < len(texts):
        kept = [place for place, text in enumerate(texts) if place == gold or text != right]
        gold = kept.index(gold)
        columns[_COPIES] = True
        texts, labels = ([column[place] for place in kept] for column in (texts, labels))
    choices = {"text": texts, "label": labels}
    return {**columns, "choices": choices, "answer": gold, "answerKey": labels[gold]}


def _normalised(row: Any, folds: Mapping[str, int]) -> dict[str, Any]:
    """Bring one row into the schema."""
    if isinstance(row, RowError):
        raise row
    if not isinstance(row, Mapping):
        raise RowError("", f"{_kind(row)} where an object with id, question, choices should be")
    if MARK in row:
        row = own_form(row, folds)
    question: Any = row.get("question", row.get("question_stem"))
    given: Any = row.get("choices")
    setup = row.get("setup")
    if setup is not None and not isinstance(setup, str):
        raise RowError("setup", f"is {_kind(setup)}, not text")
    path, at = "question", ""
    if isinstance(question, Mapping):
        path, at = "question.stem", "question."
        question, given = question.get("stem"), question.get("choices")
    columns: dict[str, Any] = {
        "id": _label(row.get("id"), "id"),
        "question": _text(question, path),
        **{name: _text(row.get(name), name) for name in PAIR},
    }
    if setup is None:
        setup = CLOZE if MASK in (columns["question"] or "") else QUESTION
    columns["setup"] = _whole(setup, "setup")
    texts, labels = _choices(given, f"{at}choices")
    answer, key = _answer(row)
    if answer is None:
        columns |= _with_gold(texts, labels, key)
    else:
        columns |= {"choices": {"text": texts, "label": labels}, "answer": answer}
        columns["answerKey"] = None if key is None else str(key)
    return {_COPIES: False, **columns, **_about(row), **_own(row)}


def _choices(given: Any, at: str) -> tuple[_Texts, _Texts]:
    """Return texts and labels of choices given as a list of objects or as two lists."""
    if given is None:
        return None, None
    if isinstance(given, Mapping):
        texts, labels = given.get("text"), given.get("label")
        if not all(column is None or isinstance(column, list) for column in (texts, labels)):
            raise RowError(at, "must hold two lists, text and label")
        where = at + ".{}[{}]"
    elif isinstance(given, list):
        for i, choice in enumerate(given):
            if not isinstance(choice, Mapping):
                raise RowError(f"{at}[{i}]", f"is {_kind(choice)}, not an object: text and label")
        texts, labels = ([choice.get(name) for choice in given] for name in ("text", "label"))
        where = at + "[{1}].{0}"
    else:
        raise RowError(at, f"are {_kind(given)}, not a list")
    return (
        texts and [_text(text, where.format("text", i)) for i, text in enumerate(texts)],
        labels and [_label(label, where.format("label", i)) for i, label in enumerate(labels)],
    )


def _answer(row: Mapping[str, Any]) -> tuple[int | None, int | str | None]:
    """Return the gold as the row gives it: an index, and a label or a value that may be either."""
    answer = row.get("answer") if "setup" in row else None
    key = row.get("answerKey")
    if answer is None and "answerKey" not in row:
        raise RowError("answerKey", "is missing")
    if answer is not None and not (_is_integer(answer) and abs(answer) in _INT32):
        raise RowError("answer", f"is {_kind(answer)}, not the index of a choice")
    if isinstance(key, str):
        return answer, _whole(key, "answerKey")
    if key is not None and not _is_integer(key):
        raise RowError("answerKey", f"is {_kind(key)}, not a label")
    return answer, key


def _about(row: Mapping[str, Any]) -> dict[str, Any]:
    """Read the metadata of a row: from ``notes``, or from kbprobe's own columns."""
    notes = row.get("notes")
    if not isinstance(notes, Mapping):
        return {name: _READERS[kind](row, name) for name, kind in ABOUT.items()}
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
    """Read what only kbprobe's own rows contain: facts, relation, and template arguments."""
    if "setup" not in row:
        return {}
    ids, relation, arguments = row.get("fact_ids"), row.get("relation"), row.get("arguments")
    if ids is not None and not (
        isinstance(ids, list) and all(isinstance(name, str) for name in ids)
    ):
        raise RowError("fact_ids", "must be a list of ids")
    parts = ("name", "value")
    if arguments is not None and not (
        isinstance(arguments, list)
        and all(isinstance(entry, Mapping) for entry in arguments)
        and all(isinstance(entry.get(part), str) for entry in arguments for part in parts)
    ):
        raise RowError("arguments", "must be a list of objects with name and value, both text")
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
    if not _is_integer(value) or abs(value) not in _INT32:
        raise RowError(name, f"is {reprlib.repr(value)}, not a number from 0")
    return int(value)


def _numbers(values: Mapping[str, Any], name: str) -> list[int] | None:
    given = values.get(name)
    if given is None:
        return None
    if not isinstance(given, list):
        raise RowError(name, f"is {_kind(given)}, not a list")
    numbers = [_number({name: value}, name) for value in given]
    return [number for number in numbers if number is not None]


def _texts(values: Mapping[str, Any], name: str) -> list[str] | None:
    given = values.get(name)
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(value, str) for value in given):
        raise RowError(name, "must be a list of texts")
    return [_whole(value, name) for value in given]


_READERS: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "string": _optional_text,
    "int32": _number,
    "list<item: int32>": _numbers,
    "list<item: string>": _texts,
}
"""How a value is read, by its Arrow type."""


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _text(value: Any, where: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise RowError(where, f"is {_kind(value)}, not text")
    return _whole(value, where)


def _whole(value: str, where: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise RowError(where, "holds half a character (a lone surrogate)") from None
    return value


def _label(value: Any, where: str) -> str | None:
    """Return an id or a label, which may be integers, as text."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return _text(str(value) if is_integer else value, where)


def _kind(value: Any) -> str:
    """Describe a value by its JSON type, followed by the value if it is short."""
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return f"the number {reprlib.repr(value)}"
    if isinstance(value, str):
        return f"the text {reprlib.repr(value)}"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return f"a {type(value).__name__}"
