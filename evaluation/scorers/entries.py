"""The built-in scorers: their options, and what they need of a model.

Nothing here imports torch: the code is imported when a scorer is made.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from evaluation.models.capabilities import Capability
from evaluation.options import ChatOption
from evaluation.registry import imported
from evaluation.scorers.causal.options import CausalOptions, NeutralOptions, PromptOptions
from evaluation.scorers.classifier import CLASSIFIER
from evaluation.scorers.entry import ScorerEntry
from evaluation.vectors.options import VectorsOption, vectors_content
from kbprobe.format.setups import CLOZE, LABELLED_SETUPS, MASK, QUESTION, SCORED_SETUPS
from kbprobe.options import RARE, Metavar, Options

_HERE = "evaluation.scorers"


def _by_length(options: PromptOptions) -> str | None:
    """Divide by length, as longer answers are less likely, right or wrong; except for letters."""
    return None if options.letters else "char"


# Masked language models


class MaskedOptions(Options):
    """How a masked LM scores choices."""

    multi_piece: Annotated[Literal["pll", "skip", "error"], RARE] = Field(
        "pll",
        description="Candidates of several tokens: score their pseudo-log-likelihood (pll), set "
        "the item aside (skip), or stop (error).",
    )
    log_probs: Annotated[bool, RARE] = Field(
        False, description="Use log-probabilities over the vocabulary instead of logits."
    )


MASKED_LM = ScorerEntry(
    name="masked_lm",
    label="masked LM",
    needs=Capability.MASKED_SCORES,
    make=imported(f"{_HERE}.masked.scorer:MaskedScorer.from_inputs"),
    options=MaskedOptions,
    wording=CLOZE,
    normalization=lambda _options: "sum",
)
CANDIDATES = ScorerEntry(
    name="candidates",
    label="masked LM trained on candidates",
    needs=Capability.MASKED_SCORES,
    make=imported(f"{_HERE}.masked.scorer:CandidateScorer.from_inputs"),
    setups=(CLOZE,),
)
"""Not registered, since it is meant only for models that a learner trained with these scores."""


# Log-likelihoods of choices after a prompt


class Seq2SeqOptions(CausalOptions):
    """Options of the causal-LM scorer, and what counts as part of a choice."""

    score_end: Annotated[bool, RARE] = Field(
        False, description="Also score the end-of-sequence token after each choice."
    )


class PmiOptions(CausalOptions, NeutralOptions):
    """Options of the causal-LM scorer, and the neutral text."""


CAUSAL_LM = ScorerEntry(
    name="causal_lm",
    label="causal LM",
    version=2,
    needs=Capability.CAUSAL_SCORES,
    make=imported(f"{_HERE}.causal.scorer:CausalScorer.from_inputs"),
    options=CausalOptions,
    wording=QUESTION,
    normalization=_by_length,
)
SEQ2SEQ_LM = ScorerEntry(
    name="seq2seq_lm",
    label="sequence-to-sequence LM",
    needs=Capability.SEQ2SEQ_SCORES,
    make=imported(f"{_HERE}.seq2seq.scorer:Seq2SeqScorer.from_inputs"),
    options=Seq2SeqOptions,
    wording=QUESTION,
    normalization=_by_length,
)
PMI = ScorerEntry(
    name="pmi",
    label="PMI",
    version=2,
    needs=Capability.LIKELIHOODS,
    make=imported(f"{_HERE}.seq2seq.scorer:likelihood_scorer"),
    options=PmiOptions,
    setups=(QUESTION,),
)
"""Pointwise mutual information: how much a question raises the log-likelihood of a choice.

A language model favours answers that are likely in any context. Holtzman et al. 2021 (PMI over the
domain, section 3) compare each choice after its question with the same choice after a neutral
text. With the default, an empty text, the score is that of lm-evaluation-harness's
``acc_mutual_info``.
"""


# Models behind an endpoint


class EndpointOptions(PromptOptions):
    """Options of prompts, and the beginning of texts."""

    start: Annotated[str, Metavar("TOKEN"), RARE] = Field(
        "",
        description="Text of the model's beginning-of-sequence token, for choices with nothing "
        "before them, if the endpoint does not add it itself.",
    )


class EndpointPmiOptions(EndpointOptions, NeutralOptions):
    """Options of the endpoint's scorer, and the neutral text."""


ENDPOINT_LM = ScorerEntry(
    name="endpoint",
    label="causal LM behind an endpoint",
    needs=Capability.ENDPOINT_SCORES,
    make=imported(f"{_HERE}.endpoint.scorer:EndpointScorer.from_inputs"),
    options=EndpointOptions,
    wording=QUESTION,
    normalization=_by_length,
)
ENDPOINT_PMI = ScorerEntry(
    name="endpoint_pmi",
    label="PMI of a causal LM behind an endpoint",
    needs=Capability.ENDPOINT_SCORES,
    make=ENDPOINT_LM.make,
    options=EndpointPmiOptions,
    setups=(QUESTION,),
)


# Written answers


class GenerationOptions(PromptOptions, ChatOption):
    """How a model is asked for the letter of a choice; choices are lettered in any case."""

    system: Annotated[str | None, Metavar("TEXT"), RARE] = Field(
        None, description="System prompt of a chat, before the question."
    )
    max_tokens: Annotated[int, RARE] = Field(
        256,
        ge=1,
        le=1 << 20,
        description="Maximum length of a written answer in tokens; models that reason first need "
        "several thousand.",
    )


