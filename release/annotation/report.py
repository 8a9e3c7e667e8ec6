"""The result of an import: agreement, human accuracy, annotators, and what was dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel

from kbprobe.errors import require
from kbprobe.format.labels import LabelVerdict
from kbprobe.intervals import Estimate, effective_rows, wilson
from release.annotation.votes import Vote

if TYPE_CHECKING:
    import pandas as pd


class Agreement(BaseModel):
    """Agreement among annotators.

    Attributes:
        pairwise: share of pairs of votes on one row that agree, averaged over rows (rows with
            one vote or none left out); None if there is no pair.
        alpha: Krippendorff's alpha, nominal: 1 is perfect agreement, 0 agreement by chance. Marks
            count as separate answers. None if undefined: no pairs, or only one answer.
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

    Answers of different rows are compared by text if all rows have the same choices, and otherwise
    by their position in the row, which is random. ``rows`` are those voted on, by id; ``scale``
    says whether votes are points of a scale.

    Raises:
        MissingDependencyError: the package krippendorff is not installed.
    """
    import pandas as pd

    choices = {row: rows[row]["choices"]["text"] for row in {vote.item.id for vote in votes}}
    fixed = len({frozenset(texts) for texts in choices.values()}) == 1

    def answer(vote: Vote) -> str:
        if vote.answer < 0:
            return f"mark {vote.mark}"
        return str(choices[vote.item.id][vote.answer] if fixed else vote.answer)

    given = pd.DataFrame(
        [(vote.item.id, answer(vote), vote.mark, vote.answer >= 0) for vote in votes],
        columns=["row", "answer", "point", "chosen"],
    )
    # Shape [rows, answers that occur]; points of a scale are in their order.
    counts = pd.crosstab(given["row"], given["answer"])
    points = given[given["chosen"]] if scale else given[:0]
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
    """Return Krippendorff's alpha; None if it is undefined."""
    require("krippendorff", "release", "Krippendorff's alpha")
    import krippendorff

    paired = counts[counts.sum(axis=1) > 1]
    if (paired.sum(axis=0) > 0).sum() < 2:
        return None
    values = counts.to_numpy()
    return float(krippendorff.alpha(value_counts=values, level_of_measurement=level))


def accuracy(right: pd.Series, cluster: pd.Series) -> Estimate | None:
    """Estimate the share of right answers, by cluster; None if there is nothing to count.

    Wilson's interval for as many independent votes as the clustered ones are worth (the design
    effect of a ratio; Korn & Graubard, 1998), with Student's t for the number of clusters. If all
    are right, or all wrong, votes of one cluster are taken to be as similar as possible (Kish).
    """
    if right.empty:
        return None
    counted = right.groupby(cluster).agg(["size", "sum"]).to_numpy()
    sizes, sums = counted.T.astype(float)
    n, share = len(right), float(right.mean())
    alone = sizes.max() == 1
    low, high = wilson(share, n if alone else effective_rows(sizes, sums))
    method = "wilson" if alone else "wilson, effective n"
    return Estimate(value=share, low=low, high=high, n=n, method=method)


class Annotator(BaseModel):
    """One annotator.

    Attributes:
        votes: votes on items, without checks and repeats.
        checks: checks answered.
        checks_right: of these, how many with the known answer.
        repeats: items answered twice.
        repeats_same: of these, how many with the same answer.
        agreed: share of their votes on items that agree with the label of the row, over rows
            that got one; None if there is none.
        failed: whether they got too few checks right.
        excluded: whether their votes were left out for that reason.
    """

    name: str
    votes: int
    checks: int
    checks_right: int
    repeats: int
    repeats_same: int
    agreed: float | None
    failed: bool
    excluded: bool


