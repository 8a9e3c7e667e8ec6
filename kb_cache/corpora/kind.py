"""Text corpora as a kind of knowledge base: how they are fetched, and whom to credit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import Field, model_validator

from kb_cache.base import CREDITS, Compiled, Download, Kind, OwnDataOptions, Progress, notice_of
from kb_cache.corpora.annotate import TextAnnotator
from kb_cache.corpora.source import CorpusSource, read_source
from kb_cache.corpora.types import KIND
from kb_cache.hub import PREFIX
from kbprobe.errors import UsageError
from kbprobe.format.licences import UNSTATED
from kbprobe.options import Metavar, named


@dataclass(frozen=True)
class Known:
    """A published corpus.

    Attributes:
        licence, attribution, citation: see `kb_cache.knowledge.Loaded`.
        nltk: its name among NLTK's corpora; "" if it is not one.
        download: where it can be obtained.
    """

    licence: str
    attribution: str
    citation: str
    nltk: str = ""
    download: Download | None = None


def _read_known() -> dict[str, Known]:
    text = Path(__file__).with_name("data").joinpath("known.yaml").read_text(encoding="utf-8")
    found = {}
    for name, entry in yaml.safe_load(text).items():
        download = Download(**entry.pop("download")) if "download" in entry else None
        found[name] = Known(**entry, download=download)
    return found


KNOWN = _read_known()


def known(name: str) -> Known | None:
    """Return the corpus of that name; "ewt-dev" and "masc-extract" are parts of known corpora."""
    return KNOWN.get(name) or KNOWN.get(name.partition("-")[0])


def in_nltk_data(corpus: Known) -> Path | None:
    """Return where NLTK keeps a corpus on this machine; None if it does not."""
    stated = [Path(root) for root in os.environ.get("NLTK_DATA", "").split(os.pathsep) if root]
    for root in (*stated, Path.home() / "nltk_data"):
        for path in (root / "corpora" / f"{corpus.nltk}.zip", root / "corpora" / corpus.nltk):
            if corpus.nltk and path.exists():
                return path
    return None


#: The columns of a table that the options can name.
_COLUMNS = ("text", "premise", "hypothesis", "label", "id")


class CorpusOptions(OwnDataOptions):
    """Options of ``kb-cache fetch corpus``."""

    HELP = named(
        source="A file, folder, zip or tar of plain or tagged text, CoNLL-U, JSON lines, "
        "MNLI's or SNLI's tables, or RTE's XML; or hub:ID[:CONFIG[:SPLIT]], a dataset of the "
        "Hugging Face Hub. masc and rte are taken from NLTK's data, or downloaded."
    )
    pipeline: Annotated[str, Metavar("NAME")] = Field(
        "en_core_web_sm",
        min_length=1,
        description="The spaCy pipeline that splits and tags what comes without sentences or "
        "tokens; blank:en goes by rules alone and gives no tags.",
    )
    genre: tuple[str, ...] = Field(
        (), description="Keep only documents of these genres, where genres are stated; none: all."
    )
    columns: tuple[str, ...] = Field(
        (),
        description="What columns are called, if not as usual: text=body, or "
        "premise=context,hypothesis=claim,label=gold.",
    )

    @model_validator(mode="after")
    def _checked(self) -> Self:
        for part in self.columns:
            what, _, column = part.partition("=")
            if what not in _COLUMNS or not column:
                raise ValueError(
                    f"--columns takes NAME=COLUMN, with NAME one of {', '.join(_COLUMNS)}; not "
                    f"{part!r}"
                )
        return self

    @property
    def column_names(self) -> dict[str, str]:
        """Return the name of each column."""
        return dict(part.split("=", 1) for part in self.columns)


class CorpusKind(Kind[CorpusSource, CorpusOptions]):
    """Compile a corpus of text, or of pairs of premise and hypothesis.

    masc and rte are known by name, and so are ewt's credits; for other corpora state the licence.
    """

    name = KIND
    title = "a text corpus"
    options = CorpusOptions
    licence = KNOWN["masc"].licence
    attribution = KNOWN["masc"].attribution
    citation = KNOWN["masc"].citation
    contents = "{sentences:,} sentences of {documents:,} documents, {pairs:,} pairs"
    download = KNOWN["masc"].download
    downloaded_name = "masc"

    def locate(self, options: CorpusOptions) -> Path | None:
        """Return the path given, or where NLTK keeps the corpus of that name."""
        if options.source is not None and str(options.source).startswith(PREFIX):
            return options.source
        if options.source is None:
            return in_nltk_data(self._stated(options))
        return super().locate(options)

    def download_for(self, options: CorpusOptions) -> Download | None:
        """Return where the corpus of that name can be obtained."""
        return self._stated(options).download

    def _stated(self, options: CorpusOptions) -> Known:
        short = options.name.removeprefix(f"{KIND}-") or self.downloaded_name
        found = known(short)
        if found is None or (found.download is None and not found.nltk):
            there = ", ".join(name for name, corpus in KNOWN.items() if corpus.download)
            raise UsageError(
                f"kb-cache fetch corpus {short} needs the source: give it with --from PATH. "
                f"Without it there are {there}"
            )
        return found

    def read(self, path: Path, options: CorpusOptions) -> CorpusSource:
        """Read the files into memory."""
        source = read_source(path)
        default = options.source is None and not options.name
        return replace(source, version=self.downloaded_name) if default else source

    def compile(
        self, source: CorpusSource, options: CorpusOptions, folder: Path, progress: Progress
    ) -> Compiled:
        """Turn the files into the tables of `kb_cache.corpora.types.Corpus`."""
        from kb_cache.corpora.annotate import compile_corpus  # imports Arrow

        annotator = TextAnnotator(options.pipeline)
        name = self.entry_name(options.name or source.version or "")
        tables, notes = compile_corpus(
            source,
            name,
            annotator,
            columns=options.column_names,
            genres=options.genre,
            progress=progress,
        )
        credits_ = self.credits_of(options, source)
        if credits_["licence"] == UNSTATED:
            notes += (
                "No licence was stated: probes made of this corpus cannot be published. State it "
                "with --licence and --attribution.",
            )
        return Compiled(
            description=f"corpus from {source.path.name}",
            tables=tables,
            texts=notice_of(credits_["attribution"]),
            notes=notes,
            created_by=annotator.created_by,
        )

    def usual_credits(self, options: CorpusOptions, source: CorpusSource) -> Mapping[str, str]:
        """Return whom to credit for the corpus of this name; nobody for unknown ones."""
        found = known((options.name or source.version or "").removeprefix(f"{KIND}-"))
        return {} if found is None else {name: getattr(found, name) for name in CREDITS}

    def fetch_command(self, name: str, source: str = "") -> str:
        """Return the command that creates an entry of that name; known ones need no path."""
        short = name.removeprefix(f"{KIND}-")
        by_name = short in KNOWN and KNOWN[short].download is not None
        if not source and by_name and short != self.downloaded_name:
            return f"kb-cache fetch {KIND} {short}"
        return super().fetch_command(name, source)


CORPUS = CorpusKind()
