"""Always-Never: how often does a statement hold, from never to always?

After Talmor, Elazar, Goldberg & Berant, "oLMpics" (TACL 2020, section 4.2): statements of six
template families, which people label. The builder makes the candidates; with their labels,
``--labels``, it makes the probe.
See docs/probes/always_never.md, and docs/methods.md for the differences.

The model completes the statement without its adverb ("Lions eat [MASK]."). Of its top completions,
only words of the slot's kind are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from builders.always_never.candidates import draw, pool
from builders.always_never.options import FAMILIES, SCALE, AlwaysNeverOptions
from builders.always_never.slots import PACKAGE, Slots, StatementPool
from builders.engine.drops import DropLog
from builders.engine.plan import Facts, Nodes, Plan, Questions, text_keys
from builders.engine.probe import probe
from builders.engine.rows import RowArrays, named_clusters, plan_rows
from builders.engine.splits import IN_OTHER_ORDER, assign_splits, in_other_order_later
from builders.engine.strategies import FixedScale
from builders.labels.rows import answered, decide_rows, unlabelled
from builders.labels.verdicts import NONE, balanced, files_digest, readings
from builders.lexicons import ConceptNetFirst, conceptnet_first
from kb_cache.conceptnet.types import ConceptNet
from kb_cache.wordnet.types import WordNet
from kbprobe.arrays import Bools, Ints
from kbprobe.checkpoints import FILES, reading
from kbprobe.errors import UsageError, require
from kbprobe.format.setups import CLOZE, MASK, NO_LANGUAGE, PERTURBED, SPLITS
from kbprobe.rng import RandomGenerator

NAME = "always_never"

PROPOSALS = 20
"""Completions of a masked LM that are considered for each subject."""

MAX_MAJORITY = 0.26
"""Maximum share of an answer among the rows of a family and split that have answers."""

CALIBRATION = (
    "On 60 published rows, mixed in unmarked in both rounds of readings, their majority gave "
    "people's answer in 68% and 70%, and one at most a step from it in 97%; they may have been "
    "trained on these."
)
"""Agreement of the readings with people's votes, for the card."""


@dataclass(frozen=True, eq=False)
class LabelledSources(ConceptNetFirst):
    """The knowledge bases, and the sha256 of the label files."""

    labels: str

    @property
    def digest(self) -> str:
        """The digests of the knowledge bases and of the label files."""
        return f"{super().digest}+{self.labels}"


def open_sources(options: AlwaysNeverOptions) -> ConceptNetFirst:
    """Load the knowledge bases that the options name.

    Raises:
        UsageError: a file of labels or a knowledge base does not exist.
    """
    loaded = conceptnet_first(options.conceptnet, options.wordnet)
    if not options.labels:
        return loaded
    return LabelledSources(loaded.conceptnet, loaded.wordnet, files_digest(options.labels))


@lru_cache(maxsize=2)
def _slots(conceptnet: ConceptNet, wordnet: WordNet, min_zipf: float, screen: bool) -> Slots:
    return Slots(conceptnet, wordnet, min_zipf, screen)


@probe(
    NAME,
    options=AlwaysNeverOptions,
    open=open_sources,
    question_fields=("family", "subject", "object", "subject_plural", "object_plural"),
    choice_fields=("word",),
    setup=CLOZE,
    controls=(NO_LANGUAGE, PERTURBED),
    paper="olmpics",
)
def always_never(
    sources: ConceptNetFirst, options: AlwaysNeverOptions, rng: RandomGenerator
) -> Plan:
    """Do cats never, rarely, sometimes, often or always drink coffee?"""
    slots = _slots(sources.conceptnet, sources.wordnet, options.min_zipf, options.screen)
    found, read = _read(slots, options), readings(NAME, PACKAGE)
    if not found:
        found, read = [_pairs(slots, name, options, rng) for name in options.families], NONE
    dropped = DropLog()
    for words, one, _ in found if not read.votes else ():
        dropped[f"{words.name}: too few words for as many candidates"] = (
            options.per_family - one.size
        )
    plan = _candidates(slots, found, options, dropped, rng)
    if not options.labels and not read.votes:
        return plan
    decided = decide_rows(
        plan,
        NAME,
        sources.name,
        SCALE,
        options,
        read=read,
        calibration=CALIBRATION,
        balance=lambda rows, answer: _balanced(plan, rows, answer, options, rng),
        remedy=_remedy(options),
    )
    return answered(plan, decided, "voted" if options.labels else "read")


Pairs = tuple[StatementPool, Ints, Ints]


def _read(slots: Slots, options: AlwaysNeverOptions) -> list[Pairs]:
    """Return the pairs judged by readers whose words are in the knowledge base."""
    if not options.readings or options.labels or options.proposer:
        return []
    found = []
    for name in options.families:
        words = pool(slots, name)
        subject, object_ = (
            {text: at for at, text in enumerate(some.text)}
            for some in (words.subjects, words.objects)
        )
        pairs = [
            (subject[one], object_[other])
            for family, one, other in readings(NAME, PACKAGE).votes
            if family == name and one in subject and other in object_
        ][: options.per_family]
        if pairs:
            ones, others = np.array(sorted(pairs), dtype=np.int64).T
            found.append((words, ones, others))
    return found


def _pairs(slots: Slots, name: str, options: AlwaysNeverOptions, rng: RandomGenerator) -> Pairs:
    """Choose a family's pairs."""
    found = pool(slots, name)
    if options.proposer:
        found = propose(found, options.proposer, PROPOSALS)
    return found, *draw(found, slots, options.per_family, rng.child("candidates", name))


