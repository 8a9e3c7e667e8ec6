"""The probe wordnet_meronymy: parts, members and substances of things."""

from __future__ import annotations

from functools import partial

from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.relations import AskedEdges
from builders.wordnet.content import is_common
from builders.wordnet.options import STOP_CONCEPTS, MeronymyOptions
from builders.wordnet.planning import ABOUT_EDGES, WordNetPlanner
from builders.wordnet.source import asked_edges
from builders.wordnet.synsets import known_synsets
from builders.wordnet.truths import PART_FLAGS, part_flags, parts_without_edge, possible_parts
from kb_cache.wordnet.types import WordNet
from kbprobe.rng import RandomGenerator

GOLDS_PER_CONCEPT = 6
"""Maximum parts, members or substances asked about for a concept."""


@probe("wordnet_meronymy", options=MeronymyOptions, flags=PART_FLAGS, **ABOUT_EDGES)
def wordnet_meronymy(wordnet: WordNet, options: MeronymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five concepts is a part, a member or a substance of another?"""
    edges = {str(of): asked_edges(wordnet, options, f"{of}_meronym") for of in options.relations}
    asked = AskedEdges(
        edges,
        flags=partial(part_flags, wordnet),
        maybe=partial(parts_without_edge, wordnet),
        stop=known_synsets(wordnet, STOP_CONCEPTS),
        most_golds=GOLDS_PER_CONCEPT,
    )
    if options.common_only:
        asked = asked.of_concepts(is_common(wordnet))
    return WordNetPlanner(wordnet, options, rng).of_edges(asked, possible_parts)
