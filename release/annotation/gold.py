"""The outcome of an import: labels, and a gold standard of the rows that people agreed on.

A gold standard is itself a probe: the folder holds data, manifest and card like any built probe,
and ``annotations.jsonl``, the labels file of all annotated rows, including those left out.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.files import replacing_folder
from kbprobe.files.targets import taking
from kbprobe.format.card import front_matter
from kbprobe.format.dataset import (
    CARD,
    check_target,
    data_folder,
    probe_files,
    read_rows,
    rows_with,
    write_annotations,
)
from kbprobe.format.items import COLUMNS, LABELS, Coded, Items
from kbprobe.format.labels import LabelVerdict, write_labels
from kbprobe.format.manifest import Manifest, read_manifest, write_manifest
from kbprobe.format.setups import CONTROLS, DEFAULT_CONFIG
from kbprobe.format.shards import write_shards
from kbprobe.format.sheets import Key
from kbprobe.options import option_name, spelled
from kbprobe.reading import read_text
from kbprobe.tables import in_markdown
from release.annotation.options import VoteOptions
from release.annotation.report import ImportReport
from release.cards import LICENCE, TITLES, join_card, sections, split_card

if TYPE_CHECKING:
    import pyarrow as pa

    from kbprobe.format.card import Configs

_COUNTED = (
    "question", "answer", "choices", "choice_nodes", "choice_families", "cluster", "concept",
    "hops", "distractor_family", "distractor_hops",
)  # fmt: skip


_SECTIONS = ("What it cannot show", "Build it again", "Licence", "Citation", "Canary")
"""Sections of the source's card that also apply to the gold standard."""

_ORIGIN = {
    "agreed": "The answers are the ones the probe was built with or, where it had none, the ones "
    "that people voted for.",
    "voted": "The answers are the ones that people voted for, whatever the probe was built with.",
}


