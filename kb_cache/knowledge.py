"""What a probe is built from, with its identity and credits.

It is one compiled snapshot (`Loaded`), or several combined (`Combined`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kbprobe.format.licences import SourceRecord


@dataclass(frozen=True, eq=False)
class Loaded:
    """Base of knowledge bases that are loaded from a snapshot.

    Attributes:
        name: its name in the cache ("wordnet-3.0").
        version: the version of its data ("3.0").
        digest: the sha256 (hex) of its content.
        licence: SPDX expression of the licence of its data.
        attribution: the text in which its authors ask to be credited; "" if they ask for none.
        citation: BibTeX entry of the work to cite; "" for none.
        language: BCP 47 code; several are joined by "+", and "mul" means very many.
    """

    name: str
    version: str
    digest: str
    licence: str
    attribution: str = field(default="", kw_only=True)
    citation: str = field(default="", kw_only=True)
    language: str = field(default="en", kw_only=True)


class Combined:
    """Base of knowledge bases made of several: the fields of `Loaded`, without duplicate values."""

    @property
    def sources(self) -> Sequence[KnowledgeBase]:
        """The knowledge bases of which it consists."""
        raise NotImplementedError

    def _joined(self, what: str, separator: str) -> str:
        parts = (getattr(source, what) for source in self.sources)
        return separator.join(dict.fromkeys(filter(None, parts)))

    name = property(lambda self: self._joined("name", "+"))
    version = property(lambda self: "+".join(source.version for source in self.sources))
    digest = property(lambda self: self._joined("digest", "+"))
    licence = property(lambda self: self._joined("licence", " AND "))
    attribution = property(lambda self: self._joined("attribution", "\n\n"))
    citation = property(lambda self: self._joined("citation", "\n\n"))
    language = property(lambda self: self._joined("language", "+"))


KnowledgeBase = Loaded | Combined
"""What a probe is built from, with its identity and credits."""


def source_records(knowledge: Any) -> list[SourceRecord]:
    """Describe each knowledge base that a probe is built from, for the manifest.

    Missing attribution, citation and language are recorded as empty.
    """
    names = SourceRecord.model_fields
    return [
        SourceRecord(**{name: getattr(source, name) for name in names if hasattr(source, name)})
        for source in getattr(knowledge, "sources", (knowledge,))
    ]


def manifest_entry(knowledge: Any) -> dict[str, Any]:
    """Return a manifest's ``knowledge_base``: the whole, and each of the ``sources``."""
    stated = ("name", "version", "digest", "licence", "queries")
    return {
        **{name: getattr(knowledge, name) for name in stated if hasattr(knowledge, name)},
        "sources": [record.model_dump() for record in source_records(knowledge)],
    }
