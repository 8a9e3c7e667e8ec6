"""Controls: a probe and its control wordings, scored by one model and compared row by row.

A control asks the rows of a probe in another wording, under the same ids: with the words of the
language left out, or some of them replaced (Talmor et al. 2020, section 3.2). A model that does as
well on it does not rely on the language of the question.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from evaluation.items.types import ids_of
from evaluation.names import folder_name
from evaluation.report import cells
from evaluation.results import intervals
from evaluation.results.types import Estimate, Model
from evaluation.results.words import name_or_count, p_value
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.pairing import pair_configs
from kbprobe.document import Document, Row, Section, Table
from kbprobe.errors import UsageError
from kbprobe.options import Options


class ControlsOptions(Options):
    """Which controls to compare a probe with."""

    controls: tuple[str, ...] = Field(
        ("no_language", "perturbed"),
        min_length=1,
        description="Configs of the probe that ask the same rows in another wording.",
    )


class Control(Model):
    """A model on a control, beside the same rows of the probe itself."""

    config: str = Field(description="The control's config.")
    rows: int = Field(description="Rows scored in both: all numbers are of them.")
    probe: Estimate = Field(description="Share of these rows answered right in the probe.")
    control: Estimate = Field(description="Share of these rows answered right in the control.")
    difference: Estimate = Field(description="Probe less control, in percentage points.")
    p_value: float = Field(
        description="Exact randomisation test, two-sided: the two swapped in whole clusters."
    )
    sensitivity: float = Field(
        description="The difference, or 0 where the control is answered as well: what LangSense "
        "averages over a learning curve (Talmor et al. 2020)."
    )


class ModelControls(Model):
    """A model on a probe and its controls."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    chance: float = Field(description="Mean of one over the number of choices.")
    accuracy: Estimate = Field(description="Share of all scored rows of the probe answered right.")
    controls: list[Control] = Field(description="The controls, in the order asked for.")


class Controls(Model):
    """The summary of the study."""

    schema_version: str = "1.0"
    models: list[ModelControls] = Field(description="Each model on each probe.")


def _expand(request: StudyRequest) -> list[RunSpec]:
    _check_rows(request)
    return [
        # Sub-questions have no controls.
        request.spec(probe, model, config=config, facts=False)
        for model in request.models
        for probe in request.probes
        for config in (None, *request.options.controls)
    ]


def _check_rows(request: StudyRequest) -> None:
    """Check that controls have the same rows as their probe, before any model is loaded.

    Raises:
        UsageError: a control has other rows, or there is no control of that name.
        KbprobeError: a split cannot be read.
    """
    reader, options = SplitReader(), request.defaults.run
    for probe in request.probes:
        own = set(ids_of(reader.rows(probe, options).items))
        for config in request.options.controls:
            varied = options.model_copy(update={"config": config})
            asked = set(ids_of(reader.rows(probe, varied).items))
            if asked != own:
                raise UsageError(
                    f"{config} does not ask the rows of the probe: {len(asked - own):,} of its "
                    f"rows are not in the probe, and {len(own - asked):,} of the probe's not in "
                    "it. Name configs that share their ids with --controls."
                )


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> Controls:
    configs = request.options.controls
    models = []
    for at in range(0, len(finished), 1 + len(configs)):
        own, *controls = finished[at : at + 1 + len(configs)]
        results = own.evaluation.results
        models.append(
            ModelControls(
                probe=results.probe.name,
                split=results.probe.split,
                model=results.model.id,
                chance=results.metrics.chance,
                accuracy=results.metrics.accuracy,
                controls=[
                    _control(own, control, config)
                    for control, config in zip(controls, configs, strict=True)
                ],
            )
        )
    return Controls(models=models)


def _control(own: Finished, control: Finished, config: str) -> Control:
    paired = pair_configs(control, own)
    (right, also_right), cluster = paired.right, paired.clusters
    seed = own.evaluation.results.seed
    difference = intervals.paired_difference(right, also_right, cluster, seed)
    return Control(
        config=config,
        rows=right.size,
        probe=intervals.accuracy(also_right, cluster, seed),
        control=intervals.accuracy(right, cluster, seed),
        difference=difference,
        p_value=paired.p_value,
        sensitivity=max(0.0, difference.value),
    )


def _document(summary: Controls) -> Document:
    head = ("rows", "accuracy", "in the control", "chance", "probe less control, points", "p")
    rows: list[Row] = [
        (
            f"{one.probe} ({one.split})",
            folder_name(one.model),
            control.config,
            cells.count(control.rows),
            cells.share(control.probe),
            cells.share(control.control),
            cells.share(one.chance),
            cells.points(control.difference),
            p_value(control.p_value),
        )
        for one in summary.models
        for control in one.controls
    ]
    caption = "Accuracy on the probe and on its controls, on the rows that both scored"
    table = Table(("probe", "model", "control", *head), rows, caption, names=3)
    return Document(
        "Controls",
        name_or_count(dict.fromkeys(one.probe for one in summary.models), "probes"),
        [Section("", [table])],
        reading=[
            "**A control** asks the rows of the probe in another wording: without the words of the "
            "language, or with some of them replaced. A model that does as well on it does not "
            "answer by the language of the question.",
            "**p** is that of an exact randomisation test: if the wording made no difference, "
            "swapping the answers in any cluster would be as likely as not. **Intervals**, at 95%, "
            "resample whole clusters of rows.",
        ],
    )


CONTROLS = Study(
    name="controls",
    help="Compare a probe with its control wordings, scored by the same model, row by row.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
    reports=True,
    options=ControlsOptions,
    fixed=frozenset({"config", "facts"}),
)
"""The study."""
