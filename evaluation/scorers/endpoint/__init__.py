"""Scorers of models behind an endpoint: log-likelihoods of choices, and their PMI."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluation.models.capabilities import Capability
from evaluation.scorers.base import Scorer, ScorerEntry, ScorerInputs
from evaluation.scorers.causal.options import NeutralOptions, PromptOptions
from kbprobe.errors import UsageError
from kbprobe.format.setups import QUESTION
from kbprobe.options import RARE, Metavar


class EndpointOptions(PromptOptions):
    """Those of prompts, and what a text begins with."""

    start: Annotated[str, Metavar("TOKEN"), RARE] = Field(
        "",
        description="Text of the model's beginning-of-sequence token, for choices with nothing "
        "before them, if the endpoint does not add it itself.",
    )


class EndpointPmiOptions(EndpointOptions, NeutralOptions):
    """Those of the endpoint's scorer, and the neutral text."""


def _make(inputs: ScorerInputs) -> Scorer:
    from evaluation.scorers.endpoint.scorer import EndpointScorer

    return EndpointScorer.from_inputs(inputs)


def _make_pmi(inputs: ScorerInputs) -> Scorer:
    from evaluation.scorers.endpoint.scorer import EndpointScorer

    if inputs.options.letters:
        raise UsageError(
            "--letters scores the letters of choices, and --scorer endpoint_pmi their texts: "
            "leave one out"
        )
    return EndpointScorer.from_inputs(inputs, neutral=inputs.options.neutral)


ENDPOINT_LM = ScorerEntry(
    name="endpoint",
    label="causal LM behind an endpoint",
    version=1,
    needs=Capability.ENDPOINT_SCORES,
    make=_make,
    options=EndpointOptions,
    wording=QUESTION,
    uses_train=lambda options: options.shots > 0,
    # As for causal LMs that are loaded locally.
    normalization=lambda options: None if options.letters else "char",
)
ENDPOINT_PMI = ScorerEntry(
    name="endpoint_pmi",
    label="PMI of a causal LM behind an endpoint",
    version=1,
    needs=Capability.ENDPOINT_SCORES,
    make=_make_pmi,
    options=EndpointPmiOptions,
    setups=(QUESTION,),
    uses_train=lambda options: options.shots > 0,
)
