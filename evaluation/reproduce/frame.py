"""The frame of all papers: their studies are planned, forecast and run, and their tables filled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.items.types import setups_of
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import folder_name, folder_names, options_name
from evaluation.reproduce.published import PublishedPaper, published_papers
from evaluation.reproduce.record import Figure, FilledTable, OwnRow, Reproduction, UsedProbe
from evaluation.results.types import Estimate
from evaluation.runs.executor import Outcome
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest, pages, write_record
from evaluation.studies.entries import open_model
from evaluation.studies.registry import STUDIES
from evaluation.studies.run import run_study
from evaluation.vectors.options import VectorsOptions, word_vectors
from kbprobe.document import Chart, Document, Dots, HeatMap, Section
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.progress import Progress, silent

RECORD = "reproduction"
"""The name of the record and its pages."""


@dataclass(frozen=True)
class Step:
    """A study of a paper, with its options.

    Attributes:
        study: its name.
        probes: names of probes that were found.
        models: the models; ``none`` for what needs none.
        options: those of the study and of its runs.
        tag: tells steps of the same study and models apart.
    """

    study: str
    probes: Sequence[str]
    models: Sequence[str]
    options: Mapping[str, Any] = field(default_factory=dict)
    tag: str = ""


@dataclass(frozen=True)
class Asked:
    """What a user asks to be reproduced.

    Attributes:
        probes: the source of each probe that was found, by name.
        models: folders, files or Hub ids.
        output: the folder of everything that is written.
        quick: whether a small version is wanted.
        published: whether the probes are the paper's own files.
        task: the task that models are trained for first, as a dataset; None: none was named.
        vectors: the name of word vectors; None: the usual ones.
        values: options of all runs.
        left_out: what is left out, and why: filled as it turns out.
        known: what models can do, once they were opened.
    """

    probes: Mapping[str, str]
    models: Sequence[str]
    output: Path
    quick: bool = False
    published: bool = False
    task: str | None = None
    vectors: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    known: dict[str, Capability] = field(default_factory=dict)

    def request(self, step: Step) -> StudyRequest:
        """Return a step as a request, with a folder of its own: the same for any of its probes."""
        study = STUDIES.get(step.study)
        common = {name: value for name, value in self.values.items() if name not in study.fixed}
        sources = [self.probes[name] for name in step.probes]
        values = {**common, **step.options}
        request = StudyRequest.parse(study, sources, step.models, values, owner=study.name)
        named = options_name(request.defaults.named_options(), step.tag)
        names = [study.name, *folder_names(step.models).values(), *filter(None, [named])]
        place = self.output / "studies" / "+".join(names)
        return replace(request, output=place, output_given=False)

    def able(self, model: str) -> Capability:
        """Return what a model can do; it is opened once."""
        if model not in self.known:
            request = StudyRequest(STUDIES.get("zero_shot"), values=self.values)
            self.known[model] = open_model(request, model).capabilities
        return self.known[model]

    def having(self, *names: str) -> list[str]:
        """Return those of some probes that were found."""
        return [name for name in names if name in self.probes]

    def has_vectors(self) -> bool:
        """Return whether there are word vectors; if not, note what is left out without them."""
        try:
            word_vectors(VectorsOptions(vectors=self.vectors))
        except UsageError as error:
            self.left_out.append(f"Baselines over word vectors: {error}")
            return False
        return True

    @property
    def vector_options(self) -> dict[str, str]:
        """The options of runs that read word vectors."""
        return {} if self.vectors is None else {"vectors": self.vectors}

    @property
    def split(self) -> str:
        """The split that stands for the papers' evaluation rows: oLMpics published no test."""
        return "validation" if self.published else "test"


@dataclass(frozen=True)
class Piece:
    """A step, or a part of it, whose runs are possible.

    Attributes:
        step: the step, with the probes of this part.
        request: the request that it makes.
        specs: its runs; some studies add further ones to them.
    """

    step: Step
    request: StudyRequest
    specs: Sequence[RunSpec]

    @property
    def names(self) -> dict[str, str]:
        """The names of its probes, by source."""
        return dict(zip(map(str, self.request.probes), self.step.probes, strict=True))


@dataclass(frozen=True)
class Ended:
    """A piece whose study has a summary."""

    piece: Piece
    summary: Any


