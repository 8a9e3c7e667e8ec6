"""What there is to read of a score card: a page, and a table for a README."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.types import Estimate
from evaluation.results.words import percent, score
from evaluation.studies.scorecard.record import OVERALL, ModelCard, ProbeScore, Scorecard
from kbprobe.cli import kbprobe_version
from kbprobe.document import Caveats, Cell, Document, Findings, Section, Table, Tiles
from kbprobe.tables import in_markdown


def _name(card: Scorecard) -> str:
    return card.suite or f"{len(card.models[0].probes)} probes"


def badge(card: Scorecard) -> str:
    """Return a table of a few lines, to put into a README or a model card."""
    head = [_name(card), *OVERALL]
    lines = [f"| {' | '.join(map(in_markdown, head))} |", f"|---|{'---:|' * len(OVERALL)}"]
    for model in card.models:
        label = ", ".join([model.label, *(f"{k} {v}" for k, v in model.options.items())])
        numbers = [_number(name, model) for name in OVERALL]
        shown = [f"{one.text} ({one.note})" if one.note else one.text for one in numbers]
        lines.append(f"| {' | '.join(map(in_markdown, [label, *shown]))} |")
    return "\n".join([*lines, "", f"Rows {card.rows_sha256[:12]}, kbprobe {kbprobe_version()}", ""])


def document(card: Scorecard) -> Document:
    """Return the page of a score card."""
    first = card.models[0]
    sections = [
        Section(
            "",
            [
                Tiles({model.label: cells.score(model.overall.score) for model in card.models[:4]}),
                Findings([_sentence(card, model) for model in card.models]),
                Caveats(_caveats(card)),
                Table.of(
                    card.models,
                    {
                        "model": lambda model: model.label,
                        **{name: partial(_number, name) for name in OVERALL},
                    },
                    "Means over the probes, each corrected for chance: 0 is chance, 100 all right",
                ),
            ],
        ),
        *(Section(model.label, [_table(model), _contaminated(model)]) for model in card.models),
    ]
    return Document(
        "Score card",
        f"{_name(card)}: {first.label if len(card.models) == 1 else f'{len(card.models)} models'}",
        sections,
        reading=[
            "**Score**: mean over the probes of (accuracy − chance) / (1 − chance), in points. Its "
            "interval combines those of the probes (Zou and Donner, 2008), which resample whole "
            "clusters.",
            "**Near** and **random**: the same with distractors from the neighbourhood of the "
            "right answer, and from anywhere, over the probes that have both. **Strict**: share of "
            "the clusters with every question right, over the probes whose clusters have several.",
            "**Partial knowledge** and **baseline**: what the best of the probe’s oracles, and of "
            "the baselines of its audit, get right. An accuracy below them needs no more knowledge "
            "than theirs.",
            "**Contamination**: score on the suite less score on fresh rows: rows of a sibling "
            "suite whose clusters are in no split of the suite. A model that has seen the suite "
            "does better on it; one that has not differs by chance alone.",
        ],
    )


def _number(name: str, model: ModelCard) -> Cell:
    return cells.score(OVERALL[name](model.overall))


def _sentence(card: Scorecard, model: ModelCard) -> str:
    said = f"{model.label}: {score(model.overall.score.value)} on {_name(card)}"
    found = model.contamination
    if found is not None and found.difference is not None:
        told = cells.points(found.difference)
        said += f", and {told.text} points ({told.note}) against fresh rows"
    return f"{said}."


def _caveats(card: Scorecard) -> list[str]:
    said = []
    if card.suite is not None and not card.standard:
        said.append(
            "These are not scores on the standard suite: the rows are of another seed, or a "
            "sample, or no checksums were compared."
        )
    for model in card.models:
        if model.options:
            options = ", ".join(f"{name} {value}" for name, value in model.options.items())
            said.append(f"{model.label} was evaluated with options of its own: {options}.")
        if (found := model.contamination) is not None and found.left_out:
            said.append(
                f"Contamination is not measured on {', '.join(found.left_out)}: the sibling has "
                f"fewer than {intervals.FEWEST} clusters that the suite lacks."
            )
    told = [
        f"{one.probe}: {text}"
        for model in card.models
        for one in model.probes
        for text in one.remarks
    ]
    return [*said, *dict.fromkeys(told)]


def _table(model: ModelCard) -> Table:
    return Table.of(
        model.probes,
        {
            "probe": lambda one: one.probe,
            "rows": lambda one: cells.count(one.rows),
            "chance": lambda one: percent(one.chance),
            "accuracy": lambda one: cells.share(one.accuracy),
            "score": lambda one: cells.score(one.score.value),
            "near": lambda one: cells.share(one.near_accuracy),
            "random": lambda one: cells.share(one.random_accuracy),
            "strict": lambda one: cells.share(one.strict_accuracy),
            "by hops": lambda one: _hops(one.hops),
            "partial knowledge": _best_oracle,
            "baseline": lambda one: cells.share(one.best_baseline and one.best_baseline[1]),
        },
        "Accuracy by probe",
    )


def _hops(hops: Mapping[str, Estimate]) -> str:
    shown = (f"{number}: {percent(one.value)}" for number, one in hops.items())
    return ", ".join(shown) or "–"


def _best_oracle(one: ProbeScore) -> Cell:
    """Return what the best reader of partial knowledge gets right, and what it knows."""
    known = {what: families["all"] for what, families in one.oracles.items()}
    best = max(known, key=known.__getitem__, default=None)
    return cells.share(None) if best is None else Cell(percent(known[best]), best)


def _contaminated(model: ModelCard) -> Table | None:
    if (found := model.contamination) is None:
        return None
    return Table.of(
        found.probes,
        {
            "probe": lambda one: one.probe,
            "score": lambda one: cells.score(one.score),
            "on fresh rows": lambda one: cells.score(one.fresh),
            "fresh rows": lambda one: cells.count(one.fresh_rows),
            "in clusters": lambda one: cells.count(one.fresh_clusters),
        },
        f"Scores on the suite, and on rows of {found.suite} that it does not hold",
    )
