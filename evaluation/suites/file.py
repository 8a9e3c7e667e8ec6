"""Suite files: YAML that declares which studies are run on which probes, models and seeds.

.. code-block:: yaml

    output: results/suite             # folder of all results (default: results/NAME of the file)
    probes: [probes/*]                # folders, files, Hub ids, or patterns of paths
    models:
      - FacebookAI/roberta-large
      - model: meta-llama/Llama-3.1-8B
        options: {dtype: bfloat16}    # of this model alone
    studies:                          # default: zero_shot
      - zero_shot
      - study: curve
        options: {sizes: [125, 500]}
    seeds: [0, 1]                     # default: 0
    options: {limit: 2000}            # of all runs
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from evaluation.studies.base import Study, StudyRequest
from evaluation.studies.registry import DEFAULT, STUDIES
from kbprobe.checkpoint_files import is_checkpoint
from kbprobe.errors import UsageError
from kbprobe.files.patterns import matching_paths
from kbprobe.files.targets import refuse_outside
from kbprobe.format.manifest import MANIFEST
from kbprobe.http import checked_url
from kbprobe.options import MAX_SEED
from kbprobe.parsing import read_yaml, validated
from kbprobe.plugins import IN_FILE

MAX_ENTRIES = 10_000
"""Maximum number of probes, models, studies or seeds in a file."""
MAX_RUNS = 100_000
"""Maximum number of runs of a suite."""
CONSENTS = {
    "trust_remote_code": "allow the code of a checkpoint to run. Remove it; read the code, then "
    "allow it with --trust-remote-code",
    "send_key": "say that a server gets the key of the environment. Remove it, and name the server "
    "with --key-for URL",
}
"""What a file cannot do, and the options of the command line that can."""
_PATTERN = re.compile(r"[*?\[]")


class _SuitePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(_SuitePart):
    """A model, and options of its runs alone."""

    model: str = Field(min_length=1)
    options: dict[str, Any] = Field(default_factory=dict)


class StudyEntry(_SuitePart):
    """A study, and its options, or options of its runs alone."""

    study: str
    options: dict[str, Any] = Field(default_factory=dict)


class SuiteFile(_SuitePart):
    """A declared suite."""

    output: Path | None = None
    probes: tuple[str, ...] = Field(min_length=1, max_length=MAX_ENTRIES)
    models: tuple[ModelEntry, ...] = Field(min_length=1, max_length=MAX_ENTRIES)
    studies: tuple[StudyEntry, ...] = Field(
        (StudyEntry(study=DEFAULT),), min_length=1, max_length=MAX_ENTRIES
    )
    seeds: tuple[Annotated[int, Field(ge=0, le=MAX_SEED)], ...] = Field(
        (0,), min_length=1, max_length=MAX_ENTRIES
    )
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("models", mode="before")
    @classmethod
    def _named_models(cls, value: Any) -> Any:
        return _entries(value, "model")

    @field_validator("studies", mode="before")
    @classmethod
    def _named_studies(cls, value: Any) -> Any:
        return _entries(value, "study")


def _entries(value: Any, key: str) -> Any:
    if not isinstance(value, list | tuple):
        return value
    return [{key: one} if isinstance(one, str) else one for one in value]


def read_suite(
    path: Path,
    output: Path | None = None,
    *,
    trust_remote_code: bool = False,
    key_for: Sequence[str] = (),
) -> tuple[list[StudyRequest], Path]:
    """Read a suite file; return a request for each study, seed and set of options, and the folder.

    A suite file cannot allow code that comes with checkpoints. The key of the environment goes only
    to endpoints whose addresses are in ``key_for``.

    Paths are relative to the current folder, as on the command line. Models with the same options
    share a request. A study that sets its seeds itself has one request for all seeds.

    Raises:
        UsageError: the file cannot be read or is not a suite; the message names file and key.
    """
    try:
        suite = validated(read_yaml(path), SuiteFile, str(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: No such file or directory. Name a suite file.") from None
    _refuse_consents(suite, path)
    trusted = {checked_url(url).rstrip("/") for url in key_for}
    folder = output or suite.output or Path("results") / path.stem
    if output is None:
        refuse_outside(folder, f"{path}: output")
    probes = _matching(suite.probes, f"{path}: probes", "probe", _is_probe)
    models = [
        (model, entry.options)
        for at, entry in enumerate(suite.models)
        for model in _matching([entry.model], f"{path}: models.{at}", "model", is_checkpoint)
    ]
    runs = len(suite.studies) * len(set(suite.seeds)) * len(models) * len(probes)
    if runs > MAX_RUNS:
        raise UsageError(
            f"{path} declares {runs:,} runs (of {len(models):,} models, {len(probes):,} probes, "
            f"{len(suite.studies):,} studies and {len(set(suite.seeds)):,} seeds), more than "
            f"{MAX_RUNS:,}. Divide it into several suites."
        )
    requests = []
    for at, entry in enumerate(suite.studies):
        owner = f"{path}: studies.{at}"
        study = _study(entry.study, owner)
        for seed in dict.fromkeys(suite.seeds) if "seed" not in study.fixed else (None,):
            seeded = {} if seed is None else {"seed": seed}
            for options, names in _alike(models):
                values = {**suite.options, **seeded, **options, **entry.options}
                values |= _consents(values, trust_remote_code, trusted)
                _refuse_files(values, owner)
                place = _place(folder, study, at, suite, seed, options)
                requests.append(
                    StudyRequest.parse(
                        study, probes, names, values, place, f"{owner} ({study.name})"
                    )
                )
    return requests, folder


def _refuse_consents(suite: SuiteFile, path: Path) -> None:
    """Refuse a file that allows what only the user may allow."""
    models = {f"models.{at}.options": one.options for at, one in enumerate(suite.models)}
    studies = {f"studies.{at}.options": one.options for at, one in enumerate(suite.studies)}
    for place, options in {"options": suite.options, **models, **studies}.items():
        for name in options.keys() & CONSENTS:
            raise UsageError(f"{path}: {place}.{name}: a file cannot {CONSENTS[name]}.")


def _consents(
    values: Mapping[str, Any], trust_remote_code: bool, trusted: Collection[str]
) -> dict[str, bool]:
    """Return what the user allows the runs with these options."""
    endpoint = values.get("endpoint")
    if endpoint is None:
        return {"trust_remote_code": True} if trust_remote_code else {}
    return {} if checked_url(str(endpoint)).rstrip("/") in trusted else {"send_key": False}


def _refuse_files(values: Mapping[str, Any], owner: str) -> None:
    """Refuse scorers and learners that are Python files, and checkpoints written elsewhere."""
    if isinstance(kept := values.get("keep_checkpoint"), str):
        refuse_outside(Path(kept), f"{owner}: keep_checkpoint")
    for option in ("scorer", "learner", "learners"):
        given = values.get(option)
        for name in given if isinstance(given, list | tuple) else [given]:
            if IN_FILE.fullmatch(str(name)):
                raise UsageError(
                    f"{owner}: {option}: {name} is a Python file, and a suite file runs no code. "
                    "Name it on the command line, or install it as a package with an entry point"
                )


def _matching(
    names: Sequence[str], owner: str, kind: str, is_one: Callable[[str], bool]
) -> list[str]:
    """Replace patterns by the sorted paths that match and contain a probe or a model."""
    found: list[str] = []
    for name in names:
        if not _PATTERN.search(name):
            found.append(name)
            continue
        matches = [one for one in sorted(matching_paths(name, owner)) if is_one(one)]
        if not matches:
            raise UsageError(f"{owner}: there is no {kind} at {name!r}. Mend the pattern.")
        found += matches
    return list(dict.fromkeys(found))


def _is_probe(path: str) -> bool:
    held = (one for name in (MANIFEST, "*.jsonl") for one in Path(path).glob(name))
    return path.endswith(".jsonl") or next(held, None) is not None


def _study(name: str, owner: str) -> Study:
    try:
        study = STUDIES.get(name)
    except UsageError as error:
        raise UsageError(f"{owner}: {error}") from None
    if study.expand is None:
        raise UsageError(
            f"{owner}: {name} takes folders of results, not probes and models. Run it on the "
            f"suite's folders afterwards: evaluate-probe {name} DIR..."
        )
    return study


def _alike(
    models: Sequence[tuple[str, dict[str, Any]]],
) -> list[tuple[dict[str, Any], list[str]]]:
    """Group models with the same options, in the order given."""
    found: list[tuple[dict[str, Any], list[str]]] = []
    for model, options in models:
        names = next((names for known, names in found if known == options), None)
        if names is None:
            found.append((options, [model]))
        elif model not in names:
            names.append(model)
    return found


def _place(
    folder: Path, study: Study, at: int, suite: SuiteFile, seed: int | None, options: dict[str, Any]
) -> Path:
    """Return the folder of a study's summary, named by what distinguishes it within the file."""
    from evaluation.names import options_name

    same = [number for number, one in enumerate(suite.studies) if one.study == study.name]
    name = study.name if len(same) < 2 else f"{study.name}-{same.index(at) + 1}"
    parts = [name]
    if seed is not None and len(suite.seeds) > 1:
        parts.append(f"seed-{seed}")
    if options:
        parts.append(options_name(options))
    return folder / "studies" / "+".join(parts)
