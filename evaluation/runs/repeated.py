"""One run evaluated again and again, while its model is being trained."""

from __future__ import annotations

from typing import cast

import pyarrow.compute as pc

from evaluation.items.types import choice_starts
from evaluation.models.memory import ModelInMemory, leaving_no_trace, without_autocast
from evaluation.results.breakdown import headline_rows
from evaluation.results.metrics import predictions_table, tie_tolerance
from evaluation.results.types import Normalization
from evaluation.runs.run import open_run
from evaluation.runs.scoring import score_encoded
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerInputs
from evaluation.scorers.batching import BackOff
from kbprobe.errors import KbprobeError, UsageError


class RepeatedEvaluation:
    """Evaluates a model in memory on the same rows, whatever its weights are at the time.

    Rows are read, and tokenized, once. What the model's code allows (:class:`Scorer`) is tried out
    once, too, in the type of the weights: under autocast two ways to compute one number differ by
    more than a try-out could tell from an error.

    Attributes:
        name: the probe's.
        run: the rows, and how they are scored.
    """

    def __init__(self, spec: RunSpec, model: ModelInMemory) -> None:
        """Read the rows and tokenize them.

        Raises:
            UsageError: there is no such probe or split; no scorer reads such a model; an option
                is one of loading or fine-tuning a checkpoint.
            KbprobeError: the probe cannot be read, or the model gives no finite numbers.
        """
        spec.refuse_for_loaded("cache", "facts")
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

        It is ``results.metrics.accuracy.value`` of an evaluation of a checkpoint that is saved now.

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
