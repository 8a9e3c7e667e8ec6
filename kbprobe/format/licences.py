"""Licences of knowledge bases, under which a probe may be published, and whom it credits.

A probe's questions and choices are text taken from its sources, put into templates and mixed. The
table, ``data/licences.yaml``, cites the sections that make licences incompatible. What is asked for
is in section 3(a) of CC BY and CC BY-NC 4.0, 3(b) of the share-alike ones, 4 of Apache 2.0, and
5(c) of the GPL.

- **CC BY-SA 4.0** goes into what Creative Commons lists as compatible: GPLv3 since 8 October 2015,
  one way only. The list names version 3 alone, so the whole cannot be offered under "any later
  version" (https://www.gnu.org/licenses/license-list.html#ccbysa); nor is BY-SA 3.0 on it.
- **GPL 3.0** takes in the permissive licences here (https://www.gnu.org/licenses/license-list.html:
  CC BY 4.0, Apache 2.0, Expat) and, by its section 7(b) and 7(d), notices to keep and names not to
  use, as WordNet's licence and BSD's have them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from kbprobe.errors import UsageError, did_you_mean
from kbprobe.parsing import own_yaml

UNSTATED = "LicenseRef-unstated"
"""The licence of data without a stated licence."""


@dataclass(frozen=True)
class Licence:
    """What a licence asks of a probe that holds work under it.

    Attributes:
        spdx: its SPDX id.
        title: its name.
        link: address of its text.
        hub: what the Hub calls it in ``license:``; ``other`` if it has no name for it.
        asks: what it asks for, in the order of its text.
        share_alike: whether the dataset must be under this licence or one that it names.
        within: the share-alike licences that a dataset with such work may be under, the best one
            first.
        reason: why it is compatible with no other, for messages.
    """

    spdx: str
    title: str
    link: str
    hub: str
    asks: Sequence[str] = ()
    share_alike: bool = False
    within: Sequence[str] = ()
    reason: str = ""


@cache
def licences() -> Mapping[str, Licence]:
    """Return all known licences, by SPDX id."""
    text = Path(__file__).with_name("data").joinpath("licences.yaml").read_text(encoding="utf-8")
    entries: dict[str, dict[str, Any]] = own_yaml(text)
    sharing = tuple(sorted(spdx for spdx, entry in entries.items() if entry.get("share_alike")))
    return {spdx: Licence(spdx, **{"within": sharing, **entry}) for spdx, entry in entries.items()}


def parts_of(expression: str) -> tuple[str, ...]:
    """Split an SPDX expression of parts joined by `` AND ``; each part once.

    >>> parts_of("LicenseRef-WordNet AND CC-BY-SA-4.0 AND LicenseRef-WordNet")
    ('LicenseRef-WordNet', 'CC-BY-SA-4.0')
    """
    return tuple(dict.fromkeys(part.strip(" ()") for part in expression.split(" AND ")))


def _whole(names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """Return the licence that suits several, an SPDX expression, and a Hub card's entries for it.

    Raises:
        UsageError: one is not declared, or none suits all. The message names two and the reason.
    """
    known = licences()
    if UNSTATED in names:
        raise UsageError("a source states no licence: what is made of it may not be published")
    for name in names:
        if name not in known:
            raise UsageError(
                f"no licence {name!r} is declared in kbprobe.format.licences, so what it asks for "
                f"is not known.{did_you_mean(name, known)} Declared: {', '.join(known)}."
            )
    named = [known[name] for name in names]
    for one in named:
        if not one.within:
            raise UsageError(f"a probe cannot be made of {one.spdx}: {one.reason}. Leave it out.")
    demanding = [one for one in named if one.share_alike]
    if not demanding:
        return _side_by_side(named)
    for target in demanding[0].within:
        if all(target in one.within for one in named):
            return target, {"license": known[target].hub}
    raise UsageError(_conflict(named))


def _side_by_side(named: list[Licence]) -> tuple[str, dict[str, str]]:
    """Combine licences of which none is share-alike: all of them apply."""
    # Of several without requirements, the first in the table is used, in whatever order they come.
    asking = [one for one in named if one.asks] or [
        min(named, key=lambda one: list(licences()).index(one.spdx))
    ]
    expression = " AND ".join(one.spdx for one in asking)
    if len(asking) == 1 and asking[0].hub != "other":
        return expression, {"license": asking[0].hub}
    name = "-and-".join(one.spdx.removeprefix("LicenseRef-").lower() for one in asking)
    # A card's front matter holds only one link; the card's text has the others.
    link = asking[0].link
    return expression, {"license": "other", "license_name": name, "license_link": link}


def _conflict(named: list[Licence]) -> str:
    """Return which two licences exclude each other, and why."""
    first, second = named[0], named[-1]
    for one, other in combinations(named, 2):
        if (one.share_alike or other.share_alike) and not set(one.within) & set(other.within):
            first, second = one, other
            break
    reasons = "; ".join(dict.fromkeys(filter(None, (first.reason, second.reason))))
    return (
        f"no licence suits both {first.spdx} and {second.spdx}: {reasons}. "
        "Build the probe from one of them."
    )


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
    """Return the knowledge bases of a manifest's entry; without ``sources``, the entry itself."""
    sources = knowledge_base.get("sources") or [knowledge_base]
    return [SourceRecord.model_validate(source) for source in sources]


def languages_of(manifest: Mapping[str, Any]) -> list[str]:
    """Return the languages of a probe's questions as recorded, or English if none are."""
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
    """The licence of a probe, derived from the licences of its sources.

    Attributes:
        expression: SPDX expression of the whole; empty where no licence suits all sources.
        front_matter: ``license`` and related fields, as the Hub reads them.
        parts: name, link and demands of each source's licence.
        problem: why no licence suits all sources, so that it must not be published; or empty.
    """

    expression: str
    front_matter: Mapping[str, str]
    parts: Sequence[tuple[str, str, str]]
    problem: str = ""


def terms_of(expression: str) -> Terms:
    """Return the requirements of the licences of a probe's sources, and of the whole probe.

    Nothing is refused: a probe for private use may mix any sources. Publishing one is refused
    where there is a ``problem``.

    >>> terms_of("CC0-1.0").front_matter
    {'license': 'cc0-1.0'}
    >>> terms_of("LicenseRef-WordNet AND CC-BY-SA-4.0").expression
    'CC-BY-SA-4.0'
    >>> terms_of("GPL-3.0-or-later AND CC-BY-SA-4.0").expression
    'GPL-3.0-only'
    """
    names = parts_of(expression)
    known = {name: licences()[name] for name in names if name in licences()}
    parts = [(one.title, one.link, ", ".join(one.asks) or "nothing") for one in known.values()]
    parts += [(name, "", "not known here") for name in names if name not in known]
    try:
        whole, front = _whole(names)
    except UsageError as error:
        front = {"license": "unknown"}
        if len(names) == 1 and not known:
            front = {"license": "other", "license_name": names[0].lower().replace(" ", "-")}
        return Terms("", front, parts, str(error))
    return Terms(whole, front, parts)


def works_of(sources: Iterable[SourceRecord], paper: str) -> list[str]:
    """Return the BibTeX entries to cite: the paper (from :data:`PAPERS`), if any, and sources."""
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
