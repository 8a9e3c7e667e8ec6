"""From tokens, as treebanks and tagged corpora store them, back to text as it is printed.

Tagged corpora separate every token by a space. Here punctuation, clitics and quotation marks join
their neighbours again. Where the tokens do not say what the original had (a straight quotation
mark may open or close, a dash may have spaces), the commoner case is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

#: What the Penn Treebank writes instead of characters that its own notation uses.
ESCAPED = {
    "``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{",
    "-RCB-": "}",
}  # fmt: skip
#: Tokens that join what is before them, or after them, or both.
_JOIN_BEFORE = frozenset(
    (".", ",", ";", ":", "?", "!", ")", "]", "}", ">", "”", "’", "%", "°", "…", "®", "™", "©")
)
_JOIN_AFTER = frozenset(("(", "[", "{", "<", "“", "‘", "`", "$", "£", "€", "@", "#"))
_JOIN_BOTH = frozenset(("/", "_", "—", "⁄"))
#: The second parts of contractions, behind their apostrophe.
_CLITICS = frozenset(("s", "re", "m", "ve", "ll", "d", "t"))
#: What stands before the apostrophe of a name.
_NAME_PREFIXES = ("O", "D")
_APOSTROPHES = ("'", "’")
#: Words that tokenisers divide without a mark: "can" and "not".
_DIVIDED = frozenset(
    (("can", "not"), ("gon", "na"), ("wan", "na"), ("got", "ta"), ("gim", "me"), ("lem", "me"))
)
_DIVIDED_FIRST = frozenset(first for first, _ in _DIVIDED)
#: Behind these a hyphen at a word's end was there in the original: "pre- and post-war".
_COORDINATING = frozenset(("and", "or", "to", "but"))
#: Tags of hyphens within words: of MASC and of the Penn Treebank since 2004.
_HYPHEN_TAGS = frozenset(("-", "HYPH"))
_DASHES = ("-", "–")
#: What stands before the mark that ends a quotation within a sentence.
_ENDS_QUOTED = (",", "?", "!", ".")
_PAIRED = ('"', "'", "*")

_PLAIN, _BEFORE, _AFTER, _BOTH, _PAIR, _HYPHEN, _SUSPENDED, _FIRST = range(8)


@lru_cache(maxsize=1 << 17)
def _class_of(word: str) -> int:
    """How a token joins its neighbours."""
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
    """Return what stood in the text for a token.

    >>> unescaped("-LRB-"), unescaped("(")
    ('(', '(')
    """
    return ESCAPED.get(word, word)


def detokenise(
    words: Sequence[str], tags: Sequence[str] = (), open_quote: bool = False
) -> tuple[str, list[int], bool]:
    r"""Join words as they are printed.

    Args:
        words: the tokens of a sentence, `unescaped`, each with at least one character and no
            space.
        tags: their Penn Treebank tags, which tell a hyphen ("-", "HYPH") from a dash (":").
        open_quote: whether a straight quotation mark was opened in a sentence before.

    Returns:
        The text, where in it each token begins, and whether a quotation mark is left open. The
        text is the tokens in their order, with at most one space between two.

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
    """Whether a mark that both opens and closes joins what is before it, and after it."""
    if opened[mark]:
        opened[mark] = False
        return True, False
    if mark == "'" and 0 < index < len(words) - 1:
        one, other = words[index - 1], words[index + 1]
        if one in _NAME_PREFIXES or (one.isalpha() and other.lower() in _CLITICS):
            return True, True  # "O'Neill", "YOU'RE" in three tokens
    if mark == '"' and index and index == len(words) - 1:
        return True, False  # what it closes was opened in a sentence that is not there
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
    """Whether a hyphen or dash joins what is before it, and after it."""
    more = following in _DASHES
    if repeated:  # one dash of several signs
        return True, more
    if not previous or not following or joining:
        return True, more or joining
    if previous[-1].isdigit() and following[0].isdigit():
        return True, True
    return glue, more


def begins_quoted(words: Sequence[str], open_quote: bool) -> bool:
    """Tell whether a sentence begins inside a quotation that one before it opened.

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
    """Tell whether a sentence begins with the mark that closes a quotation of the one before.

    >>> quote_closes(['"', "he", "said", "."], True), quote_closes(['"', "No", '"'], True)
    (True, False)
    """
    return words[0] == '"' and begins_quoted(words, open_quote)
