"""Scorers that are ready to score: loaded, or fitted once for runs with the same training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from evaluation.learners.base import FINETUNED, ModelLearner, Training
from evaluation.learners.kept import TrainedOnce
from evaluation.models.capabilities import head_that_gives
from evaluation.runs.run import Run
from evaluation.scorers.base import ReadyScorer, ScorerInputs
from evaluation.workers import Session
from kbprobe.files.cache import cache_dir


class ReadyScorers:
    """Makes the scorers for the runs of one model.

    The scorer that was fitted last is held: later runs with the same training reuse it, and a
    longer training may continue from it. It is released when another one has been fitted, or at the
    end of the block. If the block ends with an error, it is left on disk for the next run that
    needs it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._held: tuple[str, ReadyScorer] | None = None
        self._release = ExitStack()
        self._failed = False
        self._done: dict[str, Run] = {}

    def __enter__(self) -> ReadyScorers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._failed:
            self._release.close()
            self._discard()

    def get(self, run: Run) -> ReadyScorer:
        """Return the scorer of a run.

        Raises:
            UsageError: the model lacks a head, or the learner cannot be fitted on these rows.
            KbprobeError: the model cannot be loaded, or training failed.
        """
        self._session.progress("loading", 0, 0)
        learner = run.learner
        if isinstance(learner, ModelLearner):
            return self._fitted(run, learner)
        further = (run.scorer_options, run.train_items, run.spec.run.seed)
        if not run.scorer.needs:
            return ReadyScorer(run.scorer.make(ScorerInputs(None, None, *further)), 0)
        head = run.model.checkpoint.head
        if run.scorer.needs not in head.gives:
            head = head_that_gives(run.scorer.needs, run.model.checkpoint.encoder_decoder)
        model, tokenizer = run.model.load(head)
        scorer = run.scorer.make(ScorerInputs(model, tokenizer, *further))
        return ReadyScorer(scorer, model.num_parameters())

    def done(self, run: Run) -> None:
        """Record that a run is done, so that its trained model is removed at the end of the block.

        An earlier process may have left it, if it was killed after the run had been scored.
        """
        if isinstance(run.learner, ModelLearner):
            self._done[run.fitting_key] = run

    def _discard(self) -> None:
        if not any((cache_dir() / FINETUNED).glob("*")):
            return
        for run in self._done.values():
            assert isinstance(run.learner, ModelLearner)
            fitting = run.learner.fit(self._training(run))
            if isinstance(fitting, TrainedOnce):
                fitting.discard()

    def _training(self, run: Run) -> Training:
        return Training(
            run.model,
            run.fitted_items,
            run.train_seed,
            run.learner_options,
            self._session.workers,
            self._session.progress,
            run.first_items,
            run.spec.run.seed,
        )

    @contextmanager
    def kept_on_error(self) -> Iterator[None]:
        """Keep the held scorer if a run that uses it fails, so that the run can be repeated."""
        try:
            yield
        except Exception:
            self._failed = self._held is not None
            raise

    def _fitted(self, run: Run, learner: ModelLearner) -> ReadyScorer:
        if self._held is not None and self._held[0] == run.fitting_key:
            return self._held[1]
        self._held = None  # Two models need not be in memory at once.
        with ExitStack() as stack:
            ready = stack.enter_context(learner.fit(self._training(run)))
            if self._failed:
                self._release.pop_all()
            self._failed = False
            # Only now: the training that has just ended may have gone on from the earlier one.
            self._release.close()
            self._release = stack.pop_all()
        self._held = run.fitting_key, ready
        return ready
