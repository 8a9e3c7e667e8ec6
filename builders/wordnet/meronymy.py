"""Which of these is a part, a member or a substance of that?"""

from __future__ import annotations

from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.relations import QUESTION_FIELDS, Edges, closure, relation_plan, then, union
from builders.wordnet.options import MeronymyOptions
from builders.wordnet.probes import CHOICE_FIELDS, open_wordnet
from builders.wordnet.source import asked_edges, synset_source
from builders.wordnet.synsets import known_synsets
from kb_cache.wordnet.types import WordNet
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

KINDS = ("part", "member", "substance")


@probe(
    "wordnet_meronymy",
    options=MeronymyOptions,
    open=open_wordnet,
    question_fields=QUESTION_FIELDS,
    choice_fields=CHOICE_FIELDS,
    controls=(NO_LANGUAGE, PERTURBED),
)
def wordnet_meronymy(wordnet: WordNet, options: MeronymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five concepts is a part, a member or a substance of another?"""
    source = synset_source(wordnet, options)
    edges: dict[str, Edges] = {
        name: asked_edges(wordnet, options, f"{name}_meronym") for name in options.relations
    }
    parts = closure(wordnet.graph(*(f"{name}_meronym" for name in KINDS)))
    isa = closure(wordnet.isa)
    # What a car has, a vehicle or a taxi may have; parts of parts are parts; so are kinds of them.
    whole = union(parts, then(isa, parts), then(isa.reversed, parts), parts.reversed)
    true = union(whole, then(whole, wordnet.isa.reversed))
    stop = known_synsets(wordnet, options.stop_concepts)
    return relation_plan(source, edges, true, options, rng, DropLog(), options.min_zipf, stop)
