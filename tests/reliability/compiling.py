"""Compiling a source of a knowledge base as ``kb-cache fetch`` does, without the cache."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kb_cache.base import Compiled


def compiled(kind: str, path: Path, folder: Path, **options: Any) -> Compiled:
    """Read and compile a source; ``folder``, which is emptied, takes an engine's files."""
    from kb_cache.base import find_kind

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    found = find_kind(kind)
    parsed = found.options.parse({"source": path, "name": "x", **options}, kind)
    result: Compiled = found.compile(found.read(path, parsed), parsed, folder, lambda *_: None)
    return result
