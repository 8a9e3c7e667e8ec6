"""What WordNet questions are about: common words, or names that an encyclopedia lists."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.plan import Plan
from builders.wordnet.flags import taxa
from builders.wordnet.synsets import known_synsets, lemma_texts
from builders.wordnet.truths import STRUCTURES
from kb_cache.derived import derived
from kb_cache.frequency import zipf_frequencies
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Ints, mask_at
from kbprobe.columns import mask, to_numpy
from kbprobe.format.items import COMMON, CONTENTS

FAMILIAR = 2.5
"""Minimum frequency (Zipf scale) of a word by which people know an animal or a plant: dandelion,
jackal and collie are more frequent, foxglove and grebe are not."""

LIVING = ("animal", "food", "plant", "substance", "Tops")
"""Lexicographer files of organisms and their products: an apple is a fruit, then a tree."""

MOST_SENSES = 3
"""A tree, its fruit and its wood share a word if they are among this many first senses."""

GENUS = ("genus.n.02",)

BINOMIAL = r"^\p{Lu}\p{Ll}+ (?:x )?\p{Ll}[\p{Ll}-]+(?: \p{Ll}[\p{Ll}-]+)?$"
"""The pattern of scientific names of species and subspecies; "Dutch oven" looks like one."""


def is_common(wordnet: WordNet) -> Bools:
    """Mark the synsets that are neither taxa nor persons, places or other names."""
    return np.asarray(contents(wordnet) == CONTENTS.index(COMMON))


@derived
def contents(wordnet: WordNet) -> Ints:
    """Return the content of every synset, an index into ``CONTENTS``.

    - Instances of a class have names: persons (including gods and fictional persons), places
      (including buildings, roads, stars) and others, such as wars and books. Those with a word in
      lower case, such as the sun, are common nouns.
    - Taxa are the groups of biological classifications, and organisms that WordNet places in one,
      except those that people know by a single word.
    """
    wordnet = wordnet.structure
    groups, instances, built = np.zeros((3, len(wordnet)), dtype=np.bool_)
    groups[taxa(wordnet)] = True
    organisms = _organisms(wordnet, groups)
    groups &= _has_lemma(wordnet, groups, r"\p{Lu}")
    instances[wordnet.edges("instance_hypernym")[0]] = True
    instances &= ~_has_lemma(wordnet, instances, r"^\p{Ll}+$")
    built[wordnet.isa.reversed.walk(known_synsets(wordnet, STRUCTURES)).node] = True
    person = wordnet.in_files("noun.person")
    place = wordnet.in_files("noun.location", "noun.object") | built
    found = np.select(
        [
            instances & person,
            instances & place,
            instances,
            groups | (organisms & ~_known_by_a_word(wordnet, organisms)),
        ],
        [CONTENTS.index(name) for name in ("person", "place", "name", "taxon")],
        CONTENTS.index(COMMON),
    )
    return found


def content_column(wordnet: WordNet, plan: Plan) -> pa.Array:
    """Return what each of a plan's questions is about: the content of its concept."""
    content = np.zeros(plan.questions.key.size, dtype=np.int64)
    content[plan.question] = contents(wordnet)[plan.concept.codes]
    return pa.array(CONTENTS).take(pa.array(content))


def _organisms(wordnet: WordNet, groups: Bools) -> Bools:
    """Mark the animals, plants and the like that are placed in a biological classification.

    They are members of one of its ``groups``, or have a scientific name, or are kinds (breeds,
    varieties) of what has one or is a member of a genus.
    """
    living = wordnet.in_files("noun.animal", "noun.plant")
    member, group = wordnet.edges("member_holonym")
    genera, placed = np.zeros((2, len(wordnet)), dtype=np.bool_)
    genera[wordnet.isa.reversed.walk(known_synsets(wordnet, GENUS)).node] = True
    placed[member[genera[group]]] = True
    placed |= _has_lemma(wordnet, living, BINOMIAL)
    placed &= living
    placed[wordnet.isa.reversed.walk(np.flatnonzero(placed)).node] = True
    placed[member[groups[group]]] = True
    return np.asarray(placed & living)


def _known_by_a_word(wordnet: WordNet, organisms: Bools) -> Bools:
    """Mark the organisms for which people use one of the first two lemmas.

    It is frequent enough, and this is its first sense, one that occurs in WordNet's tagged texts,
    or one of several senses of which the first is of an organism or of what it gives.
    """
    names = ("synset", "number", "count")
    synset, number, count = (to_numpy(wordnet.senses[name]) for name in names)
    lemmas = lemma_texts(wordnet)
    place = np.arange(synset.size) - wordnet.sense_start[synset]
    asked = np.flatnonzero(organisms[synset] & (place < 2))
    asked = asked[_matches(lemmas, asked, r"^\p{L}+$")]
    living = wordnet.in_files(*(f"noun.{name}" for name in LIVING))[synset]
    first = (number == 1) & (wordnet.pos_codes[synset] == POS.index("n"))
    words = pc.utf8_lower(lemmas)
    of_living = words.take(pa.array(np.flatnonzero(first & living)))
    shared = mask(pc.is_in(words.take(pa.array(asked)), value_set=of_living))
    shared &= number[asked] <= MOST_SENSES
    asked = asked[(number[asked] == 1) | (count[asked] > 0) | shared]
    zipf = zipf_frequencies(lemmas.take(pa.array(asked)).to_pylist())
    return mask_at(len(wordnet), synset[asked[zipf >= FAMILIAR]])


def _has_lemma(wordnet: WordNet, synsets: Bools, pattern: str) -> Bools:
    """Mark the synsets with a lemma that matches a pattern."""
    synset = wordnet.sense_synset
    senses = np.flatnonzero(synsets[synset])
    return mask_at(len(wordnet), synset[senses[_matches(lemma_texts(wordnet), senses, pattern)]])


def _matches(texts: pa.Array, rows: Ints, pattern: str) -> Bools:
    """Return whether a pattern matches each of some rows of a column."""
    return mask(pc.match_substring_regex(texts.take(pa.array(rows)), pattern))
