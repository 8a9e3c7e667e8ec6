"""Reasons to keep pairs of words out of the clean tier although WordNet states their relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from builders.antonyms.senses import Senses
from builders.judged.model import judged_model
from kbprobe.arrays import Floats

LEAST_CHANCE = 0.7
"""Minimum probability that readers accept a pair of antonyms, for the full tier."""

LEAST_SHARE = 0.02
"""Lower bound of shares of senses: all smaller ones count as equally rare."""

FLAGS = {
    "doubtful_pair": "Antonyms that readers are likely to find arguable, according to a model of "
    "the pairs that they judged.",
    "comparative": "A word is a comparative or superlative: it was *smaller* than what?",
}
"""Reasons to keep a question out of the clean tier."""

_IRREGULAR = (
    "better", "best", "elder", "eldest", "farther", "further", "furthest", "inner", "latter",
    "least", "less", "lesser", "more", "most", "upper", "worse", "worst",
)  # fmt: skip


def antonym_features(
    senses: Senses, paths: Sequence[Sequence[int]], relations: Sequence[Sequence[str]]
) -> Mapping[str, Floats]:
    """Return the features of each pair for the model of judged antonyms.

    Args:
        senses: all senses of WordNet.
        paths: for each pair, the path from the first word's sense to the second's (rows of
            ``WordNet.senses``).
        relations: the edges between them.
    """
    ends = [(path[0], path[-1]) for path in paths]
    kind = np.array([senses.kind[one] for one, _ in ends], dtype=np.str_)
    similar = np.array([edges.count("similar to") for edges in relations])
    least = np.array([min(senses.share[sense] for sense in path) for path in paths])
    doubtful = np.array([senses.doubtful[one] * 1 + senses.doubtful[two] for one, two in ends])
    return {
        "similar": (similar == 1) * 1.0,
        "similar_both": (similar == 2) * 1.0,
        "synonyms": np.array([float(edges.count("synonym")) for edges in relations]),
        "log_share": np.log(np.maximum(least, LEAST_SHARE)),
        "doubtful": doubtful * 1.0,
        "noun": (kind == "noun") * 1.0,
        "verb": (kind == "verb") * 1.0,
    }


def doubts(senses: Senses, path: Sequence[int], antonym: bool, chance: float) -> Iterator[str]:
    """Yield the flags of a path of senses (rows of ``WordNet.senses``).

    Args:
        senses: all senses of WordNet.
        path: from the first word's sense to the second's.
        antonym: whether it leads to an antonym.
        chance: the probability that readers accept it as such.
    """
    if antonym and chance < judged_model("antonym").thresholds["antonym_negation"]:
        yield "doubtful_pair"
    if any(
        senses.kind[end] == "adjective" and is_compared(senses.lemma[end], senses)
        for end in (path[0], path[-1])
    ):
        yield "comparative"


def is_compared(word: str, senses: Senses) -> bool:
    """Return whether an adjective is the comparative or superlative of another."""
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
