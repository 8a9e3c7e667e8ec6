"""Splitting text into tokens in the manner of GloVe's training text."""

from __future__ import annotations

import re

from kbprobe.format.setups import MASK

_CLITIC = r"'(?:s|m|d|re|ve|ll)\b"
_TOKEN = re.compile(
    rf"""
    (?-i:{re.escape(MASK)})
    | \d+ (?: [.,:]\d+ )+ (?: -\w+ )*              # 3.14  10:30  1,000-dollar
    | (?: [^\W\d_]\. ){{2,}}                       # u.s.
    | [^\W\d_]+? (?=n't\b)                         # does|n't
    | n't\b
    | {_CLITIC}                                    # dog|'s
    | \w+ (?: - \w+ | (?!{_CLITIC}) ' \w+ )*       # well-known  o'clock
    | \.{{2,}}
    | -{{2,}}
    | \S                                           # a punctuation mark
    """,
    re.VERBOSE | re.IGNORECASE,
)


def tokenize(text: str) -> list[str]:
    """Split a text into lower-case tokens, punctuation apart.

    This follows the Stanford tokenizer that GloVe's training text was split with, but for what
    needs its tables (abbreviations such as "inc.", the two kinds of quotation marks). Clitics are
    tokens of their own; numbers, initials and words with hyphens stay whole; ``[MASK]`` stays as
    it is.

    >>> tokenize("The dog's owner doesn't like [MASK], a 1,000-dollar U.S. pet.")
    ['the', 'dog', "'s", 'owner', 'does', "n't", 'like', '[MASK]', ',', 'a', '1,000-dollar', 'u.s.', 'pet', '.']
    """  # noqa: E501  # a list in a doctest is one line
    plain = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    found = _TOKEN.findall(plain)
    return [token if token == MASK else token.lower() for token in found]
