"""Word families: does a text contain a word of another text, or a word related to it?

Two words are related (*akin*) if one of these holds for their lemmas:

- both begin with the same four letters (*placement*, *placed*), ignoring a prefix (*reheat*,
  *heat*);
- one contains the first five letters of the other (*insurmountable*, *surmounting*), or ends in
  the other, if that has four letters (*houseboat*, *boat*);
- one is the other plus a common ending, and the shorter has three letters, or four with a final *e*
  (*vexation*, *vex*).

The rules are crude on purpose: a false match costs one question, but a missed one gives an answer
away. Everything is computed on integers: each word has *keys*, and words with a common key are
related.

:func:`content_words` is cruder still: it cuts words to stems, and compares these alone.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.english.word_lists import word_groups
from kb_cache.frequency import FUNCTION_WORDS
from kbprobe.arrays import Bools, Ints, KeySet, contains, mask_at, ragged_ranges, sorted_unique
from kbprobe.columns import mask, to_numpy
from kbprobe.tokens import Tokens, tokenise

START, INNER = 4, 5
"""Number of first letters compared at the start of words, and anywhere inside the other word."""

SHORTEST = 3
"""Minimum number of letters of a content word."""

LONGEST = 24
"""Maximum number of letters of a word that are compared."""

PREFIX = (
    r"^(?:counter|inter|super|trans|under|fore|over|semi|anti|dis|mid|mis|non|out|pre|sub|be|en|em"
    r"|[iu]n|il|im|ir|re|up|a)(\pL{4})"
)
ENDING = (
    r"^(\pL\pL\pL)[bdgklmnprt]?(?:able|ably|age|al|ally|ance|ant|ar|ation|ed|ence|ent|er|ery|est|ful"
    r"|fully|hood|ible|ic|ical|ier|ies|iest|ing|ion|ish|ism|ist|ity|ive|less|like|ly|ment|ness|or"
    r"|ous|ry|s|ship|some|ure|ward|y)$"
)
AS_ENDINGS = ("able", "hood", "less", "like", "ment", "ness", "ship", "some", "ward", "wise")
"""Four-letter words that are also common endings of unrelated words."""

_FULL, _START, _INSIDE, _END, _STEM = range(1, 6)
_HOLDER = 8
"""Marks keys of the containing word; the matching keys of contained words lack it."""


class Keys(NamedTuple):
    """The keys of words: those of word ``i`` are ``codes[indptr[i]:indptr[i + 1]]``."""

    indptr: Ints
    codes: Ints

    def of(self, words: Ints) -> tuple[Ints, Ints]:
        """Return (position in ``words``, key) for every key of the given words."""
        lengths = np.diff(self.indptr)[words]
        position = np.repeat(np.arange(words.size, dtype=np.int64), lengths)
        return position, self.codes[ragged_ranges(self.indptr[words], lengths)]

    def only(self, keep: Bools) -> Keys:
        """Return the keys marked in ``keep``."""
        return Keys(np.concatenate([[0], np.cumsum(keep)])[self.indptr], self.codes[keep])

    def numbered(self, common: Ints) -> Keys:
        """Return the keys in ``common`` (ascending), as their indices in it."""
        kept = self.only(contains(common, self.codes))
        return kept._replace(codes=np.searchsorted(common, kept.codes))


def holds_kin(asked: pa.Array, at_asked: Ints, texts: pa.Array, at_text: Ints) -> Bools:
    """Return for pairs of texts whether the second contains a word akin to one of the first.

    Pair ``i`` is ``asked[at_asked[i]]`` and ``texts[at_text[i]]``. Function words do not count,
    unless the first text has no others: the word asked about always counts.
    """
    left, right = tokenise(asked, texts)
    function = _function_words(left.words)
    bare = np.ones(len(asked), dtype=np.bool_)
    owner, word = left.of(np.arange(len(asked), dtype=np.int64))
    bare[owner[~function[word]]] = False
    counts = ~function[word] | bare[owner]
    keys = _kin_keys(left.words)
    # The keys of words in the second text, so that containing words match contained ones.
    codes = np.where(keys.codes & 7 > _START, keys.codes ^ _HOLDER, keys.codes)
    usable = ~np.repeat(function, np.diff(keys.indptr)) | (codes & 7 == _FULL)
    held = keys._replace(codes=codes).only(usable)
    asking = _Side(owner[counts], word[counts], keys, at_asked)
    return _meet(asking, _Side(*right.of(np.arange(len(texts))), held, at_text))


def shares_a_word(left: pa.Array, at_left: Ints, right: pa.Array, at_right: Ints) -> Bools:
    """Return for pairs of texts whether they share a content word, in whatever form.

    Pair ``i`` is ``left[at_left[i]]`` and ``right[at_right[i]]``. Function words do not count.
    """
    sides = tokenise(left, right)
    keys = _lemma_keys(sides[0].words)
    keys = keys.only(~np.repeat(_function_words(sides[0].words), np.diff(keys.indptr)))
    both = zip(sides, (at_left, at_right), strict=True)
    return _meet(*(_Side(*side.of(np.arange(side.lengths.size)), keys, at) for side, at in both))


def akin(word: str, other: str) -> bool:
    """Return whether two words are akin.

    >>> akin("swept", "sweep"), akin("vexation", "vexing"), akin("uneasy", "easy")
    (True, True, True)
    """
    first = np.zeros(1, dtype=np.int64)
    return bool(holds_kin(pa.array([word]), first, pa.array([other]), first)[0])


class _Side(NamedTuple):
    """The texts on one side of pairs.

    Attributes:
        owner, word: parallel arrays: the words of each text, text by text.
        keys: the keys of all words.
        at: (pairs,) the text in each pair.
    """

    owner: Ints
    word: Ints
    keys: Keys
    at: Ints


def _meet(left: _Side, right: _Side) -> Bools:
    """Return for pairs of texts whether they have a key in common."""
    asked, held = (
        sorted_unique(side.keys.of(sorted_unique(side.word))[1]) for side in (left, right)
    )
    # Few keys are on both sides: the others are left out before texts get those of their words.
    common = asked[contains(held, asked)]
    (asking, key), (holding, code) = (
        side.keys.numbered(common).of(side.word) for side in (left, right)
    )
    indptr = np.searchsorted(left.owner[asking], np.arange(int(left.at.max(initial=-1)) + 2))
    pair, wanted = Keys(indptr, key).of(left.at)
    held = sorted_unique(right.owner[holding] * common.size + code)
    hit = KeySet(held).contains(right.at[pair] * common.size + wanted)
    return mask_at(left.at.size, pair[hit])


def _function_words(words: pa.Array) -> Bools:
    listed = pc.is_in(words, pa.array(FUNCTION_WORDS.split()))
    return np.asarray(mask(listed) | (to_numpy(pc.utf8_length(words)) < SHORTEST))


def _lemma_keys(words: pa.Array) -> Keys:
    owner, forms = lemmas(words)
    return _gathered(len(words), [(owner, to_numpy(forms.dictionary_encode().indices))])


def _kin_keys(words: pa.Array) -> Keys:
    """Return the keys of words; two words are akin if they have a key in common."""
    owner, forms = lemmas(words)
    forms = pc.replace_substring(forms, "y", "i")
    full = to_numpy(forms.dictionary_encode().indices).astype(np.int64)
    parts = [(owner, full << 4 | _FULL)]

    def add(kind: int, codes: Ints, of: Bools, whose: Ints = owner) -> None:
        parts.append((whose[of], codes[of] << 4 | kind))

    letters, length = _letters(forms)
    add(_START, _run(letters, 0, START), length >= START)
    bare = pc.replace_substring_regex(forms, PREFIX, r"\1")
    stripped = mask(pc.not_equal(bare, forms))
    rest = bare.filter(pa.array(stripped))
    add(_START, _run(_letters(rest)[0], 0, START), np.ones(len(rest), np.bool_), owner[stripped])
    add(_INSIDE, _run(letters, 0, INNER), length >= INNER)
    for start in range(1, LONGEST - INNER + 1):
        rows = np.flatnonzero(length >= start + INNER)
        parts.append((owner[rows], _run(letters[rows], start, INNER) << 4 | _INSIDE | _HOLDER))
    plain = ~mask(pc.is_in(forms, pa.array(AS_ENDINGS))) & ~mask(pc.ends_with(forms, "ing"))
    add(_END, _run(letters, 0, START), (length == START) & plain)
    end = np.take_along_axis(
        letters, np.maximum(length - START, 0)[:, None] + np.arange(START), axis=1
    )
    add(_END | _HOLDER, _run(end, 0, START), length > START)
    short = (length == SHORTEST) | ((length == SHORTEST + 1) & mask(pc.ends_with(forms, "e")))
    add(_STEM, _run(letters, 0, SHORTEST), short)
    stem = pc.replace_substring_regex(forms, ENDING, r"\1")
    ended = mask(pc.not_equal(stem, forms))
    add(_STEM | _HOLDER, _run(letters, 0, SHORTEST), ended)
    return _gathered(len(words), parts)


def _letters(texts: pa.Array) -> tuple[Ints, Ints]:
    """Return the first letters of texts, (texts, LONGEST), as code points, and their number."""
    width = np.array(texts.to_pylist() or [""], dtype=f"U{LONGEST}")[: len(texts)]
    points = width.view(np.uint32).reshape(len(texts), LONGEST).astype(np.int64)
    return points, np.count_nonzero(points, axis=1)


def _run(letters: Ints, start: int, length: int) -> Ints:
    """Pack a run of letters into one number: code points modulo 2 ** 11."""
    packed = np.zeros(len(letters), dtype=np.int64)
    for at in range(start, start + length):
        packed = packed << 11 | (letters[:, at] & 0x7FF)
    return packed


def _gathered(size: int, parts: list[tuple[Ints, Ints]]) -> Keys:
    """Combine the keys of words, given as several arrays of (word, key), into one ragged array."""
    owner = np.concatenate([part[0] for part in parts])
    codes = np.concatenate([part[1] for part in parts]).astype(np.int64)
    order = np.argsort(owner, kind="stable")
    return Keys(np.searchsorted(owner[order], np.arange(size + 1)), codes[order])


def content_words(*texts: pa.Array) -> tuple[Tokens, ...]:
    """Split texts into words without endings, function words left out, with one vocabulary.

    Each distinct word is cut once. Words are numbered in the order in which they first occur.
    """
    parts = [part.cast(pa.string()) for part in (pa.array([FUNCTION_WORDS]), *texts)]
    lists = pc.utf8_split_whitespace(pc.utf8_lower(pa.concat_arrays(parts)))
    encoded = lists.flatten().dictionary_encode()
    (stems,) = tokenise(_stems(encoded.dictionary))
    owner, ids = stems.of(to_numpy(encoded.indices).astype(np.int64))
    indptr = np.searchsorted(owner, to_numpy(lists.offsets).astype(np.int64))
    # Rows depend on these numbers. The first text without words takes one for its empty word.
    words = stems.words.filter(pc.not_equal(stems.words, ""))
    ids = to_numpy(pc.index_in(stems.words, words).fill_null(-1)).astype(np.int64)[ids]
    if (empty := np.flatnonzero(np.diff(indptr) == 0)).size:
        number = int(ids[: indptr[empty[0]]].max(initial=-1)) + 1
        ids += ids >= number
        words = pa.concat_arrays([words[:number], pa.array([""]), words[number:]])
    counted = np.ones(len(words), dtype=np.bool_)
    counted[ids[: indptr[1]]] = False
    indptr = np.concatenate([[0], np.cumsum(counted[ids])])[indptr]
    return Tokens(indptr, ids[counted[ids]], words).parts(map(len, parts))[1:]


def _stems(words: pa.Array) -> pa.Array:
    """Strip common endings of words, then cut them to five letters; drop those of one or two.

    Crude on purpose: "contaminated" must match "contamination". A false match costs one question,
    but a missed one gives an answer away.
    """
    letter = "[a-z]" if pc.all(pc.string_is_ascii(words)).as_py() else r"\pL"  # much faster
    ending = "(?:ings?|ed|ers?|ies|y|es|s|e)"
    cut = pc.replace_substring_regex(words, rf"({letter}{{3,}}?){ending}\b", r"\1")
    short = pc.replace_substring_regex(cut, rf"\b({letter}{{5}}){letter}+", r"\1")
    return pc.replace_substring_regex(short, rf"\b{letter}{{1,2}}\b", " ")


def _doubled(letters: str) -> tuple[str, str]:
    """Return a rule for doubled consonants ("dragging"): pattern and replacement."""
    either = "|".join(f"({letter}){letter}" for letter in letters)
    return rf"^(.+)(?:{either})(?:ed|ing)$", "".join(rf"\{at}" for at in range(1, len(letters) + 2))


_REGULAR = (
    (r"^(..*[^sui])s$", r"\1"),
    (r"^(..+)es$", r"\1"),
    (r"^(..+)ie[sd]$", r"\1y"),
    (r"^(..+)(?:ed|ing)$", r"\1"),
    (r"^(..+)(?:ed|ing)$", r"\1e"),
    _doubled("bdfgklm"),
    _doubled("nprstvz"),
)
"""Patterns of endings and the lemmas that they may come from."""


def regular_lemmas(words: pa.Array) -> tuple[Ints, pa.Array]:
    """Return possible lemmas of regular forms: parallel arrays of positions and lemmas.

    These are all lemmas that the endings allow: "plane" and "plan" for "planed".
    """
    owners, forms = [], []
    for pattern, lemma in _REGULAR:
        matched = pc.match_substring_regex(words, pattern)
        owners.append(np.flatnonzero(mask(matched)))
        forms.append(pc.replace_substring_regex(words.filter(matched), pattern, lemma))
    return np.concatenate(owners), pa.concat_arrays(forms)


def lemmas(words: pa.Array) -> tuple[Ints, pa.Array]:
    """Return possible lemmas of words: parallel arrays of positions and lemmas.

    Each word is among its own lemmas. Regular forms are recognized by their endings, irregular ones
    by a table derived from lemminflect's, which itself takes longer to load than this function
    takes to run.

    >>> position, lemma = lemmas(pa.array(["swept", "dogs"]))
    >>> position.tolist(), lemma.to_pylist()
    ([0, 1, 1, 0], ['swept', 'dogs', 'dog', 'sweep'])
    """
    own = np.arange(len(words), dtype=np.int64)
    regular, regular_forms = regular_lemmas(words)
    irregular_forms, table = _irregular_forms()
    at = pc.index_in(words, irregular_forms)
    known = np.flatnonzero(mask(at.is_valid()))
    listed = table.take(at.drop_null())
    irregular = np.repeat(known, to_numpy(pc.list_value_length(listed)))
    return (
        np.concatenate([own, regular, irregular]),
        pa.concat_arrays([words.cast(pa.string()), regular_forms, listed.flatten()]),
    )


@cache
def _irregular_forms() -> tuple[pa.Array, pa.Array]:
    """The irregular forms, and the list of lemmas of each."""
    lines = word_groups("irregular_forms")
    return pa.array([form for form, *_ in lines]), pa.array([rest for _, *rest in lines])
