"""WordNet's synsets as the nodes of graph probes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from builders.english.screen import offensive_synsets
from builders.relations import NodeSource
from builders.wordnet.families import wordnet_families
from builders.wordnet.options import WordNetOptions
from builders.wordnet.synsets import (
    KINDS,
    POS_NAMES,
    alike,
    generality,
    lemma_texts,
    near,
    nodes_of,
    of_parts_of_speech,
    shown_glosses,
)
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints
from kbprobe.columns import codes, to_numpy


def synset_source(wordnet: WordNet, options: WordNetOptions) -> NodeSource:
    """Return all synsets: named by their first lemma, told apart by their gloss."""
    return NodeSource(
        choices=nodes_of(wordnet, generality(wordnet)),
        words=lemma_texts(wordnet).take(pa.array(wordnet.sense_start[:-1])),
        glosses=shown_glosses(wordnet),
        pos=pa.array(POS_NAMES).take(pa.array(wordnet.pos_codes)),
        kinds=KINDS[wordnet.pos_codes],
        alike=alike(wordnet),
        near=near(wordnet),
        families=lambda asking: wordnet_families(wordnet, options, asking),
        offensive=offensive_synsets(wordnet),
    )


def asked_edges(wordnet: WordNet, options: WordNetOptions, kind: str) -> tuple[Ints, Ints]:
    """Return the pointers of a kind between synsets of the parts of speech asked about."""
    source, target = wordnet.edges(kind)
    wanted = of_parts_of_speech(wordnet, options.pos)[source]
    return source[wanted], target[wanted]


def named_first(wordnet: WordNet, options: WordNetOptions, kind: str) -> tuple[Ints, Ints]:
    """Return the lexical pointers of a kind whose words are the first of their synsets."""
    first = np.zeros(len(wordnet.senses), dtype=np.bool_)
    first[wordnet.sense_start[:-1]] = True
    kinds, names = codes(wordnet.pointers["kind"])
    source, target, *senses = (
        to_numpy(wordnet.pointers[name]).astype(np.int64)
        for name in ("source", "target", "source_sense", "target_sense")
    )
    wanted = kinds == names.index(kind)
    wanted &= of_parts_of_speech(wordnet, options.pos)[source]
    wanted &= first[senses[0]] & first[senses[1]]
    return source[wanted], target[wanted]
