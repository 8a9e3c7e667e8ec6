"""How many workers a build may use. What is built never depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DEFAULT_WORKERS = 2

_workers = ContextVar("workers", default=DEFAULT_WORKERS)


def workers() -> int:
    """Return how many workers the build that runs here may use."""
    return _workers.get()


@contextmanager
def using_workers(count: int) -> Iterator[None]:
    """Let builds within use ``count`` workers."""
    token = _workers.set(count)
    try:
        yield
    finally:
        _workers.reset(token)
