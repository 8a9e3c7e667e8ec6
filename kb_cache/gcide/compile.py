"""Compiling the entries of GCIDE into tables: cleaning, dropping, locating the word.

Importing this module needs lemminflect, for the inflected forms of the headwords.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import pyarrow as pa

from kb_cache.base import Progress
from kb_cache.frequency import zipf_frequencies
from kb_cache.gcide import text as text
from kb_cache.gcide.source import GcideSource, RawEntry, RawSense, read_json
from kb_cache.mentions import Inflections, MentionFinder

#: The part of speech under which a headword's forms are looked up.
_FINDER_POS = {"noun": "n", "verb": "v", "adjective": "a", "adverb": "r", "other": "r"}
#: Irregular forms of Webster's quotations that modern tables of inflection lack.
_ARCHAIC_VERBS = {
    "hath": ("have",), "hast": ("have",), "hadst": ("have",), "doth": ("do",), "dost": ("do",),
    "didst": ("do",), "saith": ("say",), "art": ("be",), "wert": ("be",), "wast": ("be",),
    "mayst": ("may",), "shalt": ("shall",), "wilt": ("will",), "canst": ("can",),
    "spake": ("speak",), "brake": ("break",), "bare": ("bear",), "sware": ("swear",),
    "holpen": ("help",), "gat": ("get",), "clave": ("cleave",), "drave": ("drive",),
    "wist": ("wit",),
}  # fmt: skip
_BARE_OR_E = ("", "e")
_DOUBLING = "bdfgklmnprtz"


def _endings(*endings: str) -> tuple[tuple[str, str], ...]:
    """Rules for endings before which an e is lost, a consonant doubled, or y turned into i."""
    plain = [(ending, base) for ending in endings for base in _BARE_OR_E]
    doubled = [(f"{c}{c}{ending}", c) for ending in endings for c in _DOUBLING]
    return (*plain, *doubled, *((f"i{ending}", "y") for ending in endings))


#: lemminflect's tables know common words; the rules serve the rest, and archaic endings.
_RULES = {
    "n": (("s", ""), ("es", ""), ("ies", "y"), ("ae", "a"), ("æ", "a"), ("i", "us")),
    "v": (("s", ""), ("es", ""), ("ies", "y"), *_endings("ed", "eth", "est", "edst"),
          *_endings("ing")),
    "a": _endings("er", "est"),
    "r": _endings("er", "est"),
}  # fmt: skip

_TOKEN = re.compile(r"[^\W\d_]+")

#: Minimum number of words of a context, by kind.
_LEAST_WORDS = {"usage": 2, "quotation": 3}

_CATEGORY = pa.dictionary(pa.int16(), pa.string())
_SENSES = pa.schema([
    ("word", pa.int32()), ("entry", pa.int16()), ("number", pa.int16()), ("pos", _CATEGORY),
    ("printed_pos", _CATEGORY), ("field", _CATEGORY), ("mark", _CATEGORY),
    ("definition", pa.string()),
])  # fmt: skip
_CONTEXTS = pa.schema([
    ("sense", pa.int32()), ("kind", _CATEGORY), ("text", pa.string()), ("author", _CATEGORY),
    ("start", pa.int32()), ("end", pa.int32()),
])  # fmt: skip


@dataclass
class Report:
    """Counts of what compiling removed, by reason.

    Attributes:
        read: definitions in the source.
        definitions: those dropped.
        contexts: usages and quotations dropped, though their sense was kept.
    """

    read: int = 0
    definitions: Counter[str] = field(default_factory=Counter)
    contexts: Counter[str] = field(default_factory=Counter)

    def notes(self) -> tuple[str, ...]:
        """Return the report in sentences, for the snapshot's description."""
        kept = self.read - self.definitions.total()
        notes = [f"{kept:,} of {self.read:,} definitions kept."]
        for what, counts in (
            ("Definitions dropped", self.definitions),
            ("Usages and quotations dropped", self.contexts),
        ):
            if counts:
                listed = ", ".join(f"{name} {number:,}" for name, number in counts.most_common())
                notes.append(f"{what}: {listed}.")
        return tuple(notes)


class _Context(NamedTuple):
    kind: str
    text: str
    author: str = ""


#: A row of `_SENSES`, and its ``contexts``.
_Sense = dict[str, Any]


