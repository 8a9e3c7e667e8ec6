"""Reading tagged text as NLTK keeps it: one sentence a line, ``word_TAG``, blank lines between.

Blank lines separate paragraphs. MASC is in this format.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import PurePosixPath

from kb_cache.corpora.detokenise import begins_quoted, detokenise, quote_closes, unescaped
from kb_cache.corpora.reading import LONGEST, Skipped
from kb_cache.corpora.rows import RawDocument, RawText

#: The forms of the auxiliaries that are always so (Universal Dependencies of English), if tagged
#: as verbs: "be". "Have" and "do" are main verbs as well and stay VERB.
_BE = frozenset(("be", "am", "is", "are", "was", "were", "been", "being", "'m", "'re", "’m", "’re"))
_SYMBOLS = frozenset("$%&+=<>@/\\|~^*_°#£€§©®™×÷±√∞∫≈≥≤")


@cache
def _table() -> dict[str, str]:
    with files("kb_cache.corpora").joinpath("data/penn_universal.csv").open(encoding="utf-8") as f:
        return {row["penn"]: row["universal"] for row in csv.DictReader(f)}


def universal(word: str, tag: str) -> str | None:
    """Return the universal part of speech of a word with a Penn Treebank tag; None if unknown.

    What has neither letter nor digit is punctuation or a symbol whatever its tag: MASC tags
    typographic quotation marks NN.

    >>> universal("dogs", "NNS"), universal("was", "VBD"), universal("”", "NN"), universal("x", "?")
    ('NOUN', 'AUX', 'PUNCT', None)
    """
    if not any(char.isalnum() for char in word) and tag != "POS":
        return "SYM" if all(char in _SYMBOLS for char in word) else "PUNCT"
    if tag.startswith("VB") and word.lower() in _BE:
        return "AUX"
    return _table().get(tag)


#: The file that states each document's genre.
CATEGORIES = "categories.txt"

_TAGGED = re.compile(r"\S*_[A-Z$#.,:;()`'\"|-]+")
_HEAD_LINES = 50


def is_tagged(text: str) -> bool:
    """Tell whether a text's first words have tags."""
    words = " ".join(text[: 1 << 16].split("\n", _HEAD_LINES)[:_HEAD_LINES]).split()
    return bool(words) and sum(bool(_TAGGED.fullmatch(w)) for w in words) > 0.9 * len(words)


def genres_of(text: str) -> dict[str, str]:
    """Return the genre of each document from the text of `CATEGORIES`."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def read_tagged(
    name: str, text: str, genres: Mapping[str, str], skipped: Skipped
) -> RawDocument | None:
    """Read a document; None if it has no sentence.

    Tokens without a tag are left out and counted. A sentence that begins with the quotation mark
    which closes the one before gives it back.
    """
    paragraphs: list[list[RawText]] = []
    blocks = [block for block in text.split("\n\n") if block.strip()]
    for block in blocks:
        paragraphs.extend(_paragraphs(_lines(name, block, skipped), name, skipped))
    if not paragraphs:
        skipped.add("documents without a sentence were left out", name)
        return None
    path = PurePosixPath(name)
    genre = next((genres[part] for part in (name, *_tails(path)) if part in genres), None)
    return RawDocument(str(path.with_suffix("")), paragraphs, len(blocks) > 1, genre)


def _tails(path: PurePosixPath) -> Iterator[str]:
    """The path without its first folders: an archive has one of its own around all."""
    for at in range(1, len(path.parts)):
        yield "/".join(path.parts[at:])


_Line = tuple[list[str], list[str]]


def _lines(name: str, block: str, skipped: Skipped) -> list[_Line]:
    """The words and tags of each line."""
    lines: list[_Line] = []
    open_quote = False
    for line in block.split("\n"):
        words, tags = [], []
        for token in line.split():
            word, _, tag = token.rpartition("_")
            if word and tag:
                words.append(unescaped(word))
                tags.append(tag)
            else:
                skipped.add("tokens without a word or a tag were left out", name)
        if words and lines and quote_closes(words, open_quote):
            lines[-1][0].append(words.pop(0))
            lines[-1][1].append(tags.pop(0))
            open_quote = False
        if words:
            lines.append((words, tags))
            open_quote = begins_quoted(words, open_quote) ^ (words.count('"') % 2 == 1)
    return lines


def _paragraphs(lines: list[_Line], name: str, skipped: Skipped) -> Iterator[list[RawText]]:
    """Yield the sentences of a block; where one is left out, another paragraph begins."""
    sentences: list[RawText] = []
    open_quote = False
    for words, tags in lines:
        text, starts, open_quote = detokenise(words, tags, open_quote)
        if len(text) > LONGEST:
            skipped.add(f"sentences of more than {LONGEST:,} characters were left out", name)
            if sentences:
                yield sentences
            sentences = []
            continue
        ends = [start + len(word) for start, word in zip(starts, words, strict=True)]
        # Tuples of numbers and strings, unlike lists, are no work for the garbage collector.
        upos = tuple(universal_tags(words, tags))
        sentences.append(RawText(text, tuple(starts), tuple(ends), upos, tuple(tags)))
    if sentences:
        yield sentences


def universal_tags(words: list[str], tags: list[str]) -> list[str | None]:
    """Return the universal part of speech of words with Penn Treebank tags."""
    return [_universal(word, tag) for word, tag in zip(words, tags, strict=True)]


_universal: Callable[[str, str], str | None] = lru_cache(maxsize=1 << 17)(universal)
