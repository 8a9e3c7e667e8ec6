"""Choose among the ways to make a pair, such that kinds and words are equally frequent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from builders.engine.plan import text_keys
from builders.function_words.nli.pairs import NEGATED, TextPair
from kbprobe.rng import RandomGenerator


def choose(
    ways: Sequence[Sequence[TextPair]],
    per_sentence: int,
    cap: int,
    most: int,
    rng: RandomGenerator,
) -> list[tuple[int, TextPair]]:
    """Choose among the ways to make a pair of each of some sources.

    Sources are visited in random order, each once before any is visited again. For each, the kind
    that is least frequent so far is chosen, then the least frequent new word, then the least
    frequent old word; ties are broken at random.

    Args:
        ways: the pairs of each source, at least one.
        per_sentence: maximum number of pairs of a source.
        cap: maximum number of pairs with the same old word, and with the same new word (0: no
            limit).
        most: maximum number of pairs in all, from as few sources as possible (0: no limit).
        rng: the random generator; the result depends only on it and on the texts.

    Returns:
        Indices of sources with their pairs, in the order of the sources.
    """
    used: Counter[tuple[str, str]] = Counter()
    chosen: list[tuple[int, TextPair]] = []
    tie, order = rng.child("ways"), rng.child("order")
    draws = order.uniform(text_keys([pairs[0].premise for pairs in ways]))
    kinds = [len({way.kind for way in pairs}) for pairs in ways]
    sources = sorted(range(len(ways)), key=lambda at: (-kinds[at], draws[at], at))
    left = [list(pairs) for pairs in ways]
    if most:
        sources = sources[: most // per_sentence]
    for at in sources * per_sentence:
        fitting = [
            way for way in left[at] if not cap or max(used[_new(way)], used[_old(way)]) < cap
        ]
        if not fitting:
            continue
        costs = [(used["kind", way.kind], used[_new(way)], used[_old(way)]) for way in fitting]
        least = min(costs)
        best = [way for way, cost in zip(fitting, costs, strict=True) if cost == least]
        hashes = tie.bits(text_keys([way.hypothesis for way in best])).tolist()
        way = best[hashes.index(min(hashes))]
        used.update({("kind", way.kind), _new(way), _old(way)})
        left[at] = [other for other in left[at] if _texts(other) != _texts(way)]
        chosen.append((at, way))
    return sorted(chosen, key=lambda choice: choice[0])


def _texts(way: TextPair) -> tuple[str, str]:
    return way.premise.lower(), way.hypothesis.lower()


def _new(way: TextPair) -> tuple[str, str]:
    """Return the new word; denials have none."""
    return "new", way.new if way.kind != NEGATED else f"not {way.new}"


def _old(way: TextPair) -> tuple[str, str]:
    return "old", way.old
