"""Axes of learning curves (models x renderings x learners x sizes x draws), and their runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from evaluation.items.sources import UnknownSplit, open_probe
from evaluation.items.types import setups_of
from evaluation.learners.registry import LEARNERS
from evaluation.models.capabilities import Capability
from evaluation.models.checkpoint import NO_MODEL
from evaluation.models.revisions import find_revisions
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import Finished, StudyRequest
from evaluation.studies.entries import (
    open_model,
    refuse_idle_options,
    with_options_of,
    zero_shot_scorer,
)
from kbprobe.errors import UsageError
from kbprobe.format.setups import CLOZE
from kbprobe.options import Options, option_name

if TYPE_CHECKING:
    from evaluation.items.sources import ProbeSource


LARGE = 1000
"""Sizes of at least this many rows use fewer draws, as published."""

CONTROLS = ("no_language", "perturbed")
"""The configs of a probe that are its controls."""

PROBE, RANDOM_LABELS = "probe", "random_labels"
"""Renderings other than the controls, which are named after their configs."""

RENDERINGS = {
    PROBE: "the probe",
    RANDOM_LABELS: "random labels",
    "no_language": "no language",
    "perturbed": "perturbed language",
}
"""Display names of renderings; others are shown by their config."""


def rendering_name(rendering: str) -> str:
    """Return a rendering's display name."""
    return RENDERINGS.get(rendering, rendering)


def rendering_of(run: Finished) -> str:
    """Return the rendering of a run: the probe itself, a control's config, or random labels."""
    options = run.asked.run
    return RANDOM_LABELS if options.labels == "random" else options.config or PROBE


class CurveOptions(Options):
    """Options for computing learning curves."""

    sizes: tuple[int, ...] = Field(
        (62, 125, 250, 500, 1000, 2000, 4000),
        min_length=1,
        description="Numbers of training rows; sizes larger than the train split are left out.",
    )
    seeds: int = Field(
        6, ge=1, description=f"Draws of training rows for each size below {LARGE:,}."
    )
    large_seeds: int = Field(3, ge=1, description=f"Draws for each size of {LARGE:,} or more.")
    learners: tuple[str, ...] = Field(
        (), description="Learners by name; none: all that apply to the model and the probe."
    )
    controls: bool = Field(
        False,
        description="Also compute curves on the controls (the configs "
        f"{' and '.join(CONTROLS)}) and LangSense.",
    )
    random_labels: bool = Field(
        False, description="Also compute curves on random labels, and selectivity."
    )
    revisions: tuple[str, ...] = Field(
        (), description="Revisions of each model to compare, such as 'step*' or 'checkpoint-*'."
    )
    random_init: int = Field(
        0,
        ge=0,
        description="Also compute curves for this many randomly initialised models of each "
        "architecture.",
    )

    @model_validator(mode="after")
    def _sizes_grow(self) -> CurveOptions:
        if any(size < 1 for size in self.sizes):
            raise ValueError(f"{option_name('sizes')} must be numbers of rows: 1 or more")
        if list(self.sizes) != sorted(set(self.sizes)):
            raise ValueError(f"{option_name('sizes')} must be strictly increasing")
        return self

    def draws(self, size: int) -> range:
        """Return the seeds of the draws for a size."""
        return range(self.large_seeds if size >= LARGE else self.seeds)


