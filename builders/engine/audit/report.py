"""What can be answered without knowing anything: the audit that ends every build.

Each baseline looks at part of a row (its choices, one choice's length, the position) and
picks a choice. In a sound probe all of them are at chance level, over all rows and within each
distractor family. A baseline far *below* chance is as bad as one above: a trained model can learn
to invert it.

If all rows choose among the same few answers (not/really), the choices reveal nothing. The
baselines then look at part of the question instead: see :mod:`builders.engine.audit.partial_input`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from builders.engine.audit.giveaways import QuestionPart, giveaways
from builders.engine.audit.ngrams import fit_choice_model, ngram_features
from builders.engine.audit.partial_input import (
    WORD_TOLERANCE,
    Baseline,
    PartialInput,
    partial_baselines,
)
from builders.engine.plan import Oracles, taken
from builders.engine.plan import report as oracle_report
from kbprobe.arrays import (
    Bools,
    Floats,
    Ints,
    contains,
    mask_at,
    sorted_unique,
    weighted_counts,
)
from kbprobe.audit import (
    FEW_ROWS,
    FEWEST_ROWS,
    MARGIN,
    Bar,
    Sample,
    choose_rows,
    commonest,
    credit_of,
)
from kbprobe.columns import to_numpy
from kbprobe.format.setups import SPLITS
from kbprobe.intervals import mean_credit
from kbprobe.tokens import Tokens, tokenise

BASELINES = {
    "choice-only model": "a linear model of the choices' words and word pairs, fitted on train",
    "choice-only model, inverted": "the same model's least likely choice",
    "longest choice": "most characters",
    "shortest choice": "fewest characters",
    "most frequent choice": "most frequent first lemma (Zipf scale, wordfreq)",
    "most general choice": "most hyponyms below it",
    "most specific choice": "fewest hyponyms below it",
    "most like the question": "shares the rarest words with the question",
    "most like the others": "shares the rarest words with the other choices",
    "least like the others": "the odd one out by shared words",
    "majority answer": "most often gold in train",
    "majority position": "the position most often right in train",
    "template majority": "the position most often right in train with the same wording",
}
"""What each baseline picks if choices differ from row to row."""


@dataclass(frozen=True)
class AuditRows:
    """The input of the audit: parallel arrays over all rows.

    Attributes:
        texts: the distinct choices' texts.
        choices: (rows, K) index into ``texts``, in the order shown.
        answer: (rows,) the gold's column.
        questions, question: the distinct questions, and each row's.
        split, family, template, concept: (rows,) integer labels.
        family_names: names of the families.
        gold: (rows,) the gold node.
        frequency, generality: those of each of ``texts``; None if not applicable.
        partial: the parts of the questions, if all rows choose among the same few answers.
        parts: the parts of ``questions`` whose words choices are searched for.
        hops: (rows,) edges between the word and the gold.
        oracles: the results of oracles of partial knowledge on the rows.
        natural: whether some answers are right more often than others, as annotators found them:
            baselines are then compared with the most common answer, and not by family, since the
            family of a row largely determines its answer.
    """

    texts: pa.Array
    choices: Ints
    answer: Ints
    questions: pa.Array
    question: Ints
    split: Ints
    family: Ints
    family_names: tuple[str, ...]
    template: Ints
    concept: Ints
    gold: Ints
    frequency: Floats | None
    generality: Floats | None
    partial: PartialInput | None = None
    parts: tuple[QuestionPart, ...] = ()
    hops: Ints | None = None
    oracles: Oracles = field(default_factory=dict)
    natural: bool = False


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
        cls, width: int, answer: Ints, split: Ints, concept: Ints, question: Ints, gold: Ints
    ) -> Totals:
        """Count, given parallel arrays over all rows."""
        positions = np.bincount(answer, minlength=width) / answer.size
        leakage = _leakage(split, concept, question, gold)
        return cls([float(share) for share in positions], leakage)


def audit(rows: AuditRows, seed: int) -> dict[str, Any]:
    """Sample some rows, and run every baseline on them; see :func:`audit_sample`."""
    width = rows.choices.shape[1]
    totals = Totals.of(width, rows.answer, rows.split, rows.concept, rows.question, rows.gold)
    sample = choose_rows(rows.split, rows.concept, rows.choices, seed)
    return audit_sample(rows, sample, totals)


def audit_sample(rows: AuditRows, sample: Sample, totals: Totals) -> dict[str, Any]:
    """Run every baseline; return a JSON-ready report.

    The report holds ``chance``; ``constant_choices``: whether all rows choose among the same few
    answers, which decides what the baselines look at; ``baselines``: name -> family (``all`` among
    them) -> ``{accuracy, low, high, rows, verdict}``; ``picks``: what each of them picks;
    ``positions``: how often each position is right; ``leakage``: what train and test share;
    ``oracles``: name -> what it ``knows``, its ``target``, and how often it is right by family and
    by hops; ``giveaways``: what the question shows -> ``{golds, distractors, rows}``: how many hold
    it; ``bar``: how far off chance is too far, in words; ``flags``: the verdicts that are not ok.

    Args:
        rows: at least those of the sample.
        sample: which of these rows to look at.
        totals: counts over all rows of the build.
    """
    split, scored, train = sample
    width = rows.choices.shape[1]
    chance = 1.0 / width
    guess = commonest(rows.answer[scored]) if rows.natural else chance
    report: dict[str, Any] = {
        "chance": chance,
        "constant_choices": rows.partial is not None,
        "scored_split": SPLITS[split],
        "scored_rows": int(scored.size),
        "fitted_rows": int(train.size),
        "baselines": {},
        "picks": {},
        "positions": totals.positions,
        "leakage": totals.leakage,
        "giveaways": {},
        "oracles": {},
        "bar": _bar(rows, guess),
        "flags": [],
    }
    for name, picks, scores, tolerance in _baselines(rows, train, scored):
        credit = credit_of(scores, rows.answer[scored])
        cells = {"all": mean_credit(credit, rows.concept[scored])}
        for code in np.unique(rows.family[scored]):
            inside = rows.family[scored] == code
            family = rows.family_names[int(code)]
            cells[family] = mean_credit(credit[inside], rows.concept[scored][inside])
        bar = Bar(chance, tolerance, guess)
        if rows.partial is None:
            bar = Bar(chance, whole_interval=True)
        verdicts = {family: bar.verdict(cell) for family, cell in cells.items()}
        report["picks"][name] = picks
        report["baselines"][name] = {
            family: {
                "accuracy": cell.value,
                "low": cell.low,
                "high": cell.high,
                "rows": cell.n,
                "verdict": verdicts[family],
            }
            for family, cell in cells.items()
        }
        report["flags"] += [
            f"{name} is {verdicts[family]} on {family}: {cell.value:.1%}"
            for family, cell in cells.items()
            # A single family is the same as all rows.
            if verdicts[family] in ("high", "low")
            and (family == "all" or (len(cells) > 2 and not rows.natural))
        ]
    if rows.partial is None:
        _add_giveaways(report, rows, scored)
    if rows.oracles and rows.hops is not None:
        report["oracles"] = oracle_report(
            taken(rows.oracles, scored),
            rows.family[scored],
            rows.family_names,
            rows.hops[scored],
        )
    return report


def _add_giveaways(report: dict[str, Any], rows: AuditRows, scored: Ints) -> None:
    """Record how often golds and distractors contain words of the question; flag giveaways."""
    choices, answer = rows.choices[scored], rows.answer[scored]
    for what, found in giveaways(rows.parts, rows.question[scored], rows.texts, choices, answer):
        report["giveaways"][what] = found._asdict()
        if found.is_leak(choices.shape[1]):
            shares = f"{found.golds:.1%} of golds, {found.distractors:.1%} of distractors"
            report["flags"].append(f"choices hold {what}: {shares}")


def unflagged(report: Mapping[str, Any]) -> str:
    """Return a sentence on what it means that an audit flags nothing: little, if rows are few."""
    baselines = report["baselines"]
    unsure = [name for name, cells in baselines.items() if cells["all"]["verdict"] == FEW_ROWS]
    if len(unsure) == len(baselines):
        return (
            f"Too few rows were scored ({report['scored_rows']:,}, fewer than {FEWEST_ROWS}) to "
            "tell whether a baseline is off chance. Build more rows to audit it."
        )
    rest = f" There are too few rows (fewer than {FEWEST_ROWS}) to tell of: {', '.join(unsure)}."
    return f"No baseline is off chance by more than {report['bar']}.{rest if unsure else ''}"


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


def _bar(rows: AuditRows, guess: float) -> str:
    if rows.partial is None:
        return f"{100 * MARGIN:.0f} points"
    bar = f"{100 * MARGIN:.0f} points ({100 * WORD_TOLERANCE:.0f} for what sees arguments)"
    return f"{bar}, or off the commonest answer, right in {guess:.1%}" if rows.natural else bar


def _baselines(rows: AuditRows, train: Ints, scored: Ints) -> Iterator[Baseline]:
    """Yield every baseline that makes sense for the rows."""
    if rows.partial is not None and train.size:
        # Codes of the few texts in use, from 0.
        _, answers = np.unique(rows.choices, return_inverse=True)
        answers = answers.reshape(rows.choices.shape)
        yield from partial_baselines(rows.partial, answers, rows.answer, train, scored)
    kinds = [_of_choices] if rows.partial is None else []
    for kind in (*kinds, _of_majorities):
        for name, scores in kind(rows, train, scored):
            yield Baseline(name, BASELINES[name], scores, MARGIN)


def _of_choices(rows: AuditRows, train: Ints, scored: Ints) -> Iterator[tuple[str, Floats]]:
    """Yield baselines over the choices' texts: scores of every choice, (scored rows, K)."""
    choices = rows.choices[scored]
    shown = sorted_unique(np.concatenate([choices.ravel(), rows.choices[train].ravel()]))
    texts = rows.texts.take(shown)
    local = np.searchsorted(shown, choices)
    fitted = np.searchsorted(shown, rows.choices[train])
    if train.size:
        weights = fit_choice_model(features := ngram_features(texts), fitted, rows.answer[train])
        score = (features @ weights)[local]
        yield "choice-only model", score
        yield "choice-only model, inverted", -score
    length = to_numpy(pc.utf8_length(texts)).astype(np.float64)[local]
    yield "longest choice", length
    yield "shortest choice", -length
    if rows.frequency is not None:
        yield "most frequent choice", rows.frequency[choices]
    if rows.generality is not None:
        yield "most general choice", rows.generality[choices]
        yield "most specific choice", -rows.generality[choices]
    used = sorted_unique(rows.question[scored])
    tokens, questions = tokenise(texts, rows.questions.take(used))
    rarity = _rarity(tokens)
    yield (
        "most like the question",
        _overlap(tokens, questions, rarity, local, np.searchsorted(used, rows.question[scored])),
    )
    likeness = _likeness(tokens, rarity, local)
    yield "most like the others", likeness
    yield "least like the others", -likeness


