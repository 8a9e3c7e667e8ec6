"""The summary as a table on a terminal."""

from __future__ import annotations

from evaluation.studies.revisions.types import Change, RevisionsSummary
from evaluation.studies.revisions.words import remarks, revision_name, sentences, title


def show(summary: RevisionsSummary) -> None:
    """Print accuracy and changes of each revision, in percent and points."""
    from evaluation.results.console import print_rows, wide_console
    from evaluation.results.summary import percent

    console = wide_console()
    for one in summary.models:
        console.print(f"\n{title(one)} ({one.split}): {one.rows:,} questions")
        rows = [
            (
                revision_name(point),
                percent(point.accuracy),
                _points(point.since_previous),
                _points(point.since_first),
                _share(point.since_previous, "became_right"),
                _share(point.since_previous, "became_wrong"),
                f"{point.learnt_for_good:,}",
                f"{point.forgotten_for_good:,}",
            )
            for point in one.points
        ]
        heads = ("accuracy", "since previous", "since first", "became right", "became wrong")
        print_rows(("revision", *heads, "learnt for good", "forgotten for good"), rows, names=1)
        for line in (*sentences(one), *remarks(one)):
            console.print(f"  {line}", soft_wrap=True)


def _points(change: Change | None) -> str:
    from evaluation.results.summary import points

    return "-" if change is None else points(change.difference)


def _share(change: Change | None, name: str) -> str:
    return "-" if change is None else f"{100 * getattr(change, name):.1f}"
