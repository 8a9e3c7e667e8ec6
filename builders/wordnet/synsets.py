"""Properties of synsets that the WordNet probes need: contexts, similarity, paths, texts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.plan import Facts, Nodes, Questions
from builders.english.contexts import kinds_of_context, without_full_stop
from builders.english.kin import holds_kin, shares_a_word
from builders.english.word_lists import word_list
from builders.relations import union
from kb_cache.derived import derived
from kb_cache.frequency import has_frequencies, zipf_frequencies
from kb_cache.graph import Graph
from kb_cache.wordnet.types import POS, WordNet
from kbprobe.arrays import Bools, Floats, Ints, mask_at, ragged_ranges, weighted_counts
from kbprobe.columns import codes, mask, single_chunk, to_numpy
from kbprobe.errors import UsageError, did_you_mean

POS_NAMES = ("noun", "verb", "adjective", "adjective", "adverb")
"""Names of the parts of speech, by the codes of :attr:`WordNet.pos_codes`."""

KINDS = np.array([0, 1, 2, 2, 3], dtype=np.int64)
"""Codes that merge adjectives and their satellites."""

OTHER_LEMMAS_SHOWN = 2

MERONYMS = ("part_meronym", "member_meronym", "substance_meronym")


def lexicographer_files(wordnet: WordNet) -> Ints:
    """Return the code of each synset's lexicographer file, an index into the column's values."""
    return codes(wordnet.synsets["lexname"])[0].astype(np.int64)


def of_parts_of_speech(wordnet: WordNet, names: Sequence[str]) -> Bools:
    """Mark the synsets of some parts of speech.

    Raises:
        UsageError: there is no such part of speech.
    """
    known = dict.fromkeys(POS_NAMES)
    for name in names:
        if name not in known:
            raise UsageError(
                f"--pos: no part of speech {name!r}.{did_you_mean(name, known)} There are: "
                f"{', '.join(known)}"
            )
    return np.isin(POS_NAMES, names)[wordnet.pos_codes]


class Contexts(NamedTuple):
    """Example sentences with the concept's word located in them: parallel arrays.

    ``sense`` is the row of the word at ``start`` in WordNet's senses. A word without an example has
    the example -1, like most words in languages with few examples.
    """

    concept: Ints
    example: Ints
    start: Ints
    end: Ints
    sense: Ints

    def take(self, rows: Ints | Bools) -> Contexts:
        """Return some of the contexts."""
        return Contexts(*(array[rows] for array in self))

    def and_alone(self, nodes: Ints, wordnet: WordNet) -> Contexts:
        """Return the contexts, and the first word of each of ``nodes`` without an example."""
        none = np.full_like(nodes, -1)
        more = Contexts(nodes, none, none, none, wordnet.sense_start[nodes])
        return Contexts(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


def contexts_of(wordnet: WordNet, concepts: Bools) -> Contexts:
    """Locate the contexts of the marked concepts.

    An example in which several of the concept's lemmas occur is one context, with the lemma
    that WordNet lists first. Examples that contain only the word are left out.
    """
    mentions = wordnet.mentions
    example = to_numpy(mentions["example"]).astype(np.int64)
    first = np.flatnonzero(np.diff(example, prepend=-1))
    example = example[first]
    contexts = Contexts(
        to_numpy(wordnet.examples["synset"]).astype(np.int64)[example],
        example,
        to_numpy(mentions["start"]).astype(np.int64)[first],
        to_numpy(mentions["end"]).astype(np.int64)[first],
        to_numpy(mentions["sense"]).astype(np.int64)[first],
    )
    length = to_numpy(pc.utf8_length(wordnet.examples["text"]))[example]
    # At least two more words of two letters, with spaces: anything shorter is not a context.
    contexts = contexts.take(
        concepts[contexts.concept] & (length - (contexts.end - contexts.start) >= 6)
    )
    if len(wordnet.languages) > 1:
        contexts = contexts.take(contexts.concept < 0)  # examples are of one language
    if wordnet.structure is not wordnet:
        alone = np.flatnonzero(concepts & wordnet.has_words)
        contexts = contexts.and_alone(np.setdiff1d(alone, contexts.concept), wordnet)
    return contexts


@lru_cache(maxsize=2)
def lemma_texts(wordnet: WordNet) -> pa.Array:
    """Return every sense's lemma in ordinary spelling."""
    return wordnet.lemma_texts()