def _candidates(
    slots: Slots,
    found: Sequence[Pairs],
    options: AlwaysNeverOptions,
    dropped: DropLog,
    rng: RandomGenerator,
) -> Plan:
    """Lay the pairs out as rows without answers.

    Raises:
        UsageError: there are none.
    """
    pairs = [
        (pool, one, other)
        for pool, ones, others in found
        for one, other in zip(ones.tolist(), others.tolist(), strict=True)
    ]
    dropped.require(len(pairs), what=f"{NAME}: no candidate is left under these options")
    names = [pool.name for pool, _, _ in pairs]
    subjects = [pool.subjects.text[one] for pool, one, _ in pairs]
    objects = [pool.objects.text[other] for pool, _, other in pairs]
    fields = {
        "family": names,
        "subject": [pool.subjects.shown[one] for pool, one, _ in pairs],
        "object": [pool.objects.shown[other] for pool, _, other in pairs],
        "subject_plural": [pool.subjects.plural[one] for pool, one, _ in pairs],
        "object_plural": [pool.objects.plural[other] for pool, _, other in pairs],
    }
    plan = plan_rows(
        RowArrays(
            nodes=np.tile(np.arange(len(SCALE), dtype=np.int64), (len(pairs), 1)),
            split=assign_splits(text_keys(subjects), options.split_shares, rng.child("splits")),
            family=np.array([1 + FAMILIES.index(name) for name in names], dtype=np.int64),
            concept=(concept := named_clusters(subjects)).codes,
            hops=0,
        ),
        questions=Questions.from_columns(text_keys(names, subjects, objects), fields),
        choices=Nodes.from_columns(SCALE, field="word"),
        families=FAMILIES,
        relation="unlabelled",
        concepts=concept.values,
        facts=Facts.from_triples(pool.edges(slots, one, other) for pool, one, other in pairs),
        order=FixedScale(),
        answers=unlabelled(len(pairs), NAME),
        dropped=dropped,
    )
    # What is larger than another thing is told by the pair in the other order, in either family.
    compared = np.array([not pool.family.sources for pool, _, _ in pairs])
    one, other = named_clusters([*subjects, *objects]).codes.reshape(2, -1)[:, compared]
    told = np.zeros(len(plan), dtype=np.bool_)
    told[compared] = in_other_order_later(one, other, plan.split[compared])
    return plan.keep(IN_OTHER_ORDER, ~told)


def _remedy(options: AlwaysNeverOptions) -> str:
    return f"Loosen --min-agreement ({options.min_agreement:g}) or --min-votes."


def _balanced(
    plan: Plan, rows: Ints, answer: Ints, options: AlwaysNeverOptions, rng: RandomGenerator
) -> Bools:
    """Mark the rows to keep such that no answer is right too often in a family and split."""
    cell = plan.family.codes[rows] * len(SPLITS) + plan.split[rows]
    key = plan.question_keys[rows]
    return balanced(cell, answer, len(SCALE), MAX_MAJORITY, rng.child("balance"), key)


BATCH = 64


def propose(pool: StatementPool, model: str, top_k: int) -> StatementPool:
    """Restrict a family's pairs to those that a masked LM proposes.

    Args:
        pool: all pairs.
        model: a masked LM (folder or Hub id) that transformers loads.
        top_k: number of completions considered for each subject; each is a single token.

    Raises:
        MissingDependencyError: transformers or torch are not installed.
        UsageError: the model cannot be loaded, or has no mask.
    """
    tokenizer, network = _load(model)
    objects = pool.objects
    place: dict[str, int] = {}
    for at, forms in enumerate(zip(objects.text, objects.shown, strict=True)):
        for form in forms:
            place.setdefault(form, at)
    proposed = np.zeros((pool.subjects.size, objects.size), dtype=np.bool_)
    mask = tokenizer.mask_token
    prompts = [
        _sentence(pool.family.prompt.format(shown)).replace(MASK, mask)
        for shown in pool.subjects.shown
    ]
    for start in range(0, len(prompts), BATCH):
        best = _completions(tokenizer, network, prompts[start : start + BATCH], top_k)
        for row, tokens in enumerate(best.tolist(), start):
            for token in tokens:
                word = tokenizer.decode([token]).strip().lower()
                if word in place:
                    proposed[row, place[word]] = True
    return replace(pool, proposed=proposed)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _load(model: str) -> tuple[Any, Any]:
    for package in ("torch", "transformers"):
        require(package, "eval", "asking a masked LM for objects (--proposer)")
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    with reading(f"--proposer {model}: no masked LM can be loaded", Path(model), FILES, UsageError):
        tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
        network = AutoModelForMaskedLM.from_pretrained(model, trust_remote_code=False)
    if tokenizer.mask_token_id is None:
        raise UsageError(f"--proposer {model}: its tokenizer has no mask token; name a masked LM")
    return tokenizer, network.eval()


def _completions(tokenizer: Any, network: Any, prompts: Sequence[str], top_k: int) -> Ints:
    """Return the ids of the most likely tokens at each prompt's mask: (prompts, top_k)."""
    import torch

    batch = tokenizer(list(prompts), return_tensors="pt", padding=True)
    with torch.inference_mode():
        logits = network(**batch).logits
    row, column = torch.nonzero(batch["input_ids"] == tokenizer.mask_token_id, as_tuple=True)
    scores = logits[row, column].float()
    # Ties are broken by id, so that the result is the same on all machines.
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices
    return np.asarray(order[:, :top_k].numpy(), dtype=np.int64)