@dataclass(frozen=True)
class Train:
    """What the study needs from a train split: the possible sizes, and its rows' setups."""

    sizes: list[int]
    setups: frozenset[str]


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, grouped by model."""
    options: CurveOptions = request.options
    if options.revisions and "revision" in request.values:
        raise UsageError("--revision names one revision, --revisions several: give one of the two")
    _refuse_idle_models(request)
    splits = [(probe, _open_train(probe, request)) for probe in request.probes]
    specs: list[RunSpec] = []
    for name in request.models:
        for model, variant in _variants(name, options):
            able = open_model(request, model, **variant).capabilities
            for probe, train in splits:
                # Learners that need no model are run only without one.
                learners = tuple(
                    entry.name
                    for entry in map(LEARNERS.get, options.learners)
                    if entry.needs in able and (entry.needs or model == NO_MODEL)
                )
                if not options.learners or (not learners and model == NO_MODEL):
                    learners = suitable_learners(able, train.setups)
                if not learners:
                    setups, names = " and ".join(sorted(train.setups)), ", ".join(LEARNERS.names())
                    raise UsageError(
                        f"no learner suits {model} and rows of the setup {setups}: name one with "
                        f"--learners ({names})"
                    )
                specs += _of_model(request, probe, model, variant, able, train, learners)
    fitted = {spec.run.learner for spec in specs}
    if idle := [name for name in options.learners if name not in fitted]:
        raise UsageError(
            f"--learners {idle[0]}: none of the models ({', '.join(request.models)}) can be used "
            "with it. Leave it out, or name another model with --model."
        )
    refuse_idle_options(request, specs)
    return specs


def _refuse_idle_models(request: StudyRequest) -> None:
    """Refuse learners that use no model unless ``--model none`` is given.

    Otherwise their curves would be recorded under models that were not used.
    """
    learners = [LEARNERS.get(name) for name in request.options.learners]
    idle = [entry.name for entry in learners if not entry.needs]
    if idle and NO_MODEL not in request.models:
        instead = "in place of the models" if len(idle) == len(learners) else "as well"
        raise UsageError(
            f"--learners {idle[0]} reads no model, and its curve would be recorded as that of "
            f"{request.models[0]}. Name --model {NO_MODEL} {instead}"
        )


def suitable_learners(able: Capability, setups: frozenset[str]) -> tuple[str, ...]:
    """Return the learners that suit a model and the setups of a probe's rows.

    Without a model, which has no capabilities, these are baselines over word vectors.
    """
    clozes = setups == {CLOZE}
    if not able:
        names: tuple[str, ...] = ("mlm_baseline",) if clozes else ("esim",)
    elif clozes and Capability.MASKED_SCORES in able:
        names = ("linear", "mlp", "full_mlm")
    elif Capability.CAUSAL_SCORES in able:
        names = ("linear",) if clozes else ("frozen",)
    else:
        names = ("frozen", "full")
    known = (LEARNERS.get(name) for name in names if name in LEARNERS.names())
    return tuple(entry.name for entry in known if all(map(entry.takes, setups)))


def _open_train(probe: ProbeSource, request: StudyRequest) -> Train:
    options: CurveOptions = request.options
    named = request.defaults.run.label_names
    name = probe if isinstance(probe, str) else "the dataset in memory"
    try:
        items = open_probe(probe, split="train", label_names=named).items
    except UnknownSplit as error:
        raise UsageError(
            f"{name} has no rows to train on, so no size is possible: {error} Build it with "
            f"some: build-probe NAME --train-rows {options.sizes[-1]}; or ask the model without "
            "training: evaluate-probe PROBE --model MODEL"
        ) from error
    rows, sizes = len(items), options.sizes
    possible = [size for size in sizes if size <= rows]
    if not possible:
        some = sorted({max(1, rows // 4), max(1, rows // 2), rows} - {0})
        raise UsageError(
            f"{name} has {rows:,} rows to train on, fewer than the smallest size ({sizes[0]:,}). "
            f"Name sizes up to {rows:,}, such as --sizes {','.join(map(str, some))}, or build it "
            f"with more: build-probe NAME --train-rows {sizes[-1]}, or --for-training"
        )
    return Train(possible, setups_of(items))


def _variants(model: str, options: CurveOptions) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the variants of a model (revisions, random weights), and the options of each."""
    if options.revisions:
        for revised in find_revisions(model, options.revisions):
            yield revised.model, {} if revised.revision is None else {"revision": revised.revision}
    else:
        yield model, {}
    if model != NO_MODEL:
        yield from ((model, {"random_weights": seed}) for seed in range(options.random_init))


def _of_model(
    request: StudyRequest,
    probe: ProbeSource,
    model: str,
    variant: dict[str, Any],
    able: Capability,
    train: Train,
    learners: tuple[str, ...],
) -> Iterator[RunSpec]:
    """Yield a model's runs on one probe."""
    options: CurveOptions = request.options
    renderings: list[dict[str, Any]] = [{}]
    if options.controls:
        renderings += [{"config": config} for config in CONTROLS]
    scorer = zero_shot_scorer(able, train.setups)
    if scorer is not None:
        untrained = with_options_of(request, scorer)
        for rendering in renderings:
            spec = untrained.spec(probe, model, **variant, **rendering, facts=False)
            yield replace(spec, folder=spec.folder and spec.folder / "zero-shot")
    if options.random_labels:
        renderings.append({"labels": "random"})
    for name in learners:
        entry = LEARNERS.get(name)
        trained = with_options_of(request, entry, entry.scorer)
        for rendering, size in product(renderings, train.sizes):
            for draw in options.draws(size):
                changes = {**variant, "learner": name, **rendering, "train": size}
                spec = trained.spec(probe, model, **changes, train_seed=draw, facts=False)
                later = [
                    larger
                    for larger in train.sizes
                    if larger > size and draw in options.draws(larger)
                ]
                # The learner measures the code length of the next block, if there is one.
                measured = later and "next_size" in entry.options.model_fields
                yield spec.vary(next_size=later[0]) if measured else spec
