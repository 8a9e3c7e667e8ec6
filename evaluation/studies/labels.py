"""Runs of several models on the same probes, with short names that tell them apart."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import NamedTuple

from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import NO_NAMES, DisplayNames
from evaluation.results.types import METRIC_OF
from evaluation.studies.base import Finished
from kbprobe.errors import UsageError


class Labelled(NamedTuple):
    """A run, and its label among several."""

    run: Finished
    label: str


def are_of_one_probe(one: Finished, two: Finished) -> bool:
    """Return whether two runs are on a probe of the same name and split, or on the same rows."""
    first, second = (run.results.probe for run in (one, two))
    named = (first.name, first.split) == (second.name, second.split)
    return named or first.fingerprint == second.fingerprint


def labelled_by_probe(
    finished: Sequence[Finished],
    study: str,
    least: int = 2,
    together: Callable[[Finished, Finished], bool] = are_of_one_probe,
) -> list[list[Labelled]]:
    """Group runs by probe, or those that belong ``together``, and label them.

    Raises:
        UsageError: there are too few runs on a probe.
    """
    groups = labelled_groups(finished, together)
    for runs in groups:
        require_models(runs, study, least)
    return groups


def labelled_groups(
    finished: Sequence[Finished],
    together: Callable[[Finished, Finished], bool],
    names: DisplayNames = NO_NAMES,
) -> list[list[Labelled]]:
    """Group runs that belong ``together``, and label them, by the names given to models."""
    groups: list[list[Labelled]] = []
    for run, label in zip(finished, run_labels(finished, names), strict=True):
        group = next((others for others in groups if together(others[0].run, run)), None)
        if group is None:
            groups.append(group := [])
        group.append(Labelled(run, label))
    return groups


def require_models(runs: Sequence[Labelled], study: str, least: int = 2, or_else: str = "") -> None:
    """Require that the results on a probe are of several models.

    Args:
        runs: the runs on the probe.
        study: the study that takes them.
        least: the minimum number of models.
        or_else: what to do instead, as the end of the message.

    Raises:
        UsageError: there are too few.
    """
    if len(runs) >= least:
        return
    probe = runs[0].run.results.probe
    source, split = probe.source, probe.split
    folders = " and ".join(str(run.folder) for run, _ in runs)
    verb = "holds" if len(runs) == 1 else "hold"
    raise UsageError(
        f"{folders} {verb} the only results on {probe.name} ({split}), and {study} takes "
        f"those of {'two' if least == 2 else least} models or more on one probe. Name the "
        "folders of other models' results on it "
        f"(evaluate-probe {shlex.quote(source)} --split {split} --model MODEL -o DIR), "
        f"or leave it out{or_else}"
    )


def run_labels(finished: Sequence[Finished], names: DisplayNames = NO_NAMES) -> list[str]:
    """Return a short label for each run, composed of its model and its training.

    Runs of one model on several probes share a label. If runs on one probe would have the same
    label, what they differ in is added: the language or the wording of the questions, the revision,
    the training rows, the seed, the scorer, the normalization; if nothing else helps, the folder.
    A name given to the folder of a run is its whole label.
    """
    labels = [_name(run, names) for run in finished]
    for detail in _DETAILS:
        for numbers in _ambiguous(finished, labels):
            details = {detail(finished[number]) for number in numbers}
            if len(details) > 1:
                for number in numbers:
                    if own := detail(finished[number]):
                        labels[number] = f"{labels[number]}, {own}"
    return [
        names.of_folder(Path(run.folder or "").as_posix()) or names.of(label)
        for run, label in zip(finished, labels, strict=True)
    ]


def _ambiguous(finished: Sequence[Finished], labels: Sequence[str]) -> list[list[int]]:
    """Return the indices of the runs that share a label, for each label shared within a probe."""
    places: dict[tuple[str, Hashable], int] = defaultdict(int)
    runs: dict[str, list[int]] = defaultdict(list)
    for number, (run, label) in enumerate(zip(finished, labels, strict=True)):
        probe = run.results.probe
        places[label, (probe.name, probe.split)] += 1
        runs[label].append(number)
    several = dict.fromkeys(label for (label, _), count in places.items() if count > 1)
    return [runs[label] for label in several]


def _name(run: Finished, names: DisplayNames) -> str:
    model = run.results.model
    learner = run.learnt.get("learner")
    parts = []
    if model.id != NO_MODEL:
        parts.append(names.of_model(model.id))
    if model.random_weights is not None:
        parts.append(f"random weights {model.random_weights}")
    if learner is not None:
        parts.append(str(learner))
    return ", ".join(parts) or names.of(run.results.scoring.scorer)


def _of_learning(name: str, form: str) -> Callable[[Finished], str]:
    """Return a function that formats one training setting of a run."""

    def detail(run: Finished) -> str:
        value = run.learnt.get(name)
        return "" if value is None else form.format(value)

    return detail


def _language(run: Finished) -> str:
    """Return the language that the questions were built in, if the build named one."""
    return run.results.probe.built_with("language").partition(",")[0]


_DETAILS: tuple[Callable[[Finished], str], ...] = (
    _language,
    lambda run: run.results.probe.wording,
    lambda run: run.results.model.revision or "",
    _of_learning("train", "{} rows"),
    _of_learning("train_on", "trained on {}"),
    _of_learning("seed", "seed {}"),
    lambda run: run.results.scoring.scorer,
    lambda run: METRIC_OF[run.results.metrics.normalization],
    lambda run: run.results.model.id,
    lambda run: str(run.folder),
)
