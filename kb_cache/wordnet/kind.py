"""WordNet as a kind of knowledge base: how it is fetched, and whom to credit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from kb_cache.base import Compiled, Kind, OwnDataOptions, Progress, versions_of
from kb_cache.wordnet.lmf import LmfSource, is_lmf, read_lmf
from kb_cache.wordnet.source import WordNetSource, read_source
from kb_cache.wordnet.types import KIND
from kbprobe.errors import SourceError
from kbprobe.options import Metavar, named


class FetchWordNetOptions(OwnDataOptions):
    """Options of ``kb-cache fetch wordnet``."""

    HELP = named(
        source="The database: a folder, zip or tar that holds data.noun, index.noun and the "
        "other files (NLTK's corpora/wordnet.zip, or dict/ of Princeton's own distribution); or a "
        "lexicon in WN-LMF (.xml, .xml.gz, or in a tar)."
    )
    language: Annotated[str, Metavar("CODE")] = Field(
        "",
        pattern="^([A-Za-z]{2,3}(-[A-Za-z0-9]+)*)?$",
        description="Language of the data; by default the one that a WN-LMF lexicon states, else "
        "English.",
    )


class WordNetKind(Kind[WordNetSource | LmfSource, FetchWordNetOptions]):
    """Compile a WordNet database, or a lexicon in WN-LMF.

    Databases are in the layout that NLTK reads. Wordnets of many languages are published in WN-LMF
    (Open English WordNet, OdeNet); the package wn reads it, and synsets and relations are the
    lexicon's own.
    """

    name = KIND
    title = "a WordNet"
    options = FetchWordNetOptions
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

    def read(self, path: Path, options: FetchWordNetOptions) -> WordNetSource | LmfSource:
        """Read the database files, or the lexicon, into memory."""
        if not is_lmf(path):
            return read_source(path)
        source = read_lmf(path)
        if not (options.licence or source.credits()["licence"]):
            raise SourceError(
                f"{path} is under {source.lexicon['license']!r}, a licence that kbprobe does not "
                "know: state it with --licence SPDX and --attribution TEXT"
            )
        return source

    def usual_credits(
        self, options: FetchWordNetOptions, source: WordNetSource | LmfSource
    ) -> Mapping[str, str]:
        """Return what a lexicon says of itself, or Princeton's credits for a database."""
        if isinstance(source, LmfSource):
            return source.credits()
        return super().usual_credits(options, source)

    def compile(
        self,
        source: WordNetSource | LmfSource,
        options: FetchWordNetOptions,
        folder: Path,
        progress: Progress,
    ) -> Compiled:
        """Turn the files into the tables of `kb_cache.wordnet.types.WordNet`."""
        if isinstance(source, LmfSource):
            return _compile_lexicon(source, progress)
        from kb_cache.wordnet.compile import compile_wordnet  # imports NLTK

        return Compiled(
            description=f"WordNet {source.version or ''} database files".replace("  ", " "),
            tables=compile_wordnet(source, progress),
            texts={"LICENSE.txt": source.licence},
            notes=source.notes,
            created_by=versions_of("nltk", "lemminflect"),
        )

    def language_of(self, options: FetchWordNetOptions, source: WordNetSource | LmfSource) -> str:
        """Return the language given, or that of the lexicon."""
        stated = source.language if isinstance(source, LmfSource) else self.language
        return options.language or stated


def _compile_lexicon(source: LmfSource, progress: Progress) -> Compiled:
    from kb_cache.wordnet.compile_lmf import compile_lmf  # imports NLTK

    tables, notes = compile_lmf(source, progress)
    lexicon = source.lexicon
    return Compiled(
        description=f"{lexicon['label']} {lexicon['version']}, WN-LMF",
        tables=tables,
        texts={f"{name}.txt": text for name, text in source.texts.items() if name == "LICENSE"},
        notes=notes,
        created_by=versions_of("wn", "nltk", "lemminflect"),
    )


WORDNET = WordNetKind()
