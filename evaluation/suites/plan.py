"""The runs of a suite, each identified by a hash of what it depends on, with its own folder.

The hash covers contents if they are available locally (the rows of a built probe, the weights in a
model's folder), otherwise the name and revision. It does not depend on the suite: the same run of
another study, in another order or on another machine, has the same hash.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evaluation.content import content_hash
from evaluation.models.checkpoint import NO_MODEL, open_checkpoint
from evaluation.models.handle import IDENTITY
from evaluation.names import folder_name, options_name
from evaluation.results.types import RESULTS, read_results
from evaluation.runs.checks import check_runs
from evaluation.runs.spec import RunSpec
from evaluation.studies.base import StudyRequest
from evaluation.studies.run import check_request
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import file_sha256
from kbprobe.format.manifest import MANIFEST, read_manifest

RUNS = "runs"
"""The folder of all runs, within the suite's folder."""
_HASH = 16
"""Number of hexadecimal digits of a run's hash at the end of its folder's name."""
_LONGEST = 120
"""Maximum length of a folder's name before the hash."""
_ENDING = re.compile(rf"-([0-9a-f]{{{_HASH}}})$")


@dataclass
class PlannedRun:
    """A run of a suite.

    Attributes:
        key: the hash of what it depends on; its folder's name ends in it.
        spec: the run, with that folder.
        studies: the indices of the requests that need it.
        error: why it failed; None if it did not.
        rows: the number of rows scored; None if it is not finished.
        accuracy: its accuracy.
    """

    key: str
    spec: RunSpec
    studies: list[int] = field(default_factory=list)
    error: str | None = None
    rows: int | None = None
    accuracy: float | None = None

    @property
    def finished(self) -> bool:
        """Whether its results exist."""
        return self.rows is not None

    @property
    def to_execute(self) -> bool:
        """Whether it is still to be executed: it has neither results nor an error."""
        return self.rows is None and self.error is None

    def look(self) -> None:
        """Read its results, if they exist; if they are damaged, that is the run's error."""
        if not (self.folder / RESULTS).is_file():
            return
        try:
            metrics = read_results(self.folder).metrics
        except UsageError as error:
            self.error = str(error)
            return
        self.rows, self.accuracy, self.error = metrics.scored, metrics.accuracy.value, None

    @property
    def folder(self) -> Path:
        """The folder of its results, which may not exist yet."""
        assert self.spec.folder is not None
        return self.spec.folder


@dataclass
class Plan:
    """All runs of a suite.

    Attributes:
        folder: the suite's folder.
        requests: the requests of the suite.
        runs: the distinct runs, by key.
        asked: for each request, the keys of its runs, in the order of the study.
    """

    folder: Path
    requests: Sequence[StudyRequest]
    runs: dict[str, PlannedRun] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)

    @classmethod
    def of(cls, requests: Sequence[StudyRequest], folder: Path) -> Plan:
        """Expand all requests; errors in any of them are found before anything runs.

        Raises:
            UsageError: an option, a probe or a model is invalid.
        """
        plan = cls(folder, requests)
        identities = _Identities()
        there = _folders_by_key(folder / RUNS)
        for number, request in enumerate(requests):
            assert request.study.expand is not None
            check_request(request)
            plan.asked.append([])
            plan.add(number, request.study.expand(request), identities, there)
        return plan

    def add(
        self,
        request: int,
        specs: Iterable[RunSpec],
        identities: _Identities | None = None,
        there: Mapping[str, Path] | None = None,
    ) -> list[PlannedRun]:
        """Add runs of a request, given its index; return those that are new to the suite.

        Raises:
            UsageError: a run is impossible as requested.
        """
        identities = identities or _Identities()
        there = _folders_by_key(self.folder / RUNS) if there is None else there
        new = []
        for spec in specs:
            key = identities.key(spec)
            if key not in self.runs:
                place = there.get(key, self.folder / RUNS / f"{_readable(spec)}-{key}")
                run = PlannedRun(key, replace(spec, folder=place))
                run.look()
                self.runs[key] = run
                new.append(run)
            run = self.runs[key]
            if request not in run.studies:
                run.studies.append(request)
            self.asked[request].append(key)
        check_runs([run.spec for run in new if run.to_execute], overwrite=False)
        return new

    @property
    def sorted_runs(self) -> list[PlannedRun]:
        """All runs sorted by key, an order that does not depend on workers or files."""
        return [self.runs[key] for key in sorted(self.runs)]


class _Identities:
    """Hashes runs; each probe and each model is read only once."""

    def __init__(self) -> None:
        self._probes: dict[str, Any] = {}
        self._models: dict[str, Any] = {}
        self._facts: dict[str, bool] = {}

    def key(self, spec: RunSpec) -> str:
        """Return a run's hash.

        Raises:
            UsageError: its probe is missing or damaged.
        """
        options = spec.named_options()
        content: dict[str, Any] = {
            name: self._probe(options.pop(name))
            for name in ("train_on", "mix_in")
            if name in options
        }
        content |= {
            "probe": self._probe(spec.probe),
            "model": self._model(spec),
            "options": options,
            # If a probe asks no single facts, the option makes no difference.
            "facts": spec.run.facts and self._asks_facts(spec.probe_name),
        }
        return content_hash(content)[:_HASH]

    def _asks_facts(self, probe: str) -> bool:
        if probe not in self._facts:
            built = Path(probe, MANIFEST).is_file()
            self._facts[probe] = built and bool(read_manifest(Path(probe)).sub_questions)
        return self._facts[probe]

    def _probe(self, source: Any) -> Any:
        if not isinstance(source, str):
            raise UsageError(
                "a suite's probes are folders, files or Hub ids, not datasets in memory"
            )
        if source not in self._probes:
            self._probes[source] = _probe_identity(source)
        return self._probes[source]

    def _model(self, spec: RunSpec) -> Any:
        given = spec.run.model_dump(include=IDENTITY)
        name = f"{spec.model} {sorted(given.items())}"
        if name not in self._models:
            self._models[name] = _model_identity(spec.model, given)
        return self._models[name]


def _probe_identity(source: str) -> Any:
    path = Path(source)
    if (path / MANIFEST).is_file():
        files = read_manifest(path).files
        return sorted([one.config, one.split, one.rows_digest] for one in files)
    if path.is_file():
        return file_sha256(path)
    if path.is_dir():
        # Every file that the datasets library would read, i.e. that is not hidden.
        held = sorted(one for one in path.rglob("*") if one.is_file() and one.name[:1] != ".")
        return [[one.relative_to(path).as_posix(), file_sha256(one)] for one in held]
    return source


def _model_identity(model: str, given: Mapping[str, Any]) -> Any:
    if model == NO_MODEL or not os.path.exists(model):
        return [model, *sorted(given.items())]
    try:
        checkpoint = open_checkpoint(model, **given)
    except KbprobeError:
        return [model, *sorted(given.items())]  # Its runs will fail and report why.
    return [checkpoint.weights_sha256, checkpoint.tokenizer_sha256, *sorted(given.items())]


def _readable(spec: RunSpec) -> str:
    names = [folder_name(str(spec.probe)), folder_name(spec.model)]
    if options := options_name(spec.named_options()):
        names.append(options)
    return "+".join(names)[:_LONGEST].rstrip("+-.")


def _folders_by_key(folder: Path) -> dict[str, Path]:
    """Return the folders of runs by the hash at the end of their names."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return {}
    matches = ((folder / name, _ENDING.search(name)) for name in names if name[:1] != ".")
    return {match[1]: path for path, match in matches if match}
