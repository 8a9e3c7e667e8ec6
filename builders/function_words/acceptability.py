"""Plans of acceptability probes: each sentence unchanged and changed, and both as a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from builders.engine.plan import Facts, Nodes, Plan, Questions, text_keys
from builders.engine.probe import Variant
from builders.engine.rows import named_clusters, plan_rows
from builders.engine.splits import assign_folds
from builders.engine.strategies import FromAnnotators, Scattered
from builders.function_words.labelled import decide_rows
from builders.function_words.options import AcceptabilityOptions
from builders.function_words.pairs import Chosen
from kb_cache.corpora.types import TextCorpus
from kbprobe.arrays import Bools, Ints
from kbprobe.audit import first_units
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
    chosen: Chosen,
    corpus: TextCorpus,
    options: AcceptabilityOptions,
    rng: RandomGenerator,
) -> Plan:
    """Make rows of pairs, originals first; each pair is a cluster.

    Variants ask the question of the original, so that they have its ids.

    Raises:
        UsageError: files of labels (``options.labels``) are faulty, or leave no rows.
    """
    chosen = _cut(chosen, corpus, options, rng)
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
    concept = named_clusters(documents)
    fold = assign_folds(text_keys(cluster), rng.child("folds"))
    clusters = named_clusters(cluster)
    shared = {
        "families": (CHANGED,),
        "relation": pa.array(pairs.frame, pa.string()),
        "facts": facts,
        "concepts": concept.values,
        "hops": 0,
    }
    plan = plan_rows(
        questions=Questions.from_columns(key, {"form": "sentence", **columns}),
        choices=Nodes.from_columns(ANSWERS, field="text"),
        nodes=np.stack([acceptable, 1 - acceptable], axis=1).astype(np.int64),
        split=chosen.split[line],
        fact=line,
        concept=concept.codes[line],
        cluster=clusters.take(line),
        order=Scattered(),
        answers=FromAnnotators(np.ones(2 * count, dtype=np.bool_), INTENDED),
        flags=pairs.flags.take(line),
        fold=fold[line],
        dropped=chosen.dropped,
        **shared,
    )
    both = np.ones(count, dtype=np.bool_)
    if options.labels:
        plan, both = _confirmed(plan, probe, corpus, options)
    variants = {}
    for name, (lines, texts, choices) in _variants(chosen).items():
        lines, texts, choices = _some(both[lines], lines, texts, choices)
        if not lines.size:
            continue
        shown = pa.array(choices).dictionary_encode()
        nodes = shown.indices.to_numpy().astype(np.int64).reshape(-1, 2)
        form = "pair" if name == "minimal_pairs" else name
        # Here the changed word is the answer.
        fields = {"form": form, "text": texts, "word": "", "window": ""}
        variants[name] = plan_rows(
            questions=Questions.from_columns(key[lines], fields),
            choices=Nodes.from_columns(shown.dictionary, field="text", key=_keys(shown.dictionary)),
            nodes=nodes,
            split=chosen.split[lines],
            fact=lines,
            concept=concept.codes[lines],
            cluster=clusters.take(lines),
            flags=pairs.flags.take(lines),
            fold=fold[lines],
            **shared,
        )
    return replace(plan, variants=variants)


def _keys(texts: pa.Array) -> Ints:
    return text_keys(texts.to_pylist())


def _cut(
    chosen: Chosen, corpus: TextCorpus, options: AcceptabilityOptions, rng: RandomGenerator
) -> Chosen:
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


Asked = tuple[Ints, Sequence[str], Sequence[str]]
"""The pairs of a variant, the text of each question, and its choices, the gold first."""


def _variants(chosen: Chosen) -> Mapping[str, Asked]:
    pairs = chosen.candidates
    every = np.arange(len(pairs), dtype=np.int64)
    sentences = [text for both in zip(pairs.original, pairs.changed, strict=True) for text in both]
    masked = [(at, cloze) for at, cloze in enumerate(pairs.cloze) if cloze is not None]
    clozes = np.array([at for at, _ in masked], dtype=np.int64)
    words = [word for _, (_, *both) in masked for word in both]
    return {
        "minimal_pairs": (every, [""] * every.size, sentences),
        "cloze": (clozes, [cloze[0] for _, cloze in masked], words),
    }


def _some(kept: Bools, lines: Ints, texts: Sequence[str], choices: Sequence[str]) -> Asked:
    places = np.flatnonzero(kept).tolist()
    both = [choice for at in places for choice in choices[2 * at : 2 * at + 2]]
    return lines[kept], [texts[at] for at in places], both


def _confirmed(
    plan: Plan, probe: str, corpus: TextCorpus, options: AcceptabilityOptions
) -> tuple[Plan, Bools]:
    """Keep the rows whose label people confirmed; mark the pairs of which both rows are kept."""
    decided = decide_rows(
        plan, probe, corpus.name, ANSWERS, options, VOTED, intended=plan.nodes[:, 0]
    )
    kept = np.zeros(len(plan), dtype=np.bool_)
    kept[decided.rows] = True
    labelled = FromAnnotators(np.ones(decided.rows.size, np.bool_), decided.about, decided.lines)
    taken = replace(
        plan.take(decided.rows),
        answers=labelled,
        dropped={**plan.dropped, **decided.dropped},
    )
    return taken, np.asarray(kept.reshape(2, -1).all(axis=0))


def masked(text: str, start: int, end: int) -> str:
    """Replace a range of characters by the mask.

    >>> masked("Who cares?", 0, 3)
    '[MASK] cares?'
    """
    return f"{text[:start]}{MASK}{text[end:]}"
