"""Names that tell the systems and the probes of a suite apart, as short as they can be.

A system is a model with what was done to it: the options, the seed, what it was trained on. Its
name is the model's, followed by those of its settings in which systems of this model differ.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from evaluation.models.checkpoint import NO_MODEL
from evaluation.report.suite.collect import ProbeKey, Run
from evaluation.results.types import Results
from evaluation.results.words import last_name

_FIRST = (
    "model", "revision", "random_weights", "learner", "train", "train_on", "train_seed", "seed",
    "scorer", "normalization",
)  # fmt: skip
_LAST = ("dtype", "device", "weights", "scores", "folder")
"""Settings of systems that are looked at before, and after, all others."""

_OF_ROWS = ("fold", "limit", "inputs", "labels")
"""Options that change the rows of a probe."""


def probe_names(runs: Sequence[Run]) -> list[str]:
    """Name the probe of each run, each of another probe: by name, and by what tells it apart."""
    names = [run.results.probe.name for run in runs]
    traits = [_traits(run.results) for run in runs]
    told: list[list[str]] = [[] for _ in runs]
    for level in range(len(traits[0])):
        for group in _alike([(name, *told[i]) for i, name in enumerate(names)]):
            if len({traits[i][level] for i in group}) > 1:
                for i in group:
                    told[i] += filter(None, [traits[i][level]])
    return [
        f"{name} ({', '.join(parts)})" if parts else name
        for name, parts in zip(names, told, strict=True)
    ]


def _traits(results: Results) -> list[str]:
    """Return what may tell probes of one name apart, the telling ones first."""
    probe, options = results.probe, results.scoring.options
    given = [f"{key} {options[key]}" if options.get(key) is not None else "" for key in _OF_ROWS]
    return [probe.split, *given, f"{probe.rows:,} rows", probe.fingerprint[:8]]


def system_names(runs: Sequence[Run]) -> list[str]:
    """Name the system of each run; runs of one name are of one model, and of different probes."""
    settings = [_settings(run) for run in runs]
    names = [_base_name(run.results) for run in runs]
    others = {key for held in settings for key in held} - {*_FIRST, *_LAST}
    for key in (*_FIRST, *sorted(others), *_LAST):
        for group in _alike(names):
            values = [settings[i].get(key) for i in group]
            if _tells([runs[i] for i in group], values):
                for i, value in zip(group, values, strict=True):
                    if value is not None:
                        names[i] = f"{names[i]}, {_spelled(key, value)}"
    return names


def _base_name(results: Results) -> str:
    """Return the model's name; where there is none, that of the learner or the scorer."""
    if results.model.id != NO_MODEL:
        return last_name(results.model.id)
    return str(results.scoring.options.get("learner", results.scoring.scorer))


def _tells(runs: Sequence[Run], values: Sequence[Any]) -> bool:
    """Say whether a setting tells apart systems that have the same name so far."""
    if len({_identity(run) for run in runs}) > 1 and len({repr(value) for value in values}) > 1:
        return True
    of_probe: dict[ProbeKey, set[str]] = defaultdict(set)
    for run, value in zip(runs, values, strict=True):
        of_probe[run.probe].add(repr(value))
    return any(len(held) > 1 for held in of_probe.values())


def _spelled(key: str, value: Any) -> str:
    name = key.replace("_", " ")
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name} {value if isinstance(value, str | int | float) else json.dumps(value)}"


def _alike(names: Sequence[Any]) -> Iterator[list[int]]:
    groups: dict[Any, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        groups[name].append(i)
    yield from groups.values()


def _identity(run: Run) -> tuple[Any, ...]:
    model = run.results.model
    return model.weights_sha256, model.tokenizer_sha256, model.random_weights


def _settings(run: Run) -> dict[str, Any]:
    """Return what may differ between systems of one model."""
    results, model = run.results, run.results.model
    options = dict(results.scoring.options)
    if "learner" in options:
        options["train_seed"] = options.pop("seed", None)
    return {
        **options,
        "model": model.id,
        "revision": model.revision,
        "random_weights": model.random_weights,
        "seed": results.seed,
        "scorer": results.scoring.scorer,
        "normalization": results.metrics.normalization,
        "dtype": model.dtype,
        "device": model.device,
        "weights": model.weights_sha256[:8],
        "scores": results.scoring.key[:8],
        "folder": run.folder,
    }
