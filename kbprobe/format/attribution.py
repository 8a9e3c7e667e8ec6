"""Whom a probe's card credits: attribution, citation and licence of its knowledge bases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from kbprobe.errors import UsageError
from kbprobe.format.licences import LICENCES, combine, parts_of

PAPERS: Mapping[str, str] = {
    "wordnetqa": """@article{richardson-sabharwal-2020,
  title   = {What Does My {QA} Model Know? Devising Controlled Probes Using Expert Knowledge},
  author  = {Richardson, Kyle and Sabharwal, Ashish},
  journal = {Transactions of the Association for Computational Linguistics},
  volume  = {8},
  pages   = {572--588},
  year    = {2020}
}""",
    "olmpics": """@article{talmor-etal-2020,
  title   = {o{LM}pics -- On What Language Model Pre-training Captures},
  author  = {Talmor, Alon and Elazar, Yanai and Goldberg, Yoav and Berant, Jonathan},
  journal = {Transactions of the Association for Computational Linguistics},
  volume  = {8},
  pages   = {743--758},
  year    = {2020}
}""",
    "function_words": """@inproceedings{kim-etal-2019-probing,
  title     = {Probing What Different {NLP} Tasks Teach Machines about Function Word Comprehension},
  author    = {Kim, Najoung and Patel, Roma and Poliak, Adam and Xia, Patrick and Wang, Alex and
               McCoy, Tom and Tenney, Ian and Ross, Alexis and Linzen, Tal and
               Van Durme, Benjamin and Bowman, Samuel R. and Pavlick, Ellie},
  booktitle = {Proceedings of the Eighth Joint Conference on Lexical and Computational Semantics
               (*SEM 2019)},
  pages     = {235--249},
  year      = {2019}
}""",
}
"""Name of a paper -> its BibTeX entry."""


class SourceRecord(BaseModel):
    """One knowledge base that a probe was built from, as its manifest records it.

    Attributes:
        name, version, digest: its identity.
        licence: SPDX expression of the licence of its data.
        attribution: the text in which its authors ask to be credited; "" for none.
        citation: BibTeX entry of the work to cite; "" for none.
        language: BCP 47 code; several are joined by "+"; "" if not stated.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)

    name: str
    version: str
    digest: str
    licence: str
    attribution: str = ""
    citation: str = ""
    language: str = ""


def sources_of(knowledge_base: Mapping[str, Any]) -> list[SourceRecord]:
    """Read the knowledge bases of a manifest's entry; one without ``sources`` is its own."""
    sources = knowledge_base.get("sources") or [knowledge_base]
    return [SourceRecord.model_validate(source) for source in sources]


def languages_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return the languages of a probe's questions: as recorded, else English."""
    return list(manifest.get("language") or ["en"])


def question_languages(sources: Iterable[SourceRecord], chosen: str = "") -> list[str]:
    """Return the languages of questions made from some sources.

    The probe's own option, ``chosen``, wins: labels and wordings follow it.

    >>> question_languages([], "de"), question_languages([])
    (['de'], ['en'])
    """
    if chosen:
        return [chosen]
    stated = {code: None for source in sources for code in source.language.split("+") if code}
    return [code for code in stated if code != "mul"] or ["en"]


@dataclass(frozen=True)
class Terms:
    """The licence of a probe, as it follows from the licences of its sources.

    Attributes:
        expression: SPDX expression of the whole; empty where no licence suits all sources.
        front_matter: ``license`` and what goes with it, as the Hub reads them.
        parts: name, link and demands of each source's licence.
        problem: why no licence suits all sources, so that it must not be published; or empty.
    """

    expression: str
    front_matter: Mapping[str, str]
    parts: Sequence[tuple[str, str, str]]
    problem: str = ""


def terms_of(expression: str) -> Terms:
    """Tell what the licences of a probe's sources ask for, and what follows for the whole.

    Nothing is refused: a probe for private use may mix any sources. Publishing one is refused
    where there is a ``problem``.

    >>> terms_of("CC0-1.0").front_matter
    {'license': 'cc0-1.0'}
    >>> terms_of("LicenseRef-WordNet AND CC-BY-SA-4.0").expression
    'CC-BY-SA-4.0'
    """
    names = parts_of(expression)
    known = {name: LICENCES[name] for name in names if name in LICENCES}
    parts = [(one.title, one.link, ", ".join(one.asks) or "nothing") for one in known.values()]
    parts += [(name, "", "not known here") for name in names if name not in known]
    try:
        whole = combine(names)
    except UsageError as error:
        front = {"license": "unknown"}
        if len(names) == 1 and not known:
            front = {"license": "other", "license_name": names[0].lower().replace(" ", "-")}
        return Terms("", front, parts, str(error))
    return Terms(whole.spdx, whole.front_matter(), parts)


def works_of(sources: Iterable[SourceRecord], paper: str) -> list[str]:
    """Return the BibTeX entries to cite: the paper's (of :data:`PAPERS`), if any, the sources'."""
    entries = [PAPERS[paper]] if paper else []
    entries += [source.citation for source in sources if source.citation]
    return list(dict.fromkeys(entries))


def attributions_of(sources: Iterable[SourceRecord]) -> list[str]:
    """Return the texts that credit the authors of some sources, each once."""
    return list(dict.fromkeys(one.attribution.strip() for one in sources if one.attribution))


def software_entry(version: str) -> str:
    """Return the BibTeX entry of kbprobe, as CITATION.cff describes it."""
    return f"""@software{{kbprobe,
  title   = {{kbprobe: probe datasets from knowledge bases}},
  author  = "{{The kbprobe authors}}",
  version = {{{version}}},
  license = {{Apache-2.0}}
}}"""
