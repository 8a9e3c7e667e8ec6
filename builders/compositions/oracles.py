"""Oracles for questions about paths, which know only part of each question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from builders.compositions.chains import Chain, Knowledge
from builders.compositions.choices import AnswerRules
from builders.compositions.rows import Row
from builders.engine.oracles import Oracle, Oracles, credit


def composition_oracles(knowledge: Knowledge, rows: Sequence[tuple[Chain, Row]]) -> Oracles:
    """Return the oracles of the questions of some rows."""
    kinds: dict[str, AnswerRules] = {}
    ends: dict[str, set[str]] = {}
    for path in {chain.path for chain, _ in rows}:
        hops = knowledge.paths.of(knowledge.paths.paths[path])
        shown = {node for chain, row in rows if chain.path == path for node in row.nodes}
        kinds[path] = AnswerRules(knowledge, hops[-1], (), shown)
        ends[path] = {link.target for _, link in knowledge.last_facts(hops)}

    def of_its_kind(chain: Chain, node: str) -> bool:
        rules = kinds[chain.path]
        near = rules.near(0)[rules.number[chain.gold], rules.number[node]]
        return node == chain.gold or bool(near)

    known: Mapping[str, tuple[str, Callable[[Chain, str], bool]]] = {
        "kind": ("the kind of the answer: about when, in or of which country", of_its_kind),
        "last fact": (
            "the last fact of all paths, not what leads to it",
            lambda chain, node: node in ends[chain.path],
        ),
        "first facts": (
            "all but the last fact: of which country the one is who has the answer",
            lambda chain, node: knowledge.share_a_country(chain.carrier, node),
        ),
    }
    made = {}
    for name, (knows, is_possible) in known.items():
        possible = np.array(
            [[is_possible(chain, node) for node in row.nodes] for chain, row in rows]
        )
        made[name] = Oracle(knows, credit(possible), (1 + 1 / possible.shape[1]) / 2)
    return made
