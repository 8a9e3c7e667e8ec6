"""Agreement of annotators with each other, and with the answers that the rows were built with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from kbprobe.errors import require
from release.annotation.votes import Vote

if TYPE_CHECKING:
    import pandas as pd

_Z = 1.959963984540054


class Estimate(BaseModel):
    """A share with its 95% interval.

    Attributes:
        value: the share.
        low: lower end.
        high: upper end.
        n: how many votes or rows it is a share of.
        clusters: how many clusters these belong to.
    """

    value: float
    low: float
    high: float
    n: int
    clusters: int


class Agreement(BaseModel):
    """Agreement among annotators.

    Attributes:
        pairwise: share of pairs of votes on one row that agree, averaged over rows (rows with
            one vote or none left out); None if there is no pair.
        alpha: Krippendorff's alpha, nominal: 1 is perfect agreement, 0 what chance gives. Marks
            are answers of their own. None where it is not defined: no pairs, or one answer alone.
        alpha_ordinal: the same for the points of the scale, near ones taken as nearly agreeing;
            None for rows that are not judged on a scale.
        rows: rows with two votes or more.
    """

    pairwise: float | None
    alpha: float | None
    alpha_ordinal: float | None
    rows: int


def agreement(
    votes: Sequence[Vote], rows: Mapping[str, Mapping[str, Any]], scale: bool
) -> Agreement:
    """Measure the agreement of votes on items (none on repeats and checks).

    Answers of different rows are compared by their text where all rows have the same choices,
    and else by their place in the row, which is drawn at random. ``rows`` are those voted on, by
    id; ``scale`` says whether votes are points of a scale.

    Raises:
        MissingDependencyError: the package krippendorff is not installed.
    """
    import pandas as pd

    choices = {row: rows[row]["choices"]["text"] for row in {vote.item.id for vote in votes}}
    fixed = len({frozenset(texts) for texts in choices.values()}) == 1

    def answer(vote: Vote) -> str:
        if vote.answer < 0:
            return f"mark {vote.said}"
        return str(choices[vote.item.id][vote.answer] if fixed else vote.answer)

    said = pd.DataFrame(
        [(vote.item.id, answer(vote), vote.said, vote.answer >= 0) for vote in votes],
        columns=["row", "answer", "point", "chosen"],
    )
    # Shape [rows, answers that occur]; points of a scale are in their order.
    counts = pd.crosstab(said["row"], said["answer"])
    points = said[said["chosen"]] if scale else said[:0]
    sizes = counts.sum(axis=1)
    paired, sizes = counts[sizes > 1], sizes[sizes > 1]
    agreeing = (paired * (paired - 1)).sum(axis=1) / (sizes * (sizes - 1))
    return Agreement(
        pairwise=float(agreeing.mean()) if sizes.size else None,
        alpha=_alpha(counts, "nominal"),
        alpha_ordinal=_alpha(pd.crosstab(points["row"], points["point"]), "ordinal")
        if scale
        else None,
        rows=int(sizes.size),
    )


def _alpha(counts: pd.DataFrame, level: Literal["nominal", "ordinal"]) -> float | None:
    """Return Krippendorff's alpha; None where it is not defined."""
    require("krippendorff", "release", "Krippendorff's alpha")
    import krippendorff

    paired = counts[counts.sum(axis=1) > 1]
    if (paired.sum(axis=0) > 0).sum() < 2:
        return None
    values = counts.to_numpy()
    return float(krippendorff.alpha(value_counts=values, level_of_measurement=level))


def accuracy(right: pd.Series, cluster: pd.Series) -> Estimate | None:
    """Estimate the share that is right, by cluster; None if there is nothing to count.

    Wilson's interval for as many independent votes as the clustered ones are worth (the design
    effect of a ratio; Korn & Graubard, 1998), with Student's t for the number of clusters. If all
    are right, or all wrong, votes of one cluster are taken to be as similar as possible (Kish).
    """
    if right.empty:
        return None
    counted = right.groupby(cluster).agg(["size", "sum"])
    n, share = len(right), float(right.mean())
    worth = float(n) if counted["size"].max() == 1 else _effective(counted, share)
    centre = share + _Z**2 / (2 * worth)
    spread = _Z * math.sqrt(share * (1 - share) / worth + (_Z / (2 * worth)) ** 2)
    shrink = 1 + _Z**2 / worth
    return Estimate(
        value=share,
        low=0.0 if share == 0 else (centre - spread) / shrink,
        high=1.0 if share == 1 else (centre + spread) / shrink,
        n=n,
        clusters=len(counted),
    )


def _effective(counted: pd.DataFrame, share: float) -> float:
    """Return how many independent votes clusters are worth: at most all, at least 1.

    ``counted`` holds each cluster's votes (``size``) and right ones (``sum``).
    """
    from scipy.special import stdtrit

    size, clusters = counted["size"], len(counted)
    n = float(size.sum())
    if clusters == 1:
        return 1.0
    if share in (0.0, 1.0):
        worth = n**2 / float((size**2).sum())
    else:
        spread = float(((counted["sum"] - share * size) ** 2).sum()) * clusters / (clusters - 1)
        worth = min(n, share * (1 - share) * n**2 / spread) if spread else n
    return max(1.0, worth * (_Z / float(stdtrit(clusters - 1, 0.975))) ** 2)
