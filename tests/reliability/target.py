"""What is tested with mutated files: a reader, the files it reads, and an independent reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from tests.reliability import targets


class Refused(Exception):
    """An independent reader refuses a file."""


class Undecided(Exception):
    """An independent reader cannot tell whether a file is to be read, or as what."""


@dataclass(frozen=True)
class Target:
    """A reader that is given mutated files.

    A reader may return or raise a `kbprobe.errors.KbprobeError` whose message names the file;
    anything else is a failure. With ``expected`` the two readings must agree.

    Attributes:
        name: for ``--only`` and the table of figures.
        seeds: fills an empty folder with sound input, and returns the files in it that are to be
            mutated, one at a time. Called once in each worker.
        read: reads one of these files, which has been mutated. It must not change the folder
            other than by files that the next call overwrites.
        expected: an independent reading of the same file, which may raise `Refused` or
            `Undecided`.
        names_file: whether the message of a refusal must name the file.
        both_refuse: whether what one of the readings refuses the other has to refuse as well; else
            they are compared where both read, and what the independent one refuses must be refused.
    """

    name: str
    seeds: Callable[[Path], list[Path]]
    read: Callable[[Path], object]
    expected: Callable[[Path], object] | None = None
    names_file: bool = True
    both_refuse: bool = True


def all_targets() -> Iterator[Target]:
    """Yield the targets of all modules of `tests.reliability.targets`, by name."""
    found = [
        target
        for module in iter_modules(targets.__path__)
        for target in import_module(f"{targets.__name__}.{module.name}").TARGETS
    ]
    yield from sorted(found, key=lambda target: target.name)
