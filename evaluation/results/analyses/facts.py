"""Accuracy on questions that rest on several facts, compared with the single facts.

A fact counts as known if it is answered right, which may also be a guess: every share is reported
with the result of guessing, and :attr:`Composition.known` is corrected for it (docs/results.md).
The numbers are computed in :mod:`evaluation.results.analyses.composition`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from evaluation.results.analyses.base import Analysis, ResultFiles
from evaluation.results.examples import drawn_from, questions_of
from evaluation.results.parts import SMALL, shares
from evaluation.results.types import Estimate, Model, Results
from evaluation.results.words import interval, percent
from kbprobe.document import Basis, Heading, Part, Table, Text

if TYPE_CHECKING:
    import pyarrow as pa

NAME = "facts"
COLUMNS = {"fact_ids": "list<string>", "facts_right": "int32"}
"""Additional columns of the predictions if rows rest on facts that were asked as well."""

EXAMPLES = 3
LISTED = 200
"""Maximum number of relations or families listed; all are in ``results.json``."""


class KnownPart(Model):
    """The rows of which all, some or none of the facts are answered right."""

    rows: int = Field(description="How many rows there are.")
    accuracy: Estimate | None = Field(
        description="Share of these rows answered right; null where there are none."
    )


class Composition(Model):
    """Rows that rest on facts, by how many of their facts are answered right."""

    name: str = Field(description="What the rows share: a number of hops, a relation, a family.")
    rows: int = Field(description="Scored rows with all their facts asked and scored.")
    accuracy: Estimate = Field(description="Share of these rows answered right.")
    chance: float = Field(description="Mean of one over the number of the rows' choices.")
    all_facts: KnownPart = Field(description="Rows with all of their facts right.")
    some_facts: KnownPart = Field(description="Rows with a fact right and a fact wrong.")
    no_facts: KnownPart = Field(description="Rows with all of their facts wrong.")
    all_facts_share: Estimate = Field(description="Share of rows with all of their facts right.")
    all_facts_independent: float = Field(
        description="The same, were a row's facts right independently of each other: the product "
        "of the accuracies of first facts, second facts, and so on."
    )
    all_facts_chance: float = Field(
        description="The same, were every fact guessed: mean product of one over the choices."
    )
    fails: Estimate = Field(
        description="Share of rows with all of their facts right that are wrong themselves."
    )
    fails_independent: float = Field(
        description="The same, were facts and row right independently of each other: "
        "all_facts_independent by one less accuracy."
    )
    fails_chance: float = Field(description="The same, were facts and row guessed.")
    right_without: Estimate = Field(
        description="Share of rows that are right though a fact is wrong: guessed, or by a "
        "shortcut."
    )
    known: Estimate | None = Field(
        description="Share of rows with all of their facts known, corrected for guessing (see "
        "below); null with fewer than 30 clusters, or where all rows have the same outcome."
    )
    known_fails: Estimate | None = Field(
        description="Share of rows with all of their facts known and themselves not, corrected "
        "for guessing; null as above."
    )


class Facts(Model):
    """The single facts that rows rest on, and the accuracy of the rows in comparison."""

    configs: list[str] = Field(description="The probe's configs that ask for single facts.")
    asked: int = Field(description="Facts asked, each once: those that a row evaluated rests on.")
    scored: int = Field(description="Of these, not set aside.")
    accuracy: Estimate = Field(description="Share of the scored facts answered right.")
    chance: float = Field(description="Mean of one over the number of a fact's choices.")
    left_out: dict[str, int] = Field(
        description="Scored rows that are not counted below, by reason."
    )
    rows: Composition | None = Field(description="All rows; null where none could be counted.")
    by_hops: list[Composition] = Field(description="By edges between concept and gold.")
    by_relation: list[Composition] = Field(description="By what holds between concept and gold.")
    by_family: list[Composition] = Field(description="By distractor family.")


def facts_of(results: Results) -> Facts | None:
    """Return the results' block on facts; None if rows rest on none, or none were asked."""
    return results.analysis(NAME, Facts)


def _parts(files: ResultFiles, facts: Facts) -> list[Part]:
    parts: list[Part] = [Text(sentence) for sentence in _sentences(facts)]
    if left_out := _left_out(facts):
        parts.append(Text(left_out, note=True))
    if facts.rows is not None:
        caption = "Accuracy of the questions, by how many of their facts are answered right."
        caption = f"{caption} The dashed line is chance."
        chance = files.results.metrics.chance
        parts.append(shares("the question’s facts", caption, _by_known(facts.rows), chance))
        parts.append(_table_of_shares(facts.rows))
        breakdowns = {
            "hops": facts.by_hops,
            "relation": facts.by_relation,
            "distractor family": facts.by_family,
        }
        parts += [_breakdown(what, held) for what, held in breakdowns.items() if len(held) > 1]
        if files.facts is None:
            missing = "The facts’ own predictions are not beside these results"
            parts.append(Text(f"{missing}, so no examples can be shown.", note=True))
        else:
            failed = failures(files.predictions, files.facts)
            rows = drawn_from(files.predictions, list(failed), EXAMPLES)
            normalization = files.results.metrics.normalization
            parts.append(Heading("All facts right, and the question wrong"))
            parts += questions_of(files.predictions, rows, normalization, failed)
            if not failed:
                parts.append(Text("There are none.", note=True))
    return parts


