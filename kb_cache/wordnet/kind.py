"""WordNet as a kind of knowledge base: how it is fetched, and whom to credit."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from kb_cache.base import Compiled, Kind, OwnDataOptions, Progress
from kb_cache.wordnet.source import WordNetSource, read_source
from kb_cache.wordnet.types import KIND


class WordNetOptions(OwnDataOptions):
    """Options of ``kb-cache fetch wordnet``."""

    source: Path | None = Field(
        None,
        description="The database: a folder, zip or tar that holds data.noun, index.noun and the "
        "other files (NLTK's corpora/wordnet.zip, or dict/ of Princeton's own distribution).",
    )


class WordNetKind(Kind[WordNetSource, WordNetOptions]):
    """Compile a WordNet database in the layout that NLTK reads."""

    name = KIND
    title = "a WordNet"
    options = WordNetOptions
    #: SPDX has no id for the licence under which Princeton publishes WordNet.
    licence = "LicenseRef-WordNet"
    attribution = (
        "Contains text of WordNet, Copyright 2006 by Princeton University. All rights reserved. "
        "It may be used, copied, modified and distributed for any purpose and without fee under "
        "the WordNet licence (https://wordnet.princeton.edu/license-and-commercial-use), provided "
        "that its notice is kept; it comes as is, without warranty of any kind."
    )
    citation = """@article{miller-1995,
  title   = "{WordNet}: A Lexical Database for {English}",
  author  = {Miller, George A.},
  journal = {Communications of the ACM},
  volume  = {38},
  number  = {11},
  pages   = {39--41},
  year    = {1995}
}"""
    contents = "{synsets:,} synsets"
    packages = ("nltk", "lemminflect")
    extra = "wordnet"

    def read(self, path: Path, options: WordNetOptions) -> WordNetSource:
        """Read the database files into memory."""
        return read_source(path)

    def compile(
        self, source: WordNetSource, options: WordNetOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the files into the tables of `kb_cache.wordnet.types.WordNet`."""
        from kb_cache.wordnet.compile import compile_wordnet, created_by  # imports NLTK

        return Compiled(
            description=f"WordNet {source.version or ''} database files".replace("  ", " "),
            tables=compile_wordnet(source, progress),
            texts={"LICENSE.txt": source.licence},
            notes=source.notes,
            created_by=created_by(),
        )


WORDNET = WordNetKind()
