"""Prompts: the same questions asked with several prompts, or with other examples."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, NamedTuple

from pydantic import Field, field_validator

from evaluation.content import content_hash
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.options import TRAINING
from evaluation.results import intervals
from evaluation.results.types import Estimate, Model
from evaluation.results.words import difference, interval, last_name, name_or_count, percent
from evaluation.runs.reading import SplitReader
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.scorers.causal.options import CausalOptions, PromptOptions
from evaluation.scorers.causal.prompts import Prompt, check_template, parse_template
from evaluation.studies.base import Finished, Study, StudyRequest
from evaluation.studies.counting import group_by
from evaluation.studies.entries import require_scorer_options
from evaluation.studies.pairing import pair_rows
from evaluation.studies.records import Record
from evaluation.studies.variation import (
    Variant,
    Variation,
    left_out,
    measure_variation,
    notes_of,
    runs_by_request,
    spread_sentences,
    spread_table,
    variants_table,
)
from kbprobe import document as doc
from kbprobe.errors import UsageError
from kbprobe.format.sealed import Sealed
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
        return {name: _options_of(source, name, held) for name, held in value.items()}

    @field_validator("shots_seeds", "shots_orders")
    @classmethod
    def _distinct(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(value))


def _options_of(source: str, name: Any, held: Any) -> dict[str, Any]:
    """Return the options that a prompt sets, validated one by one."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{source}: {name!r} cannot name a prompt, whose results go to a folder of that name: "
            "use letters, digits, _ and - . , = @ + (60 at most)"
        )
    given = {"prompt": held} if isinstance(held, str) else held
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


class PromptRun(Variant):
    """A prompt with its examples."""

    prompt: str | None = Field(description="The prompt's name; null: none was named.")
    options: dict[str, Any] = Field(
        description="The options that distinguish it, as a single run takes them."
    )
    normalization: str = Field(description="What scores were divided by.")


class PairedPrompts(Model):
    """Two runs on the rows that both scored."""

    first: str = Field(description="Label of one run.")
    second: str = Field(description="Label of the other.")
    compared: int = Field(description="Rows scored by both.")
    alike: Estimate = Field(description="Share of these rows with the same answer.")


class PromptGroup(Model):
    """All runs with one prompt that has several seeds or orders of examples."""

    prompt: str | None = Field(description="The prompt's name; null: none was named.")
    runs: int = Field(description="The number of runs.")
    accuracy: float = Field(description="Their mean accuracy.")
    deviation: float = Field(description="Standard deviation of their accuracies (n - 1).")


class ModelPrompts(Record):
    """A model on a probe, asked with several prompts."""

    probe: str = Field(description="The probe's name.")
    split: str = Field(description="The split evaluated.")
    model: str = Field(description="The model, as it was given.")
    chance: float = Field(description="Mean of one over the number of choices.")
    runs: list[PromptRun] = Field(description="Each prompt with its examples.")
    variation: Variation = Field(description="How accuracy and answers vary over the runs.")
    best: str = Field(description="Label of the run with the greatest accuracy.")
    worst: str = Field(description="Label of the run with the least accuracy.")
    difference: Estimate = Field(
        description="The best run's accuracy less the worst's on the rows that both scored, in "
        "percentage points. The two were chosen by these accuracies, so that the difference is "
        "too large on average; its interval does not account for that."
    )
    pairs: list[PairedPrompts] = Field(description="Each run with every later one.")
    groups: list[PromptGroup] = Field(
        description="Means by prompt; empty where no prompt has several runs."
    )
    notes: list[str] = Field(description="What a reader must know.")


class PromptsSummary(Model, Sealed):
    """All of ``prompts.json``."""

    schema_version: str = "1.0"
    models: list[ModelPrompts] = Field(description="Each model on each probe.")


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
    found = [
        PromptSetting(name, {**own, **seed, **order})
        for (name, own), seed, order in product(prompts, seeds, orders)
    ]
    if len(found) < 2:
        raise UsageError(
            "prompts compares two or more: name a file of them with --prompts FILE, or, with "
            "--shots N, seeds of examples with --shots-seeds 0,1,2 or of their orders with "
            "--shots-orders 0,1,2"
        )
    return found


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


def _summarise(request: StudyRequest, finished: Sequence[Finished]) -> PromptsSummary:
    """Summarise the runs of each model on each probe."""
    varied = _settings(request)
    return PromptsSummary(models=[_model(runs, varied) for runs in runs_by_request(finished)])


