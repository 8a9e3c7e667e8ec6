"""The revisions of a model: those of a repository on the Hub, or the checkpoints of a training."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from evaluation.models.checkpoint import NO_MODEL
from evaluation.results.words import natural_key
from kbprobe.checkpoint_files import CONFIG, check_local, hub_errors, is_adapter
from kbprobe.errors import KbprobeError, UsageError

_STEP = re.compile(r"(?:step|checkpoint|ckpt|iter)[-_]?(\d+(?:\.\d+)?)([kKmM]?)(?![a-zA-Z\d])")
_LAST = re.compile(r"(?<![a-zA-Z\d.])(\d+)$")
_TIMES = {"": 1, "k": 10**3, "m": 10**6}


def step_of(name: str) -> int | None:
    """Return the training step that a revision or folder is named after.

    >>> [step_of(name) for name in ("step1000", "stage1-step140000-tokens294B", "checkpoint-500")]
    [1000, 140000, 500]
    >>> step_of("seed_0-step_20k"), step_of("1500"), step_of("main"), step_of("v2.1")
    (20000, 1500, None, None)
    """
    if found := _STEP.search(name):
        return round(float(found[1]) * _TIMES[found[2].lower()])
    found = _LAST.search(name)
    return int(found[1]) if found else None


def stem_of(name: str) -> str:
    """Return a folder's name without its training step: what its series share.

    >>> stem_of("runs/bert/checkpoint-500"), stem_of("org/multiberts-seed_0-step_20k")
    ('runs/bert', 'org/multiberts-seed_0')
    """
    return _STEP.sub("", name).rstrip("/-_")


_SHOWN = 8
"""Maximum number of names that a message lists."""


@dataclass(frozen=True)
class Revision:
    """One of a model's revisions.

    Attributes:
        name: of the branch, tag or commit; of a checkpoint in a folder, its path within that.
        model: what is loaded: the Hub id, or the checkpoint's own folder.
        revision: what is loaded of it, on the Hub; None: ``model`` is a folder.
    """

    name: str
    model: str
    revision: str | None

    @property
    def step(self) -> int | None:
        """The training step that it is named after; None if the name has none."""
        return step_of(self.name)


def find_revisions(model: str, patterns: Sequence[str]) -> list[Revision]:
    """Return the revisions of a model that match names or patterns.

    A pattern such as ``step*`` or ``checkpoint-[5-9]00`` matches branches and tags of a repository
    on the Hub, or checkpoints within a folder. Matches of one pattern are in the order of training
    steps, then of names. All revisions are in the order of steps if every name has one, and
    otherwise in the given order.

    Raises:
        UsageError: there is no such model or revision, or nothing matches a pattern.
        KbprobeError: the Hub cannot be asked what there is.
    """
    if model == NO_MODEL or Path(model).is_file():
        raise UsageError(
            f"--revisions are of a repository on the Hub, or of a folder with checkpoints in it; "
            f"--model {model} is neither"
        )
    folder = Path(model)
    found = _in_folder(folder, patterns) if folder.is_dir() else _on_hub(model, patterns)
    distinct = list({one.name: one for one in found}.values())
    if all(one.step is not None for one in distinct):
        distinct.sort(key=lambda one: one.step or 0)
    return distinct


def is_pattern(name: str) -> bool:
    """Return whether a name is a pattern for all matching revisions."""
    return any(mark in name for mark in "*?[")


def _in_folder(folder: Path, patterns: Sequence[str]) -> list[Revision]:
    found: list[Revision] = []
    for pattern in patterns:
        parts = PurePath(pattern).parts
        if not parts or PurePath(pattern).is_absolute() or ".." in parts:
            raise UsageError(
                f"--revisions {pattern}: name checkpoints within {folder}, such as 'checkpoint-*'"
            )
        names = _matching(_checkpoints(folder, len(parts)), pattern)
        if not names:
            there = _checkpoints(folder, 1)
            raise UsageError(_no_match(f"the folder {folder}", "checkpoint", pattern, there))
        found += (Revision(name, str(folder / name), None) for name in names)
    return found


def _checkpoints(folder: Path, depth: int) -> list[str]:
    """Return the paths of checkpoints and adapters this many levels below a folder."""
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.glob("/".join("*" * depth)))
        if (path / CONFIG).is_file() or is_adapter(path)
    ]


def _on_hub(model: str, patterns: Sequence[str]) -> list[Revision]:
    check_local(model, None)
    names: list[str] | None = None
    found: list[Revision] = []
    for pattern in patterns:
        matching = [pattern]
        if is_pattern(pattern):
            if names is None:
                names = _refs(model, pattern)
            matching = _matching(names, pattern)
            if not matching:
                raise UsageError(_no_match(model, "branch or tag", pattern, names))
        found += (Revision(name, model, name) for name in matching)
    return found


def _refs(model: str, pattern: str) -> list[str]:
    """Return the names of a repository's branches and tags."""
    from huggingface_hub import HfApi

    try:
        with hub_errors(model, None):
            refs = HfApi(library_name="kbprobe").list_repo_refs(model)
    except UsageError:
        raise
    except KbprobeError as error:
        raise KbprobeError(
            f"--revisions {pattern}: only the Hub can tell what matches it. {error} Name the "
            "revisions themselves, with commas: those in the local cache are found without the Hub."
        ) from error
    return [ref.name for ref in (*refs.branches, *refs.tags)]


def _matching(names: Iterable[str], pattern: str) -> list[str]:
    """Return the names that match a pattern, in the order of steps, those without one last."""
    matching = (name for name in dict.fromkeys(names) if fnmatchcase(name, pattern))
    return sorted(matching, key=lambda name: (_place(name), natural_key(name)))


def _place(name: str) -> float:
    step = step_of(name)
    return float("inf") if step is None else step


def _no_match(where: str, kind: str, pattern: str, names: Sequence[str]) -> str:
    ordered = _matching(names, "*")
    there = ", ".join(ordered[:_SHOWN]) + (", ..." if len(ordered) > _SHOWN else "")
    held = f"It has {there}" if ordered else "It has none"
    return f"{where} has no {kind} {pattern!r}. {held}: name others with --revisions."
