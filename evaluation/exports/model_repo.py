"""The Hub: the commit of a dataset's revision, and a pull request at a model's repository."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.exports.hub import is_commit, merged, path_in_repo
from evaluation.exports.reading import Exported
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.format.manifest import MANIFEST, ManifestError, parse_manifest
from kbprobe.format.setups import DEFAULT_CONFIG

if TYPE_CHECKING:
    from huggingface_hub import HfApi


@dataclass(frozen=True)
class PullRequest:
    """A pull request; ``url`` is empty where the repository holds the results already."""

    url: str
    new: bool


def hub_api(endpoint: str | None) -> HfApi:
    """Return the Hub's client: HF_ENDPOINT, HF_TOKEN and ``hf auth login`` are heeded."""
    from huggingface_hub import HfApi

    return HfApi(endpoint=endpoint, library_name="kbprobe")


def pinned(api: HfApi | None, dataset: str, revision: str, exported: Sequence[Exported]) -> str:
    """Return the commit of a revision of a dataset, after comparing its builds with the results'.

    A whole commit hash is taken as it is: the Hub is not asked.

    Raises:
        UsageError: no probe there was built as the evaluated one, or it has another name there.
        KbprobeError: the Hub refuses or cannot be reached.
    """
    if is_commit(revision):
        return revision
    api = api or hub_api(None)
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


def open_pull_request(
    api: HfApi, model: str, dataset: str, new: Sequence[dict[str, Any]]
) -> PullRequest:
    """Open a pull request that adds results to the repository of a model.

    Entries of other tasks are kept. The same pull request is not opened twice.

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
            return PullRequest("", False)
        for one in api.get_repo_discussions(
            model, discussion_type="pull_request", discussion_status="open"
        ):
            if _file(api, model, path, f"refs/pr/{one.num}", "model") == text:
                return PullRequest(str(one.url), False)
        made = api.create_commit(
            model,
            [CommitOperationAdd(path, text)],
            commit_message=f"Add results on {dataset}",
            commit_description="Measured by kbprobe; each entry says how.",
            parent_commit=head,
            create_pr=True,
        )
    return PullRequest(str(made.pr_url or ""), True)


def _file(api: HfApi, repo: str, path: str, revision: str, kind: str) -> bytes | None:
    from huggingface_hub.errors import EntryNotFoundError

    with tempfile.TemporaryDirectory() as folder:
        try:
            found = api.hf_hub_download(
                repo, path, revision=revision, repo_type=kind, cache_dir=folder
            )
        except EntryNotFoundError:
            return None
        return Path(found).read_bytes()


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