_GLOSS_REPAIRS = (
    # The rest of an example whose opening or closing quotation mark is missing.
    (r';[^;"]*"[^;"]*$|"', ""),
    # The author of a removed example: "; - John Milton".
    (r";\s*--?\s*(?:the\s+)?\p{Lu}[^;()]*", ""),
    # The lead-in to an example: "reach a goal, e.g.", "a workplace; as in the expression".
    (r"(?:[,;]?\s*\b(?:e\.\s?g\.?|i\.\s?e\.?|as in(?: the expressions?)?)[\s,;:]*)+$", ""),
    (r"\s*\((?:e\.g\.|i\.e\.)?[\s,;]*\)", ""),
    # Remnants between and after examples that were removed.
    (r"\s*;(?:[\s;,]*;)+", ";"),
    (r"[\s;,:]+$", ""),
    (r"\s{2,}", " "),
    (r"\s+([;,])", r"\1"),
)


@derived
def shown_glosses(wordnet: WordNet) -> pa.Array:
    """Return every synset's gloss without the remnants of examples.

    WordNet's files store examples, with their sources, in the gloss. Removing them leaves "; - John
    Milton" or half an example in about 800 glosses of WordNet 3.0.
    """
    glosses = single_chunk(wordnet.synsets["gloss"])
    for pattern, replacement in _GLOSS_REPAIRS:
        glosses = pc.replace_substring_regex(glosses, pattern, replacement)
    return glosses


@derived
def normalised_lemmas(wordnet: WordNet) -> Ints:
    """Return an id for each sense's lemma that ignores case, hyphens and spaces."""
    plain = pc.replace_substring_regex(pc.utf8_lower(lemma_texts(wordnet)), r"[^\pL\pN]+", "")
    codes = plain.dictionary_encode().indices
    return to_numpy(codes).astype(np.int64)


def words_at(wordnet: WordNet, place: int) -> Ints:
    """Return the id of each synset's word at a position; arbitrary if it has fewer words."""
    words = normalised_lemmas(wordnet)
    return words[np.minimum(wordnet.sense_start[:-1] + place, words.size - 1)]


@derived
def alike(wordnet: WordNet) -> Graph:
    """Return the graph of synsets that share a lemma or gloss: not distractors for each other."""
    synset = wordnet.sense_synset
    return union(_sharing(len(wordnet), normalised_lemmas(wordnet), synset), same_gloss(wordnet))


@derived
def same_gloss(wordnet: WordNet) -> Graph:
    """Return the graph of synsets that have the same gloss."""
    gloss = to_numpy(shown_glosses(wordnet).dictionary_encode().indices).astype(np.int64)
    # In other languages many synsets have no gloss; a missing gloss is not a common one.
    known = np.flatnonzero(to_numpy(pc.utf8_length(shown_glosses(wordnet))))
    return _sharing(len(wordnet), gloss[known], known)


def _sharing(size: int, label: Ints, owner: Ints) -> Graph:
    """Return a graph from each node to the others that share a label with it."""
    sharing = Graph.from_edges(size + int(label.max(initial=0)) + 1, label, owner)
    position, other = sharing.expand(label)
    different = owner[position] != other
    return Graph.from_edges(size, owner[position][different], other[different])


def alike_in_any(wordnet: WordNet) -> Graph:
    """Return the graph of synsets that are alike in English or in one of the words' languages."""
    each = dict.fromkeys((wordnet.structure, *wordnet.languages))
    return union(*map(alike, each)) if len(each) > 1 else alike(wordnet)


@derived
def near(wordnet: WordNet) -> Graph:
    """Return the graph of synsets directly above or below a synset, or similar to it."""
    similar = wordnet.graph("similar_to", "also_see", "attribute")
    return union(wordnet.isa, wordnet.isa.reversed, similar)


def parents_for_levels(wordnet: WordNet) -> Graph:
    """Return the parents that define a level: (instance) hypernyms, or a satellite's head."""
    source, target = wordnet.edges("similar_to")
    satellite = wordnet.pos_codes[source] == POS.index("s")
    heads = Graph.from_edges(len(wordnet), source[satellite], target[satellite])
    return union(wordnet.isa, heads)


