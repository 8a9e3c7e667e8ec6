"""Annotation round trip: export sheets, import votes, and write a gold standard from them.

>>> from release.annotation.round_trip import SheetOptions, VoteOptions, export_sheets, import_votes
>>> export_sheets("probes/wordnet_hypernymy", "sheets", n=500, seed=1)  # doctest: +SKIP
>>> done = import_votes(
...     "probes/wordnet_hypernymy", ["ann.csv", "bob.csv", "cy.csv"], key="sheets/key.json"
... )  # doctest: +SKIP
>>> done.report.agreement.alpha  # doctest: +SKIP
0.71
>>> done.write("probes/wordnet_hypernymy_gold")  # doctest: +SKIP

The papers' practice: three annotators (Kim et al., 2019) or five (oLMpics) per row; the majority
makes the label; pairs of sentences are judged on a scale of five points, and those that anyone
finds senseless are dropped (Kim et al., section 4).
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.cli import kbprobe_version
from kbprobe.errors import KbprobeError
from kbprobe.files import file_sha256
from kbprobe.format.dataset import read_rows, rows_by_id
from kbprobe.format.items import LABELS
from kbprobe.format.labels import SCALE, marks_of, scheme_of
from kbprobe.format.manifest import read_manifest
from kbprobe.format.setups import NLI
from kbprobe.format.sheets import (
    KEY,
    SHEETS,
    Key,
    Shown,
    read_key,
    texts_shown,
    write_sheet_folder,
)
from kbprobe.tables import csv_text
from release.annotation.gold import Imported
from release.annotation.options import SheetOptions, VoteOptions
from release.annotation.plan import plan_sheets
from release.annotation.report import ImportReport, describe_annotators, failed_checks, summarise
from release.annotation.votes import (
    MatchedVotes,
    Rule,
    Vote,
    decide,
    match_votes,
    problem_list,
    read_votes,
)

if TYPE_CHECKING:
    from release.annotation.options import SheetOptions
    from release.annotation.plan import Sheets

INSTRUCTIONS = "instructions.html"


def write_sheets(sheets: Sheets, folder: Path) -> None:
    """Write an export into an empty folder.

    The same plan gives the same bytes.
    """
    place = folder / SHEETS
    place.mkdir()
    for number, items in sheets.batches.items():
        (place / f"batch-{number:03d}.csv").write_bytes(_csv(sheets, items).encode("utf-8"))
    (place / INSTRUCTIONS).write_text(_instructions(sheets), encoding="utf-8", newline="\n")
    sheets.key.write(folder / KEY)


def _choices(sheets: Sheets, item: Shown) -> list[str]:
    """Return the choices that annotators see, in order; none where they use the scale."""
    texts = sheets.rows[item.id]["choices"]["text"]
    return [] if sheets.key.scheme == "scale" else [texts[at] for at in item.order]


def _csv(sheets: Sheets, items: Sequence[Shown]) -> str:
    """Return one sheet as CSV: everything quoted, with line endings as in RFC 4180."""
    choices = [_choices(sheets, item) for item in items]
    width = max(map(len, choices))
    columns = [*texts_shown(sheets.rows[items[0].id]), *LABELS[:width]]
    lines: list[list[Any]] = [["item_id", "batch", *columns, "answer", "annotator", "comment"]]
    for item, own in zip(items, choices, strict=True):
        cells = [*texts_shown(sheets.rows[item.id]).values(), *own, *[""] * (width - len(own))]
        lines.append([item.item_id, item.batch, *cells, "", "", ""])
    return csv_text(lines, quoting=csv.QUOTE_ALL)


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


def _instructions(sheets: Sheets) -> str:
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
        rows=max(len(items) for items in sheets.batches.values()),
    )


__all__ = ["Imported", "SheetOptions", "VoteOptions", "export_sheets", "import_votes"]


def export_sheets(
    folder: str | Path, output: str | Path, *, overwrite: bool = False, **options: Any
) -> tuple[list[Path], bool]:
    """Write annotation sheets of a built probe.

    Args:
        folder: the probe; its rows may be unlabelled.
        output: folder to write: ``sheets/`` for annotators, and ``key.json``, which nobody else may
            see.
        overwrite: replace another export in the folder, unless its sheets were filled in.
        **options: see :class:`SheetOptions`.

    Returns:
        The files, relative to ``output``, and whether they were there already.

    Raises:
        UsageError: an option is impossible, the folder holds no such split or too few rows, or
            ``output`` holds something else, or sheets that were filled in.
        KbprobeError: a data file is damaged.
        OSError: the output cannot be written.
    """
    chosen = SheetOptions.parse(options, "annotate export")
    sheets, output = plan_sheets(Path(folder), chosen), Path(output)
    request = {
        "probe": sheets.key.rows_sha256,
        "options": chosen.model_dump(mode="json"),
        "kbprobe_version": kbprobe_version(),
    }
    return write_sheet_folder(
        output,
        request,
        lambda new: write_sheets(sheets, new),
        kind="an export of sheets",
        overwrite=overwrite,
    )


def import_votes(
    folder: str | Path,
    votes: Sequence[str | Path],
    *,
    key: str | Path | None = None,
    **options: Any,
) -> Imported:
    """Read votes on a probe's rows, and derive labels from them, without writing anything.

    Args:
        folder: the probe that was exported.
        votes: files of votes, see :func:`release.annotation.votes.read_votes`.
        key: the export's ``key.json``; without it votes name the probe's own ids, with letters in
            the order of its choices.
        **options: see :class:`VoteOptions`.

    Raises:
        UsageError: an option is impossible, or the key is of another build.
        KbprobeError: any vote is malformed, unknown, duplicated or contradictory; the message lists
            all of them by file and row. With ``skip_bad``, only if none is left.
        MissingDependencyError: the package krippendorff is not installed.
    """
    chosen = VoteOptions.parse(options, "annotate import")
    paths, folder = [Path(path) for path in votes], Path(folder)
    key_path = None if key is None else Path(key)
    rule = Rule.parse(chosen.rule)
    shown, rows, matched, problems = read_back(folder, paths, key_path, chosen)
    if problems and not chosen.skip_bad:
        raise KbprobeError(problem_list(problems, without_key=key is None))
    if not matched.votes:
        names = ", ".join(map(str, paths))
        raise KbprobeError("\n  ".join([f"No vote was found in {names}", *problems]))
    failed = failed_checks(matched.votes, chosen.pass_checks)
    excluded = failed if chosen.exclude_failing else set()
    counted = [
        vote
        for vote in matched.votes
        if vote.item.kind == "item" and vote.annotator not in excluded
    ]
    items = {item.id: rows[item.id] for item in shown.items if item.kind == "item"}
    scale = shown.scheme == "scale"
    annotation = read_manifest(folder).annotation
    read = annotation is not None and annotation.annotator_kind not in (None, "human")
    keep = chosen.keep
    if keep == "auto":  # answers that people did not give are replaced by theirs
        keep = "voted" if scale or read else "agreed"
    verdicts = decide(counted, items, chosen.model_copy(update={"keep": keep}), scale)
    report = ImportReport(
        probe=shown.probe,
        split=shown.split,
        rule=rule.name,
        **summarise(counted, verdicts, items, chosen.min_votes, scale),
        annotators=describe_annotators(matched.votes, verdicts, failed, excluded),
        missing=list(matched.missing),
        left_out=problems,
    )
    names_of = _names(matched.votes)
    labels = [verdict.line(names_of, items[verdict.id]["choices"]["text"]) for verdict in verdicts]
    request = {
        "votes": [file_sha256(path) for path in paths],
        "key": None if key_path is None else file_sha256(key_path),
        "rows_sha256": shown.rows_sha256,
        "options": chosen.model_dump(mode="json"),
    }
    return Imported(report, labels, request, keep, folder, shown, verdicts)


def read_back(
    folder: Path, votes: Sequence[Path], path: Path | None, options: VoteOptions
) -> tuple[Key, dict[str, dict[str, Any]], MatchedVotes, list[str]]:
    """Read filled-in sheets, and match them with the rows of the probe.

    Returns:
        The key (without one, a key that maps ids to themselves), the rows that it shows by id, the
        votes, and all that is wrong with files and votes.
    """
    raw, problems = read_votes(votes)
    manifest = read_manifest(folder)
    key = None if path is None else read_key(path)
    config, split = (key or options).config, (key or options).split
    entry = manifest.files_of_split(config, split)
    ids = {split: {vote.item_id for vote in raw}}
    if key is not None and path is not None:
        key.check_fits(manifest, entry, path)
        ids = {split: set()}
        for item in key.items:
            ids.setdefault(item.split, set()).add(item.id)
    rows: dict[str, dict[str, Any]] = {}
    scheme = None
    for name, wanted in ids.items():
        table = read_rows(folder, manifest.files_of_split(config, name))
        scheme = scheme or scheme_of(table, f"{folder}, split {name}")
        rows |= rows_by_id(table, wanted)
    if key is None:
        items = tuple(
            Shown(name, name, split, 1, "item", tuple(range(len(row["choices"]["text"]))))
            for name, row in rows.items()
        )
        of = (manifest.probe, config, split, entry.rows_digest)
        key = Key(*of, seed=0, scheme=scheme or "choices", items=items)
    elif path is not None:
        key.check_rows(rows, folder, path)
    matched = match_votes(raw, key, rows)
    return key, rows, matched, [*problems, *matched.problems]


def _names(votes: Sequence[Vote]) -> dict[str, str]:
    """Return the names of annotators in files: numbers, for privacy."""
    names = sorted({vote.annotator for vote in votes})
    return {name: f"annotator-{at}" for at, name in enumerate(names, 1)}
