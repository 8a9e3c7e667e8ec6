"""The NLI probes: does a hypothesis follow in which a function word was changed?

After Kim et al., "Probing What Different NLP Tasks Teach Machines about Function Word
Comprehension" (*SEM 2019). The builders make candidates; people label them.
See docs/probes/function_words_nli.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np

from builders.engine.drops import DropLog
from builders.engine.plan import Facts, Flags, Nodes, Plan, Questions, left_out, text_keys
from builders.engine.probe import probe
from builders.engine.rows import RowArrays, named_clusters, plan_rows
from builders.engine.splits import assign_folds
from builders.engine.strategies import FixedScale
from builders.function_words.nli.clauses import PACKAGE
from builders.function_words.nli.edits import FLAGS
from builders.function_words.nli.lexicon import WordKinds, lexicon
from builders.function_words.nli.options import NegationOptions, NliOptions, PrepositionOptions
from builders.function_words.nli.pairs import (
    KINDS,
    NEGATED,
    SWAPPED,
    PairSource,
    TextPair,
    patterns,
    rewordings,
    swaps,
    swaps_and_denials,
)
from builders.function_words.nli.prepositions import (
    changed_words,
    preposition_places,
    spatial_opposites,
    spatial_places,
)
from builders.function_words.nli.quantities import comparative_places, comparatives, quantity_places
from builders.function_words.nli.sources import Origin, in_corpus, sources
from builders.function_words.tokens import open_corpora
from builders.labels.rows import answered, decide_rows, unlabelled
from builders.labels.verdicts import NONE, Readings, readings
from kb_cache.corpora.types import Corpora, TextCorpus
from kb_cache.knowledge import Combined, KnowledgeBase
from kb_cache.wordnet.load import load_wordnet_once
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints
from kbprobe.format.negation import PATTERNS
from kbprobe.format.setups import NLI, SETUPS
from kbprobe.rng import RandomGenerator

ANSWERS = SETUPS[NLI].labels
QUESTION_FIELDS = ("premise", "hypothesis", "change", "old", "new")

CALIBRATION = (
    "On the 89 published comparatives with people's votes, mixed in unmarked, their majority is "
    "people's in 92% (one person's vote: 85%); they may have been trained on these."
)
"""Agreement of the readings with people's votes, for the card."""


class PairRow(NamedTuple):
    """A pair of texts and its origin."""

    origin: Origin
    pair: TextPair


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


