"""Encyclopedic composition: what lies at the end of a path of two or three facts of Wikidata?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020). Where ours differs,
and why: docs/probes/encyclopedic_composition.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from builders.compositions.options import CompositionOptions
from builders.compositions.paths import ENTITY, PROBE
from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.compositions.facts import Collected
    from builders.engine.render.template_file import Template
    from kb_cache.wikidata.sparql.types import QuerySource

FACTS = "facts"
"""The config of the single facts."""


def open_source(options: CompositionOptions) -> Collected:
    """Ask the source that the options name for all facts that the paths need."""
    from builders.compositions.facts import collect

    paths = options.path_set
    source: QuerySource
    if options.dump:
        from kb_cache.wikidata.load import load_wikidata

        source = load_wikidata(options.dump)
    else:
        from kb_cache.wikidata.sparql.cache import CachedEndpoint
        from kb_cache.wikidata.sparql.endpoint import default_limits

        limits = replace(default_limits(options.endpoint), requests=options.max_requests)
        source = CachedEndpoint(
            options.endpoint, offline=options.offline, refresh=options.refresh, limits=limits
        )
    return collect(source, paths, options.min_sitelinks, options.max_listed)


def wordings(options: CompositionOptions) -> Template:
    """The wordings of the paths and hops that the options ask for."""
    return options.path_set.template()


@probe(
    PROBE,
    options=CompositionOptions,
    open=open_source,
    question_fields=(ENTITY,),
    choice_fields=("label",),
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    sub_questions=(FACTS,),
    wordings=wordings,
)
def encyclopedic_composition(
    collected: Collected, options: CompositionOptions, rng: RandomGenerator
) -> Plan:
    """What lies at the end of a path of two or three facts?"""
    from builders.compositions.chains import Knowledge, cap, find_chains, split_chains
    from builders.compositions.rows import PathLayout, facts_alone, in_groups

    dropped = DropLog()
    knowledge = Knowledge(collected)
    chains = find_chains(knowledge, unambiguous=options.unambiguous, dropped=dropped)
    most = {
        "start": options.max_per_entity,
        "carrier": options.max_per_bearer,
        "gold": options.max_per_gold,
    }
    chains = cap(chains, most, rng.child("cap"), dropped)
    chains, split = split_chains(chains, options.split_shares, rng.child("splits"), dropped)
    chosen = in_groups(
        knowledge, chains, split.tolist(), options.choices, rng.child("rings"), dropped
    )
    facts = facts_alone(knowledge, chosen, options.choices, rng.child("facts"))
    asked = {row.edges[0][:3] for row in facts}
    rows = []
    for chain, row in chosen:
        if all(edge[:3] in asked for edge in row.edges):
            rows.append((chain, row))
        else:
            dropped[f"{chain.path}: a fact of it has too few wrong answers"] += 1
    dropped.require(len(rows), "Loosen one of them, or ask a larger source.")
    layout = PathLayout(knowledge)
    alone = layout.plan(
        facts, [(row.edges[0].hop, f"fact-{row.edges[0].hop}") for row in facts], whole=False
    )
    return layout.plan(
        [row for _, row in rows],
        [(chain.path, chain.path) for chain, _ in rows],
        whole=True,
        sub_questions={FACTS: alone},
        dropped=dropped,
    )
