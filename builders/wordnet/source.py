"""WordNet's synsets as the nodes of graph probes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.draw.likeness import ComparedTexts
from builders.engine.drops import DropLog
from builders.engine.plan import Questions
from builders.engine.rows import Asking
from builders.english.screen import offensive_synsets, offensive_texts
from builders.relations import Edges, NodeSource, given_away
from builders.wordnet.families import wordnet_families
from builders.wordnet.flags import asked_in_minor_sense
from builders.wordnet.likeness import compared_texts
from builders.wordnet.neighbourhoods import territory
from builders.wordnet.options import WordNetOptions
from builders.wordnet.synsets import (
    KINDS,
    POS_NAMES,
    alike_in_any,
    first_words,
    generality,
    lemma_texts,
    near,
    nodes_of,
    of_parts_of_speech,
    other_words,
    shown_glosses,
    words_at,
    zipf_of,
)
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints, lines_of, mask_at
from kbprobe.columns import codes, to_numpy
from kbprobe.errors import UsageError

FEWEST = 300
"""Minimum number of questions that a lexicon must provide for a probe."""


def synset_source(
    wordnet: WordNet, options: WordNetOptions, words_of: WordNet | None = None
) -> NodeSource:
    """Return all synsets: named by their first lemma, distinguished by their gloss.

    In a language other than English, which lacks glosses, other lemmas of the synset may show what
    is meant. If the same questions are asked in several languages, this applies to all of them;
    ``words_of`` is then the language of the words shown, by default the first.
    """
    shown = words_of or wordnet
    size = len(wordnet)
    synonyms = pa.array([[]] * size, pa.list_(pa.string()))
    if wordnet.structure is not wordnet:
        every = np.arange(size, dtype=np.int64)
        synonyms = other_words(shown, every, shown.sense_start[:-1].astype(np.int64))
    several = len(wordnet.languages) > 1
    nodes = nodes_of(shown, generality(wordnet))

    def compared(questions: Questions, asking: Asking) -> ComparedTexts:
        return compared_texts("edge", questions, nodes, asking)

    return NodeSource(
        choices=nodes,
        words=first_words(shown),
        # One language decides for all, so that they ask the same questions.
        reads=to_numpy(first_words(wordnet.languages[0]).dictionary_encode().indices).astype(
            np.int64
        ),
        synonyms=synonyms,
        glosses=pa.array([""] * size) if several else shown_glosses(shown),
        pos=pa.array(POS_NAMES).take(pa.array(wordnet.pos_codes)),
        kinds=KINDS[wordnet.pos_codes],
        alike=alike_in_any(wordnet),
        near=near(wordnet),
        families=lambda asking: wordnet_families(wordnet, options, asking),
        territory=partial(territory, wordnet.structure),
        offensive=offensive_in_any(wordnet),
        compared=compared,
    )


def offensive_in_any(wordnet: WordNet) -> Bools:
    """Mark synsets with offensive words in English or, in parallel probes, in any of the languages.

    Otherwise the questions of each language would be screened separately.
    """
    marked = offensive_synsets(wordnet.structure)
    if len(wordnet.languages) > 1:
        marked = marked.copy()
        for edition in wordnet.languages:
            listed = offensive_texts(lemma_texts(edition))
            marked[edition.sense_synset[listed]] = True
            marked |= offensive_texts(edition.synsets["gloss"])
    return marked


def has_glosses(wordnet: WordNet) -> Bools:
    """Return (synsets,) whether each has a definition in all of the languages."""
    each = [to_numpy(pc.utf8_length(shown_glosses(edition))) > 0 for edition in wordnet.languages]
    return np.asarray(np.all(each, axis=0))


def familiar(wordnet: WordNet, nodes: Ints) -> Bools:
    """Return for each node whether its first word is often used in its sense, in all languages."""
    each = [
        asked_in_minor_sense(edition, edition.sense_start[nodes]) for edition in wordnet.languages
    ]
    return np.asarray(~np.any(each, axis=0))


def repeated(wordnet: WordNet, concept: Ints, gold: Ints, place: int) -> Bools:
    """Mark pairs that show the same two words as an earlier pair, in any language.

    Without definitions, questions about two senses of a word are the same, but may be in different
    splits. ``place`` is the position of the shown word among the gold's words.
    """
    seen = np.zeros(concept.size, dtype=np.bool_)
    for edition in wordnet.languages:
        shown = words_at(edition, 0)[concept], words_at(edition, place)[gold]
        _, first = np.unique(np.stack(shown), axis=1, return_index=True)
        again = np.ones(concept.size, dtype=np.bool_)
        again[first] = False
        seen |= again
    return seen


def require_enough(wordnet: WordNet, found: int, of: int, what: str) -> None:
    """Refuse to ask in a language whose lexicon is too small.

    Args:
        wordnet: the WordNet of the language.
        found: the number of questions that can be asked at most.
        of: the same number if nothing were missing.
        what: what is needed, for the message ("synsets with a definition").

    Raises:
        UsageError: there are fewer than `FEWEST`.
    """
    if found < FEWEST:
        codes_asked = ", ".join(edition.language for edition in wordnet.languages)
        raise UsageError(
            f"the lexicon is too small to ask this probe in {codes_asked}: it has {found:,} of "
            f"{of:,} {what} ({of - found:,} are missing), and {FEWEST} are needed. Choose another "
            "--language, or a probe that needs no such data (see docs/languages.md)"
        )


def edges_in_language(
    wordnet: WordNet, options: WordNetOptions, edges: Mapping[str, Edges], dropped: DropLog
) -> Mapping[str, Edges]:
    """Leave out edges unsuitable for questions in a language, such as those without words.

    An edge that is unsuitable in one of several languages is left out of all. English keeps all.

    Raises:
        UsageError: too few edges are left.
    """
    if wordnet.structure is wordnet:
        return edges
    sources = [synset_source(wordnet, options, edition) for edition in wordnet.languages]
    found: dict[str, Edges] = {}
    for name, (concept, gold) in edges.items():
        wordless = ~(wordnet.has_words[concept] & wordnet.has_words[gold])
        keep = dropped.drop("no word for one of the two in the language", wordless)
        found[name] = lines_of((concept, gold), keep)
    left, all_edges = (sum(ends[0].size for ends in some.values()) for some in (found, edges))
    require_enough(wordnet, left, all_edges, "pairs of synsets with a word for both")
    for name, ends in found.items():
        keep = dropped.keep("the word is rarely used in this sense", familiar(wordnet, ends[0]))
        ends = lines_of(ends, keep)
        keep = dropped.drop("another question reads the same", repeated(wordnet, *ends, 0))
        ends = lines_of(ends, keep)
        if len(sources) > 1:
            shared = np.any([given_away(source, *ends) for source in sources], axis=0)
            ends = lines_of(ends, dropped.drop("a shared word gives the gold away", shared))
            zipf = [zipf_of(edition, end) for edition in wordnet.languages for end in ends]
            rare = np.min(zipf, axis=0) < options.min_zipf
            ends = lines_of(ends, dropped.drop("a word is too rare", rare))
        found[name] = ends
    return found


def asked_edges(wordnet: WordNet, options: WordNetOptions, kind: str) -> Edges:
    """Return the pointers of a kind between synsets of the parts of speech asked about."""
    source, target = wordnet.edges(kind)
    wanted = of_parts_of_speech(wordnet, options.pos)[source]
    return source[wanted], target[wanted]


def named_first(wordnet: WordNet, options: WordNetOptions, kind: str) -> Edges:
    """Return the lexical pointers of a kind between words that are the first of their synsets.

    Pointers are between English words, whatever the language.
    """
    wordnet = wordnet.structure
    first = mask_at(len(wordnet.senses), wordnet.sense_start[:-1])
    kinds, names = codes(wordnet.pointers["kind"])
    source, target, *senses = (
        to_numpy(wordnet.pointers[name]).astype(np.int64)
        for name in ("source", "target", "source_sense", "target_sense")
    )
    wanted = kinds == names.index(kind)
    wanted &= of_parts_of_speech(wordnet, options.pos)[source]
    wanted &= first[senses[0]] & first[senses[1]]
    return source[wanted], target[wanted]
