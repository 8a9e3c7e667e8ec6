"""Zero-shot: each model on each probe, as it is (or fitted with ``--train`` first)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import BaseModel

from evaluation.results.types import Results
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, Study, StudyRequest


class ZeroShot(BaseModel):
    """The results of all runs."""

    results: list[Results]


def _expand(request: StudyRequest) -> list[RunSpec]:
    specs = [
        request.spec(probe, model)
        for model in request.models
        for probe in dict.fromkeys(request.probes)
    ]
    if len(specs) == 1 and request.output_given:
        # A single run goes to the folder itself.
        return [replace(specs[0], folder=request.output)]
    return specs


def _summarise(_request: StudyRequest, finished: Sequence[Finished]) -> ZeroShot:
    return ZeroShot(results=[run.evaluation.results for run in finished])


def _show(summary: ZeroShot) -> None:
    from evaluation.results.summary import show_table

    show_table(summary.results)


ZERO_SHOT = Study(
    name="zero_shot",
    help="Evaluate language models on probes: folders that build-probe wrote, Hub ids, or JSON "
    "lines as the oLMpics and WordNetQA papers published them.",
    expand=_expand,
    summarise=_summarise,
    show=_show,
    independent=True,
    summarise_rest=lambda request, finished, _failed: _summarise(request, finished),
)