@dataclass
class OwnNumbers:
    """The numbers that belong into a paper's tables, gathered from the summaries of studies.

    Attributes:
        tables: the rows of each table, by name.
        rows: how many rows of each probe were evaluated.
    """

    tables: dict[str, dict[str, OwnRow]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        place: tuple[str, str, str],
        value: Estimate | float | None,
        measure: str = "accuracy",
        *,
        after: str = "",
        scale: float = 100,
    ) -> None:
        """Add a number, if there is one.

        Args:
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
            row.cells.setdefault(column, {})[measure] = Figure.of(value, scale)


@dataclass(frozen=True)
class Paper:
    """Declares a reproduction: ``evaluate-probe reproduce NAME``.

    Attributes:
        name: on the command line, and in the file of published numbers.
        probes: its probes, each with what the names of its published files contain, as a regular
            expression for names in lower case without digits, "_" for "-".
        steps: the studies that make up the paper's protocol.
        fill: puts the numbers of a study's summary into the paper's tables.
        differences: what differs from the paper in any case, in sentences.
        of_builds: what differs where the probes were built and are not the paper's own files.
        reduced: what is reduced in the quick version.
        prepare: what is done first, and returns the request with the models that it made.
        sections: further sections of the document, made from all summaries.
        quick: options of all runs of the quick version.
        refused: options of the command that would do nothing.
    """

    name: str
    probes: Mapping[str, str]
    steps: Callable[[Asked], Sequence[Step]]
    fill: Callable[[OwnNumbers, Ended], None]
    differences: Sequence[str]
    of_builds: Sequence[str]
    reduced: str
    prepare: Callable[[Asked, Progress], Asked] = lambda asked, _progress: asked
    sections: Callable[[Sequence[Ended]], Sequence[Section]] = lambda _ended: ()
    quick: Mapping[str, Any] = field(default_factory=dict)
    refused: Sequence[str] = ()

    @property
    def published(self) -> PublishedPaper:
        """The numbers that the paper states."""
        return published_papers()[self.name]


def plan(paper: Paper, asked: Asked) -> list[Piece]:
    """Expand a paper's steps; what is refused is left out, probe by probe.

    Raises:
        UsageError: nothing is possible at all.
    """
    pieces = [piece for step in paper.steps(asked) for piece in _possible(asked, step)]
    if not pieces:
        raise UsageError(f"nothing of {paper.name} can be run: {' '.join(asked.left_out)}")
    return pieces


def _possible(asked: Asked, step: Step) -> Iterator[Piece]:
    if not step.probes:
        return
    try:
        request = asked.request(step)
        assert request.study.expand is not None
        yield Piece(step, request, request.study.expand(request))
    except KbprobeError as error:
        if len(step.probes) == 1:
            _leave_out(asked, step, error)
        for name in step.probes if len(step.probes) > 1 else ():
            yield from _possible(asked, replace(step, probes=[name]))


def _leave_out(asked: Asked, step: Step, error: KbprobeError) -> None:
    named = [model for model in step.models if model != NO_MODEL]
    of = f" of {', '.join(map(folder_name, named))}" if named else ""
    asked.left_out.append(f"{step.study}{of} on {step.probes[0]}: {error}")


def run(
    paper: Paper,
    asked: Asked,
    pieces: Sequence[Piece],
    progress: Progress = silent,
    report: Callable[[Outcome], None] = lambda _outcome: None,
) -> tuple[Reproduction, Document]:
    """Run all studies, and fill the paper's tables.

    Finished runs are found in their folders, and scores in the cache: an interrupted command goes
    on where it stopped.

    Raises:
        KbprobeError: no study could be summarised.
    """
    started = time.perf_counter()
    ended: list[Ended] = []
    for piece in pieces:
        ended += _run(asked, piece, progress, report)
    if not ended:
        raise KbprobeError(f"no study could be summarised: {' '.join(asked.left_out)}")
    own = OwnNumbers()
    for one in ended:
        paper.fill(own, one)
    record = Reproduction(
        paper=paper.name,
        citation=paper.published.paper,
        quick=asked.quick,
        reduced=paper.reduced if asked.quick else None,
        models=list(asked.models),
        probes=_probes(paper, asked, own),
        tables=[
            FilledTable(name=name, published=table, own=list(own.tables[name].values()))
            for name, table in paper.published.tables.items()
            if name in own.tables
        ],
        differences=[*paper.differences, *(() if asked.published else paper.of_builds)],
        left_out=list(dict.fromkeys(asked.left_out)),
        seconds=round(time.perf_counter() - started, 1),
    )
    return record, record.document([*paper.sections(ended), *_figures(ended)])


def _run(
    asked: Asked, piece: Piece, progress: Progress, report: Callable[[Outcome], None]
) -> list[Ended]:
    """Run a piece; if it fails, each of its probes alone, so that the others are not lost.

    Finished runs are found in the folder, which they share.
    """
    try:
        return [Ended(piece, run_study(piece.request, progress=progress, report=report))]
    except KbprobeError as error:
        step = piece.step
        if len(step.probes) == 1:
            _leave_out(asked, step, error)
            return []
        alone = [replace(step, probes=[name]) for name in step.probes]
        parts = [part for one in alone for part in _possible(asked, one)]
        return [done for part in parts for done in _run(asked, part, progress, report)]


def _probes(paper: Paper, asked: Asked, own: OwnNumbers) -> list[UsedProbe]:
    stated = {
        probe: rows
        for table in paper.published.tables.values()
        for probe, rows in table.evaluated.items()
    }
    return [
        UsedProbe(name=name, source=source, rows=own.rows.get(name), published=stated.get(name))
        for name, source in asked.probes.items()
    ]


def _figures(ended: Sequence[Ended]) -> list[Section]:
    """Return the figures of the studies' own documents."""
    sections = []
    for one in ended:
        study = one.piece.request.study
        if study.document is None:
            continue
        for section in study.document(one.summary).sections:
            parts = [part for part in section.shown if isinstance(part, Chart | Dots | HeatMap)]
            if parts:
                sections.append(Section(f"{study.name}: {section.title}", parts, section.link))
    return sections


def setups_in(asked: Asked, names: Sequence[str]) -> dict[str, frozenset[str]]:
    """Return the setups of the evaluated rows of probes; those that cannot be read are left out."""
    from evaluation.items.sources import open_probe

    found = {}
    for name in names:
        try:
            found[name] = setups_of(open_probe(asked.probes[name], split=asked.split).items)
        except KbprobeError as error:
            asked.left_out.append(f"{name}: {error}")
    return found


def write(record: Reproduction, document: Document, folder: Path) -> list[Path]:
    """Write the record, its page and its Markdown; return their paths.

    Raises:
        KbprobeError: a file cannot be written.
    """
    return write_record(RECORD, record, pages(RECORD, document), folder)


def own_name(model: str, what: str = "") -> str:
    """Return the name of a model's row."""
    return f"{folder_name(model)}{f', {what}' if what else ''}"
