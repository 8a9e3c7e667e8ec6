"""The properties that ConceptNet's concepts have, and those that they can be said to lack.

A *property* is a relation and its object: found in a kitchen, used for cutting. The properties of a
concept are taken from edges that several people support. What it lacks is harder to know, since
ConceptNet leaves most things unsaid: see `gather`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.drops import DropLog
from builders.english.kin import holds_kin
from builders.english.screen import OFFENSIVE, offensive_words
from builders.english.word_lists import data_table
from builders.properties.contrast import EVENTS, Support, WordEdges, first_nouns, mostly_verbs
from builders.properties.kinds import (
    PLACE,
    decide,
    judged_ids,
    members,
    review,
    reviewed_kinds,
    verdicts,
)
from builders.properties.options import FIRM_WEIGHT, LOOSE_WEIGHT, PropertyOptions
from kb_cache.conceptnet.filter import NO_FILTER, VERB, NoiseFilter, filter_noise, parts_of_speech
from kb_cache.conceptnet.types import SYMMETRIC, ConceptNet
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Floats, Ints, joined, lines_of, sorted_unique
from kbprobe.columns import mask, single_chunk

LOOSE = ("HasProperty", "IsA")
"""The relations with the noisiest edges, which need more weight."""

MIN_ZIPF = 2.5
"""Minimum frequency (Zipf) of a term: oboe, sailboat and gecko are generally known."""

MIN_EDGES = 3
"""Minimum number of edges of a concept that is used only for its kinds: few readers know others."""

MAX_HOLDERS = 400
"""Properties of more concepts are never denied: what is so common may be true of any."""

OUTWEIGH = 4
"""Minimum ratio of an edge's weight to that of its denials: volunteers make errors and jokes."""

DOINGS = ("activity", "art", "exercise", "game", "hobby", "season", "sport")
"""Kinds whose members in ConceptNet 4 often lack their ending: "fish" is a sport."""


_TERMS: Mapping[str, Any] = data_table("terms", "builders.properties")

TOO_GENERAL = frozenset(_TERMS["too_general"])
"""Concepts of which almost everything has been said: neither golds nor distractors."""

ODD = frozenset(_TERMS["odd"])
"""Words whose edges mix several senses, and terms that few readers know: not used as concepts."""

PLURAL_PARTS, PLURAL_OBJECTS, STEADY = (
    frozenset(_TERMS[name]) for name in ("plural_parts", "plural_objects", "steady")
)
"""How to word objects; see the file."""

SENSITIVE = frozenset(_TERMS["sensitive"])
"""Terms that contain one of these words are screened too: volunteers often joke about them."""

VAGUE: Mapping[str, frozenset[str]] = {
    relation: frozenset(objects) for relation, objects in _TERMS["vague"].items()
}
"""Relation -> objects that fit nearly everything or have no clear meaning ("used for working",
"often big"), which are not asked about."""

_PLAIN = r"^[a-z]+(?:[ -][a-z]+)*$"


class StatedProperties(NamedTuple):
    """Pairs of a concept and a property that it has: parallel arrays, sorted, each pair once.

    ``source`` is the ConceptNet id of the concept of which an edge states it: the concept itself,
    or a kind that it belongs to. For IsA from WordNet, without an edge, it is the concept itself.
    """

    concept: Ints
    property: Ints
    weight: Floats
    source: Ints


@dataclass(frozen=True, eq=False)
class Evidence:
    """Concepts, their properties, and which of these they lack.

    Concepts and properties are numbered from 0, in the order of ``concept`` and ``relation``.

    Attributes:
        concept: (concepts,) every concept's id in ConceptNet, ascending.
        relation: (properties,) index into ``relation_names``; odd ones are negations.
        object: (properties,) the object's id in ConceptNet.
        relation_names: the relations, each followed by its negation ("NotCapableOf").
        sure: the properties that concepts have by edges that passed the noise filter.
        plausible: (concepts, properties) whether concepts have them, or an edge states and none
            denies it.
        lacks: (concepts, properties) whether concepts can be said not to have them.
        denied: (concepts, properties) whether an edge of the opposite sign denies them.
        reviewed: (properties,) marks those for which an editor listed the kinds that may have them.
        rules: the options that determine how strict the evidence has to be.
        dropped: number of dropped edges, by reason.
    """

    concept: Ints
    relation: Ints
    object: Ints
    relation_names: tuple[str, ...]
    sure: StatedProperties
    plausible: Bools
    lacks: Bools
    denied: Bools
    reviewed: Bools
    rules: PropertyOptions
    dropped: DropLog


