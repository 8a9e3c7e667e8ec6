"""Votes: reading annotators' files, matching them with rows, and deriving labels.

Every problem is collected, with its file and row, so that all can be reported at once. Rows are
counted as a spreadsheet shows them: the header is row 1.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from kbprobe.errors import UsageError
from kbprobe.files import listed
from kbprobe.format.labels import LabelVerdict, LabelVote, allowed_answers, parse_answer
from kbprobe.format.sheets import KEY, Key, Shown
from kbprobe.parsing import MAX_JSON_BYTES
from kbprobe.reading import read_bytes
from kbprobe.tables import as_written
from release.annotation.options import VoteOptions

_IDS = ("item_id", "item", "id")
_ANNOTATORS = ("annotator", "annotator_id", "worker_id", "participant_id")
_ANSWERS = ("answer", "vote")
_TEXTS = ("question", "premise")
"""Columns of the texts shown, which sheets have and tables of votes do not need."""
_DELIMITERS = ",;\t"
_SEPARATOR = re.compile(r"\Asep=[,;\t][ \t]*(?:\r\n|\r|\n)", re.IGNORECASE)

LISTED = 200
"""Maximum number of problems listed in an error: without the key there are thousands."""


class RawVote(NamedTuple):
    """An answer as it was written, with its file and row."""

    place: str
    item_id: str
    annotator: str
    answer: str
    natural: str = ""


class Vote(NamedTuple):
    """One annotator's answer to one item.

    Attributes:
        place: file and row.
        item: what was shown.
        answer: index in the row's choices; -1 for a mark.
        mark: the mark, or the point of the scale, or "".
        natural: how natural the wording is, as written; "" where nobody asked.
    """

    place: str
    item: Shown
    annotator: str
    answer: int
    mark: str
    natural: str = ""

    @property
    def judgement(self) -> tuple[int, str]:
        """The answer to the item, whether a choice, a mark or a point of the scale."""
        return self.answer, self.mark


class MatchedVotes(NamedTuple):
    """All valid votes, the problems of others, and missing votes."""

    votes: tuple[Vote, ...]
    problems: tuple[str, ...]
    missing: tuple[str, ...]


def match_votes(
    raw: Sequence[RawVote], key: Key, rows: Mapping[str, Mapping[str, Any]]
) -> MatchedVotes:
    """Find the row and the answer of each vote.

    If an annotator votes several times on an item, the first vote counts, and the others are
    problems. ``rows`` are the rows shown, by id.
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
        new = Vote(vote.place, item, vote.annotator, *answer, vote.natural)
        old = first.setdefault((vote.annotator, item.item_id), new)
        if old is not new:
            what = "repeats" if (old.answer, old.mark) == answer else "contradicts"
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


def read_votes(paths: Sequence[Path]) -> tuple[list[RawVote], list[str]]:
    """Read all answers in files, including empty ones, and what is wrong with the files.

    CSV (comma, semicolon or tab; UTF-8, or UTF-16 with its mark) has a column ``item_id`` and
    the columns ``answer`` and ``annotator``, with a row per vote. If the column ``annotator``
    contains only one name, it applies to all rows of the file without a name.

    A table of votes may name any number of annotators. A sheet, which has the column ``question``
    or ``premise``, is filled in by one annotator: a sheet with several names counts for nobody.
    """
    entries = [entry for path in paths for entry in _read(path)]
    votes = [entry for entry in entries if isinstance(entry, RawVote)]
    return votes, [entry for entry in entries if isinstance(entry, str)]


