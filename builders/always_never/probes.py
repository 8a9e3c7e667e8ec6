"""Always-Never: how often does a statement hold, from never to always?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section 4.2): statements of six
template families, which people label. The builder makes the candidates; with their labels,
``--labels``, it makes the probe. Where ours differs, and why: docs/probes/always_never.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from builders.always_never.options import FAMILIES, AlwaysNeverOptions
from builders.engine.drops import DropLog
from builders.engine.plan import Facts, Nodes, Plan, Questions, text_keys
from builders.engine.probe import probe
from builders.engine.rows import plan_rows
from builders.engine.splits import assign_splits
from builders.engine.strategies import FixedScale, FromAnnotators
from kb_cache.base import Combined
from kb_cache.conceptnet.load import load_conceptnet
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.wordnet.load import load_wordnet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Ints
from kbprobe.errors import UsageError
from kbprobe.format.setups import CLOZE, NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

if TYPE_CHECKING:
    from builders.always_never.candidates import Pool
    from builders.always_never.labels import Verdict
    from builders.always_never.slots import Slots

NAME = "always_never"

CANDIDATES = {
    "source": "Nobody has labelled these rows yet: they are candidates (answer -1). "
    "`release-probe annotate` makes sheets for annotators, and `build-probe always_never --labels "
    "FILE` the probe.",
}
VOTED = "Votes of annotators: the answer of a row is what most of them said."
SILVER = (
    "Silver labels, given by nobody: they grade what ConceptNet says of each pair, and how many "
    "people stand behind it. They are no gold standard."
)


@dataclass(frozen=True, eq=False)
class Sources(Combined):
    """ConceptNet, the WordNet that tells kinds, and the votes, if any."""

    conceptnet: ConceptNet
    wordnet: WordNet
    labels: str = ""

    @property
    def sources(self) -> list[ConceptNet | WordNet]:
        """ConceptNet first."""
        return [self.conceptnet, self.wordnet]

    @property
    def digest(self) -> str:
        """The digests of the knowledge bases, and a sha256 of the files of labels."""
        return super().digest + (f"+{self.labels}" if self.labels else "")


@lru_cache(maxsize=2)
def _load(conceptnet: str, wordnet: str) -> Sources:
    return Sources(load_conceptnet(conceptnet), load_wordnet(wordnet))


def open_sources(options: AlwaysNeverOptions) -> Sources:
    """Load the knowledge bases that the options name, once for a process.

    Raises:
        UsageError: there is no such file of labels, or no such knowledge base.
    """
    import hashlib

    loaded = _load(options.conceptnet, options.wordnet)
    if not options.labels:
        return loaded
    digest = hashlib.sha256()
    for path in options.labels:
        try:
            digest.update(hashlib.sha256(Path(path).read_bytes()).digest())
        except OSError as error:
            raise UsageError(f"--labels {path}: {error.strerror}") from None
    return Sources(loaded.conceptnet, loaded.wordnet, digest.hexdigest())


@lru_cache(maxsize=2)
def _slots(conceptnet: ConceptNet, wordnet: WordNet, min_zipf: float) -> Slots:
    from builders.always_never.slots import Slots

    return Slots(conceptnet, wordnet, min_zipf)


@probe(
    NAME,
    options=AlwaysNeverOptions,
    open=open_sources,
    question_fields=("family", "subject", "object", "subject_plural", "object_plural"),
    choice_fields=("word",),
    setup=CLOZE,
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
    labelled=False,
)
def always_never(sources: Sources, options: AlwaysNeverOptions, rng: RandomGenerator) -> Plan:
    """Do cats never, rarely, sometimes, often or always drink coffee?"""
    slots = _slots(sources.conceptnet, sources.wordnet, options.min_zipf)
    found = [_pairs(slots, name, options, rng) for name in options.families]
    if not any(one.size for _, one, _ in found):
        raise UsageError(
            f"{NAME}: no candidate is left under these options (families "
            f"{', '.join(options.families)}). Loosen one of them."
        )
    log = DropLog()
    for pool, one, _ in found if not options.silver else ():
        log[f"{pool.name}: too few words for as many candidates"] = options.per_family - one.size
    plan = replace(_candidates(slots, found, options, rng), dropped=log)
    if options.silver:
        return _silver(plan, found, options, rng)
    return _voted(plan, sources, options, rng) if options.labels else plan


Pairs = tuple["Pool", Ints, Ints]


def _pairs(slots: Slots, name: str, options: AlwaysNeverOptions, rng: RandomGenerator) -> Pairs:
    """Choose a family's pairs."""
    from builders.always_never.candidates import all_said, draw, pool

    found = pool(slots, name)
    if options.silver:
        return found, *all_said(found)
    if options.proposer:
        from builders.always_never.proposer import propose

        found = propose(found, options.proposer, options.proposer_top_k)
    return found, *draw(found, options.per_family, rng.child("candidates", name))


