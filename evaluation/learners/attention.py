"""A network of attention between the states of two texts, over an encoder that is not trained.

Kim et al. (2019, section 4) train such a model on MNLI over the frozen encoders that they compare,
and apply it to their NLI probes. The encoder reads premise and hypothesis by themselves, once each
before the training; the network aligns the states of their tokens, compares what is aligned, and
scores the labels. What it learns beside the encoder's states is only how to compare them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from evaluation.items.types import Item, fingerprint
from evaluation.learners.base import Training
from evaluation.learners.entries import ATTENTION, ATTENTION_LEARNING_RATE, NetworkOptions
from evaluation.learners.finetune.training import ChoiceTraining, scorable
from evaluation.learners.kept import fitted_network
from evaluation.learners.words.networks import Padded, SequenceComparison, linear, padded
from evaluation.models.capabilities import Capability, head_that_gives
from evaluation.scorers.base import Encoded, ReadyScorer, Scorer, row_sequences
from evaluation.scorers.batching import BackOff, Rows
from evaluation.scorers.encoder import EncodedTexts, EncoderRunner, Inputs
from evaluation.scorers.readable import SpecialTexts
from kbprobe.arrays import Floats, Ints, ragged_ranges, run_starts
from kbprobe.format.setups import NLI, SETUPS
from kbprobe.terminal.progress import Progress, silent

LABELS = SETUPS[NLI].labels


class AttentionNetwork(nn.Module):
    """Scores the labels of pairs of texts, given the states of their tokens.

    States are normalized and go through a linear layer; those of each text are aligned with the
    other's and compared (:class:`~evaluation.learners.words.networks.SequenceComparison`), and a
    layer with tanh scores the labels.
    """

    def __init__(self, width: int, units: int, dropout: float) -> None:
        """Draw the weights from torch's global generator.

        Args:
            width: dimensions of the encoder's states.
            units: units of the LSTM, per direction, and of the layers.
            dropout: rate of dropout.
        """
        super().__init__()
        self.project = nn.Sequential(nn.LayerNorm(width), linear(width, units), nn.ReLU())
        self.compare = SequenceComparison(units, units, dropout)
        self.labels = nn.Sequential(
            nn.Dropout(dropout),
            linear(8 * units, units),
            nn.Tanh(),
            nn.Dropout(dropout),
            linear(units, len(LABELS)),
        )

    def forward(self, premises: Padded, hypotheses: Padded) -> torch.Tensor:
        """Return the logits of the labels of each pair, shape [n, labels]."""
        first, second = (
            Padded(self.project(texts.states), texts.lengths) for texts in (premises, hypotheses)
        )
        logits: torch.Tensor = self.labels(self.compare(first, second))
        return logits.float()


@dataclass(frozen=True, kw_only=True)
class EncodedPairs(Encoded):
    """Pairs of texts, each a sequence with a slot for each label, and the states of their tokens.

    Attributes:
        premise: the text that each row's premise is, by its number, shape [rows].
        hypothesis: likewise.
        label: the label whose logit each slot is, shape [slots].
        states: of the tokens of all distinct texts one after another, float32 on the device of the
            network, shape [tokens, width].
        starts: where each text starts in them, shape [texts + 1].
    """

    premise: Ints
    hypothesis: Ints
    label: Ints
    states: torch.Tensor
    starts: Ints

    def texts(self, numbers: Ints) -> Padded:
        """Return the states of some texts as one batch."""
        lengths = np.diff(self.starts)[numbers]
        return padded(self.states, ragged_ranges(self.starts[numbers], lengths), lengths)


class AttentionScorer(Scorer):
    """Scores the labels of pairs with a network over the states of a frozen encoder.

    A text that is too long is cut, and its items are counted in the notes as ``truncated``. An item
    whose text holds a special token of the model is set aside.
    """

    score_kind = "logit"

    def __init__(
        self,
        model: AttentionNetwork,
        runner: EncoderRunner,
        special: SpecialTexts,
        batch_tokens: int,
        progress: Progress = silent,
    ) -> None:
        """Take the network, and the encoder, which stays as it is.

        Args:
            model: the network, on the encoder's device.
            runner: runs the encoder.
            special: finds texts that the encoder does not read as they are.
            batch_tokens: tokens of a batch of the encoder.
            progress: told how many texts were read.
        """
        self.model = model
        self._runner, self._special = runner, special
        self._batch_tokens, self.progress = batch_tokens, progress

    def encode(self, items: Sequence[Item]) -> EncodedPairs:
        """Run the encoder over each distinct text; see :meth:`Scorer.encode`."""
        shown = [text for item in items for text in (item.premise, item.question)]
        number = {text: at for at, text in enumerate(dict.fromkeys(shown))}
        read = self._runner.tokenize([("", text) for text in number])
        numbers = np.array([number[text] for text in shown], dtype=np.int64).reshape(-1, 2)
        cost = read.lengths[numbers].sum(axis=1)
        labels = [LABELS.index(label) for item in items for label in item.choices]
        cut = sum(bool(read.cut & {*pair}) for pair in numbers.tolist())
        return EncodedPairs(
            **row_sequences(items, cost, np.ones(len(labels), dtype=np.int64)),
            set_aside=self._special.obstacles(items),
            notes={"truncated": cut} if cut else {},
            premise=numbers[:, 0],
            hypothesis=numbers[:, 1],
            label=np.array(labels, dtype=np.int64),
            states=self._states(EncodedTexts.one_each(read)),
            starts=run_starts(read.lengths),
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some pairs as one batch; the number of a slot is its label's logit."""
        _, slots = encoded.slots(sequences)
        scores: Floats = self.slot_logits(encoded, slots).cpu().numpy().astype(np.float64)
        return scores

    def slot_logits(self, encoded: EncodedPairs, slots: Ints) -> torch.Tensor:
        """Return the logit of each of some slots: float32, shape [n], differentiable.

        The labels of one pair share its forward pass.
        """
        rows, row_of_slot = np.unique(encoded.sequence_of(slots), return_inverse=True)
        sides = (encoded.premise[rows], encoded.hypothesis[rows])
        logits = self.model(*map(encoded.texts, sides))
        at = (
            torch.from_numpy(part).to(logits.device) for part in (row_of_slot, encoded.label[slots])
        )
        found: torch.Tensor = logits[tuple(at)]
        return found

    def _states(self, encoded: EncodedTexts) -> torch.Tensor:
        """Return the last hidden states of all tokens, text after text, shape [tokens, width]."""
        starts = encoded.token_starts
        flat: torch.Tensor | None = None
        done, total = 0, len(encoded.lengths)

        def states_of(batch: Ints) -> Rows:
            with torch.inference_mode():
                hidden = self._runner.run(encoded, batch, self._forward).float().cpu().numpy()
            states: Rows = hidden[encoded.shown(batch)]
            return states

        for batch, states in BackOff().batches(states_of, encoded.lengths, self._batch_tokens):
            if flat is None:
                flat = torch.empty(int(starts[-1]), states.shape[1])
            flat[ragged_ranges(starts[batch], encoded.lengths[batch])] = torch.from_numpy(states)
            done += len(batch)
            self.progress("reading states", done, total)
        assert flat is not None, "there is a text"
        return flat.to(self._runner.model.device)

    def _forward(self, inputs: Inputs) -> torch.Tensor:
        hidden: torch.Tensor = self._runner.model.base_model(**inputs)[0]
        return hidden


