"""Antonym negation: is a word denied, or affirmed, by one that means the opposite, or the same?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section 4.3). Where ours differs,
and why: docs/probes/antonym_negation.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from builders.antonyms.matching import cell, match
from builders.antonyms.options import AntonymOptions
from builders.engine.drops import DropLog
from builders.engine.plan import Column, Facts, Nodes, Plan, Questions, text_keys
from builders.engine.probe import probe
from builders.engine.rows import named_clusters, plan_rows
from builders.engine.splits import connected_components
from builders.engine.strategies import BalancedWordings
from kb_cache.base import Combined
from kb_cache.conceptnet.load import load_conceptnet
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.antonyms.pairs import Pair


ANSWERS = ("not", "really", "very")


@dataclass(frozen=True, eq=False)
class Lexicon(Combined):
    """WordNet and, where asked for, ConceptNet."""

    wordnet: WordNet
    conceptnet: ConceptNet | None

    @property
    def sources(self) -> list[WordNet | ConceptNet]:
        """WordNet first."""
        return [self.wordnet, *([self.conceptnet] if self.conceptnet else [])]


@lru_cache(maxsize=2)
def _load(wordnet: str, conceptnet: str) -> Lexicon:
    return Lexicon(load_wordnet(wordnet), load_conceptnet(conceptnet) if conceptnet else None)


def open_lexicon(options: AntonymOptions) -> Lexicon:
    """Load the knowledge bases that the options name, once for a process."""
    return _load(options.wordnet, options.conceptnet)


@probe(
    "antonym_negation",
    options=AntonymOptions,
    open=open_lexicon,
    question_fields=("x", "y", "pos", "object", "x_counted", "y_counted", "intensifier"),
    choice_fields=("word",),
    setup=CLOZE,
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    quick={"pos": ("verb",)},
)
def antonym_negation(lexicon: Lexicon, options: AntonymOptions, rng: RandomGenerator) -> Plan:
    """Is it "not" or "really" hot, if it is cold?"""
    from builders.antonyms.pairs import find_pairs

    pos = [name for name in options.pos if options.intensifier == "really" or name != "noun"]
    if not pos:
        raise UsageError(
            "antonym_negation: nothing is very much of a noun; use --intensifier really, or other "
            "parts of speech"
        )
    pairs, dropped = find_pairs(
        lexicon.wordnet,
        lexicon.conceptnet,
        pos=pos,
        min_zipf=options.min_zipf,
        indirect=options.indirect,
        look_alikes=options.look_alikes,
        tokenizer=options.tokenizer,
    )
    matched = match(pairs, options.split_shares, options.pairs_per_word, rng.child("match"))
    log = DropLog({**dropped, **matched.dropped})
    antonyms = sum(pair.antonym for pair in pairs)
    log.require(
        len(matched.pairs),
        f"Found: {antonyms:,} pairs of antonyms, {len(pairs) - antonyms:,} of synonyms. "
        "Loosen one of them.",
    )
    swapped = _swapped(matched.pairs, matched.split, rng.child("order"))
    asked = [
        _turned(pair) if swap else pair for pair, swap in zip(matched.pairs, swapped, strict=True)
    ]
    return _plan(asked, np.array(matched.split, dtype=np.int64), options.intensifier, log)


def _swapped(pairs: Sequence[Pair], split: Sequence[int], rng: RandomGenerator) -> list[bool]:
    """Decide by lot which word of each pair comes first, its more frequent one in half of them.

    Half of the antonyms and half of the synonyms, in each split and part of speech.
    """
    from kb_cache.frequency import zipf_frequencies

    lot = rng.bits(_keys(pairs))
    rarer_first = [zipf[0] < zipf[1] for zipf in map(zipf_frequencies, (p.words for p in pairs))]
    groups: dict[tuple[int, str, bool], int] = {}
    swap = [False] * len(pairs)
    for at in np.argsort(lot, kind="stable").tolist():
        group = split[at], pairs[at].pos, pairs[at].antonym
        groups[group] = groups.get(group, 0) + 1
        swap[at] = rarer_first[at] ^ (groups[group] % 2 == 0)
    return swap


def _turned(pair: Pair) -> Pair:
    return pair._replace(
        words=(pair.words[1], pair.words[0]),
        frame=(pair.frame[0], *pair.frame[:0:-1]),
        path=pair.path[::-1],
        relations=pair.relations[::-1],
    )


def _keys(pairs: Sequence[Pair]) -> Ints:
    """Return an identity of each pair as it is asked: its words, in order, and part of speech."""
    return text_keys(*zip(*((pair.pos, *pair.words) for pair in pairs), strict=True))


def _plan(pairs: Sequence[Pair], split: Ints, intensifier: str, dropped: DropLog) -> Plan:
    """Lay the pairs out as rows, in the order given."""
    # The edges of each pair's path, from the first word's sense to the second's.
    facts = Facts.from_triples(
        zip(pair.path, pair.relations, pair.path[1:], strict=False) for pair in pairs
    )
    antonym = np.array([pair.antonym for pair in pairs])
    affirmed = ANSWERS.index(intensifier)
    families = list(dict.fromkeys(pair.pos for pair in pairs))
    head = connected_components(pair.words for pair in pairs)
    return plan_rows(
        questions=_questions(pairs, split, intensifier),
        choices=Nodes.from_columns(ANSWERS, field="word"),
        nodes=np.stack([np.where(antonym, 0, affirmed), np.where(antonym, affirmed, 0)], axis=1),
        split=split,
        families=families,
        family=np.array([1 + families.index(pair.pos) for pair in pairs], dtype=np.int64),
        relation=pa.array(["antonym" if pair.antonym else "synonym" for pair in pairs]),
        concept=facts.subject.codes[facts.indptr[:-1]],
        concepts=facts.subject.values,
        facts=facts,
        hops=np.diff(facts.indptr),
        # A cluster has the name of its first word in the alphabet.
        cluster=named_clusters([head[pair.words[0]] for pair in pairs]),
        dropped=dropped,
    )


def _questions(pairs: Sequence[Pair], split: Ints, intensifier: str) -> Questions:
    shown = [(part, *cell(pair)) for part, pair in zip(split.tolist(), pairs, strict=True)]
    number = {frame: i for i, frame in enumerate(sorted(set(shown)))}
    fields: dict[str, Column] = {
        "x": [pair.words[0] for pair in pairs],
        "y": [pair.words[1] for pair in pairs],
        "object": [pair.frame[1] if pair.pos == "verb" else "" for pair in pairs],
        "intensifier": intensifier,
        "pos": [pair.pos for pair in pairs],
    }
    for at, name in ((1, "x_counted"), (2, "y_counted")):
        fields[name] = [pair.frame[at] if pair.pos == "noun" else "" for pair in pairs]
    carrier = np.array([number[one] for one in shown], dtype=np.int64)
    return Questions.from_columns(_keys(pairs), fields, BalancedWordings(carrier), pos="pos")


def _clusters(pairs: Sequence[Pair]) -> tuple[Ints, pa.Array]:
    """Return each pair's cluster: pairs that are connected by their words; and their names.

    A cluster has the name of its first word in the alphabet.
    """
    head = connected_components(pair.words for pair in pairs)
    names = sorted(set(head.values()))
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[head[pair.words[0]]] for pair in pairs], np.int64), pa.array(names)
