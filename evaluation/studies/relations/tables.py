"""The tables of the study of relations, computed from the scores of all choices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from evaluation.items.built import manifest_of_build
from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.analyses.consistency import PairKind, measure_pairs
from evaluation.results.types import Estimate
from evaluation.results.words import interval, percent
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.own_questions import scored_choices
from evaluation.studies.relations.questions import (
    INVERSE,
    AskedWord,
    People,
    Relata,
    read_people,
    read_relata,
)
from evaluation.studies.table import DataTable, Section, StudyTables, fields, summary_of
from kbprobe import document as doc
from kbprobe.errors import UsageError

FEWEST = 30
"""Minimum number of words for a sentence on two relations."""

BOTH_BY_CHANCE = 0.25
"""Share of pairs of which a choice at random prefers each where its own relation is asked for."""


@dataclass
class RelationQuestion:
    """What a model makes of the choices that were offered for one relation of a word.

    Attributes:
        word, pos, node, relation: what is asked about.
        golds: the score of each word that is right.
        others: of each that is related in another way: score and relation.
    """

    word: str
    pos: str
    node: str
    relation: str
    golds: dict[str, float] = field(default_factory=dict)
    others: dict[str, tuple[float, str]] = field(default_factory=dict)

    @property
    def best_other(self) -> float:
        """The best score of a wrong choice."""
        return max(score for score, _ in self.others.values())

    @property
    def accepted(self) -> list[str]:
        """The right choices that have a better score than every wrong one."""
        return [word for word, score in self.golds.items() if score > self.best_other]


Place = tuple[str, str, str]
"""Word, part of speech and relation."""


def questions_of(run: Finished) -> dict[Place, RelationQuestion]:
    """Return the questions of a run; rows about one relation of a word are one question."""
    questions: dict[Place, RelationQuestion] = {}
    for row, scores, _ in scored_choices(run, _ROW):
        place = row["surface_form"], row["pos"], row["template"]
        own = questions.setdefault(place, RelationQuestion(*place[:2], row["concept"], place[2]))
        for text, kind, score in zip(row["choices"], row["choice_families"], scores, strict=True):
            if kind == "gold":
                own.golds[text] = score
            else:
                own.others[text] = score, kind
    return questions


_ROW = ("surface_form", "pos", "template", "concept", "choices", "choice_families")


class HitCount(NamedTuple):
    """Hits and tries on a question; both are doubled where a tie counts as half a hit."""

    node: str
    hits: int
    tries: int


def _estimate(shares: Iterable[HitCount], seed: int) -> Estimate | None:
    """Estimate a share of all tries, by node; None without any."""
    kept = [share for share in shares if share.tries]
    if not kept:
        return None
    hits, tries = (np.array([getattr(one, name) for one in kept]) for name in ("hits", "tries"))
    _, node = np.unique([share.node for share in kept], return_inverse=True)
    return intervals.repeated_share(hits, tries, node, seed)


def _pairs(question: RelationQuestion, other: str | None = None) -> HitCount:
    """Count the pairs of a right and a wrong choice in which the right one has the better score."""
    pairs = [
        (score, wrong)
        for score in question.golds.values()
        for wrong, relation in question.others.values()
        if other in (None, relation)
    ]
    hits = sum(2 * (score > wrong) + (score == wrong) for score, wrong in pairs)
    return HitCount(question.node, hits, 2 * len(pairs))


_RELATIONS = fields(
    {
        "relation": "The relation asked for.",
        "questions": "Words asked about.",
        "answers": "Right answers over all questions.",
        "soundness": "Share of questions whose best choice is a right answer.",
        "chance": "The same for a choice at random.",
        "completeness": "Share of the right answers that are preferred to every wrong choice.",
        "told_apart": "Distinguishability: share of the pairs of a right and a wrong choice in "
        "which the right one has the better score; ties count half, and 50% is chance.",
        "both": "Share of the pairs of words, related to one word in two ways, of which each is "
        "preferred where its own relation is asked for. A preference for one of the words gives "
        "0%, chance 25%.",
    },
    {"told_apart": "told apart", "both": "in both questions"},
)

_AGAINST = fields(
    {
        "asked": "The relation asked for.",
        "other": "The relation of the wrong choice.",
        "words": "Words asked about that have both.",
        "preferred": "Share of pairs in which the right choice has the better score; ties count "
        "half.",
        "both": "Share of the pairs of which each is preferred where its own relation is asked "
        "for. A preference for one of the words gives 0%, chance 25%.",
    },
    {"both": "in both questions"},
)

_SYMMETRY = fields(
    {
        "relation": "A relation that holds in both directions.",
        **{
            name: str(PairKind.model_fields[name].description)
            for name in ("pairs", "both", "independent", "gain")
        },
    },
    {"both": "both accepted", "independent": "if unrelated"},
    show={"gain": cells.points},
)

_ASYMMETRY = fields(
    {
        "relation": "A relation that holds in one direction.",
        "pairs": "Pairs of words asked about in both directions.",
        "accepted": "Share in which the right direction is accepted: preferred to every wrong "
        "choice.",
        "asymmetry": "Of these, the share in which the other direction is rejected: a right answer "
        "has the better score there.",
        "rejected": "That share over all pairs, accepted or not.",
    },
    {"rejected": "rejected in all"},
)

_PEOPLE = fields(
    {
        "relation": "The relation asked for; all: of all of them.",
        "questions": "Words with several answers that two people or more gave.",
        "prototypicality": "Share of the pairs of answers, one named more often than the other, "
        "that the model orders as people do; ties count half, and 50% is chance.",
        "first": "Share of questions in which the model prefers what people name most often.",
        "chance": "The same for a choice at random.",
        "named": "Share of the right answers of the probes that somebody named, of words that "
        "people were asked about.",
    },
    {"first": "same first choice", "named": "probes’ answers named"},
)


def summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Summarise the runs of each model."""
    sections = []
    reference = None
    if request.options.people is not None:
        relata = read_relata(request.named_probes())
        reference = Reference(read_people(request.options.people), relata)
    clean = _clean_builds(request)
    for model, runs in group_by(finished, lambda run: run.asked.model).items():
        section = _section(model, runs[0], clean)
        if reference is not None:
            section = _with_people(section, runs[1], reference)
        sections.append(section)
    return summary_of("relations", "Relations told apart", sections, "models")


