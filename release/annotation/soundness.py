"""Soundness: how many of a probe's rows readers find right, from filled-in reading sheets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.sheets import Key
from kbprobe.intervals import Estimate
from release.annotation.options import VoteOptions
from release.annotation.report import accuracy
from release.annotation.round_trip import read_back
from release.annotation.votes import Vote, problem_list
from release.cards import record

LEAST_SOUND = 0.9
"""A probe with a smaller share of sound judgements gets a warning."""

UNANSWERED = "unanswered"
OTHER = "another answer"
_RATING = re.compile(r"([1-5])(?:\.0+)?")
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Unsound(BaseModel):
    """A row that a reader did not find sound, and what the reader said instead."""

    id: str
    item_id: str
    reader: str
    said: str


class Soundness(BaseModel):
    """The readers' findings.

    A judgement is one reader's of one row. It is sound if the reader gave the answer that the row
    was built with: rows left empty, and marks (none, two, nonsense), are not. Intervals have
    clusters as their units (:func:`release.annotation.report.accuracy`).

    Attributes:
        probe, config, split: what was read.
        sound: share of all judgements.
        by_family: distractor family -> share of its judgements.
        sound_to_all: rows that every reader finds sound.
        said: description of other answers -> number of judgements.
        natural: mean rating of the wording, 1 to 5; None without ratings.
        natural_share: share of the ratings that are 4 or 5.
        ratings: how many ratings there are.
        unsound: the judgements that are not sound, by row.
    """

    probe: str
    config: str
    split: str
    readers: int
    rows: int
    sound: Estimate
    by_family: dict[str, Estimate]
    sound_to_all: int
    said: dict[str, int]
    natural: float | None
    natural_share: float | None
    ratings: int
    unsound: list[Unsound]

    @property
    def summary(self) -> str:
        """The reading in one line, as shown on the card and by the check."""
        few = self.readers < len(_NUMBERS)
        number = _NUMBERS[self.readers] if few else f"{self.readers:,}"
        who = f"{number} reader{'s' * (self.readers != 1)}"
        return f"read by {who}, {self.rows:,} rows, {_sound(self.sound)}"


def _sound(share: Estimate) -> str:
    """Return a share and its interval in whole per cent: ``97% sound (88-99)``."""
    return f"{share.value:.0%} sound ({100 * share.low:.0f}-{100 * share.high:.0f})"


def score(
    folder: str | Path, votes: Sequence[str | Path], key: str | Path, *, skip_bad: bool = False
) -> Soundness:
    """Score filled-in reading sheets of a built probe.

    Args:
        folder: the probe that was read.
        votes: the sheets, or other files that :func:`release.annotation.votes.read_votes` reads.
        key: the ``key.json`` that was written with the sheets.
        skip_bad: leave out bad votes instead of failing.

    Raises:
        UsageError: the key is missing, or of another build.
        KbprobeError: any vote is malformed, unknown, duplicated or contradictory; the message lists
            all. With ``skip_bad``, only if none is left.
    """
    path, folder = Path(key), Path(folder)
    shown, rows, matched, problems = read_back(
        folder, [Path(name) for name in votes], path, VoteOptions()
    )
    items = {item.item_id: item for item in shown.items if item.kind == "item"}
    if unlabelled := [item.id for item in items.values() if rows[item.id]["answer"] < 0]:
        raise UsageError(
            f"{unlabelled[0]} has no answer to compare with: rows that wait for labels are "
            "annotated with annotate export and annotate import."
        )
    problems += [
        f"{vote.place}: natural is {vote.natural!r}, not a number from 1 to 5"
        for vote in matched.votes
        if vote.natural and not _RATING.fullmatch(vote.natural)
    ]
    if problems and not skip_bad:
        raise KbprobeError(problem_list(problems))
    given = {
        (vote.annotator, vote.item.item_id): vote
        for vote in matched.votes
        if vote.item.item_id in items
    }
    if not given:
        raise KbprobeError("\n  ".join(["No answer was found", *problems]))
    return _soundness(shown, rows, given)


def _soundness(
    key: Key, rows: Mapping[str, Mapping[str, Any]], given: Mapping[tuple[str, str], Vote]
) -> Soundness:
    import pandas as pd

    readers = sorted({reader for reader, _ in given})
    batches = {(vote.annotator, vote.item.batch) for vote in given.values()}
    judged, unsound = [], []
    said: Counter[str] = Counter()
    for item in key.items:
        row = rows[item.id]
        # A reader may have had only one of several sheets; only its empty rows are unanswered.
        for reader in readers if item.kind == "item" else ():
            if (reader, item.batch) not in batches:
                continue
            vote = given.get((reader, item.item_id))
            sound = vote is not None and vote.answer == row["answer"]
            judged.append((item.id, sound, row["cluster"] or item.id, row["distractor_family"]))
            if sound:
                continue
            other = UNANSWERED if vote is None else vote.mark if vote.answer < 0 else OTHER
            said[other] += 1
            unsound.append(Unsound(id=item.id, item_id=item.item_id, reader=reader, said=other))
    table = pd.DataFrame(judged, columns=["row", "sound", "cluster", "family"])
    rated = (_RATING.fullmatch(vote.natural) for vote in given.values())
    ratings = [int(found[1]) for found in rated if found]
    whole = accuracy(table["sound"], table["cluster"])
    assert whole is not None, "there is at least one judgement"
    by_family = {
        str(name): share
        for name, cell in table.groupby("family")
        if (share := accuracy(cell["sound"], cell["cluster"])) is not None
    }
    return Soundness(
        probe=key.probe,
        config=key.config,
        split=key.split,
        readers=len(readers),
        rows=int(table["row"].nunique()),
        sound=whole,
        by_family=by_family,
        sound_to_all=int(table.groupby("row")["sound"].all().sum()),
        said=dict(sorted(said.items())),
        natural=sum(ratings) / len(ratings) if ratings else None,
        natural_share=sum(rating >= 4 for rating in ratings) / len(ratings) if ratings else None,
        ratings=len(ratings),
        unsound=unsound,
    )


def soundness_text(found: Soundness, most: int = 20) -> str:
    """Describe a reading in words, with at most ``most`` unsound judgements."""
    lines = [f"{found.probe}, split {found.split}: {found.summary}"]
    for name, share in found.by_family.items():
        lines.append(f"  {name}: {_sound(share)}, {share.n:,} judgements")
    lines.append(f"sound to every reader: {found.sound_to_all:,} of {found.rows:,} rows")
    if found.said:
        lines.append("not sound: " + ", ".join(f"{what} {n:,}" for what, n in found.said.items()))
    if found.natural is not None:
        lines.append(f"natural, from 1 to 5: {_ratings(found)}")
    lines += [
        f"  {row.item_id} (row {row.id}), {row.reader}: {row.said}" for row in found.unsound[:most]
    ]
    if len(found.unsound) > most:
        lines.append(f"  ... and {len(found.unsound) - most:,} more (--json has all)")
    return "\n".join(lines)


def soundness_card(found: Soundness) -> str:
    """Describe a reading for the card, in Markdown."""
    lines = [
        "A reader finds a row sound who gives the answer that it was built with, and does not say "
        "that none fits (none), that two do (two), or that it makes no sense (nonsense). The rows "
        f"are a random sample of {found.split}. {found.sound_to_all:,} of {found.rows:,} are sound "
        "to every reader. Whether readers were people or language models is not recorded. "
        "Intervals of 95%, clusters as units.",
        "",
        "| distractors | judgements | sound | from | to |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, one in {"all": found.sound, **found.by_family}.items():
        family = name.replace("|", "\\|")
        lines.append(f"| {family} | {one.n:,} | {one.value:.1%} | {one.low:.1%} | {one.high:.1%} |")
    if found.said:
        said = ", ".join(f"{what} {n:,}" for what, n in found.said.items())
        lines += ["", f"Not sound: {said}."]
    if found.natural is not None:
        lines += ["", f"Wording, rated from 1 to 5: {_ratings(found)}."]
    return "\n".join(lines)


def _ratings(found: Soundness) -> str:
    return (
        f"{found.natural:.1f} on average, {found.natural_share:.0%} of {found.ratings:,} ratings "
        "are 4 or 5"
    )


def write_soundness(folder: str | Path, found: Soundness) -> None:
    """Write a reading into a built probe's card and manifest, naming no reader and no row.

    Raises:
        UsageError, KbprobeError, OSError: see :func:`release.cards.record`.
    """
    about = found.model_dump(mode="json", exclude={"unsound", "probe"})
    about["passed"] = found.sound.value >= LEAST_SOUND
    record(folder, "reading", found.summary, about, soundness_card(found))
