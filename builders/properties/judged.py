"""Judgements of a reader: a sheet of common things, each judged for many properties.

ConceptNet says little about most things, and nothing about what is false. ``data/judged.yaml``
holds the judgements of a reader, a language model, of every concept of a sheet with every property
listed: true, arguable or false. They take precedence over edges.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

import numpy as np
import yaml

from kb_cache.conceptnet.types import ConceptNet
from kbprobe.arrays import Bools, Ints

_FILE = resources.files("builders.properties") / "data" / "judged.yaml"

_GROUPS = "groups"


class Judged(NamedTuple):
    """The judgements of a sheet.

    Attributes:
        concepts: the sheet.
        properties: relation and object -> the concepts that have it, and those that arguably do;
            all others of the sheet do not.
    """

    concepts: tuple[str, ...]
    properties: Mapping[tuple[str, str], tuple[frozenset[str], frozenset[str]]]


@cache
def judged() -> Judged:
    """Read the judgements; a name that is not a concept of the sheet is an error."""
    table = yaml.safe_load(_FILE.read_text("utf-8"))
    groups: dict[str, list[str]] = {}
    for name, listed in table.pop(_GROUPS).items():
        groups[name] = _members(listed, groups, None)
    concepts = {concept for members in groups.values() for concept in members}
    properties = {}
    for relation, objects in table.items():
        for target, listed in objects.items():
            true, _, arguable = listed.partition("|")
            has = frozenset(_members(true, groups, concepts))
            maybe = frozenset(_members(arguable, groups, concepts)) - has
            properties[relation, str(target)] = has, maybe
    return Judged(tuple(sorted(concepts)), properties)


def _members(listed: str, groups: Mapping[str, list[str]], known: set[str] | None) -> list[str]:
    """Return the concepts of a list, including those of its groups."""
    members: dict[str, None] = {}
    for entry in filter(None, (part.strip() for part in listed.split(","))):
        name = entry.removeprefix("-")
        if name not in groups and known is not None and name not in known:
            raise ValueError(f"{_FILE}: no concept or group {name!r}")
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


class Verdicts(NamedTuple):
    """The judgements of one property: its column, and rows of concepts."""

    column: int
    sheet: Ints
    true: Ints
    arguable: Ints


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
            yield Verdicts(columns[name], sheet, rows(true), rows(arguable))


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
