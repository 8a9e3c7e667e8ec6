"""Names in a repository: of a probe's configs, and of the folder of its files."""

from __future__ import annotations

import re

from kbprobe.errors import UsageError
from kbprobe.format.setups import DEFAULT_CONFIG
from release.exports.flat import FLAT

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_RESERVED = ("data", FLAT, "README", "manifest", "release", "croissant", "eval")


def prefix_of(config: str) -> str:
    """Return the folder of a config in a repository, with a slash; empty for the default one."""
    return "" if config == DEFAULT_CONFIG else f"{config}/"


def check_name(config: str) -> None:
    """Refuse, with a UsageError, what cannot be the name of a config of a repository."""
    if not _NAME.fullmatch(config) or config in _RESERVED:
        raise UsageError(
            f"--config-name {config!r}: use letters, digits, '_', '-' and '.', a letter or digit "
            f"first, and none of {', '.join(_RESERVED)}"
        )


def published_name(name: str, config: str) -> str:
    """Return the name of a probe's config in a repository that holds several probes.

    >>> published_name("default", "hypernymy"), published_name("perturbed", "hypernymy")
    ('hypernymy', 'hypernymy-perturbed')
    """
    if config == DEFAULT_CONFIG:
        return name
    return config if name == DEFAULT_CONFIG else f"{config}-{name}"
