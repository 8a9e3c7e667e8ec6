"""Text corpora as a kind of knowledge base: how they are fetched, and whom to credit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from kb_cache.base import CREDITS, UNSTATED, Compiled, Download, Kind, OwnDataOptions, Progress
from kb_cache.corpora.annotate import Annotator
from kb_cache.corpora.source import PREFIX, CorpusSource, read_source
from kb_cache.corpora.types import KIND
from kbprobe.errors import UsageError
from kbprobe.options import Metavar

_NLTK = "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora"


@dataclass(frozen=True)
class Known:
    """A published corpus.

    Attributes:
        licence, attribution, citation: see `kb_cache.base.Loaded`.
        nltk: its name among the corpora of NLTK's data; "" if it is not one.
        download: where it can be had.
    """

    licence: str
    attribution: str
    citation: str
    nltk: str = ""
    download: Download | None = None


KNOWN: Mapping[str, Known] = {
    "masc": Known(
        licence="LicenseRef-MASC",
        attribution=(
            "Contains text of MASC, the Manually Annotated Sub-Corpus of the Open American "
            "National Corpus (http://www.anc.org/data/masc/), Copyright (C) 2014 American National "
            "Corpus, in the edition of NLTK. It may be used, also commercially, and "
            "redistributed."
        ),
        citation="""@inproceedings{ide-etal-2010,
  title     = "The {M}anually {A}nnotated {S}ub-{C}orpus: A Community Resource for and by the People",
  author    = {Ide, Nancy and Baker, Collin and Fellbaum, Christiane and Passonneau, Rebecca},
  booktitle = {Proceedings of the {ACL} 2010 Conference Short Papers},
  pages     = {68--73},
  year      = {2010}
}""",  # noqa: E501  # BibTeX reads no broken title
        nltk="masc_tagged",
        download=Download(
            url=f"{_NLTK}/masc_tagged.zip",
            sha256="678a5141cf3381bedb1839c58a330507337be07c7c71603279c0ef5337032304",
            bytes=1_602_143,
        ),
    ),
    "rte": Known(
        licence="LicenseRef-RTE",
        attribution=(
            "Contains pairs of the PASCAL Recognising Textual Entailment Challenges 1, 2 and 3, "
            "organised by the PASCAL Network of Excellence, in the edition of NLTK. Their "
            "publishers state no licence."
        ),
        citation="""@inproceedings{dagan-etal-2006,
  title     = {The {PASCAL} Recognising Textual Entailment Challenge},
  author    = {Dagan, Ido and Glickman, Oren and Magnini, Bernardo},
  booktitle = {Machine Learning Challenges},
  series    = {Lecture Notes in Computer Science},
  volume    = {3944},
  pages     = {177--190},
  year      = {2006}
}""",
        nltk="rte",
        download=Download(
            url=f"{_NLTK}/rte.zip",
            sha256="2f806ead4d53171601254747c3b7c97d758e63a6ef54e3c010a6d62885ab214a",
            bytes=386_303,
        ),
    ),
    "ewt": Known(
        licence="CC-BY-SA-4.0",
        attribution=(
            "Contains sentences of Universal Dependencies English EWT "
            "(https://universaldependencies.org/treebanks/en_ewt/), built on the source material "
            "of the English Web Treebank (LDC2012T13); CC BY-SA 4.0."
        ),
        citation="""@inproceedings{silveira-etal-2014,
  title     = "A Gold Standard Dependency Corpus for {E}nglish",
  author    = {Silveira, Natalia and Dozat, Timothy and de Marneffe, Marie-Catherine and Bowman, Samuel and Connor, Miriam and Bauer, John and Manning, Chris},
  booktitle = {Proceedings of the Ninth International Conference on Language Resources and Evaluation},
  pages     = {2897--2904},
  year      = {2014}
}""",  # noqa: E501
    ),
}  # fmt: skip


def known(name: str) -> Known | None:
    """Return the corpus of that name; "ewt-dev" and "masc-extract" are parts of those we know."""
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
        from kb_cache.corpora.annotate import compile_corpus  # imports Arrow

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
        if credits_["licence"] == UNSTATED:
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

    def usual_credits(self, options: CorpusOptions, source: CorpusSource) -> Mapping[str, str]:
        """Return whom to credit for the corpus that has this name; nobody for others."""
        found = known((options.name or source.version or "").removeprefix(f"{KIND}-"))
        return {} if found is None else {name: getattr(found, name) for name in CREDITS}

    def fetch_command(self, name: str, source: str = "") -> str:
        """Return the command that makes an entry of that name; the known ones need no path."""
        short = name.removeprefix(f"{KIND}-")
        by_name = short in KNOWN and KNOWN[short].download is not None
        if not source and by_name and short != self.downloaded_name:
            return f"kb-cache fetch {KIND} {short}"
        return super().fetch_command(name, source)


CORPUS = CorpusKind()
