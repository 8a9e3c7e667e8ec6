"""Executing runs: models loaded once, finished runs found again, and one folder of results each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from evaluation.items.sources import open_probe
from evaluation.items.types import ProbeSplit, choice_starts, ids_of, joined
from evaluation.learners.base import HeadLearner, HeadTraining
from evaluation.learners.registry import LEARNERS
from evaluation.models.handle import ModelHandle
from evaluation.options import ModelOptions
from evaluation.results.analyses import facts as facts_analysis
from evaluation.results.analyses.composition import relate, with_facts
from evaluation.runs.evaluation import Evaluation, evaluate_run
from evaluation.runs.folders import earlier_results, holding, save
from evaluation.runs.identity import of_results, of_run, other_results
from evaluation.runs.reading import SplitReader
from evaluation.runs.ready import ReadyScorers
from evaluation.runs.run import Run, open_run
from evaluation.runs.score_cache import SCORES, ScoreCache
from evaluation.runs.spec import RunSpec
from evaluation.workers import QUIET, Session, Workers
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import scratch_folder
from kbprobe.files.cache import cache_dir


def learns_heads(spec: RunSpec) -> bool:
    """Return whether a run asks for a learner that trains heads."""
    name = spec.run.learner
    return name in LEARNERS.names() and isinstance(LEARNERS.get(name or ""), HeadLearner)


def fit_heads(runs: Sequence[Run], folder: Path, session: Session) -> None:
    """Fit the heads of all runs of a model whose scores are not known; store the scores.

    Workers share the computation of vectors; the first one trains the heads.

    Each run's scores are stored as soon as they are there, so that nothing is fitted twice.
    """
    unknown: dict[str, tuple[Run, ScoreCache]] = {}
    workers = session.workers
    for run in runs:
        cache = ScoreCache(run.content, folder / SCORES)
        if cache.read(choice_starts(run.rows.items)) is None:
            unknown[cache.key] = run, cache
    # Every process must have looked before one of them writes.
    workers.wait()
    for learner in LEARNERS:
        if not isinstance(learner, HeadLearner):
            continue
        together = [one for one in unknown.values() if one[0].learner is learner]
        if not together:
            continue
        fittings = [run.head_fitting for run, _ in together]
        training = HeadTraining(together[0][0].model, fittings, folder, workers, session.progress)
        with workers.together():
            for number, scores in learner.fit(training):
                run, cache = together[number]
                cache.write(scores, choice_starts(run.rows.items))


def sub_question_configs(rows: ProbeSplit) -> list[str]:
    """Return the configs that ask for the facts which rows rest on, from the manifest."""
    return [*rows.manifest.sub_questions] if rows.manifest else []


def open_sub_questions(run: Run) -> Run | None:
    """Return the run of the facts that a run's rows rest on; None where none are there or wanted.

    The model is the one that answers the rows: what is fine-tuned learns from their train split.
    Shots are examples of facts, and never one of those asked. Facts are not asked of a head on
    frozen vectors, which only fits the rows.

    Raises:
        UsageError: shots are wanted, and the sub-questions have no train split.
        KbprobeError: a sub-question cannot be read.
    """
    rows, configs = run.rows, sub_question_configs(run.rows)
    if not run.spec.run.facts or rows.links is None or not configs:
        return None
    if isinstance(run.learner, HeadLearner):
        return None
    named = {name for ids in rows.links.fact_ids for name in ids}
    facts = _joined(rows, configs, list(_rows_in(run, configs, named)))
    if facts is None:
        return None
    if run.train is None or run.learner is not None:
        return replace(run, rows=facts)
    parts = [open_probe(run.spec.probe, split="train", config=config) for config in configs]
    examples = [
        part.take([row for row, name in enumerate(ids_of(part.items)) if name not in named])
        for part in parts
    ]
    train = _joined(rows, configs, [part for part in examples if len(part.items)])
    return replace(run, rows=facts, train=train)


def relate_sub_questions(run: Run, done: Evaluation, facts: Evaluation) -> Evaluation:
    """Add to a run's evaluation how its rows relate to the facts that they rest on."""
    links = run.rows.links
    if links is None:
        return done
    predictions = with_facts(done.predictions, links, facts.predictions)
    block = relate(
        predictions,
        links,
        facts.predictions,
        facts.results.metrics,
        sub_question_configs(run.rows),
        run.spec.run.seed,
    )
    return Evaluation(done.results.with_analysis(facts_analysis.NAME, block), predictions, facts)


def _rows_in(run: Run, configs: Sequence[str], named: set[str]) -> Iterator[ProbeSplit]:
    """Read the named rows of every split of some configs."""
    for entry in run.rows.manifest.files if run.rows.manifest else ():
        if entry.config in configs:
            part = open_probe(run.spec.probe, split=entry.split, config=entry.config)
            rows = [row for row, name in enumerate(ids_of(part.items)) if name in named]
            if rows:
                yield part.take(rows)


