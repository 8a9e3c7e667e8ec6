"""DictionaryQA: which definition of a dictionary fits a word in its usage or quotation?

A probe over GCIDE after Richardson & Sabharwal, "What Does My QA Model Know?" (TACL 2020,
section 3).
See docs/probes/dictionary_wordsense.md, and docs/methods.md for the differences.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.dictionary.options import WordSenseOptions
from builders.engine.draw.families import NEVER_DRAWN, Family, Truth
from builders.engine.draw.likeness import ComparedTexts
from builders.engine.drops import DropLog
from builders.engine.options import RANDOM
from builders.engine.plan import Facts, Nodes, Plan, Questions
from builders.engine.probe import probe
from builders.engine.rows import Asking, NodePools, QuestionSet, draw_plan
from builders.engine.splits import assign_splits, connected_components
from builders.english.contexts import kinds_of_context, without_full_stop
from builders.english.kin import holds_kin, shares_a_word
from builders.english.screen import OFFENSIVE, offensive_texts
from kb_cache.derived import derived
from kb_cache.frequency import FUNCTION_WORDS, zipf_frequencies
from kb_cache.gcide.load import load_gcide
from kb_cache.gcide.types import POS, Gcide
from kbprobe.arrays import Bools, Floats, Ints, lines_of, sorted_unique
from kbprobe.columns import mask, single_chunk, to_numpy
from kbprobe.format.setups import NO_LANGUAGE, PERTURBED
from kbprobe.rng import RandomGenerator

COMMON_CLAUSE = 64
"""Clauses shared by more definitions than this ("esp", "hence") say nothing about meaning."""

STEM = 5
"""Number of letters by which words are compared."""

_LABELS = re.compile(
    r"^(?:(?:Hence|Fig|Figuratively|Specifically|Specif|Especially|Esp|Also)\b[.:,;\s]+)+"
)
_LEFT_HANGING = re.compile(
    r"(?<=[.:,;])\s*(?:[Hh]ence|[Ff]ig|[Ss]pecif(?:ically)?|[Aa]lso)[.:,;\s]*$"
)
_NOTE = re.compile(
    r"[;,.]\s*(?:(?:also|chiefly|commonly|formerly|generally|now|often|rarely|sometimes|usually|"
    r"when) )*(?:(?:used|followed) \w|with (?:a|from|in|into|of|on|out|to|up|upon|against|at|away|"
    r"off|the|for)\b)[^;.]{0,50}\.?$",
    re.IGNORECASE,
)
"""A note on usage after a definition ("followed by up")."""

_WORD = re.compile(r"[^\W_]+")
_CLAUSE_ENDS = re.compile(r"[;:.,()]")
_LEADING = re.compile(r"^(?:(?:also|hence|or|and|esp|especially|the|an?|to)\s+)+")
_FUNCTION_WORDS = frozenset(FUNCTION_WORDS.split())


def shown_definition(definition: str) -> str:
    """Return a definition as a choice: without links to the previous sense, and without notes.

    >>> shown_definition("Hence, a descendant; an heir. Hence:")
    'A descendant; an heir.'
    >>> shown_definition("To look for; to search; usually followed by up.")
    'To look for; to search.'
    """
    bare = _LEFT_HANGING.sub("", _LABELS.sub("", definition)).rstrip(" ,:;") or definition
    while (shorter := _NOTE.sub("", bare).rstrip(" ,:;")) != bare and shorter:
        bare = shorter + "." * (not shorter.endswith((".", "!", "?")))
    return bare[:1].upper() + bare[1:]


def normalised(text: str) -> str:
    """Return a text in lower case, without punctuation and runs of spaces."""
    return " ".join(_WORD.findall(text.lower()))


def clauses(definition: str) -> set[str]:
    """Return the clauses of a definition, without the small words that they begin with."""
    parts = _CLAUSE_ENDS.split(definition.lower())
    return {bare for part in parts if (bare := _LEADING.sub("", " ".join(_WORD.findall(part))))}


def content_words(definition: str) -> set[str]:
    """Return a definition's content words, cut to their stems."""
    words = _WORD.findall(definition.lower())
    return {word[:STEM] for word in words if len(word) > 2 and word not in _FUNCTION_WORDS}