def _of_majorities(rows: AuditRows, train: Ints, scored: Ints) -> Iterator[tuple[str, Floats]]:
    """Yield baselines over frequencies in train: scores of every choice, (scored rows, K)."""
    if train.size:
        gold = rows.choices[train, rows.answer[train]]
        often = np.bincount(gold, minlength=len(rows.texts)).astype(np.float64)
        yield "majority answer", often[rows.choices[scored]]
        yield "majority position", _positions(rows, train, scored, np.zeros_like(rows.template))
        yield "template majority", _positions(rows, train, scored, rows.template)


def _positions(rows: AuditRows, train: Ints, scored: Ints, label: Ints) -> Floats:
    """Return how often each position is right in the train rows of the same label."""
    width = rows.choices.shape[1]
    counts = np.zeros((int(label.max(initial=0)) + 1, width))
    np.add.at(counts, (label[train], rows.answer[train]), 1.0)
    return np.asarray(counts[label[scored]])


def _rarity(tokens: Tokens) -> Floats:
    """Return the inverse document frequency of every word over the choice texts."""
    owner = np.repeat(np.arange(tokens.lengths.size), tokens.lengths)
    pairs = sorted_unique(owner * tokens.vocabulary + tokens.ids)
    frequency = np.bincount(pairs % tokens.vocabulary, minlength=tokens.vocabulary)
    return np.asarray(np.log((tokens.lengths.size + 1) / (frequency + 1)))


