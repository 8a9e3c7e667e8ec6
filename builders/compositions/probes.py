"""Encyclopedic composition: what lies at the end of a path of two or three facts of Wikidata?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020).
See docs/probes/encyclopedic_composition.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from builders.compositions.chains import (
    DOUBTS,
    Chain,
    Doubts,
    Knowledge,
    cap,
    find_chains,
    kept,
    number_of,
    one_path_for_each_bearer,
)
from builders.compositions.choices import AnswerRules
from builders.compositions.collecting import collect
from builders.compositions.facts import Collected
from builders.compositions.options import CompositionOptions
from builders.compositions.paths import FIELDS, PROBE
from builders.compositions.rows import PathLayout, PathRow, facts_alone, with_choices
from builders.engine.drops import DropLog
from builders.engine.plan import Oracle, Oracles, Plan, credit, text_key
from builders.engine.probe import probe
from builders.engine.splits import connected_components
from builders.english.screen import OFFENSIVE, offensive_texts
from kbprobe.arrays import Ints
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.engine.render.template_file import Template
    from kb_cache.wikidata.sparql.types import QuerySource


FACTS = "facts"
"""The config of the single facts."""


def open_source(options: CompositionOptions) -> Collected:
    """Query the source named by the options for all facts that the paths need."""
    paths = options.path_set
    source: QuerySource
    if options.dump:
        from kb_cache.wikidata.load import load_wikidata

        source = load_wikidata(options.dump)
    else:
        from kb_cache.wikidata.sparql.endpoint import default_limits
        from kb_cache.wikidata.sparql.session import CachedEndpoint

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
    fit = dropped.drop(
        f"labels: {OFFENSIVE}", offensive_texts(pa.array(list(collected.labels.values())))
    )
    return replace(collected, labels=dict(compress(collected.labels.items(), fit)))


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
    quick={"only_paths": ("band-start", "film-actor-spouse", "founder-company-headquarters")},
)
def encyclopedic_composition(
    collected: Collected, options: CompositionOptions, rng: RandomGenerator
) -> Plan:
    """What lies at the end of a path of two or three facts?"""
    dropped = DropLog()
    # The word list is English: "negro" is a colour in other languages.
    if options.screen and options.language == "en":
        collected = _screened(collected, dropped)
    knowledge = Knowledge(collected)
    chains = find_chains(knowledge, unambiguous=options.unambiguous, dropped=dropped)
    flags = Doubts(knowledge).of(chains)
    bits = dict(zip(chains, flags.bits.tolist(), strict=True))
    # Of a split for training, the tier of a chain depends on its split.
    later = np.full(len(chains), options.for_training)
    chains = list(compress(chains, flags.of_tier(options.tier, dropped, later)))
    chains = one_path_for_each_bearer(chains, rng.child("paths"), dropped)
    most = {"asked": 1, **dict(zip(("start", "carrier", "gold"), options.caps, strict=True))}
    chains = cap(chains, most, rng.child("cap"), dropped)
    chains, split = split_chains(chains, options.split_shares, rng.child("splits"), dropped)
    marked = replace(flags, bits=np.array([bits[chain] for chain in chains], dtype=np.int64))
    stay = marked.of_tier(options.tier, dropped, options.may_be_doubtful(split))
    chains, split = list(compress(chains, stay)), split[stay]
    rows = with_choices(knowledge, chains, split.tolist(), options, rng.child("sets"), dropped)
    if options.tier == "clean":
        limited = np.flatnonzero(~options.may_be_doubtful(np.arange(len(SPLITS))))
        rows = limit_paths(rows, limited, PATH_SHARE, rng.child("path share"), dropped)
    facts = facts_alone(knowledge, rows, options.choices, rng.child("facts"))
    rows = with_their_facts(rows, facts, dropped)
    dropped.require(len(rows), "Loosen one of them, or ask a larger source.")
    layout = PathLayout(knowledge)
    # Questions about one fact each rest on no others.
    asked = [(row.edges[0].hop, f"fact-{row.edges[0].hop}") for row in facts]
    alone = {FACTS: layout.plan(facts, asked, whole=False)} if facts else {}
    return layout.plan(
        [row for _, row in rows],
        [(chain.path, chain.path) for chain, _ in rows],
        whole=True,
        sub_questions=alone,
        flags=replace(flags, bits=np.array([bits[chain] for chain, _ in rows], dtype=np.int64)),
        oracles=composition_oracles(knowledge, rows),
        dropped=dropped,
    )


def composition_oracles(knowledge: Knowledge, rows: Sequence[tuple[Chain, PathRow]]) -> Oracles:
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
            lambda chain, node: (
                len(chain.edges) == 1 or knowledge.share_a_country(chain.carrier, node)
            ),
        ),
    }
    made = {}
    chained = any(len(row.edges) > 1 for _, row in rows)
    for name, (knows, is_possible) in known.items():
        if name == "first facts" and not chained:
            continue
        possible = np.array(
            [[is_possible(chain, node) for node in row.nodes] for chain, row in rows]
        )
        made[name] = Oracle(knows, credit(possible), (1 + 1 / possible.shape[1]) / 2)
    return made


PATH_SHARE = 0.4
"""Maximum share of one path among the rows of a split, in the clean tier."""

Rows = list[tuple[Chain, PathRow]]
Group = tuple[str, int, int]
"""A path, a split, and the number of a choice group."""


def limit_paths(
    rows: Rows, splits: Ints, share: float, rng: RandomGenerator, dropped: Counter[str]
) -> Rows:
    """Drop rows of paths that have more than a share of the rows of their split, of some splits.

    Nothing is dropped if there are too few paths for this share.
    """
    groups: dict[Group, int] = Counter(_group_of(chain, row) for chain, row in rows)
    keep = {one for one in groups if one[1] not in splits}
    for split in sorted({split for _, split, _ in groups}.intersection(splits.tolist())):
        some = sorted(one for one in groups if one[1] == split)
        paths = Counter(chain.path for chain, row in rows if row.split == split)
        most = _most_of_a_path(paths, share)
        taken: Counter[str] = Counter()
        for at in np.argsort(rng.bits(np.array([text_key(*map(str, one)) for one in some]))):
            if taken[some[at][0]] + groups[some[at]] <= most:
                keep.add(some[at])
                taken[some[at][0]] += groups[some[at]]
    return _kept(rows, keep, "beyond the share of a path", dropped)


def _most_of_a_path(rows: Counter[str], share: float) -> float:
    """Return the maximum rows per path such that none exceeds its share of those kept."""
    if len(rows) * share <= 1:
        return max(rows.values())
    most = float(max(rows.values()))
    while most > share * sum(min(most, count) for count in rows.values()) + 1e-9:
        most = share * sum(min(most, count) for count in rows.values())
    return most


def with_their_facts(rows: Rows, facts: Sequence[PathRow], dropped: Counter[str]) -> Rows:
    """Drop the choice groups of rows of several facts one of which has no question of its own."""
    asked = {row.edges[0][:3] for row in facts}
    groups = {_group_of(chain, row) for chain, row in rows}
    lacking = {
        _group_of(chain, row)
        for chain, row in rows
        if len(row.edges) > 1 and not all(edge[:3] in asked for edge in row.edges)
    }
    return _kept(rows, groups - lacking, "a fact of it has too few wrong answers", dropped)


def _group_of(chain: Chain, row: PathRow) -> Group:
    return chain.path, row.split, row.group


def _kept(rows: Rows, keep: set[Group], reason: str, dropped: Counter[str]) -> Rows:
    dropped.update(
        f"{chain.path}: {reason}" for chain, row in rows if _group_of(chain, row) not in keep
    )
    return [(chain, row) for chain, row in rows if _group_of(chain, row) in keep]


Thing = tuple[str, ...]
"""An entity that is asked about, or a fact."""


def split_chains(
    chains: list[Chain],
    shares: tuple[float, float, float],
    rng: RandomGenerator,
    dropped: Counter[str],
) -> tuple[list[Chain], Ints]:
    """Assign splits by the bearer of the answer; drop chains that would be in two splits.

    A film has several actors, so not all its questions can be in the split of their actor. Actors
    are therefore assigned to the split with most of their films, as long as there is room. Facts
    stated from both ends (spouses) count as one.

    Returns:
        The chains that are kept, and the split of each.
    """
    if not chains:
        return [], np.empty(0, dtype=np.int64)
    # Entities that are each other's answers share one fact.
    bears = {number_of(chain.carrier) for chain in chains}
    ends = [(number_of(chain.carrier), number_of(chain.gold)) for chain in chains]
    root = connected_components((one, other if other in bears else one) for one, other in ends)
    home_of = _homes([root[one] for one, _ in ends], chains, shares, rng)
    split = np.array([home_of[root[one]] for one, _ in ends], dtype=np.int64)
    votes: dict[Thing, Counter[int]] = defaultdict(Counter)
    for chain, code in zip(chains, split.tolist(), strict=True):
        for thing in _told(chain):
            votes[thing][code] += 1
    home = {
        thing: max(count, key=lambda code: (count[code], code)) for thing, count in votes.items()
    }
    keep = np.array(
        [
            all(home[thing] == code for thing in _told(chain))
            for chain, code in zip(chains, split.tolist(), strict=True)
        ]
    )
    return kept(chains, keep, "asks about something that is in another split", dropped), split[keep]


def _homes(
    roots: Sequence[int],
    chains: Sequence[Chain],
    shares: tuple[float, float, float],
    rng: RandomGenerator,
) -> dict[int, int]:
    """Choose a split for each bearer, those with most chains first.

    Among the splits with room for it, this is the one that already has most of the entities and
    facts of its chains. Each path's chains are divided according to the shares.
    """
    own: dict[int, list[Chain]] = defaultdict(list)
    for name, chain in zip(roots, chains, strict=True):
        own[name].append(chain)
    names = np.array(sorted(own), dtype=np.int64)
    lot = dict(zip(names.tolist(), rng.bits(names).tolist(), strict=True))
    size = Counter(chain.path for chain in chains)
    load: dict[str, list[int]] = {path: [0] * len(SPLITS) for path in size}
    found: dict[Thing, Counter[int]] = defaultdict(Counter)
    home = {}
    for name in sorted(own, key=lambda name: (-len(own[name]), lot[name])):
        count = Counter(chain.path for chain in own[name])
        path = max(count, key=lambda path: (count[path], path))
        room = [share * size[path] - used for share, used in zip(shares, load[path], strict=True)]
        ties = [sum(found[thing][code] for thing in _all_told(own[name])) for code in range(3)]
        fits = [code for code in range(3) if room[code] >= count[path]] or [room.index(max(room))]
        best = max(fits, key=lambda code: (ties[code], room[code]))
        home[name] = best
        load[path][best] += count[path]
        for thing in _all_told(own[name]):
            found[thing][best] += 1
    return home


def _all_told(chains: Iterable[Chain]) -> set[Thing]:
    return set().union(*map(_told, chains))


def _told(chain: Chain) -> set[Thing]:
    """Return the entities that a chain's questions ask about, and its undirected facts."""
    entities = {(edge.source,) for edge in chain.edges}
    return entities | {(edge.hop, *sorted((edge.source, edge.target))) for edge in chain.edges}
