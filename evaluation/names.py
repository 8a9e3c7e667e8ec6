"""Names of folders for probes and models."""

from __future__ import annotations

from pathlib import Path


def folder_name(source: str) -> str:
    """Name a folder after a path that exists, or after a Hub id.

    >>> folder_name("FacebookAI/roberta-large")
    'FacebookAI--roberta-large'
    """
    if Path(source).exists():
        return Path(source).resolve().name
    return source.strip("/").replace("/", "--")
