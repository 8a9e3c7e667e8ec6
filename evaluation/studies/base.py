"""The study interface: options are expanded into runs, whose results are summarised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel

from evaluation.learners.base import flat
from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import folder_names, options_name
from evaluation.options import RunOptions, parse_options
from evaluation.runs.spec import RunSpec, import_named, plugins
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import write_file
from kbprobe.files.targets import taking
from kbprobe.format.sealed import Sealed, read_sealed, write_sealed
from kbprobe.options import Options
from kbprobe.parsing import read_yaml, validated
from kbprobe.terminal import echo

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluation.items.sources import ProbeSource
    from evaluation.models.handle import ModelHandle
    from evaluation.results.types import Results
    from evaluation.runs.evaluation import Evaluation
    from evaluation.tracking import Tracked
    from kbprobe.document import Document


LISTED = re.compile(r"^Listed under: (.+)\.\n*", re.MULTILINE)
"""The line of a study's docstring that names its section of the help."""


@dataclass(frozen=True)
class Finished:
    """A run of a study that is finished.

    Attributes:
        evaluation: its results and predictions.
        spec: the run as the study requested it; None if the study was given folders of results.
        folder: where its results are; None if they were not written.
    """

    evaluation: Evaluation
    spec: RunSpec | None = None
    folder: Path | None = None

    @property
    def results(self) -> Results:
        """The results, without the predictions."""
        return self.evaluation.results

    @property
    def asked(self) -> RunSpec:
        """The run as the study requested it.

        Raises:
            UsageError: the study was given folders of results.
        """
        if self.spec is None:
            raise UsageError(f"{self.folder} holds results, and no run of the study")
        return self.spec

    @cached_property
    def predictions(self) -> pa.Table:
        """The rows on which the run's accuracy is based; studies only compare and pool these."""
        from evaluation.results.breakdown import headline_rows

        return headline_rows(self.evaluation.predictions)

    @property
    def learnt(self) -> dict[str, Any]:
        """How the model was fitted first, under the names used in results; empty if it was not."""
        return self.results.model.finetuning or {}

    def asks(self, probe: ProbeSource) -> bool:
        """Return whether the study requested the run on a probe, given by name or in memory."""
        own = None if self.spec is None else self.spec.probe
        return own == probe if isinstance(probe, str) else own is probe


@dataclass(frozen=True)
class Failed:
    """A run of a study that failed, and why."""

    spec: RunSpec
    error: KbprobeError


def finished_in(folder: Path) -> Finished:
    """Read a finished run from its folder of results.

    Raises:
        UsageError: the folder contains no results, or damaged ones.
    """
    # Imported only when results are read, so that --help stays fast.
    from evaluation.runs.folders import load

    return Finished(load(folder), folder=folder)


