"""Encyclopedic composition: what lies at the end of a path of two or three facts of Wikidata?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020).
See docs/probes/encyclopedic_composition.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from builders.compositions.doubts import DOUBTS, Doubts
from builders.compositions.options import CompositionOptions
from builders.compositions.paths import FIELDS, PROBE
from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.english.screen import OFFENSIVE, offensive_texts
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.compositions.facts import Collected
    from builders.engine.render.template_file import Template
    from kb_cache.wikidata.sparql.types import QuerySource

FACTS = "facts"
"""The config of the single facts."""


def open_source(options: CompositionOptions) -> Collected:
    """Query the source named by the options for all facts that the paths need."""
    from builders.compositions.collecting import collect

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
    """Return the wordings of the paths and hops selected by the options."""
    return options.path_set.template()


def _screened(collected: Collected, dropped: DropLog) -> Collected:
    """Remove offensive labels: nodes without a label are neither asked about nor choices."""
    import pyarrow as pa

    names = list(collected.labels)
    kept = dropped.drop(
        f"labels: {OFFENSIVE}", offensive_texts(pa.array(list(collected.labels.values())))
    )
    labels = {name: collected.labels[name] for name, keep in zip(names, kept, strict=True) if keep}
    return replace(collected, labels=labels)


@probe(
    PROBE,
    options=CompositionOptions,
    open=open_source,
    question_fields=FIELDS,
    choice_fields=("label",),
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    sub_questions=(FACTS,),
    wordings=wordings,
    flags=DOUBTS,
)
def encyclopedic_composition(
    collected: Collected, options: CompositionOptions, rng: RandomGenerator
) -> Plan:
    """What lies at the end of a path of two or three facts?"""
    from builders.compositions.chains import (
        Knowledge,
        cap,
        find_chains,
        one_path_for_each_bearer,
    )
    from builders.compositions.oracles import composition_oracles
    from builders.compositions.rows import PathLayout, facts_alone, with_choices
    from builders.compositions.shares import limit_paths, with_their_facts
    from builders.compositions.splits import split_chains

    dropped = DropLog()
    # The word list is English: "negro" is a colour in other languages.
    if options.screen and options.language == "en":
        collected = _screened(collected, dropped)
    knowledge = Knowledge(collected)
    chains = find_chains(knowledge, unambiguous=options.unambiguous, dropped=dropped)
    flags = Doubts(knowledge).of(chains)
    bits = dict(zip(chains, flags.bits.tolist(), strict=True))
    chains = list(compress(chains, flags.of_tier(options.tier, dropped)))
    chains = one_path_for_each_bearer(chains, rng.child("paths"), dropped)
    most = {
        "asked": 1,
        "start": options.max_per_entity,
        "carrier": options.max_per_bearer,
        "gold": options.max_per_gold,
    }
    chains = cap(chains, most, rng.child("cap"), dropped)
    chains, split = split_chains(chains, options.split_shares, rng.child("splits"), dropped)
    rows = with_choices(knowledge, chains, split.tolist(), options, rng.child("sets"), dropped)
    if options.tier == "clean":
        rows = limit_paths(rows, options.path_share, rng.child("path share"), dropped)
    facts = facts_alone(knowledge, rows, options.choices, rng.child("facts"))
    rows = with_their_facts(rows, facts, dropped)
    dropped.require(len(rows), "Loosen one of them, or ask a larger source.")
    layout = PathLayout(knowledge)
    alone = layout.plan(
        facts, [(row.edges[0].hop, f"fact-{row.edges[0].hop}") for row in facts], whole=False
    )
    plan = layout.plan(
        [row for _, row in rows],
        [(chain.path, chain.path) for chain, _ in rows],
        whole=True,
        sub_questions={FACTS: alone},
        flags=replace(flags, bits=np.array([bits[chain] for chain, _ in rows], dtype=np.int64)),
        dropped=dropped,
    )
    return replace(plan, oracles=composition_oracles(knowledge, rows))
