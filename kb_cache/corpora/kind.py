"""Text corpora as a kind of knowledge base: how they are fetched, and whom to credit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from kb_cache.base import Compiled, Download, Kind, OwnDataOptions, Progress
from kb_cache.corpora.annotate import Annotator
from kb_cache.corpora.hub import PREFIX
from kb_cache.corpora.known import KNOWN, Known, in_nltk_data, known
from kb_cache.corpora.source import CorpusSource, read_source
from kb_cache.corpora.types import KIND
from kbprobe.errors import UsageError
from kbprobe.options import Metavar

#: What the options call the columns of a table, and which there are.
_COLUMNS = ("text", "premise", "hypothesis", "label", "id")
_UNSTATED = "LicenseRef-unstated"


class CorpusOptions(OwnDataOptions):
    """Options of ``kb-cache fetch corpus``."""

    source: Path | None = Field(
        None,
        description="A file, folder, zip or tar of plain or tagged text, CoNLL-U, JSON lines, "
        "MNLI's or SNLI's tables, or RTE's XML; or hub:ID[:CONFIG[:SPLIT]], a dataset of the "
        "Hugging Face Hub. masc and rte are taken from NLTK's data, or downloaded.",
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
        """What each column is called."""
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
        """Return where the corpus of that name can be had."""
        return self._stated(options).download

    def _stated(self, options: CorpusOptions) -> Known:
        short = options.name.removeprefix(f"{KIND}-") or self.downloaded_name
        found = known(short)
        if found is None or (found.download is None and not found.nltk):
            there = ", ".join(name for name, one in KNOWN.items() if one.download)
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
        from kb_cache.corpora.compile import compile_corpus  # imports Arrow

        annotator = Annotator(options.pipeline)
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
        if credits_["licence"] == _UNSTATED:
            notes += (
                "No licence was stated: probes made of this corpus cannot be published. State it "
                "with --licence and --attribution.",
            )
        return Compiled(
            description=f"corpus from {source.path.name}",
            tables=tables,
            texts={"NOTICE.txt": f"{text}\n".encode()} if (text := credits_["attribution"]) else {},
            notes=notes,
            created_by=annotator.created_by,
        )

    def credits_of(self, options: CorpusOptions, source: CorpusSource) -> dict[str, str]:
        """Return whom to credit: as the options state, or of the corpus that has this name."""
        named = (options.name or source.version or "").removeprefix(f"{KIND}-")
        usual = None if options.licence else known(named)
        found = {
            credit: getattr(options, credit) or getattr(usual, credit, "")
            for credit in ("licence", "attribution", "citation")
        }
        return {**found, "licence": found["licence"] or _UNSTATED}

    def fetch_command(self, name: str, source: str = "") -> str:
        """Return the command that makes an entry of that name; the known ones need no path."""
        short = name.removeprefix(f"{KIND}-")
        by_name = short in KNOWN and KNOWN[short].download is not None
        if not source and by_name and short != self.downloaded_name:
            return f"kb-cache fetch {KIND} {short}"
        return super().fetch_command(name, source)


CORPUS = CorpusKind()