@derived
def generality(wordnet: WordNet) -> Floats:
    """Return each synset's generality: the logarithm of the number of paths down from it."""
    reach = np.ones(len(wordnet))
    total = np.zeros(len(wordnet))
    # One edge further at each step; WordNet is about 20 deep, and its cycles end here too.
    for _ in range(24):
        reach = weighted_counts(wordnet.isa.indices, reach[wordnet.isa.sources], len(wordnet))
        total += reach
    return np.asarray(np.log1p(total))


def gives_away(
    wordnet: WordNet,
    questions: Questions,
    question: Ints,
    gold: Ints,
    *,
    names_shown: bool,
    gloss_shown: bool,
    asked_gloss_shown: bool,
) -> Bools:
    """Return whether a shared word gives the gold away, for each pair (question, gold).

    That is: the question contains kin of the gold's lemmas, if these are shown ("a glass of wheat
    beer" and beer), the gold's text contains kin of the word asked about ("dog" and "corgi, defined
    as a Welsh dog"), or the gold's gloss shares a content word with the context. The question is
    its context, with the definition of the word where that is shown (``asked_gloss_shown``). If a
    question is a word and its gold the other words of the synset, only these are shown.
    """
    used, local = np.unique(gold, return_inverse=True)
    asked, question = np.unique(question, return_inverse=True)
    in_context = "sentence" in questions.fields
    by_word = not in_context and "surface_form" in questions.columns
    # If questions show a definition, choices show all lemmas.
    most = 1 + OTHER_LEMMAS_SHOWN
    if not in_context and not by_word:
        most = int(np.diff(wordnet.sense_start).max())
    shown = np.minimum(np.diff(wordnet.sense_start)[used], most) - by_word
    members = ragged_ranges(wordnet.sense_start[used] + by_word, shown)
    names = _joined(lemma_texts(wordnet), members, shown)
    shown_fields = ["sentence"] * in_context + ["gloss"] * (asked_gloss_shown or not in_context)
    shown_fields += ["word"] * by_word
    texts = [questions.fields[name].take(pa.array(asked)) for name in shown_fields]
    if in_context:
        # A word alone is shown with synonyms.
        asked_words = questions.columns["surface_form"].take(pa.array(asked))
        synonyms = pc.binary_join(questions.fields["synonyms"].take(pa.array(asked)), " ")
        alone = pc.equal(texts[0], "")
        named = pc.binary_join_element_wise(asked_words, synonyms, " ")
        asked_words = pc.if_else(alone, named, asked_words)
        texts.append(pc.if_else(alone, named, ""))
    question_text = pc.binary_join_element_wise(*texts, " ")
    shared = np.zeros(gold.size, dtype=np.bool_)
    if names_shown:
        shared |= holds_kin(names, local, question_text, question)
    if not in_context:
        return shared
    text = [names] if names_shown else []
    if gloss_shown:
        gloss = shown_glosses(wordnet).take(pa.array(used))
        shared |= shares_a_word(gloss, local, question_text, question)
        text.append(gloss)
    return shared | holds_kin(asked_words, question, pc.binary_join_element_wise(*text, " "), local)


