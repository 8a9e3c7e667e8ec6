"""Reading CoNLL-U, the format of Universal Dependencies, with its document and paragraph marks.

https://universaldependencies.org/format.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kb_cache.corpora.reading import LONGEST, Skipped
from kb_cache.corpora.rows import RawDocument, RawText

_COLUMNS = 10


@dataclass
class _Word:
    """A surface token: one syntactic word, or several that the text writes as one."""

    form: str
    ids: list[str]
    lemma: str | None
    upos: str | None
    xpos: str | None
    head: str
    deprel: str | None
    space: bool


@dataclass
class _ConlluDocument:
    """The part of a document that has been read."""

    id: str
    paragraphs: list[list[RawText]] = field(default_factory=list)
    marked: bool = False
    begin: bool = True  # whether the next sentence begins a paragraph

    def add(self, sentence: RawText) -> None:
        if self.begin or not self.paragraphs:
            self.paragraphs.append([])
            self.begin = False
        self.paragraphs[-1].append(sentence)

    def raw(self) -> RawDocument:
        return RawDocument(self.id, self.paragraphs, self.marked)


def is_conllu(text: str) -> bool:
    """Return whether the first line that is not a comment has the ten columns of CoNLL-U."""
    lines = (line for line in text[: 1 << 16].split("\n") if line and not line.startswith("#"))
    first = next(lines, "").split("\t")
    return len(first) == _COLUMNS and first[0].split("-")[0].split(".")[0].isdecimal()


def read_conllu(name: str, text: str, skipped: Skipped) -> Iterator[RawDocument]:
    """Yield the documents of a file; without ``# newdoc`` marks it is one.

    A malformed sentence is left out and counted; a paragraph ends there. Syntactic words whose
    forms make up the token that the text has ("do" and "n't") are tokens each; others are one
    token, which takes the annotation of the word that heads them ("du": "de" and "le").
    """
    stem = name.removesuffix(".conllu")
    document = _ConlluDocument(stem)
    number = 0
    for block, line in _blocks(text):
        comments = [row[1:].strip() for row in block if row.startswith("#")]
        rows = [row for row in block if not row.startswith("#")]
        stated = dict(_comment(comment) for comment in comments)
        if "newdoc" in stated or "newdoc id" in stated:
            yield from [document.raw()] if document.paragraphs else []
            number += 1
            document = _ConlluDocument(stated.get("newdoc id") or f"{stem}-{number}")
        if "newpar" in stated or "newpar id" in stated:
            document.marked = document.begin = True
        if not rows:
            continue
        sentence = _sentence(rows, stated.get("text", ""))
        if sentence is None or not 0 < len(sentence.text) <= LONGEST:
            why = f"sentences are malformed or longer than {LONGEST:,} characters"
            skipped.add(f"{why} and were left out", f"{name}, line {line:,}")
            document.begin = True
        else:
            document.add(sentence)
    if document.paragraphs:
        yield document.raw()


def _blocks(text: str) -> Iterator[tuple[list[str], int]]:
    """Yield the lines between blank lines, and the number of the first."""
    block: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            block.append(line)
        elif block:
            yield block, number - len(block)
            block = []
    if block:
        yield block, number - len(block) + 1


def _comment(comment: str) -> tuple[str, str]:
    name, _, value = comment.partition("=")
    return name.strip(), value.strip()


def _sentence(rows: list[str], text: str) -> RawText | None:
    """Make a sentence from its rows; None if they are malformed."""
    fields = [row.split("\t") for row in rows]
    if any(len(line) != _COLUMNS or not line[1] for line in fields):
        return None
    words = _words([line for line in fields if "." not in line[0]])
    if words is None or not words:
        return None
    places = _places(text, words)
    if places is None:
        text, places = _spaced(words)
    row_of = {id_: row for row, word in enumerate(words) for id_ in word.ids}
    heads = []
    for row, word in enumerate(words):
        heads.append(row if word.head == "0" else row_of.get(word.head, -1))
    return RawText(
        text,
        [start for start, _ in places],
        [end for _, end in places],
        [word.upos for word in words],
        [word.xpos for word in words],
        [word.lemma for word in words],
        [word.deprel for word in words],
        heads,
    )


def _words(fields: list[list[str]]) -> list[_Word] | None:
    """Join syntactic words that the text writes as one; None if ids are out of order."""
    words: list[_Word] = []
    at = 0
    while at < len(fields):
        one = fields[at]
        first, _, last = one[0].partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            return None
        if not last:
            words.append(_word(one))
            at += 1
            continue
        parts = [_word(each) for each in fields[at + 1 : at + 2 + int(last) - int(first)]]
        if not parts or parts[-1].ids != [last]:
            return None
        words.extend(_surface(one, parts))
        at += 1 + len(parts)
    return words


def _word(columns: list[str]) -> _Word:
    known = [None if value == "_" else value for value in columns]
    lemma = columns[1] if columns[2] == "_" == columns[1] else known[2]
    space = "SpaceAfter=No" not in columns[9].split("|")
    return _Word(columns[1], [columns[0]], lemma, known[3], known[4], columns[6], known[7], space)


def _surface(token: list[str], parts: list[_Word]) -> list[_Word]:
    """Return the tokens of what the text writes as one word."""
    space = "SpaceAfter=No" not in token[9].split("|")
    if "".join(part.form for part in parts) == token[1]:
        for part in parts:
            part.space = False
        parts[-1].space = space
        return parts
    inside = {id_ for part in parts for id_ in part.ids}
    chief = next((part for part in parts if part.head not in inside), parts[0])
    chief.form, chief.space, chief.ids = token[1], space, [part.ids[0] for part in parts]
    return [chief]


def _places(text: str, words: list[_Word]) -> list[tuple[int, int]] | None:
    """Return the offsets of words in the text, or None if it contains anything else."""
    places, at = [], 0
    for word in words:
        found = text.find(word.form, at)
        if found < 0 or text[at:found].strip():
            return None
        at = found + len(word.form)
        places.append((found, at))
    return None if text[at:].strip() else places


def _spaced(words: list[_Word]) -> tuple[str, list[tuple[int, int]]]:
    """Join words according to their SpaceAfter."""
    pieces, places, at = [], [], 0
    for word in words:
        places.append((at, at + len(word.form)))
        piece = word.form + (" " if word.space else "")
        pieces.append(piece)
        at += len(piece)
    return "".join(pieces).rstrip(), places
