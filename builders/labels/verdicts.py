"""Labels of candidates: votes and readings, deciding by majority, balancing.

The answers are the same few in every row: the steps of a scale, or the labels of a setup.

Two kinds of files are read. A file of *votes* has a line for each vote: the row's id, who voted,
and the vote. A *labels file*, as ``release-probe annotate import`` writes it, has a line for each
row: its id, its answer, and how far the votes agreed.

If a knowledge base does not state the answers and nobody has voted yet, readings replace votes. A
file ``data/readings_NAME.csv`` has a line for each row: the texts of its question, and ``votes``,
the initial of each reader's answer (*x*: the row makes no sense).
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from builders.engine.draw.balanced import ranks_within
from builders.engine.plan import text_keys
from kbprobe.arrays import Bools, Ints
from kbprobe.errors import UsageError
from kbprobe.files import file_sha256
from kbprobe.format.items import LABELS, UNKNOWN
from kbprobe.format.labels import MARKS, LabelVerdict, LabelVote, read_lines
from kbprobe.rng import RandomGenerator

_IDS, _ANNOTATORS, _VOTES = ("id", "item_id"), ("annotator",), ("vote", "answer")
_LISTED = 10

TIE = "two answers have as many votes"
NO_ANSWER = "no vote for an answer"
FEW, SPLIT = "too few votes", "too little agreement"
BALANCE = "left out to balance the answers"


def read_verdicts(
    paths: Sequence[Path], ids: Iterable[str], answers: Sequence[str], min_votes: int
) -> list[LabelVerdict]:
    """Read votes or labels, and decide on each row.

    Args:
        paths: one or more ``.csv``, ``.jsonl`` or ``.parquet`` files, which are combined.
        ids: the ids of all rows.
        answers: the possible answers, in the order in which every row shows them.
        min_votes: rows with fewer votes get no label; ignored if the file has no votes.

    Returns:
        A verdict for each row that the files name, by id.

    Raises:
        UsageError: a file cannot be read or has faulty lines, all of which are named.
    """
    lines = [line for path in paths for line in read_lines(path)]
    names = ", ".join(map(str, paths))
    known, problems = set(ids), list[str]()
    entries: dict[tuple[str, ...], LabelVote | LabelVerdict] = {}
    for place, line in lines:
        try:
            entry = _parsed(line, answers)
            who = (entry.annotator,) if isinstance(entry, LabelVote) else ()
            if entry.id not in known:
                raise ValueError(f"no candidate has the id {entry.id!r}")
            if entries.setdefault((entry.id, *who), entry) is not entry:
                raise ValueError(" by ".join((f"{entry.id!r} is judged a second time", *who)))
        except ValueError as error:
            problems.append(f"{place}: {error}")
    votes = [entry for entry in entries.values() if isinstance(entry, LabelVote)]
    verdicts = [entry for entry in entries.values() if isinstance(entry, LabelVerdict)]
    if votes and verdicts:
        problems.append(f"{names}: some lines are votes, others labels; give one kind")
    if problems:
        raise UsageError(_refusal(names, problems, len(lines)))
    if not lines:
        raise UsageError(f"{names}: there are neither votes nor labels in it")
    by_row: dict[str, list[LabelVote]] = {}
    for vote in votes:
        by_row.setdefault(vote.id, []).append(vote)
    verdicts += [decide(name, cast, min_votes) for name, cast in by_row.items()]
    return sorted(verdicts, key=lambda verdict: verdict.id)


def decide(name: str, votes: Sequence[LabelVote], min_votes: int) -> LabelVerdict:
    """Return the answer with the most votes; none if there is a tie."""
    ranked = Counter(vote.answer for vote in votes if vote.answer >= 0).most_common()
    share = ranked[0][1] / len(votes) if ranked else 0.0
    verdict = LabelVerdict(name, UNKNOWN, share, votes=tuple(votes))
    if len(votes) < min_votes:
        return verdict.left_out(FEW)
    if not ranked:
        return verdict.left_out(NO_ANSWER)
    if len(ranked) > 1 and ranked[1][1] == ranked[0][1]:
        return verdict.left_out(TIE)
    return replace(verdict, answer=ranked[0][0])


def agreed(verdicts: Sequence[LabelVerdict], least: float) -> list[LabelVerdict]:
    """Leave out the rows with less agreement among the votes."""
    return [
        verdict.left_out(SPLIT)
        if verdict.kept and verdict.agreement is not None and verdict.agreement < least
        else verdict
        for verdict in verdicts
    ]


def balanced(
    cell: Ints, answer: Ints, answers: int, most: float, rng: RandomGenerator, identity: Ints
) -> Bools:
    """Choose rows so that no answer is right in more than a share of the rows of any cell.

    As many rows as possible are kept in each cell: each answer keeps at most m rows, with the
    largest possible m. A cell in which too few answers occur is left out entirely.

    Args:
        cell: (rows,) the template family and split.
        answer: (rows,) the answers.
        answers: the number of possible answers.
        most: the largest share; with 1 or more, all rows are kept.
        rng: the random generator.
        identity: (rows,) keys of the random draws.
    """
    if most >= 1:
        return np.ones(cell.size, dtype=np.bool_)
    keep = np.zeros(cell.size, dtype=np.bool_)
    group = cell * answers + answer
    order = np.lexsort((rng.bits(identity), group))
    rank = np.empty_like(order)
    rank[order] = ranks_within(group[order])
    for number in np.unique(cell).tolist():
        inside = cell == number
        counts = np.bincount(answer[inside], minlength=answers)
        caps = np.arange(1, counts.max() + 1)
        left = np.minimum(counts[None, :], caps[:, None]).sum(axis=1)
        fits = caps[caps <= most * left + 1e-9]
        if fits.size:
            keep |= inside & (rank < fits.max())
    return keep


def annotator_names(verdicts: Iterable[LabelVerdict]) -> dict[str, str]:
    """Return an anonymous, numbered name for each annotator."""
    names = sorted({vote.annotator for verdict in verdicts for vote in verdict.votes})
    width = len(str(len(names)))
    return {name: f"annotator {number:0{width}d}" for number, name in enumerate(names, 1)}


def _parsed(line: Mapping[str, Any], answers: Sequence[str]) -> LabelVote | LabelVerdict:
    """Read a line as a vote if it names an annotator, otherwise as a label.

    Raises:
        ValueError: it is neither; the message says why.
    """
    name = _text(line, _IDS)
    if any(line.get(key) is not None for key in _ANNOTATORS):
        vote = next((line[key] for key in _VOTES if line.get(key) is not None), "")
        return LabelVote(name, _text(line, _ANNOTATORS), *_answer(vote, answers))
    if "answer" not in line:
        raise ValueError("it names no annotator, as a vote does, and no answer, as a label does")
    given = line["answer"]
    answer, _ = _answer("none" if given in (UNKNOWN, "-1", "") else given, answers)
    named = line.get("label")
    if named and (named not in answers or answers.index(named) != answer):
        raise ValueError(f"the answer is {answer}, but the label {line['label']!r}")
    agreement = line.get("agreement")
    try:
        share = None if agreement in (None, "") else float(str(agreement))
    except ValueError:
        raise ValueError(f"agreement is {agreement!r}, not a share of the votes") from None
    if share is not None and not 0 <= share <= 1:
        raise ValueError(f"agreement is {agreement!r}, not a share of the votes")
    reason = str(line.get("reason") or "") or ("" if line.get("kept", True) else "not kept")
    if answer < 0:
        reason = reason or NO_ANSWER
    counted = line.get("votes") or []
    if not isinstance(counted, list):
        raise ValueError(f"votes are {counted!r:.60}, not a list")
    votes = tuple(_counted(name, vote) for vote in counted)
    return LabelVerdict(name, answer, share, reason, str(line.get("rule") or "given"), votes)


def _counted(name: str, vote: Any) -> LabelVote:
    """Read one of the votes behind a label."""
    match vote:
        case {"annotator": str(who), "answer": int(answer), "label": str(label)}:
            return LabelVote(name, who, answer, label)
    raise ValueError(f"votes: {vote!r:.60} has no annotator, answer and label")


def _text(line: Mapping[str, Any], keys: Sequence[str]) -> str:
    value = next((line[key] for key in keys if line.get(key)), None)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"no {keys[0]}")
    return value.strip()


def _answer(given: Any, answers: Sequence[str]) -> tuple[int, str]:
    """Read an answer: one of the words, its letter (A for the first), or its integer index."""
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(answers):
        return given, answers[given]
    text = str(given).strip()
    if text.lower() in answers:
        return answers.index(text.lower()), text.lower()
    letters = LABELS[: len(answers)]
    if text.upper() in letters:
        index = letters.index(text.upper())
        return index, answers[index]
    if text.lower() in MARKS:
        return UNKNOWN, text.lower()
    words = ", ".join((*answers, f"A to {letters[-1]}", *MARKS))
    raise ValueError(f"{text!r} is none of {words}")


def _refusal(names: str, problems: Sequence[str], lines: int) -> str:
    shown = [f"  {problem}" for problem in problems[:_LISTED]]
    if len(problems) > _LISTED:
        shown.append(f"  and {len(problems) - _LISTED:,} more")
    remedy = (
        "Ids are those of the candidates: the labelled probe is built with their seed and options."
        if any("no candidate" in problem for problem in problems)
        else "Correct them."
    )
    start = f"{names}: {len(problems):,} of {lines:,} lines cannot be used:"
    return "\n".join([start, *shown, remedy])


def files_digest(paths: Iterable[str]) -> str:
    """Return the combined sha256 of label files.

    Raises:
        UsageError: there is no such file; the message names ``--labels``.
    """
    digest = hashlib.sha256()
    for path in paths:
        try:
            digest.update(bytes.fromhex(file_sha256(Path(path))))
        except OSError as error:
            raise UsageError(f"--labels {path}: {error.strerror}") from None
    return digest.hexdigest()


def about_votes(
    verdicts: Sequence[LabelVerdict], source: str, annotator_kind: str = "human"
) -> dict[str, Any]:
    """Describe the votes on the rows of a labelled probe, for its manifest and card.

    Args:
        verdicts: those on all judged rows; except in the numbers of rows and votes, rows left out
            to balance the answers count as kept.
        source: where the answers come from, in words.
        annotator_kind: who voted: people, or language models.
    """
    labels = sum(verdict.kept for verdict in verdicts)
    about: dict[str, Any] = {"source": source, "annotator_kind": annotator_kind, "labels": labels}
    without = sum(verdict.reason not in ("", BALANCE) for verdict in verdicts)
    about["dropped_share"] = round(without / len(verdicts), 4)
    if (alpha := nominal_alpha([verdict.votes for verdict in verdicts])) is not None:
        about["krippendorff_alpha"] = round(alpha, 4)
    annotators = len(annotator_names(verdicts))
    verdicts = [verdict for verdict in verdicts if verdict.kept]
    shares = [verdict.agreement for verdict in verdicts if verdict.agreement is not None]
    counts = [len(verdict.votes) for verdict in verdicts]
    if shares:
        about["mean_agreement"] = round(sum(shares) / len(shares), 4)
        about["unanimous"] = sum(share == 1 for share in shares)
    if annotators:
        about["annotators"] = annotators
        about["mean_votes"] = round(sum(counts) / len(counts), 2) if counts else 0.0
    return about


def nominal_alpha(rows: Iterable[Sequence[LabelVote]]) -> float | None:
    """Return Krippendorff's alpha of the votes on rows; None if it is undefined.

    Each mark is a separate answer; rows with a single vote carry no information.
    """
    together: Counter[str] = Counter()
    differing = 0.0
    for votes in rows:
        if len(votes) > 1:
            counts = Counter(vote.label for vote in votes)
            alike = sum(count * (count - 1) for count in counts.values())
            differing += len(votes) - alike / (len(votes) - 1)
            together += counts
    total = together.total()
    by_chance = total**2 - sum(count**2 for count in together.values())
    return 1 - (total - 1) * differing / by_chance if by_chance else None


LANGUAGE_MODEL = "language model"
"""What the manifest calls the annotators."""

NONSENSE = "nonsense"
"""How an *x* is spelled out, and the reason why such a row is left out."""

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

    def verdicts(
        self, ids: Sequence[str], keys: Ints, answers: Sequence[str]
    ) -> list[LabelVerdict]:
        """Return verdicts on the rows that were read.

        Args:
            ids: (rows,) the rows' ids.
            keys: (rows,) the keys of their questions.
            answers: the possible answers; no two begin with the same letter.
        """
        initials = {answer[0]: index for index, answer in enumerate(answers)}
        verdicts = []
        for name, key in zip(ids, keys.tolist(), strict=True):
            votes = [
                LabelVote(name, f"reader {number}", initials[letter], answers[initials[letter]])
                if letter in initials
                else LabelVote(name, f"reader {number}", UNKNOWN, NONSENSE)
                for number, letter in enumerate(self._by_key.get(key, ""), 1)
            ]
            if votes:
                senseless = any(vote.answer == UNKNOWN for vote in votes)
                verdict = decide(name, votes, 1)
                verdicts.append(verdict.left_out(NONSENSE) if senseless else verdict)
        return sorted(verdicts, key=lambda verdict: verdict.id)

    def source(self, calibration: str) -> str:
        """Return where answers come from; ``calibration``: how far readings agree with people."""
        readers = max(map(len, self.votes.values()))
        return SOURCE.format(readers=readers, calibration=calibration)


NONE = Readings({})


@cache
def readings(probe: str, package: str) -> Readings:
    """Return the readings shipped with a package."""
    file = resources.files(package).joinpath("data", f"readings_{probe}.csv")
    _, *rows = csv.reader(file.read_text("utf-8").splitlines())
    return Readings({tuple(texts): votes for *texts, votes in rows})