@dataclass(frozen=True)
class Study:
    """Declares a study: a command of its own, ``evaluate-probe NAME``.

    Attributes:
        name: its name on the command line; of a module's name, the last part.
        help: what it does: the docstring of its module, without the section of the help.
        expand: makes the runs of a request, grouped by model; None if the study is given folders of
            results instead of probes and models. Raises UsageError if the request makes no sense,
            before anything is run, and KbprobeError if a probe or a model cannot be read.
        summarise: makes the summary of the finished runs, in the order of ``expand``, then those
            of ``follow``; if the study is given folders, of what ``read`` returns for each. Raises
            UsageError if the runs are incompatible, or leave nothing to compare. It is a
            :class:`~evaluation.studies.table.StudyTables`, or has a ``document`` and ``sheets`` as
            these have, unless there is ``show``. Its document is printed, and written next to it as
            a page and as Markdown, with what ``data/reading.yaml`` says on how to read the numbers.
        show: prints a summary that has no document, of runs that each stand alone: ``--json``
            prints a line for each instead of the summary.
        collect: makes the summary if a study that has runs is given folders instead, from what
            ``read`` returns for each; None if it cannot be given folders.
        read: reads what the study needs from the path of a folder, by default the finished run in
            it; raises UsageError.
        options: the study's own options; one that runs also have is given to both.
        fixed: options of runs that the study sets itself and users cannot.
        least: the minimum number of folders of results, if it is given folders.
        nested: whether a folder that it is given stands for all results below it.
        follow: makes additional runs from the finished ones, such as a test of the best ones;
            called once, when all runs of ``expand`` are finished.
        finish: does anything else with the summary besides showing and writing it, in one process,
            such as recording figures for other commands.
        track: returns what ``--log-to`` logs of the summary; None if there is no such option.
        modelless: whether it works without a model: without ``--model`` its model is ``none``.
        partial: whether there is a summary if some runs failed: ``summarise`` then gets the failed
            ones as a third argument. If not, the study fails if any of its runs fails.
    """

    name: str
    help: str | None
    expand: Callable[[StudyRequest], Sequence[RunSpec]] | None
    summarise: Callable[..., BaseModel]
    show: Callable[[Any], None] | None = None
    options: type[Options] = Options
    fixed: frozenset[str] = frozenset()
    least: int = 1
    nested: bool = False
    partial: bool = False
    follow: Callable[[StudyRequest, Sequence[Finished]], Sequence[RunSpec]] | None = None
    finish: Callable[[StudyRequest, Any], None] | None = None
    track: Callable[[Any], Sequence[Tracked]] | None = None
    modelless: bool = False
    collect: Callable[[StudyRequest, Sequence[Any]], BaseModel] | None = None
    read: Callable[[Path], Any] = finished_in

    def __post_init__(self) -> None:
        """Take the name from that of the module, and the help from its docstring.

        Raises:
            ValueError: the module has no name, as in a notebook.
        """
        object.__setattr__(self, "name", self.name.rpartition(".")[2])
        if self.name.startswith("__"):
            raise ValueError(
                f"a study cannot be called {self.name}: where code is in no module, as in a "
                'notebook, give it a name and a help: Study(name="sizes", help="...", ...)'
            )
        object.__setattr__(self, "help", LISTED.sub("", self.help or "").strip())

    def takes_folders(self, models: Sequence[Any]) -> bool:
        """Return whether it is given folders of results, judging by the models that are named."""
        return self.expand is None or (self.collect is not None and not models)

    @property
    def independent(self) -> bool:
        """Whether each run stands alone."""
        return self.show is not None

    @property
    def reports_runs(self) -> bool:
        """Whether each run gets a report: it stands alone, or its results are also taken."""
        return self.independent or (self.collect is not None and self.read is finished_in)

    def document_of(self, summary: Any) -> Document:
        """Return the document of a summary, of a study without ``show``."""
        document: Document | None = summary.document
        if document is None:
            raise KbprobeError(f"the document of a {self.name} study is made when it is run")
        return document

    def display(self, summary: Any) -> None:
        """Print a summary for people."""
        if self.show is not None:
            return self.show(summary)
        # Imported only when something is printed, since it imports rich.
        from evaluation.report.terminal import print_document

        return print_document(self.document_of(summary))

    def files(self, summary: Any) -> dict[str, str]:
        """Return the human-readable files of a summary: texts by file name."""
        if self.show is not None:
            return {}
        document = self.document_of(summary)
        reading = document.reading or _readings().get(self.name, ())
        return {**summary.sheets, **pages(self.name, replace(document, reading=reading))}


