"""How the report spells numbers and texts."""

from __future__ import annotations

from evaluation.names import telling_parts
from evaluation.results.types import Estimate, Results

_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"} | {127: 0x2421}

ROUND = [digit * 10**power for power in range(18) for digit in (1, 2, 5)]
"""1, 2, 5, 10, 20, ...: steps of scales."""


def limit_remark(results: Results) -> str | None:
    """Say how many rows and clusters ``--limit`` drew, and of how many; None: it drew none."""
    probe, options = results.probe, results.scoring.options
    limit = options.get("limit")
    if probe.split_rows is None or limit is None:
        return None
    drawn = f"{probe.rows:,} of {probe.split_rows:,} rows"
    if probe.clusters is not None and probe.split_clusters not in (None, probe.split_rows):
        drawn += f", in {probe.clusters:,} of {probe.split_clusters:,} clusters"
    if options.get("limit_by") == "rows":
        return f"{drawn} (--limit {limit} --limit-by rows draws rows of any cluster)"
    if probe.split_clusters == probe.split_rows:
        return f"{drawn} (--limit {limit})"
    return (
        f"{drawn} (--limit {limit} keeps whole clusters; --limit-by rows draws rows of more "
        "clusters)"
    )


def printable(text: str) -> str:
    """Show control characters by their pictures: HTML has no way to hold them."""
    return text.translate(_PICTURES)


def clip(text: str, most: int) -> str:
    """Cut a text that is too long to show, and say so."""
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters)"


def short(text: str, most: int = 24) -> str:
    """Cut a name to ``most`` characters, without saying how many there were."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def last_name(source: str) -> str:
    """Name a model by the end of its path that tells something; a Hub id stays whole.

    >>> last_name("models/tuned/a.gguf"), last_name("FacebookAI/roberta-large")
    ('a.gguf', 'FacebookAI/roberta-large')
    >>> last_name("/home/me/tuned/checkpoint-100")
    'tuned/checkpoint-100'
    """
    parts = [part for part in source.replace("\\", "/").split("/") if part]
    is_hub_id = len(parts) == 2 and not source.startswith(("/", ".", "~")) and source[-1] != "/"
    return source if is_hub_id or not parts else "/".join(telling_parts(parts))


def percent(share: float) -> str:
    """Spell a share: ``45.1%``."""
    return f"{100 * share:.1f}%"


def points(difference: float) -> str:
    """Spell a difference in percentage points, with its sign: ``−33.1``.

    >>> points(-33.14), points(-0.04)
    ('−33.1', '+0.0')
    """
    return f"{round(difference, 1) + 0.0:+.1f}".replace("-", "−")


def coefficient(value: float) -> str:
    """Spell a coefficient between -1 and 1: ``0.31``.

    >>> coefficient(-0.314), coefficient(-0.001)
    ('−0.31', '0.00')
    """
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def number(value: float) -> str:
    """Spell a score: ``−56.728``."""
    return f"{value:.3f}".replace("-", "−").replace("inf", "∞")


def interval(estimate: Estimate) -> str:
    """Spell an estimate's interval: ``44.0% to 46.2%``."""
    return f"{percent(estimate.low)} to {percent(estimate.high)}"
