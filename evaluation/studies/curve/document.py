"""The document of learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from evaluation.models.checkpoint import NO_MODEL
from evaluation.report import cells
from evaluation.results.words import (
    AGAINST,
    difference,
    interval,
    last_name,
    name_or_count,
    percent,
    place,
)
from evaluation.studies.curve import record
from evaluation.studies.curve.medals import medal_sections
from kbprobe import document as doc

LEARNERS = {
    "linear": "the candidates' output embeddings, with the model frozen",
    "mlp": "the masked-LM head, with the encoder frozen",
    "frozen": "a linear layer, with the model frozen",
    "full": "the whole network, with a multiple-choice head",
    "full_mlm": "the whole masked LM",
    "mlm_baseline": "a new masked-LM head over word vectors, without a language model",
    "esim": "ESIM over word vectors, without a language model",
    "choice_only": "a network over the word vectors of each choice alone",
    "choice_to_choice": "a network over the word vectors of the choices of a row",
    "question_to_choice": "a network over the word vectors of question and choice",
}
"""What each learner trains."""


def document(summary: record.CurveSummary) -> doc.Document:
    """Return the document of all curves; random models are shown only if there are no others."""
    trained = [one for one in summary.models if one.random_init is None]
    shown = trained or summary.models
    models = dict.fromkeys(record.model_name(one) for one in shown)
    probes = dict.fromkeys(one.probe for one in shown)
    sections = [doc.Section("Overview", [_overview(shown)])] if len(shown) > 1 else []
    sections += [_section(one, _without_model(one, shown)) for one in shown]
    if summary.series:
        parts = [part for one in summary.series for part in _series(one)]
        sections.append(doc.Section("By training step", parts))
    if summary.restarts:
        note = (
            "The same architecture with weights drawn at random: what the learner and the "
            "architecture alone can learn from the training rows."
        )
        tables = [_restarts(one) for one in summary.restarts]
        sections.append(doc.Section("Random initialisation", [doc.Text(note, note=True), *tables]))
    sections += medal_sections(summary.medals)
    return doc.Document(
        "Learning curves",
        f"{name_or_count(models, 'models')} on {name_or_count(probes, 'probes')}",
        sections,
    )


def _without_model(
    one: record.ModelCurves, models: Sequence[record.ModelCurves]
) -> list[record.LearnerCurves]:
    """Return the model-free learners run on the same probe; none if ``one`` is model-free."""
    if one.model == NO_MODEL:
        return []
    return [
        learner
        for other in models
        if (other.model, other.probe, other.split) == (NO_MODEL, one.probe, one.split)
        for learner in other.learners
    ]


def _overview(models: Sequence[record.ModelCurves]) -> doc.Table:
    rows: list[doc.Row] = [
        (
            *(one.probe, record.model_name(one), learner.learner),
            *(one.chance, one.floor[1], one.own_zero_shot),
            *(learner.own.ws, learner.own.maximum.accuracy),
        )
        for one in models
        for learner in one.learners
    ]
    head = ("probe", "model", "learner", "chance", "floor", "zero-shot", "WS", "MAX")
    caption = "All models and probes. Floor: the strongest baseline of the audit, or chance"
    return doc.Table(head, rows, caption, names=3)


def _section(one: record.ModelCurves, without_model: Sequence[record.LearnerCurves]) -> doc.Section:
    """Return the section on a model and a probe."""
    found: list[doc.Part] = [doc.Text(untrained(one))]
    for learner in one.learners:
        what = LEARNERS.get(learner.learner)
        found.append(doc.Text(f"**{learner.learner}**{f' trains {what}' if what else ''}."))
        found.append(doc.Findings(sentences(one, learner)))
    further: list[doc.Part] = [
        _renderings_chart(one, at) for at, held in enumerate(one.learners) if len(held.curves) > 1
    ]
    if further:
        further.insert(0, doc.Heading("Comparison with the controls"))
    return doc.Section(
        f"{record.model_name(one)} on {one.probe} ({one.split})",
        [
            _tiles(one),
            _learners_chart(one, without_model),
            doc.Heading("Findings"),
            *found,
            doc.Caveats(remarks(one)),
            *further,
            doc.Heading("Numbers"),
            *_numbers(one),
        ],
        link=f"{record.model_name(one)} on {one.probe}",
    )


def _tiles(one: record.ModelCurves) -> doc.Tiles:
    best = max(one.learners, key=lambda learner: learner.own.ws.value)
    maximum = best.own.maximum
    tiles = {
        f"Highest accuracy, {best.learner}": doc.Cell(
            percent(maximum.accuracy.value), f"MAX, with {maximum.size:,} training rows"
        ),
        "Mean over sizes (WS)": cells.headline(best.own.ws),
    }
    if one.own_zero_shot is not None:
        tiles["Zero-shot"] = cells.headline(one.own_zero_shot)
    if one.baselines:
        strongest = one.baselines[0]
        tiles["Strongest baseline"] = doc.Cell(percent(strongest.accuracy), strongest.name)
    return doc.Tiles({**tiles, **cells.asked(one.chance, one.rows, one.clusters)})


def remarks(one: record.ModelCurves) -> list[str]:
    """Return remarks on how the numbers were computed, and caveats."""
    said = [f"Weights of WS and LangSense: {one.weighting}."]
    if one.left_out:
        left = ", ".join(f"{size:,}" for size in one.left_out)
        said.append(f"Sizes left out, since train has fewer rows: {left}.")
    if one.baselines:
        said.append(f"Strongest baseline of the audit: {one.baselines[0].name}.")
    return said + one.notes


def _numbers(one: record.ModelCurves) -> list[doc.Table]:
    """Return the tables of summary numbers, sizes, code lengths, selectivity and baselines."""
    senses = [held for learner in one.learners for held in learner.lang_sense]
    controls = {held.config: record.rendering_name(held.config) for held in senses}
    head = [(f"LangSense, {name}", f"WS minus WS on {name}") for name in controls.values()]
    overall: list[doc.Row] = []
    for learner in one.learners:
        held = {found.config: found for found in learner.lang_sense}
        lost = [held.get(config) for config in controls]
        overall.append(
            (
                *(learner.learner, learner.own.ws),
                *(learner.own.maximum.accuracy, learner.own.maximum.size),
                *(
                    cell
                    for found in lost
                    for cell in (
                        cells.plain(found and found.value.value, ".1f"),
                        cells.points(found and found.difference),
                    )
                ),
            )
        )
    by_size: list[doc.Row] = []
    for learner in one.learners:
        for curve in learner.curves:
            at = {point.size: point.accuracy for point in curve.points}
            name = f", {record.rendering_name(curve.rendering)}" if len(learner.curves) > 1 else ""
            by_size.append((f"{learner.learner}{name}", *(at.get(size) for size in one.sizes)))
    draws = {p.size: len(p.draws) for learner in one.learners for p in learner.own.points}
    tables = [
        doc.Table(
            ("learner", "WS", "MAX", "rows at MAX", *chain.from_iterable(head)),
            overall,
            "WS: weighted mean over sizes. MAX: highest mean. LangSense: weighted mean of max(0, "
            "accuracy minus the control’s), in points.",
        ),
        doc.Table(
            ("rows (draws)", *(f"{size:,} ({draws.get(size, 0)})" for size in one.sizes)),
            by_size,
            "Accuracy by number of training rows, with 95% intervals",
        ),
        doc.Table(
            ("learner", "rows", "uniform bits", "online bits", "compression", "draws"),
            [
                (
                    f"{learner.learner}, {record.rendering_name(curve.rendering)}",
                    f"{code.rows:,}",
                    f"{code.uniform_bits:,.0f}",
                    f"{code.bits:,.0f}",
                    f"{code.compression:.2f}",
                    f"{code.draws}",
                )
                for learner in one.learners
                for curve in learner.curves
                if (code := curve.code_length) is not None
            ],
            "Online code length of the training answers (Voita and Titov 2020): the fewer bits, "
            "the more was learnt early. Compression of 1: nothing was learnt.",
        ),
        doc.Table(
            ("learner and rows", "selectivity (points)", "first argument seen in training"),
            [
                (f"{learner.learner}, {found.size:,} rows", cells.points(found.value), found.seen)
                for learner in one.learners
                for found in learner.selectivity
            ],
            "Selectivity: accuracy minus that on random labels, in points, and the share of test "
            "rows whose first argument occurs in the training rows",
        ),
        doc.Table(
            ("baseline", "accuracy"),
            [(held.name, held.accuracy) for held in one.baselines],
            "Accuracy of each baseline of the probe’s audit",
            fold=f"All {len(one.baselines)} baselines of the audit",
        ),
    ]
    return tables if len(one.baselines) > 1 else tables[:-1]


def _series(one: record.Series) -> list[doc.Part]:
    """Return the parts on the checkpoints of a model by training step."""
    steps = [point.step for point in one.points]
    lines = [
        doc.Line("WS", steps, [point.ws for point in one.points], 0),
        doc.Line("at the smallest size", steps, [point.first for point in one.points], 1),
    ]
    zero = [point.zero_shot for point in one.points if point.zero_shot is not None]
    if len(zero) == len(steps):
        lines.append(doc.Line("zero-shot", steps, zero, 2))
    return [
        doc.Heading(f"{last_name(one.model)} on {one.probe}, {one.learner}"),
        doc.Chart(
            f"Accuracy of {one.learner} on {one.probe} by training step.",
            [doc.Panel(lines, [doc.Level("chance", one.chance)])],
            doc.Across("training step", "steps", steps),
        ),
        doc.Table.of(
            one.points,
            {
                "checkpoint": lambda point: point.label,
                "step": lambda point: point.step,
                "zero-shot": lambda point: point.zero_shot,
                "smallest size": lambda point: point.first,
                "WS": lambda point: point.ws,
                "MAX": lambda point: point.maximum,
            },
            "Accuracy of each checkpoint",
        ),
    ]


def _restarts(one: record.Restarts) -> doc.Table:
    """Return the table of randomly initialised models."""
    spreads = (one.ws, *one.points)
    trained = ""
    if one.trained_ws is not None:
        trained = f"; WS of the trained model: {percent(one.trained_ws.value)}"
    deviations = ["–" if s.deviation is None else f"{100 * s.deviation:.1f}" for s in spreads]
    return doc.Table(
        ("", "WS", *(f"{point.size:,}" for point in one.points)),
        [
            ("mean", *(percent(spread.mean) for spread in spreads)),
            ("standard deviation (points)", *deviations),
        ],
        f"{one.models} randomly initialised models, {last_name(one.model)} on {one.probe}, "
        f"{one.learner}{trained}",
    )


def _learners_chart(
    one: record.ModelCurves, without_model: Sequence[record.LearnerCurves]
) -> doc.Chart:
    """Draw the curve of each learner on the probe itself, and of model-free learners."""
    lines = [_line(held.own, held.learner, number) for number, held in enumerate(one.learners)]
    lines += [
        _line(held.own, f"{held.learner} (no model)", "reference", "dashed", "d")
        for held in without_model
    ]
    names = " and ".join(learner.learner for learner in one.learners)
    return doc.Chart(
        f"Accuracy on {one.probe} by rows trained on: {names}.",
        [doc.Panel(lines, _levels(one))],
        doc.Across("rows trained on", "rows", one.sizes),
        note="Mean accuracy over draws of training rows; the band is its 95% interval.",
    )


def _renderings_chart(one: record.ModelCurves, number: int) -> doc.Part:
    """Draw one learner's curves on the probe, its controls and its random labels."""
    learner = one.learners[number]
    lines = []
    controls: list[tuple[doc.Dash, str]] = [("dashed", "s"), ("short dashes", "^")]
    for curve in learner.curves:
        name = record.rendering_name(curve.rendering)
        if curve.rendering == record.PROBE:
            lines.append(_line(curve, name, number))
        elif curve.rendering == record.RANDOM_LABELS:
            lines.append(_line(curve, name, "soft", "dotted", "x"))
        else:
            lines.append(_line(curve, name, number, *controls[0]))
            controls.reverse()
    kinds = ", ".join(record.rendering_name(curve.rendering) for curve in learner.curves)
    return doc.Chart(
        f"Accuracy of {learner.learner} by rows trained on: {kinds}.",
        [doc.Panel(lines, _levels(one), learner.learner)],
        doc.Across("rows trained on", "rows", one.sizes),
        note="Solid: the probe itself. Dashed: its controls, trained and tested on the control’s "
        "wording. Dotted: random labels.",
    )


