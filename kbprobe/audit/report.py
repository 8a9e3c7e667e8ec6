"""The audit that ends every build: its report, and what it means.

In a sound probe all baselines are at chance level, over all rows and within each distractor family.
A baseline far *below* chance is as bad as one above: a trained model can learn to invert it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbprobe.arrays import Bools, Ints, mask_at
from kbprobe.audit.baselines import WORD_TOLERANCE, BuildRows, baselines, giveaways
from kbprobe.audit.verdicts import (
    ALL,
    FEW_ROWS,
    FEWEST_ROWS,
    MARGIN,
    AuditTable,
    Bar,
    Line,
    commonest,
    judge,
)
from kbprobe.format.manifest import MOST_SIMILAR, BaselineCell
from kbprobe.format.setups import SPLITS

SHOWN = 0.0005
"""Distance from chance above which accuracy is shown by family: it does not round to chance."""


@dataclass(frozen=True)
class Totals:
    """Counts over all rows, rather than over the sample of an audit.

    Attributes:
        positions: how often each position is right.
        leakage: the overlap of train with validation and test.
    """

    positions: list[float]
    leakage: dict[str, int]

    @classmethod
    def of(
        cls, width: int, answer: Ints, split: Ints, cluster: Ints, question: Ints, gold: Ints
    ) -> Totals:
        """Count, given parallel arrays over all rows."""
        positions = np.bincount(answer, minlength=width) / answer.size
        leakage = _leakage(split, cluster, question, gold)
        return cls([float(share) for share in positions], leakage)


def audit(rows: BuildRows, totals: Totals) -> dict[str, Any]:
    """Run every baseline; return a JSON-ready report.

    The report holds ``chance``; ``constant_choices``: whether all rows choose among the same few
    answers, which decides what the baselines look at; ``baselines``: name -> family (``all`` among
    them) -> ``{accuracy, low, high, rows, verdict}``; ``picks``: what each of them picks;
    ``positions``: how often each position is right; ``leakage``: what train and test share;
    ``oracles``: empty, for what the builder knows of partial knowledge; ``giveaways``: what the
    question shows -> ``{golds, distractors, rows}``: how many hold it; ``bar``: how far off chance
    is too far, in words; ``flags``: the verdicts that are not ok.

    Where annotators left some answers more common than others, baselines are compared with the most
    common one, and not flagged by family, since the family of a row largely determines its answer.

    Args:
        rows: at least those of the sample.
        totals: counts over all rows of the build.
    """
    scored = rows.scored
    chance = 1.0 / rows.choices.shape[1]
    guess = commonest(rows.answer[scored]) if rows.natural else chance
    report: dict[str, Any] = {
        "chance": chance,
        "constant_choices": rows.partial is not None,
        "scored_split": SPLITS[rows.sample.split],
        "scored_rows": int(scored.size),
        "fitted_rows": int(rows.train.size),
        "baselines": {},
        "picks": {},
        "positions": totals.positions,
        "leakage": totals.leakage,
        "giveaways": {},
        "oracles": {},
        "bar": _bar_in_words(rows, guess),
        "flags": [],
    }
    for shortcut in baselines(rows):
        bar = Bar(chance, shortcut.tolerance, guess)
        if rows.partial is None:
            bar = Bar(chance, whole_interval=True)
        cells = list(judge(rows, shortcut, bar))
        report["picks"][shortcut.name] = shortcut.picks
        report["baselines"][shortcut.name] = {cell.family: cell.as_dict() for cell in cells}
        report["flags"] += [
            f"{shortcut.name} is {cell.verdict} on {cell.family}: {cell.accuracy.value:.1%}"
            for cell in cells
            # A single family is the same as all rows.
            if cell.verdict in ("high", "low")
            and (cell.family == ALL or (len(cells) > 2 and not rows.natural))
        ]
    if rows.partial is None:
        _add_giveaways(report, rows)
    return report


def _add_giveaways(report: dict[str, Any], rows: BuildRows) -> None:
    """Record how often golds and distractors contain words of the question; flag giveaways."""
    choices, answer = rows.choices[rows.scored], rows.answer[rows.scored]
    question = rows.question[rows.scored]
    for words, counted in giveaways(rows.parts, question, rows.texts, choices, answer):
        report["giveaways"][words] = counted._asdict()
        if counted.is_leak(choices.shape[1]):
            shares = f"{counted.golds:.1%} of golds, {counted.distractors:.1%} of distractors"
            report["flags"].append(f"choices hold {words}: {shares}")


def baseline_table(report: Mapping[str, Any], with_picks: bool = False) -> AuditTable:
    """Return the table of a report's baselines over all rows: what each picks, or its verdict.

    The verdict is followed by the accuracy in the family where it is furthest off chance.
    """
    chance = report["chance"]
    lines = []
    for name, families in report["baselines"].items():
        cells = {family: BaselineCell.model_validate(cell) for family, cell in families.items()}
        names = (name, report["picks"][name]) if with_picks else (name,)
        every = cells.pop(ALL)
        more = () if with_picks else (every.verdict, _furthest(cells, chance))
        lines.append(Line(names, every, chance, every.verdict, more))
    if with_picks:
        return AuditTable(("baseline", "picks"), lines)
    return AuditTable(("baseline",), lines, ("verdict", "furthest off chance in a family"))


def _furthest(families: Mapping[str, BaselineCell], chance: float) -> str:
    """Return the accuracy furthest off chance, with its family; empty if all round to chance."""
    off = {
        family: abs(cell.value - chance)
        for family, cell in families.items()
        if cell.verdict != FEW_ROWS
    }
    family = max(off, key=off.__getitem__, default="")
    return f"{families[family].value:.1%} {family}" if off.get(family, 0.0) >= SHOWN else ""


def unflagged(report: Mapping[str, Any]) -> str:
    """Return a sentence on what it means that an audit flags nothing: little, if rows are few."""
    verdicts = {name: cells["all"]["verdict"] for name, cells in report["baselines"].items()}
    unsure = [name for name, verdict in verdicts.items() if verdict == FEW_ROWS]
    if set(verdicts.values()) <= {FEW_ROWS, "reported"}:
        return (
            f"Too few rows were scored ({report['scored_rows']:,}, fewer than {FEWEST_ROWS}) to "
            "tell whether a baseline is off chance. Build more rows to audit it."
        )
    rest = f" There are too few rows (fewer than {FEWEST_ROWS}) to tell of: {', '.join(unsure)}."
    cells = (BaselineCell.model_validate(cells[ALL]) for cells in report["baselines"].values())
    found = f"{spread(dict(zip(verdicts, cells, strict=True)), report['chance'])}. None is off "
    return f"{found}chance by more than {report['bar']}.{rest if unsure else ''}"


def spread(shortcuts: Mapping[str, BaselineCell], chance: float) -> str:
    """Return in words between which accuracies the judged shortcuts are, with the widest interval.

    Empty if none is judged.
    """
    judged = {
        name: cell for name, cell in shortcuts.items() if cell.verdict not in (FEW_ROWS, "reported")
    }
    if not judged:
        return ""
    values = [cell.value for cell in judged.values()]
    name, widest = max(judged.items(), key=lambda entry: entry[1].high - entry[1].low)
    return (
        f"Shortcuts are right in {min(values):.1%} to {max(values):.1%} (chance {chance:.1%}); the "
        f"widest interval is that of {name!r}, {widest.low:.1%} to {widest.high:.1%}"
    )


def on_similarity(report: Mapping[str, Any]) -> str:
    """Return a sentence on what similarity alone reaches; empty if that was not measured."""
    families = report["baselines"].get(MOST_SIMILAR)
    if families is None:
        return ""
    share = BaselineCell.model_validate(families[ALL]).value
    return (
        f"The choice most similar to the question is right in {share:.1%}, without any training: "
        "an accuracy that is not above this shows no more than which words are about the same "
        "thing."
    )


def missing_baselines(report: Mapping[str, Any]) -> str:
    """Return why an audit scored no baseline at all, or an empty string if it scored some.

    If all rows of a probe choose among the same few answers, baselines are fitted on train and
    scored on another split. A very small build may have only one of the two.
    """
    if report["baselines"]:
        return ""
    rows, split = report["scored_rows"], report["scored_split"]
    what = (
        f"all {rows:,} rows are in the train split"
        if split == SPLITS[0]
        else f"the train split has no rows ({split} has {rows:,})"
    )
    return (
        f"No baseline was scored: {what}, and baselines of this probe are fitted on train and "
        "scored on another split. Build more rows to audit it."
    )


def _bar_in_words(rows: BuildRows, guess: float) -> str:
    if rows.partial is None:
        return f"{100 * MARGIN:.0f} points"
    bar = f"{100 * MARGIN:.0f} points ({100 * WORD_TOLERANCE:.0f} for what sees arguments)"
    return f"{bar}, or off the commonest answer, right in {guess:.1%}" if rows.natural else bar


def _leakage(split: Ints, cluster: Ints, question: Ints, gold: Ints) -> dict[str, int]:
    """Return the overlap of train with validation and test."""
    train, rest = split == 0, split != 0

    def shared(label: Ints) -> Bools:
        size = int(label.max(initial=-1)) + 1
        return np.asarray(mask_at(size, label[train]) & mask_at(size, label[rest]))

    golds = shared(gold)
    return {
        "clusters in train and elsewhere": int(shared(cluster).sum()),
        "questions in train and elsewhere": int(shared(question).sum()),
        "golds in train and elsewhere": int(golds.sum()),
        "rows elsewhere whose gold is a gold in train": int(golds[gold[rest]].sum()),
    }