def gather(conceptnet: ConceptNet, wordnet: WordNet, rules: PropertyOptions) -> Evidence:
    """Gather which concepts have which properties, and which they can be said to lack.

    Some properties are *reviewed*: an editor listed the kinds of things of which they may be true
    (`builders.properties.kinds`). A concept has such a property if an edge of enough weight states
    it and the concept is of such a kind, or if its kind passes the property on. It lacks the
    property if it is of none of these kinds, no edge of any weight states it of the concept or of
    its kinds, and none joins the concept to the object.

    For other properties, statistics are used. An edge of less weight than ``LOOSE_WEIGHT`` counts
    only if an edge states the same of a similar concept. A concept lacks the property if there is
    no evidence for it (see `builders.properties.contrast`): no edge states it of the concept or of
    its kinds; at most :data:`MAX_HOLDERS` concepts have it; and, with the contrast "kind", no
    similar concept has it, the concept has no similar property, and ConceptNet has other edges of
    the concept with the same relation.

    Properties denied by edges are lacked. Negations (cannot fly) are lacked only if an edge states
    the opposite.
    """
    edges = _edges_of(conceptnet, rules.relations)
    sure, dropped = _sure_edges(conceptnet, wordnet, rules)
    stated = np.isin(edges.key, _reviewed_keys(conceptnet, rules.relations))
    sheet, judged_keys = judged_ids(conceptnet, rules.relations)
    keys = np.union1d(np.union1d(sure.key, edges.key[stated]), judged_keys)
    nouns = _plain_nouns(conceptnet, wordnet, rules)
    of_kinds = [nouns[member] for _, _, member in members(conceptnet, wordnet, nouns)]
    concepts = sorted_unique(np.concatenate([sure.start, sheet, *of_kinds]))
    names = tuple(name for relation in rules.relations for name in (relation, f"Not{relation}"))
    code = keys // len(conceptnet)
    relation = np.array(names)[code]
    texts = single_chunk(conceptnet.concepts["text"])
    objects = texts.take(pa.array(keys % len(conceptnet))).to_pylist()
    known = review(
        conceptnet, wordnet, concepts, list(zip(relation.tolist(), objects, strict=True))
    )
    support = Support(
        conceptnet,
        wordnet,
        edges,
        concepts,
        keys,
        relation,
        ~listed(texts, TOO_GENERAL),
        rules.min_weight,
    )
    cell, weight = support.cell(sure.start, sure.key), sure.weight
    column = cell % keys.size
    kinds = relation == "IsA"
    agreements = support.agreed()
    agreed = agreements.ravel()[cell]
    spoken_for = support.said | support.inherited() | support.classified()
    mentioned = support.mentioned() | support.by_kindred_object()
    # Activities may take place anywhere.
    verb = mostly_verbs(conceptnet, wordnet)[concepts]
    anywhere = known.open | (verb[:, None] & (relation == PLACE))
    impossible = ~(spoken_for | mentioned | known.possible | anywhere | known.doubtful)
    impossible[known.unknown] = False
    spoken_for |= (support.holders > MAX_HOLDERS) | (code % 2 == 1)
    alike = support.of_one_kind() | support.of_alike()
    spoken_for |= alike | support.by_alike() | mentioned | ~support.described()
    spoken_for |= support.usual_in_field()
    # If a reviewed property is both stated and denied, it is left open: grass is not green when
    # dry. So are places where the concept is denied but its kind is found: bees in a tree.
    likely = (known.possible | anywhere) & (relation == PLACE)
    disputed = support.denied & known.reviewed & (support.said | likely)
    lacks = (support.denied & ~disputed) | np.where(known.reviewed, impossible, ~spoken_for)
    tests = {
        "weight below --min-weight": (weight < rules.min_weight)
        & ~(agreed & known.reviewed[column]),
        "others deny it": weight < OUTWEIGH * support.against.ravel()[cell],
        "of no kind that may have a reviewed property": known.reviewed[column]
        & np.where(
            kinds[column],
            ~agreed & (weight < FIRM_WEIGHT),
            ~known.possible.ravel()[cell],
        ),
        "doubtful of a reviewed property": known.doubtful.ravel()[cell],
        "little weight, and the same is said of nothing alike": ~known.reviewed[column]
        & np.where(
            kinds[column],
            ~agreed & (weight < FIRM_WEIGHT),
            ~alike.ravel()[cell] & (weight < LOOSE_WEIGHT),
        ),
    }
    left = dropped.sift(tests, "edges: ")
    cell, weight, source = cell[left], weight[left], concepts[cell[left] // keys.size]
    passed = _passed_on(conceptnet, wordnet, edges, rules, concepts, keys)
    own = passed.concept * keys.size + passed.property
    true = known.reviewed[passed.property] & ~(known.doubtful | support.denied).ravel()[own]
    cell = np.concatenate([cell, own[true]])
    weight = np.concatenate([weight, passed.weight[true]])
    source = np.concatenate([source, passed.source[true]])
    # Among several edges, the concept's own comes first.
    order = np.lexsort((-weight, source != concepts[cell // keys.size], cell))
    first = order[np.diff(cell[order], prepend=-1) > 0]
    held = StatedProperties(*np.divmod(cell[first], keys.size), weight[first], source[first])
    # "Drink" is an event as a verb, but not as a noun: statements about things are left out for
    # verbs.
    event = np.isin(np.array(rules.relations)[code // 2], EVENTS)
    doing = kinds & np.isin(objects, DOINGS)
    verb[np.setdiff1d(held.concept, held.concept[event[held.property]])] = False
    held = lines_of(held, event[held.property] | ~verb[held.concept])
    plausible = support.said & ~support.denied & ~known.doubtful & (event | ~verb[:, None])
    plausible &= (known.possible & ~doing) | agreements | ~known.reviewed
    plausible[held.concept, held.property] = True
    lacks[held.concept, held.property] = False
    has = np.zeros_like(lacks)
    has[held.concept, held.property] = True
    place = {text: at for at, text in enumerate(texts.take(pa.array(concepts)).to_pylist())}
    columns = {name: at for at, name in enumerate(zip(relation.tolist(), objects, strict=True))}
    judged = decide(verdicts(place, columns), (has, plausible, lacks), known.reviewed)
    held = _with(held, has, concepts, rules.min_weight)
    return Evidence(
        concepts,
        code,
        keys % len(conceptnet),
        names,
        held,
        plausible,
        lacks,
        support.denied,
        known.reviewed | judged,
        rules,
        dropped,
    )


def _with(held: StatedProperties, has: Bools, concepts: Ints, weight: float) -> StatedProperties:
    """Return what ``has`` marks, with the edges of ``held`` or the concept itself as source."""
    known = has[held.concept, held.property]
    held = lines_of(held, known)
    more = has.copy()
    more[held.concept, held.property] = False
    concept, which = np.nonzero(more)
    new = StatedProperties(concept, which, np.full(concept.size, weight), concepts[concept])
    both = joined([held, new])
    return lines_of(both, np.lexsort((both.property, both.concept)))


def _passed_on(
    conceptnet: ConceptNet,
    wordnet: WordNet,
    edges: WordEdges,
    rules: PropertyOptions,
    concepts: Ints,
    keys: Ints,
) -> StatedProperties:
    """Return the properties that concepts have because of their kind."""
    relation = np.array(rules.relations)[keys // len(conceptnet) // 2]
    texts = single_chunk(conceptnet.concepts["text"])
    objects = texts.take(pa.array(keys % len(conceptnet))).to_pylist()
    positive = (keys // len(conceptnet) % 2 == 0).tolist()
    names = zip(relation.tolist(), objects, positive, strict=True)
    number = {(name, text): at for at, (name, text, said) in enumerate(names) if said}
    parts = [StatedProperties(*np.zeros((4, 0), dtype=np.int64))]
    passed = [one for one in members(conceptnet, wordnet, concepts) if one[0] in number]
    parents = conceptnet.lookup([parent for _, parent, _ in passed]).tolist()
    order = np.argsort(edges.key, kind="stable")
    key = edges.key[order]
    for (pair, parent, member), above in zip(passed, parents, strict=True):
        column, weight, source = number[pair], rules.min_weight, concepts[member]
        if parent:
            here = order[slice(*np.searchsorted(key, [keys[column], keys[column] + 1]))]
            weight = edges.weight[here[edges.start[here] == above]].max(initial=0)
            source = np.full(member.size, above)
        if weight > 0:
            size = member.size
            parts.append(
                StatedProperties(member, np.full(size, column), np.full(size, weight), source)
            )
    held = joined(parts)
    shown = texts.take(pa.array(concepts))
    all_objects = pa.array(objects, pa.string())
    return lines_of(held, ~holds_kin(shown, held.concept, all_objects, held.property))


def _plain_nouns(conceptnet: ConceptNet, wordnet: WordNet, rules: PropertyOptions) -> Ints:
    """Return the concepts that are common nouns with statements, without odd ones."""
    nouns = sorted_unique(first_nouns(conceptnet, wordnet)[0])
    texts = single_chunk(conceptnet.concepts["text"]).take(pa.array(nouns))
    fits = ~unfit(texts, wordnet) & ~listed(texts, TOO_GENERAL | ODD)
    fits &= ~(rude(texts) & rules.screen)
    told = np.bincount(conceptnet.terms[conceptnet.start], minlength=len(conceptnet))
    fits &= told[nouns] >= MIN_EDGES
    return nouns[fits & (zipf_frequencies(texts.to_pylist()) >= MIN_ZIPF)]


def _edges_of(conceptnet: ConceptNet, relations: Sequence[str]) -> WordEdges:
    """Read the edges of some relations and their negations; missing relations have none."""
    size = len(conceptnet)
    none = np.empty(0, dtype=np.int64)
    parts = [WordEdges(none, none, none, np.empty(0, dtype=np.float64))]
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
            parts.append(WordEdges(start, code * size + end, (code ^ 1) * size + end, weight))
    edges = joined(parts)
    return lines_of(edges, edges.start != edges.key % size)


def _sure_edges(
    conceptnet: ConceptNet, wordnet: WordNet, rules: PropertyOptions
) -> tuple[WordEdges, DropLog]:
    """Return the edges that may make a gold true, and how many were dropped, by reason."""
    size = len(conceptnet)
    asked = np.zeros(conceptnet.assertions.num_rows, dtype=np.bool_)
    for name in set(rules.relations) & set(conceptnet.relation_names):
        for negated in (False, True):
            asked[conceptnet.rows(name, negated)] = True
    # IsA needs less weight where WordNet agrees: see `gather`.
    by_word = NoiseFilter(
        min_weight=min(1.0, rules.min_weight),
        contradictions=False,
        min_zipf=MIN_ZIPF,
        known_terms=False,
        parts_of_speech=False,
    )
    by_kind = NO_FILTER._replace(known_terms=True, parts_of_speech=True)
    loose, report = filter_noise(conceptnet.select(asked), by_word, wordnet)
    filtered, last = filter_noise(loose, by_kind, wordnet)
    steps = (*report.steps, *last.steps)
    dropped = DropLog({f"edges: {step.filter}": step.removed for step in steps})
    listed_keys = _reviewed_keys(conceptnet, rules.relations)
    # Phrases that were reviewed ("play music") need not be in WordNet.
    more = _edges_of(loose, rules.relations)
    phrases = np.isin(more.key, listed_keys) & np.isin(more.key % size, _phrases(conceptnet))
    edges = joined([_edges_of(filtered, rules.relations), lines_of(more, phrases)])
    code = edges.key // size
    names = np.array(rules.relations)[code // 2]
    used, place = np.unique(np.concatenate([edges.start, edges.key % size]), return_inverse=True)
    start, target = np.split(place, 2)
    texts = single_chunk(conceptnet.concepts["text"]).take(pa.array(used))
    pos = parts_of_speech(texts, wordnet)
    odd = unfit(texts, wordnet)
    offensive = rude(texts) & rules.screen
    reviewed = np.isin(edges.key, listed_keys)
    tests = {
        f"weight below {LOOSE_WEIGHT:g} ({' and '.join(LOOSE)})": np.isin(names, LOOSE)
        & (code % 2 == 0)
        & (edges.weight < LOOSE_WEIGHT)
        & ~reviewed,
        "UsedFor without a verb": (names == "UsedFor") & (pos[target] & VERB == 0) & ~reviewed,
        "IsA of what is also a verb (to fish is a sport)": (names == "IsA")
        & listed(texts, frozenset(DOINGS))[target]
        & (pos[start] & VERB != 0),
        OFFENSIVE: offensive[start] | offensive[target],
        "names and odd terms": odd[start] | odd[target],
        "vague objects": _vague(names, texts, target) & ~reviewed,
        "weight below --min-weight": (edges.weight < rules.min_weight)
        & ~(reviewed & (names == "IsA")),
        "too general or odd a concept": listed(texts, TOO_GENERAL | ODD)[start],
        "a concept in a form of its own": pos[start] == 0,
        "concept and object share a word": holds_kin(texts, start, texts, target),
    }
    return lines_of(edges, dropped.sift(tests, "edges: ")), dropped


def _reviewed_keys(conceptnet: ConceptNet, relations: Sequence[str]) -> Ints:
    """Return the keys of the reviewed properties of some relations."""
    pairs = [pair for pair in reviewed_kinds() if pair[0] in relations]
    target = conceptnet.lookup([target for _, target in pairs])
    code = np.array([2 * relations.index(name) for name, _ in pairs], dtype=np.int64)
    return np.asarray((code * len(conceptnet) + target)[target >= 0])


def _phrases(conceptnet: ConceptNet) -> Ints:
    """Return the multi-word concepts."""
    several = mask(pc.match_substring(single_chunk(conceptnet.concepts["text"]), " "))
    return np.flatnonzero(several)


def _vague(relation: npt.NDArray[np.str_], texts: pa.Array, target: Ints) -> Bools:
    """Mark edges whose object, an index of ``texts``, is one of `VAGUE`."""
    vague = np.zeros(relation.size, dtype=np.bool_)
    for name, objects in VAGUE.items():
        vague |= (relation == name) & listed(texts, objects)[target]
    return vague


def listed(texts: pa.Array, terms: frozenset[str]) -> Bools:
    """Mark the texts that are on a list."""
    return mask(pc.is_in(texts, pa.array(sorted(terms), pa.string())))


def rude(texts: pa.Array) -> Bools:
    """Mark texts that are offensive, or contain one of the words of `SENSITIVE`."""
    sensitive = rf"\b(?:{'|'.join(sorted(SENSITIVE))})s?\b"
    return mask(pc.match_substring_regex(texts, sensitive)) | offensive_words(texts)


def unfit(texts: pa.Array, wordnet: WordNet) -> Bools:
    """Mark texts that are names, or contain more than plain letters.

    Names are those whose first sense as a noun WordNet writes with a capital.
    """
    lemmas = wordnet.lemma_texts()
    lower = pc.utf8_lower(lemmas)
    names = lower.filter(pc.and_(pa.array(wordnet.first_nouns), pc.not_equal(lemmas, lower)))
    return mask(pc.or_(pc.is_in(texts, names), pc.invert(pc.match_substring_regex(texts, _PLAIN))))
