"""Evaluate with several prompts, or with other in-context examples.

Listed under: Commands to vary the setup.

Compares accuracies and answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple

from pydantic import Field, field_validator

from evaluation.content import content_hash
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.options import TRAINING
from evaluation.results.words import difference, percent
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.causal.options import CausalOptions, PromptOptions
from evaluation.scorers.causal.prompts import Prompt, check_template, parse_template
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.entries import require_scorer_options
from evaluation.studies.table import (
    Column,
    Contrast,
    DataTable,
    RunRow,
    Section,
    StudyTables,
    contrasts_table,
    place_of,
    run_rows,
    runs_table,
    summary_of,
)
from evaluation.studies.variation import (
    left_out,
    measure_variation,
    notes_of,
    runs_by_request,
    spread_sentences,
    spread_table,
)
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.options import MAX_SEED, Metavar, Options
from kbprobe.parsing import read_yaml

Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]

VARIED = ("prompt", "letters", "chat", "shots")
"""Options that a prompt of the file may set."""

_REMEDY = (
    "Write a name and a template on each line, such as \"qa: 'Question: {question}\\nAnswer:'\"."
)
_NAME = re.compile(r"\w[\w.,=@+-]{0,59}")
_MOST = 1000


class PromptsOptions(Options):
    """What is varied; each prompt is combined with each seed and each order of examples."""

    prompts: Annotated[dict[str, dict[str, Any]], Metavar("FILE")] = Field(
        {},
        description="YAML file of prompts by name: templates as --prompt takes them, or options "
        f"({', '.join(VARIED)}) of each.",
    )
    shots_seeds: tuple[Seed, ...] = Field(
        (), description="Seeds that draw the examples of --shots: a run with each."
    )
    shots_orders: tuple[Seed, ...] = Field(
        (), description="Seeds of orders of the examples of --shots: a run with each."
    )

    @field_validator("prompts", mode="before")
    @classmethod
    def _read(cls, value: Any) -> Any:
        source = "prompts"
        if isinstance(value, str | Path):
            if not str(value).strip():
                raise ValueError("must be a YAML file of prompts by name")
            source = str(value)
            try:
                value = read_yaml(Path(value), _REMEDY)
            except FileNotFoundError:
                raise ValueError("must be a YAML file of prompts by name that exists") from None
        if not isinstance(value, Mapping) or len(value) > _MOST:
            raise UsageError(f"{source} must hold prompts by name, at most {_MOST:,}. {_REMEDY}")
        return {name: _options_of(source, name, options) for name, options in value.items()}

    @field_validator("shots_seeds", "shots_orders")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(value))


def _options_of(source: str, name: Any, value: Any) -> dict[str, Any]:
    """Return the options that a prompt sets, validated one by one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{source}: {name!r} cannot name a prompt, whose results go to a folder of that name: "
            "use letters, digits, _ and - . , = @ + (60 at most)"
        )
    given = {"prompt": value} if isinstance(value, str) else value
    if (
        not isinstance(given, Mapping)
        or not given
        or not all(isinstance(key, str) for key in given)
    ):
        raise UsageError(f"{source}: {name} must be a template or options by name. {_REMEDY}")
    if odd := [key for key in given if key not in VARIED]:
        raise UsageError(
            f"{source}: {name} has no option {odd[0]!r}. There are: {', '.join(VARIED)}"
        )
    own = CausalOptions.parse(dict(given), f"{source}: {name}")
    return {key: getattr(own, key) for key in given}


class PromptSetting(NamedTuple):
    """A prompt, if it has a name, with its examples: the options of one run alone."""

    prompt: str | None
    options: dict[str, Any]

    @property
    def parts(self) -> list[str]:
        """What distinguishes it from others: names of its folders, and parts of its label."""
        own = [] if self.prompt is None else [self.prompt]
        names = {"shots_seed": "examples", "shots_order": "order"}
        return own + [f"{w}-{self.options[k]}" for k, w in names.items() if k in self.options]

    @property
    def label(self) -> str:
        """A name such as ``qa, examples-1``."""
        return ", ".join(self.parts)


