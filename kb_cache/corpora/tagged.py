"""Reading tagged text in NLTK's format: one sentence per line, ``word_TAG``, blank lines between.

Blank lines separate paragraphs. MASC is in this format.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import PurePosixPath

from kb_cache.corpora.reading import LONGEST, Skipped
from kb_cache.corpora.rows import RawDocument, RawText

#: The Penn Treebank's replacements of characters that its notation uses.
ESCAPED = {
    "``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{",
    "-RCB-": "}",
}  # fmt: skip
#: Tokens that join the text before them, or after them, or both.
_JOIN_BEFORE = frozenset(
    (".", ",", ";", ":", "?", "!", ")", "]", "}", ">", "”", "’", "%", "°", "…", "®", "™", "©")
)
_JOIN_AFTER = frozenset(("(", "[", "{", "<", "“", "‘", "`", "$", "£", "€", "@", "#"))
_JOIN_BOTH = frozenset(("/", "_", "—", "⁄"))
#: The second parts of contractions, after their apostrophe.
_CLITICS = frozenset(("s", "re", "m", "ve", "ll", "d", "t"))
#: What precedes the apostrophe of a name.
_NAME_PREFIXES = ("O", "D")
_APOSTROPHES = ("'", "’")
#: Words that tokenisers split without a mark: "can" and "not".
_DIVIDED = frozenset(
    (("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("gim", "me"), ("lem", "me"))
)
_DIVIDED_FIRST = frozenset(first for first, _ in _DIVIDED)
#: After these, a hyphen at a word's end was in the original: "pre- and post-war".
_COORDINATING = frozenset(("and", "or", "to", "but"))
#: Tags of hyphens within words: of MASC and of the Penn Treebank since 2004.
_HYPHEN_TAGS = frozenset(("-", "HYPH"))
_DASHES = ("-", "–")
#: What precedes the mark that ends a quotation within a sentence.
_ENDS_QUOTED = (",", "?", "!", ".")
_PAIRED = ('"', "'", "*")

_PLAIN, _BEFORE, _AFTER, _BOTH, _PAIR, _HYPHEN, _SUSPENDED, _FIRST = range(8)


@lru_cache(maxsize=1 << 17)
def _class_of(word: str) -> int:
    """Return how a token joins its neighbours."""
    if word in _PAIRED:
        return _PAIR
    if word in _JOIN_BEFORE or not word.strip(".!?…"):
        return _BEFORE
    if word in _JOIN_AFTER:
        return _AFTER
    if word in _JOIN_BOTH:
        return _BOTH
    if word in _DASHES:
        return _HYPHEN
    if word[0] in _APOSTROPHES and word[1:].lower() in _CLITICS:
        return _BEFORE
    lower = word.lower()
    if lower in ("n't", "n’t"):
        return _BEFORE
    if lower in _DIVIDED_FIRST:
        return _FIRST
    if word[-1] == "-" and word[0].isalnum():
        return _SUSPENDED
    return _PLAIN


def unescaped(word: str) -> str:
    """Return the original text of a token.

    >>> unescaped("-LRB-"), unescaped("(")
    ('(', '(')
    """
    return ESCAPED.get(word, word)


def detokenise(
    words: Sequence[str], tags: Sequence[str] = (), open_quote: bool = False
) -> tuple[str, list[int], bool]:
    r"""Join words into text as it is printed.

    Args:
        words: the tokens of a sentence, `unescaped`, each with at least one character and no
            space.
        tags: their Penn Treebank tags, which tell a hyphen ("-", "HYPH") from a dash (":").
        open_quote: whether a straight quotation mark was opened in an earlier sentence.

    Returns:
        The text, the start of each token in it, and whether a quotation mark is left open. The text
        is the tokens in order, with at most one space between two.

    >>> detokenise(["I", "do", "n't", "know", ",", "he", "said", "."])[0]
    "I don't know, he said."
    >>> detokenise(['"', "It", "'s", "(", "5", "%", ")", ".", '"'])
    ('"It\'s (5%)."', [0, 1, 3, 6, 7, 8, 9, 10, 11], False)
    """
    starts: list[int] = []
    pieces: list[str] = []
    at, glue, previous, before = 0, True, "", _PLAIN
    opened = {'"': begins_quoted(words, open_quote), "'": False, "*": False}
    last = len(words) - 1
    for index, word in enumerate(words):
        kind = _class_of(word)
        after = False  # whether what follows joins this token
        if kind == _PLAIN:
            join = glue
        elif kind == _BEFORE:
            join = True
            if word == "’" and index < last and words[index + 1].lower() in _CLITICS:
                after = True
            elif word == ":" and previous.isdigit() and index < last:
                after = words[index + 1].isdigit()
        elif kind == _AFTER:
            # "HK$10", "a@b": what is written in capitals before a currency belongs to it.
            join = glue or (word == "$" and previous.isupper() and len(previous) <= 3)
            after = True
        elif kind == _BOTH:
            join = after = True
        elif kind == _PAIR:
            join, after = _pair(word, words, index, opened, glue)
        elif kind == _HYPHEN:
            tag = tags[index] if tags else ""
            joining = tag in _HYPHEN_TAGS
            following = words[index + 1] if index < last else ""
            join, after = _hyphen(joining, previous, following, before == _HYPHEN, glue)
        elif kind == _SUSPENDED:
            join = glue
            after = index < last and words[index + 1].lower() not in _COORDINATING
        else:
            join = glue
            after = index < last and (word.lower(), words[index + 1].lower()) in _DIVIDED
        if index and not join:
            pieces.append(" ")
            at += 1
        starts.append(at)
        pieces.append(word)
        at += len(word)
        glue, previous, before = after, word, kind
    return "".join(pieces), starts, opened['"']


def _pair(
    mark: str, words: Sequence[str], index: int, opened: dict[str, bool], glue: bool
) -> tuple[bool, bool]:
    """Return whether a mark that both opens and closes joins what precedes and follows it."""
    if opened[mark]:
        opened[mark] = False
        return True, False
    if mark == "'" and 0 < index < len(words) - 1:
        one, other = words[index - 1], words[index + 1]
        if one in _NAME_PREFIXES or (one.isalpha() and other.lower() in _CLITICS):
            return True, True  # "O'Neill", "YOU'RE" in three tokens
    if mark == '"' and index and index == len(words) - 1:
        return True, False  # it was opened in a sentence that is missing
    later = mark in words[index + 1 :]
    if mark == "'" and not later and index:
        return True, False  # the apostrophe of "the dogs' food"
    if mark == "'" and index and words[index - 1][-1] in "sS" and words[index - 1].isalpha():
        return True, False
    if mark == "*" and not later:
        return glue, False
    opened[mark] = True
    return glue, True


def _hyphen(
    joining: bool, previous: str, following: str, repeated: bool, glue: bool
) -> tuple[bool, bool]:
    """Return whether a hyphen or dash joins what precedes and follows it."""
    more = following in _DASHES
    if repeated:  # one dash made of several characters
        return True, more
    if not previous or not following or joining:
        return True, more or joining
    if previous[-1].isdigit() and following[0].isdigit():
        return True, True
    return glue, more


def begins_quoted(words: Sequence[str], open_quote: bool) -> bool:
    """Return whether a sentence begins inside a quotation opened by an earlier one.

    Marks are missing, or too many, in real text. One with an even number of marks is taken to
    open and close them itself, unless the first is where a quotation ends: 'yes," he said, "no'.

    >>> begins_quoted(["Yes", ",", '"', "he", "said", ",", '"', "no"], True)
    True
    >>> begins_quoted(["He", "said", ",", '"', "Yes", '"'], True)
    False
    """
    count = words.count('"') if open_quote else 0
    if count % 2 or not count:
        return open_quote
    first = words.index('"')
    return first > 0 and words[first - 1] in _ENDS_QUOTED and words[first + 1][0].islower()


def quote_closes(words: Sequence[str], open_quote: bool) -> bool:
    """Return whether a sentence begins with the mark that closes the previous one's quotation.

    >>> quote_closes(['"', "he", "said", "."], True), quote_closes(['"', "No", '"'], True)
    (True, False)
    """
    return words[0] == '"' and begins_quoted(words, open_quote)


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

    Tokens without letters or digits are punctuation or symbols whatever their tag: MASC tags
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
    """Return whether a text's first words have tags."""
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
    # An archive has a top-level folder around everything.
    tails = ("/".join(path.parts[at:]) for at in range(1, len(path.parts)))
    genre = next((genres[part] for part in (name, *tails) if part in genres), None)
    return RawDocument(str(path.with_suffix("")), paragraphs, len(blocks) > 1, genre)


_Line = tuple[list[str], list[str]]


def _lines(name: str, block: str, skipped: Skipped) -> list[_Line]:
    """Return the words and tags of each line."""
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
    """Yield the sentences of a block; after one that is left out, a new paragraph begins."""
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
        # Unlike lists, tuples of numbers and strings cost the garbage collector nothing.
        upos = tuple(map(_universal, words, tags))
        sentences.append(RawText(text, tuple(starts), tuple(ends), upos, tuple(tags)))
    if sentences:
        yield sentences


_universal: Callable[[str, str], str | None] = lru_cache(maxsize=1 << 17)(universal)
