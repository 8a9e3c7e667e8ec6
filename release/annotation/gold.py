"""A gold standard: the rows that people agreed on, as a probe of their own.

The folder holds data, manifest and card as any built probe does, and ``annotations.jsonl``, the
labels file of all annotated rows, including those left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.files import already_there, file_sha256, replacing_folder
from kbprobe.format.dataset import (
    ANNOTATIONS,
    CARD,
    DEFAULT_CONFIG,
    files_of,
    write_configs,
)
from kbprobe.format.items import COLUMNS, LABELS, Coded, Items
from kbprobe.format.labels import write_labels
from kbprobe.format.manifest import MANIFEST, read_manifest, write_manifest
from kbprobe.format.setups import CONTROLS
from release.annotation.card import gold_card
from release.annotation.report import Outcome
from release.rows import read_rows, split_entry

if TYPE_CHECKING:
    import pyarrow as pa

_COUNTED = (
    "question", "answer", "choices", "choice_nodes", "choice_families", "cluster", "concept",
    "hops", "distractor_family", "distractor_hops",
)  # fmt: skip


def write_gold(outcome: Outcome, output: Path, overwrite: bool, other_splits: bool) -> bool:
    """Write the rows kept as a probe; see :meth:`release.annotation.round_trip.Imported.write`."""
    source, key = read_manifest(outcome.folder), outcome.key
    kept = {verdict.id: verdict.answer for verdict in outcome.verdicts if verdict.kept}
    if not kept:
        raise UsageError("No row is in the gold standard; nothing was written.")
    request = {
        **source["request"],
        "annotation": {
            **outcome.request,
            "config": key.config,
            "other_splits": other_splits,
        },
    }
    if already_there(output, MANIFEST, request, kind="a probe", overwrite=overwrite):
        return True
    table = _rows_kept(outcome.folder, source, key.config, key.split, kept)
    labelled = _labelled(table, kept)
    tables = {key.split: labelled}
    for entry in files_of(source, key.config) if other_splits else ():
        if entry["split"] != key.split:
            tables[entry["split"]] = read_rows(outcome.folder, entry)
    configs = {DEFAULT_CONFIG: {name: items_of(rows) for name, rows in tables.items()}}
    if key.config == DEFAULT_CONFIG and table["answer"].equals(labelled["answer"]):
        for name in _controls(source, key.split):
            control = _rows_kept(outcome.folder, source, name, key.split, kept)
            configs[name] = {key.split: items_of(control)}
    with replacing_folder(output) as folder:
        files = write_configs(folder, configs, "parquet")
        write_labels(folder / ANNOTATIONS, outcome.labels)
        manifest = {
            **source,
            "kbprobe_version": kbprobe_version(),
            "request": request,
            "counts": _counts(tables, outcome.report.dropped),
            "audit": None,
            "sub_questions": {},
            "files": files,
            "annotation": _provenance(outcome, folder, source),
        }
        sample = labelled.slice(0, 1).to_pylist()[0]
        card = gold_card(outcome.folder, manifest, configs, sample)
        (folder / CARD).write_text(card, encoding="utf-8")
        write_manifest(folder, manifest)
    return False


def _rows_kept(
    folder: Path, manifest: Mapping[str, Any], config: str, split: str, kept: Mapping[str, int]
) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read_rows(folder, split_entry(manifest, config, split))
    return table.filter(pc.is_in(table["id"], pa.array(list(kept), pa.string()))).combine_chunks()


def _controls(manifest: Mapping[str, Any], split: str) -> list[str]:
    """Return the controls that have the split: they show the same rows, with the same ids."""
    found = {entry["config"] for entry in manifest["files"] if entry["split"] == split}
    return [name for name in CONTROLS if name in found]


def _labelled(table: pa.Table, kept: Mapping[str, int]) -> pa.Table:
    """Write the labels into the rows.

    A row whose answer changes loses its triples: they make the old answer true.
    """
    import pyarrow as pa

    schema = table.schema
    rows = table.to_pylist()
    for row in rows:
        label = kept[row["id"]]
        if label != row["answer"] and row["answer"] >= 0:
            row["triples"], row["fact_ids"] = [], []
        row["answer"], row["answerKey"] = label, LABELS[label]
    return pa.Table.from_pylist(rows, schema)


def items_of(table: pa.Table) -> Items:
    """Convert a table of rows to the form in which a build writes them."""
    import pyarrow.compute as pc

    columns: dict[str, Any] = {
        name: table[name].combine_chunks() for name in COLUMNS if name != "choices"
    }
    columns["answer"] = table["answer"].to_numpy()
    texts = pc.struct_field(table["choices"].combine_chunks(), "text")
    coded = pc.list_flatten(texts).dictionary_encode()
    codes = np.asarray(coded.indices).reshape(len(table), -1).astype(np.int64)
    columns["choice_text"] = Coded(coded.dictionary, codes)
    return Items(len(table), columns)


def _counts(tables: Mapping[str, pa.Table], dropped: Mapping[str, int]) -> dict[str, Any]:
    """Count as a build does."""
    import pyarrow as pa

    rows = pa.concat_tables(tables.values()).select(list(_COUNTED)).to_pylist()
    golds = [(row["choice_nodes"] or row["choices"]["text"])[row["answer"]] for row in rows]
    asked = zip((row["question"] for row in rows), golds, strict=True)
    cells: dict[str, Counter[str]] = {}
    for row in sorted(rows, key=lambda row: (row["hops"], row["distractor_hops"])):
        family, distance = row["distractor_family"], row["distractor_hops"]
        label = f"{family} {distance}" if distance else family
        cells.setdefault(str(row["hops"]), Counter())[label] += 1
    distinct = {
        name: len({row[name] for row in rows}) for name in ("question", "concept", "cluster")
    }
    return {
        "rows": len(rows),
        "splits": {name: len(table) for name, table in tables.items()},
        "questions": distinct["question"],
        "question_answer_pairs": len(set(asked)),
        "concepts": distinct["concept"],
        "clusters": distinct["cluster"],
        "mean_cluster": round(len(rows) / distinct["cluster"], 2),
        "golds": len(set(golds)),
        "filled_choices": sum(
            family not in ("gold", row["distractor_family"])
            for row in rows
            for family in row["choice_families"]
        ),
        "cells": cells,
        "dropped": dict(dropped),
    }


def _provenance(outcome: Outcome, folder: Path, source: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the annotation for the manifest. Annotators are not named."""
    report = outcome.report.model_dump(
        mode="json", exclude={"annotators", "missing", "left_out", "probe"}
    )
    path = folder / ANNOTATIONS
    return {
        **report,
        "annotators": sum(not who.excluded for who in outcome.report.annotators),
        "annotators_excluded": sum(who.excluded for who in outcome.report.annotators),
        "keep": outcome.keep,
        "options": outcome.request["options"],
        "source_files": {entry["path"]: entry["sha256"] for entry in source["files"]},
        "file": {
            "path": ANNOTATIONS,
            "bytes": path.stat().st_size,
            "sha256": file_sha256(path),
            "rows": len(outcome.labels),
        },
    }
