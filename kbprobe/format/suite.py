"""Suites on disk: a folder of probes that were built together, and the record of them.

``build-probe --suite`` writes the record; evaluation takes the folder for all of its probes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from kbprobe.errors import KbprobeError
from kbprobe.format.manifest import Manifest, read_manifest
from kbprobe.format.sealed import read_sealed
from kbprobe.parsing import validated

RECORD = "suite.json"

_REMEDY = "Build the suite again."


def _stays_inside(folder: str) -> str:
    # Windows has both slashes and drives: a path that is inside there is inside on every system.
    path = PureWindowsPath(folder or "-")
    if path.anchor or ".." in path.parts or not path.parts or "\0" in folder:
        raise ValueError("expected the name of a folder within the parent of all probes")
    return folder


Inside = Annotated[str, AfterValidator(_stays_inside)]
"""The path of a probe's folder within that of a set of probes."""


class Member(BaseModel):
    """A probe of a suite."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    folder: Inside = Field(description="Its folder, relative to that of the suite.")
    rows_digest: str = Field(description="What identifies its rows: all configs and splits.")


class Suite(BaseModel):
    """The record in a suite's folder.

    Attributes:
        name: the suite, such as ``kbprobe-1``.
        seed: the seed that it was built with.
        standard: whether all files have the checksums that the suite's recipe states.
        probes: the probes, in the order of the recipe.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    seed: int
    standard: bool
    probes: tuple[Member, ...] = Field(min_length=1)

    @property
    def title(self) -> str:
        """The name, and how the suite differs from the standard one."""
        return self.name if self.standard else f"{self.name}, seed {self.seed}"


def checksums(folder: str, manifest: Manifest) -> dict[str, str]:
    """Return the sha256 of a probe's data files, by their paths within the suite's folder."""
    return {f"{folder}/{entry.path}": entry.sha256 for entry in manifest.files}


def differing(stated: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """Return the files that only one of two lists of checksums has, or that differ."""
    return [
        f"{path} {'is missing' if path not in found else 'differs'}"
        if path in stated
        else f"{path} is not of the suite"
        for path in sorted(stated.keys() | found.keys())
        if stated.get(path) != found.get(path)
    ]


def read_suite(folder: Path) -> Suite | None:
    """Read the record of a suite; None if the folder has none, so that it is no suite.

    Raises:
        UsageError: the record is damaged, or was edited.
    """
    path = folder / RECORD
    if not path.is_file():
        return None
    return validated(read_sealed(path, _REMEDY, ""), Suite, str(path), _REMEDY)


def verify(folder: Path, suite: Suite) -> None:
    """Check that the probes in a suite's folder are those that were built with it.

    Raises:
        KbprobeError: one holds other rows.
        UsageError: one is missing or damaged.
    """
    for member in suite.probes:
        if read_manifest(folder / member.folder).rows_digest != member.rows_digest:
            raise KbprobeError(
                f"{folder / member.folder} holds other rows than the suite {suite.title} was "
                f"built with. {_REMEDY}"
            )


def members(folder: str) -> list[str]:
    """Return the probes that a path refers to: those in a suite's folder, or the path itself."""
    suite = read_suite(Path(folder))
    return [folder] if suite is None else [str(Path(folder, one.folder)) for one in suite.probes]


def suite_of(probe: str) -> tuple[Path, Suite] | None:
    """Return the suite that a probe's folder belongs to, and the suite's folder."""
    path = Path(probe).resolve()
    for parent in path.parents:
        if (suite := read_suite(parent)) is not None:
            own = any(parent / one.folder == path for one in suite.probes)
            return (parent, suite) if own else None
    return None