def alike_pairs(senses: Ints, definitions: Sequence[str], word: Ints, size: int) -> Ints:
    """Find senses that may not be in one row, since both might be right or both are wrong.

    These are senses whose definitions are equal or share a clause ("to adorn"), and senses of one
    word whose definitions share a content word. Readers accepted such another sense of the word as
    right in 18 of 100 pairs, and one without a shared word in 6 (``builders/judged``).

    Args:
        senses: the senses that may be shown.
        definitions: the definition of each sense.
        word: the headword of each sense.
        size: number of senses in the dictionary.

    Returns:
        Sorted keys ``sense * size + other``, both ways.
    """
    by_clause: dict[str, list[int]] = defaultdict(list)
    by_text: dict[str, list[int]] = defaultdict(list)
    by_word: dict[int, list[int]] = defaultdict(list)
    for at, definition in enumerate(definitions):
        by_text[normalised(definition)].append(at)
        by_word[int(word[at])].append(at)
        for clause in clauses(definition):
            by_clause[clause].append(at)
    shared = [some for some in by_clause.values() if len(some) <= COMMON_CLAUSE]
    pairs = [pair for some in (*shared, *by_text.values()) for pair in combinations(some, 2)]
    for some in by_word.values():
        words = {at: content_words(definitions[at]) for at in some}
        pairs += [(one, other) for one, other in combinations(some, 2) if words[one] & words[other]]
    if not pairs:
        return np.empty(0, dtype=np.int64)
    one, other = senses[np.array(pairs, dtype=np.int64)].T
    return sorted_unique(np.concatenate([one * size + other, other * size + one]))


SAME_WORD = "same_word"

PARTS = 8
"""Number of parts of each split that share no choices."""

REFERS_ELSEWHERE = r"\bSee\b|\bCf\.|\b[Ss]enses? \d|\bNo\. \d|\bNos\. |\bDef\. |\bthe Vocabulary\b"
"""Definitions that refer to another entry of the dictionary."""

LONGEST = 240
"""Maximum length of a definition, and of a context, in characters."""

SHORTEST_REST = 6
"""Minimum number of characters of a context besides the word: two short words and spaces."""


class InContext(NamedTuple):
    """Questions without distractors yet: parallel arrays with one row for each context."""

    context: Ints
    sense: Ints


def open_gcide(options: WordSenseOptions) -> Gcide:
    """Load the GCIDE that the options name."""
    return load_gcide(options.gcide or None)


