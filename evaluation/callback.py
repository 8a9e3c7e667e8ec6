"""A callback of transformers' Trainer: accuracy on probes while a model is being trained."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import pyarrow.compute as pc

from evaluation.items.sources import source_argument
from evaluation.items.types import choice_starts
from evaluation.models.handle import ModelInMemory, leaving_no_trace, without_autocast
from evaluation.results.breakdown import headline_rows
from evaluation.results.metrics import predictions_table, tie_tolerance
from evaluation.results.types import Normalization
from evaluation.runs.run import open_run
from evaluation.runs.scoring import score_encoded
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.batching import BackOff
from evaluation.tracking import logged_name
from kbprobe.errors import KbprobeError, MissingDependencyError, UsageError

if TYPE_CHECKING:
    from transformers import Trainer, TrainerControl, TrainerState, TrainingArguments

    from evaluation.items.sources import ProbeSource


class RepeatedEvaluation:
    """Evaluates a model in memory on the same rows, each time with its current weights.

    Rows are read and tokenized once. Which shortcuts the model's code supports (:class:`Scorer`) is
    also tested once, in the dtype of the weights: under autocast, two ways to compute the same
    number differ too much to be distinguished from an error.
    """

    def __init__(self, spec: RunSpec, model: ModelInMemory) -> None:
        """Read the rows and tokenize them.

        Raises:
            UsageError: there is no such probe or split; no scorer reads such a model; an option
                is one of loading or fine-tuning a checkpoint.
            KbprobeError: the probe cannot be read, or the model gives no finite numbers.
        """
        spec.refuse_for_loaded("cache", "facts", "similarity")
        run = open_run(spec, model)
        if not run.scorer.needs or run.scorer.needs not in model.checkpoint.capabilities:
            raise UsageError(
                f"{run.scorer.label} does not score a {model.checkpoint.architecture} in memory: "
                "leave the option scorer out"
            )
        self.name, self.run = run.rows.name, run
        self._model, tokenizer = model.load(model.checkpoint.head)
        with leaving_no_trace(self._model), without_autocast(self._model):
            further = (run.scorer_options, run.train_items, spec.run.seed)
            self._scorer = run.scorer.make(ScorerInputs(self._model, tokenizer, *further))
            self._score_name, parts = self._scorer.encode_parts([run.items])
            self._encoded = next(parts)
        self._starts = choice_starts(run.items)
        self._back_off = BackOff()
        if len(self._encoded.set_aside) == len(run.items):
            raise UsageError(f"{self.name}: {next(iter(self._encoded.set_aside.values()))}")

    def accuracy(self) -> float:
        """Score all rows with the weights as they are, and return the share answered correctly.

        Equal to ``results.metrics.accuracy.value`` of an evaluation of a checkpoint saved now.

        Raises:
            KbprobeError: a score is not a number, or memory does not suffice.
        """
        run = self.run
        with leaving_no_trace(self._model):
            scores = score_encoded(
                self._scorer,
                self._encoded,
                self._starts,
                self._score_name,
                run.model.batch_tokens,
                back_off=self._back_off,
            )
        normalization = cast(Normalization, run.normalization)
        tolerance = tie_tolerance(run.model.dtype_name, run.rows, scores, normalization)
        table = predictions_table(run.rows, scores, normalization, tolerance)
        share = pc.mean(headline_rows(table)["correct"]).as_py()
        if share is None:
            raise KbprobeError(f"{self.name}: no row was scored")
        return float(share)


try:
    from transformers import TrainerCallback
except ImportError:
    raise MissingDependencyError("transformers", "eval", "ProbeCallback") from None


Event = Literal["epoch", "evaluate", "save"]
DEFAULT_LIMIT = 500
RUNTIME = "eval_probes_runtime"


class ProbeCallback(TrainerCallback):
    """Evaluates the model that a Trainer is training on probes, and logs the accuracies.

    >>> trainer.add_callback(  # doctest: +SKIP
    ...     kbprobe.ProbeCallback(trainer, "probes/age_comparison", every=500)
    ... )

    What is logged goes where the Trainer logs to: ``trainer.state.log_history`` and the reporters
    of ``report_to``. It is ``eval_NAME_accuracy`` for each probe, a share from 0 to 1, and
    ``eval_probes_runtime``, in seconds. At an evaluation the accuracies are among its metrics as
    well, so that ``metric_for_best_model`` may name one.

    The model itself is evaluated, not a copy, and training goes on as if it had not been: training
    modes and random states are restored. Of several processes the main one evaluates, and the
    others wait for it at their next step.

    Attributes:
        seconds: time spent so far on reading the probes and on evaluating.
    """

    def __init__(
        self,
        trainer: Trainer,
        probes: ProbeSource | Sequence[ProbeSource] | Mapping[str, ProbeSource],
        *,
        every: int | Event = 500,
        at_start: bool = True,
        limit: int | None = DEFAULT_LIMIT,
        tokenizer: Any = None,
        **options: Any,
    ) -> None:
        """Return what is evaluated, and when; probes are read when training begins.

        Args:
            trainer: the Trainer that logs; the callback must be added to it.
            probes: one or several, as for :func:`evaluation.evaluate`; or by the names that they
                are to be logged under.
            every: a number of steps, after which and at the end of which the probes are evaluated;
                or ``epoch``, ``evaluate`` or ``save``: whenever the Trainer ends an epoch,
                evaluates or saves.
            at_start: evaluate before the first step, too.
            limit: maximum number of rows per probe, in whole clusters, drawn once with ``seed``;
                None for all.
            tokenizer: the model's; None: the Trainer's ``processing_class``.
            **options: further options of :func:`evaluation.evaluate` that say which rows are read
                and how choices are scored: ``config``, ``split``, ``seed``, ``normalization``,
                ``batch_tokens`` and those of the scorer.

        Raises:
            UsageError: ``every`` or an option is impossible, or there is no tokenizer.
        """
        if every not in get_args(Event) and not (
            isinstance(every, int) and not isinstance(every, bool) and every > 0
        ):
            raise UsageError(
                f"every={every!r}: give a number of steps, or one of {', '.join(get_args(Event))}"
            )
        self._trainer, self._every, self._at_start = trainer, every, at_start
        self._tokenizer: Any = tokenizer or trainer.processing_class
        if not callable(getattr(self._tokenizer, "convert_ids_to_tokens", None)):
            raise UsageError(
                "this Trainer has no tokenizer: give ProbeCallback(..., tokenizer=...), or "
                "Trainer(..., processing_class=...)"
            )
        self._specs = _specs(probes, {**options, "limit": limit})
        self._opened: tuple[Any, dict[str, RepeatedEvaluation]] | None = None
        self._last: tuple[int, dict[str, float]] = (-1, {})
        self.seconds = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Read the probes, so that faults are reported now; evaluate at the start if requested."""
        self._last = (-1, {})
        if not state.is_world_process_zero:
            return
        self._evaluations(args, kwargs["model"])
        if self._at_start and state.global_step == 0:
            self._evaluate(args, state, control, kwargs["model"])

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate after every given number of steps, and after the last step."""
        if isinstance(self._every, int) and (
            state.global_step % self._every == 0 or state.global_step >= state.max_steps
        ):
            self._evaluate(args, state, control, kwargs["model"])

    def on_epoch_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate where that is asked for."""
        if self._every == "epoch":
            self._evaluate(args, state, control, kwargs["model"])

    def on_save(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Evaluate where that is asked for."""
        if self._every == "save":
            self._evaluate(args, state, control, kwargs["model"])

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        """Evaluate if requested, and add the accuracies of this step to the metrics."""
        if self._every == "evaluate":
            self._evaluate(args, state, control, kwargs["model"])
        if args.world_size > 1:
            # All processes use these metrics to decide which checkpoint is the best.
            from accelerate.utils import broadcast_object_list

            (self._last,) = broadcast_object_list([self._last])
        step, accuracies = self._last
        if metrics is not None and step == state.global_step:
            metrics.update(accuracies)

    def _evaluate(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: Any
    ) -> None:
        """Evaluate and log, once a step, in the main process."""
        if not state.is_world_process_zero or self._last[0] == state.global_step:
            return
        began, accuracies = time.perf_counter(), {}
        for name, evaluation in self._evaluations(args, model).items():
            try:
                accuracies[f"eval_{name}_accuracy"] = evaluation.accuracy()
            except KbprobeError as error:
                # An error in a probe must not end a training of several days.
                warnings.warn(f"step {state.global_step}: {name}: {error}", stacklevel=2)
        seconds = time.perf_counter() - began
        self.seconds += seconds
        self._last = state.global_step, accuracies
        # Logging clears the request of another callback to log the loss of this step.
        wanted = control.should_log
        self._trainer.log({**accuracies, RUNTIME: round(seconds, 4)})
        control.should_log = wanted

    def _evaluations(self, args: TrainingArguments, model: Any) -> dict[str, RepeatedEvaluation]:
        """Return the evaluations by name, opened for this model."""
        if self._opened is None or self._opened[0] is not model:
            began = time.perf_counter()
            self._opened = model, self._open(args, model)
            self.seconds += time.perf_counter() - began
        return self._opened[1]

    def _open(self, args: TrainingArguments, model: Any) -> dict[str, RepeatedEvaluation]:
        import torch

        reduced = torch.bfloat16 if args.bf16 else torch.float16 if args.fp16 else None
        opened: dict[str, RepeatedEvaluation] = {}
        for name, spec in self._specs:
            handle = ModelInMemory(model, self._tokenizer, reduced, spec.run.batch_tokens)
            evaluation = RepeatedEvaluation(spec, handle)
            name = logged_name(name or evaluation.name)
            if name in opened:
                raise UsageError(
                    f"ProbeCallback: two probes are called {name!r}. Give them by different names: "
                    f'{{"{name}": ..., "{name}_2": ...}}'
                )
            opened[name] = evaluation
        return opened


def _specs(
    probes: ProbeSource | Sequence[ProbeSource] | Mapping[str, ProbeSource],
    options: Mapping[str, Any],
) -> list[tuple[str | None, RunSpec]]:
    """Make a run for each probe, with the name given to it, if any."""
    import datasets

    named: list[tuple[str | None, Any]]
    if isinstance(probes, Mapping) and not isinstance(probes, datasets.DatasetDict):
        named = list(probes.items())
    elif isinstance(probes, list | tuple):
        named = [(None, probe) for probe in probes]
    else:
        named = [(None, probes)]
    if not named:
        raise UsageError("ProbeCallback needs a probe: give a folder that build-probe wrote")
    return [
        (
            name,
            RunSpec.parse(
                source_argument("ProbeCallback(probes=...)", probe),
                "the model in training",
                options,
                owner="ProbeCallback",
            ),
        )
        for name, probe in named
    ]
