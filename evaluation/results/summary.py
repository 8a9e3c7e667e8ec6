"""What ``evaluate-probe`` prints: the table at the end of a run, and formatting for studies."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box

from evaluation.names import model_name
from evaluation.results.analyses import generated
from evaluation.results.analyses.facts import Facts, facts_of
from evaluation.results.analyses.labels import labels_of, sentences
from evaluation.results.console import print_rows, wide_console
from evaluation.results.types import DIVIDED, METRIC_OF, Estimate, Results, remarks
from evaluation.results.verdicts import other_verdicts, wording_remark
from evaluation.results.words import against_chance, counts, remarks_on_rows


def show_table(results: Sequence[Results]) -> None:
    """Print one row for each probe and model: accuracies in percent with 95% intervals."""
    rows = []
    for result in results:
        metrics, speed = result.metrics, result.timings.rows_per_second
        strict = metrics.strict_difference
        rows.append(
            (
                f"{result.probe.name} ({result.probe.split})",
                model_name(result.model.id),
                scored_rows(result),
                f"{metrics.clusters:,}",
                percent(metrics.accuracy),
                f"{100 * metrics.chance:.1f}",
                percent(metrics.strict_accuracy),
                "-" if strict is None else f"{strict.value:+.1f}",
                f"{metrics.ties:,}",
                "cached" if speed is None else f"{speed:,.1f}",
            )
        )
    heads = ("rows", "clusters", "accuracy", "chance", "strict", "difference", "ties", "rows/s")
    print_rows(("probe", "model", *heads), rows, lines=box.SIMPLE_HEAD)
    console = wide_console()
    for result in results:
        console.print(f"{result.probe.name}, {model_name(result.model.id)}:", soft_wrap=True)
        for line in (scored_by(result), *cautions(result)):
            console.print(f"  {line}", soft_wrap=True)


def scored_by(result: Results) -> str:
    """Return the scorer's name, with the normalization of its scores if that can be chosen."""
    metrics, scorer = result.metrics, f"scorer: {result.scoring.scorer}"
    if len(metrics.accuracies) < 2:
        return scorer
    return f"{scorer}, normalization: {metrics.normalization}"


def scored_rows(result: Results) -> str:
    """Return how many rows were scored, and of how many if only some of the split were drawn."""
    scored, whole = result.metrics.scored, result.probe.split_rows
    return f"{scored:,}" if whole is None else f"{scored:,} of {whole:,}"


def percent(estimate: Estimate | None) -> str:
    """Format a share with its interval: ``71.2 [69.8, 72.5]``."""
    if estimate is None:
        return "-"
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def cautions(result: Results) -> list[str]:
    """Return caveats about the result."""
    metrics = result.metrics
    other = other_verdicts(metrics)
    against = against_chance(metrics.accuracy, metrics.chance)
    lines = [f"accuracy: {'; '.join(filter(None, (against, other)))}"]
    if metrics.near_accuracy is not None and metrics.random_accuracy is not None:
        near, random = (
            f"{percent(share)} of {counts(share)}"
            for share in (metrics.near_accuracy, metrics.random_accuracy)
        )
        lines.append(f"near distractors: {near}; random ones: {random}")
    lines += remarks_on_rows(result)
    lines += filter(None, [wording_remark(metrics)])
    lines += [
        f"{count:,} of {metrics.items:,} rows set aside: {reason}"
        for reason, count in metrics.set_aside.items()
    ]
    if (seed := result.model.random_weights) is not None:
        lines.append(f"weights drawn at random (seed {seed}) instead of the checkpoint's own")
    if metrics.strict_chance is not None:
        lines.append(f"strict accuracy by guessing: {100 * metrics.strict_chance:.1f}")
    if len(metrics.accuracies) > 1:
        own = METRIC_OF[metrics.normalization]
        others = {name: e for name, e in metrics.accuracies.items() if name != own}
        spelled = ", ".join(f"{name} {100 * e.value:.1f}" for name, e in others.items())
        divided = DIVIDED[metrics.normalization]
        lines.append(f"accuracy is {own} ({divided}); by other normalizations: {spelled}")
    if metrics.strongest_baseline:
        name, share = metrics.strongest_baseline
        lines.append(f"best baseline: {100 * share:.1f} ({name})")
    if metrics.similarity is not None:
        beyond = metrics.similarity.difference
        lines.append(
            f"beyond similarity: {beyond.value:+.1f} points [{beyond.low:+.1f}, {beyond.high:+.1f}]"
        )
    if (labels := labels_of(result)) is not None:
        lines.append(", ".join(sentences(labels)))
    if (written := generated.generated_of(result)) is not None:
        lines += generated.sentences(written)
    if (facts := facts_of(result)) is not None:
        lines.append(_on_facts(facts))
    if metrics.ties:
        counted = f"{metrics.ties:,} {'tie' if metrics.ties == 1 else 'ties'}"
        apart = f"within {metrics.tie_tolerance:g}" if metrics.tie_tolerance else "equal"
        lines.append(
            f"{counted} (top two {apart}); all counted wrong: {100 * metrics.ties_wrong:.1f}"
        )
    return lines + remarks(result)


def _on_facts(facts: Facts) -> str:
    """Return a line about the rows whose facts are answered right."""
    line = f"single facts: {percent(facts.accuracy)} of {facts.scored:,}"
    line += f", chance {100 * facts.chance:.1f}"
    rows = facts.rows
    if rows is None:
        return f"{line}; no row has all of its facts asked and scored"
    known = rows.all_facts
    line += (
        f"; all facts right in {known.rows:,} of {rows.rows:,} rows "
        f"({100 * rows.all_facts_share.value:.1f}, by chance {100 * rows.all_facts_chance:.1f})"
    )
    if known.accuracy is not None:
        fails = 1.0 - known.accuracy.value
        line += f", {100 * fails:.1f} of these fail (by chance {100 * (1.0 - rows.chance):.1f})"
    line += f"; right without: {100 * rows.right_without.value:.1f} of rows"
    if rows.known_fails is None:
        return line
    fails = 100 * rows.known_fails.value
    return f"{line}; facts known and the row not, corrected for guessing: {fails:.1f} of rows"