def _joined(texts: pa.Array, members: Ints, lengths: Ints) -> pa.Array:
    """Join each run of ``lengths`` texts into one."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts.take(pa.array(members))), " ")


def path_facts(
    graph: Graph, concept: Ints, gold: Ints, hops: Ints, relation: str, names: pa.Array
) -> Facts:
    """Return a shortest path of ``hops`` edges from each concept to its gold, as triples.

    Among several shortest paths, the one through the lowest ids is taken. ``relation`` names the
    graph's edges, ``names`` its nodes.
    """
    size = len(graph)
    goals, goal = np.unique(gold, return_inverse=True)
    # Distances to each gold, walking back from it, which show which edges lead closer.
    back = graph.reversed.walk(goals, int(hops.max(initial=1)))
    key = np.concatenate([np.arange(goals.size) * size + goals, back.source * size + back.node])
    order = np.argsort(key)
    key, distance = key[order], np.append(np.zeros_like(goals), back.hops)[order]
    line = np.arange(concept.size, dtype=np.int64)
    at, left = concept, hops
    steps: list[tuple[Ints, Ints, Ints]] = []
    while line.size:
        position, node = graph.expand(at)
        remaining = left[position] - 1
        wanted = goal[line[position]] * size + node
        found = np.minimum(np.searchsorted(key, wanted), key.size - 1)
        usable = np.flatnonzero((key[found] == wanted) & (distance[found] == remaining))
        first = usable[np.unique(position[usable], return_index=True)[1]]
        steps.append((line, at, node[first]))
        moving = remaining[first] > 0
        line, at, left = line[moving], node[first][moving], remaining[first][moving]
    row = np.concatenate([step[0] for step in steps])
    nth = np.concatenate([np.full(step[0].size, i) for i, step in enumerate(steps)])
    order = np.lexsort((nth, row))
    subject = np.concatenate([step[1] for step in steps])[order]
    target = np.concatenate([step[2] for step in steps])[order]
    return Facts.from_codes(subject, 0, target, names, (relation,), hops)


def text_facts(wordnet: WordNet, nodes: Ints, lemmas: bool) -> Facts:
    """Return triples that link each node to its gloss and, if requested, to its lemmas."""
    gloss = wordnet.synsets["gloss"].combine_chunks()
    terms = pa.concat_arrays(
        [wordnet.synsets["name"].combine_chunks(), gloss, lemma_texts(wordnet)]
    )
    size = len(wordnet)
    counts = np.diff(wordnet.sense_start)[nodes] if lemmas else np.zeros_like(nodes)
    indptr = np.concatenate([[0], np.cumsum(counts + 1)])
    subject = np.repeat(nodes, counts + 1)
    relation = np.ones(subject.size, dtype=np.int64)
    target = np.empty(subject.size, dtype=np.int64)
    relation[indptr[:-1]] = 0
    target[indptr[:-1]] = size + nodes
    if lemmas:
        cells = ragged_ranges(indptr[:-1] + 1, counts)
        target[cells] = 2 * size + ragged_ranges(wordnet.sense_start[nodes], counts)
    return Facts.from_codes(subject, relation, target, terms, ("definition", "lemma"), counts + 1)


def questions_in_context(wordnet: WordNet, contexts: Contexts) -> Questions:
    """Return the questions that show an example sentence and the word in it, or just the word.

    A word without a sentence has the sentence "". Its key is its synset's, whatever the language.
    """
    shown = contexts.example >= 0
    at = pa.array(contexts.example, mask=~shown)
    example = pc.fill_null(single_chunk(wordnet.examples["text"]).take(at), "")
    lemma = lemma_texts(wordnet).take(pa.array(contexts.sense))
    spans = zip(example.to_pylist(), contexts.start.tolist(), contexts.end.tolist(), strict=True)
    words = [text[start:end] for text, start, end in spans]
    fields = {
        "sentence": without_full_stop(example),
        "kind": kinds_of_context(example),
        "word": pc.if_else(pa.array(shown), pa.array(words, pa.string()), lemma),
        "lemma": lemma,
        "synonyms": other_words(wordnet, contexts.concept, contexts.sense),
        **_senses(wordnet, contexts.concept),
    }
    key = np.where(shown, contexts.example, len(wordnet.structure.examples) + contexts.concept)
    return Questions.from_columns(key, fields, pos="pos", context="sentence", surface_form="word")


def first_words(wordnet: WordNet) -> pa.Array:
    """Return the first word of every synset; "" if the language has none."""
    some = np.diff(wordnet.sense_start) > 0
    first = lemma_texts(wordnet).take(pa.array(wordnet.sense_start[:-1], mask=~some))
    return pc.fill_null(first, "")


def other_words(wordnet: WordNet, nodes: Ints, senses: Ints) -> pa.Array:
    """Return lists of each node's words except one, at most as many as choices show."""
    lemmas, start = lemma_texts(wordnet), wordnet.sense_start
    counts = np.diff(start)[nodes]
    sense = ragged_ranges(start[nodes], counts)
    line = np.repeat(np.arange(counts.size), counts)
    other = sense != senses[line]
    sense, line = sense[other], line[other]
    first = np.searchsorted(line, line)
    few = np.arange(line.size) - first < OTHER_LEMMAS_SHOWN
    offsets = np.concatenate([[0], np.cumsum(np.bincount(line[few], minlength=counts.size))])
    return pa.ListArray.from_arrays(offsets.astype(np.int32), lemmas.take(pa.array(sense[few])))


