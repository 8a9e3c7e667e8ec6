"""The runs of the study: each prompt with each seed and each order of its examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from evaluation.content import content_hash
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.causal.prompts import Prompt, check_template, parse_template
from evaluation.studies.base import StudyRequest
from evaluation.studies.entries import LEARNING, require_scorer_options
from evaluation.studies.prompts.options import PromptsOptions
from kbprobe.errors import UsageError

FIXED = ("shots_seed", "shots_order", "facts", *LEARNING)
"""Options of runs that the study sets, or that have no meaning in it."""


class PromptSetting(NamedTuple):
    """A prompt with its examples: what one run varies.

    Attributes:
        prompt: its name; None where none was named.
        options: those that it alone has.
    """

    prompt: str | None
    options: dict[str, Any]

    @property
    def parts(self) -> list[str]:
        """What distinguishes it: as folders, and joined as its label."""
        own = [] if self.prompt is None else [self.prompt]
        names = {"shots_seed": "examples", "shots_order": "order"}
        return own + [f"{w}-{self.options[k]}" for k, w in names.items() if k in self.options]

    @property
    def label(self) -> str:
        """A name: ``qa, examples-1``."""
        return ", ".join(self.parts)


def settings(request: StudyRequest) -> list[PromptSetting]:
    """Combine prompts, seeds and orders of examples.

    Raises:
        UsageError: there are fewer than two; two prompts are the same; a template lacks a field.
    """
    options: PromptsOptions = request.options
    if options.prompts and "prompt" in request.values:
        raise UsageError("--prompt and --prompts: leave one out, or add the template to the file")
    prompts: list[tuple[str | None, dict[str, Any]]] = [*options.prompts.items()] or [(None, {})]
    _check_prompts(request, prompts)
    seeds: list[dict[str, int]] = [{"shots_seed": seed} for seed in options.shots_seeds] or [{}]
    orders = [{"shots_order": seed} for seed in options.shots_orders] or [{}]
    found = [
        PromptSetting(name, {**own, **seed, **order})
        for name, own in prompts
        for seed in seeds
        for order in orders
    ]
    if len(found) < 2:
        raise UsageError(
            "prompts compares two or more: name a file of them with --prompts FILE, or, with "
            "--shots N, seeds of examples with --shots-seeds 0,1,2 or of their orders with "
            "--shots-orders 0,1,2"
        )
    return found


def expand(request: StudyRequest) -> Sequence[RunSpec]:
    """Make the runs: those of one model and probe after each other.

    Raises:
        UsageError: as :func:`settings` does; a model is not prompted; a prompt cannot hold the
            rows of a probe; there is no such probe or split.
        KbprobeError: a split cannot be read.
    """
    varied, reader = settings(request), SplitReader()
    for model in request.models:
        scorer = require_scorer_options(request, model, ("prompt", "shots_seed"), "takes a prompt")
        for probe in request.probes:
            _check_rows(request, varied, reader.rows(probe, request.defaults.run), scorer)
    return [
        _run(request.spec(probe, model, facts=False), setting)
        for model in request.models
        for probe in request.probes
        for setting in varied
    ]


def _check_rows(
    request: StudyRequest, varied: Sequence[PromptSetting], rows: ProbeSplit, scorer: ScorerEntry
) -> None:
    """Check that each prompt can hold rows of each setup, before any are scored.

    Raises:
        UsageError: one cannot; it is named.
    """
    setups = rows.items.setups.to_pylist()
    shown = scorer.asked([rows.items[setups.index(name)] for name in setups_of(rows.items)])
    for setting in varied:
        given = {**request.values, **setting.options}
        template, letters = given.get("prompt"), bool(given.get("letters"))
        template = None if template is None else parse_template(template)
        prompt = Prompt(template=template, letters=letters, chat=bool(given.get("chat")))
        for item in filter(lambda item: scorer.takes(item.setup), shown):
            try:
                prompt.render(item)
            except UsageError as error:
                raise UsageError(f"{rows.name}, prompt {setting.label}: {error}") from error


def _run(spec: RunSpec, setting: PromptSetting) -> RunSpec:
    folder = None if spec.folder is None else spec.folder.joinpath(*setting.parts)
    try:
        return replace(spec.vary(folder, **setting.options), former=None)
    except UsageError as error:
        raise UsageError(f"{setting.label}: {error}") from error


def _check_prompts(
    request: StudyRequest, prompts: Sequence[tuple[str | None, dict[str, Any]]]
) -> None:
    """Check all templates at once: the last one is read when all others have been scored."""
    seen: dict[str, str | None] = {}
    for name, own in prompts:
        given = {**request.values, **own}
        if (template := given.get("prompt")) is not None:
            try:
                letters = bool(given.get("letters"))
                check_template(parse_template(template), letters=letters)
            except UsageError as error:
                raise UsageError(f"prompt {name}: {error}" if name else str(error)) from error
            own = {**own, "prompt": parse_template(template)}
        other = seen.setdefault(content_hash(own), name)
        if other != name:
            raise UsageError(f"the prompts {other} and {name} are the same: leave one out")
