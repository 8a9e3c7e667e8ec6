"""Measure what a model says of facts that changed between two snapshots.

Listed under: Commands to compare results.

Takes two builds of one probe, of an older and a newer snapshot of its knowledge base, in this
order. Where both ask the same question and have different right answers, the model chooses among
the old answer, the new one, and what is wrong in both. An answer in another spelling is the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evaluation.items.built import manifest_of_build, rows_of_build
from evaluation.results import intervals
from evaluation.results.words import interval, percent
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.own_questions import FIXED, dataset_of, question_row, scored_choices
from evaluation.studies.table import DataTable, Section, StudyTables, fields, summary_of
from kb_cache.tables.texts import stated_by
from kbprobe.errors import UsageError
from kbprobe.format.items import LABELS
from kbprobe.rng import RandomGenerator

OLD, NEW, WRONG = "old", "new", "wrong"
CHANGED, UNCHANGED = "changed", "unchanged"

MOST_UNCHANGED = 500
"""Maximum number of unchanged facts, drawn with the seed, which are asked for comparison."""

_COLUMNS = (
    *("question", "choices", "answer", "choice_nodes", "concept", "relation"),
    *("cluster", "setup", "template"),
)
_SOURCES = frozenset({"dump", "endpoint", "table", "wordnet", "conceptnet", "gcide", "refresh"})
"""Options that name where facts come from, or how they are fetched."""


class AnsweredQuestion(NamedTuple):
    """A question of a build that has one right answer.

    Attributes:
        row: the first of its rows.
        node: the node of the right answer.
        gold: its text.
        wrong: the texts of all wrong choices of its rows, by node.
    """

    row: Mapping[str, Any]
    node: str
    gold: str
    wrong: Mapping[str, str]


class SharedQuestions(NamedTuple):
    """The questions that both builds ask.

    Attributes:
        rows: a row for each, of changed facts and of unchanged ones.
        counts: how many questions are in one build alone, or have several right answers.
    """

    rows: tuple[Mapping[str, Any], ...]
    counts: Mapping[str, int]


def _expand(request: StudyRequest) -> list[RunSpec]:
    compared = _compared_in(request)
    if not any(row["distractor_family"] == CHANGED for row in compared.rows):
        told = _counted(compared.counts)
        raise UsageError(
            f"{' and '.join(request.named_probes())} have no question in common with another right "
            f"answer{f', and {told}' if told else ''}: name builds of two snapshots"
        )
    rows = dataset_of("snapshots", compared.rows)
    return [
        request.within_model(request.spec(rows, model, facts=False)) for model in request.models
    ]


def _compared_in(request: StudyRequest) -> SharedQuestions:
    """Return what the two builds that a request names both ask.

    Raises:
        UsageError: it does not name two, or the second is no build of the first's probe with its
            options.
    """
    probes = request.named_probes()
    if len(probes) != 2:
        raise UsageError(
            f"snapshots takes two builds of one probe, the older one first, and got {len(probes)}"
        )
    return compare_builds(probes[0], probes[1], request.defaults.run.seed)


def compare_builds(old: str, new: str, seed: int) -> SharedQuestions:
    """Return the questions that both builds ask, each with the answers of both.

    A right answer with the same node, or that states the same in another spelling, did not change.
    Relations of which a question has several right answers are left out: an answer that only one
    build asks for may be right in both.

    Raises:
        UsageError: they are no builds of one probe with the same options, or were built with
            ambiguous questions.
        KbprobeError: a file is damaged.
    """
    purpose = "snapshots compares facts by their nodes"
    manifests = [manifest_of_build(probe, purpose) for probe in (old, new)]
    first, second = (
        {"probe": one.probe, "seed": one.request.seed, **one.request.options} for one in manifests
    )
    differing = [
        name
        for name in sorted({*first} | {*second})
        if first.get(name) != second.get(name) and name not in _SOURCES
    ]
    if differing:
        raise UsageError(
            f"{old} and {new} were not built in the same way: they differ in "
            f"{', '.join(differing)}. Build both with the same options, of two snapshots"
        )
    if first.get("unambiguous") is False:
        raise UsageError(
            f"{old} and {new} ask for one of several valid answers, so that another answer is no "
            "change: build both with --unambiguous"
        )
    builds = [
        _questions(rows_of_build(probe, manifest, _COLUMNS))
        for probe, manifest in zip((old, new), manifests, strict=True)
    ]
    several = {place[1] for build in builds for place, own in build.items() if len(own) > 1}
    counts = {"only in the older": 0, "only in the newer": 0, "several right answers": 0}
    counts["only in the older"] = len(builds[0].keys() - builds[1].keys())
    counts["only in the newer"] = len(builds[1].keys() - builds[0].keys())
    rows: dict[str, list[Mapping[str, Any]]] = {CHANGED: [], UNCHANGED: []}
    for place in sorted(builds[0].keys() & builds[1].keys()):
        if place[1] in several:
            counts["several right answers"] += 1
            continue
        (before,), (after,) = (build[place].values() for build in builds)
        same = before.node == after.node or stated_by(before.gold) == stated_by(after.gold)
        kind = UNCHANGED if same else CHANGED
        rows[kind].append(_row(place, before, after, kind))
    numbers = RandomGenerator.of(seed, "snapshots").uniform(np.arange(len(rows[UNCHANGED])))
    drawn = np.sort(np.argsort(numbers)[:MOST_UNCHANGED])
    return SharedQuestions(
        (*rows[CHANGED], *(rows[UNCHANGED][at] for at in drawn.tolist())), counts
    )


Place = tuple[str, str]
"""Concept and relation of a question."""


def _questions(rows: Iterator[Mapping[str, Any]]) -> dict[Place, dict[str, AnsweredQuestion]]:
    """Return the right answers of each question, by node."""
    questions: dict[Place, dict[str, AnsweredQuestion]] = {}
    for row in rows:
        nodes, texts = row["choice_nodes"], row["choices"]["text"]
        node, gold = nodes[row["answer"]], texts[row["answer"]]
        wrong = {of or text: text for of, text in zip(nodes, texts, strict=True) if of != node}
        own = questions.setdefault((row["concept"], row["relation"]), {})
        known = own.get(node) or AnsweredQuestion(row, node, gold, {})
        own[node] = known._replace(wrong={**known.wrong, **wrong})
    return questions


def _row(
    place: Place, before: AnsweredQuestion, after: AnsweredQuestion, kind: str
) -> dict[str, Any]:
    """Return a row in the newer build's words.

    What was right before is not wrong, nor is what is right now, whatever it is called in the other
    build. Where nothing changed, the old name of the answer is not offered.
    """
    wrong: dict[object, str] = {}
    for node, text in {**after.wrong, **before.wrong, **after.wrong}.items():
        if node not in (before.node, after.node):
            wrong.setdefault(stated_by(text), text)
    for gold in (before.gold, after.gold):
        wrong.pop(stated_by(gold), None)
    kinds = dict.fromkeys([*wrong.values()][: len(LABELS) - 2], WRONG)
    kinds |= {before.gold: OLD} if kind == CHANGED else {}
    kinds[after.gold] = NEW
    return question_row(
        "/".join(place),
        after.row["question"],
        kinds,
        after.gold,
        setup=after.row["setup"],
        cluster=after.row["cluster"],
        concept=place[0],
        template=place[1],
        distractor_family=kind,
    )


_CHANGED = fields(
    {
        "relation": "The relation asked for; all: of all of them.",
        "facts": "Facts that changed.",
        "old": "Share in which the old answer has the best score.",
        "new": "Share in which the new answer has the best score.",
        "chance": "Either share for a choice at random.",
        "preferred": "Share in which the new answer has a better score than the old one; 50% is "
        "chance.",
    },
    {"old": "old answer", "new": "new answer", "preferred": "new preferred to old"},
)
_UNCHANGED = fields(
    {
        "relation": "The relation asked for; all: of all of them.",
        "facts": "Facts that did not change, or a sample of them.",
        "right": "Share in which the right answer has the best score.",
        "chance": "The same for a choice at random.",
    }
)


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    counts = _compared_in(request).counts
    sections = [_section(request.model_folder(run.asked.model), run, counts) for run in finished]
    return summary_of("snapshots", "Facts that changed", sections, "models")


def _section(model: str, run: Finished, counts: Mapping[str, int]) -> Section:
    names = ("template", "distractor_family", "choice_families")
    asked = [_ScoredRow(*scored) for scored in scored_choices(run, names)]
    seed = run.results.seed
    tables = []
    for kind, columns, measure in (
        (CHANGED, _CHANGED, _changed),
        (UNCHANGED, _UNCHANGED, _unchanged),
    ):
        own = [one for one in asked if one.row["distractor_family"] == kind]
        parts = {
            name: [one for one in own if name in (one.row["template"], "all")]
            for name in (*Counter(one.row["template"] for one in own), "all")
        }
        records = [measure(name, some, seed) for name, some in parts.items() if some]
        tables.append(DataTable(kind, records, columns, f"Facts that are {kind}"))
    shown = [table.shown(table.overview) for table in tables if table.records]
    notes = [f"Not compared: {told}."] if (told := _counted(counts)) else []
    return Section({"model": model}, tables, shown, [*_sentences(*tables)], notes)


class _ScoredRow(NamedTuple):
    """A scored row: its relation and kinds of choices, their scores, and its cluster."""

    row: Mapping[str, Any]
    scores: Sequence[float]
    cluster: int

    @property
    def best(self) -> str:
        """The kind of the choice with the best score."""
        kind: str = self.row["choice_families"][int(np.argmax(self.scores))]
        return kind

    def score(self, kind: str) -> float:
        """The best score of the choices of a kind."""
        kinds = self.row["choice_families"]
        return max(score for score, own in zip(self.scores, kinds, strict=True) if own == kind)


def _changed(name: str, asked: Sequence[_ScoredRow], seed: int) -> dict[str, Any]:
    clusters = np.array([one.cluster for one in asked])
    shares = {
        kind: intervals.accuracy(np.array([one.best == kind for one in asked]), clusters, seed)
        for kind in (OLD, NEW)
    }
    newer = np.array([one.score(NEW) > one.score(OLD) for one in asked])
    return {
        "relation": name,
        "facts": len(asked),
        **shares,
        "chance": _chance(asked),
        "preferred": intervals.accuracy(newer, clusters, seed),
    }


def _unchanged(name: str, asked: Sequence[_ScoredRow], seed: int) -> dict[str, Any]:
    clusters = np.array([one.cluster for one in asked])
    right = np.array([one.best == NEW for one in asked])
    return {
        "relation": name,
        "facts": len(asked),
        "right": intervals.accuracy(right, clusters, seed),
        "chance": _chance(asked),
    }


def _chance(asked: Sequence[_ScoredRow]) -> float:
    return float(np.mean([1 / len(one.scores) for one in asked]))


def _counted(counts: Mapping[str, int]) -> str:
    """Say how many questions are not compared, and why."""
    return ", ".join(
        f"{_many(number, 'question')} {_WHY[name]}" for name, number in counts.items() if number
    )


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


_WHY = {
    "only in the older": "that only the older build asks",
    "only in the newer": "that only the newer build asks",
    "several right answers": "of relations with several right answers",
}


def _sentences(changed: DataTable[Any], unchanged: DataTable[Any]) -> Iterator[str]:
    for overall in changed.records[-1:]:
        old, new, preferred = (overall[name] for name in ("old", "new", "preferred"))
        yield (
            f"Of {_many(overall['facts'], 'fact')} that changed, the old answer is chosen in "
            f"{percent(old.value)} ({interval(old)}), the new one in {percent(new.value)} "
            f"({interval(new)}); chance is {percent(overall['chance'])}."
        )
        yield (
            f"The new answer is preferred to the old one in {percent(preferred.value)} "
            f"({interval(preferred)}); chance is 50%."
        )
    for overall in unchanged.records[-1:]:
        right = overall["right"]
        yield (
            f"Of {_many(overall['facts'], 'fact')} that did not change, {percent(right.value)} "
            f"({interval(right)}) are right; chance is {percent(overall['chance'])}."
        )


SNAPSHOTS = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    fixed=FIXED,
)
"""The study."""
