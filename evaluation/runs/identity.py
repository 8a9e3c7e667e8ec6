"""Whether two runs are the same: one record of what decides results, and its comparison.

A run that is open decides everything (:func:`of_run`), and so do results (:func:`of_results`). A
request decides less, before its model and its rows are read (:func:`of_request`): enough to refuse
at once a folder of other results. A suite names the folders of its runs by a hash of the request
(:class:`RequestKeys`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.content import content_hash
from evaluation.items.sources import FoundSplit
from evaluation.learners.base import flat
from evaluation.models.checkpoint import NO_MODEL, open_checkpoint
from evaluation.models.handle import IDENTITY
from evaluation.names import options_name
from evaluation.options import CHANGING_ROWS, HASHED, RECORDED, TEXTS, RunOptions, digest_name
from evaluation.results.types import (
    RESULTS,
    ModelInfo,
    ProbeInfo,
    Results,
    Scoring,
    read_results,
)
from evaluation.runs.evaluation import described, installed_versions
from evaluation.runs.run import SCORING_VERSIONS, Run
from evaluation.runs.spec import RunSpec, plugins
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import file_sha256
from kbprobe.format.manifest import holds_manifest, read_manifest
from kbprobe.options import option_name

_SHOWN = 60
"""Maximum number of characters of a value in messages."""

_CHOSEN = frozenset(("scorer", "learner", "normalization", "train_seed"))
"""Options that a run chooses by itself where they are not given."""

_LEFT_OUT = *RECORDED, "train", "limit"
"""Options that results may leave out where they have their defaults."""

_MODEL = "the checkpoint's content"
_ROWS = "the probe's content"
_FOLLOWS = {
    _MODEL: {"model", "revision", "random_weights"},
    _ROWS: {"probe", "split", "seed", "train", *CHANGING_ROWS},
}
"""What has a hash, and what says already why the hash is another one."""


@dataclass(frozen=True)
class Identity:
    """What decides results.

    Attributes:
        key: the hash of all that scores depend on, by content: of two runs that share it the
            scores are the same, whatever their names; None if a model or rows are not yet read.
        settings: by name what a user can change, and hashes of contents.
        rows: number of rows that ``--limit`` draws from; None if not known.
    """

    key: str | None
    settings: Mapping[str, Any]
    rows: int | None = None

    def is_same(self, other: Identity) -> bool:
        """Return whether the results are the same."""
        names = ("seed", "normalization", *map(digest_name, HASHED))
        same = all(self.settings.get(name) == other.settings.get(name) for name in names)
        return same and self.key == other.key

    def differences(self, now: Identity) -> list[Difference]:
        """Return in which settings these results differ from what is requested now.

        Of a request, only those that it decides are compared.
        """
        there, new = (_without_idle_limit(each.settings, self.rows) for each in (self, now))
        names = [name for name in new if name in there] if now.key is None else {**new, **there}
        differing = [name for name in names if there.get(name) != new.get(name)]
        return [
            Difference(name, there.get(name), new.get(name))
            for name in differing
            if not _FOLLOWS.get(name, set()) & {*differing}
        ]


class Difference(NamedTuple):
    """A setting: its value in existing results, and now."""

    name: str
    there: Any
    now: Any

    def __str__(self) -> str:
        """Put it in words, the option as it is written on the command line."""
        name = option_name(self.name) if self.is_option else self.name.replace("_", " ")
        return f"{name} is {_shortened(self.there)} there and {_shortened(self.now)} now"

    @property
    def is_option(self) -> bool:
        """Whether it is an option of the command, which names folders."""
        fields = [RunOptions.model_fields, *(entry.options.model_fields for entry in plugins())]
        return self.name == "model" or any(self.name in known for known in fields)


def of_results(results: Results) -> Identity:
    """Return what decided some results."""
    parts = results.probe, results.model, results.scoring
    return _identity(*parts, results.metrics.normalization, results.seed, results.versions)


def of_run(run: Run) -> Identity:
    """Return what decides a run's results."""
    return _identity(*described(run), run.normalization, run.spec.run.seed, installed_versions())


def _identity(
    probe: ProbeInfo,
    model: ModelInfo,
    scoring: Scoring,
    normalization: str,
    seed: int,
    versions: Mapping[str, str],
) -> Identity:
    settings = {
        **{name: RunOptions.model_fields[name].default for name in _LEFT_OUT},
        **scoring.options,
        "probe": probe.name,
        "split": probe.split,
        "model": model.id,
        "revision": model.revision,
        "random_weights": model.random_weights,
        "dtype": model.dtype,
        "device": model.device,
        "scorer": scoring.scorer,
        "normalization": normalization,
        "seed": seed,
        _MODEL: f"{model.weights_sha256[:8]}-{model.tokenizer_sha256[:8]}",
        _ROWS: probe.fingerprint[:8],
        "the scorer's version": scoring.version,
        **{f"the version of {name}": versions.get(name) for name in SCORING_VERSIONS},
    }
    return Identity(scoring.key, _plain(settings), probe.split_rows or probe.rows)


