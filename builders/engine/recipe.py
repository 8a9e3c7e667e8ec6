"""Recipes: YAML files that declare sets of probes.

.. code-block:: yaml

    output: probes            # the parent of all folders (default: probes)
    seed: 0                   # for the probes that give none of their own
    probes:
      - probe: wordnet_hypernymy
        options: {max_hops: 4}
      - probe: wordnet_hypernymy
        output: hypernymy-published
        options: {families: [paper], sampling: uniform}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PureWindowsPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from builders.engine.probe import find_probe
from builders.engine.request import Request
from builders.engine.sources import with_snapshots
from kbprobe.errors import UsageError
from kbprobe.options import MAX_SEED
from kbprobe.parsing import read_yaml, validated

MAX_PROBES = 1_000
"""Most probes of a recipe."""


class Entry(BaseModel):
    """One probe of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    probe: str
    output: str | None = None
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    template: Path | None = None
    options: dict[str, Any] = Field(default_factory=dict)

    @field_validator("output")
    @classmethod
    def _stays_inside(cls, output: str | None) -> str | None:
        # Windows has both slashes and drives: a path inside for it is inside on every system.
        path = PureWindowsPath(output or "-")
        if path.anchor or ".." in path.parts or not path.parts or "\0" in str(path):
            raise ValueError("expected the name of a folder within the recipe's 'output'")
        return output


class Recipe(BaseModel):
    """A declared set of probes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    output: Path = Path("probes")
    seed: int = Field(0, ge=0, le=MAX_SEED)
    probes: tuple[Entry, ...] = Field(min_length=1, max_length=MAX_PROBES)


def _refuse_shared(folders: Sequence[str], path: Path) -> None:
    """Refuse outputs that are one folder, on some system at least, or lie within each other."""
    # Windows and macOS ignore case in paths.
    parts = sorted((PureWindowsPath(name.casefold()).parts, name) for name in folders)
    for (one, name), (other, within) in pairwise(parts):
        if one == other:
            raise UsageError(
                f"{path}: two probes would go to {within!r}; give one of them its own 'output'"
            )
        if other[: len(one)] == one:
            raise UsageError(
                f"{path}: {within!r} is within {name!r}, the folder of another probe; give one of "
                "them another 'output'"
            )


def read_recipe(
    path: Path, output: Path | None, values: Mapping[str, Any]
) -> list[tuple[Request, Path]]:
    """Read a recipe: what to build, and where to; template files are looked for beside it.

    Args:
        path: the YAML file.
        output: the parent of all folders, if not the recipe's.
        values: what is the same for all probes: template, format and audit.

    Raises:
        UsageError: the file cannot be read or is no recipe; the message names file and key.
    """
    try:
        recipe = validated(read_yaml(path), Recipe, str(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: No such file or directory. Name a recipe file.") from None
    folders = [entry.output or entry.probe for entry in recipe.probes]
    _refuse_shared(folders, path)
    jobs = []
    for number, (entry, folder) in enumerate(zip(recipe.probes, folders, strict=True)):
        owner = f"{path}: probes.{number}: {entry.probe}"
        try:
            probe = find_probe(entry.probe)
        except UsageError as error:
            raise UsageError(f"{path}: probes.{number}.probe: {error}") from None
        request = Request(
            probe,
            with_snapshots(probe.options.parse(entry.options, owner), owner),
            recipe.seed if entry.seed is None else entry.seed,
            path.parent / entry.template if entry.template else values["template"],
            values["format"],
            values["audit"],
        )
        jobs.append((request, (output or recipe.output) / folder))
    return jobs