def compile_gcide(
    source: GcideSource, progress: Progress | None = None
) -> tuple[dict[str, pa.Table], Report]:
    """Compile GCIDE into the tables that `kb_cache.gcide.types.Gcide` describes.

    Deterministic: the same source, lemminflect and wordfreq give equal tables. ``progress`` is
    called with (files done, files in all).

    Raises:
        SourceError: a file is not of its format; the message names it.
    """
    report = Report()
    senses = list(_clean(read_json(source.files, progress), report))
    # Sorted by word; within a word the order of the source stays.
    senses.sort(key=itemgetter("word"))
    return _tables(senses), report


def _clean(entries: Iterable[RawEntry], report: Report) -> Iterator[_Sense]:
    entry_number: Counter[str] = Counter()
    seen: set[tuple[str, str, str]] = set()
    for entry in entries:
        report.contexts.update(entry.lost)
        word = text.tidy(entry.word).lower()
        entry_number[word] += 1
        pos = text.part_of_speech(entry.pos)
        for number, raw in enumerate(entry.senses, start=1):
            report.read += 1
            definition, usage, labels, reason = _definition(raw, word)
            if not word:
                reason = "no headword"
            if not reason and (word, pos, definition) in seen:
                reason = "given twice"
            if reason:
                report.definitions[reason] += 1
                continue
            seen.add((word, pos, definition))
            yield {
                "word": word, "entry": entry_number[word], "number": number, "pos": pos,
                "printed_pos": text.printed_part_of_speech(entry.pos), "field": labels[0],
                "mark": labels[1], "definition": definition,
                "contexts": list(_contexts(raw, usage, word, report)),
            }  # fmt: skip


def _definition(raw: RawSense, word: str) -> tuple[str, str, Sequence[str], str | None]:
    """Clean a definition; return it, its usage, (field, mark), and a reason to drop it, if any."""
    if not any(char.isalpha() for char in raw.definition):
        return "", "", ("", ""), "empty"
    if reason := text.damage(raw.definition):
        return "", "", ("", ""), reason
    definition, *labels = text.split_labels(raw.definition)
    definition, usage = text.split_usage(definition, word)
    definition = text.finish(text.without_references(definition))
    if not any(char.isalpha() for char in definition):
        return "", "", labels, "cross-reference only" if not usage else "usage only"
    if definition.startswith(("See ", "Same as ")):
        return "", "", labels, "cross-reference only"
    if text.is_form_of(definition):
        return "", "", labels, "form of another word"
    return definition, usage, labels, None


def _contexts(raw: RawSense, usage: str, word: str, report: Report) -> Iterator[_Context]:
    found = [_Context("usage", usage)] if usage else []
    for quotation in raw.quotations:
        if reason := text.damage(quotation):
            report.contexts[reason] += 1
        elif _runs_into(word, quotation):
            report.contexts["words run together"] += 1
        else:
            found.append(_Context("quotation", text.tidy(quotation)))
    seen = set()
    for context in found:
        if len(context.text.split()) < _LEAST_WORDS[context.kind]:
            report.contexts["too short"] += 1
        elif context.text in seen:
            report.contexts["given twice"] += 1
        else:
            seen.add(context.text)
            yield context


def _runs_into(word: str, quotation: str) -> bool:
    """Whether the headword runs into the word before it: "a painted shippainted ocean".

    Such a token has a word frequency of 0; otherwise it may be a compound of the headword.
    """
    beginning = word[: max(3, len(word) - 2)]
    tokens = {t.lower() for t in _TOKEN.findall(quotation) if t.lower().find(beginning, 2) > 0}
    return bool(tokens) and bool((zipf_frequencies(sorted(tokens)) == 0).any())


def _tables(senses: list[_Sense]) -> dict[str, pa.Table]:
    words = sorted({sense["word"] for sense in senses})
    word_id = {word: i for i, word in enumerate(words)}
    finder = MentionFinder(Inflections(_RULES, {"v": _ARCHAIC_VERBS}))
    contexts: list[dict[str, Any]] = []
    for at, sense in enumerate(senses):
        for context in sense["contexts"]:
            span = finder.find(context.text, sense["word"], _FINDER_POS[sense["pos"]])
            start, end = span or (-1, -1)
            contexts.append({"sense": at, **context._asdict(), "start": start, "end": end})
        sense["word"] = word_id[sense["word"]]
    return {
        "words": pa.table({"word": pa.array(words, pa.string())}),
        "senses": pa.Table.from_pylist(senses, schema=_SENSES),
        "contexts": pa.Table.from_pylist(contexts, schema=_CONTEXTS),
    }