def _joined(
    rows: ProbeSplit, configs: Sequence[str], parts: Sequence[ProbeSplit]
) -> ProbeSplit | None:
    """Put rows of several splits and configs together; None where there are none."""
    if not parts:
        return None
    manifest = rows.manifest and rows.manifest.model_copy(update={"audit": None})
    found = joined(parts, f"{rows.name}-{'+'.join(configs)}", rows.split)
    return replace(found, manifest=manifest, links=None)


@dataclass(frozen=True)
class Outcome:
    """A run that ended: with an evaluation (made now, or found in its folder) or an error."""

    spec: RunSpec
    result: Evaluation | KbprobeError
    found: bool = False

    def or_raise(self) -> Evaluation:
        """Return the evaluation, or raise the error."""
        if isinstance(self.result, KbprobeError):
            raise self.result
        return self.result


def execute(specs: Sequence[RunSpec], session: Session = QUIET) -> Iterator[Outcome]:
    """Execute runs in this process and those that share it, and write their results.

    A model is opened and loaded once for runs that follow each other, and fitted once for those
    with the same training; their heads on frozen vectors are trained side by side. An error ends
    its own run alone. Scores of runs that are finished, or were interrupted, are found by the hash
    of what they depend on (:attr:`evaluation.runs.run.Run.key`), whichever study asked for them.

    Yields:
        The outcome of each run, in order.
    """
    with RunsOfModels(session) as runs:
        for _, group in groupby(specs, key=model_key):
            yield from runs.outcomes(list(group))


class RunsOfModels:
    """Executes runs of one model after another; the last one stays open for further runs of it."""

    def __init__(self, session: Session = QUIET) -> None:
        self._session, self._reader = session, SplitReader()
        self._held, self._model = ExitStack(), ""
        self._run_all: Callable[[Sequence[RunSpec]], Iterator[Outcome]] | None = None

    def __enter__(self) -> RunsOfModels:
        """Return itself."""
        return self

    def __exit__(self, *error: Any) -> None:
        """Release the model; what an error interrupted is kept for the next run that needs it."""
        held, self._held, self._model = self._held, ExitStack(), ""
        held.__exit__(*error)

    def close(self) -> None:
        """Release the model."""
        self.__exit__(None, None, None)

    def outcomes(self, specs: Sequence[RunSpec]) -> Iterator[Outcome]:
        """Execute runs of one model: see :func:`execute`."""
        cache = all(spec.run.cache for spec in specs)
        if (model := f"{model_key(specs[0])} {cache}") != self._model:
            self.close()
            opened = opened_model(specs[0], cache, self._reader, self._session)
            try:
                self._run_all = self._held.enter_context(opened)
            except KbprobeError as error:
                yield from (Outcome(spec, error) for spec in specs)
                return
            self._model = model
        assert self._run_all is not None
        yield from self._run_all(specs)


@contextmanager
def opened_model(
    spec: RunSpec,
    cache: bool,
    reader: SplitReader,
    session: Session = QUIET,
) -> Iterator[Callable[[Sequence[RunSpec]], Iterator[Outcome]]]:
    """Open the model of a run, and yield what executes runs of that model: see :func:`execute`.

    Its weights are loaded when they are first needed, and released at the end of the block.

    Raises:
        KbprobeError: the model cannot be opened.
    """
    with _entries(cache, session.workers) as entries, ReadyScorers(session) as scorers:
        model = spec.loaded or open_handle(*model_of(spec), entries)
        yield _ModelExecutor(model, scorers, reader, entries, session).outcomes


def open_handle(
    model: str, options: ModelOptions, root: Path, *, connect: bool = True
) -> ModelHandle:
    """Open a model, local or behind an endpoint: see :class:`ModelHandle`.

    ``root`` is the folder of caches; ``connect`` is False if an endpoint is not to be asked.

    Raises:
        UsageError: there is no such model.
        KbprobeError: it cannot be fetched, read or reached.
    """
    if options.endpoint is None:
        return ModelHandle(model, options)
    from evaluation.endpoints.handle import EndpointHandle

    return EndpointHandle(model, options, root, connect=connect)


def model_of(spec: RunSpec) -> tuple[str, ModelOptions]:
    """Return a run's model and model options."""
    return spec.model, ModelOptions(**spec.run.model_dump(include=set(ModelOptions.model_fields)))


def model_key(spec: RunSpec) -> str:
    """Return a text that is the same for runs that share a loaded model."""
    name, options = model_of(spec)
    return f"{name} {options.model_dump_json()}"