def _settings(request: StudyRequest) -> list[PromptSetting]:
    """Combine prompts, seeds and orders of examples."""
    options: PromptsOptions = request.options
    if options.prompts and "prompt" in request.values:
        raise UsageError("--prompt and --prompts: leave one out, or add the template to the file")
    prompts: list[tuple[str | None, dict[str, Any]]] = [*options.prompts.items()] or [(None, {})]
    _check_prompts(request, prompts)
    seeds: list[dict[str, int]] = [{"shots_seed": seed} for seed in options.shots_seeds] or [{}]
    orders = [{"shots_order": seed} for seed in options.shots_orders] or [{}]
    settings = [
        PromptSetting(name, {**own, **seed, **order})
        for (name, own), seed, order in product(prompts, seeds, orders)
    ]
    if len(settings) < 2:
        raise UsageError(
            "prompts compares two or more: name a file of them with --prompts FILE, or, with "
            "--shots N, seeds of examples with --shots-seeds 0,1,2 or of their orders with "
            "--shots-orders 0,1,2"
        )
    return settings


def _expand(request: StudyRequest) -> Sequence[RunSpec]:
    """Return the runs, grouped by model and probe."""
    varied, reader = _settings(request), SplitReader()
    for model in request.models:
        scorer = require_scorer_options(request, model, ("prompt", "shots_seed"), "takes a prompt")
        for probe in request.probes:
            _check_rows(request, varied, reader.rows(probe, request.defaults.run), scorer)
    specs = []
    for model, probe, setting in product(request.models, request.probes, varied):
        spec = request.spec(probe, model, facts=False)
        folder = None if spec.folder is None else spec.folder.joinpath(*setting.parts)
        try:
            specs.append(spec.vary(folder, **setting.options))
        except UsageError as error:
            raise UsageError(f"{setting.label}: {error}") from error
    return specs


def _check_rows(
    request: StudyRequest, varied: Sequence[PromptSetting], rows: ProbeSplit, scorer: ScorerEntry
) -> None:
    """Check that each prompt fits rows of each setup, before any are scored."""
    setups = rows.items.setups.to_pylist()
    shown = scorer.asked([rows.items[setups.index(name)] for name in setups_of(rows.items)])
    for setting in varied:
        given = {**request.values, **setting.options}
        asked = PromptOptions(prompt=given.get("prompt"), letters=bool(given.get("letters")))
        prompt = Prompt(asked, chat=bool(given.get("chat")))
        for item in filter(lambda item: scorer.takes(item.setup), shown):
            try:
                prompt.render(item)
            except UsageError as error:
                raise UsageError(f"{rows.name}, prompt {setting.label}: {error}") from error


def _check_prompts(
    request: StudyRequest, prompts: Sequence[tuple[str | None, dict[str, Any]]]
) -> None:
    """Check all templates at the start, since some are not used until all others are scored."""
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


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> StudyTables:
    """Summarise the runs of each model on each probe."""
    varied = _settings(request)
    sections = [_section(runs, varied) for runs in runs_by_request(finished)]
    return summary_of("prompts", "Prompts", sections, "models and probes")


