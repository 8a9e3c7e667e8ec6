"""Published rows in one form: those of oLMpics, WordNetQA, DictionaryQA, ARC and kbprobe.

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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.items.recast import (
    MARK,
    UNNAMED,
    RowError,
    folds_beside,
    is_pair,
    own_form,
    pair_form,
)
from evaluation.items.types import ABOUT, Item, Questions, arguments_type, column_questions
from kb_cache.unpack import DAMAGE, Allowance, unpacking
from kbprobe.columns import arrow_type
from kbprobe.errors import KbprobeError
from kbprobe.format.setups import CLOZE, LABELLED_SETUPS, MASK, NLI, SCORED_SETUPS, SETUPS
from kbprobe.reading import MAX_TABLE_BYTES, open_file

UNLABELLED = "has no answer yet"

_COPIES = "gold_copies"
"""The note that counts rows with copies of the gold among their choices."""

_LISTED = 5
"""Maximum number of bad rows listed; the rest are counted."""

_POS_NAMES = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
"""WordNet's letters, as ``notes`` has them, in the words of kbprobe's own probes."""

_INT32, _INT64 = range(2**31), range(-(2**63), 2**63)


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


class _Problem(NamedTuple):
    place: int
    field: str
    what: str


def read_json(path: Path) -> Records:
    """Read a file of JSON lines or one JSON list, gzipped or not.

    Raises:
        KbprobeError: the file cannot be read, or is not UTF-8 text. A bad line does not raise;
            it is a :class:`RowError` among the rows.
    """
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


def row_questions(records: Records, source: str, label_names: Sequence[str] = ()) -> Questions:
    """Read every row as a question; ``source`` is what they were read from, for the message.

    Pairs of NLI collections whose annotators agreed on no label are left out and counted.
    ``label_names`` are the names of NLI labels that are numbers, in order from 0.

    Raises:
        KbprobeError: any row is malformed or unlabelled; it names the first few by place and
            field and counts the rest. A file is never scored on its valid rows alone.
    """
    import pyarrow as pa

    items: list[Item] = []
    known: list[dict[str, Any]] = []
    problems: list[_Problem] = []
    undecided: list[_Problem] = []
    for place, row in records.rows:
        pair = isinstance(row, Mapping) and is_pair(row)
        try:
            item, about = _question(
                pair_form(row, place, label_names) if pair else row, records.folds
            )
        except RowError as error:
            problem = _Problem(place, *error.args)
            (undecided if pair and problem.what == UNLABELLED else problems).append(problem)
            continue
        items.append(item)
        known.append(about)
    if problems or (undecided and not items):
        problems += undecided
        total = len(items) + len(problems)
        raise KbprobeError(_refusal(source, records.unit, sorted(problems), total))
    kinds = {name: arrow_type(kind) for name, kind in ABOUT.items()}
    kinds |= {"fact_ids": pa.list_(pa.string()), "relation": pa.string()}
    kinds["arguments"] = arguments_type()
    columns = {
        name: pa.array([about.get(name) for about in known], kind) for name, kind in kinds.items()
    }
    questions = column_questions(with_own_ids(items), columns)
    copied = sum(about[_COPIES] > 0 for about in known)
    notes = {_COPIES: copied, "undecided": len(undecided)}
    return replace(questions, notes={name: count for name, count in notes.items() if count})


def _refusal(source: str, unit: str, problems: Sequence[_Problem], total: int) -> str:
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
    for place, name, what in problems[:_LISTED]:
        lines.append(f"  {unit} {place}: {name} {what}" if name else f"  {unit} {place}: {what}")
    if len(problems) > _LISTED:
        lines.append(f"  and {len(problems) - _LISTED:,} more")
    lines.append("Nothing is scored on the other rows alone. Correct these, or take them out.")
    return "\n".join(lines)


def with_own_ids(items: Sequence[Item]) -> list[Item]:
    """Give each row a unique id.

    Published files repeat questions with their ids, and reuse ids for different questions: the
    second becomes ``ID#2``, so that every row is scored, as in the published figures.
    """
    taken: set[str] = {item.id for item in items}
    if len(taken) == len(items):
        return list(items)
    times: dict[str, int] = {}
    result = []
    for item in items:
        number = times.get(item.id, 0) + 1
        name = item.id
        while number > 1 and (name := f"{item.id}#{number}") in taken:
            number += 1
        times[item.id] = number
        taken.add(name)
        result.append(replace(item, id=name))
    return result


def checked_item(
    name: str,
    setup: str | None,
    question: str,
    texts: Sequence[str],
    labels: Sequence[str],
    answer: int | None,
    key: int | str | None,
    at: str = "",
    premise: str = "",
) -> Item:
    """Check a row's values, which have the right types and no blank or missing texts.

    If ``setup`` is None, a mask in the question makes it a cloze. kbprobe's own rows give the
    gold's index as ``answer``, and ``key`` must agree. Elsewhere ``key`` is its label, or its index
    from 0 if an integer and labels are letters; copies of the gold among the choices, which
    published rows have, are left out. ``at`` says what the choices are within.

    Raises:
        RowError: the row cannot be scored.
    """
    size = len(texts)
    if size < 2:
        raise RowError(f"{at}choices", f"are {size}; there must be at least 2")
    if len(set(labels)) < size:
        raise RowError(f"{at}choices", f"share a label: {', '.join(labels)}")
    gold = _gold(labels, answer, key)
    if answer is None and 1 < texts.count(texts[gold]) < size:
        right = texts[gold]
        texts = [text for place, text in enumerate(texts) if place == gold or text != right]
        gold = texts.index(right)
    elif texts.count(texts[gold]) > 1:
        said = f"hold the gold twice: {reprlib.repr(texts[gold])}; no choice could be called right"
        raise RowError(f"{at}choices", said)
    masks = question.count(MASK)
    setup = setup if setup is not None else CLOZE if masks else "mc_qa"
    if setup in LABELLED_SETUPS:
        expected = SETUPS[setup].labels
        if sorted(texts) != sorted(expected):
            said = f"are {', '.join(texts)}; those of {setup} rows are {', '.join(expected)}"
            raise RowError(f"{at}choices", said)
        if setup == NLI and not premise.strip():
            raise RowError("premise", "is empty")
        if masks or MASK in premise:
            raise RowError("premise" if MASK in premise else "question", f"holds a {MASK}")
    elif setup not in SCORED_SETUPS:
        raise RowError("setup", _unknown_setup(setup))
    if setup == CLOZE and masks != 1:
        raise RowError("question", f"holds {masks or 'no'} {MASK}; a cloze has exactly one")
    return Item(name, setup, question, tuple(texts), gold, premise)


def _gold(labels: Sequence[str], answer: int | None, key: int | str | None) -> int:
    """Return the gold's index."""
    field, value = ("answerKey", key) if answer is None else ("answer", answer)
    if value in (None, "", -1, "-1"):
        raise RowError(field, UNLABELLED)
    place = labels.index(str(key)) if str(key) in labels else -1
    if isinstance(value, int) and (answer is not None or not any(map(str.isdigit, labels))):
        if not 0 <= value < len(labels):
            choices = f"the {len(labels)} choices are 0 to {len(labels) - 1}"
            raise RowError(field, f"is {value}; {choices}")
        if answer is not None and key is not None and (isinstance(key, int) or place != answer):
            said = f"but answer is {answer}, labelled {labels[answer]!r}"
            raise RowError("answerKey", f"is {reprlib.repr(key)}, {said}")
        return value
    if place < 0:
        said = f"is {reprlib.repr(key)}, which is not among the labels {', '.join(labels)}"
        raise RowError("answerKey", said)
    return place


