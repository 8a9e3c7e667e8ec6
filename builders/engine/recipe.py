"""Recipes: YAML files that declare sets of probes.

.. code-block:: yaml

    output: probes            # the parent of all folders (default: probes)
    seed: 0                   # for the probes that give none of their own
    options: {limit: 2000}    # of all probes that have them
    probes:
      - probe: wordnet_hypernymy
        options: {max_hops: 4}
      - probe: wordnet_hypernymy
        output: hypernymy-published
        options: {families: [paper], sampling: uniform}

A recipe with a ``suite``, its name, declares a suite: a record of its probes is written next to
them, from which evaluation recognises the folder as all of them. A suite is standard if
``checksums`` names a file of its checksums, as ``sha256sum`` writes it, and all files have them;
with another seed, it is a sibling of the same distribution. :func:`standard_suites` come with
kbprobe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from builders.engine.options import with_snapshots
from builders.engine.probe import find_probe
from builders.engine.request import Request
from kbprobe.errors import KbprobeError, UsageError, did_you_mean
from kbprobe.files.targets import refuse_outside
from kbprobe.format.manifest import read_manifest
from kbprobe.format.sealed import write_sealed
from kbprobe.format.suite import (
    RECORD,
    Inside,
    Member,
    Suite,
    checksums,
    differing,
)
from kbprobe.options import MAX_SEED
from kbprobe.parsing import read_yaml, validated
from kbprobe.reading import read_text

MAX_PROBES = 1_000
"""Maximum number of probes in a recipe."""


class RecipeEntry(BaseModel):
    """One probe of a recipe."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    probe: str
    output: Inside | None = None
    seed: int | None = Field(None, ge=0, le=MAX_SEED)
    template: Path | None = None
    options: dict[str, Any] = Field(default_factory=dict)


class Recipe(BaseModel):
    """A declared set of probes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    suite: str | None = Field(None, min_length=1)
    checksums: Path | None = None
    output: Path = Path("probes")
    seed: int = Field(0, ge=0, le=MAX_SEED)
    format: Literal["parquet", "jsonl"] | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    probes: tuple[RecipeEntry, ...] = Field(min_length=1, max_length=MAX_PROBES)


def _refuse_shared(folders: Sequence[str], path: Path) -> None:
    """Refuse outputs that are the same folder (on any system) or are nested."""
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


@dataclass(frozen=True)
class Declared:
    """What a recipe declares.

    Attributes:
        folder: the parent of all probes' folders.
        jobs: what to build, and where to write it.
        recipe: the recipe, with the given seed.
        stated: the checksums of all files, by their paths in the folder; None if there are none, or
            they are for another seed.
    """

    folder: Path
    jobs: list[tuple[Request, Path]]
    recipe: Recipe
    stated: dict[str, str] | None

    def finish(self) -> Suite | None:
        """Compare the checksums of a suite that was built, and write its record.

        Raises:
            KbprobeError: files differ from those of the standard suite.
        """
        if self.recipe.suite is None:
            return None
        record = self.folder / RECORD
        record.unlink(missing_ok=True)
        members, found = [], dict[str, str]()
        for entry in self.recipe.probes:
            name = entry.output or entry.probe
            manifest = read_manifest(self.folder / name)
            found |= checksums(name, manifest)
            digest = manifest.rows_digest
            members.append(Member(folder=name, rows_digest=digest))
        if self.stated is not None and (odd := differing(self.stated, found)):
            raise KbprobeError(
                f"{self.folder} is not {self.recipe.suite}: {len(odd)} of {len(self.stated)} files "
                f"are not those of its checksums ({'; '.join(odd[:3])}). Another version of "
                "kbprobe made the suite: install that one, or build a later suite"
            )
        suite = Suite(
            name=self.recipe.suite,
            seed=self.recipe.seed,
            standard=self.stated is not None,
            probes=tuple(members),
        )
        write_sealed(record, suite.model_dump_json(indent=2))
        return suite


def standard_suites() -> dict[str, Path]:
    """Return the recipes of the suites shipped with kbprobe, by name."""
    return {path.stem: path for path in sorted((Path(__file__).parent / "data").glob("*.yaml"))}


def find_suite(name: str) -> Path:
    """Return the recipe of a suite shipped with kbprobe.

    Raises:
        UsageError: there is none of this name.
    """
    known = standard_suites()
    if name not in known:
        raise UsageError(
            f"there is no suite {name!r}.{did_you_mean(name, known)} There are: "
            f"{', '.join(known)}. One of your own is built with --recipe FILE."
        )
    return known[name]


def read_recipe(
    path: Path, output: Path | None, values: Mapping[str, Any], seed: int | None = None
) -> Declared:
    """Read a recipe: what to build, and where; other files are resolved relative to it.

    Args:
        path: the YAML file.
        output: the parent of all folders, if not the recipe's.
        values: settings shared by all probes: template, format and audit.
        seed: the seed, if not the recipe's; the folder of a suite is then named after it.

    Raises:
        UsageError: the file cannot be read or is no recipe; the message names file and key.
    """
    try:
        recipe = validated(read_yaml(path), Recipe, str(path))
    except FileNotFoundError:
        raise UsageError(f"{path}: No such file or directory. Name a recipe file.") from None
    parent, stated = output or recipe.output, None
    if output is None:
        refuse_outside(parent, f"{path}: output")
    if seed is not None and seed != recipe.seed:
        if recipe.suite is not None and output is None:
            parent = parent.with_name(f"{parent.name}-seed-{seed}")
        recipe = recipe.model_copy(update={"seed": seed})
    elif recipe.checksums is not None:
        stated = _stated(path.parent / recipe.checksums)
    folders = [entry.output or entry.probe for entry in recipe.probes]
    _refuse_shared(folders, path)
    jobs, unused = [], set(recipe.options)
    for number, (entry, folder) in enumerate(zip(recipe.probes, folders, strict=True)):
        owner = f"{path}: probes.{number}: {entry.probe}"
        try:
            probe = find_probe(entry.probe)
        except UsageError as error:
            raise UsageError(f"{path}: probes.{number}.probe: {error}") from None
        common = {k: v for k, v in recipe.options.items() if k in probe.options.model_fields}
        unused -= common.keys()
        options = probe.options.parse({**common, **entry.options}, owner)
        request = Request(
            probe,
            with_snapshots(options, owner),
            recipe.seed if entry.seed is None else entry.seed,
            path.parent / entry.template if entry.template else values["template"],
            recipe.format or values["format"],
            values["audit"],
        )
        jobs.append((request, parent / folder))
    if unused:
        raise UsageError(f"{path}: options.{min(unused)}: no probe of the recipe has this option")
    return Declared(parent, jobs, recipe, stated)


def _stated(path: Path) -> dict[str, str]:
    """Read a file of checksums: one line per file, with its sha256, two spaces and its path."""
    try:
        lines = read_text(path).splitlines()
    except FileNotFoundError:
        raise UsageError(f"checksums: there is no file {path}") from None
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
