"""Tables derived from a snapshot: computed once, kept in the cache, and memory-mapped.

A *rule* is a function of only a loaded knowledge base, marked with :func:`derived`. Its result is
kept in ``CACHE/derived/SNAPSHOT/RULE.arrow`` (`kb_cache.array_files`) with everything that it
depends on: the snapshot's digest, the code and data of the rule's package, and the versions of the
libraries that shape it.

Tables of an embedded snapshot that take long come with the package, in ``data/SNAPSHOT/`` next to
the rule's module (`ship`). They are read as long as the module's source is that of the table.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, lru_cache, wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar, get_type_hints
from weakref import WeakSet

from kb_cache.array_files import derived_dir, kept_arrays, read_arrays, write_arrays
from kb_cache.knowledge import Loaded
from kbprobe.cli import kbprobe_version

LoadedT = TypeVar("LoadedT", bound=Loaded)
T = TypeVar("T")

PACKAGES = ("numpy", "pyarrow", "wordfreq")
"""Packages whose version matters, in addition to Python's (for its Unicode tables)."""

RULES = (".arrow", ".csv", ".json", ".py", ".txt", ".yaml")
"""Suffixes of a package's files on which its rules depend."""

_as_stored: WeakSet[Loaded] = WeakSet()
"""Knowledge bases whose content is exactly that of their digest."""


def as_stored(knowledge: LoadedT) -> LoadedT:
    """Declare that a knowledge base equals a snapshot, so that derived tables are kept."""
    _as_stored.add(knowledge)
    return knowledge


def derived(rule: Callable[[LoadedT], T]) -> Callable[[LoadedT], T]:
    """Compute a table of a knowledge base once per process, and of a snapshot only once.

    The rule's annotation says what it returns: an array of NumPy or Arrow, or a dataclass or named
    tuple of these. Arrays of a snapshot's tables are read-only.
    """

    @lru_cache(maxsize=2)
    @wraps(rule)
    def table(knowledge: LoadedT) -> T:
        # Scripts and notebooks are all "__main__", so a kept table may belong to another one.
        if knowledge not in _as_stored or rule.__module__ == "__main__":
            return rule(knowledge)
        kind = get_type_hints(rule)["return"]
        name = f"{rule.__module__}.{rule.__qualname__}"
        path = derived_dir() / knowledge.name / f"{name}.arrow"
        kept = None
        if (shipped := shipped_path(rule, knowledge)).is_file():
            with suppress(OSError):  # an installation without source code
                kept = read_arrays(shipped, _shipped_for(rule, knowledge))
        if kept is None:
            depends = f"{name} {knowledge.digest} {_fingerprint(rule.__module__.partition('.')[0])}"
            kept = kept_arrays(path, depends, lambda: _leaves(rule(knowledge)))
        made: T = _assembled(kind, iter(kept))
        return made

    return table


def ship(rule: Callable[[LoadedT], Any], knowledge: LoadedT) -> Path:
    """Write the table that comes with the package, given a :func:`derived` rule; return its path.

    It is compressed as far as possible, since every clone and every wheel holds it.
    """
    import pyarrow as pa

    plain = inspect.unwrap(rule)
    path, depends = shipped_path(plain, knowledge), _shipped_for(plain, knowledge)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(
        path, depends, list(_leaves(plain(knowledge))), pa.Codec("zstd", compression_level=19)
    )
    return path


def shipped_path(rule: Callable[..., Any], knowledge: Loaded) -> Path:
    """Return the path of a rule's table in the package; most rules have none."""
    source = Path(inspect.getfile(inspect.unwrap(rule)))
    return source.parent / "data" / knowledge.name / f"{source.stem}.{rule.__qualname__}.arrow"


def _shipped_for(rule: Callable[..., Any], knowledge: Loaded) -> str:
    source = Path(inspect.getfile(rule)).read_bytes()
    return f"{rule.__qualname__} {knowledge.digest} {hashlib.sha256(source).hexdigest()}"


@cache
def _fingerprint(package: str) -> str:
    """Return a hash of everything that tables depend on, except the snapshot."""
    versions = [kbprobe_version(), platform.python_version(), *map(version, PACKAGES)]
    found = hashlib.sha256(" ".join(versions).encode())
    for name in sorted({package, "kb_cache", "kbprobe"}):
        module = sys.modules[name]
        # A top-level module, outside of any package, has no folders.
        files = [] if hasattr(module, "__path__") else [(str(module.__file__), "")]
        for folder in getattr(module, "__path__", ()):
            walked = (
                (os.path.join(at, one), folder) for at, _, ones in os.walk(folder) for one in ones
            )
            files += sorted(one for one in walked if one[0].endswith(RULES))
        for path, folder in files:
            content = Path(path).read_bytes()
            found.update(f"{path.removeprefix(folder)} {len(content)} ".encode())
            found.update(content)
    return found.hexdigest()


def _leaves(value: Any) -> Iterator[Any]:
    """Yield the arrays in a value."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _leaves(getattr(value, field.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _assembled(kind: Any, leaves: Iterator[Any]) -> Any:
    """Make a value of some type from its arrays."""
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        return next(leaves)
    hints = get_type_hints(kind)
    names = getattr(kind, "_fields", None) or [field.name for field in dataclasses.fields(kind)]
    return kind(*(_assembled(hints[name], leaves) for name in names))
