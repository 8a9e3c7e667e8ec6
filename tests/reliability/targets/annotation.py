"""What annotators return: sheets in every layout, and exports of Label Studio."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

from tests.reliability.target import Refused, Target

_ITEMS = [f"item-{at}" for at in range(12)]

Votes = list[tuple[str, str, str]]


def _sheets(folder: Path) -> list[Path]:
    long = "item_id,question,answer,annotator\n" + "".join(
        f'{item},"What is it, ""{item}""?",{letter},{name}\n'
        for name in ("ann", "bob")
        for item, letter in zip(_ITEMS, "ABCDABCDABCD", strict=True)
    )
    wide = "item_id;question;answer_ann;answer_bob\n" + "".join(
        f"{item};'=1+1;A;{letter}\n" for item, letter in zip(_ITEMS, "ABBAABBAABBA", strict=True)
    )
    (folder / "long.csv").write_text(long, encoding="utf-8-sig")
    (folder / "wide.csv").write_text(wide)
    (folder / "excel.csv").write_text(f"sep=;\n{wide}", encoding="utf-16")
    return [folder / "long.csv", folder / "wide.csv", folder / "excel.csv"]


def _label_studio(folder: Path) -> list[Path]:
    full = [
        {
            "id": at,
            "data": {"item_id": item, "question": "What is it?"},
            "annotations": [
                {
                    "completed_by": {"id": 7, "email": "ann@example.org"},
                    "was_cancelled": False,
                    "result": [{"from_name": "answer", "value": {"choices": ["B"]}}],
                }
            ],
        }
        for at, item in enumerate(_ITEMS)
    ]
    small = [{"item_id": item, "answer": "A", "annotator": 3} for item in _ITEMS]
    (folder / "full.json").write_text(json.dumps(full))
    (folder / "small.json").write_text(json.dumps(small))
    return [folder / "full.json", folder / "small.json"]


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
            wide = [key for key in values if key.startswith(("answer_", "vote_"))]
            if "answer" in values or "vote" in values:
                said = values.get("answer", values.get("vote", ""))
                votes.append((item, values.get("annotator", ""), said))
            else:
                names = [key.strip()[7:] for key in row if key and key.strip().lower() in wide]
                votes += [
                    # Any of these may stand between "answer" and the name.
                    (item, name.lstrip(" _.:-"), values[f"answer_{name.lower()}"])
                    for name in names
                    if values[f"answer_{name.lower()}"]
                ]
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
    Target("votes-label-studio", _label_studio, _read),
]
