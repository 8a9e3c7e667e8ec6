"""What a checkpoint can do, by the head it was trained with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import TYPE_CHECKING, Any

from evaluation.registry import Registry

if TYPE_CHECKING:
    from transformers import PretrainedConfig


class Capability(Flag):
    """What a scorer or learner may need from a model, and what a model's head provides."""

    NOTHING = 0
    MASKED_SCORES = auto()
    """Scores of vocabulary entries at a mask."""
    CAUSAL_SCORES = auto()
    """Log-likelihoods of tokens that continue a text."""
    SEQ2SEQ_SCORES = auto()
    """Log-likelihoods of a text that a decoder writes, given the one that an encoder reads."""
    LIKELIHOODS = auto()
    """Log-likelihoods of a text given another: as its continuation, or as the decoder's output."""
    ENDPOINT_SCORES = auto()
    """Log-likelihoods of tokens after a text, as an endpoint states them."""
    CHAT_ANSWERS = auto()
    """Answers in a chat, as an endpoint writes them."""
    CHOICE_HEAD = auto()
    """One score for a question with a choice."""
    CLASS_SCORES = auto()
    """A score of each class for a text, or for a pair of texts."""
    HIDDEN_STATES = auto()
    """Vectors of the tokens."""
    TRAINABLE = auto()
    """Weights that can be fine-tuned, with a new head where the checkpoint has another one."""


def is_encoder_decoder(config: PretrainedConfig) -> bool:
    """Return whether a model has an encoder and a decoder."""
    return bool(getattr(config, "is_encoder_decoder", False))


_NETWORK = Capability.HIDDEN_STATES | Capability.TRAINABLE


@dataclass(frozen=True)
class Head:
    """A head that checkpoints are loaded with, and what a model with it can do.

    Attributes:
        name: its name in results and on the command line.
        label: its name in messages: ``masked LM``.
        gives: the capabilities of a model with this head.
        auto_class: the transformers class that loads it, also as named by remote code.
        architectures: transformers' mapping (in ``modeling_auto``) of the architectures that
            have it; None: no checkpoint is taken to have it by its architecture.
        missing: what a checkpoint lacks that was not trained with this head.
        remedy: what to do about that.
        uses_pooler: whether its scores depend on the pooler.
        pretraining: whether ``...ForPreTraining`` checkpoints hold it among others.
        encoder_decoder: whether its models have an encoder and a decoder.
    """

    name: str
    label: str
    gives: Capability
    auto_class: str
    architectures: str | None
    missing: str = ""
    remedy: str = ""
    uses_pooler: bool = False
    pretraining: bool = False
    encoder_decoder: bool = False

    def fits(self, architecture: str, config: PretrainedConfig) -> bool:
        """Return whether checkpoints of an architecture hold this head."""
        from transformers.models.auto import modeling_auto

        if self.pretraining and architecture.endswith("ForPreTraining"):
            # ELECTRA's is a discriminator: it tells replaced tokens from original ones.
            return bool(config.model_type != "electra")
        if self.architectures is None or self.encoder_decoder != is_encoder_decoder(config):
            return False
        if self.encoder_decoder and getattr(config, "tie_word_embeddings", False):
            # BART's own checkpoints name the network alone; its embeddings are the head.
            network = modeling_auto.MODEL_MAPPING_NAMES.get(config.model_type)
            if architecture == network:
                return True
        mapping: Mapping[str, Any] = getattr(modeling_auto, self.architectures)
        return any(
            architecture == names if isinstance(names, str) else architecture in names
            for names in mapping.values()
        )


MASKED_LM = Head(
    "masked_lm",
    "masked LM",
    Capability.MASKED_SCORES | _NETWORK,
    "AutoModelForMaskedLM",
    "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    missing="masked-LM head",
    remedy="Give the checkpoint that was pretrained as a masked LM, or fine-tune this one for "
    "multiple choice with --train N",
    pretraining=True,
)
CAUSAL_LM = Head(
    "causal_lm",
    "causal LM",
    Capability.CAUSAL_SCORES | Capability.LIKELIHOODS | _NETWORK,
    "AutoModelForCausalLM",
    "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    missing="language-model head",
    remedy="Give a checkpoint that was trained as a causal LM",
)
SEQ2SEQ_LM = Head(
    "seq2seq_lm",
    "sequence-to-sequence LM",
    # Neither vectors nor training: both are for networks that read one text.
    Capability.SEQ2SEQ_SCORES | Capability.LIKELIHOODS,
    "AutoModelForSeq2SeqLM",
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    missing="language-model head over an encoder and a decoder",
    remedy="Give a checkpoint such as T5's or BART's",
    encoder_decoder=True,
)
MULTIPLE_CHOICE = Head(
    "multiple_choice",
    "multiple-choice model",
    Capability.CHOICE_HEAD | _NETWORK,
    "AutoModelForMultipleChoice",
    "MODEL_FOR_MULTIPLE_CHOICE_MAPPING_NAMES",
    missing="trained multiple-choice head",
    remedy="Train it here with --train N, or give a checkpoint that was trained for multiple "
    "choice",
    uses_pooler=True,
)
CLASSIFIER = Head(
    "classifier",
    "sequence classifier",
    Capability.CLASS_SCORES | _NETWORK,
    "AutoModelForSequenceClassification",
    "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    missing="trained classification head",
    remedy="Give a checkpoint that was trained for sequence classification, on acceptability "
    "judgements or on natural language inference as the probe's rows need it",
    uses_pooler=True,
)
ENCODER = Head(
    "encoder",
    "encoder without a head",
    _NETWORK,
    "AutoModel",
    None,
    missing="whole encoder",
    remedy="Check that config.json and the weights belong together",
)
"""Only the network, which every checkpoint has, whatever else it contains."""
ENDPOINT = Head(
    "endpoint",
    "model behind an endpoint",
    Capability.ENDPOINT_SCORES,
    "",
    None,
)
"""Not among :data:`HEADS`, like the next: no checkpoint has it."""
CHAT = Head("chat", "chat model behind an endpoint", Capability.CHAT_ANSWERS, "", None)

_HEADS = (MASKED_LM, MULTIPLE_CHOICE, CAUSAL_LM, SEQ2SEQ_LM, CLASSIFIER, ENCODER)
HEADS = Registry[Head](
    "head",
    "kbprobe.heads",
    Head,
    {head.name: head for head in _HEADS},
)
"""All heads; of an architecture that several fit, the first is taken."""


def heads_that_give(needs: Capability, encoder_decoder: bool = False) -> list[Head]:
    """Return the heads whose models can do what is needed, with an encoder and a decoder or not."""
    return [
        head for head in HEADS if needs in head.gives and head.encoder_decoder == encoder_decoder
    ]


def head_that_gives(needs: Capability, encoder_decoder: bool = False) -> Head:
    """Return the head from :func:`heads_that_give` with the fewest other capabilities."""
    fitting = heads_that_give(needs, encoder_decoder)
    return min(fitting, key=lambda head: head.gives.value.bit_count())