def _line(
    curve: record.Curve, name: str, ink: doc.Ink, dash: doc.Dash = "solid", marker: str = "o"
) -> doc.Line:
    sizes = [point.size for point in curve.points]
    return doc.Line(name, sizes, [point.accuracy for point in curve.points], ink, dash, marker)


def _levels(one: record.ModelCurves) -> list[doc.Level]:
    """Return accuracies without training: zero-shot, the strongest baseline, and chance."""
    levels = [doc.Level("chance", one.chance)]
    if one.baselines:
        best = one.baselines[0]
        levels.insert(0, doc.Level(f"baseline: {best.name}", best.accuracy, "reference", "dashed"))
    if one.own_zero_shot is not None:
        levels.insert(0, doc.Level("zero-shot", one.own_zero_shot.value, 4, "dash-dotted"))
    return levels


def _floor_name(one: record.ModelCurves) -> str:
    """Return the name of the floor: the strongest model-free baseline of the audit, or guessing."""
    return "guessing" if one.floor[0] == "chance" else "the strongest baseline"


def untrained(one: record.ModelCurves) -> str:
    """Describe zero-shot accuracy relative to the strongest baseline."""
    zero, (name, floor) = one.own_zero_shot, one.floor
    number = percent(floor) if name == "chance" else f"{percent(floor)} ({name})"
    if zero is None or one.model == NO_MODEL:
        lead = "There is no zero-shot accuracy: no scorer applies to the model by default."
        if one.model == NO_MODEL:
            lead = "These learners use no language model."
        return f"{lead} {_floor_name(one).capitalize()} reaches {number}."
    return (
        f"Zero-shot accuracy is {percent(zero.value)} ({interval(zero)}), "
        f"{AGAINST[place(zero, floor)]} {_floor_name(one)}, {number}."
    )


