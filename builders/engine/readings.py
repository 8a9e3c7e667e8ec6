"""Readings: what language models, asked blind, answered to the rows of default builds.

Where a knowledge base does not state the answers and nobody has voted yet, readings stand in for
votes. A file ``data/readings_NAME.csv`` has a line for each row: the texts of its question, and
``votes``, the initial of each reader's answer (*x*: the row makes no sense).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources

from builders.engine.labels import Verdict, Vote, decide
from builders.engine.plan import text_keys
from kbprobe.arrays import Ints
from kbprobe.format.items import UNKNOWN

LANGUAGE_MODEL = "language model"
"""What the manifest calls the annotators."""

NONSENSE = "nonsense"
"""How an *x* is spelled, and why such a row is left out."""

SOURCE = (
    "No person has voted on these rows. A language model read each of them {readers} times, "
    "independently and without its answer; the answer is what most readings said, and rows without "
    "a majority, or that any reading called nonsense, are left out. Readings agree with each other "
    "more than people do. {calibration} People's votes replace them: `release-probe annotate`."
)


@dataclass(frozen=True)
class Readings:
    """The readings of a probe's rows: texts of the question -> the readers' initials."""

    votes: Mapping[tuple[str, ...], str]

    @cached_property
    def _by_key(self) -> Mapping[int, str]:
        if not self.votes:
            return {}
        keys = text_keys(*zip(*self.votes, strict=True)).tolist()
        return dict(zip(keys, self.votes.values(), strict=True))

    def verdicts(self, ids: Sequence[str], keys: Ints, answers: Sequence[str]) -> list[Verdict]:
        """Decide on the rows that were read.

        Args:
            ids: (rows,) the rows' ids.
            keys: (rows,) the keys of their questions.
            answers: what may be answered; no two begin with the same letter.
        """
        initials = {answer[0]: at for at, answer in enumerate(answers)}
        found = []
        for name, key in zip(ids, keys.tolist(), strict=True):
            votes = [
                Vote(name, f"reader {at}", initials[said], answers[initials[said]])
                if said in initials
                else Vote(name, f"reader {at}", UNKNOWN, NONSENSE)
                for at, said in enumerate(self._by_key.get(key, ""), 1)
            ]
            if votes:
                senseless = any(vote.answer == UNKNOWN for vote in votes)
                verdict = decide(name, votes, 1)
                found.append(verdict.left_out(NONSENSE) if senseless else verdict)
        return sorted(found, key=lambda verdict: verdict.id)

    def source(self, calibration: str) -> str:
        """Say where the answers come from; ``calibration``: how far readings agree with people."""
        readers = max(map(len, self.votes.values()))
        return SOURCE.format(readers=readers, calibration=calibration)


NONE = Readings({})


@cache
def readings(probe: str, package: str) -> Readings:
    """Return the readings that come with a package."""
    file = resources.files(package).joinpath("data", f"readings_{probe}.csv")
    _, *rows = csv.reader(file.read_text("utf-8").splitlines())
    return Readings({tuple(texts): votes for *texts, votes in rows})
