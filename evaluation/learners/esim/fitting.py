"""Training ESIM: once, found again after a crash, removed when its scores are in the cache."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file

from evaluation.items.types import fingerprint
from evaluation.learners.base import Training, training_folder
from evaluation.learners.esim import LEARNING_RATE, EsimOptions
from evaluation.learners.esim.layers import Esim
from evaluation.learners.esim.scorer import EsimScorer
from evaluation.learners.finetune.training import ChoiceTraining
from evaluation.learners.vectors import word_vectors
from evaluation.scorers.base import ReadyScorer
from kbprobe.files import remove_tree, replacing_folder

if TYPE_CHECKING:
    from kb_cache.vectors.types import WordVectors


_FILE = "esim.safetensors"


@contextmanager
def fitted(training: Training) -> Iterator[ReadyScorer]:
    """Train ESIM, or find what an interrupted run left of it.

    One process trains; all load what it wrote. When the block ends well it is removed.

    Raises:
        UsageError: the word vectors are not there.
        KbprobeError: training diverged, or a row does not fit into memory.
    """
    options: EsimOptions = training.options
    vectors, handle = word_vectors(options), training.model
    identity = {
        "learner": "esim",
        "options": options.model_dump(mode="json"),
        "vectors": vectors.digest,
        "seed": training.seed,
        "train_fingerprint": fingerprint(training.items),
        "device": handle.device.type,
    }
    folder = training_folder(identity)
    began = time.perf_counter()
    if training.workers.leads and not (folder / _FILE).is_file():
        trained = train(training, vectors)
        with replacing_folder(folder) as aside:
            save_file(trained.state_dict(), aside / _FILE)
    training.workers.wait()
    model = Esim(vectors.dimensions, options.hidden_units, options.dropout)
    model.load_state_dict(load_file(folder / _FILE))
    handle.training_seconds += time.perf_counter() - began
    parameters = sum(weights.numel() for weights in model.parameters())
    with single_thread():
        yield ReadyScorer(EsimScorer(model, vectors, handle.device), parameters)
    if training.workers.leads:
        remove_tree(folder)


def train(training: Training, vectors: WordVectors) -> Esim:
    """Train a network by cross-entropy over the choices of each row.

    On a CPU it is a pure function of vectors, rows, options and seed. torch's global random state
    is left as it was.
    """
    options: EsimOptions = training.options
    device = training.model.device
    cuda = [device] if device.type == "cuda" else []
    with single_thread(), torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(training.seed)
        model = Esim(vectors.dimensions, options.hidden_units, options.dropout)
        scorer = EsimScorer(model, vectors, device)
        encoded = scorer.encode(training.items)
        model.train()
        learning = ChoiceTraining(
            scorer, encoded, training.items, options, training.seed, LEARNING_RATE
        )
        learning.run(training.progress)
    return model.eval().cpu()


@contextmanager
def single_thread() -> Iterator[None]:
    """Compute in one thread: matrices are so small that several take four times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
