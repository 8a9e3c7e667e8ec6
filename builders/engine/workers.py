"""The workers of a build. They never affect its result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Workers:
    """The workers of a build.

    Attributes:
        count: how many of this machine.
        ray: whether Ray's workers render and write the files of large builds.
        address: of the Ray cluster; None: workers are started on this machine.
    """

    count: int = 2
    ray: bool = False
    address: str | None = None


THIS_MACHINE = Workers()
_workers = ContextVar("workers", default=THIS_MACHINE)


def workers() -> Workers:
    """Return the workers of the build that runs here."""
    return _workers.get()


@contextmanager
def using_workers(chosen: Workers) -> Iterator[None]:
    """Let builds within use other workers."""
    token = _workers.set(chosen)
    try:
        yield
    finally:
        _workers.reset(token)
