"""What ConceptNet's concepts have in common, and what one of them can be said not to have.

A *property* is a relation and its object: found in a kitchen, used for cutting. What a concept has
is taken from edges that several people stand behind. What it lacks is harder to know, as
ConceptNet leaves most things unsaid: see `gather`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from builders.engine.audit.kin import holds_kin
from builders.engine.drops import DropLog
from builders.english.screen import OFFENSIVE, offensive_words
from builders.properties.contrast import Edges, Support
from builders.properties.options import PropertyOptions
from kb_cache.conceptnet.filter import VERB, NoiseFilter, filter_noise, parts_of_speech
from kb_cache.conceptnet.types import SYMMETRIC, ConceptNet
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Floats, Ints, joined, lines_of, sorted_unique
from kbprobe.columns import mask, single_chunk, to_numpy

LOOSE = ("HasProperty", "IsA")
"""Relations whose edges are the noisiest: they need more weight."""

PLACE = "AtLocation"
"""The relation of most edges, and of the oddest: a pilot in a shower."""

DOINGS = ("activity", "art", "exercise", "game", "hobby", "season", "sport")
"""What ConceptNet 4 says to be one of these has often lost its ending: to fish is a sport."""


_FILE = resources.files("builders.properties") / "data" / "terms.yaml"
_TERMS: Mapping[str, Any] = yaml.safe_load(_FILE.read_text("utf-8"))

TOO_GENERAL = frozenset(_TERMS["too_general"])
"""Concepts of which next to everything has been said: neither asked for nor offered."""

SENSITIVE = frozenset(_TERMS["sensitive"])
"""Terms that hold one of these words are screened too: volunteers' jokes dwell on them."""

VAGUE: Mapping[str, frozenset[str]] = {
    relation: frozenset(objects) for relation, objects in _TERMS["vague"].items()
}
"""Relation -> objects that may be said of nearly everything, or of which nobody knows what is meant
("used for working", "often big"): not asked about."""

_PLAIN = r"^[a-z]+(?:[ -][a-z]+)*$"


class Held(NamedTuple):
    """Pairs of a concept and a property that it has: parallel arrays, sorted, each pair once."""

    concept: Ints
    property: Ints
    weight: Floats


@dataclass(frozen=True, eq=False)
class Evidence:
    """Concepts, their properties, and which of these they lack.

    Concepts and properties are numbered from 0, as they stand in ``concept`` and ``relation``.

    Attributes:
        concept: (concepts,) every concept's id in ConceptNet, ascending.
        relation: (properties,) index into ``relation_names``; odd ones are negations.
        object: (properties,) the object's id in ConceptNet.
        relation_names: the relations, each followed by its negation ("NotCapableOf").
        sure: what concepts have by edges that passed the noise filter.
        said: (concepts, properties) what any edge says, noise included, and none denies.
        lacks: (concepts, properties) what concepts can be said not to have.
        denied: (concepts, properties) what an edge of the opposite sign denies.
        rules: the options that say how strictly evidence was taken.
        dropped: how many edges were left out on the way.
    """

    concept: Ints
    relation: Ints
    object: Ints
    relation_names: tuple[str, ...]
    sure: Held
    said: Bools
    lacks: Bools
    denied: Bools
    rules: PropertyOptions
    dropped: DropLog


