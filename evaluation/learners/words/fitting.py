"""Training a network over word vectors: once, found again after a crash."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file, save_file

from evaluation.items.types import fingerprint
from evaluation.learners.base import Training, training_folder
from evaluation.learners.finetune.training import ChoiceTraining
from evaluation.learners.kept import TrainedOnce, writing_model
from evaluation.learners.words import LEARNING_RATE, WordsOptions
from evaluation.learners.words.networks import Network
from evaluation.learners.words.scorer import WordsScorer, single_thread
from evaluation.scorers.base import ReadyScorer
from evaluation.vectors.options import word_vectors
from kbprobe.files import file_sha256, write_file

if TYPE_CHECKING:
    from kb_cache.vectors.types import WordVectors


_FILE = "network.safetensors"
_CHECKSUM = "sha256"


def fitted(
    training: Training, name: str, kind: type[Network]
) -> AbstractContextManager[ReadyScorer]:
    """Train a network, or find what an interrupted run left of it.

    Args:
        training: what it is trained with.
        name: of the learner.
        kind: of network.

    Raises:
        UsageError: the word vectors are not there.
        KbprobeError: training diverged, or a row does not fit into memory.
    """
    options: WordsOptions = training.options
    vectors, handle = word_vectors(options), training.model
    identity = {
        "learner": name,
        "options": options.model_dump(mode="json"),
        "vectors": vectors.digest,
        "seed": training.seed,
        "train_fingerprint": fingerprint(training.items),
        "device": handle.device.type,
    }

    def write(folder: Path) -> None:
        trained = train(training, vectors, kind)
        with writing_model(folder) as aside:
            save_file(trained.state_dict(), aside / _FILE)
            write_file(aside / _CHECKSUM, file_sha256(aside / _FILE))

    def load(folder: Path) -> ReadyScorer:
        model = kind(vectors.dimensions, options.hidden_units, options.dropout)
        model.load_state_dict(load_file(folder / _FILE))
        parameters = sum(weights.numel() for weights in model.parameters())
        return ReadyScorer(WordsScorer(model, vectors, handle.device), parameters)

    own = training_folder(identity)
    return TrainedOnce(
        training=training,
        folder=own,
        course=own,
        is_there=_is_there,
        write=write,
        load=load,
    )


def _is_there(folder: Path) -> bool:
    try:
        return (folder / _CHECKSUM).read_bytes() == file_sha256(folder / _FILE).encode()
    except OSError:
        return False


def train(training: Training, vectors: WordVectors, kind: type[Network]) -> Network:
    """Train a network by cross-entropy over the choices of each row.

    On a CPU it is a pure function of vectors, rows, options and seed. torch's global random state
    is left as it was.
    """
    options: WordsOptions = training.options
    device = training.model.device
    cuda = [device] if device.type == "cuda" else []
    with single_thread(), torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(training.seed)
        model = kind(vectors.dimensions, options.hidden_units, options.dropout)
        scorer = WordsScorer(model, vectors, device)
        encoded = scorer.encode(training.items)
        model.train()
        learning = ChoiceTraining(
            scorer, encoded, training.items, options, training.seed, LEARNING_RATE
        )
        learning.run(training.progress)
    return model.eval().cpu()
