"""The runs of the study: each model as it is, and trained on each probe, tested on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from pydantic import Field

from evaluation.items.sources import UnknownSplit, open_probe
from evaluation.items.types import ProbeSplit, setups_of
from evaluation.learners.base import LearnerEntry, check_count
from evaluation.learners.registry import choose_learner
from evaluation.models.capabilities import Capability
from evaluation.runs.spec import RunSpec
from evaluation.scorers.base import ScorerEntry
from evaluation.studies.base import StudyRequest
from evaluation.studies.entries import refuse_idle_options, with_options_of, zero_shot_scorer
from evaluation.studies.models import open_model
from kbprobe.errors import UsageError
from kbprobe.options import Options

FIXED = (
    *("config", "scorer", "train_seed", "train_on", "labels", "facts", "next_size"),
    "keep_checkpoint",
)
"""Options of runs that the study sets itself, or that belong to a single run."""

_LEARNING = ("train", "learner", "mix_in", "mix_rows")
"""Options of runs that a model as it is does without."""


class TransferOptions(Options):
    """How often each training is repeated."""

    seeds: int = Field(3, ge=1, description="Draws of training rows for each probe trained on.")


@dataclass(frozen=True)
class Splits:
    """A probe's rows to train on and to evaluate, read before anything is trained."""

    source: str
    train: ProbeSplit
    tested: ProbeSplit

    @property
    def setups(self) -> frozenset[str]:
        """The setups of all rows."""
        return setups_of(self.train.items) | setups_of(self.tested.items)


def expand(request: StudyRequest) -> list[RunSpec]:
    """Return all runs, those of one model and of one training after each other.

    Raises:
        UsageError: there is no number of rows to train on, or a probe has fewer; a probe lacks a
            split, or has rows that the learner does not take.
    """
    if request.values.get("train") is None:
        raise UsageError(
            "transfer trains on rows of each probe: give their number with --train N, such as "
            "--train 500"
        )
    probes, train = open_probes(request), request.defaults.run.train or 0
    for one in probes:
        check_count(one.train.items, train, source=one.source)
    specs: list[RunSpec] = []
    for model in request.models:
        specs += _of_model(request, model, probes)
    refuse_idle_options(request, specs)
    return specs


def open_probes(request: StudyRequest) -> list[Splits]:
    """Read the splits of all probes.

    Raises:
        UsageError: there are fewer than two, or one lacks a split.
    """
    if odd := [probe for probe in request.probes if not isinstance(probe, str)]:
        raise UsageError(
            f"transfer needs probes by name, and got a dataset in memory ({type(odd[0]).__name__})"
            ": save it, and name its folder"
        )
    sources = list(dict.fromkeys(str(probe) for probe in request.probes))
    if len(sources) < 2:
        raise UsageError(
            "transfer is from one probe to others: name two probes or more. For one: "
            f"evaluate-probe {sources[0]} --model MODEL --train N"
        )
    split = request.defaults.run.split
    if split == "train":
        raise UsageError("--split train is what transfer trains on: leave --split out")
    opened = []
    for source in sources:
        try:
            train, tested = (open_probe(source, split=name) for name in ("train", split))
        except UnknownSplit as error:
            raise UsageError(
                f"transfer trains on the train split of each probe, and evaluates the {split} "
                f"split of all of them. {error}"
            ) from error
        opened.append(Splits(source, train, tested))
    names = [one.tested.name for one in opened]
    if again := [name for name in names if names.count(name) > 1]:
        raise UsageError(
            f"several of the probes are called {again[0]} and cannot be told apart: leave out all "
            "but one"
        )
    return opened


def _of_model(request: StudyRequest, model: str, probes: Sequence[Splits]) -> list[RunSpec]:
    """Return a model's runs; refuse probes that its learner does not take."""
    checkpoint = open_model(request, model)
    learner = choose_learner(checkpoint, request.defaults.run.learner, None)
    for one in probes:
        if odd := sorted(setup for setup in one.setups if not learner.takes(setup)):
            raise UsageError(
                f"{one.source} has rows of the setup {odd[0]}, and {learner.name} takes "
                f"only {', '.join(learner.setups)}: leave the probe out, or name another --learner"
            )
    specs = []
    scorer = _asks_untrained(checkpoint.capabilities, probes)
    if scorer is not None:
        specs = [_untrained(request, model, scorer, one.source) for one in probes]
    # All that one training is tested on follow each other, so that it is done once.
    for trained, seed in product(probes, range(request.options.seeds)):
        for tested in probes:
            specs.append(_trained(request, model, learner, trained.source, seed, tested.source))
    return specs


def _asks_untrained(able: Capability, probes: Sequence[Splits]) -> ScorerEntry | None:
    """Return what scores a model as it is on all probes; None where it cannot be asked so."""
    found = {zero_shot_scorer(able, one.setups) for one in probes}
    return found.pop() if len(found) == 1 else None


def _untrained(request: StudyRequest, model: str, scorer: ScorerEntry, tested: str) -> RunSpec:
    plain = {name: v for name, v in request.values.items() if name not in _LEARNING}
    asked = with_options_of(replace(request, values=plain), scorer)
    return _in_folder(request, asked.spec(tested, model, facts=False), "untrained", tested)


def _trained(
    request: StudyRequest, model: str, learner: LearnerEntry, trained: str, seed: int, tested: str
) -> RunSpec:
    changes: dict[str, Any] = {
        "learner": learner.name,
        "train_on": trained,
        "train_seed": seed,
        "facts": False,
    }
    spec = with_options_of(request, learner, learner.scorer).spec(tested, model, **changes)
    return _in_folder(request, spec, request.probe_folder(trained), f"seed-{seed}", tested)


def _in_folder(request: StudyRequest, spec: RunSpec, *parts: str) -> RunSpec:
    """Give a run its folder: of the model, the training, and the probe tested."""
    if request.output is None:
        return spec
    *training, tested = parts
    folder = request.output.joinpath(
        request.model_folder(spec.model), *training, request.probe_folder(tested)
    )
    return replace(spec, folder=folder)