def _clean_builds(request: StudyRequest) -> list[str]:
    """Return the names of the probes that were built without doubtful questions."""
    manifests = [manifest_of_build(probe, "relations reads it") for probe in request.named_probes()]
    options = {one.request.probe: one.request.options for one in manifests}
    return [name for name, given in options.items() if given.get("tier") == "clean"]


def _section(model: str, run: Finished, clean: Sequence[str]) -> Section:
    seed, questions = run.results.seed, questions_of(run)
    if not questions:
        raise UsageError(f"{run.folder}: no question was scored, so there is nothing to measure")
    asked = [name for name in INVERSE if any(one.relation == name for one in questions.values())]
    relations = [_relation(name, questions, seed) for name in (*asked, "all")]
    against = [
        record
        for first, second in combinations(asked, 2)
        for record in _against(questions, first, second, seed)
    ]
    tables = [
        DataTable("relations", relations, _RELATIONS, "Relations"),
        DataTable("against", against, _AGAINST),
        DataTable("symmetry", _symmetry(questions, seed), _SYMMETRY),
        DataTable("asymmetry", _asymmetry(questions, seed), _ASYMMETRY),
    ]
    captions = (
        "Answers by the relation asked for",
        "Pairs of words related to the same word",
        "Relations that hold in both directions",
        "Relations that hold in one direction",
    )
    parts: list[Any] = [
        table.shown(caption)
        for table, caption in zip(tables, captions, strict=True)
        if table.records and table.name != "against"
    ]
    numbers = {(one["asked"], one["other"]): one["preferred"] for one in against}
    caption = (
        "Share of pairs in which what is asked for (row) is preferred to what is related in "
        "another way (column). Chance is 50%."
    )
    parts.insert(1, doc.HeatMap.of_pairs(caption, "asked / other", asked, numbers))
    parts.insert(2, tables[1].shown(captions[1], names=2, fold="Each two relations"))
    notes = [*_few(relations, clean), *_absent(asked)]
    return Section({"model": model}, tables, parts, [*_sentences(tables)], notes)


def _few(relations: Sequence[Mapping[str, Any]], clean: Sequence[str]) -> list[str]:
    """Warn of relations that few words are asked about; ``clean``: probes with a larger tier."""
    few = {one["relation"]: n for one in relations if (n := one["questions"]) < FEWEST}
    if not few:
        return []
    wanted = {name for relation in few for name in (relation, INVERSE.get(relation, relation))}
    larger = [probe for probe in clean if any(relation in probe for relation in wanted)]
    more = f", or build {', '.join(larger)} with --tier full" if larger else ""
    counted = ", ".join(f"{relation} ({n})" for relation, n in few.items())
    return [f"Few words are asked about for {counted}: look at the intervals{more}."]


