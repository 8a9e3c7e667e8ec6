"""Imports of packages that would import others in vain."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


class _Without:
    """A finder of modules that says that there is none of some names."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names

    def find_spec(self, name: str, *_: Any) -> None:
        if name in self.names:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Hide packages from what is imported in the block, unless they are imported already."""
    finder: Any = _Without(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


@cache
def lemminflect() -> Any:
    """Return lemminflect, imported without spaCy, which it adds itself to where there is one."""
    with without("spacy"):
        import lemminflect
    return lemminflect


@cache
def inflect() -> Any:
    """Return inflect, imported without instrumenting it with checks of types, which takes 2 s."""
    try:
        import typeguard
    except ModuleNotFoundError:  # inflect may do without it one day
        import inflect

        return inflect
    checked: Any = typeguard.typechecked
    typeguard.typechecked = lambda function: function  # type: ignore[assignment]
    try:
        import inflect
    finally:
        typeguard.typechecked = checked
    return inflect


def let_arrow_ignore_pandas() -> None:
    """Keep Arrow from importing pandas to look at the first array that it makes.

    That takes 0.2 s and 40 MiB. What needs pandas still imports it.
    """
    import pyarrow as pa

    with without("pandas"):
        pa.array([0])  # Arrow looks for it once.