def _candidates(
    slots: Slots, found: Sequence[Pairs], options: AlwaysNeverOptions, rng: RandomGenerator
) -> Plan:
    """Lay the pairs out as rows without answers."""
    from builders.always_never.labels import SCALE

    pairs = [
        (pool, one, other)
        for pool, ones, others in found
        for one, other in zip(ones.tolist(), others.tolist(), strict=True)
    ]
    rows = np.arange(len(pairs), dtype=np.int64)
    subjects = sorted({pool.subjects.text[one] for pool, one, _ in pairs})
    number = {text: at for at, text in enumerate(subjects)}
    concept = np.array([number[pool.subjects.text[one]] for pool, one, _ in pairs], dtype=np.int64)
    identity = text_keys(subjects)
    return plan_rows(
        questions=_questions(pairs),
        choices=Nodes.from_columns(SCALE, field="word"),
        nodes=np.tile(np.arange(len(SCALE), dtype=np.int64), (rows.size, 1)),
        split=assign_splits(identity[concept], options.split_shares, rng.child("splits")),
        families=FAMILIES,
        family=np.array([1 + FAMILIES.index(pool.name) for pool, _, _ in pairs], dtype=np.int64),
        relation="unlabelled",
        concept=concept,
        concepts=pa.array(subjects),
        facts=Facts.from_triples(pool.edges(slots, one, other) for pool, one, other in pairs),
        hops=0,
        order=FixedScale(),
        answers=FromAnnotators(np.zeros(rows.size, dtype=np.bool_), CANDIDATES),
    )


def _questions(pairs: Sequence[tuple[Pool, int, int]]) -> Questions:
    lines = [
        (
            pool.name,
            pool.subjects.shown[one],
            pool.objects.shown[other],
            pool.subjects.plural[one],
            pool.objects.plural[other],
        )
        for pool, one, other in pairs
    ]
    names = ("family", "subject", "object", "subject_plural", "object_plural")
    key = text_keys(
        *zip(
            *((p.name, p.subjects.text[one], p.objects.text[other]) for p, one, other in pairs),
            strict=True,
        )
    )
    fields = dict(zip(names, map(list, zip(*lines, strict=True)), strict=True))
    return Questions.from_columns(key, fields)


