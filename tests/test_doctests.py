"""The examples in docstrings do what they show."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
PACKAGES = ("kbprobe", "kb_cache", "builders", "evaluation", "release")


def modules_with_examples() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((REPOSITORY / package).rglob("*.py")):
            if ">>> " in path.read_text(encoding="utf-8"):
                parts = path.relative_to(REPOSITORY).with_suffix("").parts
                yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = list(modules_with_examples())


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    # What differs is printed.
    assert doctest.testmod(import_module(name)).failed == 0


def test_every_package_has_examples() -> None:
    assert {name.partition(".")[0] for name in MODULES} == set(PACKAGES)
