"""The NLI probes: does a hypothesis follow in which a function word was changed?

After Kim et al., "Probing What Different NLP Tasks Teach Machines about Function Word
Comprehension" (*SEM 2019). The builders make candidates; people label them.
See docs/probes/function_words_nli.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from builders.engine.drops import DropLog
from builders.engine.labels import NONE, Readings, readings
from builders.engine.plan import Plan, left_out, text_keys
from builders.engine.probe import probe
from builders.function_words.nli.clauses import PACKAGE
from builders.function_words.nli.lexicon import Lexicon, lexicon
from builders.function_words.nli.negation import FLAGS
from builders.function_words.nli.opposites import PATTERNS, patterns
from builders.function_words.nli.options import NegationOptions, NliOptions, PrepositionOptions
from builders.function_words.nli.pairs import (
    KINDS,
    NEGATED,
    SWAPPED,
    Form,
    Source,
    TextPair,
    rewordings,
    swaps,
    swaps_and_denials,
)
from builders.function_words.nli.plan import QUESTION_FIELDS, Row, candidates_plan, labelled_plan
from builders.function_words.nli.prepositions import (
    changed_words,
    preposition_places,
    spatial_opposites,
    spatial_places,
)
from builders.function_words.nli.quantities import comparative_places, comparatives, quantity_places
from builders.function_words.nli.sources import Origin, in_corpus, sources
from builders.function_words.source import open_corpora
from kb_cache.base import Combined, KnowledgeBase
from kb_cache.corpora.types import Corpora, TextCorpus
from kb_cache.wordnet.load import load_wordnet_once
from kb_cache.wordnet.types import WordNet
from kbprobe.format.setups import NLI
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
            way for way in left[at] if not cap or max(used[_new_choice(way)], used[_old(way)]) < cap
        ]
        if not fitting:
            continue
        costs = [
            (used["kind", way.kind], used[_new_choice(way)], used[_old(way)]) for way in fitting
        ]
        least = min(costs)
        best = [way for way, cost in zip(fitting, costs, strict=True) if cost == least]
        hashes = tie.bits(text_keys([way.hypothesis for way in best])).tolist()
        way = best[hashes.index(min(hashes))]
        used.update({("kind", way.kind), _new_choice(way), _old(way)})
        left[at] = [other for other in left[at] if _texts_of(other) != _texts_of(way)]
        chosen.append((at, way))
    return sorted(chosen, key=lambda choice: choice[0])


def _texts_of(way: TextPair) -> tuple[str, str]:
    return way.premise.lower(), way.hypothesis.lower()


def _new_choice(way: TextPair) -> tuple[str, str]:
    """Return the new word; denials have none."""
    return "new", way.new if way.kind != NEGATED else f"not {way.new}"


def _old(way: TextPair) -> tuple[str, str]:
    return "old", way.old


Ways = Callable[[Source, Lexicon], Iterator[TextPair]]


@dataclass(frozen=True, eq=False)
class CorpusAndWordNet(Combined):
    """Corpora, and the WordNet that provides kinds of words."""

    corpus: TextCorpus
    wordnet: WordNet

    @property
    def sources(self) -> Sequence[KnowledgeBase]:
        """The knowledge bases, the corpora first."""
        corpora = self.corpus.sources if isinstance(self.corpus, Corpora) else (self.corpus,)
        return (*corpora, self.wordnet)

    @property
    def digest(self) -> str:
        """The digests of all knowledge bases."""
        return f"{self.corpus.digest}+{self.wordnet.digest}"


def open_texts(options: NliOptions) -> CorpusAndWordNet:
    """Load the corpora and the WordNet that the options name."""
    return CorpusAndWordNet(open_corpora(options), load_wordnet_once(options.wordnet))


def _nli(name: str, options: type[NliOptions] = NliOptions) -> probe:
    return probe(
        name,
        options=options,
        open=open_texts,
        question_fields=QUESTION_FIELDS,
        choice_fields=("text",),
        setup=NLI,
        paper="function_words",
        flags=FLAGS,
    )


@_nli("fw_prepositions", PrepositionOptions)
def fw_prepositions(
    texts: CorpusAndWordNet, options: PrepositionOptions, rng: RandomGenerator
) -> Plan:
    """Does it follow if a preposition is another: in, behind, before, without?"""
    ways = partial(swaps, preposition_places)
    return build("fw_prepositions", (SWAPPED,), changed_words(), ways, texts, options, rng)


@_nli("fw_comparatives")
def fw_comparatives(texts: CorpusAndWordNet, options: NliOptions, rng: RandomGenerator) -> Plan:
    """Does it follow if a comparative is its opposite, or is denied: more, less, larger?"""
    words = {*comparatives(), "more", "less", "fewer"}
    ways = partial(swaps_and_denials, comparative_places)
    return build("fw_comparatives", KINDS, words, ways, texts, options, rng)


@_nli("fw_quantification")
def fw_quantification(texts: CorpusAndWordNet, options: NliOptions, rng: RandomGenerator) -> Plan:
    """Does it follow if a quantity is another, or is denied: all, some, half, three?"""
    ways = partial(swaps_and_denials, quantity_places)
    return build("fw_quantification", KINDS, (), ways, texts, options, rng)


@_nli("fw_spatial")
def fw_spatial(texts: CorpusAndWordNet, options: NliOptions, rng: RandomGenerator) -> Plan:
    """Does it follow if a place is the opposite, or is denied: left, right, above, behind?"""
    ways = partial(swaps_and_denials, spatial_places)
    return build("fw_spatial", KINDS, spatial_opposites(), ways, texts, options, rng)


@_nli("fw_negation", NegationOptions)
def fw_negation(texts: CorpusAndWordNet, options: NegationOptions, rng: RandomGenerator) -> Plan:
    """Does it follow under "not", an antonym, or both, in premise, hypothesis, or both?"""
    words = lexicon(texts.wordnet).opposites
    return build("fw_negation", PATTERNS, words, patterns, texts, options, rng)


def build(
    name: str,
    kinds: Sequence[str],
    words: Collection[str],
    ways: Ways,
    texts: CorpusAndWordNet,
    options: NliOptions,
    rng: RandomGenerator,
) -> Plan:
    """Plan a probe: its candidates, or with ``options.labels`` its labelled rows.

    Args:
        name: the probe's.
        kinds: what may be done to a sentence.
        words: words or phrases of which a sentence must contain one; empty: any sentence.
        ways: function that yields the pairs that can be made from a source.
        texts: the corpora, and WordNet.
        options: the build's.
        rng: for splits, folds and choices.

    Raises:
        UsageError: no pair can be made, or the labels are faulty.
    """
    dropped, known = DropLog(), lexicon(texts.wordnet)
    reworded = rewordings(name, PACKAGE)
    found = [
        (origin, list(ways(_with(reworded, source), known)))
        for origin, source in sources(texts.corpus, _firsts(words), options, dropped)
    ]
    dropped["texts in which nothing can surely be changed"] += sum(not way for _, way in found)
    found = _of_tier(_new(found, texts.corpus, dropped), options.tier, dropped)
    read = readings(name, PACKAGE) if options.readings and not options.labels else NONE
    found = _read(found, read, dropped) or found
    chosen = choose(
        [way for _, way in found],
        options.per_sentence,
        options.cap_per_word,
        options.max_rows,
        rng.child("choice"),
    )
    dropped["texts left out by --cap-per-word"] += len(found) - len({at for at, _ in chosen})
    rows = [Row(found[at][0], pair) for at, pair in chosen]
    dropped.require(
        len(rows), "Name more corpora with --corpus.", f"{name}: no pair can be made of these texts"
    )
    plan = candidates_plan(name, rows, texts.corpus, kinds, options, dropped, rng)
    if not options.labels and all(_texts(row.pair) not in read.votes for row in rows):
        return plan
    return labelled_plan(plan, name, texts.name, options, read)


def _with(reworded: Mapping[str, Sequence[Form]], source: Source) -> Source:
    """Return a source with the reworded hypotheses that were written for it."""
    return source._replace(reworded=reworded.get(source.shown(source.premise.text), ()))


def _read(
    found: Sequence[tuple[Origin, list[TextPair]]], read: Readings, dropped: DropLog
) -> list[tuple[Origin, list[TextPair]]]:
    """Return the pairs that have been read; none if the corpus is a different one."""
    kept = [
        (origin, those)
        for origin, pairs in found
        if (those := [pair for pair in pairs if _texts(pair) in read.votes])
    ]
    if kept:
        dropped["readings: texts of which no pair was read"] += len(found) - len(kept)
    return kept


def _texts(pair: TextPair) -> tuple[str, str]:
    return pair.premise, pair.hypothesis


def _of_tier(
    found: Sequence[tuple[Origin, list[TextPair]]], tier: str, dropped: DropLog
) -> list[tuple[Origin, list[TextPair]]]:
    """Drop flagged pairs, except in the full tier."""
    if tier == "full":
        return list(found)
    for _, pairs in found:
        dropped.update(left_out(name) for pair in pairs for name in pair.flags)
    clean = [(origin, [pair for pair in pairs if not pair.flags]) for origin, pairs in found]
    return [(origin, pairs) for origin, pairs in clean if pairs]


def _firsts(words: Collection[str]) -> list[str]:
    """Return the first words of phrases."""
    return sorted({word.split(" ")[0] for word in words})


def _new(
    found: Sequence[tuple[Origin, list[TextPair]]], corpus: TextCorpus, dropped: DropLog
) -> list[tuple[Origin, list[TextPair]]]:
    """Drop pairs of equal texts and, in corpora of pairs, hypotheses that occur in the corpus."""
    flat = [(at, pair) for at, (_, pairs) in enumerate(found) for pair in pairs]
    of_pair = np.array([found[at][0].row < 0 for at, _ in flat], dtype=np.bool_)
    real = of_pair & in_corpus(corpus, [pair.hypothesis for _, pair in flat])
    left: list[list[TextPair]] = [[] for _ in found]
    for (at, pair), is_real in zip(flat, real.tolist(), strict=True):
        if is_real or pair.hypothesis.lower() == pair.premise.lower():
            dropped["ways: the hypothesis is a sentence of the corpus"] += 1
        else:
            left[at].append(pair)
    return [(origin, pairs) for (origin, _), pairs in zip(found, left, strict=True) if pairs]
