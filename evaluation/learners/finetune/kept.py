"""The fine-tuned checkpoint on disk: trained once, found again after a crash, kept if wanted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaluation.items.types import fingerprint
from evaluation.learners.base import Training, training_folder
from evaluation.learners.finetune import RECORD
from evaluation.learners.finetune.networks import Network
from evaluation.learners.finetune.training import finetune
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.loading import (
    load_for_training,
    load_model,
    load_tokenizer,
    refuse_fresh_head,
)
from evaluation.scorers.base import ReadyScorer
from kbprobe.errors import KbprobeError, UsageError
from kbprobe.files import remove_tree, replacing_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@contextmanager
def finetuned(training: Training, network: Network) -> Iterator[ReadyScorer]:
    """Fine-tune a checkpoint, or find it where an interrupted run left it, and load it.

    One process trains; all load what it wrote. When the block ends well, and the checkpoint was
    not to be kept, it is removed: its scores are in the cache.

    Raises:
        UsageError: the checkpoint's encoder is not there, or a head that is not trained from the
            start; or the folder holds something else.
        KbprobeError: training failed, or the result cannot be written.
    """
    model, kept = training.model, training.options.keep_checkpoint
    identity: dict[str, Any] = {
        "learner": network.learner,
        "base": {
            "weights_sha256": model.checkpoint.weights_sha256,
            "tokenizer_sha256": model.checkpoint.tokenizer_sha256,
        },
        "options": training.options.model_dump(mode="json"),
        "seed": training.seed,
        "train_fingerprint": fingerprint(training.items),
    }
    folder = Path(kept) if kept else training_folder(identity)
    began = time.perf_counter()
    if training.workers.leads and not _holds(folder, identity):
        _train(training, network, folder, identity["base"])
    training.workers.wait()
    written = open_checkpoint(str(folder))
    trained = load_model(written, model.device, model.dtype, network.head)
    tokenizer = load_tokenizer(written)
    model.training_seconds += time.perf_counter() - began
    yield ReadyScorer(network.scorer(trained, tokenizer), trained.num_parameters())
    if training.workers.leads and not kept:
        remove_tree(folder)


def keep(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    report: Mapping[str, Any],
    base: Mapping[str, Any],
) -> None:
    """Write the fine-tuned checkpoint, whole or not at all.

    The folder loads through the head's class (``AutoModelForMultipleChoice``,
    ``AutoModelForMaskedLM``) and ``AutoTokenizer`` and gives the same scores, to rounding: weights
    mapped from a file lie otherwise in memory, which decides the order of some sums.
    :data:`RECORD` in it tells how it was made.

    Args:
        model: after :func:`~evaluation.learners.finetune.training.finetune`.
        tokenizer: its tokenizer.
        folder: where to; a checkpoint that was kept there before is replaced.
        report: what ``finetune`` returned.
        base: identifies the checkpoint that the training started from.

    Raises:
        UsageError: the folder holds something else.
        KbprobeError: it cannot be written.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RECORD).is_file():
        raise UsageError(
            f"{folder} is not empty and holds no checkpoint that was kept here before "
            f"(no {RECORD}). Name another folder."
        )
    record = json.dumps({"base": dict(base), **report}, indent=2, sort_keys=True)
    try:
        with replacing_folder(folder) as aside:
            model.save_pretrained(aside)
            tokenizer.save_pretrained(aside)
            (aside / RECORD).write_text(record + "\n", encoding="utf-8")
    except OSError as error:
        raise KbprobeError(
            f"the fine-tuned checkpoint cannot be written to {folder}: {error.strerror or error}"
        ) from error


def _train(training: Training, network: Network, folder: Path, base: Mapping[str, Any]) -> None:
    checkpoint = training.model.checkpoint
    model, fresh = load_for_training(checkpoint, training.model.device, network.head)
    if not network.fresh_head:
        refuse_fresh_head(checkpoint.id, fresh, network.head)
    tokenizer = load_tokenizer(checkpoint)
    report = finetune(
        model,
        tokenizer,
        training.items,
        training.options,
        training.seed,
        training.progress,
        network=network,
        fresh=fresh,
    )
    named: dict[str, Any] = {"id": checkpoint.id, "revision": checkpoint.revision, **base}
    if checkpoint.random_weights is not None:
        named["random_weights"] = checkpoint.random_weights
    keep(model, tokenizer, folder, report, named)


def _holds(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Tell whether a folder holds the checkpoint that this training would lead to."""
    try:
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        record["base"] = {name: record["base"][name] for name in identity["base"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return all(record.get(name) == value for name, value in identity.items())
