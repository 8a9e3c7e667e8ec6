"""``evaluate-probe cache``: what evaluations keep on disk, its size, and how to remove it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import click

from kbprobe.cli import command
from kbprobe.errors import UsageError, did_you_mean
from kbprobe.files import remove_tree, sweep
from kbprobe.files.cache import cache_dir, remove_empty, usable
from kbprobe.parsing import read_json
from kbprobe.terminal import echo, visible

KINDS = {
    "scores": "scores of finished and interrupted runs",
    "endpoints": "answers of endpoints, so that nothing is sent twice",
    "vectors": "hidden states of frozen models, for heads",
    "finetuned": "fine-tuned checkpoints, and unfinished trainings, of interrupted runs",
}
"""The folders of kbprobe's cache that evaluations fill, and what they hold."""
_RECORDS = {
    "scores": (64, ("key.json",)),
    "endpoints": (32, ("about.json",)),
    "vectors": (64, ("about.json",)),
    "finetuned": (64, ("*epochs-*", "network.safetensors")),
}
"""The digits of an entry's name, a hash, and what it holds: anything else is not kbprobe's."""


@dataclass(frozen=True)
class CachedEntries:
    """The entries of one kind in the cache, or the vectors of one model, and their size on disk."""

    kind: str
    what: str
    entries: int
    bytes: int


def held() -> list[CachedEntries]:
    """Return the cache entries of evaluations; vectors by model, since they are large."""
    return [one for kind in KINDS for one in _held(kind)]


def _held(kind: str) -> Iterator[CachedEntries]:
    folders = _folders(kind)
    if kind != "vectors":
        if folders:
            yield CachedEntries(kind, KINDS[kind], len(folders), sum(map(_size, folders)))
        return
    by_model: dict[str, list[Path]] = {}
    for folder in folders:
        by_model.setdefault(_model_of(folder), []).append(folder)
    for model, own in sorted(by_model.items()):
        yield CachedEntries(kind, f"hidden states of {model}", len(own), sum(map(_size, own)))


def _folders(kind: str) -> list[Path]:
    root = cache_dir() / kind
    with usable(root):
        return sorted(filter(partial(_is_entry, kind), root.iterdir())) if root.is_dir() else []


def _is_entry(kind: str, folder: Path) -> bool:
    """Return whether evaluations wrote a folder; people may keep their own next to it."""
    digits, records = _RECORDS[kind]
    named = re.fullmatch(f"[0-9a-f]{{{digits}}}", folder.name)
    if named is None or folder.is_symlink() or not folder.is_dir():
        return False
    return any(path for record in records for path in folder.glob(record))


def _size(folder: Path) -> int:
    with usable(folder):
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _model_of(folder: Path) -> str:
    try:
        return str(read_json(folder / "about.json")["model"])
    except (OSError, UsageError, KeyError, TypeError):
        return "an unknown model"


@command("cache", help="List what evaluations keep in the cache, or remove it.")
@click.argument("kind", required=False, metavar="[KIND]")
@click.option("--clear", is_flag=True, help="Remove KIND, or with --all everything.")
@click.option("--all", "everything", is_flag=True, help="With --clear: all kinds.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def cache_command(
    kind: str | None, clear: bool, everything: bool, yes: bool, as_json: bool
) -> None:
    """List scores, vectors and checkpoints with their sizes, or remove them."""
    if kind is not None and kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise UsageError(f"the cache holds no {kind!r}.{hint} It holds: {', '.join(KINDS)}.")
    if clear and everything == (kind is not None):
        raise UsageError(f"say what to remove: one of {', '.join(KINDS)}, or --all")
    if not clear and (everything or yes):
        raise UsageError("--all and --yes require --clear")
    shown = [one for one in held() if kind in (None, one.kind)]
    if not clear:
        _list(shown, as_json)
        return
    total = sum(one.bytes for one in shown)
    if not shown:
        echo("There is nothing to remove.", err=True)
        return
    kinds = sorted({one.kind for one in shown})
    if not yes:
        what = ", ".join(kinds)
        click.confirm(visible(f"Remove {what} ({_spelled(total)}) from {cache_dir()}?"), abort=True)
    for name in kinds:
        for folder in _folders(name):
            remove_tree(folder)
        with usable(cache_dir() / name):
            sweep(cache_dir() / name)
        remove_empty(cache_dir() / name)
    echo(f"Removed {_spelled(total)} from {cache_dir()}.", err=True)


def _list(shown: list[CachedEntries], as_json: bool) -> None:
    if as_json:
        echo(json.dumps([asdict(one) for one in shown], indent=2))
        return
    for one in shown:
        echo(f"{one.kind:10} {one.entries:6,}  {_spelled(one.bytes):>10}  {one.what}")
    echo(f"In {cache_dir()}. Remove with: evaluate-probe cache KIND --clear", err=True)


def _spelled(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