@dataclass(frozen=True)
class Imported:
    """The outcome of the votes on a probe's rows, and the files that can be written from it.

    Attributes:
        report: agreement, human accuracy, annotators, what was dropped.
        labels: the lines of the labels file, one per row, including dropped rows.
        request: everything on which the outcome depends.
        keep: which rows are in the gold standard: ``agreed`` or ``voted``.
        folder: the probe.
        key: the key of the export: what each item showed.
        verdicts: the label of each row.
    """

    report: ImportReport
    labels: list[dict[str, Any]]
    request: Mapping[str, Any]
    keep: str
    folder: Path
    key: Key
    verdicts: Sequence[LabelVerdict]

    def write_labels(self, path: str | Path) -> None:
        """Write the labels file: JSON lines, or Parquet, by the name's ending.

        Raises:
            UsageError: the name has another ending.
            KbprobeError: it cannot be written.
        """
        write_labels(Path(path), self.labels, "Choose another file with --labels.")

    def write(
        self, output: str | Path, *, overwrite: bool = False, other_splits: bool = False
    ) -> bool:
        """Write the gold standard, which is a probe folder.

        Args:
            output: folder to write.
            overwrite: replace another probe in the folder.
            other_splits: include the source's other splits as they are, so that models can be
                trained.

        Returns:
            Whether the folder held exactly this already.

        Raises:
            UsageError: no row is kept, or the folder holds something else.
            OSError: it cannot be written.
        """
        source, key, output = read_manifest(self.folder), self.key, Path(output)
        kept = {verdict.id: verdict.answer for verdict in self.verdicts if verdict.kept}
        if not kept:
            raise UsageError(
                f"no row is in the gold standard, so {output} was not written; the report says why "
                "rows were dropped"
            )
        own = {**self.request, "config": key.config, "other_splits": other_splits}
        request = {**source.content["request"], "annotation": own}
        with taking(output, overwrite) as overwrite:
            if check_target(output, request, overwrite):
                return True
            self._write(source, request, kept, output, other_splits)
        return False

    def _write(
        self,
        source: Manifest,
        request: Mapping[str, Any],
        kept: Mapping[str, int],
        output: Path,
        other_splits: bool,
    ) -> None:
        """Write the rows kept, with their labels and their manifest entries."""
        key = self.key

        def rows_kept(config: str) -> pa.Table:
            entry = source.files_of_split(config, key.split)
            return rows_with(read_rows(self.folder, entry), kept)

        table = rows_kept(key.config)
        labelled = _labelled(table, kept)
        tables = {key.split: labelled}
        for split, files in source.split_files(key.config).items() if other_splits else ():
            if split != key.split:
                tables[split] = read_rows(self.folder, files)
        configs = {DEFAULT_CONFIG: {name: items_of(rows) for name, rows in tables.items()}}
        if key.config == DEFAULT_CONFIG and table["answer"].equals(labelled["answer"]):
            # The controls show the same rows, with the same ids.
            there = {entry.config for entry in source.files if entry.split == key.split}
            for name in (name for name in CONTROLS if name in there):
                configs[name] = {key.split: items_of(rows_kept(name))}
        with replacing_folder(output, probe_files(output)) as folder:
            shards = write_shards(folder, configs, "parquet", data_folder)
            manifest = {
                # Records are about the source's rows.
                **{name: entry for name, entry in source.content.items() if name not in TITLES},
                "kbprobe_version": kbprobe_version(),
                "request": request,
                "counts": _counts(tables, self.report.dropped),
                "audit": None,
                "sub_questions": {},
                "files": [shard.file for shard in shards],
                "annotation": self._provenance(folder, source),
            }
            sample = labelled.slice(0, 1).to_pylist()[0]
            card = _gold_card(self.folder, manifest, configs, sample)
            (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
            write_manifest(folder, manifest)

    def _provenance(self, folder: Path, source: Manifest) -> dict[str, Any]:
        """Write the labels, and describe the annotation for the manifest, naming no annotator."""
        unnamed = {"annotators", "missing", "left_out", "probe"}
        excluded = sum(who.excluded for who in self.report.annotators)
        return {
            **self.report.model_dump(mode="json", exclude=unnamed),
            "annotator_kind": "human",
            "annotators": len(self.report.annotators) - excluded,
            "annotators_excluded": excluded,
            "keep": self.keep,
            "options": self.request["options"],
            "source_files": {entry.path: entry.sha256 for entry in source.files},
            "file": write_annotations(folder, self.labels),
        }


def _labelled(table: pa.Table, kept: Mapping[str, int]) -> pa.Table:
    """Write the labels into the rows.

    A row whose answer changes loses its triples, which support the old answer.
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
            family == "random" != row["distractor_family"]
            for row in rows
            for family in row["choice_families"]
        ),
        "cells": cells,
        "dropped": dict(dropped),
    }


def _gold_card(
    source: Path, manifest: Mapping[str, Any], configs: Configs, sample: Mapping[str, Any]
) -> str:
    """Render ``README.md`` of a gold standard, with ``sample`` as its row.

    Limits, licence, citations and canary are those of ``source``, the probe that was annotated.

    Raises:
        UsageError: the source's card is missing or has no front matter.
    """
    from jinja2 import Environment, StrictUndefined

    old, parts = _source_card(source)
    licence = {name: old[name] for name in LICENCE if name in old}
    front = front_matter(manifest, str(sample["setup"]), licence, configs)
    front["pretty_name"] += ", gold standard"
    front["annotations_creators"] = ["machine-generated", "crowdsourced"]
    front["tags"] = [*front["tags"], "human-annotated"]
    template = Path(__file__).with_name("card.md.j2").read_text(encoding="utf-8")
    environment = Environment(  # nosec B701 # Markdown, not HTML
        undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"count": "{:,}".format, "plain": in_markdown}
    text = environment.from_string(template).render(
        m=manifest,
        a=manifest["annotation"],
        sample=json.dumps(sample, indent=2, ensure_ascii=False),
        columns=COLUMNS,
        sections={name: parts.get(name, "") for name in _SECTIONS},
        origin=_ORIGIN[manifest["annotation"]["keep"]],
        controls={name: text for name, text in CONTROLS.items() if name in configs},
        command=_command(manifest),
    )
    return join_card(front, text)


def _command(manifest: Mapping[str, Any]) -> str:
    """Return the command that makes the gold standard, without options at their defaults."""
    words = ["release-probe annotate import DIR --votes FILE..."]
    if manifest["request"]["annotation"]["key"]:
        words.append("--key key.json")
    fields = VoteOptions.model_fields
    for name, value in manifest["annotation"]["options"].items():
        if value is True:
            words.append(option_name(name))
        elif value != fields[name].default:
            words += [option_name(name), spelled(value)]
    return " ".join([*words, "-o GOLD"])


def _source_card(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the front matter and the sections of a card, without their headings."""
    path = folder / CARD
    try:
        front, text = split_card(read_text(path))
    except (OSError, ValueError, UsageError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Build the probe again.") from None
    return front, {name: part.partition("\n")[2].strip() for name, part in sections(text).items()}
