"""Short names of runs that tell them apart, where results of several are shown together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence

from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.words import last_name
from evaluation.studies.base import Finished


def run_labels(finished: Sequence[Finished]) -> list[str]:
    """Name each run by its model and by what was learnt, as briefly as tells them apart.

    Runs of one model on several probes have one label. Where labels of runs on one probe are the
    same, what they differ in is added: the language asked in, the revision, the rows trained on,
    the seed, the scorer; at last the folder.
    """
    labels = [_name(run) for run in finished]
    for detail in _DETAILS:
        for at in _ambiguous(finished, labels):
            found = {detail(finished[number]) for number in at}
            if len(found) > 1:
                for number in at:
                    if own := detail(finished[number]):
                        labels[number] = f"{labels[number]}, {own}"
    return labels


def _ambiguous(finished: Sequence[Finished], labels: Sequence[str]) -> list[list[int]]:
    """Return the runs of each label that several runs on one probe have."""
    places: dict[tuple[str, Hashable], int] = defaultdict(int)
    runs: dict[str, list[int]] = defaultdict(list)
    for number, (run, label) in enumerate(zip(finished, labels, strict=True)):
        probe = run.evaluation.results.probe
        places[label, (probe.name, probe.split)] += 1
        runs[label].append(number)
    several = dict.fromkeys(label for (label, _), count in places.items() if count > 1)
    return [runs[label] for label in several]


def _name(run: Finished) -> str:
    model = run.evaluation.results.model
    learner = _learnt(run).get("learner")
    parts = []
    if model.id != NO_MODEL:
        parts.append(last_name(model.id))
    if model.random_weights is not None:
        parts.append(f"random weights {model.random_weights}")
    if learner is not None:
        parts.append(str(learner))
    return ", ".join(parts) or run.evaluation.results.scoring.scorer


def _learnt(run: Finished) -> dict[str, object]:
    return run.evaluation.results.model.finetuning or {}


def _of_learning(name: str, form: str) -> Callable[[Finished], str]:
    """Return what spells a setting of what was learnt."""

    def detail(run: Finished) -> str:
        held = _learnt(run).get(name)
        return "" if held is None else form.format(held)

    return detail


def _language(run: Finished) -> str:
    """Return the language that the questions were built in, where the build named one."""
    options = (run.evaluation.results.probe.request or {}).get("options", {})
    return str(options.get("language", "")).partition(",")[0]


_DETAILS: tuple[Callable[[Finished], str], ...] = (
    _language,
    lambda run: run.evaluation.results.model.revision or "",
    _of_learning("train", "{} rows"),
    _of_learning("train_on", "trained on {}"),
    _of_learning("seed", "seed {}"),
    lambda run: run.evaluation.results.scoring.scorer,
    lambda run: run.evaluation.results.model.id,
    lambda run: str(run.folder),
)