def failures(predictions: pa.Table, facts: pa.Table) -> dict[int, list[Basis]]:
    """Return the rows answered wrong although all of their facts are right, with these facts."""
    shown = ("id", "question", "choices", "answer")
    by_id = {row["id"]: row for row in facts.select(shown).to_pylist()}
    columns = (predictions[name].to_pylist() for name in ("correct", "fact_ids", "facts_right"))
    failed = {}
    for row, (correct, ids, right) in enumerate(zip(*columns, strict=True)):
        if correct is False and right is not None and right == len(set(ids)):
            named = [by_id[name] for name in dict.fromkeys(ids)]
            failed[row] = [
                Basis(fact["question"], fact["choices"][fact["answer"]], fact["id"])
                for fact in named
            ]
    return failed


def _by_known(rows: Composition) -> tuple[tuple[str, Estimate], ...]:
    """Return the named accuracies of the rows with all, some and none of their facts right."""
    named = {
        "all right": rows.all_facts,
        "some right": rows.some_facts,
        "none right": rows.no_facts,
    }
    return tuple((name, part.accuracy) for name, part in named.items() if part.accuracy is not None)


def _table_of_shares(rows: Composition) -> Table:
    """Return the table of shares of rows: observed, if independent, if guessed."""
    independent, guessed = rows.all_facts_independent, rows.all_facts_chance
    lines = {
        "all of its facts right": (rows.all_facts_share, independent, guessed),
        "all of its facts right, and itself wrong": (
            rows.fails,
            rows.fails_independent,
            rows.fails_chance,
        ),
        "a fact wrong, and itself right": (
            rows.right_without,
            rows.accuracy.value * (1.0 - independent),
            rows.chance * (1.0 - guessed),
        ),
    }
    return Table(
        ("the question has", "share", "if independent", "if guessed"),
        [(name, *numbers) for name, numbers in lines.items()],
        "Questions and their facts. Beside the share observed: if facts and question were right "
        "independently of each other, and if all were guessed.",
    )


def _breakdown(what: str, groups: Sequence[Composition]) -> Table:
    listed = groups[:LISTED]
    more = f", the first {LISTED}" if len(groups) > LISTED else ""
    head = ("questions", "accuracy", "all facts right", "of these right")
    known = [group.all_facts.accuracy for group in listed]
    return Table(
        (what, *head, "all facts right, itself wrong", "a fact wrong, itself right"),
        [
            (
                group.name,
                group.rows,
                group.accuracy.value,
                group.all_facts_share.value,
                right.value if right else None,
                group.fails.value,
                group.right_without.value,
            )
            for group, right in zip(listed, known, strict=True)
        ],
        f"The same by {what}{more}",
        fold=f"By {what}",
        faint=frozenset(row for row, group in enumerate(listed) if group.rows < SMALL),
    )


def _sentences(facts: Facts) -> list[str]:
    """Return sentences on the questions whose facts the model answers right."""
    said = [
        f"The questions rest on {facts.asked:,} single facts. Asked one by one, the model gets "
        f"{percent(facts.accuracy.value)} of them right (95% interval "
        f"{interval(facts.accuracy)}), where guessing gives {percent(facts.chance)}."
    ]
    rows = facts.rows
    if rows is None:
        return said
    known = rows.all_facts
    if known.accuracy is None:
        return [*said, f"It gets all facts right of none of {rows.rows:,} questions."]
    said.append(
        f"It gets all facts right of {known.rows:,} of {rows.rows:,} questions, and still fails "
        f"{percent(1.0 - known.accuracy.value)} of these "
        f"({percent(1.0 - known.accuracy.high)} to {percent(1.0 - known.accuracy.low)}); guessing "
        f"would fail {percent(1.0 - rows.chance)}."
    )
    if rows.known is not None and rows.known_fails is not None:
        said.append(
            "Right answers may be guesses. If all that it does not know were guessed evenly, each "
            "question on its own, it would know all facts of "
            f"{percent(rows.known.value)} of the questions ({interval(rows.known)}), and know "
            f"these but not the question in {percent(rows.known_fails.value)} "
            f"({interval(rows.known_fails)})."
        )
    return said


def _left_out(facts: Facts) -> str:
    """Return a sentence on the scored questions that are not counted; "" if all are."""
    reasons = "; ".join(f"{reason}: {count:,}" for reason, count in facts.left_out.items())
    total = sum(facts.left_out.values())
    return f"{total:,} scored questions are not counted here ({reasons})." if total else ""


ANALYSIS = Analysis(
    NAME, "Facts", "Facts: does it put together what it knows?", _parts, Facts, COLUMNS
)
