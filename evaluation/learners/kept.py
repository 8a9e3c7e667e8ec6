"""A fitted model on disk: trained once, found again after a crash, removed when it was scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evaluation.learners.base import Training
from evaluation.scorers.base import ReadyScorer
from kbprobe.files import remove_tree


@contextmanager
def trained_once(
    training: Training,
    folder: Path,
    *,
    is_there: Callable[[Path], bool],
    write: Callable[[Path], None],
    load: Callable[[Path], ReadyScorer],
    remove: Callable[[Path], None] = remove_tree,
) -> Iterator[ReadyScorer]:
    """Train a model, or find it where an interrupted run left it, and load it.

    One process trains; all load what it wrote. When the block ends well the scores are in the
    cache, and the folder is removed.

    Args:
        training: what is trained.
        folder: where the model goes (:func:`evaluation.learners.base.training_folder`).
        is_there: tells whether a folder holds the model.
        write: trains it, and writes it into a folder, whole or not at all.
        load: loads it from a folder.
        remove: removes a folder; it may leave those that are to be kept.
    """
    began = time.perf_counter()
    if training.workers.leads and not is_there(folder):
        write(folder)
    training.workers.wait()
    training.model.training_seconds += time.perf_counter() - began
    # Nothing here holds what is loaded, so that it can be released.
    yield _loaded(training, folder, load)
    if training.workers.leads:
        remove(folder)


def _loaded(training: Training, folder: Path, load: Callable[[Path], ReadyScorer]) -> ReadyScorer:
    began = time.perf_counter()
    ready = load(folder)
    training.model.training_seconds += time.perf_counter() - began
    return ready
