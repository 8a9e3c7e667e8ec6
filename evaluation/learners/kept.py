"""A fitted model on disk: trained once, found again after a crash, removed when it was scored."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.content import content_hash
from evaluation.learners.base import FINETUNED, Training
from evaluation.scorers.base import ReadyScorer
from kbprobe.errors import KbprobeError
from kbprobe.files import file_sha256, remove_tree, replacing_folder, write_file
from kbprobe.files.cache import OTHER_CACHE, cache_dir
from kbprobe.files.locks import lock_path, try_lock, unlock
from kbprobe.files.targets import taking

if TYPE_CHECKING:
    import torch
    from torch import nn

_FILE = "network.safetensors"
_CHECKSUM = "sha256"


def training_folder(identity: Mapping[str, Any]) -> Path:
    """Return where a model is kept between its training and its scoring.

    An interrupted run finds there what it trained; ``identity`` is all that decides the weights.
    """
    return cache_dir() / FINETUNED / content_hash(identity)


@contextmanager
def writing_model(
    folder: Path, remedy: str = OTHER_CACHE, ours: Collection[str] | None = None
) -> Iterator[Path]:
    """Yield an empty folder that becomes ``folder``: see `kbprobe.files.replacing_folder`.

    Args:
        folder: where the model goes: in the cache, unless ``remedy`` says otherwise.
        remedy: what to do where it cannot be written.
        ours: see `kbprobe.files.replacing_folder`.

    Raises:
        KbprobeError: it cannot be written.
    """
    from safetensors import SafetensorError  # only the extra `eval` installs it

    try:
        with replacing_folder(folder, ours) as aside:
            yield aside
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise KbprobeError(
            f"the trained model cannot be written to {folder}: {reason}. {remedy}"
        ) from error


@dataclass(frozen=True, kw_only=True)
class TrainedOnce(AbstractContextManager[ReadyScorer]):
    """Trains a model, or finds it where an interrupted run left it, and loads it.

    One process trains; all load what it wrote. When the block ends well the scores are in the
    cache, and the folder is removed.

    Attributes:
        folder: where the model goes (:func:`training_folder`).
        is_there: tells whether a folder holds the model.
        write: trains it, and writes it into a folder, whole or not at all.
        course: the folder that is locked meanwhile: one with whatever ``write`` may go on from.
        remove: removes a folder; it may leave those that are to be kept.
    """

    training: Training
    folder: Path
    is_there: Callable[[Path], bool]
    write: Callable[[Path], None]
    load: Callable[[Path], ReadyScorer]
    course: Path
    remove: Callable[[Path], None] = remove_tree

    def __enter__(self) -> ReadyScorer:
        began = time.perf_counter()
        with ExitStack() as held:
            if self.training.workers.leads:
                # Another evaluation with the same training waits here, and loads what this wrote.
                held.enter_context(taking(self.course, overwrite=True, remedy=OTHER_CACHE))
                if not self.is_there(self.folder):
                    self.write(self.folder)
            self.training.workers.wait()
            # Nothing here holds what is loaded, so that it can be released.
            ready = self.load(self.folder)
            self.training.workers.wait()
        self.training.model.training_seconds += time.perf_counter() - began
        return ready

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.discard()

    def discard(self) -> None:
        """Remove what was trained, or what an interrupted run left of it."""
        if not self.training.workers.leads:
            return
        try:
            lock = try_lock(lock_path(Path(os.path.realpath(self.course))))
        except OSError:  # no locks here, or nothing to remove
            self.remove(self.folder)
            return
        if lock is None:
            return  # Another evaluation uses it, and removes it.
        try:
            self.remove(self.folder)
        finally:
            unlock(lock)


def fitted_network(
    training: Training,
    identity: Mapping[str, Any],
    train: Callable[[], nn.Module],
    load: Callable[[dict[str, torch.Tensor]], ReadyScorer],
) -> TrainedOnce:
    """Train a small network, or find what an interrupted run left of it.

    Args:
        training: the inputs of the training.
        identity: all that decides the weights.
        train: trains the network.
        load: makes a scorer of its weights.
    """
    from safetensors.torch import load_file, save_file  # only the extra `eval` installs it

    def write(folder: Path) -> None:
        trained = train().cpu()
        with writing_model(folder) as aside:
            save_file(trained.state_dict(), aside / _FILE)
            write_file(aside / _CHECKSUM, file_sha256(aside / _FILE))

    own = training_folder(identity)
    return TrainedOnce(
        training=training,
        folder=own,
        course=own,
        is_there=_is_there,
        write=write,
        load=lambda folder: load(load_file(folder / _FILE)),
    )


def _is_there(folder: Path) -> bool:
    try:
        return (folder / _CHECKSUM).read_bytes() == file_sha256(folder / _FILE).encode()
    except OSError:
        return False
