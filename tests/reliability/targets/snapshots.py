"""Snapshots of the cache: what is read is what was written, or it is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.reliability.compiling import compiled
from tests.reliability.target import Target

_WORDNET = Path(__file__).parents[2] / "kb_cache" / "data" / "mini-wordnet"


def _snapshot(folder: Path) -> list[Path]:
    from kb_cache.snapshot import SourceInfo, write_snapshot

    home = folder / "snapshot"
    home.mkdir()
    about = {
        "kind": "wordnet", "name": "x", "version": "1", "licence": "MIT", "attribution": "us",
        "source": SourceInfo("a miniature"),
    }  # fmt: skip
    write_snapshot(home, compiled("wordnet", _WORDNET, folder / "compiled"), **about)
    shutil.copytree(home, folder / "as-written")
    return sorted(home.iterdir())


def _read_tables(path: Path) -> str:
    from kb_cache.snapshot import content_digest, read_info, read_tables

    return content_digest(read_tables(path.parent, read_info(path.parent)))


def _as_written(path: Path) -> str:
    """Return the digest of the tables before the damage, whatever is in the file now."""
    from kb_cache.snapshot import read_info

    return read_info(path.parent.parent / "as-written").digest


TARGETS = [
    Target("snapshot", _snapshot, _read_tables, _as_written, names_file=False, both_refuse=False)
]