def _read(path: Path) -> Iterator[RawVote | str]:
    """Yield the votes of a file, and descriptions of its problems."""
    try:
        data = read_bytes(path, MAX_JSON_BYTES)
        is_utf16 = data[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = data.decode("utf-16" if is_utf16 else "utf-8-sig")
    except FileNotFoundError:
        yield f"{path}: there is no such file"
    except UnicodeDecodeError as error:
        yield f"{path}: not UTF-8 at byte {error.start:,}; save it as CSV UTF-8"
    except UsageError as error:
        yield str(error)
    else:
        yield from _read_csv(path, text)


def _read_csv(path: Path, text: str) -> Iterator[RawVote | str]:
    # Excel's own hint at the delimiter, which it does not show as a row.
    text = _SEPARATOR.sub("", text, count=1)
    delimiter = max(_DELIMITERS, key=text.splitlines()[0].count) if text.strip() else ","
    table: list[list[str]] = []
    try:
        for cells in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            table.append([as_written(cell.strip()) for cell in cells])
    except csv.Error as error:
        yield f"{path}, row {len(table) + 1}: not CSV ({error})"
        return
    if not table:
        yield f"{path}: empty"
        return
    header, *rows = table
    names = [name.casefold() for name in header]

    item, answer = _find(names, _IDS), _find(names, _ANSWERS)
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        yield f"{path}: two columns are named {twice[0]!r}"
    elif not item:
        yield f"{path}: no column item_id; its columns are {', '.join(header)}"
    elif not answer:
        yield f"{path}: no column answer; its columns are {', '.join(header)}"
    else:
        votes = list(_table_votes(path, names, rows, item, answer))
        shown, who = _find(names, _TEXTS), _annotators(votes)
        if shown and len(who) > 1:
            yield (
                f"{path}: one sheet, but its rows name {len(who)} annotators ({listed(who)}); an "
                "annotator fills in a sheet of their own. If it is a table of votes, remove the "
                f"column {shown}"
            )
        else:
            yield from _named(path, votes)


def _find(names: Sequence[str], known: Sequence[str]) -> str:
    return next((name for name in known if name in names), "")


def _table_votes(
    path: Path, names: Sequence[str], rows: Sequence[list[str]], item: str, answer: str
) -> Iterator[RawVote | str]:
    """Yield the votes in a table's rows; ``item`` and ``answer`` are its columns."""
    annotator = _find(names, _ANNOTATORS)
    for number, cells in enumerate(rows, 2):
        place = f"{path}, row {number}"
        row = dict(zip_longest(names, cells[: len(names)], fillvalue=""))
        if any(cells[len(names) :]):
            yield f"{place}: {len(cells)} cells, but the header has {len(names)}"
        elif row[item]:
            who, natural = row.get(annotator, ""), row.get("natural", "")
            yield RawVote(place, row[item], who, row[answer], natural)
        elif row[answer]:
            yield f"{place}: no item id"


def _annotators(entries: Iterable[RawVote | str]) -> list[str]:
    """Return the names in the column annotator, sorted."""
    return sorted({entry.annotator for entry in entries if isinstance(entry, RawVote)} - {""})


def _named(path: Path, entries: Sequence[RawVote | str]) -> Iterator[RawVote | str]:
    """Assign the file's only annotator name to votes without one."""
    votes = [entry for entry in entries if isinstance(entry, RawVote)]
    names = _annotators(votes)
    lost = [vote.place for vote in votes if vote.answer and not vote.annotator]
    if len(names) != 1 and lost:
        if names:
            yield from (f"{place}: names no annotator" for place in lost)
        else:
            yield (
                f"{path}: names no annotator; write the name into the column annotator (one cell "
                "is enough)"
            )
    for entry in entries:
        if isinstance(entry, str) or entry.annotator:
            yield entry
        elif len(names) == 1:
            yield entry._replace(annotator=names[0])
        elif not lost:
            yield entry


def problem_list(problems: Sequence[str], without_key: bool = False) -> str:
    """Return the message of an error that lists what is wrong with votes."""
    hint = ""
    if without_key and any("was exported" in problem for problem in problems):
        hint = f"\nVotes on exported sheets need their key: --key SHEETS/{KEY}"
    many = "1 problem" if len(problems) == 1 else f"{len(problems):,} problems"
    lines = "".join(f"\n  {problem}" for problem in problems[:LISTED])
    if len(problems) > LISTED:
        lines += f"\n  ... and {len(problems) - LISTED:,} more (--skip-bad --json lists all)"
    return (
        f"the votes have {many}; nothing was written.{lines}\n"
        f"Correct the files, or leave these votes out with --skip-bad.{hint}"
    )


TOO_FEW = "too few votes"
NO_LABEL = "no answer has enough votes"
NONSENSE = "found senseless"
OTHER = "the votes contradict the knowledge base"


@dataclass(frozen=True)
class Rule:
    """How many votes an answer needs to become the label.

    ``majority``: more than half of the votes (two of three annotators, three of five), the rule of
    oLMpics and Kim et al. (2019). ``unanimous``: all. ``at-least-N``: N, and more than any other
    answer has. Marks (none, two, nonsense) are votes for none of the answers: they count as votes
    but never become the label.
    """

    name: str

    @classmethod
    def parse(cls, name: str) -> Rule:
        """Read a rule; UsageError if there is none of that name."""
        if name in ("majority", "unanimous") or re.fullmatch(r"at-least-[1-9]\d*", name):
            return cls(name)
        raise UsageError(
            f"--rule {name}: must be majority, unanimous or at-least-N (such as at-least-3)."
        )

    def label(self, answers: Iterable[int]) -> int:
        """Return the answer that becomes the label, or -1 for none.

        >>> Rule("majority").label([2, 2, -1]), Rule("majority").label([2, 2, 1, 0])
        (2, -1)
        >>> Rule("at-least-2").label([2, 2, 1, 0]), Rule("at-least-2").label([2, 2, 1, 1])
        (2, -1)
        """
        given = list(answers)
        ranked = Counter(answer for answer in given if answer >= 0).most_common(2)
        if not ranked:
            return -1
        best, votes = ranked[0]
        if len(ranked) == 2 and ranked[1][1] == votes:
            return -1
        return best if votes >= self._needed(len(given)) else -1

    def _needed(self, votes: int) -> int:
        if self.name == "majority":
            return votes // 2 + 1
        return votes if self.name == "unanimous" else int(self.name.rpartition("-")[2])


def decide(
    votes: Sequence[Vote],
    rows: Mapping[str, Mapping[str, Any]],
    options: VoteOptions,
    scale: bool = False,
) -> list[LabelVerdict]:
    """Decide on every row that was shown as an item, in the order of ``rows``.

    Args:
        votes: votes on items; none on repeats and checks.
        rows: the rows shown as items, by id; those without votes are dropped as having too few.
        options: ``keep`` is not "auto". Kim et al. keep rows whose votes agree with the answer they
            were built with for acceptability, and take the voted label for pairs of sentences.
        scale: whether they are pairs of sentences, judged on a scale: a pair that anybody calls
            nonsense is dropped.
    """
    rule = Rule.parse(options.rule)
    by_row: dict[str, list[Vote]] = {row: [] for row in rows}
    for vote in votes:
        by_row[vote.item.id].append(vote)
    return [_verdict(by_row[name], row, rule, options, scale) for name, row in rows.items()]


def _verdict(
    votes: list[Vote], row: Mapping[str, Any], rule: Rule, options: VoteOptions, scale: bool
) -> LabelVerdict:
    answers, texts = [vote.answer for vote in votes], row["choices"]["text"]
    label = rule.label(answers)
    leading = Counter(answer for answer in answers if answer >= 0).most_common(1)
    agreement = leading[0][1] / len(votes) if leading else 0.0
    reason = ""
    if len(votes) < options.min_votes:
        label, reason = -1, TOO_FEW
    elif scale and any(vote.mark == "nonsense" for vote in votes):
        label, reason = -1, NONSENSE
    elif label < 0:
        reason = NO_LABEL
    elif options.keep == "agreed" and row["answer"] >= 0 and label != row["answer"]:
        reason = OTHER
    counted = tuple(
        LabelVote(
            row["id"],
            vote.annotator,
            vote.answer,
            texts[vote.answer] if vote.answer >= 0 else vote.mark,
        )
        for vote in votes
    )
    return LabelVerdict(row["id"], label, agreement, reason, rule.name, counted)