@probe(
    "dictionary_wordsense",
    options=WordSenseOptions,
    open=open_gcide,
    question_fields=("sentence", "kind", "word", "headword", "pos"),
    choice_fields=("definition", "headword", "pos"),
    controls=(NO_LANGUAGE, PERTURBED),
    paper="wordnetqa",
    quick={"pos": ("verb",)},
)
def dictionary_wordsense(gcide: Gcide, options: WordSenseOptions, rng: RandomGenerator) -> Plan:
    """Which definition of a dictionary fits a word in its usage or quotation?"""
    dropped = DropLog()
    asked = _asked_about(gcide, options, rng, dropped)
    dropped.require(asked.sense.size)
    senses, fact = np.unique(asked.sense, return_inverse=True)
    definitions = _shown_definitions(gcide).take(pa.array(senses)).to_pylist()
    word = gcide.word_ids.astype(np.int64)
    alike = alike_pairs(senses, definitions, word[senses], len(gcide))
    component = _components(definitions, word[senses])
    split = assign_splits(component, options.split_shares, rng.shared("splits"))
    part = np.zeros(len(gcide), dtype=np.int64)
    part[senses] = rng.shared("parts").below(PARTS, component)
    # Choices are senses that are asked about, of one split, and of one part of speech.
    kinds = np.full(len(gcide), NEVER_DRAWN)
    kinds[senses] = split + (0 if options.other_pos else 3 * gcide.pos_codes[senses])
    line = np.arange(fact.size, dtype=np.int64)

    def families(asking: Asking) -> Iterator[Family]:
        key, own = np.zeros_like(asking.gold), word[asking.gold]
        yield Family(SAME_WORD, 0, key, kin=own, by_row=True)
        yield Family(RANDOM, 0, key, unit=own)

    questions = _questions(gcide, asked)

    def compared(asking: Asking) -> ComparedTexts:
        rows, question = np.unique(asking.question, return_inverse=True)
        gold, choice = np.unique(asking.gold, return_inverse=True)
        texts = questions.fields["sentence"].take(pa.array(rows)).to_pylist()
        shown = _shown_definitions(gcide).take(pa.array(gold)).to_pylist()
        return ComparedTexts(texts, shown, question, choice)

    asking = Asking(line, fact, asked.sense, asked.sense, np.zeros_like(line))
    reads = to_numpy(_shown_definitions(gcide).dictionary_encode().indices).astype(np.int64)
    return draw_plan(
        QuestionSet(asking, questions, _facts(gcide, senses), "definition", split[fact]),
        NodePools(_nodes(gcide), kinds, reads, part),
        Truth(len(gcide), np.empty(0, dtype=np.int64), alike),
        families,
        options,
        rng,
        dropped,
        compared=compared,
    )


def _asked_about(
    gcide: Gcide, options: WordSenseOptions, rng: RandomGenerator, dropped: DropLog
) -> InContext:
    """Choose the contexts to ask about; count those dropped, by reason."""
    contexts = gcide.contexts
    wanted = mask(pc.is_in(contexts["kind"].cast(pa.string()), pa.array(options.contexts)))
    rows = np.flatnonzero(gcide.located & wanted)
    asking = InContext(rows, to_numpy(contexts["sense"])[rows].astype(np.int64))
    of_pos = np.isin(gcide.pos_codes, [POS.index(name) for name in options.pos])
    asking = lines_of(asking, of_pos[asking.sense])

    definitions = _shown_definitions(gcide)
    definition = definitions.take(pa.array(asking.sense))
    elsewhere = mask(pc.match_substring_regex(definition, REFERS_ELSEWHERE))
    long = mask(pc.greater(pc.utf8_length(definition), LONGEST))
    length, start, end = (
        to_numpy(column).astype(np.int64)[asking.context]
        for column in (pc.utf8_length(contexts["text"]), contexts["start"], contexts["end"])
    )
    bare = (length - (end - start) < SHORTEST_REST) | (length > LONGEST)
    tests = {
        "the definition sends the reader elsewhere": elsewhere,
        "the definition is too long": long,
        "the context is the word alone, or too long": bare,
    }
    asking = lines_of(asking, dropped.sift(tests))
    if options.screen:
        shown = pc.binary_join_element_wise(
            _headwords(gcide, asking.sense),
            definitions.take(pa.array(asking.sense)),
            single_chunk(contexts["text"]).take(pa.array(asking.context)),
            "; ",
        )
        asking = lines_of(asking, dropped.drop(OFFENSIVE, offensive_texts(shown)))

    if options.stem_overlap == "drop":
        by_word, by_context = _given_away(gcide, asking, definitions)
        tests = {
            "the definition holds the word asked about": by_word,
            "the definition shares a word with the context": by_context,
        }
        asking = lines_of(asking, dropped.sift(tests))
    return asking


