"""Every target of an export: a module here that defines ``TARGET``, named like the target."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from kbprobe.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from release.exports.source import Target

TARGETS = tuple(sorted(module.name.replace("_", "-") for module in iter_modules(__path__)))
"""The names on the command line: those of the modules."""


def find_target(name: str) -> Target:
    """Return the target with a name; the UsageError for unknown names lists all targets."""
    if name not in TARGETS:
        raise UsageError(
            f"There is no target {name!r}.{did_you_mean(name, TARGETS)} Known: "
            f"{', '.join(TARGETS)}."
        )
    from release.exports.source import Target

    target = import_module(f"{__name__}.{name.replace('-', '_')}").TARGET
    assert isinstance(target, Target)
    return target
