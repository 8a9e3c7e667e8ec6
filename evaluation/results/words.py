"""Formatting of numbers and texts in reports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

from evaluation.names import model_name
from evaluation.options import SELECTING, not_default, written_out
from evaluation.results.types import Estimate, Metrics, Results
from kbprobe.format.manifest import on_matching

_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}

ROUND = [digit * 10**power for power in range(18) for digit in (1, 2, 5)]
"""1, 2, 5, 10, 20, ...: round steps for scales."""


def selection(results: Results) -> str:
    """Return the options that selected the rows, as given; empty: all rows were evaluated."""
    return written_out(not_default(SELECTING, results.scoring.options))


def limit_remark(results: Results) -> str | None:
    """Return how many rows and clusters ``--limit`` drew, and of how many; None without a limit."""
    probe, options = results.probe, results.scoring.options
    limit = options.get("limit")
    if probe.split_rows is None or limit is None:
        return None
    drawn = f"{probe.rows:,} of {probe.split_rows:,} rows"
    if probe.split_clusters not in (None, probe.split_rows):
        drawn += f", in {probe.clusters:,} of {probe.split_clusters:,} clusters"
    if options.get("limit_by") == "rows":
        return f"{drawn} (--limit {limit} --limit-by rows draws rows of any cluster)"
    if probe.split_clusters == probe.split_rows:
        return f"{drawn} (--limit {limit})"
    if probe.clusters == 1 and results.metrics.strict_accuracy is None:
        return f"{drawn} (--limit {limit} is less than a cluster holds, and cuts it)"
    if options.get("limit_by") == "clusters" or results.metrics.strict_accuracy is not None:
        return (
            f"{drawn} (--limit {limit} keeps whole clusters; --limit-by rows draws rows of more "
            "clusters)"
        )
    return (
        f"{drawn} (--limit {limit} keeps whole choice groups; --limit-by clusters keeps whole "
        "clusters, for strict accuracy)"
    )


def headline_remark(metrics: Metrics) -> str | None:
    """Return which rows the headline leaves out; None if it is on all scored rows."""
    accuracy = metrics.accuracy
    if accuracy.n == metrics.scored:
        return None
    left = metrics.scored - accuracy.n
    shown = ", ".join(f"{one.name} {percent(one.accuracy.value)}" for one in metrics.by_content)
    return (
        f"accuracy is of the {accuracy.n:,} rows about common words: the {left:,} about taxa, "
        "persons, places and other names, more than a fifth, ask for recall of an encyclopedia "
        f"and are left out (by content: {shown})"
    )


def answers_remark(results: Results) -> str | None:
    """Return who gave the answers, if that was neither people nor the knowledge base."""
    kind = results.probe.annotator_kind
    return None if kind in (None, "human") else f"answers given by no person (annotators: {kind})"


def matching_remark(results: Results) -> str | None:
    """Return which encoders the choices were matched on; None if they were not."""
    encoders = results.probe.matched_on
    if not encoders:
        return None
    said = on_matching([model_name(encoder.name) for encoder in encoders]).removesuffix(".")
    return f"{said[0].lower()}{said[1:]}"


def matched_remark(results: Results) -> str | None:
    """Return that the model is one of the encoders that the choices were matched on, if it is."""
    encoders = {encoder.sha256 for encoder in results.probe.matched_on}
    own = results.model.weights_sha256 in encoders
    return "this model is one of the encoders that the choices are matched on" if own else None


def remarks_on_rows(results: Results) -> list[str]:
    """Return what to say of the rows that the headline is on, and of their answers."""
    every = (
        headline_remark(results.metrics),
        answers_remark(results),
        matching_remark(results),
        matched_remark(results),
        limit_remark(results),
    )
    return [remark for remark in every if remark is not None]


def printable(text: str) -> str:
    """Replace control characters, which HTML cannot contain, with their Unicode pictures."""
    return text.translate(_PICTURES)


def clip(text: str, most: int) -> str:
    """Truncate a text that is too long to show, and note that it was truncated."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def short(text: str, most: int = 24) -> str:
    """Truncate a name to ``most`` characters, without noting its length."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short_names(names: Sequence[str], most: int = 24) -> list[str]:
    """Truncate names like `short`; those that would look the same lose their middle instead.

    >>> short_names(["a-long-model, char", "a-long-model, sum", "b"], 12)
    ['a-lon…, char', 'a-lon…l, sum', 'b']
    """
    ends = [short(name, most) for name in names]
    distinct = Counter({name: short(name, most) for name in names}.values())
    half = most // 2
    return [
        end if distinct[end] == 1 else f"{name[: most - half - 1]}…{name[-half:]}"
        for name, end in zip(names, ends, strict=True)
    ]


def name_or_count(names: Collection[str], what: str) -> str:
    """Return the name if there is only one, or how many there are.

    >>> name_or_count(["ages"], "probes"), name_or_count(["ages", "sizes"], "probes")
    ('ages', '2 probes')
    """
    return next(iter(names)) if len(names) == 1 else f"{len(names)} {what}"


def p_value(p: float) -> str:
    """Format a p value: ``0.0123``."""
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def with_p(text: str, p: float, pairs: int) -> str:
    """Append a p, adjusted for a number of pairs if several: ``+3.1 points, p (Holm) = 0.0123``."""
    shown, name = p_value(p), "p (Holm)" if pairs > 1 else "p"
    return f"{text}, {name} {shown if shown[0] == '<' else f'= {shown}'}"


def percent(share: float) -> str:
    """Format a share: ``45.1%``."""
    return f"{100 * share:.1f}%"


def counts(estimate: Estimate) -> str:
    """Return what an estimate is of: ``2 rows``, ``200 rows, 31 clusters``."""
    rows = f"{estimate.n:,} row{'' if estimate.n == 1 else 's'}"
    if estimate.clusters in (None, estimate.n):
        return rows
    return f"{rows}, {estimate.clusters:,} cluster{'' if estimate.clusters == 1 else 's'}"


def score(share: float) -> str:
    """Format a share in points: ``72.3``.

    >>> score(0.7234), score(-0.0001)
    ('72.3', '0.0')
    """
    return f"{round(100 * share, 1) + 0.0:.1f}".replace("-", "−")


def points(difference: float) -> str:
    """Format a difference in percentage points, with its sign: ``−33.1``.

    >>> points(-33.14), points(-0.04)
    ('−33.1', '+0.0')
    """
    return f"{round(difference, 1) + 0.0:+.1f}".replace("-", "−")


def difference(estimate: Estimate) -> str:
    """Format a difference with its interval: ``+2.1 points (−0.3 to +4.5)``."""
    return f"{points(estimate.value)} points ({points(estimate.low)} to {points(estimate.high)})"


def coefficient(value: float) -> str:
    """Format a coefficient between -1 and 1: ``0.31``.

    >>> coefficient(-0.314), coefficient(-0.001)
    ('−0.31', '0.00')
    """
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def number(value: float) -> str:
    """Format a score: ``−56.728``."""
    return f"{value:.3f}".replace("-", "−").replace("inf", "∞")


Place = Literal["above", "below", "level", "few"]
"""Where an interval lies: above a level, below it, around it, or on too few rows to tell."""

WIDE = 0.2
"""An interval around a level that is wider than this is uninformative: there are too few rows."""

FEWEST = 5
"""With fewer rows or clusters, guessing between two answers too often gets all of them right."""

AGAINST: dict[Place, str] = {
    "above": "above",
    "below": "below",
    "level": "not distinguishable from",
    "few": "on too few rows to distinguish it from",
}
"""Each place as words of a sentence: ``45.1%, not distinguishable from chance``."""


def natural_key(name: str) -> list[tuple[int, float, str]]:
    """Return a key that sorts names by the numbers in them: ``5-9 years`` before ``10-19 years``.

    >>> sorted(["10-19 years", "5-9 years", "20 or more", "1-4 years"], key=natural_key)
    ['1-4 years', '5-9 years', '10-19 years', '20 or more']
    """
    parts = re.findall(r"\d+(?:\.\d+)?|[^\d]+", name)
    return [(0, float(part), "") if part[0].isdecimal() else (1, 0.0, part) for part in parts]


def place(estimate: Estimate, level: float) -> Place:
    """Return where the interval of a share lies relative to a level such as chance."""
    if estimate.n < FEWEST:
        return "few"
    if estimate.low > level:
        return "above"
    if estimate.high < level:
        return "below"
    return "few" if estimate.high - estimate.low > WIDE else "level"


def against_chance(estimate: Estimate, chance: float) -> str:
    """Compare a share with chance: ``above chance``, ``too few rows to say``, ..."""
    found = place(estimate, chance)
    if found == "few":
        return "too few rows to say whether it is above chance"
    return f"{AGAINST[found]} chance"


def interval(estimate: Estimate) -> str:
    """Format an estimate's interval: ``44.0% to 46.2%``."""
    return f"{percent(estimate.low)} to {percent(estimate.high)}"


def duration(seconds: float) -> str:
    """Return a duration: ``45 s``, ``12 min``, ``3.4 h``."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