@dataclass(frozen=True)
class StudyRequest:
    """A user's request for a study.

    Attributes:
        study: the study.
        probes: folders, files, Hub ids or datasets in memory.
        models: folders, files or Hub ids.
        options: the study's own options.
        values: the options of its runs, by name, as given.
        output: parent of the folders of results; if None, nothing is written.
        output_given: whether the user named it.
        tag: a suffix for the names of folders that the user did not name.
        loaded: a model that the caller has loaded, whose name is among ``models``.
    """

    study: Study
    probes: Sequence[ProbeSource] = ()
    models: Sequence[str] = ()
    options: Any = field(default_factory=Options)
    values: Mapping[str, Any] = field(default_factory=dict)
    output: Path | None = None
    output_given: bool = True
    tag: str = ""
    loaded: ModelHandle | None = None

    @classmethod
    def parse(
        cls,
        study: Study,
        probes: Sequence[ProbeSource],
        models: Sequence[str | Path],
        values: Mapping[str, Any],
        output: Path | None = None,
        owner: str = "study",
    ) -> StudyRequest:
        """Divide options given by name into the study's own and those of its runs.

        Raises:
            UsageError: an option is unknown, impossible, or set by the study itself.
        """
        values = import_named(values)
        for name in values:
            if name in study.fixed and name not in study.options.model_fields:
                raise UsageError(f"the study {study.name} sets {name} itself: leave it out")
        alone = study.takes_folders(models)
        own_names: Iterable[str] = values if alone else study.options.model_fields
        own = {name: value for name, value in values.items() if name in own_names}
        rest = {
            name: value
            for name, value in values.items()
            if name not in own or name in RunOptions.model_fields
        }
        if not alone:
            further = [study.options, *(entry.options for entry in plugins())]
            parse_options(rest, further, owner)
        return cls(
            study,
            _distinct(probe for given in probes for probe in _probes_of(given)),
            list(dict.fromkeys(map(str, models))) or [NO_MODEL] * study.modelless,
            study.options.parse(own, owner),
            rest,
            output,
        )

    @cached_property
    def defaults(self) -> RunSpec:
        """A run without a probe or a model, with the given options."""
        return RunSpec.parse("", "", self.values)

    def named_probes(self) -> list[str]:
        """Return the probes, for a study that rereads them by name.

        Raises:
            UsageError: one is a dataset in memory.
        """
        if odd := [probe for probe in self.probes if not isinstance(probe, str)]:
            raise UsageError(
                f"{self.study.name} needs probes by name, and got a dataset in memory "
                f"({type(odd[0]).__name__}): save it, and name its folder"
            )
        return [str(probe) for probe in self.probes]

    def spec(self, probe: ProbeSource, model: str, **changes: Any) -> RunSpec:
        """Make one of the study's runs, with some options changed.

        Results go to a folder within :attr:`output`: of the probe (and config, if there is one),
        the model, and whatever else is changed, such as ``train-125/seed-1``. Where each run
        stands alone, the model's folder names the options that were given as well, and the tag:
        ``MODEL+limit-200+TAG``.

        Raises:
            UsageError: an option is unknown or its value impossible.
        """
        spec = RunSpec.parse(probe, model, {**self.values, **changes})
        if self.loaded is not None and model != NO_MODEL:
            spec.refuse_for_loaded()
            spec = replace(spec, loaded=self.loaded)
        if self.output is None:
            return spec
        name = self.probe_folder(probe)
        varied = flat(changes)
        options = {key: value for key, value in spec.named_options().items() if key not in varied}
        own = options.pop("config", None) if self.study.independent else None
        if config := changes.get("config", own):
            name = f"{name}-{config}"
        varied = {key: value for key, value in changes.items() if key != "config"}
        rest = [
            # Revisions may contain slashes: pull request branches, stages of training.
            f"{k}-{v}".replace("/", "--").replace("\\", "--")
            for k, v in varied.items()
            if not isinstance(v, bool)
        ]
        added = options_name(options, self.tag) if self.study.independent else ""
        own = "+".join(filter(None, (self.model_folder(model), added)))
        return replace(spec, folder=self.output.joinpath(name, own, *rest))

    def within_model(self, spec: RunSpec, *parts: str) -> RunSpec:
        """Return a run whose results go to a folder within that of its model."""
        if self.output is None:
            return spec
        return replace(spec, folder=self.output.joinpath(self.model_folder(spec.model), *parts))

    def within(self, parent: Path) -> StudyRequest:
        """Return the request with an output folder, if the user did not name one.

        The folder of a study is named after the study, the given options, and the tag; independent
        runs have separate folders in it.
        """
        output = parent
        if not self.study.independent:
            added = options_name(self.defaults.named_options(), self.tag)
            output = parent / "+".join(filter(None, (self.study.name, added)))
        return replace(self, output=output, output_given=False)

    def model_folder(self, model: str) -> str:
        """Return the name of a model's folder: no two models of the request share one."""
        return folder_names([*self.models, model])[model]

    def probe_folder(self, probe: ProbeSource) -> str:
        """Return the name of a probe's folder: no two probes of the request share one."""
        if not isinstance(probe, str):
            return "in-memory"
        named = [other for other in self.probes if isinstance(other, str)]
        return folder_names([*named, probe])[probe]


def _probes_of(given: ProbeSource | Path) -> list[ProbeSource]:
    """Return the probe given, or the probes of a suite if it is a suite's folder."""
    if not isinstance(given, str | Path):
        return [given]
    # Imported only when probes are named, since it imports manifests.
    from kbprobe.format.suite import members

    return [*members(str(given))]


def _distinct(probes: Iterable[ProbeSource]) -> list[ProbeSource]:
    """Remove duplicates; datasets in memory are compared by identity."""
    distinct = {probe if isinstance(probe, str) else id(probe): probe for probe in probes}
    return list(distinct.values())