def _model(runs: Sequence[Finished], varied: Sequence[PromptSetting]) -> ModelPrompts:
    seed = runs[0].results.seed
    variation = measure_variation(runs, seed)
    described = [
        PromptRun.of(run, label=own.label, **own._asdict())
        for run, own in zip(runs, varied, strict=True)
    ]
    by_accuracy = sorted(range(len(runs)), key=lambda at: described[at].accuracy.value)
    worst, best = by_accuracy[0], by_accuracy[-1]
    paired = pair_rows(runs[worst], runs[best])
    notes = [*left_out(variation, "prompt"), *notes_of(runs, "prompt")]
    if len({one.normalization for one in described}) > 1:
        divided = "; ".join(f"{one.label}: {one.normalization}" for one in described)
        notes.append(f"Scores are not divided by the same length ({divided}).")
    return ModelPrompts.of(
        runs[0],
        runs=described,
        variation=variation,
        best=described[best].label,
        worst=described[worst].label,
        difference=intervals.paired_difference(*paired.right, paired.clusters, seed),
        pairs=[
            PairedPrompts(
                first=first.label,
                second=second.label,
                compared=paired.same.size,
                alike=intervals.accuracy(paired.same, paired.clusters, seed),
            )
            for (one, first), (two, second) in combinations(zip(runs, described, strict=True), 2)
            for paired in [pair_rows(one, two)]
        ],
        groups=_groups(described),
        notes=notes,
    )


def _groups(described: Sequence[PromptRun]) -> list[PromptGroup]:
    by_prompt = {
        prompt: [one.accuracy.value for one in runs]
        for prompt, runs in group_by(described, lambda one: one.prompt).items()
    }
    if len(by_prompt) < 2 or len(by_prompt) == len(described):
        return []
    return [
        PromptGroup(prompt=name, runs=len(own), accuracy=fmean(own), deviation=stdev(own))
        for name, own in by_prompt.items()
    ]


def _document(summary: PromptsSummary) -> doc.Document:
    names = [f"{one.probe}, {last_name(one.model)}" for one in summary.models]
    return doc.Document(
        "Prompts",
        name_or_count(names, "models and probes"),
        [_section(one) for one in summary.models],
    )


def _section(one: ModelPrompts) -> doc.Section:
    model = last_name(one.model)
    heads = list(dict.fromkeys(name for run in one.runs for name in run.options))
    options = [(run.label, *(_spelt(run.options.get(name)) for name in heads)) for run in one.runs]
    return doc.Section(
        f"{one.probe} ({one.split}), {model}",
        [
            doc.Findings(_sentences(one)),
            doc.Caveats(one.notes),
            doc.Dots(
                f"Accuracy of {model} on {one.probe} with each prompt.",
                [doc.Dot(run.label, run.accuracy) for run in one.runs],
                [doc.Level("chance", one.chance)],
            ),
            variants_table(
                "prompt",
                one.runs,
                "Accuracy with each prompt, with its 95% interval; chance is "
                f"{percent(one.chance)}",
            ),
            spread_table({model: one.variation}, "Accuracy and answers over the prompts"),
            doc.HeatMap.of_pairs(
                "Share of questions with the same answer",
                "prompt / prompt",
                [run.label for run in one.runs],
                {(pair.first, pair.second): pair.alike for pair in one.pairs},
            ),
            doc.Table(
                ("prompt", *(name.replace("_", " ") for name in heads)),
                options,
                "The options of each run; \\n stands for a line break",
                names=1 + len(heads),
                fold="The prompts",
            ),
        ],
        link=f"{one.probe}, {model}",
    )


def _spelt(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _sentences(one: ModelPrompts) -> list[str]:
    """Return sentences on a model's results on a probe."""
    found = spread_sentences(one.variation, f"{len(one.runs)} prompts", "prompt")
    by_label = {run.label: run.accuracy for run in one.runs}
    best, worst = by_label[one.best], by_label[one.worst]
    found.append(
        f"Best: {one.best}, {percent(best.value)} ({interval(best)}); worst: {one.worst}, "
        f"{percent(worst.value)} ({interval(worst)}). The difference is "
        f"{difference(one.difference)}."
    )
    ranked = sorted(one.pairs, key=lambda pair: pair.alike.value)
    if len(ranked) > 1:
        found.append(f"Most alike: {_alike(ranked[-1])}; least alike: {_alike(ranked[0])}.")
    found += [
        f"{group.prompt}: {percent(group.accuracy)} on average over {group.runs} draws or orders "
        f"of its examples, with a standard deviation of {100 * group.deviation:.1f} points."
        for group in one.groups
    ]
    return found


def _alike(pair: PairedPrompts) -> str:
    return f"{pair.first} and {pair.second} ({percent(pair.alike.value)} same answers)"


PROMPTS = Study(
    name="prompts",
    help="Prompts: ask the same questions with several prompts, or with other examples, and "
    "compare accuracies and answers.",
    expand=_expand,
    summarise=_summarise,
    document=_document,
    options=PromptsOptions,
    fixed=TRAINING | {"shots_seed", "shots_order", "facts"},
)
"""The study."""
