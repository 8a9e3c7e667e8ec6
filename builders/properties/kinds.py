"""The kinds of things of which properties may be true, as listed by an editor in ``kinds.yaml``.

ConceptNet does not say what is false. For the most frequent properties, an editor has listed,
generously, the kinds of things (synsets of WordNet) that may have them. Things of none of these
kinds lack the property. Since nearly anything is sometimes found nearly anywhere, ``places.yaml``
lists further kinds of things that cannot be said to be absent from a place.

ConceptNet says little about most things. ``judged.yaml`` therefore holds the judgements of a
reader, a language model, of every concept of a sheet of common things with every property listed:
true, arguable or false. They take precedence over edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from builders.english.word_lists import data_table
from builders.properties.contrast import concepts_of_senses, senses_of
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints
from kbprobe.columns import positions, single_chunk, to_numpy

_PACKAGE = "builders.properties"

GROUPS = "groups"

PLACE = "AtLocation"
"""The relation with most edges, and with the oddest: a pilot in a shower."""

MAIN = 0.5
"""Minimum share of a noun's uses in tagged texts for its first sense to be its main one."""


@dataclass
class Kinds:
    """The kinds and concepts that may have a property.

    Attributes:
        below: synsets that are included with everything below them.
        except_below: synsets that are excluded again, with everything below them.
        concepts: single concepts that are included.
        doubtful: concepts for which neither the property nor its absence is certain.
    """

    below: set[str] = field(default_factory=set)
    except_below: set[str] = field(default_factory=set)
    concepts: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)


@cache
def reviewed_kinds() -> Mapping[tuple[str, str], Kinds]:
    """Return the kinds of every reviewed property: (relation, object) -> kinds."""
    table = data_table("kinds", _PACKAGE)
    groups: dict[str, str] = table.pop(GROUPS)
    return {
        (relation, str(target)): _kinds(listed, groups)
        for relation, objects in table.items()
        for target, listed in objects.items()
    }


@cache
def found_at_places() -> Mapping[str, tuple[Kinds, ...]]:
    """Return what may be found at each reviewed place without being stated, by class."""
    groups: dict[str, str] = data_table("kinds", _PACKAGE)[GROUPS]
    table: dict[str, dict[str, str]] = data_table("places", _PACKAGE)
    found: dict[str, tuple[Kinds, ...]] = {}
    for name, places in table["places"].items():
        kinds = _kinds(table["kinds"][name], groups)
        for place in places.split(","):
            found[place.strip()] = (*found.get(place.strip(), ()), kinds)
    return found


def _kinds(listed: str, groups: Mapping[str, str]) -> Kinds:
    allowed, _, doubtful = listed.partition("|")
    kinds = Kinds(doubtful={term.replace("_", " ") for term in doubtful.split()})
    for name in _flat(allowed, groups):
        if name.startswith("-"):
            kinds.except_below.add(name[1:])
        elif "." in name:
            kinds.below.add(name)
        else:
            kinds.concepts.add(name.replace("_", " "))
    # A kind named next to a group may include again what the group excludes: "goods vehicle.n.01".
    kinds.except_below -= kinds.below
    return kinds


def _flat(listed: str, groups: Mapping[str, str]) -> Iterator[str]:
    """Yield the names in a list, including those of its groups."""
    for name in listed.split():
        if name in groups:
            yield from _flat(groups[name], groups)
        else:
            yield name


class Review(NamedTuple):
    """What the lists say about pairs of a concept and a property.

    Attributes:
        reviewed: (properties,) marks properties that are listed.
        possible: (concepts, properties) marks concepts that may have a reviewed property, in a
            common sense of the word.
        open: (concepts, properties) marks concepts that may be found at a reviewed place without
            being stated, in a common sense of the word.
        doubtful: (concepts, properties) marks statements of edges that a reader would not make.
        unknown: (concepts,) marks concepts that are not in WordNet.
    """

    reviewed: Bools
    possible: Bools
    open: Bools
    doubtful: Bools
    unknown: Bools


