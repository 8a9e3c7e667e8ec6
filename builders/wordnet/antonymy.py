"""Which of these means the opposite?"""

from __future__ import annotations

from builders.engine.drops import DropLog
from builders.engine.plan import Plan
from builders.engine.probe import probe
from builders.relations import QUESTION_FIELDS, relation_plan, then, union
from builders.wordnet.options import AntonymyOptions
from builders.wordnet.probes import CHOICE_FIELDS, open_wordnet
from builders.wordnet.source import named_first, synset_source
from kb_cache.wordnet.types import WordNet
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator


@probe(
    "wordnet_antonymy",
    options=AntonymyOptions,
    open=open_wordnet,
    question_fields=QUESTION_FIELDS,
    choice_fields=CHOICE_FIELDS,
    controls=(NO_LANGUAGE, PERTURBED),
)
def wordnet_antonymy(wordnet: WordNet, options: AntonymyOptions, rng: RandomGenerator) -> Plan:
    """Which of five words means the opposite of another, in a given sense?"""
    source = synset_source(wordnet, options)
    opposite = wordnet.graph("antonym")
    # What is opposed to something alike or near may be taken for an opposite; so may what is near.
    related = union(source.alike, source.near)
    true = union(opposite, related, then(related, opposite), then(then(related, related), opposite))
    edges = {"antonym": named_first(wordnet, options, "antonym")}
    return relation_plan(source, edges, true, options, rng, DropLog(), options.min_zipf)
