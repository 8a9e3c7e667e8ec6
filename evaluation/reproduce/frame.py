"""The frame of all papers: their studies are planned and run, and their tables filled."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.executors.base import InProcess
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import folder_names, model_name, options_name
from evaluation.reproduce.marks import Before, Legend, Protocol, differences
from evaluation.reproduce.record import (
    Figure,
    FilledTable,
    OwnRow,
    PublishedPaper,
    Reproduction,
    UsedProbe,
    published_papers,
)
from evaluation.results.parts import SMALL
from evaluation.results.types import Estimate
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest
from evaluation.studies.entries import open_model
from evaluation.studies.registry import STUDIES
from evaluation.studies.run import run_study
from evaluation.vectors.options import VectorsOption, word_vectors
from evaluation.workers import Session
from kbprobe.document import Chart, Document, Dots, HeatMap, Section
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.terminal.progress import Progress, silent

RECORD = "reproduction"
"""The name of the record and its pages."""


@dataclass
class Step:
    """A study of a paper, of one model on one probe.

    Attributes:
        probe: the name of a probe that was found.
        options: those of the study and of its runs.
        before: what the paper's models are trained on first; None: nothing.
        name: the model, as tables name it.
        request: what is asked of the study.
        summary: the study's, once it is finished.
    """

    study: str
    probe: str
    model: str = NO_MODEL
    options: Mapping[str, Any] = field(default_factory=dict)
    before: Before | None = None
    name: str = field(init=False)
    request: StudyRequest = field(init=False)
    specs: Sequence[RunSpec] = field(init=False)
    summary: Any = field(init=False, default=None)

    def runs(self, **values: Any) -> list[RunSpec]:
        """Return the runs that have these values as options."""
        return [
            spec
            for spec in self.specs
            if all(getattr(spec.run, name) == value for name, value in values.items())
        ]


@dataclass(frozen=True)
class ReproduceRequest:
    """What a user asks to be reproduced.

    Attributes:
        probes: the source of each probe that was found, by name.
        models: folders, files or Hub ids.
        quick: whether a small version is wanted.
        published: whether the probes are the paper's own files.
        dry_run: whether nothing is to be trained.
        task: the task that models are trained for first, as a dataset; None: none was named.
        vectors: the name of word vectors; None: the usual ones.
        values: options of all runs.
        left_out: what is left out, and why: filled as it turns out.
    """

    probes: Mapping[str, str]
    models: Sequence[str]
    output: Path
    quick: bool = False
    published: bool = False
    dry_run: bool = False
    task: str | None = None
    vectors: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = silent
    left_out: list[str] = field(default_factory=list)

    def expand(self, step: Step) -> None:
        """Make a step's request, with a folder of its own, and its runs.

        Raises:
            KbprobeError: it is impossible.
        """
        study = STUDIES.get(step.study)
        assert study.expand is not None
        common = {name: value for name, value in self.values.items() if name not in study.fixed}
        values, source = {**common, **step.options}, self.probes[step.probe]
        request = StudyRequest.parse(study, [source], [step.model], values, owner=study.name)
        own = options_name(request.defaults.named_options())
        # No two models share a name.
        models = list(dict.fromkeys([*self.models, step.model]))
        folder, names = folder_names(models)[step.model], [model_name(model) for model in models]
        step.name = model_name(step.model)
        if names.count(step.name) > 1:
            step.name = folder
        place = "+".join([study.name, step.probe, folder, *filter(None, [own])])
        step.request = replace(request, output=self.output / "studies" / place)
        step.specs = study.expand(step.request)

    def able(self, model: str) -> Capability:
        """Return what a model can do."""
        request = StudyRequest(STUDIES.get("zero_shot"), values=self.values)
        return open_model(request, model).capabilities

    def vector_options(self) -> dict[str, str] | None:
        """Return the options of runs over word vectors; None, with a note, if there are none."""
        try:
            word_vectors(VectorsOption(vectors=self.vectors))
        except UsageError as error:
            self.left_out.append(f"Baselines over word vectors: {error}")
            return None
        return {} if self.vectors is None else {"vectors": self.vectors}

    def leave_out(self, step: Step, error: KbprobeError | str) -> None:
        """Note that a step is left out, and why."""
        of = "" if step.model == NO_MODEL else f" of {model_name(step.model)}"
        self.left_out.append(f"{step.study}{of} on {step.probe}: {error}")


@dataclass
class OwnNumbers:
    """The numbers of a paper's tables, by name, and of how many rows of each probe they are.

    Attributes:
        paper: the paper.
        tables: rows by table and name.
        rows: rows evaluated, by probe.
        legend: the letters that mark numbers.
    """

    paper: Paper
    tables: dict[str, dict[str, OwnRow]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    legend: Legend = field(default_factory=Legend)

    def add(
        self,
        step: Step,
        specs: Sequence[RunSpec],
        place: tuple[str, str, str],
        value: Estimate | float | None,
        measure: str = "accuracy",
        *,
        after: str = "",
        scale: float = 100,
    ) -> None:
        """Add a number, if there is one, with the marks of what it is made of.

        Args:
            step: the study that it is of.
            specs: the study's runs that it is made of.
            place: table, row and column.
            value: the number, or None.
            measure: which of the numbers of the cell it is.
            after: the published row below which the row is shown; "": below all.
            scale: what shares and differences are multiplied with to give percent.
        """
        table, name, column = place
        if value is not None:
            rows = self.tables.setdefault(table, {})
            row = rows.setdefault(name, OwnRow(name=name, after=after, cells={}))
            published = self.paper.published.tables[table]
            given = step.request.options, self.paper.protocol, step.before
            asked = published.split, published.wording
            marks = [self.legend.letter(one) for one in differences(specs, *given, *asked)]
            row.cells.setdefault(column, {})[measure] = Figure.of(value, scale, marks)


@dataclass(frozen=True)
class Paper:
    """Declares a reproduction: ``evaluate-probe reproduce NAME``.

    Attributes:
        name: on the command line, and in the file of published numbers.
        steps: the studies that make up the paper's protocol.
        protocol: how it made its numbers.
        fill: puts the numbers of studies into the paper's tables, and returns further sections.
        reduced: what is reduced in the quick version, with ``{limit}`` for how many rows are asked.
        quick: options of all runs of the quick version.
        refused: an option of the command that would do nothing.
        build_options: the options that missing probes are built with, as they are spelled.
    """

    name: str
    steps: Callable[[ReproduceRequest], Sequence[Step]]
    fill: Callable[[OwnNumbers, Sequence[Step]], Sequence[Section]]
    protocol: Protocol
    reduced: str
    quick: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""
    build_options: Sequence[str] = ()

    @property
    def published(self) -> PublishedPaper:
        """The numbers that the paper states."""
        return published_papers()[self.name]


def plan(paper: Paper, asked: ReproduceRequest) -> list[Step]:
    """Return those of a paper's steps that are possible; what is refused is left out.

    Raises:
        UsageError: nothing is possible at all.
    """
    possible = []
    for step in paper.steps(asked):
        try:
            asked.expand(step)
            possible.append(step)
        except KbprobeError as error:
            asked.leave_out(step, error)
    if not possible:
        raise UsageError(f"nothing of {paper.name} can be run: {' '.join(asked.left_out)}")
    return possible


def run(
    paper: Paper, asked: ReproduceRequest, steps: Sequence[Step]
) -> tuple[Reproduction, Document]:
    """Run all studies, and fill the paper's tables.

    All runs of a model are executed together, whichever study they are of: it is loaded once, and
    its heads are trained side by side. The studies find them finished. So does the same command
    after an interruption.

    Raises:
        KbprobeError: no study could be summarised.
    """
    started = time.perf_counter()
    specs = [spec for step in steps for spec in step.specs]
    ended = InProcess(Session(progress=asked.progress)).execute(specs)
    failed = {specs[one.run].folder: one.error for one in ended if one.error is not None}
    for step in steps:
        reasons = [failed[spec.folder] for spec in step.specs if spec.folder in failed]
        try:
            if not reasons:
                step.summary = run_study(step.request, Session(progress=asked.progress))
        except KbprobeError as error:
            reasons.append(str(error))
        for reason in reasons[:1]:
            asked.leave_out(step, reason)
    done = [step for step in steps if step.summary is not None]
    if not done:
        raise KbprobeError(f"no study could be summarised: {' '.join(asked.left_out)}")
    own = OwnNumbers(paper)
    sections = [*paper.fill(own, done), *_figures(done, asked.left_out)]
    published = paper.published
    tables = published.tables
    stated = {name: rows for table in tables.values() for name, rows in table.evaluated.items()}
    record = Reproduction(
        paper=paper.name,
        citation=published.paper,
        quick=asked.quick,
        reduced=paper.reduced.format(**asked.values) if asked.quick else None,
        models=list(asked.models),
        probes=[
            UsedProbe(name=name, source=source, rows=own.rows.get(name), published=stated.get(name))
            for name, source in asked.probes.items()
        ],
        tables=[
            FilledTable(name=name, published=table, own=list(own.tables[name].values()))
            for name, table in tables.items()
            if name in own.tables
        ],
        marks=own.legend.marks,
        differences=published.notes(asked.probes, built=not asked.published),
        left_out=list(dict.fromkeys(asked.left_out)),
        seconds=round(time.perf_counter() - started, 1),
    )
    return record, record.document(sections)


def _figures(steps: Sequence[Step], left_out: list[str]) -> list[Section]:
    """Return the figures of the studies' own documents, without heat maps of few questions."""
    sections = []
    for step in steps:
        study = step.request.study
        for section in study.document_of(step.summary).sections if study.show is None else ():
            parts = [part for part in section.shown if isinstance(part, Chart | Dots | HeatMap)]
            maps = [part for part in parts if isinstance(part, HeatMap)]
            # A map of differences does not say which of its cells have few questions.
            counted = [part for part in maps if part.lines and part.scale == "share"]
            if counted and all(len(part.faint) == len(part.lines) for part in counted):
                parts = [part for part in parts if not isinstance(part, HeatMap)]
                left_out.append(
                    f"Heat maps of {study.name} of {step.name} on {step.probe}: no cell has "
                    f"{SMALL} questions"
                )
            if parts:
                title = f"{study.name}: {section.title}"
                sections.append(Section(title, parts, section.link))
    return sections