def review(
    conceptnet: ConceptNet,
    wordnet: WordNet,
    concepts: Ints,
    properties: Sequence[tuple[str, str]],
) -> Review:
    """Compare concepts with the kinds that properties may be true of.

    A property counts as reviewed if this version of WordNet has all synsets of its list.

    Args:
        conceptnet: the source of the concepts.
        wordnet: the source of the kinds.
        concepts: ids in ConceptNet.
        properties: relation and object of each property; negations are never listed.
    """
    listed, places = reviewed_kinds(), found_at_places()
    number = {name: at for at, name in enumerate(wordnet.synsets["name"].to_pylist())}
    texts = single_chunk(conceptnet.concepts["text"]).take(pa.array(concepts)).to_pylist()
    place = {text: at for at, text in enumerate(texts)}
    common = _nouns(wordnet, concepts, *senses_of(conceptnet, wordnet))
    unknown = ~np.isin(concepts, senses_of(conceptnet, wordnet, every=True)[0])
    reviewed = np.zeros(len(properties), dtype=np.bool_)
    possible, undecided, dubious = np.zeros((3, concepts.size, len(properties)), dtype=np.bool_)
    of_class: dict[int, Ints] = {}
    for column, name in enumerate(properties):
        kinds = listed.get(name)
        if kinds is None or not (kinds.below | kinds.except_below) <= number.keys():
            continue
        reviewed[column] = True
        possible[_of_kinds(wordnet, number, kinds, place, *common), column] = True
        dubious[[place[term] for term in kinds.doubtful if term in place], column] = True
        for shared in places.get(name[1], ()) if name[0] == PLACE else ():
            if id(shared) not in of_class:
                of_class[id(shared)] = _of_kinds(wordnet, number, shared, place, *common)
            undecided[of_class[id(shared)], column] = True
    return Review(reviewed, possible, undecided, dubious, unknown)


def _of_kinds(
    wordnet: WordNet,
    number: Mapping[str, int],
    kinds: Kinds,
    place: Mapping[str, int],
    place_of: Ints,
    synset: Ints,
) -> Ints:
    """Return the indices of concepts of some kinds; ``place_of`` and ``synset`` are parallel."""
    fits = _fitting(wordnet, number, kinds)
    named = [place[term] for term in sorted(kinds.concepts) if term in place]
    return np.concatenate([place_of[fits[synset]], np.array(named, dtype=np.int64)])


@lru_cache(maxsize=4096)
def _with_all_below(wordnet: WordNet, synset: int) -> Ints:
    return np.append(wordnet.isa.reversed.walk([synset]).node, synset)


def _fitting(wordnet: WordNet, number: Mapping[str, int], kinds: Kinds) -> Bools:
    """Mark the synsets of some kinds."""
    fits = np.zeros(len(wordnet), dtype=np.bool_)
    for name in kinds.below & number.keys():
        fits[_with_all_below(wordnet, number[name])] = True
    for name in kinds.except_below & number.keys():
        fits[_with_all_below(wordnet, number[name])] = False
    return fits


def _nouns(wordnet: WordNet, concepts: Ints, concept: Ints, synset: Ints) -> tuple[Ints, Ints]:
    """Keep the nouns that some concepts name: indices of the concepts, and synsets."""
    place = positions(concepts, concept)
    mine = (place >= 0) & (wordnet.pos_codes[synset] == POS.index("n"))
    return place[mine], synset[mine]


def members(
    conceptnet: ConceptNet, wordnet: WordNet, concepts: Ints
) -> Iterator[tuple[tuple[str, str], str, Ints]]:
    """Yield the properties that an editor confirms for concepts, and those that kinds pass on.

    Yields:
        Relation and object; the concept of which ConceptNet states it, "" if WordNet does; and the
        indices in ``concepts`` of that concept or of those whose main sense is of such a kind.
    """
    number = {name: at for at, name in enumerate(wordnet.synsets["name"].to_pylist())}
    concept, synset = _main_senses(conceptnet, wordnet, concepts)
    for relation, objects in data_table("inherited", _PACKAGE).items():
        for target, parents in objects.items():
            for parent, listed in parents.items():
                kinds = _kinds(listed, {})
                if not (kinds.below | kinds.except_below) <= number.keys():
                    continue
                fits = _fitting(wordnet, number, kinds)
                yield (relation, str(target)), parent, concept[fits[synset]]
    texts = single_chunk(conceptnet.concepts["text"])
    place = {text: at for at, text in enumerate(texts.take(pa.array(concepts)).to_pylist())}
    main = dict(zip(concept.tolist(), synset.tolist(), strict=True))
    for relation, objects in data_table("confirmed", _PACKAGE).items():
        for target, listed in objects.items():
            for term in listed.split(", "):
                own = place.get(parent := term.removesuffix("*"))
                if own is None:
                    continue
                of_kind = np.array([own], dtype=np.int64)
                if term != parent and own in main:
                    below = np.isin(synset, _with_all_below(wordnet, main[own]))
                    of_kind = np.union1d(of_kind, concept[below])
                yield (relation, str(target)), parent, of_kind


