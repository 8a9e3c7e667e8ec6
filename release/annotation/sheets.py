"""Writing an export: CSV sheets, Label Studio tasks, a page of instructions, and the key.

Manifest: ``OUT/sheets/`` is what annotators get (``batch-001.csv`` ..., ``label-studio.json`` and
``label-studio.xml``, ``instructions.html``); ``OUT/key.json`` is not for them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.format.answers import SCALE, marks_of
from kbprobe.format.items import LABELS
from kbprobe.format.reading import SHEETS, texts_shown
from kbprobe.format.setups import NLI
from kbprobe.format.sheet_key import KEY, Shown
from kbprobe.tables import csv_text

if TYPE_CHECKING:
    from release.annotation.options import SheetOptions
    from release.annotation.plan import Sheets

INSTRUCTIONS = "instructions.html"
TASKS = "label-studio.json"
LABELING = "label-studio.xml"


def write_sheets(sheets: Sheets, options: SheetOptions, folder: Path) -> None:
    """Write an export into an empty folder.

    The same plan and options give the same bytes.
    """
    place = folder / SHEETS
    place.mkdir()
    if options.format != "label-studio":
        for number, items in sheets.batches.items():
            text = _csv(sheets, items)
            # utf-8-sig begins with the byte order mark.
            data = text.encode("utf-8-sig" if options.bom else "utf-8")
            (place / f"batch-{number:03d}.csv").write_bytes(data)
    if options.format != "csv":
        tasks = json.dumps(_tasks(sheets), indent=1, ensure_ascii=False)
        (place / TASKS).write_text(f"{tasks}\n", encoding="utf-8", newline="\n")
        (place / LABELING).write_text(_labeling(sheets), encoding="utf-8", newline="\n")
    (place / INSTRUCTIONS).write_text(
        _instructions(sheets, options), encoding="utf-8", newline="\n"
    )
    sheets.key.write(folder / KEY)


def _choices(sheets: Sheets, item: Shown) -> list[str]:
    """Return the choices that annotators see, in order; none where they use the scale."""
    texts = sheets.rows[item.id]["choices"]["text"]
    return [] if sheets.key.scheme == "scale" else [texts[at] for at in item.order]


def _csv(sheets: Sheets, items: Sequence[Shown]) -> str:
    """Return one sheet: everything quoted, lines ended as in RFC 4180."""
    choices = [_choices(sheets, item) for item in items]
    width = max(map(len, choices))
    columns = [*texts_shown(sheets.rows[items[0].id]), *LABELS[:width]]
    lines: list[list[Any]] = [["item_id", "batch", *columns, "answer", "annotator", "comment"]]
    for item, own in zip(items, choices, strict=True):
        cells = [*texts_shown(sheets.rows[item.id]).values(), *own, *[""] * (width - len(own))]
        lines.append([item.item_id, item.batch, *cells, "", "", ""])
    return csv_text(lines, quoting=csv.QUOTE_ALL)


def _tasks(sheets: Sheets) -> list[dict[str, Any]]:
    """Return Label Studio's tasks, each with its choices in its data."""
    tasks = []
    for item in sheets.key.items:
        about = {"item_id": item.item_id, "batch": item.batch, **texts_shown(sheets.rows[item.id])}
        answers: dict[Any, str] = dict(zip(LABELS, _choices(sheets, item), strict=False))
        options = [f"{answer}. {text}" for answer, text in (answers or SCALE).items()]
        options += [f"{mark}: {text}" for mark, text in marks_of(_kind(sheets)).items()]
        tasks.append({"data": about | {"options": [{"value": text} for text in options]}})
    return tasks


def _labeling(sheets: Sheets) -> str:
    """Return Label Studio's labeling configuration."""
    names = list(texts_shown(next(iter(sheets.rows.values()))))
    texts = "\n".join(f'  <Text name="{name}" value="${name}"/>' for name in names)
    return f"""<View>
  <Header value="{_TASK[_kind(sheets)]}"/>
{texts}
  <Choices name="answer" toName="{names[-1]}" value="$options" choice="single-radio"
           required="true" requiredMessage="Choose an answer, or one of the last options."/>
  <TextArea name="comment" toName="{names[-1]}" placeholder="Comment (may stay empty)"
            maxSubmissions="1"/>
</View>
"""


_TASK = {
    "mc_qa": "Which answer fits best?",
    "mc_mlm": "Which answer fits the gap?",
    "acceptability": "Is the sentence acceptable?",
    "nli": "If the first sentence is true, is the second one?",
}
"""The task of annotators, by the setup of the rows."""


def _kind(sheets: Sheets) -> str:
    setup = str(next(iter(sheets.rows.values()))["setup"])
    return setup if setup in _TASK else "mc_qa"


def _instructions(sheets: Sheets, options: SheetOptions) -> str:
    from jinja2 import Environment, StrictUndefined

    template = Path(__file__).with_name("instructions.html.j2")
    environment = Environment(undefined=StrictUndefined, autoescape=True, trim_blocks=True)
    kind = _kind(sheets)
    example = None
    if (row := sheets.example) is not None:
        texts = row["choices"]["text"]
        example = {
            "texts": list(texts_shown(row).values()),
            "choices": list(zip(LABELS[: len(texts)], texts, strict=True)),
            "answer": row["answer"],
        }
        if kind == NLI:
            example["points"] = {"entailment": "5 or 4", "neutral": "3"}.get(
                texts[row["answer"]], "2 or 1"
            )
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        about=sheets.manifest.about,
        task=_TASK[kind],
        kind=kind,
        scale=SCALE,
        marks=marks_of(kind),
        example=example,
        csv=options.format != "label-studio",
        label_studio=options.format != "csv",
        rows=max(len(items) for items in sheets.batches.values()),
    )
