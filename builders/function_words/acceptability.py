"""Plans of acceptability probes: each sentence unchanged and changed, and both as a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from builders.engine.plan import Facts, Nodes, Plan, Questions, text_keys
from builders.engine.probe import Variant
from builders.engine.rows import RowArrays, named_clusters, plan_rows
from builders.engine.splits import assign_folds
from builders.engine.strategies import FromAnnotators, Scattered
from builders.function_words.options import AcceptabilityOptions
from builders.function_words.pairs import ChosenSwaps, SwapCandidates
from builders.labels.rows import answered, decide_rows
from kb_cache.corpora.types import TextCorpus
from kbprobe.arrays import Ints, mask_at
from kbprobe.audit.rows import first_units
from kbprobe.format.setups import ACCEPTABILITY, CLOZE, MASK, QUESTION, SETUPS
from kbprobe.rng import RandomGenerator

ANSWERS = SETUPS[ACCEPTABILITY].labels
QUESTION_FIELDS = ("form", "text", "word", "window")

CHANGED = "changed word"
"""The only family: the other sentence of a pair differs only in the changed words."""

INTENDED = {
    "source": "Intended labels: a sentence as it stands in the corpus is taken to be acceptable, "
    "a changed one not. No people have looked at them yet: `release-probe annotate` makes sheets "
    "for annotators, and `--labels FILE` the probe of the rows on which most agree.",
    "kind": "intended",
}
VOTED = (
    "Intended labels that annotators confirmed: rows stay for which most of the votes say what the "
    "row was made for."
)

MINIMAL_PAIRS = {
    "minimal_pairs": Variant(
        "The sentence and its changed form as the two choices: which is better?", setup=QUESTION
    ),
}
CLOZES = {
    **MINIMAL_PAIRS,
    "cloze": Variant(
        "The sentence with a mask for a word that was changed: the word, or what replaced it?",
        setup=CLOZE,
    ),
}


def acceptability_plan(
    probe: str,
    chosen: ChosenSwaps,
    corpus: TextCorpus,
    options: AcceptabilityOptions,
    rng: RandomGenerator,
) -> Plan:
    """Make rows of pairs, originals first; each pair is a cluster.

    Variants ask the question of the original, so that they have its ids.

    Raises:
        UsageError: files of labels (``options.labels``) are faulty, or leave no rows.
    """
    chosen = _cut(chosen, options, rng)
    pairs, count = chosen.candidates, len(chosen.candidates)
    line = np.tile(np.arange(count, dtype=np.int64), 2)
    documents = [corpus.document_ids[at] for at in chosen.document.tolist()]
    cluster = _named(documents, pairs.sentence, corpus)
    key = text_keys(documents, pairs.original, pairs.changed)
    keys = rng.child("originals").bits(key), rng.child("changed").bits(key)
    key = np.concatenate(keys).view(np.int64) >> 1
    columns = {
        "text": [*pairs.original, *pairs.changed],
        "word": [*pairs.words[0], *pairs.words[1]],
        "window": [*pairs.windows[0], *pairs.windows[1]],
    }
    acceptable = np.repeat([1, 0], count)
    facts = Facts.from_triples(
        [[(name, "contains", text)] for name, text in zip(documents, pairs.original, strict=True)]
    )
    concept, clusters = named_clusters(documents), named_clusters(cluster)
    fold = assign_folds(text_keys(cluster), rng.child("folds"))

    def of_pairs(lines: Ints) -> dict[str, Any]:
        """Return the arguments of `plan_rows` that are the same for all rows of a pair."""
        return {
            "families": (CHANGED,),
            "relation": pa.array(pairs.frame, pa.string()),
            "facts": facts,
            "concepts": concept.values,
            "cluster": clusters.take(lines),
            "flags": pairs.flags.take(lines),
            "fold": fold[lines],
        }

    def rows_of(nodes: Ints, lines: Ints) -> RowArrays:
        return RowArrays(
            nodes=nodes,
            split=chosen.split[lines],
            concept=concept.codes[lines],
            fact=lines,
            hops=0,
        )

    plan = plan_rows(
        rows_of(np.stack([acceptable, 1 - acceptable], axis=1).astype(np.int64), line),
        questions=Questions.from_columns(key, {"form": "sentence", **columns}),
        choices=Nodes.from_columns(ANSWERS, field="text"),
        order=Scattered(),
        answers=FromAnnotators(np.ones(2 * count, dtype=np.bool_), INTENDED),
        dropped=chosen.dropped,
        **of_pairs(line),
    )
    both = np.ones(count, dtype=np.bool_)
    if options.labels:
        decided = decide_rows(
            plan, probe, corpus.name, ANSWERS, options, voted=VOTED, intended=plan.nodes[:, 0]
        )
        both = np.asarray(mask_at(len(plan), decided.rows).reshape(2, -1).all(axis=0))
        plan = answered(plan, decided)
    variants = {}
    for name, form, places, texts, choices in _variants(pairs, np.flatnonzero(both).tolist()):
        if not places:
            continue
        lines = np.array(places, dtype=np.int64)
        shown = pa.array(choices).dictionary_encode()
        # Here the changed word is the answer.
        fields = {"form": form, "text": texts, "word": "", "window": ""}
        variants[name] = plan_rows(
            rows_of(shown.indices.to_numpy().astype(np.int64).reshape(-1, 2), lines),
            questions=Questions.from_columns(key[lines], fields),
            choices=Nodes.from_columns(
                shown.dictionary, field="text", key=text_keys(shown.dictionary.to_pylist())
            ),
            **of_pairs(lines),
        )
    return replace(plan, variants=variants)


def _cut(chosen: ChosenSwaps, options: AcceptabilityOptions, rng: RandomGenerator) -> ChosenSwaps:
    """Limit the pairs to --max-pairs, at random."""
    pairs = chosen.candidates
    if not options.max_pairs or len(pairs) <= options.max_pairs:
        return chosen
    key = text_keys(pairs.original)
    kept = first_units(key, options.max_pairs, rng.child("max pairs"))
    chosen.dropped.keep("pairs: beyond --max-pairs", kept)
    return replace(
        chosen,
        candidates=pairs.take(kept),
        document=chosen.document[kept],
        split=chosen.split[kept],
    )


def _named(documents: Sequence[str], sentences: Ints, corpus: TextCorpus) -> list[str]:
    """Name pairs by document and number of the sentence in it, from 1."""
    first = np.searchsorted(corpus.sentence_document, corpus.sentence_document[sentences])
    numbers = (sentences - first + 1).tolist()
    return [f"{name}, sentence {number}" for name, number in zip(documents, numbers, strict=True)]


Asked = tuple[str, str, list[int], list[str], list[str]]
"""A variant's name, its form in the template, its pairs, the text of each question, and the choices
of all of them, each with the gold first."""


def _variants(pairs: SwapCandidates, places: list[int]) -> Iterator[Asked]:
    sentences = [text for at in places for text in (pairs.original[at], pairs.changed[at])]
    yield "minimal_pairs", "pair", places, [""] * len(places), sentences
    clozes = {at: cloze for at in places if (cloze := pairs.cloze[at]) is not None}
    words = [word for _, *both in clozes.values() for word in both]
    yield "cloze", "cloze", list(clozes), [text for text, *_ in clozes.values()], words


def masked(text: str, start: int, end: int) -> str:
    """Replace a range of characters by the mask.

    >>> masked("Who cares?", 0, 3)
    '[MASK] cares?'
    """
    return f"{text[:start]}{MASK}{text[end:]}"
