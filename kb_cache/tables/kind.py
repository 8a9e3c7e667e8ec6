"""Tables of facts as a kind of knowledge base: kept under a name, with their licence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kb_cache.base import (
    UNLICENSED,
    Compiled,
    Kind,
    OwnDataOptions,
    Progress,
    Source,
    notice_of,
    own_identity,
)
from kb_cache.hub import PREFIX
from kbprobe.format.licences import UNSTATED
from kbprobe.options import named

if TYPE_CHECKING:
    import pyarrow as pa

KIND = "table"
PART = "rows"


class FetchTableOptions(OwnDataOptions):
    """Options of ``kb-cache fetch table``."""

    HELP = named(source="A table of facts: CSV, TSV, JSON lines or Parquet.")


class TableKind(Kind[Source, FetchTableOptions]):
    """Keep a table of your own facts under a name, with its licence.

    Probes are built from it with ``build-probe facts --table NAME``, as from a file.
    """

    name = KIND
    title = "your own facts"
    options = FetchTableOptions
    licence = UNSTATED
    contents = "{rows:,} rows"

    def read(self, path: Path, options: FetchTableOptions) -> Source:
        """Hash the file."""
        return Source.of_file(path)

    def compile(
        self, source: Source, options: FetchTableOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Keep all columns, as texts or lists of texts."""
        from kb_cache.tables.read import read_table

        credits_ = self.credits_of(options, source)
        notes: tuple[str, ...] = ()
        if credits_["licence"] == UNSTATED:
            notes = (UNLICENSED,)
        return Compiled(
            description=f"facts from {source.path.name}",
            tables={PART: read_table(source.path)},
            texts=notice_of(credits_["attribution"]),
            notes=notes,
        )


TABLES = TableKind()


def kept_table(name: str) -> tuple[dict[str, str], pa.Table]:
    """Return the identity of a table that was kept under a name, and its rows.

    Raises:
        UsageError: there is none of that name.
    """
    from kb_cache.opening import open_snapshot

    info, tables = open_snapshot(KIND, name)
    return info.identity, tables[PART]


def loaded_table(address: str) -> tuple[dict[str, str], pa.Table]:
    """Return the identity of a dataset, ``hub:ID[:CONFIG[:SPLIT]]``, and its rows.

    Raises:
        SourceError: it cannot be loaded.
    """
    from kb_cache.tables.read import digest_of, load_rows

    rows = load_rows(address)
    identity = own_identity(KIND, address.removeprefix(PREFIX), digest_of(rows))
    return {**identity, "licence": UNSTATED}, rows
