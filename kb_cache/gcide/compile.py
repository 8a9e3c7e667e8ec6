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
from kb_cache.gcide.source import GcideSource, RawSense, read_json
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
class GcideReport:
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
    start: int = -1
    end: int = -1


class _GcideSense(NamedTuple):
    """A cleaned definition, or why it is dropped."""

    definition: str
    field: str
    mark: str
    reason: str | None
    contexts: list[_Context]
    lost: list[str]


class _GcideEntry(NamedTuple):
    word: str
    pos: str
    printed_pos: str
    senses: list[_GcideSense]
    lost: Counter[str]


def compile_gcide(
    source: GcideSource, progress: Progress | None = None
) -> tuple[dict[str, pa.Table], GcideReport]:
    """Compile GCIDE into the tables that `kb_cache.gcide.types.Gcide` describes.

    Deterministic: the same source, lemminflect and wordfreq give equal tables. ``progress`` is
    called with (files done, files in all). Files are cleaned two at a time.

    Raises:
        SourceError: a file is not of its format; the message names it.
    """
    shown = progress or (lambda done, total: None)
    files = [*source.files.items()]
    entries: list[_GcideEntry] = []
    shown(0, len(files))
    for done, found in enumerate(_all_cleaned(files), start=1):
        entries += found
        shown(done, len(files))
    report = GcideReport()
    senses = list(_kept(entries, report))
    # Sorted by word; within a word the order of the source stays.
    senses.sort(key=itemgetter("word"))
    return _tables(senses), report


def _all_cleaned(files: Sequence[tuple[str, bytes]]) -> Iterator[list[_GcideEntry]]:
    """Clean files in order, two at a time; one at a time where processes cannot be forked."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    from kbprobe.forks import can_fork, end_with_parent

    if not can_fork():
        yield from map(_cleaned, files)
        return
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork"), end_with_parent) as pool:
        yield from pool.map(_cleaned, files)


def _cleaned(file: tuple[str, bytes]) -> list[_GcideEntry]:
    """Clean the entries of a file."""
    finder = MentionFinder(Inflections(_RULES, {"v": _ARCHAIC_VERBS}))
    entries = []
    for entry in read_json(*file):
        word, pos = text.tidy(entry.word).lower(), text.part_of_speech(entry.pos)
        senses = []
        for raw in entry.senses:
            definition, usage, (field, mark), reason = _definition(raw, word)
            lost: list[str] = []
            contexts = []
            for context in () if reason else _contexts(raw, usage, word, lost):
                span = finder.find(context.text, word, _FINDER_POS[pos])
                contexts.append(context._replace(start=span[0], end=span[1]) if span else context)
            senses.append(_GcideSense(definition, field, mark, reason, contexts, lost))
        printed = text.printed_part_of_speech(entry.pos)
        entries.append(_GcideEntry(word, pos, printed, senses, entry.lost))
    return entries


def _kept(entries: Iterable[_GcideEntry], report: GcideReport) -> Iterator[dict[str, Any]]:
    """Yield the rows of `_SENSES` with their ``contexts``; count in ``report`` what is dropped."""
    entry_number: Counter[str] = Counter()
    seen: set[tuple[str, str, str]] = set()
    for entry in entries:
        report.contexts.update(entry.lost)
        entry_number[entry.word] += 1
        for number, sense in enumerate(entry.senses, start=1):
            report.read += 1
            reason = sense.reason if entry.word else "no headword"
            key = entry.word, entry.pos, sense.definition
            if not reason and key in seen:
                reason = "given twice"
            if reason:
                report.definitions[reason] += 1
                continue
            seen.add(key)
            report.contexts.update(sense.lost)
            yield {
                "word": entry.word, "entry": entry_number[entry.word], "number": number,
                "pos": entry.pos, "printed_pos": entry.printed_pos, "field": sense.field,
                "mark": sense.mark, "definition": sense.definition, "contexts": sense.contexts,
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


def _contexts(raw: RawSense, usage: str, word: str, lost: list[str]) -> Iterator[_Context]:
    """Yield the usage and the quotations of a sense; list in ``lost`` why others are not."""
    found = [_Context("usage", usage)] if usage else []
    for quotation in raw.quotations:
        if reason := text.damage(quotation):
            lost.append(reason)
        elif _runs_into(word, quotation):
            lost.append("words run together")
        else:
            found.append(_Context("quotation", text.tidy(quotation)))
    seen = set()
    for context in found:
        if len(context.text.split()) < _LEAST_WORDS[context.kind]:
            lost.append("too short")
        elif context.text in seen:
            lost.append("given twice")
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


def _tables(senses: list[dict[str, Any]]) -> dict[str, pa.Table]:
    words = sorted({sense["word"] for sense in senses})
    word_id = {word: i for i, word in enumerate(words)}
    contexts: list[dict[str, Any]] = []
    for at, sense in enumerate(senses):
        contexts += ({"sense": at, **context._asdict()} for context in sense["contexts"])
        sense["word"] = word_id[sense["word"]]
    return {
        "words": pa.table({"word": pa.array(words, pa.string())}),
        "senses": pa.Table.from_pylist(senses, schema=_SENSES),
        "contexts": pa.Table.from_pylist(contexts, schema=_CONTEXTS),
    }