def _absent(asked: Sequence[str]) -> list[str]:
    """Name the relations that are not asked for."""
    absent = [relation for relation in INVERSE if relation not in asked]
    return [
        f"Not asked for: {', '.join(absent)}. No word that is asked about has one and another "
        "relation in the rows of the probes."
    ] * bool(absent)


def _relation(name: str, questions: Mapping[Place, RelationQuestion], seed: int) -> dict[str, Any]:
    own = [one for one in questions.values() if name in (one.relation, "all")]
    sound = [HitCount(one.node, max(one.golds.values()) > one.best_other, 1) for one in own]
    complete = [HitCount(one.node, len(one.accepted), len(one.golds)) for one in own]
    shares = [len(one.golds) / (len(one.golds) + len(one.others)) for one in own]
    both = (
        _both(one, questions[one.word, one.pos, other])
        for one in own
        for other in INVERSE
        if other != one.relation and (one.word, one.pos, other) in questions
    )
    return {
        "relation": name,
        "questions": len(own),
        "answers": sum(len(one.golds) for one in own),
        "soundness": _estimate(sound, seed),
        "chance": float(np.mean(shares)),
        "completeness": _estimate(complete, seed),
        "told_apart": _estimate(map(_pairs, own), seed),
        "both": _estimate(both, seed),
    }


def _against(
    questions: Mapping[Place, RelationQuestion], first: str, second: str, seed: int
) -> Iterator[dict[str, Any]]:
    """Compare two relations, in words that have both; yield a record for either asked."""
    words = [
        (own, other)
        for (word, pos, relation), own in questions.items()
        if relation == first and (other := questions.get((word, pos, second))) is not None
    ]
    both = _estimate((_both(own, other) for own, other in words), seed)
    for place, (asked, against) in enumerate(((first, second), (second, first))):
        preferred = _estimate((_pairs(pair[place], against) for pair in words), seed)
        if preferred is not None:
            yield {
                "asked": asked,
                "other": against,
                "words": len(words),
                "preferred": preferred,
                "both": both,
            }


def _both(first: RelationQuestion, second: RelationQuestion) -> HitCount:
    """Count the pairs of which each is preferred where its own relation is asked for."""
    pairs = [
        score > first.others[other][0] and other_score > second.others[word][0]
        for word, score in first.golds.items()
        for other, other_score in second.golds.items()
        if other in first.others and word in second.others
    ]
    return HitCount(first.node, sum(pairs), len(pairs))


def _symmetry(questions: Mapping[Place, RelationQuestion], seed: int) -> list[dict[str, Any]]:
    """Count the pairs of words that are accepted in both directions."""
    records = []
    for relation in (name for name, inverse in INVERSE.items() if name == inverse):
        pairs = [
            (own.node, gold in own.accepted, own.word in other.accepted)
            for own, gold, other in _directions(questions, relation)
            if own.word < gold and own.word in other.golds
        ]
        if pairs:
            nodes, first, second = zip(*pairs, strict=True)
            _, node = np.unique(nodes, return_inverse=True)
            measured = measure_pairs("symmetry", np.array(first), np.array(second), node, seed)
            records.append({"relation": relation, **dict(measured)})
    return records


def _asymmetry(questions: Mapping[Place, RelationQuestion], seed: int) -> list[dict[str, Any]]:
    """Count the pairs of words of which the wrong direction is rejected."""
    records = []
    for relation in (name for name, inverse in INVERSE.items() if name != inverse):
        pairs = [
            (own.node, gold in own.accepted, max(other.golds.values()) > other.others[own.word][0])
            for own, gold, other in _directions(questions, relation)
            if other.others.get(own.word, ("", ""))[1] == INVERSE[relation]
        ]
        if pairs:
            records.append(
                {
                    "relation": relation,
                    "pairs": len(pairs),
                    "accepted": _estimate((HitCount(node, yes, 1) for node, yes, _ in pairs), seed),
                    "asymmetry": _estimate(
                        (HitCount(node, no, yes) for node, yes, no in pairs), seed
                    ),
                    "rejected": _estimate((HitCount(node, no, 1) for node, _, no in pairs), seed),
                }
            )
    return records


def _directions(
    questions: Mapping[Place, RelationQuestion], relation: str
) -> Iterator[tuple[RelationQuestion, str, RelationQuestion]]:
    """Yield each right answer of a question, with the question that asks the same of it."""
    for own in questions.values():
        for gold in own.golds if own.relation == relation else ():
            if (other := questions.get((gold, own.pos, relation))) is not None:
                yield own, gold, other


class Reference(NamedTuple):
    """What people named, and what the rows of the probes state."""

    named: People
    relata: Mapping[AskedWord, Relata]