class ImportReport(BaseModel):
    """The result of an import. Excluded annotators only count in ``annotators``.

    Attributes:
        split: the split annotated.
        rule: the rule by which votes became labels.
        rows: rows shown as items.
        votes: votes on them.
        marks: of these, how many say none, two or nonsense.
        votes_per_row: how many rows have how many votes.
        agreement: of annotators with each other.
        vote_accuracy: share of single votes that are the answer the row was built with.
        label_accuracy: share of rows whose label is that answer, over rows with enough votes; a
            row whose votes make no label counts as wrong.
        accuracy_by: the votes' accuracy by column (hops, distractor_family) and value.
        kept: rows in the gold standard.
        dropped: rows that are not, by reason.
        missing: places where an answer is missing.
        left_out: problems with votes that were left out, with file and row.
    """

    probe: str
    split: str
    rule: str
    rows: int
    votes: int
    marks: dict[str, int]
    votes_per_row: dict[int, int]
    agreement: Agreement
    vote_accuracy: Estimate | None
    label_accuracy: Estimate | None
    accuracy_by: dict[str, dict[str, Estimate]]
    kept: int
    dropped: dict[str, int]
    annotators: list[Annotator]
    missing: list[str]
    left_out: list[str]


def failed_checks(votes: Sequence[Vote], share: float) -> set[str]:
    """Return the annotators who got less than this share of their checks right."""
    checks = [vote for vote in votes if vote.item.kind == "check"]
    answered = Counter(vote.annotator for vote in checks)
    right = Counter(vote.annotator for vote in checks if vote.answer == vote.item.answer)
    return {name for name, count in answered.items() if right[name] < share * count}


def describe_annotators(
    votes: Sequence[Vote], verdicts: Sequence[LabelVerdict], failed: set[str], excluded: set[str]
) -> list[Annotator]:
    """Describe everyone who voted, including those excluded."""
    label = {verdict.id: verdict.answer for verdict in verdicts}
    found = []
    for name in sorted({vote.annotator for vote in votes}):
        own = [vote for vote in votes if vote.annotator == name]
        first = {vote.item.id: vote for vote in own if vote.item.kind == "item"}
        checks = [vote for vote in own if vote.item.kind == "check"]
        repeats = [vote for vote in own if vote.item.kind == "repeat" and vote.item.id in first]
        judged = [vote for vote in first.values() if label.get(vote.item.id, -1) >= 0]
        agreed = sum(vote.answer == label[vote.item.id] for vote in judged)
        found.append(
            Annotator(
                name=name,
                votes=len(first),
                checks=len(checks),
                checks_right=sum(vote.answer == vote.item.answer for vote in checks),
                repeats=len(repeats),
                repeats_same=sum(
                    vote.judgement == first[vote.item.id].judgement for vote in repeats
                ),
                agreed=agreed / len(judged) if judged else None,
                failed=name in failed,
                excluded=name in excluded,
            )
        )
    return found


def summarise(
    votes: Sequence[Vote],
    verdicts: Sequence[LabelVerdict],
    rows: Mapping[str, Mapping[str, Any]],
    enough: int,
    scale: bool,
) -> dict[str, Any]:
    """Return the parts of an :class:`ImportReport` that votes by annotators not excluded give.

    Accuracy is over ``rows`` built with an answer; only labels with ``enough`` votes are judged.
    """
    of_votes = _judged([(vote.item.id, vote.answer) for vote in votes], rows)
    enough_votes = [verdict for verdict in verdicts if len(verdict.votes) >= enough]
    of_labels = _judged([(verdict.id, verdict.answer) for verdict in enough_votes], rows)
    accuracy_by = {
        column: {
            str(value): accuracy(cell["right"], cell["cluster"])
            for value, cell in of_votes.groupby(column)
        }
        for column in ("hops", "distractor_family")
    }
    return {
        "rows": len(verdicts),
        "votes": len(votes),
        "marks": _counted(vote.mark for vote in votes if vote.answer < 0),
        "votes_per_row": _counted(len(verdict.votes) for verdict in verdicts),
        "agreement": agreement(votes, rows, scale),
        "vote_accuracy": accuracy(of_votes["right"], of_votes["cluster"]),
        "label_accuracy": accuracy(of_labels["right"], of_labels["cluster"]),
        "accuracy_by": accuracy_by,
        "kept": sum(verdict.kept for verdict in verdicts),
        "dropped": _counted(verdict.reason for verdict in verdicts if not verdict.kept),
    }


