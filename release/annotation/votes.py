"""Votes: reading the files that annotators and crowd platforms return, and matching them with rows.

Every problem is collected, with its file and row, so that all can be reported at once. Rows are
counted as a spreadsheet shows them: the header is row 1.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from release.annotation.answers import allowed_answers, parse_answer
from release.annotation.key import Key, Shown

_IDS = ("item_id", "input.item_id", "item", "id")
_ANNOTATORS = (
    "annotator", "annotator_id", "worker_id", "workerid", "participant_id", "completed_by",
)  # fmt: skip
_ANSWERS = ("answer", "answer.answer", "vote")
_WIDE = re.compile(r"(?:answer|vote)[ _.:-]+(?P<annotator>.+)", re.IGNORECASE)
_DELIMITERS = ",;\t"
_SEPARATOR = re.compile(r"\Asep=[,;\t][ \t]*(?:\r\n|\r|\n)", re.IGNORECASE)


class RawVote(NamedTuple):
    """An answer as written, and where."""

    place: str
    item_id: str
    annotator: str
    answer: str


@dataclass
class RawVotes:
    """All answers in some files, including empty ones, and what is wrong with the files."""

    votes: list[RawVote] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Vote(NamedTuple):
    """One annotator's answer to one item.

    Attributes:
        place: file and row.
        item: what was shown.
        annotator: who answered.
        answer: index in the row's choices; -1 for a mark.
        said: the mark, or the point of the scale, or "".
    """

    place: str
    item: Shown
    annotator: str
    answer: int
    said: str


@dataclass(frozen=True)
class MatchedVotes:
    """All votes that count, what is wrong with others, and which are missing."""

    votes: tuple[Vote, ...]
    problems: tuple[str, ...]
    missing: tuple[str, ...]


def match_votes(
    raw: Sequence[RawVote], key: Key, rows: Mapping[str, Mapping[str, Any]]
) -> MatchedVotes:
    """Find the row and the answer of each vote.

    Of several votes of one annotator on one item the first counts, and the others are problems.

    Args:
        raw: the votes as written, including empty ones.
        key: which row each item shows.
        rows: the rows shown, by id.
    """
    items = {item.item_id: item for item in key.items}
    first: dict[tuple[str, str], Vote] = {}
    problems, empty = [], []
    for vote in raw:
        item = items.get(vote.item_id)
        if item is None:
            problems.append(f"{vote.place}: no item {vote.item_id!r} was exported")
            continue
        if not vote.answer:
            empty.append(vote)
            continue
        row = rows[item.id]
        answer = parse_answer(vote.answer, item.order, key.scheme, row)
        if answer is None:
            allowed = ", ".join(allowed_answers(len(item.order), key.scheme, row["setup"]))
            problems.append(f"{vote.place}: {vote.answer!r} is none of {allowed}")
            continue
        new = Vote(vote.place, item, vote.annotator, *answer)
        old = first.setdefault((vote.annotator, item.item_id), new)
        if old is not new:
            what = "repeats" if (old.answer, old.said) == answer else "contradicts"
            problems.append(f"{vote.place}: {what} the vote of {old.annotator} at {old.place}")
    answered = {item_id for _, item_id in first}
    missing = [
        f"{vote.place}: no answer to {vote.item_id}"
        for vote in empty
        if (vote.annotator, vote.item_id) not in first
    ]
    missing += [
        f"batch {item.batch}: nobody answered {item.item_id}"
        for item in key.items
        if item.item_id not in answered
    ]
    return MatchedVotes(tuple(first.values()), tuple(problems), tuple(missing))


def read_votes(paths: Sequence[Path]) -> RawVotes:
    """Read files of votes, in the order given.

    CSV (comma, semicolon or tab; UTF-8, or UTF-16 with its mark) has a column ``item_id`` and
    either ``answer`` and ``annotator``, with a row per vote (long), or a column ``answer_NAME`` for
    each annotator (wide). One name in the column ``annotator`` stands for all rows of a file that
    name none. Mechanical Turk's ``Input.item_id``, ``Answer.answer`` and ``WorkerId`` are
    understood; rejected assignments are left out. JSON is Label Studio's export, full or JSON-MIN.
    """
    found = RawVotes()
    for path in paths:
        try:
            text = _decoded(path.read_bytes())
        except FileNotFoundError:
            found.problems.append(f"{path}: there is no such file")
        except UnicodeDecodeError as error:
            where = f"{path}: not UTF-8 at byte {error.start:,}"
            found.problems.append(f"{where}; save it as CSV UTF-8")
        except OSError as error:
            found.problems.append(f"{path}: {error.strerror or error}")
        else:
            is_json = path.suffix.lower() == ".json" or text.lstrip()[:2] in ("[{", "[\n", "[]")
            (_read_json if is_json else _read_csv)(path, text, found)
    return found


def _decoded(data: bytes) -> str:
    is_utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    return data.decode("utf-16" if is_utf16 else "utf-8-sig")


def _read_csv(path: Path, text: str, found: RawVotes) -> None:
    # Excel's own hint at the delimiter, which it does not show as a row.
    text = _SEPARATOR.sub("", text, count=1)
    delimiter = max(_DELIMITERS, key=text.splitlines()[0].count) if text.strip() else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    try:
        for cells in reader:
            rows.append([cell.strip() for cell in cells])
    except csv.Error as error:
        found.problems.append(f"{path}, row {len(rows) + 1}: not CSV ({error})")
        return
    columns = _Columns.of(rows[0], rows[1:]) if rows else "empty"
    if isinstance(columns, str):
        found.problems.append(f"{path}: {columns}")
        return
    found.votes += _named(path, columns.read(path, rows[1:], found.problems), found.problems)


@dataclass(frozen=True)
class _Columns:
    """The columns of a table of votes; ``answers``: column, and annotator if its name says it."""

    width: int
    item: int
    annotator: int | None
    status: int | None
    answers: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, header: list[str], rows: Sequence[list[str]]) -> _Columns | str:
        """Find the columns by their names; return what is wrong if they are not there."""
        names = [name.casefold() for name in header]
        if twice := sorted({name for name in names if name and names.count(name) > 1}):
            return f"two columns are named {twice[0]!r}"

        def find(*known: str) -> int | None:
            return next((names.index(name) for name in known if name in names), None)

        item, answer = find(*_IDS), find(*_ANSWERS)
        if item is None:
            return f"no column item_id; its columns are {', '.join(header)}"
        wide = [
            (at, match["annotator"].strip())
            for at, name in enumerate(header)
            if (match := _WIDE.fullmatch(name)) and name.casefold() not in _ANSWERS
        ]
        if answer is not None and any(len(row) > answer and row[answer] for row in rows):
            wide = []
        if answer is None and not wide:
            return f"no column answer, nor answer_NAME; its columns are {', '.join(header)}"
        answers = tuple(wide) or ((answer or 0, ""),)
        return cls(len(header), item, find(*_ANNOTATORS), find("assignmentstatus"), answers)

    def read(self, path: Path, rows: Sequence[list[str]], problems: list[str]) -> Iterator[RawVote]:
        """Yield the votes in the rows; add what is wrong with rows to ``problems``."""
        for number, cells in enumerate(rows, 2):
            place = f"{path}, row {number}"
            if any(cells[self.width :]):
                problems.append(f"{place}: {len(cells)} cells, but the header has {self.width}")
                continue
            cells = [*cells, *[""] * (self.width - len(cells))]
            if self.status is not None and cells[self.status].casefold() == "rejected":
                continue
            if not cells[self.item]:
                if any(cells[at] for at, _ in self.answers):
                    problems.append(f"{place}: no item id")
                continue
            for at, name in self.answers:
                if name and not cells[at]:
                    continue  # a wide table has columns for annotators who saw other items
                own = "" if self.annotator is None else cells[self.annotator]
                where = f"{place}, column {name}" if name else place
                yield RawVote(where, cells[self.item], name or own, cells[at])


def _named(path: Path, found: Iterator[RawVote], problems: list[str]) -> list[RawVote]:
    """Give the votes without an annotator the one name that the file has."""
    votes = list(found)
    names = {vote.annotator for vote in votes} - {""}
    if len(names) == 1:
        return [vote._replace(annotator=min(names)) for vote in votes]
    unnamed = [vote for vote in votes if not vote.annotator]
    if not any(vote.answer for vote in unnamed):
        return votes
    if names:
        problems += [f"{vote.place}: names no annotator" for vote in unnamed if vote.answer]
    else:
        problems.append(
            f"{path}: names no annotator; write the name into the column annotator (one cell is "
            "enough)"
        )
    return [vote for vote in votes if vote.annotator]


def _read_json(path: Path, text: str, found: RawVotes) -> None:
    try:
        tasks = json.loads(text)
    except ValueError as error:
        found.problems.append(f"{path}: not JSON ({error})")
        return
    if not isinstance(tasks, list):
        found.problems.append(f"{path}: not a list of tasks, as Label Studio exports them")
        return
    for number, task in enumerate(tasks, 1):
        place = f"{path}, task {number}"
        if not isinstance(task, dict):
            found.problems.append(f"{place}: not an object")
            continue
        data = task.get("data", task)
        item = data.get("item_id") if isinstance(data, dict) else None
        if not isinstance(item, str) or not item.strip():
            found.problems.append(f"{place}: no item_id in its data")
            continue
        for where, annotator, answers in _annotations(place, task):
            if answers is None:
                found.problems.append(f"{where}: no result")
            elif len(answers) > 1:
                found.problems.append(f"{where}: {len(answers)} answers, but one is asked for")
            elif annotator is None:
                found.problems.append(f"{where}: names no annotator")
            else:
                found.votes.append(RawVote(where, item.strip(), annotator, "".join(answers)))


def _annotations(
    place: str, task: dict[str, Any]
) -> Iterator[tuple[str, str | None, list[str] | None]]:
    """Yield place, annotator (None: none is named) and answers (None: malformed)."""
    if not isinstance(given := task.get("annotations"), list):
        yield place, _annotator(task.get("annotator")), _answers(task.get("answer"))
        return
    for number, annotation in enumerate(given, 1):
        where = f"{place}, annotation {number}"
        if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
            yield where, None, None
            continue
        results = [] if annotation.get("was_cancelled") else annotation["result"]
        answers = [
            answer
            for result in results
            if isinstance(result, dict) and result.get("from_name") == "answer"
            for answer in _answers(result.get("value"))
        ]
        yield where, _annotator(annotation.get("completed_by")), answers


def _annotator(named: Any) -> str | None:
    """Read who annotated: a number, a name, or an account with an e-mail address."""
    if isinstance(named, dict):
        named = named.get("email") or named.get("id")
    if isinstance(named, bool) or not isinstance(named, str | int):
        return None
    return str(named).strip() or None


def _answers(value: Any) -> list[str]:
    """Read Label Studio's choices: a list, a single one, or an object that holds either."""
    if isinstance(value, dict):
        value = value.get("choices")
    if isinstance(value, str):
        value = [value]
    return [str(answer).strip() for answer in value] if isinstance(value, list) else []