def summarise_folders(request: StudyRequest, folders: Sequence[Path]) -> Any:
    """Summarise existing results, for a study that is given folders of them.

    The summary is written to the request's output folder, if it names one.

    Raises:
        UsageError: a folder lacks what the study reads, or the folders are unsuitable for the
            study.
    """
    study = request.study
    if study.nested:
        folders = _without_repeats([place for one in folders for place in _results_in(one)])
    if len(folders) < study.least:
        number = {1: "one folder", 2: "two folders"}.get(study.least, f"{study.least} folders")
        models = "" if study.expand is None else ", or a probe and --model"
        raise UsageError(f"{study.name} takes at least {number} with results{models}")
    summary = (study.collect or study.summarise)(request, [study.read(path) for path in folders])
    if request.output is not None:
        with taking(request.output):
            write_summary(study, summary, request.output)
    return summary


def _results_in(folder: Path) -> Sequence[Path]:
    """Return the folders of results below a folder; the folder itself if it holds none or is one.

    An evaluation of several probes with several models writes such a folder. Of the same results
    in several folders, such as those of a study, the first ones count.
    """
    # Imported only for folders of results, so that --help stays fast.
    from evaluation.results.types import RESULTS, read_results, results_below

    if (folder / RESULTS).is_file():
        return [folder]
    distinct: dict[object, Path] = {}
    for place in results_below(folder):
        distinct.setdefault(read_results(place).identity, place)
    return [*distinct.values()] or [folder]


def _without_repeats(folders: Sequence[Path]) -> list[Path]:
    """Leave out folders that are named again, which are no further results, and say so on stderr.

    Two folders with equal results are compared: a run may have been repeated.
    """
    distinct: dict[Path, Path] = {}
    for folder in folders:
        if (place := folder.resolve()) in distinct:
            echo(f"evaluate-probe: left out: {folder}, which is named twice", err=True)
        else:
            distinct[place] = folder
    return [*distinct.values()]


@cache
def _readings() -> dict[str, list[str]]:
    """Return the paragraphs on how to read the numbers of built-in studies, by study."""
    readings: dict[str, list[str]] = read_yaml(Path(__file__).parent / "data" / "reading.yaml")
    return readings


_Summary = TypeVar("_Summary", bound=BaseModel)


def read_summary(
    folder: Path,
    study: str,
    kind: type[_Summary],
    version: str,
    makes: str,
) -> _Summary:
    """Read the summary of a study from its folder, or from the file itself.

    ``makes`` is the rest of the command that writes one, after the study's name, for messages.

    Raises:
        UsageError: there is none, or it is damaged or of another schema.
    """
    path = folder if folder.is_file() else folder / f"{study}.json"
    again = f"Run evaluate-probe {study} again with the same -o: finished runs are reused."
    try:
        content = read_sealed(path, again, version)
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no summary of the study {study} (no {study}.json). Make it with: "
            f"evaluate-probe {study} {makes} -o {folder}"
        ) from None
    return validated(content, kind, str(path), again)


def pages(name: str, document: Document) -> dict[str, str]:
    """Return the pages of a document, which accompany ``NAME.json``: texts by file name."""
    # Imported only when a page is made, so that --help stays fast.
    from evaluation.report.html import render_page
    from evaluation.report.markdown import render_markdown

    return {
        f"{name}.html": render_page(document, f"{name}.json"),
        f"{name}.md": render_markdown(document),
    }


def write_summary(study: Study, summary: BaseModel, output: Path) -> list[Path]:
    """Write a study's summary and its pages into a folder, like `write_record`."""
    return write_record(study.name, summary, study.files(summary), output)


def write_record(
    name: str, record: BaseModel, files: Mapping[str, str], output: Path
) -> list[Path]:
    """Write a record as ``NAME.json``, and additional files, into a folder; return all paths.

    Raises:
        KbprobeError: a file cannot be written.
    """
    path, content = output / f"{name}.json", record.model_dump_json(indent=2) + "\n"
    try:
        if isinstance(record, Sealed):
            write_sealed(path, content)
        else:
            write_file(path, content.encode("utf-8", errors="backslashreplace"))
        for further, text in files.items():
            write_file(output / further, text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        raise KbprobeError(
            f"{error.filename or output} cannot be written ({error.strerror}): choose another "
            "folder with -o"
        ) from error
    return [path, *(output / further for further in files)]
