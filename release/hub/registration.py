"""``eval.yaml``: the file at the root of a dataset that makes it a benchmark of the Hub.

See https://huggingface.co/docs/hub/eval-results. Inspect runs its tasks as ``hf/USER/NAME/TASK``.
Each task names a config of flat rows (:mod:`release.exports.flat`), and its columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kbprobe.errors import UsageError
from kbprobe.format.card import pretty_name
from kbprobe.format.manifest import Manifest
from kbprobe.format.setups import DEFAULT_CONFIG, task_name
from kbprobe.parsing import yaml_value
from release.cards import by_config, listed, yaml_text
from release.checks.files import REGISTRATION
from release.exports.flat import FIELDS, METADATA, FlatConfig
from release.hub.names import published_name
from release.hub.repo_card import merge

FRAMEWORK = "inspect-ai"
_LETTERS = (
    "Its tasks show the choices with letters, and count the answers that name the right letter."
)


def registration(
    manifest: Manifest, flat: Sequence[FlatConfig], published_as: str
) -> dict[str, Any]:
    """Return the contents of ``eval.yaml`` for a probe: a task for each config with flat rows."""
    if not flat:
        return {}
    return {
        "name": pretty_name(manifest.probe),
        "description": f"{manifest.about} {_LETTERS}",
        "evaluation_framework": FRAMEWORK,
        "tasks": [
            {
                "id": task_name(
                    manifest.probe, one.source, one.files.split, published_as=published_as
                ),
                "config": published_name(one.name, published_as),
                "split": one.files.split,
                "field_spec": {**FIELDS, "metadata": list(METADATA)},
                "solvers": [{"name": "multiple_choice"}],
                "scorers": [{"name": "choice"}],
            }
            for one in flat
        ],
    }


def evaluation_section(
    flat: Sequence[FlatConfig], registered: Mapping[str, Any], repo_id: str, published_as: str
) -> str:
    """Return the card's text about evaluating a model: with kbprobe, and with Inspect."""
    config = f" --config {published_as}" if published_as != DEFAULT_CONFIG else ""
    lines = [
        "`evaluate-probe` of kbprobe compares the likelihoods that a model gives to the choices:",
        "",
        "```sh",
        f"evaluate-probe {repo_id}{config} --model MODEL",
        "```",
    ]
    if not flat:
        return "\n".join(lines)
    tasks = [task["id"] for task in registered["tasks"]]
    rows = [
        f"| `{task}` | `{one.source}` | {one.files.rows:,} |"
        for task, one in zip(tasks, flat, strict=True)
    ]
    size = sum(file.bytes for one in flat for file in one.files.files)
    lines += [
        "",
        "[Inspect](https://inspect.aisi.org.uk) shows the choices with letters, and counts the "
        "answers that name the right letter. Its tasks are those of `eval.yaml`:",
        "",
        "```sh",
        "pip install inspect-ai datasets",
        f"inspect eval hf/{repo_id}/{tasks[0]} --model MODEL",
        "```",
        "",
        "| task | test rows of | rows |",
        "|---|---|---:|",
        *rows,
        "",
        "The two measure different things, and their accuracies cannot be compared.",
        "",
        "Inspect reads flat rows: the test rows once more, with a question (`input`), a list of "
        f"choices (`choices`) and the letter of the right one (`target`). "
        f'`load_dataset("{repo_id}", "{flat[0].name}")` loads them too; all of them take '
        f"{size:,} bytes.",
    ]
    return "\n".join(lines)


def merge_registration(
    ours: Mapping[str, Any], hub: bytes | None, base: Mapping[str, Any]
) -> bytes | None:
    """Merge what is registered for a probe into the ``eval.yaml`` of a repository.

    ``base`` is what was registered when the probe was published last. Tasks of other probes, and
    manual changes, are kept.

    Returns:
        The content of the file; None if no task is left in it.

    Raises:
        UsageError: the file on the Hub is not a registration.
    """
    if hub is None:
        return yaml_text(ours).encode() if ours else None
    theirs = _read(hub)
    # The existing name is that of the whole repository.
    kept = {key: ours[key] for key in ours if key in theirs and key != "tasks" and key not in base}
    merged = merge({**base, **kept}, dict(ours) or {**theirs, "tasks": []}, theirs)
    if not merged.get("tasks"):
        return None
    return hub if merged == theirs else yaml_text(merged).encode()


def unread_tasks(content: bytes, configs: Any) -> list[str]:
    """Return the tasks of an ``eval.yaml`` whose config or split a card does not list.

    ``configs`` is the card's entry of that name.

    Raises:
        UsageError: it is not a registration.
    """
    listed_splits = {
        name: {str(file.get("split")) for file in listed(one.get("data_files"))}
        for name, one in by_config(configs).items()
    }
    return [
        str(task.get("id"))
        for task in _read(content)["tasks"]
        if str(task.get("split", "test"))
        not in listed_splits.get(str(task.get("config", DEFAULT_CONFIG)), ())
    ]


def _read(content: bytes) -> dict[str, Any]:
    """Read an ``eval.yaml``; a UsageError if it is not a mapping with a list of tasks."""
    value = yaml_value(content.decode("utf-8", errors="replace"), f"{REGISTRATION} on the Hub")
    tasks = value.get("tasks") if isinstance(value, dict) else None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise UsageError(
            f"{REGISTRATION} on the Hub is not a mapping with a list of tasks. Correct it there, "
            "or remove it, and publish again."
        )
    assert isinstance(value, dict)
    return value
