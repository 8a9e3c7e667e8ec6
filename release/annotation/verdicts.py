"""From votes to labels, by the rules of the papers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbprobe.errors import UsageError
from release.annotation.options import VoteOptions
from release.annotation.votes import Vote

TOO_FEW = "too few votes"
NO_LABEL = "no answer has enough votes"
NONSENSE = "found senseless"
OTHER = "the votes contradict the knowledge base"


@dataclass(frozen=True)
class Rule:
    """How many votes an answer needs to become the label.

    ``majority``: more than half of the votes (two of three annotators, three of five), the rule of
    oLMpics and Kim et al. (2019). ``unanimous``: all. ``at-least-N``: N, and more than any other
    answer has. Marks (none, two, nonsense) are votes for no answer: they count among the votes and
    make no label.
    """

    name: str

    @classmethod
    def parse(cls, name: str) -> Rule:
        """Read a rule; UsageError if there is none of that name."""
        if name in ("majority", "unanimous") or re.fullmatch(r"at-least-[1-9]\d*", name):
            return cls(name)
        raise UsageError(
            f"--rule {name}: must be majority, unanimous or at-least-N (such as at-least-3)."
        )

    def label(self, answers: Iterable[int]) -> int:
        """Return the answer that the votes make the label, -1 for none.

        >>> Rule("majority").label([2, 2, -1]), Rule("majority").label([2, 2, 1, 0])
        (2, -1)
        >>> Rule("at-least-2").label([2, 2, 1, 0]), Rule("at-least-2").label([2, 2, 1, 1])
        (2, -1)
        """
        given = list(answers)
        ranked = Counter(answer for answer in given if answer >= 0).most_common(2)
        if not ranked:
            return -1
        best, votes = ranked[0]
        if len(ranked) == 2 and ranked[1][1] == votes:
            return -1
        return best if votes >= self._needed(len(given)) else -1

    def _needed(self, votes: int) -> int:
        if self.name == "majority":
            return votes // 2 + 1
        return votes if self.name == "unanimous" else int(self.name.rpartition("-")[2])


@dataclass(frozen=True)
class Verdict:
    """The label that the votes on a row make.

    Attributes:
        id: the row.
        answer: the label, an index in the row's choices; -1 for none.
        reason: why the row is not in the gold standard; empty if it is.
        agreement: share of the votes for the label, or else for the leading answer.
        votes: all votes on it.
    """

    id: str
    answer: int
    reason: str
    agreement: float
    votes: tuple[Vote, ...]

    @property
    def kept(self) -> bool:
        """Whether the row is in the gold standard."""
        return not self.reason

    def as_label(
        self, texts: Sequence[str], rule: Rule, names: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return the line of the labels file (:mod:`kbprobe.format.labels`).

        ``texts`` are the row's choices, ``names`` those of annotators in the file.
        """
        return {
            "id": self.id,
            "answer": self.answer,
            "label": texts[self.answer] if self.answer >= 0 else "",
            "kept": self.kept,
            "reason": self.reason,
            "agreement": round(self.agreement, 4),
            "rule": rule.name,
            "votes": [
                {
                    "annotator": names[vote.annotator],
                    "answer": vote.answer,
                    "label": texts[vote.answer] if vote.answer >= 0 else vote.said,
                }
                for vote in sorted(self.votes, key=lambda vote: names[vote.annotator])
            ],
        }


def decide(
    votes: Sequence[Vote], rows: Mapping[str, Mapping[str, Any]], options: VoteOptions
) -> list[Verdict]:
    """Decide on every row that was shown as an item, in the order of ``rows``.

    Args:
        votes: votes on items; none on repeats and checks.
        rows: the rows shown as items, by id; those without votes are dropped as having too few.
        options: ``keep`` is not "auto". Kim et al. keep rows whose votes agree with the answer they
            were built with for acceptability, and take the voted label for pairs of sentences.
    """
    rule = Rule.parse(options.rule)
    by_row: dict[str, list[Vote]] = {row: [] for row in rows}
    for vote in votes:
        by_row[vote.item.id].append(vote)
    return [_verdict(row, by_row[row], rows[row]["answer"], rule, options) for row in rows]


def _verdict(row: str, votes: list[Vote], built: int, rule: Rule, options: VoteOptions) -> Verdict:
    answers = [vote.answer for vote in votes]
    label = rule.label(answers)
    leading = Counter(answer for answer in answers if answer >= 0).most_common(1)
    agreement = leading[0][1] / len(votes) if leading else 0.0
    senseless = sum(vote.said == "nonsense" for vote in votes)
    reason = ""
    if len(votes) < options.min_votes:
        label, reason = -1, TOO_FEW
    elif options.max_nonsense is not None and senseless > options.max_nonsense:
        label, reason = -1, NONSENSE
    elif label < 0:
        reason = NO_LABEL
    elif options.keep == "agreed" and built >= 0 and label != built:
        reason = OTHER
    return Verdict(row, label, reason, agreement, tuple(votes))