def _section(runs: Sequence[Finished], varied: Sequence[PromptSetting]) -> Section:
    settings = {id(run): setting for run, setting in zip(runs, varied, strict=True)}

    def setting_of(row: RunRow) -> PromptSetting:
        return settings[id(row.runs[0])]

    axes = {
        "prompt": Column[Finished](
            "Name of the prompt, and the seeds of its examples and of their order.",
            lambda run: settings[id(run)].label,
        )
    }
    rows = run_rows(runs, axes)
    options: dict[str, Column[RunRow]] = {
        "options": Column(
            "The options that distinguish it, as a single run takes them.",
            lambda row: setting_of(row).options,
            lambda given: "; ".join(f"{name}: {value}" for name, value in given.items()),
        ),
        "normalization": Column(
            "What scores were divided by.",
            lambda row: row.runs[0].results.metrics.normalization,
            None,
        ),
    }
    table = runs_table(rows, axes, options)
    seed = runs[0].results.seed
    variation = measure_variation(runs, seed)
    pairs = [Contrast.of(first, second, seed) for first, second in combinations(rows, 2)]
    contrasts = contrasts_table(pairs, ("first", "second", "rows", "same"))
    worst, *_, best = sorted(rows, key=lambda row: row.accuracy.value)
    extremes = Contrast.of(worst, best, seed)
    extreme = contrasts_table([extremes], ("first", "second", "rows", "difference"), "extremes")
    groups = DataTable("groups", _groups(rows, lambda row: setting_of(row).prompt), _GROUPS)
    spread = spread_table(variation)
    label = f"Accuracy with each prompt; chance is {percent(rows[0].chance)}"
    return Section(
        place_of(runs[0], "probe", "split", "model"),
        [table, spread, contrasts, extreme, groups],
        [
            table.dots(label, [doc.Level("chance", rows[0].chance)]),
            table.shown(label, ("prompt", "accuracy", "scored", "skipped")),
            spread.shown("Accuracy and answers over the prompts"),
            doc.HeatMap.of_pairs(
                "Share of questions with the same answer",
                "prompt / prompt",
                [row.label for row in rows],
                {(pair.first.label, pair.second.label): pair.same for pair in pairs},
            ),
            groups.shown("By prompt, over draws or orders of its examples"),
            table.shown(
                "The options of each run", ("prompt", "options"), names=2, fold="The prompts"
            ),
        ],
        [
            *spread_sentences(variation, f"{len(runs)} prompts", "prompt"),
            f"Best: {best.label}, {percent(best.accuracy.value)}; worst: {worst.label}, "
            f"{percent(worst.accuracy.value)}. Their difference, "
            f"{difference(extremes.difference)}, is too large on average: they were chosen by it.",
        ],
        [*left_out(variation, "prompt"), *notes_of(runs, "prompt"), *_lengths(rows)],
    )


def _lengths(rows: Sequence[RunRow]) -> list[str]:
    """Describe how scores are divided, if not in the same way with every prompt."""
    divided = {row.label: row.runs[0].results.metrics.normalization for row in rows}
    if len(set(divided.values())) == 1:
        return []
    each = "; ".join(f"{label}: {name}" for label, name in divided.items())
    return [f"Scores are not divided by the same length ({each})."]


class _PromptRuns(NamedTuple):
    """The runs with one prompt."""

    prompt: str | None
    accuracies: list[float]


_GROUPS: dict[str, Column[_PromptRuns]] = {
    "prompt": Column("The prompt's name; null: none was named.", lambda group: group.prompt),
    "runs": Column("The number of runs with it.", lambda group: len(group.accuracies)),
    "accuracy": Column("Their mean accuracy.", lambda group: fmean(group.accuracies)),
    "deviation": Column(
        "Standard deviation of their accuracies (n - 1).", lambda group: stdev(group.accuracies)
    ),
}


def _groups(rows: Sequence[RunRow], prompt: Callable[[RunRow], str | None]) -> list[_PromptRuns]:
    """Group the runs by prompt, if several prompts have several runs."""
    groups = group_by(rows, prompt)
    if len(groups) < 2 or len(groups) == len(rows):
        return []
    return [_PromptRuns(name, [row.accuracy.value for row in own]) for name, own in groups.items()]


PROMPTS = Study(
    name=__name__,
    help=__doc__,
    expand=_expand,
    summarise=_summarise,
    options=PromptsOptions,
    fixed=TRAINING | {"shots_seed", "shots_order", "facts"},
)
"""The study."""