def gather(conceptnet: ConceptNet, wordnet: WordNet, rules: PropertyOptions) -> Evidence:
    """Find out what has which property, and what can be said to lack it.

    A concept has a property if an edge of enough weight says so. An edge of less weight than
    ``rules.min_weight_loose`` counts only if some edge says the same of something that resembles
    the concept.

    A concept lacks a property if an edge denies it. It also does if nothing speaks for it: no edge,
    of whatever weight, gives it to the concept or to what the concept is a kind of; no more than
    ``rules.max_holders`` concepts have it (where half the world is found, anything may be); and, by
    the contrast "kind", nothing that resembles the concept has it, the concept has nothing that
    resembles the property, and ConceptNet says more of the concept by the same relation (see
    `builders.properties.contrast`). What is itself a negation (cannot fly) is lacked where an edge
    says the opposite, and only there.
    """
    edges = _edges_of(conceptnet, rules.relations)
    sure, dropped = _sure_edges(conceptnet, wordnet, rules)
    keys, concepts = sorted_unique(sure.key), sorted_unique(sure.start)
    names = tuple(name for relation in rules.relations for name in (relation, f"Not{relation}"))
    code = keys // len(conceptnet)
    relation = np.array(names)[code]
    telling = ~listed(single_chunk(conceptnet.concepts["text"]), TOO_GENERAL)
    support = Support(
        conceptnet, wordnet, edges, concepts, keys, relation, telling, rules.min_weight
    )
    classified = support.classified()
    spoken_for = support.said | support.inherited() | classified
    spoken_for |= (support.holders > rules.max_holders) | (code % 2 == 1)
    cell = support.cell(sure.start, sure.key)
    weight = sure.weight
    if rules.contrast == "kind":
        likely = support.of_one_kind() | support.of_alike()
        spoken_for |= likely | support.by_alike() | support.mentioned() | ~support.described()
        spoken_for |= support.by_kindred_object() | support.usual_in_field()
        kinds = relation == "IsA"
        likely[:, kinds] = classified[:, kinds]
        enough = np.where(kinds, rules.min_weight_firm, rules.min_weight_loose)[cell % keys.size]
        doubtful = (weight < enough) & ~likely.ravel()[cell]
        kept = dropped.drop("edges: little weight, and the same is said of nothing alike", doubtful)
        cell, weight = cell[kept], weight[kept]
    order = np.lexsort((-weight, cell))
    first = order[np.diff(cell[order], prepend=-1) > 0]
    return Evidence(
        concepts,
        code,
        keys % len(conceptnet),
        names,
        Held(cell[first] // keys.size, cell[first] % keys.size, weight[first]),
        support.said & ~support.denied,
        support.denied | ~spoken_for,
        support.denied,
        rules,
        dropped,
    )


def _edges_of(conceptnet: ConceptNet, relations: Sequence[str]) -> Edges:
    """Read the edges of some relations and their negations; those that are missing have none."""
    size = len(conceptnet)
    none = np.empty(0, dtype=np.int64)
    parts = [Edges(none, none, none, np.empty(0, dtype=np.float64))]
    for number, name in enumerate(relations):
        if name not in conceptnet.relation_names:
            continue
        for negated in (False, True):
            start, end, weight = conceptnet.edges(name, negated)
            if name in SYMMETRIC:
                start, end = np.concatenate([start, end]), np.concatenate([end, start])
                weight = np.concatenate([weight, weight])
            start, end = conceptnet.terms[start], conceptnet.terms[end]
            code = 2 * number + negated
            parts.append(Edges(start, code * size + end, (code ^ 1) * size + end, weight))
    edges = joined(parts)
    return lines_of(edges, edges.start != edges.key % size)


def _sure_edges(
    conceptnet: ConceptNet, wordnet: WordNet, rules: PropertyOptions
) -> tuple[Edges, DropLog]:
    """The edges that may make a gold true, and how many were left out for what reason."""
    size = len(conceptnet)
    asked = np.zeros(conceptnet.assertions.num_rows, dtype=np.bool_)
    for name in set(rules.relations) & set(conceptnet.relation_names):
        for negated in (False, True):
            asked[conceptnet.rows(name, negated)] = True
    options = NoiseFilter(min_weight=rules.min_weight)
    filtered, report = filter_noise(conceptnet.select(asked), options, wordnet)
    dropped = DropLog({f"edges: {step.filter}": step.removed for step in report.steps})
    edges = _edges_of(filtered, rules.relations)
    code = edges.key // size
    names = np.array(rules.relations)[code // 2]
    used, place = np.unique(np.concatenate([edges.start, edges.key % size]), return_inverse=True)
    start, target = np.split(place, 2)
    texts = single_chunk(conceptnet.concepts["text"]).take(pa.array(used))
    pos = parts_of_speech(texts, wordnet)
    odd = unfit(texts, wordnet)
    offensive = rude(texts) & rules.screen
    tests = {
        f"weight below {rules.min_weight_loose:g} ({' and '.join(LOOSE)})": np.isin(names, LOOSE)
        & (code % 2 == 0)
        & (edges.weight < rules.min_weight_loose),
        "UsedFor without a verb": (names == "UsedFor") & (pos[target] & VERB == 0),
        "IsA of what is also a verb (to fish is a sport)": (names == "IsA")
        & listed(texts, frozenset(DOINGS))[target]
        & (pos[start] & VERB != 0),
        OFFENSIVE: offensive[start] | offensive[target],
        "names and odd terms": odd[start] | odd[target],
        "vague objects": _vague(names, texts, target),
        "too general a concept": listed(texts, TOO_GENERAL)[start],
        "concept and object share a word": holds_kin(texts, start, texts, target),
    }
    left = np.ones(edges.start.size, dtype=np.bool_)
    for reason, fails in tests.items():
        left &= dropped.drop(f"edges: {reason}", left & fails)
    return lines_of(edges, left), dropped


def _vague(relation: npt.NDArray[np.str_], texts: pa.Array, target: Ints) -> Bools:
    """Mark edges whose object, given by its place in ``texts``, is one of `VAGUE`."""
    vague = np.zeros(relation.size, dtype=np.bool_)
    for name, objects in VAGUE.items():
        vague |= (relation == name) & listed(texts, objects)[target]
    return vague


def listed(texts: pa.Array, terms: frozenset[str]) -> Bools:
    """Mark the texts that are on a list."""
    return mask(pc.is_in(texts, pa.array(sorted(terms), pa.string())))


def rude(texts: pa.Array) -> Bools:
    """Mark texts that are offensive, or hold one of the words of `SENSITIVE`."""
    sensitive = rf"\b(?:{'|'.join(sorted(SENSITIVE))})s?\b"
    return mask(pc.match_substring_regex(texts, sensitive)) | offensive_words(texts)


def unfit(texts: pa.Array, wordnet: WordNet) -> Bools:
    """Mark texts that are names, or hold more than plain letters.

    Names are those whose first sense as a noun WordNet writes with a capital.
    """
    lemmas = wordnet.lemma_texts()
    pos = wordnet.pos_codes[to_numpy(wordnet.senses["synset"])]
    first = (pos == POS.index("n")) & (to_numpy(wordnet.senses["number"]) == 1)
    lower = pc.utf8_lower(lemmas)
    names = lower.filter(pc.and_(pa.array(first), pc.not_equal(lemmas, lower)))
    return mask(pc.or_(pc.is_in(texts, names), pc.invert(pc.match_substring_regex(texts, _PLAIN))))
