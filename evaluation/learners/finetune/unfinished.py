"""A training that has not ended yet, on disk: saved now and then, so that it can be resumed."""

from __future__ import annotations

import pickle  # nosec B403 # for the error that torch.load raises
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import torch

from evaluation.learners.finetune.training import Course
from kbprobe.files import remains, replacing_file

SECONDS = 60.0
"""The least time between two savings."""
TIMES_ITS_COST = 20
"""How many times as long as a saving takes to wait before the next: at most 5% of the time."""
_BYTES_PER_SECOND = 200e6
"""Assumed of the disk until the first saving has been timed."""


class Unfinished:
    """The file in which a training's state is saved between two of its steps.

    Resumed in the same environment (device, libraries, threads), it ends with the weights that it
    would have had without the interruption: the environment is part of the path.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._saved = time.monotonic()
        self._cost: float | None = None

    def read(self) -> Course | None:
        """Return the state that was saved last; None where there is none that can be resumed."""
        try:
            # torch.load does not look at the checksums that torch.save writes.
            with zipfile.ZipFile(self.path) as members:
                if members.testzip() is not None:
                    return None
            return Course(**torch.load(self.path, weights_only=True, map_location="cpu"))
        except (
            OSError,
            RuntimeError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            EOFError,
            pickle.UnpicklingError,
            zipfile.BadZipFile,
        ):
            return None  # Whatever cannot be read is trained again.

    def after_step(self, state: Callable[[], Course]) -> None:
        """Save the state if it is time to, and if there is room for it."""
        waited = time.monotonic() - self._saved
        if waited < SECONDS or waited < TIMES_ITS_COST * (self._cost or 0.0):
            return
        course = state()
        cost = _size(course) / _BYTES_PER_SECOND if self._cost is None else self._cost
        if waited < TIMES_ITS_COST * cost:
            return
        began = time.monotonic()
        # A disk that is full costs the resumption and not the training.
        with suppress(OSError, RuntimeError), replacing_file(self.path) as aside:
            torch.save(vars(course), aside)
        self._saved = time.monotonic()
        self._cost = self._saved - began

    def remove(self) -> None:
        """Remove what was saved, and what a saving that was interrupted left."""
        for path in (self.path, *remains(self.path)):
            with suppress(OSError):
                path.unlink()


def _size(course: Course) -> int:
    """Return about how many bytes the weights and the two moments of each take."""
    return 3 * sum(value.nbytes for value in (course.weights or {}).values())
