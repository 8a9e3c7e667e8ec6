"""What keeps pairs of words out of the clean tier, although WordNet states what holds of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from builders.antonyms.senses import Senses

KNOWN = 2.6
"""Least frequency (Zipf) of both words."""

SIMILAR_SHARE = 0.75
"""Least share of each sense on the way from one word to the other, by way of similar adjectives."""

MOST_SENSES = 3
"""Most senses on the way from one word to the other: both ends and one between them."""

USED_AS = 0.6
"""Least share of a word's uses in which it has the part of speech asked about."""

FLAGS = {
    "rare_word": f"A word is rarer than Zipf {KNOWN:g}.",
    "indirect": f"One word leads to the other by way of more than {MOST_SENSES - 2} further, or of "
    "similar adjectives of which a sense on the way is in less than "
    f"{SIMILAR_SHARE:.0%} of its word's uses.",
    "comparative": "A word is a comparative or superlative: it was *smaller* than what?",
    "other_part_of_speech": f"A word is used so in less than {USED_AS:.0%} of its uses, and the "
    "pair is not stated itself.",
}
"""What keeps a question out of the clean tier."""

_IRREGULAR = (
    "better", "best", "elder", "eldest", "farther", "further", "furthest", "inner", "latter",
    "least", "less", "lesser", "more", "most", "upper", "worse", "worst",
)  # fmt: skip


def doubts(senses: Senses, path: Sequence[int], stated: bool, similar: bool) -> Iterator[str]:
    """Yield what speaks against a path of senses (rows of ``WordNet.senses``).

    Args:
        senses: all senses of WordNet.
        path: from the first word's sense to the second's.
        stated: whether WordNet states the pair itself.
        similar: whether the path goes by way of similar adjectives.
    """
    ends = path[0], path[-1]
    if min(senses.zipf[end] for end in ends) < KNOWN:
        yield "rare_word"
    minor = similar and min(senses.share[sense] for sense in path) < SIMILAR_SHARE
    if minor or len(path) > MOST_SENSES:
        yield "indirect"
    if any(
        senses.kind[end] == "adjective" and is_compared(senses.lemma[end], senses) for end in ends
    ):
        yield "comparative"
    if not stated and min(senses.used_as[end] for end in ends) < USED_AS:
        yield "other_part_of_speech"


def is_compared(word: str, senses: Senses) -> bool:
    """Tell whether an adjective is the comparative or superlative of another."""
    if word in _IRREGULAR:
        return True
    for ending in ("er", "est"):
        if not word.endswith(ending):
            continue
        bare = word.removesuffix(ending)
        bases = [bare, bare + "e"]
        if bare[-2:-1] == bare[-1:]:
            bases.append(bare[:-1])
        if bare.endswith("i"):
            bases.append(bare[:-1] + "y")
        if any((base, "adjective") in senses.first for base in bases):
            return True
    return False