def _counted(values: Any) -> dict[Any, int]:
    return dict(sorted(Counter(values).items()))


def _judged(
    answers: Sequence[tuple[str, int]], rows: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    """Compare answers with those that rows were built with, if any."""
    import pandas as pd

    columns = ["right", "cluster", "hops", "distractor_family"]
    known = [(rows[row], row, answer) for row, answer in answers if rows[row]["answer"] >= 0]
    return pd.DataFrame(
        [
            (answer == row["answer"], row["cluster"] or name, row["hops"], row["distractor_family"])
            for row, name, answer in known
        ],
        columns=columns,
    )


def report_text(report: ImportReport, most: int = 10) -> str:
    """Describe a report in words, with at most ``most`` places of each kind."""
    per_row = (f"{votes} ({rows:,} rows)" for votes, rows in report.votes_per_row.items())
    lines = [
        f"{report.probe}, split {report.split}: {report.votes:,} votes on {report.rows:,} rows "
        f"by {len(report.annotators)} annotators",
        f"votes per row: {', '.join(per_row)}",
    ]
    if report.marks:
        lines.append("marks: " + ", ".join(f"{m} {n:,}" for m, n in report.marks.items()))
    found = report.agreement
    if found.pairwise is not None:
        alpha = "not defined" if found.alpha is None else f"{found.alpha:.3f}"
        ordinal = "" if found.alpha_ordinal is None else f", on the scale {found.alpha_ordinal:.3f}"
        lines.append(
            f"agreement: {found.pairwise:.1%} of pairs, Krippendorff's alpha {alpha}{ordinal}"
        )
    for name, cell in (
        ("single votes", report.vote_accuracy),
        (f"labels ({report.rule})", report.label_accuracy),
    ):
        if cell is not None:
            interval = f"{100 * cell.low:.1f}-{100 * cell.high:.1f}, n {cell.n:,}"
            lines.append(f"human accuracy of {name}: {cell.value:.1%} ({interval})")
    for column, cells in report.accuracy_by.items():
        if len(cells) > 1:
            shown = (
                f"{value} {cell.value:.1%} ±{50 * (cell.high - cell.low):.1f}"
                for value, cell in cells.items()
            )
            lines.append(f"  by {column}: {', '.join(shown)}")
    lines.append(f"gold standard: {report.kept:,} rows kept")
    lines += [f"  dropped, {reason}: {rows:,}" for reason, rows in report.dropped.items()]
    lines += ["annotators:", *(_annotator_line(annotator) for annotator in report.annotators)]
    for name, places in (("missing", report.missing), ("left out", report.left_out)):
        lines += [f"{name}: {len(places):,}"] if places else []
        lines += [f"  {place}" for place in places[:most]]
        if len(places) > most:
            lines.append(f"  ... and {len(places) - most:,} more (--json has all)")
    return "\n".join(lines)


def _annotator_line(annotator: Annotator) -> str:
    parts = [f"{annotator.votes:,} votes"]
    if annotator.agreed is not None:
        parts.append(f"{annotator.agreed:.0%} agree with the label")
    if annotator.checks:
        parts.append(f"{annotator.checks_right} of {annotator.checks} checks right")
    if annotator.repeats:
        parts.append(f"{annotator.repeats_same} of {annotator.repeats} repeats the same")
    if annotator.failed:
        parts.append("EXCLUDED" if annotator.excluded else "FAILED THE CHECKS (--exclude-failing)")
    return f"  {annotator.name}: {', '.join(parts)}"
