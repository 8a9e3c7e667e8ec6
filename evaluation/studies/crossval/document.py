"""The document of cross-validation."""

from __future__ import annotations

from evaluation.report import cells
from evaluation.results.analyses.vocabulary import (
    CAPTION,
    HEAD,
    table_of,
)
from evaluation.results.words import last_name, name_or_count, percent, short
from evaluation.studies.crossval.record import CrossvalRow, CrossvalSummary, ProbeCrossval
from kbprobe.document import Caveats, Document, Dot, Dots, Level, Row, Section, Table, Text


def document(summary: CrossvalSummary) -> Document:
    """Return the document: a section for each probe."""
    return Document(
        "Cross-validation",
        name_or_count([one.probe for one in summary.probes], "probes"),
        [_section(one) for one in summary.probes],
        reading=[
            "**Accuracy** is the share of all rows answered correctly when their fold is held out; "
            "its interval resamples whole clusters, and repetitions (seeds, random encoders) where "
            "there are several.",
            "**Majority label** is the most frequent label of the rows fitted on. **Random "
            "encoders** have the model's architecture but random weights: what a classifier learns "
            "on them, it learns from the words of the training rows. Only accuracy above both is "
            "evidence of knowledge.",
            "**The standard deviation over folds** shows how much test accuracy varies between "
            "folds. Folds share training rows, so it says nothing about the error of the mean.",
        ],
    )


def _section(one: ProbeCrossval) -> Section:
    return Section(
        f"{one.probe} ({one.split})",
        [
            Text(
                f"{one.rows:,} rows of the setup {one.setup}, in {one.clusters:,} clusters and "
                f"{len(one.folds)} folds. Each fold is evaluated once, by a classifier fitted on "
                f"{one.train:,} rows of the other folds. Chance is {percent(one.chance)}."
            ),
            Caveats(one.notes),
            _dots(one),
            _accuracies(one),
            Table(
                ("model", *(f"fold {fold}" for fold in one.folds)),
                [(_name(row), *map(cells.share, row.folds)) for row in one.results],
                "Test accuracy in each fold, mean over repetitions",
                fold="Each fold",
            ),
            _vocabulary_table(one),
        ],
        link=one.probe,
    )


def _dots(one: ProbeCrossval) -> Dots:
    """Return the figure of accuracies, with a small dot for each fold."""
    levels = [Level("chance", one.chance)]
    if one.human is not None:
        levels.append(Level("people", one.human.value, dash="solid"))
    return Dots(
        f"Cross-validated test accuracy on {one.probe} of each model and baseline.",
        [
            Dot(_label(row), row.accuracy, row.kind in ("majority", "random"), row.folds)
            for row in one.results
        ],
        levels,
        parts="a fold",
    )


def _accuracies(one: ProbeCrossval) -> Table:
    rows: list[Row] = [
        (
            _name(row),
            cells.share(row.accuracy),
            cells.share(row.fold_mean),
            cells.share(row.fold_sd),
            cells.share(row.repetition_sd),
        )
        for row in one.results
    ]
    if one.human is not None:
        rows.append(("people", cells.share(one.human), cells.NONE, cells.NONE, cells.NONE))
    return Table(
        ("model", "accuracy", "mean of folds", "sd of folds", "sd of repetitions"),
        rows,
        "Test accuracy over all folds, with its 95% interval",
    )


def _vocabulary_table(one: ProbeCrossval) -> Table:
    """Return the table of accuracy and shared words, by model."""
    rows = [
        (f"{_name(row)}: {words}", *numbers)
        for row in one.results
        for words, *numbers in table_of(row.vocabulary)
    ]
    return Table(("model: words", *HEAD[1:]), rows, CAPTION)


_LABEL = 20
"""Maximum length of a model's name in a figure."""


def _name(row: CrossvalRow) -> str:
    """Return a row's name: ``sentence-transformers/all-MiniLM-L6-v2, pooled``."""
    return _named(row, last_name(row.model))


def _label(row: CrossvalRow) -> str:
    """Return a row's name in figures, which have less room: ``all-MiniLM-L6-v2, pooled``."""
    return _named(row, short(last_name(row.model).rpartition("/")[2], _LABEL))


def _named(row: CrossvalRow, model: str) -> str:
    if row.kind == "majority":
        return "majority label"
    if row.kind == "zero_shot":
        return f"{model}, without training"
    if row.kind == "learner":
        return f"{model}, {row.learner}"
    number = len(row.repetitions)
    encoders = "random encoder" if number == 1 else f"{number} random encoders"
    return f"{model}, {encoders}, {row.learner}"
