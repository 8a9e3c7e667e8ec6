"""What annotators return: sheets, as spreadsheets save them."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from tests.reliability.target import Refused, Target

_ITEMS = [f"item-{at}" for at in range(12)]

Votes = list[tuple[str, str, str]]


def _sheets(folder: Path) -> list[Path]:
    long = "item_id,remark,answer,annotator\n" + "".join(
        f'{item},"What is it, ""{item}""?",{letter},{name}\n'
        for name in ("ann", "bob")
        for item, letter in zip(_ITEMS, "ABCDABCDABCD", strict=True)
    )
    other = "item_id;question;answer;annotator\n" + "".join(
        f"{item};'=1+1;{letter};cy\n" for item, letter in zip(_ITEMS, "ABBAABBAABBA", strict=True)
    )
    (folder / "long.csv").write_text(long, encoding="utf-8-sig")
    (folder / "excel.csv").write_text(f"sep=;\n{other}", encoding="utf-16")
    return [folder / "long.csv", folder / "excel.csv"]


def _read(path: Path) -> Votes:
    """Read the votes; what is wrong with a file is refused, as ``annotate import`` does."""
    from kbprobe.errors import UsageError
    from release.annotation.votes import problem_list, read_votes

    votes, problems = read_votes([path])
    if problems:
        raise UsageError(problem_list(problems))
    return sorted((vote.item_id, vote.annotator, vote.answer) for vote in votes)


def _expected_sheet(path: Path) -> Votes:
    """Read with the csv module, whose rows are dictionaries."""
    content = path.read_bytes()
    try:
        utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = content.decode("utf-16" if utf16 else "utf-8-sig")
        if text[:4].lower() == "sep=":
            text = text.partition("\n")[2]
        first = text.splitlines()[0]
        delimiter = max(",;\t", key=first.count)
        rows = list(csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        votes = []
        for row in rows:
            values = {(key or "").strip().lower(): (v or "") for key, v in row.items() if key}
            values = {key: _unmarked(value.strip()) for key, value in values.items()}
            item = next(values[name] for name in ("item_id", "item", "id") if name in values)
            if not item:
                continue
            said = next(values[name] for name in ("answer", "vote") if name in values)
            votes.append((item, values.get("annotator", ""), said))
        return sorted(votes)
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {error}") from error


def _unmarked(cell: str) -> str:
    """A cell without the apostrophe that keeps spreadsheets from running it."""
    return cell[1:] if re.match(r"' *[=+\-@\t\r\n|%＝＋－＠]", cell) else cell


def _read_sheet(path: Path) -> Votes:
    return [vote for vote in _read(path) if vote[2]]


def _expected_votes(path: Path) -> Votes:
    votes = _expected_sheet(path)
    names = {annotator for _, annotator, _ in votes if annotator}
    lone = names.pop() if len(names) == 1 else ""
    return sorted((item, who or lone, said) for item, who, said in votes if said)


TARGETS = [
    Target("votes-csv", _sheets, _read_sheet, _expected_votes, both_refuse=False),
]
