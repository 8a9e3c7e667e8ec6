"""What every learner is: fitted on items, it gives a scorer.

A :class:`LearnerEntry` declares it. How many rows it is fitted on, which, and the seed are the
run's business (:class:`evaluation.runs.spec.RunSpec`), the same for all learners.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from evaluation.items.types import SCORED_SETUPS, Item
from evaluation.models.capabilities import Capability
from evaluation.models.handle import ModelHandle
from evaluation.progress import Progress
from evaluation.scorers.base import ReadyScorer
from evaluation.workers import Workers
from kbprobe.errors import UsageError
from kbprobe.options import Options


@dataclass(frozen=True)
class Training:
    """What a learner is fitted with.

    Attributes:
        model: the checkpoint, not yet loaded.
        items: the rows to fit on, drawn from the train split (:func:`draw_rows`).
        seed: of everything else that the learner draws.
        options: the learner's own.
        workers: the processes that share the run; all of them get the scorer.
        progress: told what is being done.
    """

    model: ModelHandle
    items: Sequence[Item]
    seed: int
    options: Any
    workers: Workers
    progress: Progress


@dataclass(frozen=True)
class LearnerEntry:
    """Declares a learner: what the registry, the command line and the score cache need to know.

    Attributes:
        name: as in results and on the command line.
        label: before its options' help: ``fine-tuning``.
        version: raised whenever what is learnt may change; part of the key of cached scores.
        needs: what a model must be able to do.
        scorer: the name of the scorer that scores what was fitted.
        fit: fits it. The scorer is valid within the context, which may clean up when it ends
            well. Import torch and transformers in it, not at the top of the file.
        options: its options. A field declared with ``exclude=True`` has no influence on scores
            and names something to write, so that it belongs to a single run.
        setups: the set-ups of items that it is fitted on.
        wanted: whether, with these options, it is to be fitted even where the scores are known:
            because something is to be kept that is not there yet.
    """

    name: str
    label: str
    version: int
    needs: Capability
    scorer: str
    fit: Callable[[Training], AbstractContextManager[ReadyScorer]]
    options: type[Options] = Options
    setups: tuple[str, ...] = SCORED_SETUPS
    wanted: Callable[[Any], bool] = lambda _options: False

    def takes(self, setup: str) -> bool:
        """Tell whether it is fitted on rows of a set-up."""
        return setup in self.setups


def draw_rows(items: Sequence[Item], count: int, seed: int) -> list[int]:
    """Draw rows by a hash of seed and id: whatever their order, and fewer are part of more.

    Raises:
        UsageError: there are fewer than ``count``.
    """
    if count > len(items):
        raise UsageError(
            f"--train {count:,} asks for more rows than the train split has ({len(items):,}). "
            f"Use --train {len(items)} or less, or build the probe with a larger --train-rows."
        )

    def draw(row: int) -> bytes:
        return hashlib.sha256(f"{seed}\0{items[row].id}".encode()).digest()

    return sorted(range(len(items)), key=draw)[:count]
