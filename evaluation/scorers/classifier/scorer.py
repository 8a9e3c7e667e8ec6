"""Sequence classifiers: the head's classes are the choices, a text or a pair of texts is read.

An acceptability row is read as one text, an NLI row as premise and hypothesis, in whatever form
the model's own tokenizer gives a pair. This is how Kim et al. (2019, section 4) apply a model that
was trained on MNLI, and how CoLA's classifiers are applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from evaluation.items.types import Item, choice_starts
from evaluation.scorers.base import Scorer
from evaluation.scorers.classifier import classes_of
from evaluation.scorers.encoder import EncodedTexts, EncoderRunner, Inputs
from evaluation.scorers.readable import SpecialTexts
from kbprobe.arrays import Floats, Ints

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True, kw_only=True)
class ClassifierEncoded(EncodedTexts):
    """Distinct texts and pairs of texts.

    Attributes:
        slot_class: the class whose score each slot is, shape [slots].
    """

    slot_class: Ints


class ClassifierScorer(Scorer):
    """Scores the labels of a text with the head of an ``AutoModelForSequenceClassification``.

    A choice's score is the log-probability (nats) of its class. Items that show the same text, or
    the same pair, share its one sequence.

    A text that is too long is cut as the tokenizer cuts it (the longer text of a pair loses tokens
    first), and its items are counted in the notes as ``truncated``. An item whose text holds a
    special token of the model is set aside (:mod:`evaluation.scorers.readable`).
    """

    score_kind = "log-probability of the class"

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        class_labels: Sequence[str] = (),
    ) -> None:
        """Set the loaded model, on its device and in any dtype, and its tokenizer.

        ``class_labels`` is that of :class:`~evaluation.scorers.classifier.ClassifierOptions`.
        """
        self.model = model
        self._stated = class_labels
        self._runner = EncoderRunner(model, tokenizer)
        self._special = SpecialTexts(tokenizer)
        # A decoder's head reads the last token that is not padding, found by the padding id.
        config = model.config
        self._batches = getattr(config, "pad_token_id", None) is not None or (
            config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES
        )

    def encode(self, items: Sequence[Item]) -> ClassifierEncoded:
        """Tokenize each distinct text or pair, in the order of the items.

        Raises:
            UsageError: the classes are not the labels of the items, or their names do not tell
                which class is which label.
        """
        classes = {setup: self._classes(setup) for setup in sorted({i.setup for i in items})}
        texts = [(item.premise, item.question) for item in items]
        number_of = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        sequence_of = np.array([number_of[text] for text in texts], dtype=np.int64)
        read = self._runner.tokenize(list(number_of))
        widths = np.diff(choice_starts(items))
        class_of = [classes[item.setup][label] for item in items for label in item.choices]
        of_choice = np.repeat(sequence_of, widths)
        items_cut = sum(number in read.cut for number in sequence_of.tolist())
        return ClassifierEncoded.shared(
            read,
            of_choice,
            np.repeat(np.arange(len(items)), widths),
            choice_tokens=np.ones(len(of_choice), dtype=np.int64),
            set_aside=self._special.obstacles(items),
            notes={"truncated": items_cut} if items_cut else {},
            slot_class=np.array(class_of, dtype=np.int64)[np.argsort(of_choice, kind="stable")],
        )

    @torch.inference_mode()
    def score(self, encoded: Any, sequences: Ints) -> Floats:
        """Run some texts as one batch; see :meth:`Scorer.score`."""
        logits = self._runner.run(encoded, sequences, self._forward)
        log_probs = torch.log_softmax(logits, dim=-1).cpu().numpy().astype(np.float64)
        counts, slots = encoded.slots(sequences)
        rows = np.repeat(np.arange(len(sequences)), counts)
        scores: Floats = log_probs[rows, encoded.slot_class[slots]]
        return scores

    def slot_logits(self, encoded: ClassifierEncoded, slots: Ints) -> torch.Tensor:
        """Return the logit of each of some slots: float32, shape [n], differentiable.

        The classes of one text share its forward pass.
        """
        texts, text_of_slot = np.unique(encoded.sequence_of(slots), return_inverse=True)
        logits = self._runner.run(encoded, texts, self._forward)
        at = (
            torch.from_numpy(part).to(logits.device)
            for part in (text_of_slot, encoded.slot_class[slots])
        )
        found: torch.Tensor = logits[tuple(at)]
        return found

    def _classes(self, setup: str) -> dict[str, int]:
        config = self.model.config
        names = {int(number): str(name) for number, name in (config.id2label or {}).items()}
        return classes_of(setup, names, self._stated, str(config.name_or_path))

    def _forward(self, inputs: Inputs) -> torch.Tensor:
        if self._batches:
            return self._logits(inputs)
        shown = inputs["attention_mask"].sum(-1).tolist()
        return torch.cat(
            [
                self._logits({name: rows[at : at + 1, :length] for name, rows in inputs.items()})
                for at, length in enumerate(shown)
            ]
        )

    def _logits(self, inputs: Inputs) -> torch.Tensor:
        logits: torch.Tensor = self.model(**inputs).logits
        return logits.float()
