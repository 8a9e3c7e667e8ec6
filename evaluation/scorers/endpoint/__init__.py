"""Scorers of models behind an endpoint: log-likelihoods of choices, and their PMI."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evaluation.models.capabilities import Capability
from evaluation.registry import imported
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.causal.options import NeutralOptions, PromptOptions
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


_make = imported("evaluation.scorers.endpoint.scorer:EndpointScorer.from_inputs")

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
    make=_make,
    options=EndpointPmiOptions,
    setups=(QUESTION,),
    uses_train=lambda options: options.shots > 0,
)