def fitted(training: Training) -> AbstractContextManager[ReadyScorer]:
    """Train the network, or find what an interrupted run left of it.

    Raises:
        KbprobeError: training diverged, or a row does not fit into memory.
    """
    options: NetworkOptions = training.options
    handle = training.model
    checkpoint = handle.checkpoint
    identity = {
        "learner": ATTENTION.name,
        "options": options.model_dump(mode="json"),
        "seed": training.seed,
        "train_fingerprint": fingerprint(training.items),
        "weights": checkpoint.weights_sha256,
        "tokenizer": checkpoint.tokenizer_sha256,
        "model_args": dict(checkpoint.loading),
        "dtype": handle.dtype_name,
        "device": handle.device.type,
    }

    def scorer_of(seed: int = 0) -> AttentionScorer:
        encoder, tokenizer = handle.load(head_that_gives(Capability.HIDDEN_STATES))
        width = encoder.config.get_text_config().hidden_size
        cuda = [handle.device] if handle.device.type == "cuda" else []
        with torch.random.fork_rng(devices=cuda):
            torch.default_generator.manual_seed(seed)
            network = AttentionNetwork(width, *options.network)
        return AttentionScorer(
            network.to(handle.device).eval(),
            EncoderRunner(encoder, tokenizer),
            SpecialTexts(tokenizer),
            handle.batch_tokens,
            training.progress,
        )

    def train() -> nn.Module:
        return trained(scorer_of(training.seed), training.items, options, training.seed)

    def load(weights: dict[str, torch.Tensor]) -> ReadyScorer:
        scorer = scorer_of()
        scorer.model.load_state_dict(weights)
        own = sum(one.numel() for one in scorer.model.parameters())
        encoder, _ = handle.load(head_that_gives(Capability.HIDDEN_STATES))
        return ReadyScorer(scorer, encoder.num_parameters() + own)

    return fitted_network(training, identity, train, load)


def trained(
    scorer: AttentionScorer, items: Sequence[Item], options: NetworkOptions, seed: int
) -> nn.Module:
    """Train a scorer's network by cross-entropy over the labels of each row; return it.

    On a CPU it is a pure function of checkpoint, rows, options, seed and number of threads. torch's
    global random state is left as it was.
    """
    kept, encoded = scorable(scorer, items)
    cuda = [encoded.states.device] if encoded.states.device.type == "cuda" else []
    scorer.model.train()
    with torch.random.fork_rng(devices=cuda):
        learning = ChoiceTraining(scorer, encoded, kept, options, seed, ATTENTION_LEARNING_RATE)
        learning.run(scorer.progress)
    return scorer.model.eval()