def _voted(plan: Plan, sources: Sources, options: AlwaysNeverOptions, rng: RandomGenerator) -> Plan:
    """Label the rows by the votes, and balance them."""
    from builders.always_never.labels import (
        BALANCE,
        agreed,
        annotator_names,
        read_verdicts,
    )
    from builders.engine.render.assemble import id_texts, row_identity, row_ids

    ids = id_texts(row_ids(plan, row_identity(NAME, sources.name))).to_pylist()
    verdicts = agreed(
        read_verdicts([Path(path) for path in options.labels], ids, options.min_votes),
        options.min_agreement,
    )
    place = {name: at for at, name in enumerate(ids)}
    kept = [verdict for verdict in verdicts if verdict.kept]
    rows = np.array([place[verdict.id] for verdict in kept], dtype=np.int64)
    answer = np.array([verdict.answer for verdict in kept], dtype=np.int64)
    stay = _balance(plan, rows, answer, options, rng)
    for at in np.flatnonzero(~stay).tolist():
        kept[at] = kept[at].left_out(BALANCE)
    final = {verdict.id: verdict for verdict in (*verdicts, *kept)}
    names = annotator_names(final.values())
    labelled = _answered(plan, rows[stay], answer[stay], "voted")
    reasons = [verdict.reason for verdict in final.values() if not verdict.kept]
    for reason in sorted(set(reasons)):
        labelled = labelled.with_dropped(f"labels: {reason}", reasons.count(reason))
    labelled = labelled.with_dropped("labels: candidates not judged", len(ids) - len(final))
    lines = [verdict.line(names) for verdict in sorted(final.values(), key=lambda v: v.id)]
    about = _about_votes([verdict for verdict in final.values() if verdict.kept], len(names))
    return _with_answers(labelled, options, about, lines)


def _about_votes(verdicts: Sequence[Verdict], annotators: int) -> dict[str, Any]:
    shares = [verdict.agreement for verdict in verdicts if verdict.agreement is not None]
    counts = [len(verdict.votes) for verdict in verdicts]
    about: dict[str, Any] = {"source": VOTED, "kind": "human", "labels": len(verdicts)}
    if shares:
        about["mean_agreement"] = round(float(np.mean(shares)), 4)
        about["unanimous"] = sum(share == 1 for share in shares)
    if annotators:
        about["annotators"] = annotators
        about["mean_votes"] = round(float(np.mean(counts)), 2) if counts else 0.0
    return about


def _silver(
    plan: Plan, found: Sequence[Pairs], options: AlwaysNeverOptions, rng: RandomGenerator
) -> Plan:
    """Label the rows by what ConceptNet says, and balance them."""
    from builders.always_never.silver import grades

    answer = np.concatenate([grades(pool, ones, others) for pool, ones, others in found])
    rows = np.arange(len(plan), dtype=np.int64)
    stay = _balance(plan, rows, answer, options, rng)
    labelled = _answered(plan, rows[stay], answer[stay], "silver")
    labelled = labelled.with_dropped("silver: left out to balance the answers", int((~stay).sum()))
    return _with_answers(labelled, options, {"source": SILVER, "kind": "silver"})


def _balance(
    plan: Plan, rows: Ints, answer: Ints, options: AlwaysNeverOptions, rng: RandomGenerator
) -> np.ndarray[Any, np.dtype[np.bool_]]:
    from builders.always_never.labels import balanced

    cell = plan.family.codes[rows] * len(SPLITS) + plan.split[rows]
    key = plan.question_keys[rows]
    return balanced(cell, answer, options.max_majority, rng.child("balance"), key)


def _answered(plan: Plan, rows: Ints, answer: Ints, kind: str) -> Plan:
    """Take some rows, with their answers in front of the other choices."""
    taken = plan.take(rows)
    order = np.argsort(taken.nodes != answer[:, None], axis=1, kind="stable")
    provenance = replace(taken.provenance, relation=kind)
    nodes = np.take_along_axis(taken.nodes, order, axis=1)
    return replace(taken, nodes=nodes, provenance=provenance)


def _with_answers(
    plan: Plan,
    options: AlwaysNeverOptions,
    about: Mapping[str, Any],
    lines: Sequence[Mapping[str, Any]] = (),
) -> Plan:
    DropLog(plan.dropped).require(
        len(plan),
        f"Loosen --min-agreement, --min-votes or --max-majority ({options.max_majority:g}).",
        f"{NAME}: no labelled row is left",
    )
    return replace(plan, answers=FromAnnotators(np.ones(len(plan), dtype=np.bool_), about, lines))
