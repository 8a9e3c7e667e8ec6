"""The Hub's format of results: ``.eval_results/NAME.yaml`` in the repository of a model.

See https://huggingface.co/docs/hub/eval-results. An entry names a dataset, its commit and a task of
its ``eval.yaml``; the value is the accuracy in percent.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.exports.reading import Exported
from evaluation.results.types import METRIC_OF, Results
from evaluation.results.words import headline_remark, selection
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import write_file
from kbprobe.format.manifest import MANIFEST, ManifestError, parse_manifest
from kbprobe.format.setups import DEFAULT_CONFIG
from kbprobe.parsing import MAX_YAML_BYTES, yaml_value
from kbprobe.reading import MAX_TEXT_BYTES, read_bytes

if TYPE_CHECKING:
    from huggingface_hub import HfApi

FOLDER = ".eval_results"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REMEDY = "Correct it by hand, or remove it."
_ID = re.compile(r"[\w.-]+/[\w.-]+")


def check_id(name: str, option: str) -> None:
    """Refuse what is not the id of a repository with a UsageError."""
    if not _ID.fullmatch(name):
        raise UsageError(f"{option} {name!r} is not the name of a repository on the Hub: USER/NAME")


def path_in_repo(dataset: str) -> str:
    """Return the path of a dataset's results in the repository of a model.

    >>> path_in_repo("me/antonyms")
    '.eval_results/me--antonyms.yaml'
    """
    return f"{FOLDER}/{dataset.replace('/', '--')}.yaml"


def entries(exported: Sequence[Exported], dataset: str, commit: str) -> list[dict[str, Any]]:
    """Return the entries of results of one model on the rows of a dataset's commit.

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
                f"({selection(one.results)}), which others cannot compare with theirs. "
                "Evaluate all of them."
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
    path = folder / path_in_repo(dataset)
    held = read_bytes(path, MAX_YAML_BYTES, _REMEDY) if path.exists() else b""
    text = merged(held, new, str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, text)
    return path


def hub_api(endpoint: str | None) -> HfApi:
    """Return the Hub's client, which uses HF_ENDPOINT, HF_TOKEN and ``hf auth login``."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint, library_name="kbprobe")


def pinned(api: HfApi, dataset: str, revision: str, exported: Sequence[Exported]) -> str:
    """Return the commit of a revision of a dataset, after comparing its builds with the results'.

    A whole commit hash is taken as it is: the Hub is not asked.

    Raises:
        UsageError: no probe there was built as the evaluated one, or it has another name there.
        KbprobeError: the Hub refuses or cannot be reached.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    with _said(f"reading the dataset {dataset} at {revision}"):
        info = api.dataset_info(dataset, revision=revision)
        commit = str(info.sha)
        held = [one.rfilename for one in info.siblings or ()]
        builds = {}
        for path in held:
            if path == MANIFEST or (path.endswith(f"/{MANIFEST}") and path.count("/") == 1):
                content = _file(api, dataset, path, commit, "dataset") or b""
                try:
                    name = path.removesuffix(MANIFEST).rstrip("/") or DEFAULT_CONFIG
                    builds[name] = parse_manifest(content, path).content["request"]
                except ManifestError:
                    continue
    for one in exported:
        request = one.results.probe.request
        if request is None or builds.get(one.published_as) == request:
            continue
        if held_as := [name for name, build in builds.items() if build == request]:
            raise UsageError(
                f"{dataset} at {revision} holds the probe of {one.folder} as {held_as[0]}. Export "
                f"its results with --config-name {held_as[0]}."
            )
        raise UsageError(
            f"{dataset} at {revision} holds no probe that was built as that of {one.folder}. "
            "Evaluate the published one, or name the revision with --revision."
        )
    return commit


def open_pull_request(api: HfApi, model: str, dataset: str, new: Sequence[dict[str, Any]]) -> str:
    """Open a pull request that adds results to the repository of a model; return its page.

    Entries of other tasks are kept. The same pull request is not opened twice, and none where the
    repository holds the results already: then the page is empty.

    Raises:
        KbprobeError: the Hub refuses, or cannot be reached.
    """
    from huggingface_hub import CommitOperationAdd

    path = path_in_repo(dataset)
    with _said(f"opening a pull request at {model}"):
        head = str(api.model_info(model).sha)
        held = _file(api, model, path, head, "model") or b""
        text = merged(held, new, f"{path} of {model}").encode()
        if text == held:
            return ""
        for one in api.get_repo_discussions(
            model, discussion_type="pull_request", discussion_status="open"
        ):
            if _file(api, model, path, f"refs/pr/{one.num}", "model") == text:
                return str(one.url)
        made = api.create_commit(
            model,
            [CommitOperationAdd(path, text)],
            commit_message=f"Add results on {dataset}",
            commit_description="Measured by kbprobe; each entry says how.",
            parent_commit=head,
            create_pr=True,
        )
    return str(made.pr_url or "")


def _file(api: HfApi, repo: str, path: str, revision: str, kind: str) -> bytes | None:
    from huggingface_hub.errors import EntryNotFoundError

    with tempfile.TemporaryDirectory() as folder:
        try:
            found = api.hf_hub_download(
                repo, path, revision=revision, repo_type=kind, cache_dir=folder
            )
        except EntryNotFoundError:
            return None
        return read_bytes(Path(found), MAX_TEXT_BYTES)


@contextmanager
def _said(action: str) -> Iterator[None]:
    """Turn errors of the Hub into one line that says what to do."""
    from huggingface_hub import errors

    try:
        yield
    except errors.RevisionNotFoundError:
        raise UsageError(f"{action}: there is no such revision. Check --revision.") from None
    except errors.RepositoryNotFoundError:
        raise UsageError(
            f"{action}: there is no such repository, or this token cannot see it. Check the name, "
            "and whose token HF_TOKEN or hf auth login holds."
        ) from None
    except errors.HfHubHTTPError as error:
        reason = (error.server_message or str(error)).splitlines()[0]
        raise KbprobeError(
            f"{action}: the Hub refused: {reason} Check the token (HF_TOKEN, hf auth login)."
        ) from None
    except (errors.OfflineModeIsEnabled, errors.LocalEntryNotFoundError, OSError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise KbprobeError(f"{action}: the Hub cannot be reached: {reason}") from None
