"""The report: ``report.html``, one page made from ``results.json`` and ``predictions.parquet``.

The page depends only on the two files (and on the two files of the facts, if rows rest on facts),
not on the date or the machine. It is self-contained, runs no scripts and loads nothing from
elsewhere: its content security policy forbids both, whatever the texts of a probe may contain.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.report import breakdowns, figures, questions
from evaluation.report.templates import environment
from evaluation.results.analyses import all_analyses
from evaluation.results.analyses.base import Examples, Part, Picture, ResultFiles
from evaluation.results.analyses.facts import facts_of
from evaluation.results.breakdown import headline_rows
from evaluation.results.pairs import read_pair
from evaluation.results.types import (
    FACTS,
    METRIC_OF,
    REPORT,
    RESULTS,
    Metrics,
    Normalization,
    Results,
    remarks,
)
from evaluation.results.words import (
    Place,
    clip,
    interval,
    last_name,
    percent,
    place,
    remarks_on_rows,
)
from kbprobe.errors import UsageError, require
from kbprobe.files import write_file

if TYPE_CHECKING:
    import pyarrow as pa
    from markupsafe import Markup

SHOWN_GROUPS = 12
LISTED_GROUPS = 200
"""Maximum number of templates shown at once, and in all, including those folded away."""

SAMPLED = 6
"""Number of questions of each kind in the sample."""


def make_report(folder: Path) -> Path:
    """Write ``report.html`` into a folder of results; return its path.

    The same files give the same bytes. If rows rest on facts, the subfolder ``facts`` holds the
    results of the facts; without it no examples of facts are shown.

    Raises:
        UsageError: a file of results is missing or damaged, or the two are not of the same run.
        MissingDependencyError: matplotlib is not installed.
        OSError: the page cannot be written.
    """
    results, predictions = read_pair(folder)
    page = render(results, predictions, _facts_of(folder, results))
    write_file(folder / REPORT, page.encode("utf-8", errors="backslashreplace"))
    return folder / REPORT


def _facts_of(folder: Path, results: Results) -> pa.Table | None:
    """Read the predictions of the facts that rows rest on; None if there are none."""
    facts = facts_of(results)
    if facts is None or not (folder / FACTS / RESULTS).is_file():
        return None
    read, predictions = read_pair(folder / FACTS)
    metrics = read.metrics
    if (metrics.items, metrics.accuracy) != (facts.asked, facts.accuracy):
        raise UsageError(
            f"{folder / FACTS} holds other facts than those that {folder / RESULTS} is about. "
            "Evaluate again."
        )
    return predictions


def render(results: Results, predictions: pa.Table, facts: pa.Table | None = None) -> str:
    """Return the page for results, their predictions, and the predictions of the facts, if any.

    Raises:
        MissingDependencyError: matplotlib is not installed.
    """
    require("matplotlib", "eval", "making a report")
    metrics, normalization = results.metrics, results.metrics.normalization
    predictions = headline_rows(predictions)
    sizes = breakdowns.joined_sizes(metrics)
    clustered = metrics.clusters < metrics.accuracy.n or metrics.strict_accuracy is not None
    wrong, right = (
        questions.drawn(predictions, normalization, SAMPLED, correct=correct)
        for correct in (False, True)
    )
    sections = [
        {"analysis": analysis, "parts": _parts(analysis.name, parts, predictions, normalization)}
        for analysis in all_analyses()
        if (parts := analysis.section(ResultFiles(results, predictions, facts)))
    ]
    templates = environment()
    templates.globals |= {
        "shown": SHOWN_GROUPS,
        "listed": LISTED_GROUPS,
        "worst_least": questions.WORST_LEAST,
        "sure": questions.SURE,
        "metric_of": METRIC_OF,
        "length_of": breakdowns.LENGTH_OF,
    }
    return templates.get_template("report.html.j2").render(
        r=results,
        m=metrics,
        model=last_name(results.model.id),
        example=(right or wrong)[0] if right or wrong else None,
        floor=metrics.strongest_baseline,
        verdict=verdict(metrics),
        summary=summary(results),
        cautions=cautions(results),
        heat=breakdowns.heat_map(metrics.table),
        cells=breakdowns.in_order(metrics.table),
        sizes=sizes,
        size_chart=figures.size_chart(sizes),
        calibration_chart=figures.calibration_chart(metrics.calibration),
        baselines=metrics.ranked_baselines,
        normalizations=breakdowns.normalizations(metrics),
        templates=breakdowns.largest_first(metrics.by_template),
        pos=breakdowns.largest_first(metrics.by_pos),
        content=breakdowns.largest_first(metrics.by_content),
        sections=sections,
        worst=questions.worst_clusters(predictions, normalization) if clustered else None,
        samples=(
            questions.confident_mistakes(predictions, normalization, SAMPLED),
            wrong,
            right,
        ),
        provenance=provenance(results),
        has_facts=facts is not None,
    )


def _parts(
    name: str, parts: Sequence[Part], predictions: pa.Table, normalization: Normalization
) -> list[tuple[str, Any, Any]]:
    """Return the type, the part and the rendered content of each part of a named section."""
    made: list[tuple[str, Any, Any]] = []
    for at, part in enumerate(parts):
        content: Markup | list[tuple[questions.Question, Any]] | None = None
        if isinstance(part, Picture):
            content = figures.draw(f"{name}{at}", part.label, part.height, part.plot)
        elif isinstance(part, Examples):
            lines = {example.row: example.lines for example in part.candidates}
            shown = questions.picked(predictions, list(lines), normalization, part.most)
            content = [(question, lines[question.row]) for question in shown]
        made.append((type(part).__name__, part, content))
    return made


def summary(results: Results) -> list[str]:
    """Return sentences on the headline number and how far it can be trusted."""
    metrics = results.metrics
    accuracy = metrics.accuracy
    right = round(accuracy.value * accuracy.n)
    if accuracy.method != "wilson":
        trust = (
            f"is over the {metrics.clusters:,} clusters, not over the rows: questions "
            "about one concept tend to be right or wrong together, so ten about one concept "
            "say less than ten about ten."
        )
    else:
        trust = (
            "takes the questions to be independent of each other, as no two rows "
            "share a cluster; it is too narrow if some of them ask about the same thing."
        )
    sentences = [
        f"The model picks the right choice for {right:,} of {accuracy.n:,} scored questions: "
        f"{percent(accuracy.value)}, where guessing gives {percent(metrics.chance)}.",
        f"The 95% interval, {interval(accuracy)}, {trust}",
        _against_floor(metrics),
    ]
    strict, difference = metrics.strict_accuracy, metrics.strict_difference
    if strict is not None and difference is not None:
        sentences.append(
            f"It gets every question right in {percent(strict.value)} of {strict.n:,} clusters "
            f"(95% interval {interval(strict)}), {abs(difference.value):.1f} points "
            f"{'below' if difference.value <= 0 else 'above'} its accuracy."
            + (
                ""
                if metrics.strict_chance is None
                else f" By guessing, {percent(metrics.strict_chance)} is to be expected."
            )
        )
    return sentences


def verdict(metrics: Metrics) -> tuple[Place, str]:
    """Return a few words on whether the model beats chance and the shortcuts.

    It is compared with chance, or with the best shortcut if that is better.

    Returns:
        Where the interval lies, and the words.
    """
    shortcut = metrics.strongest_baseline
    level = max(metrics.chance, shortcut[1] if shortcut else 0.0)
    found = place(metrics.accuracy, level)
    what = "guessing or a shortcut" if shortcut else "guessing"
    words: dict[Place, str] = {
        "above": f"Better than guessing{' and every shortcut' if shortcut else ''}",
        "below": f"Below what {what} reaches",
        "level": f"Not distinguishable from what {what} reaches",
        "few": f"Too few rows to say whether it is better than {what}",
    }
    return found, words[found]


def _against_floor(metrics: Metrics) -> str:
    said: dict[Place, str] = {
        "above": "lies above",
        "below": "lies below",
        "level": "does not separate the model from",
        "few": "is too wide, on so few rows, to separate the model from",
    }
    lies = said[verdict(metrics)[0]]
    floor = metrics.strongest_baseline
    if floor is None:
        return (
            f"The interval {lies} chance. The probe has no audit, so it is not known how far "
            "shortcuts alone would get."
        )
    name, value = floor
    return (
        f"The strongest shortcut of the probe's audit, “{clip(name, 60)}”, gets {percent(value)} "
        f"without knowing the answer: the interval {lies} "
        f"{'that' if value >= metrics.chance else 'chance'}."
    )


def cautions(results: Results) -> list[str]:
    """Return caveats to know before quoting the number."""
    metrics = results.metrics
    found = [f"{remark[0].upper()}{remark[1:]}." for remark in remarks_on_rows(results)]
    aside = sum(metrics.set_aside.values())
    if aside:
        reasons = "; ".join(f"{reason}: {n:,}" for reason, n in sorted(metrics.set_aside.items()))
        counted = metrics.accuracy.value * metrics.scored / metrics.items
        found.append(
            f"{aside:,} of {metrics.items:,} questions ({percent(aside / metrics.items)}) were "
            f"set aside and not scored ({reasons}). Counting them as wrong, accuracy would be "
            f"{percent(counted)}."
        )
    if metrics.ties:
        apart = "are equal"
        if metrics.tie_tolerance:
            apart = f"lie within {metrics.tie_tolerance:g} of each other, which is numerical noise"
        found.append(
            f"In {metrics.ties:,} of the questions scored the best two scores {apart}: a tie. "
            f"Counting ties as wrong, accuracy would be {percent(metrics.ties_wrong)}."
        )
    spread = [estimate.value for estimate in metrics.accuracies.values()]
    if len(spread) > 1 and max(spread) - min(spread) >= 0.05:
        found.append(
            f"Accuracy is {percent(min(spread))} to {percent(max(spread))}, depending on how "
            "scores are normalized for length. Choose before you look, and name the choice."
        )
    if metrics.strict_accuracy is not None and metrics.clusters < 30:
        found.append(
            f"There are only {metrics.clusters} clusters: intervals over so few are rough."
        )
    found += [f"{remark}." for remark in remarks(results)]
    return found


def provenance(results: Results) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return every field that describes the run, formatted, by section."""
    sections: list[tuple[str, dict[str, Any]]] = [
        ("Probe", results.probe.model_dump()),
        ("Model", results.model.model_dump()),
        ("Scoring", {**results.scoring.model_dump(), "seed": results.seed}),
        ("Timings, in seconds", results.timings.model_dump()),
        ("Versions", {**results.versions, "results schema": results.schema_version}),
    ]
    return [
        (title, [(name, _spelled(value)) for name, value in fields.items()])
        for title, fields in sections
    ]


def _spelled(value: Any) -> str:
    """Format a field's value for readers; nested values stay JSON."""
    if value is None:
        return "none"
    if isinstance(value, bool | dict | list):
        return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
