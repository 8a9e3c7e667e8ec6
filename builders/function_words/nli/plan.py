"""Plans of the NLI probes: rows without answers, and rows labelled by people or a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from builders.engine.drops import DropLog
from builders.engine.labels import NONE, Readings
from builders.engine.plan import Facts, Flags, Nodes, Plan, Questions, text_keys
from builders.engine.rows import named_clusters, plan_rows
from builders.engine.splits import assign_folds
from builders.engine.strategies import FixedScale, FromAnnotators
from builders.function_words.labelled import Decided, decide_rows
from builders.function_words.nli.negation import FLAGS
from builders.function_words.nli.options import NliOptions
from builders.function_words.nli.pairs import TextPair
from builders.function_words.nli.sources import Origin
from kb_cache.corpora.types import TextCorpus
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError
from kbprobe.format.setups import NLI, SETUPS
from kbprobe.rng import RandomGenerator

ANSWERS = SETUPS[NLI].labels
QUESTION_FIELDS = ("premise", "hypothesis", "change", "old", "new")

CANDIDATES = (
    "Nobody has labelled these rows yet: they are candidates (answer -1). "
    "`release-probe annotate` makes sheets for annotators, and `build-probe {name} --labels FILE` "
    "the probe."
)
VOTED = "Votes of annotators: the answer of a row is what most of them said."
CALIBRATION = (
    "On the 89 published comparatives with people's votes, mixed in unmarked, their majority is "
    "people's in 92% (one person's vote: 85%); they may have been trained on these."
)
"""Agreement of the readings with people's votes, for the card."""

SILVER = "silver:"
"""Prefix of the rule in labels files made by a model, followed by the model's name."""


class Row(NamedTuple):
    """A pair of texts and its origin."""

    origin: Origin
    pair: TextPair


def candidates_plan(
    probe: str,
    rows: Sequence[Row],
    corpus: TextCorpus,
    kinds: Sequence[str],
    options: NliOptions,
    dropped: DropLog,
    rng: RandomGenerator,
) -> Plan:
    """Make a plan of pairs as rows without answers.

    Documents are not divided between splits; a cluster contains all rows made from one sentence or
    pair; and the family of a row is the kind of change.
    """
    premises = [row.pair.premise for row in rows]
    hypotheses = [row.pair.hypothesis for row in rows]
    documents = [row.origin.document for row in rows]
    clusters = [row.origin.cluster for row in rows]
    fields = {
        "premise": premises,
        "hypothesis": hypotheses,
        "change": [row.pair.kind for row in rows],
        "old": [row.pair.old for row in rows],
        "new": [row.pair.new for row in rows],
    }
    concept = named_clusters(documents)
    return plan_rows(
        questions=Questions.from_columns(
            text_keys(premises, hypotheses), fields, premise="premise", hypothesis="hypothesis"
        ),
        choices=Nodes.from_columns(ANSWERS, field="text"),
        nodes=np.tile(np.arange(len(ANSWERS), dtype=np.int64), (len(rows), 1)),
        split=_splits(documents, options.split_shares, rng.child("splits")),
        families=kinds,
        family=np.array([1 + kinds.index(row.pair.kind) for row in rows], dtype=np.int64),
        relation="unlabelled",
        concept=concept.codes,
        concepts=concept.values,
        cluster=named_clusters(clusters),
        facts=Facts.from_triples(
            [
                (row.origin.document, "contains", row.pair.premise),
                (row.pair.old, row.pair.kind, row.pair.new),
            ]
            for row in rows
        ),
        hops=0,
        order=FixedScale(),
        answers=FromAnnotators(
            np.zeros(len(rows), dtype=np.bool_),
            {"source": CANDIDATES.format(name=probe)},
        ),
        fold=assign_folds(text_keys(clusters), rng.child("folds")),
        flags=_flags([row.pair for row in rows]),
        dropped=+dropped,
    )


def _flags(pairs: Sequence[TextPair]) -> Flags:
    """Return the flags of each pair."""
    flags = Flags.none(len(pairs))
    for name in FLAGS:
        flags = flags.mark(name, np.array([name in pair.flags for pair in pairs], dtype=np.bool_))
    return flags


def _splits(
    documents: Sequence[str], shares: tuple[float, float, float], rng: RandomGenerator
) -> Ints:
    """Return the split of each row: the split of its document or premise.

    Documents are assigned in random order, first to validation until it has its share of the rows:
    some documents have many rows, so that independent draws would miss the shares by far. Documents
    larger than this share do not go to validation.
    """
    train, validation, test = shares
    names, row = np.unique(documents, return_inverse=True)
    size = np.bincount(row)
    order = np.argsort(rng.uniform(text_keys(names.tolist())), kind="stable")
    split = np.full(names.size, -1, dtype=np.int64)
    small = order[size[order] <= validation * row.size]
    split[small[np.cumsum(size[small]) - size[small] < validation * row.size]] = 1
    rest = order[split[order] < 0]
    middle = np.cumsum(size[rest]) - size[rest] / 2
    edge = train / ((train + test) or 1) * size[rest].sum()
    split[rest] = np.where(middle < edge, 0, 2)
    return split[row]


def labelled_plan(
    plan: Plan, probe: str, knowledge: str, options: NliOptions, read: Readings = NONE
) -> Plan:
    """Give rows the answers of ``options.labels`` or of readings, and drop the others.

    Raises:
        UsageError: a file is faulty, labels of people and of a model are mixed, or no row is left.
    """
    source = VOTED if options.labels else read.source(CALIBRATION)
    decided = decide_rows(plan, probe, knowledge, ANSWERS, options, source, read=read)
    kind, about = _about(decided, options) if options.labels else ("read", decided.about)
    taken = plan.take(decided.rows)
    order = np.argsort(taken.nodes != decided.answer[:, None], axis=1, kind="stable")
    return replace(
        taken,
        nodes=np.take_along_axis(taken.nodes, order, axis=1),
        provenance=replace(taken.provenance, relation=kind),
        answers=FromAnnotators(
            np.ones(decided.rows.size, dtype=np.bool_), about, decided.lines, natural=True
        ),
        dropped={**plan.dropped, **decided.dropped},
    )


def _about(decided: Decided, options: NliOptions) -> tuple[str, dict[str, Any]]:
    """Return how labelled rows are described: the relation's name and the card's text."""
    rules = {str(line["rule"]) for line in decided.lines}
    models = sorted(rule.removeprefix(SILVER) for rule in rules if rule.startswith(SILVER))
    if not models:
        return "voted", dict(decided.about)
    if len(models) < len(rules):
        raise UsageError(
            f"--labels {', '.join(options.labels)}: labels of people and silver labels "
            f"({', '.join(models)}) are not mixed; build a probe of each"
        )
    source = (
        f"Silver labels, given by a model and not by people: {', '.join(models)}. They are no gold "
        "standard, and no measure of the model that gave them."
    )
    return "silver", {
        "source": source,
        "annotator_kind": "silver",
        "labels": int(decided.rows.size),
    }