Ways = Callable[[PairSource, WordKinds], Iterator[TextPair]]


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
    firsts = sorted({word.split(" ")[0] for word in words})
    reworded = rewordings(name, PACKAGE)
    found: Found = [
        (origin, list(ways(source.with_rewordings(reworded), known)))
        for origin, source in sources(texts.corpus, firsts, options, dropped)
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
    rows = [PairRow(found[at][0], pair) for at, pair in chosen]
    dropped.require(
        len(rows), "Name more corpora with --corpus.", f"{name}: no pair can be made of these texts"
    )
    plan = candidates_plan(name, rows, kinds, options, dropped, rng)
    if not options.labels and all(row.pair.texts not in read.votes for row in rows):
        return plan
    return labelled_plan(plan, name, texts.name, options, read)


Found = Sequence[tuple[Origin, Sequence[TextPair]]]
"""The pairs that can be made from each source."""


def _filtered(found: Found, keep: Callable[[Origin, TextPair], bool]) -> Found:
    """Keep some of the pairs, and the sources of which any is left."""
    kept = [(origin, [pair for pair in pairs if keep(origin, pair)]) for origin, pairs in found]
    return [(origin, pairs) for origin, pairs in kept if pairs]


def _read(found: Found, read: Readings, dropped: DropLog) -> Found:
    """Return the pairs that have been read; none if the corpus is a different one."""
    kept = _filtered(found, lambda _, pair: pair.texts in read.votes)
    if kept:
        dropped["readings: texts of which no pair was read"] += len(found) - len(kept)
    return kept


def _of_tier(found: Found, tier: str, dropped: DropLog) -> Found:
    """Drop flagged pairs, except in the full tier."""
    if tier == "full":
        return found
    for _, pairs in found:
        dropped.update(left_out(name) for pair in pairs for name in pair.flags)
    return _filtered(found, lambda _, pair: not pair.flags)


def _new(found: Found, corpus: TextCorpus, dropped: DropLog) -> Found:
    """Drop pairs of equal texts and, in corpora of pairs, hypotheses that occur in the corpus."""
    of_pairs = [pair.hypothesis for origin, pairs in found if origin.row < 0 for pair in pairs]
    real = set(compress(of_pairs, in_corpus(corpus, of_pairs)))

    def is_new(origin: Origin, pair: TextPair) -> bool:
        in_corpus = origin.row < 0 and pair.hypothesis in real
        new = not in_corpus and pair.hypothesis.lower() != pair.premise.lower()
        dropped["ways: the hypothesis is a sentence of the corpus"] += not new
        return new

    return _filtered(found, is_new)


def candidates_plan(
    probe: str,
    rows: Sequence[PairRow],
    kinds: Sequence[str],
    options: NliOptions,
    dropped: DropLog,
    rng: RandomGenerator,
) -> Plan:
    """Make a plan of pairs as rows without answers.

    Documents are not divided between splits; a cluster contains all rows made from one sentence or
    pair; and the family of a row is the kind of change.
    """
    premises = [row.pair.premise for row in rows]
    hypotheses = [row.pair.hypothesis for row in rows]
    documents = [row.origin.document for row in rows]
    clusters = [row.origin.cluster for row in rows]
    fields = {
        "premise": premises,
        "hypothesis": hypotheses,
        "change": [row.pair.kind for row in rows],
        "old": [row.pair.old for row in rows],
        "new": [row.pair.new for row in rows],
    }
    concept = named_clusters(documents)
    return plan_rows(
        RowArrays(
            nodes=np.tile(np.arange(len(ANSWERS), dtype=np.int64), (len(rows), 1)),
            split=_splits(documents, options.split_shares, rng.child("splits")),
            family=np.array([1 + kinds.index(row.pair.kind) for row in rows], dtype=np.int64),
            concept=concept.codes,
            hops=0,
        ),
        questions=Questions.from_columns(
            text_keys(premises, hypotheses), fields, premise="premise", hypothesis="hypothesis"
        ),
        choices=Nodes.from_columns(ANSWERS, field="text"),
        families=kinds,
        relation="unlabelled",
        concepts=concept.values,
        cluster=named_clusters(clusters),
        facts=Facts.from_triples(
            [
                (row.origin.document, "contains", row.pair.premise),
                (row.pair.old, row.pair.kind, row.pair.new),
            ]
            for row in rows
        ),
        order=FixedScale(),
        answers=unlabelled(len(rows), probe),
        fold=assign_folds(text_keys(clusters), rng.child("folds")),
        flags=Flags.of_lines(FLAGS, [row.pair.flags for row in rows]),
        dropped=+dropped,
    )


def _splits(
    documents: Sequence[str], shares: tuple[float, float, float], rng: RandomGenerator
) -> Ints:
    """Return the split of each row: the split of its document or premise.

    Documents are assigned in random order, first to validation until it has its share of the rows:
    some documents have many rows, so that independent draws would miss the shares by far. Documents
    larger than this share do not go to validation.
    """
    train, validation, test = shares
    names, row = np.unique(documents, return_inverse=True)
    size = np.bincount(row)
    order = np.argsort(rng.uniform(text_keys(names.tolist())), kind="stable")
    split = np.full(names.size, -1, dtype=np.int64)
    small = order[size[order] <= validation * row.size]
    split[small[np.cumsum(size[small]) - size[small] < validation * row.size]] = 1
    rest = order[split[order] < 0]
    middle = np.cumsum(size[rest]) - size[rest] / 2
    edge = train / ((train + test) or 1) * size[rest].sum()
    split[rest] = np.where(middle < edge, 0, 2)
    return split[row]


def labelled_plan(
    plan: Plan, probe: str, knowledge: str, options: NliOptions, read: Readings = NONE
) -> Plan:
    """Give rows the answers of ``options.labels`` or of readings, and drop the others.

    Raises:
        UsageError: a file is faulty, or no row is left.
    """
    decided = decide_rows(
        plan, probe, knowledge, ANSWERS, options, read=read, calibration=CALIBRATION
    )
    return answered(plan, decided, "voted" if options.labels else "read", natural=True)