def _question(row: Any, folds: Mapping[str, int]) -> tuple[Item, dict[str, Any]]:
    """Read one row: the question, and its metadata."""
    if isinstance(row, RowError):
        raise row
    if not isinstance(row, Mapping):
        raise RowError("", f"{_kind(row)} where an object with id, question, choices should be")
    if MARK in row:
        row = own_form(row, folds)
    question: Any = row.get("question", row.get("question_stem"))
    given: Any = row.get("choices")
    path, at, premise = "question", "", ""
    setup = row.get("setup")
    if setup is not None and not isinstance(setup, str):
        raise RowError("setup", _unknown_setup(setup))
    if setup == NLI:
        premise = _text(row.get("premise"), "premise")
        path, question = "hypothesis", row.get("hypothesis")
    elif isinstance(question, Mapping):
        path, at = "question.stem", "question."
        question, given = question.get("stem"), question.get("choices")
    question = _text(question, path)
    texts, labels = _choices(given, f"{at}choices")
    name = _label(row.get("id"), "id")
    answer, key = _answer(row)
    item = checked_item(name, setup, question, texts, labels, answer, key, at, premise)
    copies = len(texts) - len(item.choices)
    return item, {**_about(row), **_own(row), _COPIES: copies}


def _choices(given: Any, at: str) -> tuple[list[str], list[str]]:
    """Return texts and labels of choices given as a list of objects or as two lists."""
    if isinstance(given, Mapping):
        texts, labels = given.get("text"), given.get("label")
        if not isinstance(texts, list) or not isinstance(labels, list):
            raise RowError(at, "must hold two lists, text and label")
        if len(texts) != len(labels):
            raise RowError(at, f"hold {len(texts)} texts but {len(labels)} labels")
        where = at + ".{}[{}]"
    elif isinstance(given, list):
        for i, choice in enumerate(given):
            if not isinstance(choice, Mapping):
                raise RowError(f"{at}[{i}]", f"is {_kind(choice)}, not an object: text and label")
        texts, labels = ([choice.get(name) for choice in given] for name in ("text", "label"))
        where = at + "[{1}].{0}"
    else:
        raise RowError(at, "are missing" if given is None else f"are {_kind(given)}, not a list")
    return (
        [_text(text, where.format("text", i)) for i, text in enumerate(texts)],
        [_label(label, where.format("label", i)) for i, label in enumerate(labels)],
    )


def _answer(row: Mapping[str, Any]) -> tuple[int | None, int | str | None]:
    """Return the gold as the row gives it: an index, and a label or a value that may be either."""
    answer = row.get("answer") if "setup" in row else None
    key = row.get("answerKey")
    if answer is None and "answerKey" not in row:
        raise RowError("answerKey", "is missing")
    if answer is not None and not _is_integer(answer):
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
    if not _is_integer(value) or value not in _INT32:
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


_READERS: Mapping[str, Callable[[Mapping[str, Any], str], Any]] = {
    "string": _optional_text,
    "int32": _number,
    "list<item: int32>": _numbers,
}
"""How a value is read, by its Arrow type."""


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT64


def _text(value: Any, where: str) -> str:
    if value is None:
        raise RowError(where, "is missing")
    if not isinstance(value, str):
        raise RowError(where, f"is {_kind(value)}, not text")
    if not value.strip():
        raise RowError(where, "is empty")
    return _whole(value, where)


def _whole(value: str, where: str) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise RowError(where, "holds half a character (a lone surrogate)") from None
    return value


def _label(value: Any, where: str) -> str:
    """Return an id or a label, which may be integers, as text."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return _text(str(value) if is_integer else value, where)


def _unknown_setup(value: object) -> str:
    known = ", ".join((*SCORED_SETUPS, *LABELLED_SETUPS))
    return f"is {reprlib.repr(value)}; the setups that are scored are {known}"


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
