"""Flat rows: separate columns for a question, a list of choices and the right one's letter.

Probes keep their choices in a structure. Tools that are told columns by name, such as the
``eval.yaml`` of the Hub's benchmarks, cannot reach into it, and read these rows instead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import file_sha256
from kbprobe.format.card import COLUMN, canary_of, config_entries
from kbprobe.format.dataset import data_folder, row_groups
from kbprobe.format.items import COLUMNS
from kbprobe.format.manifest import DataFile, Manifest, SplitFiles
from kbprobe.format.parquet import UNIQUE, parquet_file
from kbprobe.format.setups import CLOZE, DEFAULT_CONFIG, MASK, TEST
from release.exports.source import require_plain, require_scorable

if TYPE_CHECKING:
    import pyarrow as pa

FLAT = "flat"
BLANK = "____"
"""What a model that writes its answers is shown in place of the mask."""

FIELDS = {"input": "input", "choices": "choices", "target": "target"}
"""Inspect's name for each column of a sample -> the column."""

METADATA = ("cluster", "concept", "relation", "hops", "distractor_family", "distractor_hops")
"""Columns that are kept in addition to the question, for breakdowns."""

ABOUT = {
    "id": COLUMNS["id"],
    "input": f"The question; a cloze has {BLANK} for the mask.",
    "choices": "The texts of the choices, in the order shown.",
    "target": "The letter of the right choice.",
    **{name: COLUMNS[name] for name in METADATA},
    COLUMN: "The canary.",
}
"""What each column holds."""


@dataclass(frozen=True)
class FlatConfig:
    """A config of flat rows, written for publication.

    Attributes:
        source: the config whose rows it holds.
        files: its split, with the paths of its files in the folder it was written to.
        schema: the schema of its files.
        num_bytes: the size of its rows in Arrow.
    """

    name: str
    source: str
    files: SplitFiles
    schema: pa.Schema
    num_bytes: int

    @property
    def front_matter(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Its entries in ``configs`` and ``dataset_info`` of a card."""
        size = {self.files.split: (self.num_bytes, self.files.rows)}
        return config_entries(self.name, self.files.files, self.schema, size)


def flat_name(config: str) -> str:
    """Return the config of a config's flat rows.

    >>> flat_name("default"), flat_name("no_language")
    ('flat', 'no_language-flat')
    """
    return FLAT if config == DEFAULT_CONFIG else f"{config}-{FLAT}"


def flat_table(table: pa.Table) -> pa.Table:
    """Return rows of the item schema, all with an answer, as flat rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = pc.replace_substring(table["question"], MASK, BLANK)
    choices = table["choices"].combine_chunks()
    labels = pc.struct_field(choices, "label")
    before = pc.subtract(pc.cumulative_sum(sizes := pc.list_value_length(labels)), sizes)
    target = pc.list_flatten(labels).take(pc.add(before, table["answer"].combine_chunks()))
    columns = {
        "id": table["id"],
        "input": pc.if_else(pc.equal(table["setup"], CLOZE), filled, table["question"]),
        "choices": pc.struct_field(choices, "text"),
        "target": target,
        **{name: table[name] for name in METADATA},
    }
    return pa.table(columns)


def write_flat(tables: Iterator[pa.Table], path: Path) -> tuple[pa.Schema, int]:
    """Write flat tables, at least one, as a file; return their schema and their bytes in Arrow."""
    first = next(tables)
    num_bytes = int(first.nbytes)
    path.parent.mkdir(parents=True, exist_ok=True)
    with parquet_file(path, first.schema, unique=(*UNIQUE, "input")) as append:
        append(first)
        for table in tables:
            append(table)
            num_bytes += int(table.nbytes)
    return first.schema, num_bytes


def write_flat_configs(folder: Path, manifest: Manifest, output: Path) -> list[FlatConfig]:
    """Write the test split of each config of a probe as flat rows, a row group at a time.

    Configs without one, and those whose rows no harness can score, are left out: rows without an
    answer, or of a setup that needs a classifier.

    Raises:
        UsageError: the name of a config cannot be that of a folder, or is that of flat rows.
        OSError: the files cannot be written.
    """
    found = []
    for config in manifest.configs:
        split = manifest.split_files(config).get(TEST)
        if split is None or not split.rows:
            continue
        require_plain(folder, config)
        if flat_name(config) in manifest.configs:
            raise UsageError(
                f"{folder} has a config {flat_name(config)!r}: that name is kept for the flat rows "
                f"of {config}. Build the probe with another name for it."
            )
        try:
            found.append(_written(folder, split, manifest, output))
        except KbprobeError:
            continue
    return found


def _written(folder: Path, split: SplitFiles, manifest: Manifest, output: Path) -> FlatConfig:
    """Write the flat files of a split, one for each of its files."""
    import pyarrow as pa

    name = flat_name(split.config)
    place = data_folder(output, name)
    canary = canary_of(manifest.probe, manifest.request.seed)

    def tables(path: Path) -> Iterator[pa.Table]:
        for table in row_groups(path):
            require_scorable(table, str(path))
            flat = flat_table(table)
            if manifest.canary_column:
                flat = flat.append_column(COLUMN, pa.repeat(pa.scalar(canary), len(flat)))
            yield flat

    entries, total, schema = [], 0, pa.schema([])
    for at, file in enumerate(split.files):
        path = place / f"{split.split}-{at:05d}-of-{len(split.files):05d}.parquet"
        schema, num_bytes = write_flat(tables(folder / file.path), path)
        total += num_bytes
        entries.append(
            DataFile(
                path=path.relative_to(output).as_posix(),
                config=name,
                split=split.split,
                rows=file.rows,
                bytes=path.stat().st_size,
                sha256=file_sha256(path),
            )
        )
    files = SplitFiles(name, split.split, tuple(entries))
    return FlatConfig(name, split.config, files, schema, total)