def _main_senses(conceptnet: ConceptNet, wordnet: WordNet, concepts: Ints) -> tuple[Ints, Ints]:
    """Return the first noun sense of each concept if it has a share of `MAIN` of its noun uses.

    For nouns that do not occur in the tagged texts, it must be the only one.
    """
    concept, synset = concepts_of_senses(conceptnet, wordnet), wordnet.sense_synset
    noun = (concept >= 0) & (wordnet.pos_codes[synset] == POS.index("n"))
    count = to_numpy(wordnet.senses["count"])
    total = np.bincount(concept[noun], count[noun], len(conceptnet))
    first = noun & wordnet.first_nouns
    senses = np.bincount(concept[noun], minlength=len(conceptnet))
    used = total[concept] > 0
    first &= np.where(used, count >= MAIN * total[concept], senses[concept] == 1)
    place = positions(concepts, concept[first])
    return place[place >= 0], synset[first][place >= 0]


class SheetJudgements(NamedTuple):
    """The judgements of a sheet.

    Attributes:
        concepts: the sheet.
        properties: relation and object -> the concepts that have it, and those that arguably do;
            all others of the sheet do not.
    """

    concepts: tuple[str, ...]
    properties: Mapping[tuple[str, str], tuple[frozenset[str], frozenset[str]]]


@cache
def judged() -> SheetJudgements:
    """Read the judgements; a name that is not a concept of the sheet is an error."""
    table = data_table("judged", _PACKAGE)
    groups: dict[str, list[str]] = {}
    for name, listed in table.pop(GROUPS).items():
        groups[name] = _judged_members(listed, groups, None)
    concepts = {concept for members in groups.values() for concept in members}
    properties = {}
    for relation, objects in table.items():
        for target, listed in objects.items():
            true, _, arguable = listed.partition("|")
            has = frozenset(_judged_members(true, groups, concepts))
            maybe = frozenset(_judged_members(arguable, groups, concepts)) - has
            properties[relation, str(target)] = has, maybe
    return SheetJudgements(tuple(sorted(concepts)), properties)


def _judged_members(
    listed: str, groups: Mapping[str, list[str]], known: set[str] | None
) -> list[str]:
    """Return the concepts of a list, including those of its groups."""
    members: dict[str, None] = {}
    for entry in filter(None, (part.strip() for part in listed.split(","))):
        name = entry.removeprefix("-")
        if name not in groups and known is not None and name not in known:
            raise ValueError(f"judged.yaml: no concept or group {name!r}")
        for concept in groups.get(name, [name]):
            if entry == name:
                members[concept] = None
            else:
                members.pop(concept, None)
    return list(members)


def judged_ids(conceptnet: ConceptNet, relations: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Return the ids of the sheet's concepts, and the keys of the judged properties.

    Those missing from a ConceptNet are left out; keys are as in
    `builders.properties.contrast.Edges`.
    """
    concepts = conceptnet.lookup(judged().concepts)
    pairs = [pair for pair in judged().properties if pair[0] in relations]
    target = conceptnet.lookup([target for _, target in pairs])
    code = np.array([2 * relations.index(name) for name, _ in pairs], dtype=np.int64)
    return concepts[concepts >= 0], (code * len(conceptnet) + target)[target >= 0]


Verdicts = tuple[int, Ints, Ints, Ints]
"""The judgements of one property: its column; rows of the sheet's concepts, and of those of which
it is true, and arguable."""


def verdicts(
    place: Mapping[str, int], columns: Mapping[tuple[str, str], int]
) -> Iterator[Verdicts]:
    """Yield the judgements of every property in use.

    Args:
        place: text of each concept -> its row.
        columns: relation and object of each property -> its column.
    """

    def rows(names: frozenset[str] | tuple[str, ...]) -> Ints:
        return np.array(sorted(place[name] for name in names if name in place), dtype=np.int64)

    sheet = rows(judged().concepts)
    for name, (true, arguable) in judged().properties.items():
        if name in columns:
            yield columns[name], sheet, rows(true), rows(arguable)


def decide(given: Iterator[Verdicts], tables: tuple[Bools, Bools, Bools], listed: Bools) -> Bools:
    """Apply judgements to what concepts have and lack, in place.

    Properties judged false but stated by a plausible edge are left open. For properties on no list
    of kinds, nothing is assumed about concepts that are not on the sheet.

    Args:
        given: the judgements.
        tables: (concepts, properties) which are sure, which are plausible, and which are lacked.
        listed: (properties,) marks those that are on a list of kinds.

    Returns:
        (properties,) marks the judged properties.
    """
    sure, plausible, lacks = tables
    marked = np.zeros(listed.size, dtype=np.bool_)
    for column, sheet, true, arguable in given:
        marked[column] = True
        if not listed[column]:
            outside = np.setdiff1d(np.arange(len(sure)), sheet)
            for table in tables:
                table[outside, column] = False
        false = np.setdiff1d(sheet, np.concatenate([true, arguable]))
        lacks[sheet, column] = False
        lacks[false, column] = ~plausible[false, column]
        for table in (sure, plausible):
            table[sheet, column] = False
            table[true, column] = True
    return marked
