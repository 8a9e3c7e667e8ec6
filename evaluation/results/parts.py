"""Parts of a run's document that its analyses and its report share."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.results.types import Estimate
from kbprobe.document import Bar, Row, Table

SMALL = 50
"""Numbers of fewer rows are greyed out: with 50 rows, the 95% interval is up to ±14 points."""


def shares(
    what: str,
    caption: str,
    named: Sequence[tuple[str, Estimate]],
    chance: float | None,
    fold: str = "",
) -> Table:
    """Return a table of named shares, each drawn on a scale with chance; ``what`` heads the names.

    Args:
        what: what the names are, such as ``wording``.
        caption: what the shares are.
        named: names and shares.
        chance: where the dashed line is drawn, if anywhere.
        fold: the label under which the table is collapsed, if it is.
    """
    # Older results do not say how many clusters there are.
    clustered = any(share.clusters is not None for _, share in named)
    rows: list[Row] = [
        (name, share, share.n, *([share.clusters] * clustered), Bar(share, chance, "model"))
        for name, share in named
    ]
    faint = frozenset(row for row, (_, share) in enumerate(named) if share.n < SMALL)
    head = (what, "accuracy", "rows", *(["clusters"] * clustered), "")
    return Table(head, rows, caption, fold=fold, faint=faint)
