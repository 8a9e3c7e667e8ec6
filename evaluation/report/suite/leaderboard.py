"""The results of a suite arranged as systems by probes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from evaluation.models.checkpoint import NO_MODEL
from evaluation.names import NO_NAMES, DisplayNames, places_by_name, told_apart
from evaluation.options import CHANGING_ROWS, not_default
from evaluation.report.suite.collect import Collection, ProbeKey, StoredRun
from evaluation.results.frames import table_of
from evaluation.results.intervals import above_chance
from evaluation.results.types import Estimate, Metrics, Results, remarks
from evaluation.results.verdicts import other_verdicts
from evaluation.results.words import natural_key, place, remarks_on_rows
from kbprobe.errors import UsageError
from kbprobe.tables import PlainTable

_FIRST = (
    "model", "revision", "random_weights", "learner", "train", "train_on", "train_seed", "seed",
    "scorer", "normalization",
)  # fmt: skip
_LAST = ("dtype", "device", "weights", "scores", "folder")
"""Settings of systems that are compared first, and last."""


def probe_names(runs: Sequence[StoredRun]) -> list[str]:
    """Return a name for the probe of each run: probes of the same name are told apart by traits."""
    names = [run.results.probe.name for run in runs]
    return told_apart(names, [_traits(run.results) for run in runs])


def _traits(results: Results) -> list[str]:
    """Return traits that may distinguish probes of the same name, the most informative first."""
    probe, options = results.probe, results.scoring.options
    changed = not_default(CHANGING_ROWS, options)
    given = [f"{key} {changed[key]}" if key in changed else "" for key in CHANGING_ROWS]
    return [probe.split, *given, probe.wording, f"{probe.rows:,} rows", probe.fingerprint[:8]]


def system_names(runs: Sequence[StoredRun], given: DisplayNames = NO_NAMES) -> list[str]:
    """Return the name of each run's system: runs with the same name differ only in the probe.

    A name given to the folder of a run is its whole name, and so is one given to what the system
    is called without names, such as ``roberta, train 100``. No name is given to another name.
    """
    settings = [_settings(run) for run in runs]
    names = [_base_name(run.results, given) for run in runs]
    told = [""] * len(runs)
    others = {key for held in settings for key in held} - {*_FIRST, *_LAST}
    for key in (*_FIRST, *sorted(others), *_LAST):
        for group in places_by_name(list(zip(names, told, strict=True))):
            values = [settings[i].get(key) for i in group]
            if _tells([runs[i] for i in group], values):
                for i, value in zip(group, values, strict=True):
                    if value is not None:
                        told[i] += f", {_spelled(key, value)}"
    shown = []
    for run, name, traits in zip(runs, names, told, strict=True):
        whole = given.get(f"{_base_name(run.results)}{traits}") if traits else None
        shown.append(given.of_folder(run.folder) or whole or f"{name}{traits}")
    return shown


def _base_name(results: Results, given: DisplayNames = NO_NAMES) -> str:
    """Return the model's name, or without a model that of the learner or the scorer."""
    if results.model.id != NO_MODEL:
        return given.of_model(results.model.id)
    return given.of(str(results.scoring.options.get("learner", results.scoring.scorer)))


def _tells(runs: Sequence[StoredRun], values: Sequence[Any]) -> bool:
    """Return whether a setting distinguishes systems that have the same name so far."""
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


def _identity(run: StoredRun) -> tuple[Any, ...]:
    model = run.results.model
    return model.weights_sha256, model.tokenizer_sha256, model.random_weights


