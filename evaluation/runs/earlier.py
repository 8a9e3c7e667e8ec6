"""Existing results in a run's output folder: how their options differ from those of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evaluation.content import installed_version
from evaluation.items.sources import FoundSplit
from evaluation.names import options_name
from evaluation.options import TRAINING, RunOptions
from evaluation.results.types import RESULTS, Results, read_results
from evaluation.runs.evaluation import RECORDED, settings_of
from evaluation.runs.run import Run
from evaluation.runs.spec import RunSpec, plugins
from kbprobe.errors import UsageError
from kbprobe.options import option_name

_SHOWN = 60
"""Maximum number of characters of a value in messages."""


class Difference(NamedTuple):
    """An option, or something else that scores depend on: its value in the folder, and now."""

    name: str
    there: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.name} is {_spelled(self.there)} there and {_spelled(self.now)} now"


def is_of(results: Results, run: Run) -> bool:
    """Return whether results are those that a run would produce."""
    return (
        results.scoring.key == run.key
        and results.seed == run.spec.run.seed
        and results.metrics.normalization == run.normalization
    )


def refuse_other_results(results: Results, run: Run) -> None:
    """Refuse a folder with results of other options, of another model, or of other rows.

    Raises:
        UsageError: always; the message names each difference, and how to keep both.
    """
    spec, probe, model = run.spec, results.probe, results.model
    checkpoint = run.model.checkpoint
    held = {**_settings(results), "model": model.id, "probe": probe.name}
    asked = {
        **_defaults(),
        **_renamed(_plain(settings_of(run))),
        "model": checkpoint.id,
        "probe": run.rows.name,
        "split": run.rows.split,
        "seed": spec.run.seed,
        "scorer": run.scorer.name,
        "normalization": run.normalization,
        "revision": checkpoint.revision,
        "random_weights": checkpoint.random_weights,
        "dtype": run.model.dtype_name,
        "device": run.model.device_name,
    }
    found = _different(held, asked)
    if not any(one.name in ("--model", "--revision", "--random-weights") for one in found):
        weights = (model.weights_sha256, model.tokenizer_sha256)
        if weights != (checkpoint.weights_sha256, checkpoint.tokenizer_sha256):
            found.append(Difference("the content of the checkpoint", "another one", "changed"))
    if not found and probe.fingerprint != run.rows.fingerprint:
        found.append(Difference("the probe", "of other rows", "built anew"))
    found += [
        Difference(f"{name}'s version", results.versions[name], installed_version(name))
        for name in ("torch", "transformers")
        if results.versions.get(name) not in (None, installed_version(name))
    ]
    _refuse(spec, found)


def refuse_known_differences(spec: RunSpec, found: FoundSplit | None) -> None:
    """Refuse a folder whose results certainly have other options, before any model is opened.

    Raises:
        UsageError: the folder holds damaged results, or those of other options.
    """
    if spec.folder is None or not (spec.folder / RESULTS).is_file():
        return
    results, run = read_results(spec.folder), spec.run
    held = _settings(results)
    later = {*TRAINING, "limit_by"} - {"train"}
    asked: dict[str, Any] = {"seed": run.seed, "random_weights": run.random_weights}
    asked |= {name: getattr(run, name) for name in (*RECORDED, "train") if name not in later}
    if not _keeps_all(results, run.limit):
        asked |= {"limit": run.limit, "limit_by": run.limit_by}
    if run.train is not None:
        asked["train_seed"] = run.seed if run.train_seed is None else run.train_seed
        asked |= {name: getattr(run, name) for name in RECORDED if name in TRAINING}
    for name in ("scorer", "learner", "normalization"):
        if (value := getattr(run, name)) is not None:
            asked[name] = value
    asked |= {name: value for name, value in _plain(spec.options).items() if name in held}
    if found is not None:
        asked["split"] = found.split
        if found.manifest is not None:
            held["probe"], asked["probe"] = results.probe.name, found.name
    if differences := _different({name: held.get(name) for name in asked}, asked):
        _refuse(spec, differences)


def _keeps_all(results: Results, limit: int | None) -> bool:
    """Return whether all rows of the split were evaluated, and a limit would keep them all."""
    held = results.scoring.options.get("limit")
    if held is not None and results.probe.split_rows is None:
        return True  # Either all of the split, or unknown: to be found out from the rows.
    return held is None and (limit is None or limit >= results.probe.rows)


def _settings(results: Results) -> dict[str, Any]:
    """Return what results say about the options that they were made with."""
    model = results.model
    return {
        **_defaults(),
        **_renamed(results.scoring.options),
        "split": results.probe.split,
        "seed": results.seed,
        "scorer": results.scoring.scorer,
        "normalization": results.metrics.normalization,
        "revision": model.revision,
        "random_weights": model.random_weights,
        "dtype": model.dtype,
        "device": model.device,
    }


def _defaults() -> dict[str, Any]:
    """Return the options that results name only where they differ from their defaults."""
    return {name: RunOptions.model_fields[name].default for name in (*RECORDED, "train")}


def _renamed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Rename the seed of learning to the name of its option."""
    learnt = "learner" in options and "seed" in options
    return {"train_seed" if learnt and k == "seed" else k: v for k, v in options.items()}


def _different(held: Mapping[str, Any], asked: Mapping[str, Any]) -> list[Difference]:
    held, asked = _plain(held), _plain(asked)
    names = {name: None for name in (*asked, *held)}
    return [
        Difference(_option(name), held.get(name), asked.get(name))
        for name in names
        if held.get(name) != asked.get(name)
    ]


def _option(name: str) -> str:
    fields = {*RunOptions.model_fields, *(n for e in plugins() for n in e.options.model_fields)}
    if name in fields or name == "model":
        return option_name(name)
    return f"the {name.replace('_', ' ')}"


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as after a round trip through JSON: lists for tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(options)))
    return plain


def _spelled(value: Any) -> str:
    if value is None:
        return "not given"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _refuse(spec: RunSpec, differences: Sequence[Difference]) -> None:
    said = "; ".join(map(str, differences)) or "they were made by another version of kbprobe"
    options = {
        one.name.removeprefix("--"): one.now
        for one in differences[:2]
        if one.name.startswith("--") and one.now is not None
    }
    if "model" in options:
        options = {}
    tag = options_name(options)[:60] or "second"
    raise UsageError(
        f"{spec.folder} holds other results: {said}. To keep both, add --tag {tag} (with -o: name "
        f"another folder, such as -o {spec.folder}+{tag}); --overwrite replaces them."
    )
