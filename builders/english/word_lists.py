"""Word lists: text files in ``data/`` with one or more words per line and ``#`` for comments.

The words of a multi-word entry are joined by hyphens. Lists from elsewhere name their sources.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from kbprobe.parsing import own_yaml


def _lines(name: str, package: str = "builders.english") -> list[str]:
    text = resources.files(package).joinpath("data", f"{name}.txt").read_text("utf-8")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def data_table(name: str, package: str) -> Any:
    """Return the content of a package's ``data/NAME.yaml``."""
    return own_yaml(resources.files(package).joinpath("data", f"{name}.yaml").read_text("utf-8"))


@cache
def word_list(name: str, package: str = "builders.english") -> frozenset[str]:
    """Return the words of a package's ``data/NAME.txt``.

    >>> "kitchen" in word_list("places_on"), "table" in word_list("places_on")
    (False, True)
    """
    return frozenset(word for line in _lines(name, package) for word in line.split())


@cache
def word_pairs(name: str) -> dict[str, str]:
    """Return the pairs of ``data/NAME.txt``, which has one pair per line.

    >>> word_pairs("irregular_plurals")["hoof"]
    'hooves'
    """
    pairs = {}
    for line in _lines(name):
        one, other = line.split()
        pairs[one] = other
    return pairs


@cache
def word_groups(name: str, package: str = "builders.english") -> tuple[tuple[str, ...], ...]:
    """Return the lines of a package's ``data/NAME.txt``, each with its words.

    >>> ("swept", "sweep") in word_groups("irregular_forms")
    True
    """
    return tuple(tuple(line.split()) for line in _lines(name, package))