def _overlap(
    tokens: Tokens, questions: Tokens, rarity: Floats, choices: Ints, question: Ints
) -> Floats:
    """Return the summed rarity of the words that each choice shares with its question."""
    question_of, word = questions.of(np.arange(questions.lengths.size, dtype=np.int64))
    held = sorted_unique(question_of * questions.vocabulary + word)
    cell, word = tokens.of(choices.ravel())
    row = cell // choices.shape[1]
    shared = contains(held, question[row] * questions.vocabulary + word)
    weights = np.where(shared, rarity[word], 0.0)
    return weighted_counts(cell, weights, choices.size).reshape(choices.shape)


def _likeness(tokens: Tokens, rarity: Floats, choices: Ints) -> Floats:
    """Return the summed rarity of the words that each choice shares with the row's others."""
    cell, word = tokens.of(choices.ravel())
    owned = sorted_unique(cell * tokens.vocabulary + word)
    cell, word = owned // tokens.vocabulary, owned % tokens.vocabulary
    row = cell // choices.shape[1]
    _, in_row, times = np.unique(
        row * tokens.vocabulary + word, return_inverse=True, return_counts=True
    )
    weights = rarity[word] * (times[in_row] - 1)
    summed = np.bincount(cell, weights=weights, minlength=choices.size)
    norm = np.sqrt(np.bincount(cell, weights=rarity[word] ** 2, minlength=choices.size))
    return (summed / np.maximum(norm, 1e-9)).reshape(choices.shape)


def _leakage(split: Ints, concept: Ints, question: Ints, gold: Ints) -> dict[str, int]:
    """Return the overlap of train with validation and test."""
    train, rest = split == 0, split != 0

    def held(label: Ints, rows: Bools, size: int) -> Bools:
        return mask_at(size, label[rows])

    def shared(label: Ints) -> Bools:
        size = int(label.max(initial=-1)) + 1
        return held(label, train, size) & held(label, rest, size)

    golds = shared(gold)
    return {
        "clusters in train and elsewhere": int(shared(concept).sum()),
        "questions in train and elsewhere": int(shared(question).sum()),
        "golds in train and elsewhere": int(golds.sum()),
        "rows elsewhere whose gold is a gold in train": int(golds[gold[rest]].sum()),
    }