class ChatOptions(GenerationOptions):
    """Options of all written answers, and how they are read from an endpoint."""

    answers: Annotated[Literal["auto", "letters", "text", "json"], RARE] = Field(
        "auto",
        description="What of an endpoint's answer is used: the probabilities of letters as its "
        "first token, its text, or (json) an object with a letter, which a schema forces it to "
        "write; auto: the probabilities where the endpoint gives them, otherwise the text.",
    )


CHAT_ANSWERS = ScorerEntry(
    name="chat",
    label="chat model behind an endpoint",
    version=4,
    needs=Capability.CHAT_ANSWERS,
    make=imported(f"{_HERE}.generated.scorer:ChatScorer.from_inputs"),
    options=ChatOptions,
    wording=QUESTION,
)
GENERATE = ScorerEntry(
    name="generate",
    label="causal LM that writes its answer",
    version=4,
    needs=Capability.CAUSAL_SCORES,
    make=imported(f"{_HERE}.generated.local:LocalScorer.from_inputs"),
    options=GenerationOptions,
    wording=QUESTION,
)


# Contextual calibration


class ContentFreeOptions(Options):
    """The texts without content of contextual calibration."""

    content_free: Annotated[tuple[str, ...], Metavar("TEXT,..."), RARE] = Field(
        ("N/A", MASK, ""),
        min_length=1,
        description="Texts without content that replace the question; probabilities are divided by "
        "their mean over these texts. In clozes, a mask is appended to texts that have none.",
    )


class CalibrationOptions(CausalOptions, ContentFreeOptions):
    """Options of the causal-LM scorer, and the texts without content."""


class MaskedCalibrationOptions(MaskedOptions, ContentFreeOptions):
    """Options of the masked-LM scorer, and the texts without content."""


CALIBRATED = ScorerEntry(
    name="calibrated",
    label="contextual calibration",
    version=2,
    needs=Capability.LIKELIHOODS,
    make=imported(f"{_HERE}.calibration:calibrated"),
    options=CalibrationOptions,
    wording=QUESTION,
)
MASKED_CALIBRATED = ScorerEntry(
    name="masked_calibrated",
    label="masked contextual calibration",
    needs=Capability.MASKED_SCORES,
    make=imported(f"{_HERE}.calibration:masked_calibrated"),
    options=MaskedCalibrationOptions,
    wording=CLOZE,
)


# Ranks in the vocabulary

MASKED_RANK = ScorerEntry(
    name="masked_rank",
    label="masked LM's rank",
    needs=Capability.MASKED_SCORES,
    make=imported(f"{_HERE}.rank:MaskedRank.from_inputs"),
    setups=(CLOZE,),
)
CAUSAL_RANK = ScorerEntry(
    name="causal_rank",
    label="causal LM's rank",
    version=2,
    needs=Capability.CAUSAL_SCORES,
    make=imported(f"{_HERE}.rank:CausalRank.from_inputs"),
    setups=(CLOZE,),
)


# Heads and vectors

MULTIPLE_CHOICE = ScorerEntry(
    name="multiple_choice",
    label="multiple-choice model",
    needs=Capability.CHOICE_HEAD,
    make=imported(f"{_HERE}.multiple_choice:MultipleChoiceScorer.from_inputs"),
)


class EmbeddingOptions(Options):
    """How the vectors of tokens are combined into that of a text."""

    pooling: Literal["mean", "first", "last"] = Field(
        "mean",
        description="Vector of a text: the mean over its tokens, or that of its first or last "
        "token, as the model was trained.",
    )


EMBEDDING = ScorerEntry(
    name="embedding",
    label="sentence encoder",
    needs=Capability.HIDDEN_STATES,
    make=imported(f"{_HERE}.embedding:EmbeddingScorer.from_inputs"),
    options=EmbeddingOptions,
)


# Without a model


class GuessingOptions(Options):
    """Which guesses are made."""

    guess_seed: Annotated[int, RARE] = Field(0, ge=0, description="Random seed of the guesses.")


RANDOM = ScorerEntry(
    name="random",
    label="guessing",
    needs=Capability.NOTHING,
    make=imported(f"{_HERE}.model_free:GuessingScorer.from_inputs"),
    options=GuessingOptions,
    setups=(*SCORED_SETUPS, *LABELLED_SETUPS),
)
VEC_SIMILARITY = ScorerEntry(
    name="vec_similarity",
    label="VecSimilarity",
    version=2,
    needs=Capability.NOTHING,
    make=imported(f"{_HERE}.model_free:of_means"),
    options=VectorsOption,
    content=vectors_content,
)
VEC_SIMILARITY_PUBLISHED = ScorerEntry(
    name="vec_similarity_published",
    label="VecSimilarity as published",
    needs=Capability.NOTHING,
    make=imported(f"{_HERE}.model_free:published"),
    options=VectorsOption,
    content=vectors_content,
)

ENTRIES = (
    MASKED_LM,
    CAUSAL_LM,
    SEQ2SEQ_LM,
    PMI,
    ENDPOINT_LM,
    ENDPOINT_PMI,
    CHAT_ANSWERS,
    GENERATE,
    CALIBRATED,
    MASKED_CALIBRATED,
    MASKED_RANK,
    CAUSAL_RANK,
    MULTIPLE_CHOICE,
    CLASSIFIER,
    EMBEDDING,
    RANDOM,
    VEC_SIMILARITY,
    VEC_SIMILARITY_PUBLISHED,
)
"""All built-in scorers. By default the first whose needs a checkpoint meets is used."""