def sentences(one: record.ModelCurves, learner: record.LearnerCurves) -> list[str]:
    """Describe what a learner's curves show."""
    curve, first, (_, floor) = learner.own, learner.first, one.floor
    said = [
        f"The highest mean accuracy is {percent(curve.maximum.accuracy.value)}, with "
        f"{curve.maximum.size:,} training rows."
    ]
    start = "chance" if first.before is None else "zero-shot accuracy"
    if first.taught.low > 0:
        what = f"raise accuracy by {difference(first.taught)} over {start}"
    elif first.taught.high < 0:
        what = f"change accuracy by {difference(first.taught)} relative to {start}"
    else:
        what = f"have no detectable effect: {difference(first.taught)} relative to {start}"
    text = f"The first {first.size:,} rows {what}"
    if len(curve.points) > 1:
        text += f"; the remaining rows change accuracy by {difference(first.further)}"
    said.append(f"{text}. {_where_from(one, learner)}")
    said.append(
        "Averaged over all sizes, the small ones weighted most (WS), accuracy is "
        f"{percent(curve.ws.value)} ({interval(curve.ws)}), {AGAINST[place(curve.ws, floor)]} "
        f"{_floor_name(one)}."
    )
    for found in learner.lang_sense:
        name = record.rendering_name(found.config)
        if found.difference.low > 0:
            what = "the words of the question matter"
        elif found.difference.high < 0:
            what = "the control is the easier of the two"
        else:
            what = "no evidence that the words of the question matter"
        said.append(
            f"LangSense with {name} as control is {found.value.value:.1f} points; WS differs by "
            f"{difference(found.difference)}: {what}."
        )
    if learner.selectivity:
        last = learner.selectivity[-1]
        text = (
            f"With {last.size:,} training rows, selectivity (accuracy minus accuracy on random "
            f"labels) is {difference(last.value)}"
        )
        if last.seen is not None:
            text += f"; {percent(last.seen)} of the test rows can be answered from memory"
        said.append(f"{text}.")
    code = curve.code_length
    if code is not None:
        said.append(
            f"Encoding the answers of {code.rows:,} rows takes {code.bits:,.0f} bits instead of "
            f"{code.uniform_bits:,.0f}: a compression of {code.compression:.2f}."
        )
    return said


def _where_from(one: record.ModelCurves, learner: record.LearnerCurves) -> str:
    """Describe whether knowledge was present after the first rows, or was learnt from many."""
    first, (_, floor) = learner.first, one.floor
    trained = one.model != NO_MODEL and one.random_init is None
    if first.after.low > floor and trained:
        return (
            "So few rows can hardly teach the task: accuracy above "
            f"{_floor_name(one)} comes from pre-training."
        )
    best = next(p for p in learner.own.points if p.size == learner.own.maximum.size)
    if learner.own.ws.low <= floor and best.accuracy.low <= floor:
        return f"Accuracy is not clearly above {_floor_name(one)} at any size."
    if first.further.low > 0:
        return f"The gain over {_floor_name(one)} was learnt from the probe's own rows."
    return f"It is unclear whether the gain over {_floor_name(one)} was learnt from these rows."