def _settings(run: StoredRun) -> dict[str, Any]:
    """Return the settings that may differ between systems of the same model."""
    results, model = run.results, run.results.model
    return {
        **results.scoring.options,
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


Reaches = Literal["nothing", "chance", "shortcut"]
"""What a system is better than: nothing, chance alone, or the best baseline as well."""


class ProbeColumn(NamedTuple):
    """A column of the leaderboard.

    Attributes:
        baseline: name and accuracy of the best baseline; None where there is none.
    """

    key: ProbeKey
    name: str
    rows: int
    clusters: int
    chance: float
    strict_chance: float | None
    baseline: tuple[str, float] | None


class Entry(NamedTuple):
    """A system's result on a probe: what its interval lies above, and caveats."""

    run: StoredRun
    probe: ProbeColumn
    reaches: Reaches
    remarks: tuple[str, ...]

    @property
    def metrics(self) -> Metrics:
        """All metrics of the result."""
        return self.run.results.metrics


@dataclass(frozen=True)
class System:
    """A row of the leaderboard: a result, or none, for each probe.

    ``mean`` and ``strict_mean`` are over all probes, of what accuracies are above chance; None if
    there is no result on one of them.
    """

    name: str
    entries: tuple[Entry | None, ...]

    @property
    def found(self) -> list[Entry]:
        """The results that exist, in the order of the probes."""
        return [entry for entry in self.entries if entry is not None]

    @property
    def mean(self) -> float | None:
        """The unweighted mean of its accuracies, each corrected for chance."""
        return self._mean(lambda metrics: (metrics.accuracy, metrics.chance))

    @property
    def strict_mean(self) -> float | None:
        """The unweighted mean of its strict accuracies, each corrected for chance."""
        return self._mean(lambda metrics: (metrics.strict_accuracy, metrics.strict_chance or 0.0))

    def reaching(self, *levels: Reaches) -> int:
        """Count the probes on which the system reaches one of these levels."""
        return sum(entry.reaches in levels for entry in self.found)

    def _mean(self, number: Callable[[Metrics], tuple[Estimate | None, float]]) -> float | None:
        numbers = [number(entry.metrics) for entry in self.found]
        values = [above_chance(value.value, chance) for value, chance in numbers if value]
        return sum(values) / len(values) if len(values) == len(self.entries) else None


@dataclass(frozen=True)
class Leaderboard:
    """All systems, the best mean first, and all probes by name."""

    systems: tuple[System, ...]
    probes: tuple[ProbeColumn, ...]


def arrange(found: Collection, given: DisplayNames = NO_NAMES) -> Leaderboard:
    """Arrange the runs of a suite as systems by probes, under their own or the given names.

    Raises:
        UsageError: two runs on a probe have the same given name.
    """
    first: dict[ProbeKey, StoredRun] = {}
    for run in found.runs:
        # Some runs on a probe may lack the audit's baselines, such as those of fine-tuned models.
        held = first.setdefault(run.probe, run)
        if run.results.metrics.baselines and not held.results.metrics.baselines:
            first[run.probe] = run
    named = zip(probe_names(list(first.values())), first.items(), strict=True)
    by_name = sorted(named, key=lambda entry: natural_key(entry[0]))
    probes = tuple(_probe(key, given.of(name), run) for name, (key, run) in by_name)
    at = {probe.key: number for number, probe in enumerate(probes)}
    # Baselines may be given names, and be left out of what is shown.
    for run in found.runs:
        for baseline in ("chance", *run.results.metrics.baselines):
            given.of(baseline)
    cells: dict[str, list[Entry | None]] = {}
    for name, run in zip(system_names(found.runs, given), found.runs, strict=True):
        row = cells.setdefault(name, [None] * len(probes))
        column = at[run.probe]
        if (other := row[column]) is not None:
            raise UsageError(
                f"{other.run.folder} and {run.folder} are both called {name!r} on "
                f"{probes[column].name}: give their folders different names"
            )
        row[column] = _entry(run, probes[column])
    systems = [System(name, tuple(row)) for name, row in cells.items()]

    def best_first(system: System) -> tuple[Any, ...]:
        return system.mean is None, -(system.mean or 0.0), natural_key(system.name)

    return Leaderboard(tuple(sorted(systems, key=best_first)), probes)


def table_of_results(board: Leaderboard) -> PlainTable:
    """Return the table of all results, with the names that they have on the leaderboard."""
    entries = [(system.name, entry) for system in board.systems for entry in system.found]
    table = table_of([entry.run.results for _, entry in entries]).flat
    rows = []
    for (name, entry), row in zip(entries, table.rows, strict=True):
        best, share = entry.probe.baseline or (None, None)
        named = {"probe": entry.probe.name, "model": name, "folder": entry.run.folder}
        baseline = {"best_baseline": best, "best_baseline_accuracy": share}
        rows.append({**dict(zip(table.head, row, strict=True)), **baseline, **named})
    return PlainTable([*table.head, "folder"], [list(row.values()) for row in rows])


def _probe(key: ProbeKey, name: str, run: StoredRun) -> ProbeColumn:
    info, metrics = run.results.probe, run.results.metrics
    return ProbeColumn(
        key,
        name,
        info.rows,
        info.clusters,
        metrics.chance,
        metrics.strict_chance,
        metrics.strongest_baseline,
    )


def _entry(run: StoredRun, probe: ProbeColumn) -> Entry:
    metrics = run.results.metrics
    above = place(metrics.accuracy, metrics.chance) == "above"
    shortcut, similarity = metrics.strongest_shortcut, metrics.similarity
    beaten = shortcut is None or place(metrics.accuracy, shortcut[1]) == "above"
    beaten &= similarity is None or similarity.difference.low > 0
    reaches: Reaches = "nothing" if not above else "shortcut" if beaten else "chance"
    said = remarks_on_rows(run.results) + remarks(run.results)
    said += filter(None, [other_verdicts(metrics)])
    said += [f"{n:,} rows set aside: {why}" for why, n in sorted(metrics.set_aside.items())]
    return Entry(run, probe, reaches, tuple(said))
