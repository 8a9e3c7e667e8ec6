"""Fine-tuning on a probe's train split: networks with their head, and their training.

Sources: Talmor et al. 2020 (oLMpics), Richardson and Sabharwal 2020 (WordNetQA and DictionaryQA).
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
import transformers

from evaluation.items.types import Item, choice_starts, fingerprint
from evaluation.learners.base import TrainingOptions, rate_share
from evaluation.learners.entries import LEARNING_RATE, FinetuneOptions
from evaluation.models.capabilities import CLASSIFIER, MASKED_LM, MULTIPLE_CHOICE, Head
from evaluation.models.checkpoint import Checkpoint
from evaluation.models.loading import draw_fresh
from evaluation.scorers.base import Encoded
from evaluation.scorers.batching import free_memory, out_of_memory
from evaluation.scorers.classifier import classes_of
from evaluation.scorers.classifier.scorer import ClassifierScorer
from evaluation.scorers.masked.scorer import CandidateScorer
from evaluation.scorers.multiple_choice import MultipleChoiceScorer
from kbprobe.arrays import Ints, ragged_ranges
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.setups import SETUPS
from kbprobe.terminal.progress import Progress, silent

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


TrainedScorer = MultipleChoiceScorer | CandidateScorer | ClassifierScorer


@dataclass(frozen=True)
class Network:
    """Declares a network that can be fine-tuned.

    Attributes:
        learner: the name of the learner that trains it.
        head: what a checkpoint is loaded with.
        fresh_head: whether a head that the checkpoint lacks is drawn, and trained from there.
        scorer: makes, of a model and its tokenizer, what scores; its scores are trained.
        configured: gives the checkpoint the configuration of the network for the rows to train on,
            with the learner's options; raises UsageError where its own does not suit them.
    """

    learner: str
    head: Head
    fresh_head: bool
    scorer: Callable[[Any, Any], TrainedScorer]
    configured: Callable[[Checkpoint, Sequence[Item], Any], Checkpoint] = (
        lambda checkpoint, _items, _options: checkpoint
    )


def _with_labels(checkpoint: Checkpoint, items: Sequence[Item], options: Any) -> Checkpoint:
    """Write into the configuration what the classes mean, unless a trained head says so itself."""
    if not items or checkpoint.config is None:
        return checkpoint
    setup, stated = items[0].setup, options.class_labels
    config = copy.deepcopy(checkpoint.config)
    if checkpoint.head is CLASSIFIER and checkpoint.random_weights is None:
        own = {int(number): str(name) for number, name in (config.id2label or {}).items()}
        classes = classes_of(setup, own, stated, checkpoint.id)
    elif stated:
        raise UsageError(
            f"--class-labels says what the classes of a trained head mean, and {checkpoint.id} "
            f"({checkpoint.architecture}) has no such head: leave it out"
        )
    else:
        classes = {label: number for number, label in enumerate(SETUPS[setup].labels)}
    config.id2label = {number: label for label, number in classes.items()}
    config.label2id = {label: number for number, label in config.id2label.items()}
    return replace(checkpoint, read_config=lambda: config)


CHOICES = Network("full", MULTIPLE_CHOICE, True, MultipleChoiceScorer)
"""A multiple-choice network: reads each choice with its question."""
CANDIDATES = Network("full_mlm", MASKED_LM, False, CandidateScorer)
"""A whole masked LM: reads the question, and scores candidates at the mask."""
LABELS = Network("full_labels", CLASSIFIER, True, ClassifierScorer, _with_labels)
"""A sequence classifier: reads a text or a pair of texts, and scores labels."""
NETWORKS = {network.learner: network for network in (CHOICES, CANDIDATES, LABELS)}


_BATCHES_SORTED_TOGETHER = 50


@dataclass
class Course:
    """How far a training has come: what is needed to go on from there.

    Each step is seeded by itself and the order of the rows by its epoch, so that no random state
    is part of it.

    Attributes:
        losses: of each step so far.
        optimizer: the state of the optimizer; None: nothing was trained yet.
        weights: of the network; None: those that it has been loaded with.
        rows_at_once: rows of a forward pass, fewer than a step has if memory ran out; None: all.
        continued_after: the epochs of the shorter training that this one went on from.
        seconds: that it took so far.
    """

    losses: list[float] = field(default_factory=list)
    optimizer: dict[str, Any] | None = None
    weights: dict[str, torch.Tensor] | None = None
    rows_at_once: int | None = None
    continued_after: int = 0
    seconds: float = 0.0


Saving = Callable[[Callable[[], Course]], None]
"""Is called after a step with what gives the state of the training, and may save that."""


def finetune(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    items: Sequence[Item],
    options: FinetuneOptions,
    seed: int,
    progress: Progress = silent,
    *,
    network: Network = CHOICES,
    fresh: Sequence[str] = (),
    course: Course | None = None,
    saving: Saving | None = None,
) -> dict[str, Any]:
    """Train the whole network and its head by cross-entropy over the choices of each row.

    On a CPU the trained weights are a pure function of checkpoint, rows, options and number of
    threads. torch's and NumPy's global random states are left as they were. If memory runs out,
    a step's rows go through the network a half, a quarter ... at a time and their gradients are
    added up: the same step, but for the units that dropout happens to draw.

    Args:
        model: loaded with the network's head, on its device; changed in place, left in evaluation
            mode and in float32 (on a GPU the forward pass runs in bfloat16).
        tokenizer: the checkpoint's fast tokenizer.
        items: the rows to train on.
        options: how to train.
        seed: decides the rows' order, a fresh head and dropout.
        progress: told of each step.
        network: what the model is.
        fresh: parameters that the checkpoint did not hold; drawn again from the seed.
        course: how far the model was trained before with these rows, seed and options, or (with
            a constant learning rate alone) with fewer epochs; changed in place.
        saving: saves the course between steps, so that an interrupted training can be resumed.

    Returns:
        What the training was, as JSON values: all that was asked for, the mean cross-entropy of
        each step (``losses``, in nats), rows of a forward pass (``rows_at_once``, fewer than a
        step has if memory ran out), ``notes``, ``seconds``, and versions of libraries.

    Raises:
        UsageError: an item cannot be encoded, or none can be scored.
        KbprobeError: the loss is no number any more, or one row does not fit into memory.
    """
    began = time.perf_counter()
    course = course or Course()
    before = course.seconds
    model.float()
    draw_fresh(model, fresh, seed)
    for weight in model.parameters():
        # Weights mapped from a file lie otherwise in memory, which decides the order of sums.
        weight.data = weight.data.clone()
    if course.weights is not None:
        model.load_state_dict(course.weights)
        course.weights = None  # They need not be in memory twice.
    scorer = network.scorer(model, tokenizer)
    kept, encoded = scorable(scorer, items)
    notes = dict(encoded.notes)
    if len(kept) < len(items):
        notes["train_set_aside"] = len(items) - len(kept)
    model.train()
    try:
        # torch's global generators are left as they were.
        cuda = [model.device] if model.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            training = ChoiceTraining(scorer, encoded, kept, options, seed, LEARNING_RATE)
            training.run(progress, course, saving)
    finally:
        model.eval()
        model.zero_grad(set_to_none=True)
    course.seconds = before + time.perf_counter() - began
    return {
        "learner": network.learner,
        "options": options.model_dump(mode="json"),
        "seed": seed,
        "losses": course.losses,
        "steps": len(course.losses),
        "continued_after_epochs": course.continued_after,
        "rows": len(items),
        "train_fingerprint": fingerprint(items),
        "rows_at_once": training.rows_at_once,
        "fresh": list(fresh),
        "notes": notes,
        "seconds": round(course.seconds, 3),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
    }


def scorable(scorer: TrainableScorer, items: Sequence[Item]) -> tuple[Sequence[Item], Any]:
    """Encode the items that can be scored, and return both.

    Raises:
        UsageError: there are none.
    """
    encoded = scorer.encode(items)
    if not encoded.set_aside:
        return items, encoded
    kept = [item for number, item in enumerate(items) if number not in encoded.set_aside]
    if not kept:
        reason = next(iter(encoded.set_aside.values()))
        raise UsageError(
            f"none of the {len(items):,} rows to train on can be scored, the first for {reason}. "
            "Build the probe with candidates that the model knows."
        )
    return kept, scorer.encode(kept)


class TrainableScorer(Protocol):
    """A scorer of choices whose network can be trained."""

    @property
    def model(self) -> torch.nn.Module:
        """The network: all its parameters are trained."""

    def encode(self, items: Sequence[Item]) -> Any:
        """Encode some items: see :meth:`evaluation.scorers.base.Scorer.encode`."""

    def slot_logits(self, encoded: Any, slots: Ints) -> torch.Tensor:
        """Return the logit of each of some slots: float32, shape [n], differentiable.

        Slots are those of :class:`~evaluation.scorers.base.Encoded`; each choice has one.
        """


class ChoiceTraining:
    """Training by cross-entropy over the choices of each row: optimizer, rows, schedule, memory.

    If memory runs out, a step's rows go through the network a part at a time; ``rows_at_once``
    says how many did.
    """

    def __init__(
        self,
        scorer: TrainableScorer,
        encoded: Encoded,
        items: Sequence[Item],
        options: TrainingOptions,
        seed: int,
        learning_rate: float,
    ) -> None:
        """Prepare the training of a scorer's network, which is in training mode."""
        self.rows_at_once = options.settings.train_batch
        self._seed = seed
        self._scorer = scorer
        self._encoded = encoded
        self._options = options
        self._device = next(scorer.model.parameters()).device
        self._answers = np.array([item.answer for item in items], dtype=np.int64)
        self._starts = choice_starts(items)
        self._slot_of_choice = np.argsort(encoded.slot_choice)
        # The head's bias, its one number, is the same for all choices and cancels out: its
        # gradient is rounding noise, which Adam would blow up to steps of full size.
        weights = [w for w in scorer.model.parameters() if w.requires_grad and w.numel() > 1]
        groups = [
            {
                "params": [w for w in weights if w.dim() > 1],
                "weight_decay": options.settings.weight_decay,
            },
            {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0},
        ]
        if self._device.type == "cpu":  # where a gradient for a whole vocabulary takes long
            for module in scorer.model.modules():
                if isinstance(module, torch.nn.Embedding):
                    module.sparse = True
        self._weights = weights
        self._filled: dict[torch.nn.Parameter, tuple[torch.Tensor, torch.Tensor]] = {}
        self._learning_rate = options.learning_rate or learning_rate
        self._optimizer = torch.optim.AdamW(
            groups,
            lr=self._learning_rate,
            betas=options.settings.betas,
            # One pass over the weights: on a CPU a seventh of the time.
            fused=self._device.type in ("cpu", "cuda"),
        )

    def run(
        self, progress: Progress, course: Course | None = None, saving: Saving | None = None
    ) -> Course:
        """Take all steps that a course has still before it; return it as it is then."""
        course, began = course or Course(), time.perf_counter()
        if course.optimizer is not None:
            self._optimizer.load_state_dict(course.optimizer)
        self.rows_at_once = course.rows_at_once or self.rows_at_once
        options, done, before = self._options, len(course.losses), course.seconds
        batches = [batch for epoch in range(options.epochs) for batch in self._batches(epoch)]
        steps = len(batches)

        def state() -> Course:
            return replace(
                course,
                optimizer=self._optimizer.state_dict(),
                weights=self._scorer.model.state_dict(),
                rows_at_once=self.rows_at_once,
                seconds=before + time.perf_counter() - began,
            )

        for step in range(done, steps):
            share = rate_share(options, step, steps)
            for group in self._optimizer.param_groups:
                group["lr"] = self._learning_rate * share
            loss = self._accumulate(batches[step], step)
            if not math.isfinite(loss):
                raise KbprobeError(
                    f"the loss of step {step + 1} of {steps} is {loss}: training diverged. "
                    "Use a lower learning rate."
                )
            torch.nn.utils.clip_grad_norm_(
                self._scorer.model.parameters(), options.settings.max_grad_norm
            )
            self._update()
            course.losses.append(loss)
            progress("fine-tuning", step + 1, steps)
            if saving is not None and step + 1 < steps:
                saving(state)
        course.optimizer = self._optimizer.state_dict()
        return course

    def _batches(self, epoch: int) -> list[Ints]:
        """Shuffle the rows and cut them into steps, rows of like length together.

        Sorted within stretches of many batches only, so that each epoch's batches differ.
        """
        random = np.random.default_rng([self._seed, epoch])
        order = random.permutation(len(self._answers))
        sequences = self._encoded.sequence_of(self._slot_of_choice)
        lengths = np.maximum.reduceat(self._encoded.lengths[sequences], self._starts[:-1])
        size = self._options.settings.train_batch
        stretch = size * _BATCHES_SORTED_TOGETHER
        batches: list[Ints] = []
        for start in range(0, len(order), stretch):
            rows = order[start : start + stretch]
            rows = rows[np.argsort(-lengths[rows], kind="stable")]
            batches += [rows[at : at + size] for at in range(0, len(rows), size)]
        return [batches[at] for at in random.permutation(len(batches))]

    def _accumulate(self, batch: Ints, step: int) -> float:
        """Compute a step's gradients and mean loss, in as many parts as memory asks for."""
        while True:
            try:
                return self._backward(batch, step)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                message = str(error).strip().splitlines()[0]
            # Outside the handler: its traceback would keep the failed pass's tensors alive.
            self._optimizer.zero_grad(set_to_none=True)
            free_memory()
            if self.rows_at_once == 1:
                raise _too_large(message)
            self.rows_at_once = max(1, min(self.rows_at_once, len(batch)) // 2)

    def _backward(self, batch: Ints, step: int) -> float:
        self._optimizer.zero_grad(set_to_none=True)
        # Each step is seeded by itself, so that one that is repeated draws the same.
        _seed_dropout(self._device, self._seed, step)
        total = torch.zeros((), device=self._device)
        for at in range(0, len(batch), self.rows_at_once):
            loss = self._summed_loss(batch[at : at + self.rows_at_once]) / len(batch)
            loss.backward()
            total += loss.detach()
        self._fill_gradients()
        return float(total)

    def _fill_gradients(self) -> None:
        """Replace sparse gradients by the same dense ones, which clipping and AdamW read.

        A batch has few words of a vocabulary. Their rows are written into the matrix of the step
        before, which takes a fraction of the time of a new matrix of zeros.
        """
        for weight in self._weights:
            gradient = weight.grad
            if gradient is None or not gradient.is_sparse:
                continue
            if weight in self._filled:
                dense, rows = self._filled[weight]
                dense.index_fill_(0, rows, 0)
            else:
                dense = torch.zeros_like(weight)
            self._filled[weight] = dense, gradient.coalesce().indices()[0]
            # Not the coalesced one: rows are added in the order of the batch, as always.
            weight.grad = dense.add_(gradient)

    def _summed_loss(self, rows: Ints) -> torch.Tensor:
        counts = np.diff(self._starts)[rows]
        choices = ragged_ranges(self._starts[rows], counts)
        with torch.autocast(
            self._device.type, dtype=torch.bfloat16, enabled=self._device.type == "cuda"
        ):
            logits = self._scorer.slot_logits(self._encoded, self._slot_of_choice[choices])
        place = ragged_ranges(np.arange(len(rows)) * counts.max(), counts)
        # Rows with fewer choices than others are filled up with impossible ones.
        table = logits.new_full((len(rows) * int(counts.max()),), -math.inf)
        table = table.scatter(0, torch.from_numpy(place).to(self._device), logits)
        return torch.nn.functional.cross_entropy(
            table.view(len(rows), -1),
            torch.from_numpy(self._answers[rows]).to(self._device),
            reduction="sum",
        )

    def _update(self) -> None:
        try:
            self._optimizer.step()
        except (RuntimeError, MemoryError) as error:
            # Some weights may have moved already: the step cannot be repeated.
            if not out_of_memory(error):
                raise
            raise _too_large("the optimizer's state: 8 bytes a parameter") from error


def _too_large(what: str) -> KbprobeError:
    return KbprobeError(
        f"fine-tuning does not fit into memory, one row at a time ({what}). "
        "Use a smaller model, shorter questions or another --device."
    )


def _seed_dropout(device: torch.device, seed: int, step: int) -> None:
    number = int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0])
    torch.default_generator.manual_seed(number)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(number)
