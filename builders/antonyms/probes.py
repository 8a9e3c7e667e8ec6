"""Antonym negation: is a word denied, or affirmed, by one that means the opposite, or the same?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section 4.3).
See docs/probes/antonym_negation.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import compress

import numpy as np
import pyarrow as pa

from builders.antonyms.matching import choose_order, match, prune, turned, with_other_order
from builders.antonyms.options import WORDINGS, AntonymOptions
from builders.antonyms.pairs import WordPair, find_pairs
from builders.antonyms.senses import FLAGS
from builders.engine.drops import DropLog
from builders.engine.plan import (
    Column,
    Facts,
    Flags,
    Nodes,
    Oracle,
    Oracles,
    Plan,
    Questions,
    credit,
    text_keys,
)
from builders.engine.probe import probe
from builders.engine.rows import RowArrays, named_clusters, plan_rows
from builders.engine.splits import connected_components
from builders.engine.strategies import BalancedWordings
from builders.lexicons import WordNetFirst, wordnet_first
from kbprobe.arrays import Ints
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

TARGET = 0.75
"""Maximum accuracy allowed by one word alone: halfway between chance and certainty."""


def antonym_oracles(asked: Sequence[WordPair], pairs: Iterable[WordPair]) -> Oracles:
    """Return oracles that know all antonyms and synonyms of one of the words.

    Args:
        asked: the questions, each with its words in the order in which they are shown.
        pairs: all pairs that could be asked about.
    """
    words: dict[bool, set[str]] = {True: set(), False: set()}
    for pair in pairs:
        words[pair.antonym].update(pair.words)
    oracles = {}
    for place, name in enumerate("xy"):
        possible = np.array(
            [
                [pair.words[place] in words[answer] for answer in (pair.antonym, not pair.antonym)]
                for pair in asked
            ],
            dtype=np.bool_,
        ).reshape(-1, 2)
        knows = f"{name}, and whether it has antonyms, and synonyms"
        oracles[f"{name} alone"] = Oracle(knows, credit(possible), TARGET)
    return oracles


ANSWERS = ("not", "really", "very")
ARGUMENTS = ("x", "y")
CARRIER_NOUNS = ("person", "matter", "thing")
"""Carrier sentences: this person was ...; it was a matter of ...; it was going to ..."""


def open_lexicon(options: AntonymOptions) -> WordNetFirst:
    """Load the knowledge bases that the options name."""
    return wordnet_first(options.wordnet, options.conceptnet)


@probe(
    "antonym_negation",
    options=AntonymOptions,
    open=open_lexicon,
    question_fields=(
        *ARGUMENTS,
        "pos",
        "object",
        *CARRIER_NOUNS,
        "x_counted",
        "y_counted",
        "intensifier",
    ),
    choice_fields=("word",),
    setup=CLOZE,
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    flags=FLAGS,
    wording_sets=WORDINGS,
    quick={"pos": ("adjective",)},
)
def antonym_negation(lexicon: WordNetFirst, options: AntonymOptions, rng: RandomGenerator) -> Plan:
    """Is it "not" or "really" hot, if it is cold?"""
    found, left_out = _pairs(lexicon, options.only(_RULES))
    dropped = DropLog(left_out)
    flags = Flags.of_lines(FLAGS, [pair.doubts for pair in found])
    # Of a split for training, the tier of a pair depends on its split.
    kept = flags.of_tier(options.tier, dropped, np.full(len(found), options.for_training))
    found = tuple(pair for pair, keep in zip(found, kept.tolist(), strict=True) if keep)
    pairs, split = match(found, options, rng.child("match"), dropped)
    antonyms = sum(pair.antonym for pair in found)
    dropped.require(
        len(pairs),
        f"Found: {antonyms:,} pairs of antonyms, {len(found) - antonyms:,} of synonyms. "
        "Loosen one of them.",
    )
    swapped = choose_order(pairs, split, rng.child("order").bits(_keys(pairs)))
    asked = [turned(pair) if swap else pair for pair, swap in zip(pairs, swapped, strict=True)]
    stay = dropped.keep("pairs: the letters of their words would tell", prune(asked, split))
    asked = list(compress(asked, stay))
    split_kept = np.array(split, dtype=np.int64)[stay]
    if options.both_orders:
        asked, split_kept = with_other_order(asked, split_kept, rng.child("both"))
    return _plan(asked, found, split_kept, options.intensifier, dropped)


_RULES = {
    *("pos", "intensifier", "min_zipf", "judged", "indirect", "look_alikes", "tokenizer"),
    "screen",
}
"""The options that determine which pairs are found."""


@lru_cache(maxsize=4)
def _pairs(lexicon: WordNetFirst, rules: AntonymOptions) -> tuple[tuple[WordPair, ...], DropLog]:
    """Find pairs, and count what is dropped; cached by the options that matter."""
    dropped = DropLog()
    return tuple(find_pairs(lexicon.wordnet, lexicon.conceptnet, rules, dropped)), dropped


def _keys(pairs: Sequence[WordPair]) -> Ints:
    """Return a key for each pair as asked: its words, in order, and part of speech."""
    return text_keys(*zip(*((pair.pos, *pair.words) for pair in pairs), strict=True))


def _plan(
    pairs: Sequence[WordPair],
    found: Iterable[WordPair],
    split: Ints,
    intensifier: str,
    dropped: DropLog,
) -> Plan:
    """Lay pairs out as rows, in the order given; ``found`` are all that could be asked about."""
    # The edges of each pair's path, from the first word's sense to the second's.
    facts = Facts.from_triples(
        zip(pair.path, pair.relations, pair.path[1:], strict=False) for pair in pairs
    )
    antonym = np.array([pair.antonym for pair in pairs])
    affirmed = ANSWERS.index(intensifier)
    families = list(dict.fromkeys(pair.pos for pair in pairs))
    head = connected_components(pair.words for pair in pairs)
    return plan_rows(
        # A cluster has the name of its first word in the alphabet.
        RowArrays(
            nodes=np.stack(
                [np.where(antonym, 0, affirmed), np.where(antonym, affirmed, 0)], axis=1
            ),
            split=split,
            family=np.array([1 + families.index(pair.pos) for pair in pairs], dtype=np.int64),
            concept=facts.subject.codes[facts.indptr[:-1]],
            hops=np.diff(facts.indptr),
        ),
        questions=_questions(pairs, split, intensifier),
        choices=Nodes.from_columns(ANSWERS, field="word"),
        families=families,
        relation=pa.array(["antonym" if pair.antonym else "synonym" for pair in pairs]),
        concepts=facts.subject.values,
        facts=facts,
        cluster=named_clusters([head[pair.words[0]] for pair in pairs]),
        flags=Flags.of_lines(FLAGS, [pair.doubts for pair in pairs]),
        oracles=antonym_oracles(pairs, found),
        dropped=dropped,
    )


def _questions(pairs: Sequence[WordPair], split: Ints, intensifier: str) -> Questions:
    shown = [(part, *pair.carrier) for part, pair in zip(split.tolist(), pairs, strict=True)]
    number = {one: i for i, one in enumerate(sorted(set(shown)))}
    fields: dict[str, Column] = {
        "x": [pair.words[0] for pair in pairs],
        "y": [pair.words[1] for pair in pairs],
        "object": [pair.carrier[1] if pair.carrier[-1] in ("it", "them") else "" for pair in pairs],
        "intensifier": intensifier,
        "pos": [pair.pos for pair in pairs],
    }
    article = (("noun", "counted"), ("noun", "person"))
    counted = ["counted" if pair.carrier in article else "" for pair in pairs]
    fields |= {"x_counted": counted, "y_counted": counted}
    for name in CARRIER_NOUNS:
        fields[name] = [name if pair.carrier[-1] == name else "" for pair in pairs]
    carrier = np.array([number[line] for line in shown], dtype=np.int64)
    return Questions.from_columns(_keys(pairs), fields, BalancedWordings(carrier), pos="pos")