def of_request(spec: RunSpec, found: FoundSplit | None) -> Identity:
    """Return what a request decides before its model is opened and the rows in ``found`` are read.

    A name of a model, and options that adapt to it, decide nothing yet.
    """
    run = spec.run
    names = *RECORDED, "train", "limit", "seed", "random_weights", *sorted(_CHOSEN)
    values = {name: getattr(run, name) for name in names}
    settings = {n: value for n, value in values.items() if n not in _CHOSEN or value is not None}
    settings |= flat(spec.options)
    if found is not None:
        settings["split"] = found.split
        if found.manifest is not None:
            settings["probe"] = found.name
    return Identity(None, _plain(settings))


def refuse_known_differences(spec: RunSpec, found: FoundSplit | None) -> None:
    """Refuse a folder whose results certainly have other options, before any model is opened.

    Raises:
        UsageError: the folder holds damaged results, or those of other options.
    """
    if spec.folder is not None and (spec.folder / RESULTS).is_file():
        there = of_results(read_results(spec.folder))
        if differences := there.differences(of_request(spec, found)):
            raise other_results(spec.folder, differences)


def other_results(folder: Path, differences: Sequence[Difference]) -> UsageError:
    """Return the refusal of a folder of other results, which says how to keep both."""
    shown = "; ".join(map(str, differences)) or "another version of kbprobe made them"
    options = {each.name: each.now for each in differences[:2] if each.is_option}
    given = {name: value for name, value in options.items() if value is not None}
    tag = "second" if "model" in options else options_name(given)[:60] or "second"
    return UsageError(
        f"{folder} holds other results: {shown}. To keep both, add --tag {tag} (with -o: name "
        f"another folder, such as -o {folder}+{tag}); --overwrite replaces them."
    )


def _without_idle_limit(settings: Mapping[str, Any], rows: int | None) -> Mapping[str, Any]:
    """Leave out a limit that keeps all rows."""
    if rows is None or (settings.get("limit") or 0) < rows:
        return settings
    return {**settings, "limit": None, "limit_by": RunOptions.model_fields["limit_by"].default}


def _plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as after a round trip through JSON: lists for tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(settings))
    return plain


def _shortened(value: Any) -> str:
    if value is None:
        return "not given"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class RequestKeys:
    """Hashes of requests, by content where it is local; each probe and model is read once."""

    def __init__(self) -> None:
        self._probe, self._asks_facts = cache(_probe_identity), cache(_asks_facts)
        self._models: dict[str, Any] = {}

    def key(self, spec: RunSpec) -> str:
        """Return the hash of all that the results of a request depend on.

        Raises:
            UsageError: its probe is missing or damaged.
        """
        options = spec.named_options()
        content: dict[str, Any] = {
            name: self._probe(options.pop(name))
            for name in ("train_on", "mix_in", *TEXTS)
            if name in options
        }
        if (encoder := options.pop("similarity", None)) is not None:
            content["similarity"] = self._model(encoder, {})
        content |= {
            "probe": self._probe(spec.probe),
            "model": self._model(spec.model, spec.run.model_dump(include=IDENTITY)),
            "options": options,
            # If a probe asks no single facts, the option makes no difference.
            "facts": spec.run.facts and self._asks_facts(spec.probe_name),
        }
        return content_hash(content)

    def _model(self, model: str, given: Mapping[str, Any]) -> Any:
        name = f"{model} {sorted(given.items())}"
        if name not in self._models:
            self._models[name] = _model_identity(model, given)
        return self._models[name]


def _asks_facts(probe: str) -> bool:
    return holds_manifest(probe) and bool(read_manifest(Path(probe)).sub_questions)


def _probe_identity(source: Any) -> Any:
    if not isinstance(source, str):
        raise UsageError("a suite's probes are folders, files or Hub ids, not datasets in memory")
    path = Path(source)
    if holds_manifest(path):
        files = read_manifest(path).files
        return sorted([file.config, file.split, file.rows_digest] for file in files)
    if path.is_file():
        return file_sha256(path)
    if path.is_dir():
        # Every file that the datasets library would read, i.e. that is not hidden.
        read = sorted(file for file in path.rglob("*") if file.is_file() and file.name[:1] != ".")
        return [[file.relative_to(path).as_posix(), file_sha256(file)] for file in read]
    return source


def _model_identity(model: str, given: Mapping[str, Any]) -> Any:
    if model == NO_MODEL or not os.path.exists(model):
        return [model, *sorted(given.items())]
    try:
        checkpoint = open_checkpoint(model, **given)
    except KbprobeError:
        return [model, *sorted(given.items())]  # Its runs will fail and report why.
    return [checkpoint.weights_sha256, checkpoint.tokenizer_sha256, *sorted(given.items())]
