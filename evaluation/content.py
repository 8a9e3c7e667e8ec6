"""Content hashes: the keys of scores and vectors in the cache."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

FORMAT = 3
"""Part of every hash; incremented to invalidate the entries of earlier versions."""


def content_hash(content: Mapping[str, Any]) -> str:
    """Hash everything that cached numbers depend on, as canonical JSON."""
    text = json.dumps({"format": FORMAT, **content}, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


@cache
def installed_version(package: str) -> str:
    """Return the version of an installed package; looked up once, since that takes milliseconds."""
    return importlib.metadata.version(package)
