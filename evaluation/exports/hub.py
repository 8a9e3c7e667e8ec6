"""The Hub's format of results: ``.eval_results/NAME.yaml`` in the repository of a model.

See https://huggingface.co/docs/hub/eval-results. An entry names a dataset, its commit and a task of
its ``eval.yaml``; the value is the accuracy in percent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.exports.reading import Exported
from evaluation.results.types import METRIC_OF, Results
from evaluation.results.words import headline_remark
from kbprobe.errors import UsageError
from kbprobe.parsing import MAX_YAML_BYTES, read_bytes, yaml_value

FOLDER = ".eval_results"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REMEDY = "Correct it by hand, or remove it."
_ID = re.compile(r"[\w.-]+/[\w.-]+")


def check_id(name: str, option: str) -> str:
    """Return the id of a repository, or refuse it with a UsageError."""
    if not _ID.fullmatch(name):
        raise UsageError(f"{option} {name!r} is not the name of a repository on the Hub: USER/NAME")
    return name


def is_commit(revision: str) -> bool:
    """Tell whether a revision is a whole commit hash, and not a branch or tag."""
    return _COMMIT.fullmatch(revision) is not None


def path_in_repo(dataset: str) -> str:
    """Return the path of a dataset's results in the repository of a model.

    >>> path_in_repo("me/antonyms")
    '.eval_results/me--antonyms.yaml'
    """
    return f"{FOLDER}/{dataset.replace('/', '--')}.yaml"


def entries(exported: Sequence[Exported], dataset: str, commit: str) -> list[dict[str, Any]]:
    """Return the entries of results of one model.

    Args:
        exported: results, all of the same model.
        dataset: the dataset's id on the Hub.
        commit: the commit whose rows were evaluated.

    Raises:
        UsageError: they are of several models, or of a sample of the rows.
    """
    if len(models := sorted({one.results.model.id for one in exported})) > 1:
        raise UsageError(
            f"the results are of several models ({', '.join(models)}), and each has a repository "
            "of its own. Name the folders of one."
        )
    for one in exported:
        whole = one.results.probe.split_rows
        if whole is not None:
            raise UsageError(
                f"{one.folder} holds results of {one.results.probe.rows:,} of {whole:,} rows "
                "(--limit), which others cannot compare with theirs. Evaluate without --limit."
            )
    return [
        {
            "dataset": {"id": dataset, "task_id": one.task, "revision": commit},
            "value": round(100 * one.results.metrics.accuracy.value, 2),
            "notes": notes(one.results),
        }
        for one in exported
    ]


def notes(results: Results) -> str:
    """Say in a line how the value was measured."""
    metrics, scoring = results.metrics, results.scoring
    accuracy = metrics.accuracy
    parts = [
        f"kbprobe {results.versions.get('kbprobe', '')}".rstrip(),
        f"{scoring.scorer}, {METRIC_OF[metrics.normalization]}",
        f"accuracy in percent, 95% interval {100 * accuracy.low:.1f} to {100 * accuracy.high:.1f}",
        f"chance {100 * metrics.chance:.1f}",
        f"{metrics.scored:,} of {metrics.items:,} rows scored",
    ]
    if (remark := headline_remark(metrics)) is not None:
        parts.append(remark)
    if results.model.revision:
        parts.append(f"model at {results.model.revision}")
    if results.model.finetuning:
        parts.append("fine-tuned on the train split")
    return "; ".join(parts)


def merged(held: str | bytes, new: Sequence[dict[str, Any]], place: str) -> str:
    """Return the text of the file: entries of other tasks that it holds are kept.

    Raises:
        UsageError: what it holds is not a list of entries; ``place`` is where it is.
    """
    import yaml

    there = yaml_value(held, place, _REMEDY) or []
    try:
        known = {_key(one): one for one in there}
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{place} does not hold a list of results. {_REMEDY}") from error
    known |= {_key(one): one for one in new}
    return str(yaml.safe_dump([*known.values()], sort_keys=False, allow_unicode=True, width=1000))


def _key(entry: dict[str, Any]) -> tuple[str, str]:
    return str(entry["dataset"]["id"]), str(entry["dataset"]["task_id"])


def write_entries(folder: Path, dataset: str, new: Sequence[dict[str, Any]]) -> Path:
    """Write the file into a folder laid out as the model's repository; return its path."""
    from kbprobe.files import write_file

    path = folder / path_in_repo(dataset)
    held = read_bytes(path, MAX_YAML_BYTES, _REMEDY) if path.exists() else b""
    text = merged(held, new, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)
    return path
