"""The rows of both configs: questions about whole paths, and about the facts that these rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from builders.compositions.chains import Chain, Edge, Knowledge, key_of
from builders.compositions.choices import AnswerRules, OpenQuestion
from builders.compositions.layout import Row
from builders.engine.draw.groups import ChoiceGroup, draw_left_over, search_groups
from kbprobe.rng import RandomGenerator


def in_groups(
    knowledge: Knowledge,
    chains: Sequence[Chain],
    split: Sequence[int],
    size: int,
    rng: RandomGenerator,
    dropped: Counter[str],
) -> list[tuple[Chain, Row]]:
    """Put the chains of each path and split in choice groups; count those left over."""
    found = []
    for path in knowledge.paths.paths.values():
        hops = knowledge.paths.of(path)
        for code in range(3):
            some = [
                chain
                for chain, own in zip(chains, split, strict=True)
                if (chain.path, own) == (path.id, code)
            ]
            if not some:
                continue
            asked = [
                OpenQuestion(key_of(*chain.nodes), chain.gold, knowledge.valid(hops, chain.start))
                for chain in some
            ]
            rules = AnswerRules(knowledge, hops[-1].choices, asked)
            groups = search_groups(rules, size, rng.child(path.id, code))
            rows = _grouped([chain.edges for chain in some], asked, groups, code)
            found += [(some[member], row) for member, row in rows]
            if over := len(some) - size * len(groups):
                dropped[f"{path.id}: no {size - 1} other questions share its choices"] += over
    return found


def _grouped(
    edges: Sequence[tuple[Edge, ...]],
    asked: Sequence[OpenQuestion],
    groups: Iterable[ChoiceGroup],
    split: int,
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of choice groups, each with the number of its question."""
    for group in groups:
        golds = [asked[member].gold for member in group.members]
        for member in group.members:
            own = asked[member].gold
            nodes = (own, *(gold for gold in golds if gold != own))
            yield member, Row(edges[member], nodes, (group.level,) * len(nodes), split)


def facts_alone(
    knowledge: Knowledge, rows: Iterable[tuple[Chain, Row]], size: int, rng: RandomGenerator
) -> list[Row]:
    """Give every fact that the rows rest on choices of its own.

    Choice groups first; a fact must not be missing, so one left over gets distractors by itself.
    """
    cells: dict[tuple[str, int], dict[tuple[str, ...], Edge]] = {}
    for _, row in rows:
        for edge in row.edges:
            cells.setdefault((edge.hop, row.split), {})[edge[:3]] = edge
    found: list[Row] = []
    for (name, code), edges in sorted(cells.items()):
        hop = knowledge.paths.hops[name]
        some = [edges[key] for key in sorted(edges)]
        asked = [
            OpenQuestion(key_of(*edge[:3]), edge.target, knowledge.valid([hop], edge.source))
            for edge in some
        ]
        rules = AnswerRules(knowledge, hop.choices, asked)
        draw = rng.child(name, code)
        groups = search_groups(rules, size, draw.child("rings"))
        in_groups = dict(_grouped([(edge,) for edge in some], asked, groups, code))
        found += in_groups.values()
        golds = np.array([rules.gold[member] for member in in_groups], dtype=np.int64)
        used = (size - 1) * np.bincount(golds, minlength=len(rules.golds))
        for member in range(len(some)):
            if member in in_groups:
                continue
            chosen = draw_left_over(rules, member, size - 1, used, draw.child("single"))
            if len(chosen) == size - 1:
                others, levels = zip(*chosen, strict=True)
                used[list(others)] += 1
                nodes = (some[member].target, *(rules.golds[other] for other in others))
                found.append(Row((some[member],), nodes, (0, *levels), code))
    return found