def _with_people(section: Section, run: Finished, reference: Reference) -> Section:
    """Add to a section how the model's preferences compare with people's."""
    table = DataTable("people", _people(run, reference, run.results.seed), _PEOPLE)
    *_, overall = table.records
    sentence = (
        "Of two answers that people name differently often, the model orders "
        f"{_shown(overall['prototypicality'])} as people do (chance 50%)."
    )
    return replace(
        section,
        tables=[*section.tables, table],
        parts=[*section.parts, table.shown("What people answer")],
        sentences=[*section.sentences, sentence],
    )


def _people(run: Finished, reference: Reference, seed: int) -> list[dict[str, Any]]:
    """Compare a model's preferences with how often people named each answer."""
    named = reference.named
    rows = [
        (row["concept"], row["template"], dict(zip(row["choices"], scores, strict=True)))
        for row, scores, _ in scored_choices(run, _ROW)
    ]
    stated = [
        (asked.word, relation, word)
        for asked, relata in reference.relata.items()
        for relation, words in relata.items()
        for word in words
        if (asked.word.casefold(), relation) in named
    ]
    records = []
    for name in (*INVERSE, "all"):
        own = [row for row in rows if name in (row[1], "all")]
        golds = [one for one in stated if name in (one[1], "all")]
        if own:
            firsts = [
                HitCount(
                    word, max(scores, key=scores.__getitem__) in _most(named[word, relation]), 1
                )
                for word, relation, scores in own
            ]
            pairs = (
                _ordered(word, named[word, relation], scores) for word, relation, scores in own
            )
            again = (
                HitCount(word, gold.casefold() in named[word.casefold(), relation], 1)
                for word, relation, gold in golds
            )
            records.append(
                {
                    "relation": name,
                    "questions": len(own),
                    "prototypicality": _estimate(pairs, seed),
                    "first": _estimate(firsts, seed),
                    "chance": float(
                        np.mean(
                            [
                                len(_most(named[w, r]) & {*scores}) / len(scores)
                                for w, r, scores in own
                            ]
                        )
                    ),
                    "named": _estimate(again, seed),
                }
            )
    return records


def _most(counts: Mapping[str, int]) -> set[str]:
    """Return the answers that people named most often."""
    most = max(counts.values())
    return {text for text, count in counts.items() if count == most}


def _ordered(word: str, counts: Mapping[str, int], scores: Mapping[str, float]) -> HitCount:
    """Count the pairs of answers that the scores order as people do."""
    pairs = [
        (scores[one], scores[other])
        for one in scores
        for other in scores
        if counts[one] > counts[other]
    ]
    hits = sum(2 * (more > less) + (more == less) for more, less in pairs)
    return HitCount(word, hits, 2 * len(pairs))


def _sentences(tables: Sequence[DataTable[Any]]) -> Iterator[str]:
    """Say what the numbers show; chance is named with each."""
    records = {table.name: table.records for table in tables}
    *_, overall = records["relations"]
    yield (
        f"The best choice is right in {_shown(overall['soundness'])} of the questions (chance "
        f"{percent(overall['chance'])}), and {_shown(overall['completeness'])} of the right "
        "answers are preferred to every wrong choice."
    )
    if overall["both"] is not None:
        yield (
            "Of two words related to one word in different ways, each is preferred where its own "
            f"relation is asked for in {_shown(overall['both'])} of the pairs (chance "
            f"{BOTH_BY_CHANCE:.0%}; a preference for one of the words gives 0%)."
        )
    # A record for either direction has the same number.
    both = {
        frozenset((one["asked"], one["other"])): one
        for one in records["against"]
        if one["words"] >= FEWEST
    }
    if len(both) > 1:
        worst = min(both.values(), key=lambda record: record["both"].value)
        if not worst["both"].low <= BOTH_BY_CHANCE <= worst["both"].high:
            yield (
                f"Of {len(both)} combinations of two relations, {worst['asked']} and "
                f"{worst['other']} are least told apart: each is preferred where it is asked for "
                f"in {_shown(worst['both'])} of their pairs (chance {BOTH_BY_CHANCE:.0%})."
            )
    for record in (one for one in records["symmetry"] if one["pairs"] >= FEWEST):
        yield (
            f"Both directions of a pair of {record['relation']}s are accepted in "
            f"{_shown(record['both'])} of the pairs, where {percent(record['independent'])} is "
            "expected of unrelated questions."
        )


def _shown(estimate: Estimate) -> str:
    return f"{percent(estimate.value)} ({interval(estimate)})"
