"""Adjectives that WordNet groups around another, and whose definitions bear that out.

A satellite is said to be similar to the head of its group, which may mean a lot (*colossal* and
*large*) or little (*arctic* and *cold*). It means most where the definition of one names the other
or a further word of the group: *colossal* is "so great in size or force or extent as to elicit
awe", and *great* is of the group of *large*.
"""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from builders.antonyms.senses import Senses
from kbprobe.columns import codes, single_chunk

STEM = 6
"""Letters by which words are told apart: *danger* stands for *dangerous* too."""


def close_satellites(senses: Senses) -> dict[int, list[int]]:
    """Return for each head with antonyms (a synset) its close satellites (synsets).

    Args:
        senses: all senses of the WordNet in question.
    """
    wordnet = senses.wordnet
    kind, kinds = codes(wordnet.pointers["kind"])
    opposed = single_chunk(wordnet.pointers["source"]).filter(kind == kinds.index("antonym"))
    group: dict[int, list[int]] = defaultdict(list)
    for source, target in zip(*map(np.ndarray.tolist, wordnet.edges("similar_to")), strict=True):
        group[target].append(source)
    gloss = single_chunk(wordnet.synsets["gloss"])
    start = wordnet.sense_start

    def words(synset: int) -> set[str]:
        return {word[:STEM] for word in senses.lemma[start[synset] : start[synset + 1]]}

    def definition(synset: int) -> set[str]:
        said = re.sub('".*', "", gloss[synset].as_py().lower())
        return {word[:STEM] for word in re.findall("[a-z]+", said)}

    close: dict[int, list[int]] = {}
    for head in sorted(set(opposed.to_pylist()) & group.keys()):
        defined, of_head = definition(head), words(head)
        others = [(one, words(one)) for one in group[head]]
        near = []
        for satellite, own in others:
            further = of_head.union(*(them for one, them in others if one != satellite)) - own
            if own & defined or further & definition(satellite):
                near.append(satellite)
        close[head] = near
    return close