def _given_away(gcide: Gcide, asking: InContext, definitions: pa.Array) -> tuple[Bools, Bools]:
    """Mark golds that contain the word asked about or a related word, and those with context words.

    Random distractors would not contain them, so these golds are given away.
    """
    context = single_chunk(gcide.contexts["text"]).take(pa.array(asking.context))
    senses, sense = np.unique(asking.sense, return_inverse=True)
    shown = definitions.take(pa.array(senses))
    line = np.arange(sense.size, dtype=np.int64)
    by_word = holds_kin(_headwords(gcide, asking.sense), line, shown, sense)
    by_word |= holds_kin(_surface_forms(gcide, asking.context), line, shown, sense)
    return by_word, shares_a_word(context, line, shown, sense)


def _headwords(gcide: Gcide, senses: Ints) -> pa.Array:
    return single_chunk(gcide.words["word"]).take(pa.array(gcide.word_ids[senses]))


def _surface_forms(gcide: Gcide, context: Ints) -> pa.Array:
    rows = gcide.contexts.select(["text", "start", "end"]).take(pa.array(context))
    spans = zip(*(rows[name].to_pylist() for name in ("text", "start", "end")), strict=True)
    return pa.array([text[start:end] for text, start, end in spans], pa.string())


def _components(definitions: Sequence[str], word: Ints) -> Ints:
    """Return a label for each sense, shared by all senses of its word.

    Words with a common definition get the same label, since neither a word nor a definition may be
    in two splits.
    """
    by_text: dict[str, list[int]] = defaultdict(list)
    for definition, one in zip(definitions, word.tolist(), strict=True):
        by_text[normalised(definition)].append(one)
    label = connected_components(by_text.values())
    return np.array([label[number] for number in word.tolist()], dtype=np.int64)


@derived
def _shown_definitions(gcide: Gcide) -> pa.Array:
    """Return every sense's definition as shown in choices."""
    texts = single_chunk(gcide.senses["definition"]).to_pylist()
    return pa.array([shown_definition(text) for text in texts], pa.string())


def sense_names(gcide: Gcide) -> pa.Array:
    """Return the public name of every sense: word, entry and number ("dab.1.2")."""
    word = single_chunk(gcide.words["word"]).take(pa.array(gcide.word_ids))
    place = (single_chunk(gcide.senses[name]).cast(pa.string()) for name in ("entry", "number"))
    return pc.binary_join_element_wise(word, *place, ".")


def _questions(gcide: Gcide, asking: InContext) -> Questions:
    sentence = single_chunk(gcide.contexts["text"]).take(pa.array(asking.context))
    kind = kinds_of_context(sentence)
    sentence = without_full_stop(sentence)
    surface = _surface_forms(gcide, asking.context)
    headword = _headwords(gcide, asking.sense)
    pos = pa.array(list(POS)).take(pa.array(gcide.pos_codes[asking.sense]))
    fields = {"sentence": sentence, "kind": kind, "word": surface, "headword": headword, "pos": pos}
    return Questions.from_columns(
        asking.context, fields, context="sentence", surface_form="word", pos="pos"
    )


def _nodes(gcide: Gcide) -> Nodes:
    """Return senses as choices."""
    headword = single_chunk(gcide.words["word"]).take(pa.array(gcide.word_ids))

    def frequency(nodes: Ints) -> Floats:
        return zipf_frequencies(headword.take(pa.array(nodes)).to_pylist())

    columns = {
        "definition": _shown_definitions(gcide),
        "headword": headword,
        "pos": pa.array(list(POS)).take(pa.array(gcide.pos_codes)),
    }
    return Nodes.from_columns(sense_names(gcide), columns, frequency=frequency)


def _facts(gcide: Gcide, senses: Ints) -> Facts:
    """Return one triple for each sense, which states its definition."""
    terms = pa.concat_arrays([sense_names(gcide), single_chunk(gcide.senses["definition"])])
    return Facts.from_codes(senses, 0, len(gcide) + senses, terms, ("definition",))