@contextmanager
def _entries(cache: bool, workers: Workers) -> Iterator[Path]:
    """Yield the folder for scores and vectors; a temporary one with --no-cache."""
    if cache:
        yield cache_dir()
        return
    if workers.count > 1:
        raise UsageError("--no-cache needs a single process: several share scores in the cache")
    with scratch_folder() as folder:
        yield folder


@dataclass
class _ModelExecutor:
    """Executes the runs of one model."""

    model: ModelHandle
    scorers: ReadyScorers
    reader: SplitReader
    entries: Path
    session: Session

    def outcomes(self, specs: Sequence[RunSpec]) -> Iterator[Outcome]:
        """Execute all runs; heads are trained when the first of them has its turn."""
        failed: dict[int, KbprobeError] | None = None
        for number, spec in enumerate(specs):
            if failed is None and learns_heads(spec):
                failed = self._fit_heads(specs)
            try:
                if failed and number in failed:
                    raise failed[number]
                yield self._execute(spec)
            except KbprobeError as error:
                yield Outcome(spec, error)
            except OSError as error:
                reason = f"{error.strerror or error}: {error.filename or spec.folder}"
                yield Outcome(spec, KbprobeError(f"{reason}. Choose another folder with -o."))

    def _fit_heads(self, specs: Sequence[RunSpec]) -> dict[int, KbprobeError]:
        """Train all heads whose scores are not known, and return what went wrong, by run."""
        failed: dict[int, KbprobeError] = {}
        runs: list[Run] = []
        for number, spec in enumerate(specs):
            if learns_heads(spec):
                try:
                    runs.append(open_run(spec, self.model, self.reader))
                except KbprobeError as error:
                    failed[number] = error
        fit_heads(runs, self.entries, self.session)
        return failed

    def _execute(self, spec: RunSpec) -> Outcome:
        self.session.progress(f"reading {spec.probe_name}", 0, 0)
        run = open_run(spec, self.model, self.reader)
        facts = open_sub_questions(run)
        if spec.folder is None:
            return self._run(spec, run, facts, self.session.overwrite)
        with holding(spec.folder, self.session) as overwrite:
            return self._run(spec, run, facts, overwrite)

    def _run(self, spec: RunSpec, run: Run, facts: Run | None, overwrite: bool) -> Outcome:
        """Execute a run whose folder, if it has one, is held."""
        earlier = None if spec.folder is None else earlier_results(spec.folder, overwrite)
        # Every process must have looked before one of them writes.
        self.session.workers.wait()
        done = None
        if earlier is not None and spec.folder is not None and not run.must_fit:
            pairs = [(earlier, run)]
            if facts is not None and earlier.facts is not None:
                pairs.append((earlier.facts, facts))
            for evaluation, own in pairs:
                there, now = of_results(evaluation.results), of_run(own)
                if not there.is_same(now):
                    raise other_results(spec.folder, there.differences(now))
            if facts is None or earlier.facts is not None:
                self.scorers.done(run)
                return Outcome(spec, earlier, found=True)
            done = earlier
        with self.scorers.kept_on_error():
            evaluation = self._evaluate(run, facts, done)
        if self.session.workers.leads and spec.folder is not None:
            save(evaluation, spec.folder, self.session.reports)
        return Outcome(spec, evaluation)

    def _evaluate(self, run: Run, facts: Run | None, done: Evaluation | None) -> Evaluation:
        """Evaluate a run, unless that is done, and the facts that its rows rest on."""
        ready, scores = self.scorers.get, self.entries / SCORES
        if done is None:
            done = evaluate_run(run, ready, self.session, scores)
            self.scorers.done(run)
        if facts is None:
            return done
        try:
            alone = evaluate_run(facts, ready, self.session.prefixed(lambda: "facts: "), scores)
        except UsageError as error:
            raise UsageError(
                f"{facts.rows.name}: {error} (--no-facts evaluates only {run.rows.name})"
            ) from error
        return relate_sub_questions(run, done, alone)


def announce_requests(specs: Sequence[RunSpec]) -> list[Run]:
    """Have the scorer of each run report how many prompts it would send, and about how many tokens.

    Nothing is sent.

    Returns:
        The runs, with those of the single facts that their questions combine.

    Raises:
        UsageError: a model is not behind an endpoint, or a run cannot be made.
        KbprobeError: a probe or stored answers cannot be read.
    """
    runs: list[Run] = []
    reader = SplitReader()
    for spec in specs:
        if spec.run.endpoint is None:
            raise UsageError("--dry-run tells what is sent to --endpoint URL: give it as well")
        model = open_handle(*model_of(spec), cache_dir(), connect=False)
        run = open_run(spec, model, reader)
        facts = open_sub_questions(run)
        with ReadyScorers(QUIET) as scorers:
            for one in (run, facts):
                if one is not None:
                    scorers.get(one).scorer.encode(one.items)
                    runs.append(one)
    return runs
