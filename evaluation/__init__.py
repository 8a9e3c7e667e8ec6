"""Evaluation: score language models on probes, compare them, and study what they know.

>>> import evaluation
>>> done = evaluation.evaluate("probes/wordnet_hypernymy", "roberta-base")  # doctest: +SKIP
>>> done.results.metrics.accuracy.value  # doctest: +SKIP
0.41
>>> done.to_pandas().groupby("hops").correct.mean()  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kbprobe.errors import naming_extras

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from evaluation.callback import ProbeCallback
    from evaluation.items.sources import ProbeSource
    from evaluation.report.suite import SuitePage
    from evaluation.result import Result, compare

__all__ = ["ProbeCallback", "compare", "evaluate", "load", "report_suite", "study"]


_STUDIED = (
    "a checkpoint's folder, a .gguf file or a Hub id, or a list of these; or one loaded model of "
    "transformers with its tokenizer: study(NAME, PROBES, model, tokenizer=tokenizer)"
)


_IMPORTED = {"ProbeCallback": "evaluation.callback", "compare": "evaluation.result"}
"""What is imported on first use, and from where: the callback needs transformers."""


def __getattr__(name: str) -> Any:
    if name in _IMPORTED:
        return getattr(import_module(_IMPORTED[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@naming_extras()
def evaluate(
    probe: ProbeSource,
    model: str | Path | PreTrainedModel | None,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Result:
    """Evaluate a model on a probe.

    Args:
        probe: a folder that ``build-probe`` wrote, a Hub id, a file of published items, or a
            dataset in memory, such as :func:`builders.build` returns.
        model: a checkpoint's folder, a ``.gguf`` file, or a Hub id; or a loaded model of
            transformers, which is scored as it is, on its device and in its dtype, and left as it
            was; None for a scorer that needs no model.
        tokenizer: of a loaded model.
        output: where to also write results, predictions and report; if None, they stay in memory.
            Existing results of the same request are read instead of computed again.
        overwrite: replace other results in ``output``.
        **options: as ``evaluate-probe --help`` lists them, with underscores: those of every run
            (:class:`evaluation.options.RunOptions`) and of the scorer or learner used.

    Returns:
        Results, and predictions with a row per item (``to_pandas()``); ``report()`` shows them,
        ``save(folder)`` writes them. If rows rest on single facts, ``facts`` holds the same for
        these facts, and ``results.analyses`` relates the two.

    Raises:
        UsageError: an unknown option, probe or model, unlabelled rows, a head that was never
            trained, or an ``output`` that holds something else.
        KbprobeError: the probe or the model cannot be read or run.
        MissingDependencyError: torch or transformers is not installed.
    """
    from evaluation.items.sources import source_argument
    from evaluation.result import Result
    from evaluation.runs.executor import execute
    from evaluation.runs.in_memory import taking_model
    from evaluation.runs.spec import RunSpec
    from evaluation.workers import ALONE, Session, find_workers
    from kbprobe.errors import optional_path

    source = source_argument("evaluate(probe=...)", probe)
    folder = optional_path("evaluate(output=...)", output)
    asked = RunSpec.parse(source, "", options, folder)
    with taking_model(asked, model, tokenizer) as spec:
        workers = ALONE if spec.loaded else find_workers(spec.run)
        (outcome,) = execute([spec], Session(overwrite, workers))
    return Result.of(outcome.or_raise())


@naming_extras()
def study(
    name: str,
    probes: ProbeSource | Sequence[ProbeSource],
    models: str | Path | Sequence[str | Path] | PreTrainedModel = (),
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    output: str | Path | None = None,
    overwrite: bool = False,
    **options: Any,
) -> Any:
    """Run a study: several runs, summarised together.

    >>> import evaluation
    >>> evaluation.study("curve", "probes/age_comparison", "roberta-base")  # doctest: +SKIP
    >>> evaluation.study("compare", ["results/a", "results/b"])  # doctest: +SKIP

    Args:
        name: the study's name; ``evaluate-probe --help`` lists them.
        probes: one or several, as for :func:`evaluate`; or the folders of results that the study
            is about.
        models: one or several, as for :func:`evaluate`; or one loaded model, for studies that train
            no model.
        tokenizer: of a loaded model.
        output: parent folder of the runs' results; if None, they stay in memory.
        overwrite: replace other results in these folders.
        **options: options of the study and of its runs.

    Returns:
        The study's summary, a pydantic model.

    Raises:
        UsageError: there is no such study or option, or a run is refused.
        KbprobeError: a probe or model cannot be read or run.
    """
    from dataclasses import replace

    from evaluation.items.sources import source_argument
    from evaluation.runs.in_memory import taking_model
    from evaluation.studies.base import StudyRequest, summarise_folders
    from evaluation.studies.registry import STUDIES
    from evaluation.studies.run import run_study
    from evaluation.tracking import take_tracking
    from evaluation.workers import Session, find_workers
    from kbprobe.errors import RESULTS, optional_path, path_argument

    declared = STUDIES.get(name)
    tracking = None if declared.track is None else take_tracking(options, "study")
    given = probes if isinstance(probes, list | tuple) else [probes]
    several = models if isinstance(models, list | tuple) else [models]
    model = several[0] if len(several) == 1 and hasattr(several[0], "config") else None
    several = several if model is None else ["loaded"]  # it is named when it is identified
    checked = [path_argument("study(models=...)", model, _STUDIED) for model in several]
    folder, place = optional_path("study(output=...)", output), "study(probes=...)"
    if declared.takes_folders(checked):
        folders = [path_argument(place, one, RESULTS) for one in given]
        request = StudyRequest.parse(declared, (), checked, options, folder)
        return summarise_folders(request, folders)
    sources = [source_argument(place, probe) for probe in given]
    request = StudyRequest.parse(declared, sources, checked, options, folder)
    if model is None and tokenizer is None:
        session = Session(overwrite, find_workers(request.defaults.run))
        return run_study(request, session, tracking=tracking)
    with taking_model(request.defaults, model, tokenizer) as spec:
        values = {**request.values, "cache": spec.run.cache}
        request = replace(request, models=[spec.model], values=values, loaded=spec.loaded)
        return run_study(request, Session(overwrite), tracking=tracking)


@naming_extras()
def load(folder: str | Path) -> Result:
    """Read the results of an earlier evaluation from their folder.

    Raises:
        UsageError: the folder holds no results, or damaged ones.
    """
    from evaluation.result import Result
    from evaluation.runs.folders import load as load_folder
    from kbprobe.errors import RESULTS, path_argument

    return Result.of(load_folder(path_argument("load(folder=...)", folder, RESULTS)))


@naming_extras()
def report_suite(
    folder: str | Path, output: str | Path | None = None, *, rows: int | None = None
) -> SuitePage:
    """Write one page of all results below a folder: leaderboard, profiles, heat maps, questions.

    Args:
        folder: the folder.
        output: the file to write; if None, ``report.html`` in the folder.
        rows: maximum number of questions per probe on the page; a sample is drawn if there are
            more. 0 for none; if None, 50,000.

    Returns:
        The page's path, what is on it, and why each folder that is not on it was left out.

    Raises:
        UsageError: there is no such folder, or it contains no readable results.
        MissingDependencyError: itables or matplotlib is not installed.
        KbprobeError: the page cannot be written.
    """
    from evaluation.report.suite import DEFAULT_ROWS, make_suite_page
    from kbprobe.errors import optional_path, path_argument

    file = optional_path("report_suite(output=...)", output, "the file to write, or None")
    place = path_argument("report_suite(folder=...)", folder, "a folder of results")
    return make_suite_page(place, file, DEFAULT_ROWS if rows is None else rows)