def questions_by_gloss(wordnet: WordNet, nodes: Ints) -> Questions:
    """Return the questions that show a definition, but no context and no word."""
    fields = {"word": pa.array([""] * nodes.size), **_senses(wordnet, nodes)}
    return Questions.from_columns(nodes, fields, pos="pos")


def questions_by_word(wordnet: WordNet, nodes: Ints, glosses: bool) -> Questions:
    """Return the questions that show a synset's first word, with its definition if it has one."""
    fields = {"word": first_words(wordnet).take(pa.array(nodes)), **_senses(wordnet, nodes)}
    if not glosses:
        fields["gloss"] = pa.array([""] * nodes.size)
    return Questions.from_columns(nodes, fields, pos="pos", surface_form="word")


def _senses(wordnet: WordNet, nodes: Ints) -> dict[str, pa.Array]:
    return {
        "gloss": shown_glosses(wordnet).take(pa.array(nodes)),
        "pos": pa.array(POS_NAMES).take(pa.array(wordnet.pos_codes[nodes])),
    }


def nodes_of(wordnet: WordNet, general: Floats | None, glosses: bool = True) -> Nodes:
    """Return synsets as choices; without ``glosses`` the field ``gloss`` is empty."""
    lemmas = lemma_texts(wordnet)

    def fields(nodes: Ints, wanted: Collection[str]) -> Mapping[str, Sequence[Any]]:
        values: dict[str, Sequence[Any]] = {}
        if not {"lemma", "others", "lemmas"}.isdisjoint(wanted):
            counts = np.diff(wordnet.sense_start)[nodes]
            members = ragged_ranges(wordnet.sense_start[nodes], counts)
            names = pa.ListArray.from_arrays(
                np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
                lemmas.take(pa.array(members)),
            ).to_pylist()
            values["lemma"] = [some[0] for some in names]
            values["others"] = [some[1 : 1 + OTHER_LEMMAS_SHOWN] for some in names]
            values["lemmas"] = names
        if "pos" in wanted:
            values["pos"] = [POS_NAMES[code] for code in wordnet.pos_codes[nodes].tolist()]
        if "gloss" in wanted:
            shown = shown_glosses(wordnet).take(pa.array(nodes)).to_pylist()
            values["gloss"] = shown if glosses else [""] * nodes.size
        return {name: values[name] for name in wanted}

    def frequency(nodes: Ints) -> Floats:
        return zipf_of(wordnet, nodes)

    return Nodes(wordnet.synsets["name"].combine_chunks(), fields, general, frequency)


def zipf_of(wordnet: WordNet, nodes: Ints) -> Floats:
    """Return the word frequency (Zipf) of each node's first lemma.

    If none is known for the language, it is that of the English lemma.
    """
    if wordnet.structure is not wordnet and not has_frequencies(wordnet.language):
        wordnet = wordnet.structure
    return _zipf(wordnet)[nodes]


@derived
def _zipf(wordnet: WordNet) -> Floats:
    return zipf_frequencies(first_words(wordnet).to_pylist(), wordnet.language)


@derived
def has_name(wordnet: WordNet) -> Bools:
    """Return (synsets,) whether a noun is a name or contains one, i.e. has a capital letter."""
    capital = mask(pc.match_substring_regex(lemma_texts(wordnet), r"^\p{Lu}|\s\p{Lu}"))
    named = mask_at(len(wordnet), wordnet.sense_synset[capital])
    named[wordnet.edges("instance_hypernym")[0]] = True
    return np.asarray(named & (wordnet.pos_codes == POS.index("n")))


def vague_synsets(wordnet: WordNet) -> Ints:
    """Return the synsets in the word list of kinds that overlap with their neighbours."""
    return known_synsets(wordnet, sorted(word_list("vague_golds", __package__)))


def known_synsets(wordnet: WordNet, names: Sequence[str]) -> Ints:
    """Return the ids of the named synsets ("slang.n.02") that this WordNet has."""
    ids = wordnet.synset_ids(names)
    return ids[ids >= 0]
