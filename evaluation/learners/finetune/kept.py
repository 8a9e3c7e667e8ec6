"""The fine-tuned checkpoint on disk: trained once, found again after a crash, kept if wanted."""

from __future__ import annotations

import json
import pickle  # nosec B403 # for the error that torch.load raises
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from evaluation.content import content_hash, installed_version
from evaluation.items.types import fingerprint
from evaluation.learners.base import Training
from evaluation.learners.entries import RECORD, FinetuneOptions
from evaluation.learners.finetune.training import NETWORKS, Course, Network, finetune
from evaluation.learners.kept import TrainedOnce, training_folder, writing_model
from evaluation.models.checkpoint import open_checkpoint
from evaluation.models.loading import (
    load_for_training,
    load_model,
    load_tokenizer,
    refuse_fresh_head,
)
from evaluation.scorers.base import ReadyScorer
from kbprobe.cli import kbprobe_version
from kbprobe.errors import UsageError
from kbprobe.files import (
    file_sha256,
    find_damage,
    refuse_working_directory,
    remains,
    remove_tree,
    replacing_file,
    sweep,
)
from kbprobe.files.cache import OTHER_CACHE
from kbprobe.files.targets import own_files
from kbprobe.parsing import read_json

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SECONDS = 60.0
"""The least time between two savings."""
TIMES_ITS_COST = 20
"""Minimum wait between two savings, as a multiple of their duration: at most 5% of the time."""
_BYTES_PER_SECOND = 200e6
"""Assumed speed of the disk until the first saving has been timed."""


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


_OPTIMIZER = "optimizer.pt"
"""The file, beside the trained weights, with the state of the optimizer."""


def finetuned(training: Training, learner: str) -> AbstractContextManager[ReadyScorer]:
    """Fine-tune a checkpoint, or find it where an interrupted run left it, and load it.

    With a constant learning rate, more epochs go on from the same training with fewer, where that
    is still there. A training that is interrupted is resumed from the step that was saved last
    (:class:`~evaluation.learners.finetune.kept.Unfinished`). See
    :class:`evaluation.learners.kept.TrainedOnce`; a checkpoint that is to be kept is not removed.

    Raises:
        UsageError: the checkpoint's encoder is not there, or a head that is not trained from the
            start; or the folder holds something else.
        KbprobeError: training failed, or the result cannot be written.
    """
    model, kept = training.model, training.options.keep_checkpoint
    network = NETWORKS[learner]
    identity: dict[str, Any] = {
        "learner": learner,
        "base": {
            "weights_sha256": model.checkpoint.weights_sha256,
            "tokenizer_sha256": model.checkpoint.tokenizer_sha256,
        },
        "options": training.options.model_dump(mode="json"),
        "seed": training.seed,
        "train_fingerprint": fingerprint(training.items),
    }
    if training.first:
        identity["first_fingerprint"] = fingerprint(training.first)
        identity["first_seed"] = training.first_seed
    # Where the environment is another one, so are the weights.
    own = course_folder(
        {**identity, "environment": _environment(training.model.device)}, training.options
    )
    unfinished = Unfinished(own.with_name(f"{own.name}-unfinished.pt"))

    def load(folder: Path) -> ReadyScorer:
        written = open_checkpoint(str(folder))
        trained = load_model(written, model.device, model.dtype, network.head)
        scorer = network.scorer(trained, load_tokenizer(written))
        return ReadyScorer(scorer, trained.num_parameters())

    def remove(_: Path) -> None:
        unfinished.remove()
        # Those with fewer epochs too, which an interrupted run may have left.
        for epochs in () if kept else range(1, training.options.epochs + 1):
            remove_tree(own.with_name(f"epochs-{epochs}"))
        sweep(own.parent)  # what a killed process had begun to write
        with suppress(OSError):  # One with more epochs is held, or there is none.
            own.parent.rmdir()

    return TrainedOnce(
        training=training,
        folder=Path(kept) if kept else own,
        course=own.parent,
        is_there=lambda folder: _holds(folder, identity),
        write=lambda folder: _train(training, network, folder, identity, own.parent, unfinished),
        load=load,
        remove=remove,
    )


def course_folder(identity: Mapping[str, Any], options: FinetuneOptions) -> Path:
    """Return where a trained model is kept: beside those of the same course with other epochs.

    A falling learning rate ends with the last epoch: then the epochs are part of the course.
    """
    shared = dict(identity["options"])
    if options.settings.schedule == "constant":
        del shared["epochs"]
    return training_folder({**identity, "options": shared}) / f"epochs-{options.epochs}"


def keep(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    report: Mapping[str, Any],
    base: Mapping[str, Any],
    course: Course | None = None,
    remedy: str = OTHER_CACHE,
) -> None:
    """Write the fine-tuned checkpoint, whole or not at all, in place of an earlier one.

    A longer training can go on from the course, if one is given. ``report`` is what `finetune`
    returned, and ``base`` identifies the checkpoint that the training started from.

    The folder loads through the head's class (``AutoModelForMultipleChoice``,
    ``AutoModelForMaskedLM``, ``AutoModelForSequenceClassification``) and ``AutoTokenizer`` and
    gives the same scores, to rounding: weights mapped from a file lie otherwise in memory, which
    decides the order of some sums.
    :data:`RECORD` in it tells how it was made.

    Raises:
        UsageError: the folder holds something else.
        KbprobeError: it cannot be written.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / RECORD).is_file():
        raise UsageError(
            f"{folder} is not empty and holds no checkpoint that was kept here before "
            f"(no {RECORD}). Name another folder."
        )
    record = {"base": dict(base), **report}
    ours = None if remedy == OTHER_CACHE else own_files(folder, RECORD)
    with writing_model(folder, remedy, ours) as aside:
        model.save_pretrained(aside)
        tokenizer.save_pretrained(aside)
        if course is not None:
            torch.save(course.optimizer, aside / _OPTIMIZER)
        # The folder's lock is hidden.
        names = sorted(path.name for path in aside.iterdir() if not path.name.startswith("."))
        files = {name: file_sha256(aside / name) for name in names}
        text = json.dumps({**record, "files": files}, indent=2, sort_keys=True)
        (aside / RECORD).write_text(text + "\n", encoding="utf-8", newline="\n")


def _train(
    training: Training,
    network: Network,
    folder: Path,
    identity: Mapping[str, Any],
    courses: Path,
    unfinished: Unfinished,
) -> None:
    refuse_working_directory(folder)  # before hours of training
    checkpoint, base = training.model.checkpoint, identity["base"]
    course, earlier = unfinished.read(), None
    if course is None and training.options.settings.schedule == "constant":
        earlier = _earlier(courses, identity)
    start = checkpoint if earlier is None else open_checkpoint(str(earlier))
    start = network.configured(start, training.items, training.options)
    model, fresh = load_for_training(start, training.model.device, network.head)
    if not network.fresh_head:
        refuse_fresh_head(checkpoint.id, fresh, network.head)
    tokenizer = load_tokenizer(start)
    learnt: dict[str, Any] = {}
    if training.first:
        names = ("first_fingerprint", "first_seed")
        learnt = {"first_rows": len(training.first), **{name: identity[name] for name in names}}
        if course is None and earlier is None:
            _learn_first(training, network, model, tokenizer, identity, fresh)
            learnt["fresh"], fresh = list(fresh), []
    if course is None:
        course = Course() if earlier is None else _course(earlier)
    report = finetune(
        model,
        tokenizer,
        training.items,
        training.options,
        training.seed,
        training.progress,
        network=network,
        fresh=fresh,
        course=course,
        saving=unfinished.after_step,
    )
    report |= learnt
    named: dict[str, Any] = {"id": checkpoint.id, "revision": checkpoint.revision, **base}
    if checkpoint.random_weights is not None:
        named["random_weights"] = checkpoint.random_weights
    continued = (
        training.options.settings.schedule == "constant" and not training.options.keep_checkpoint
    )
    chosen = training.options.keep_checkpoint
    remedy = "Name another folder with --keep-checkpoint." if chosen else OTHER_CACHE
    keep(model, tokenizer, folder, report, named, course if continued else None, remedy)
    unfinished.remove()


_LEARNT: dict[str, dict[str, torch.Tensor]] = {}
"""The weights of the model that has learnt something before its rows last, by their hash."""


def _learn_first(
    training: Training,
    network: Network,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    identity: Mapping[str, Any],
    fresh: Sequence[str],
) -> None:
    """Train a model on what comes before its rows, which all draws of these have in common."""
    of_rows = ("train_fingerprint", "seed")
    shared = {name: value for name, value in identity.items() if name not in of_rows}
    key = content_hash({**shared, "environment": _environment(training.model.device)})
    if key in _LEARNT:
        model.float()
        model.load_state_dict(_LEARNT[key])
        return
    finetune(
        model,
        tokenizer,
        training.first,
        training.options,
        training.first_seed,
        training.progress,
        network=network,
        fresh=fresh,
    )
    _LEARNT.clear()  # those of one model are enough
    _LEARNT[key] = {name: value.cpu().clone() for name, value in model.state_dict().items()}


def _earlier(courses: Path, identity: Mapping[str, Any]) -> Path | None:
    """Return the training with the most epochs, of those that this one would go on from."""
    options = identity["options"]
    for epochs in range(options["epochs"] - 1, 0, -1):
        folder = courses / f"epochs-{epochs}"
        if (folder / _OPTIMIZER).is_file() and _holds(
            folder, {**identity, "options": {**options, "epochs": epochs}}
        ):
            return folder
    return None


def _course(folder: Path) -> Course:
    record = read_json(folder / RECORD)
    optimizer = torch.load(folder / _OPTIMIZER, weights_only=True)
    epochs = record["options"]["epochs"]
    return Course(record["losses"], optimizer, continued_after=epochs)


def _environment(device: torch.device) -> dict[str, Any]:
    """Return what decides a training's weights besides its identity."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "threads": torch.get_num_threads(),
        "kbprobe": kbprobe_version(),
        **{name: installed_version(name) for name in ("torch", "transformers")},
    }


def _holds(folder: Path, identity: Mapping[str, Any]) -> bool:
    """Return whether a folder holds, undamaged, the checkpoint that this training would lead to."""
    try:
        record = read_json(folder / RECORD)
        record["base"] = {name: record["base"][name] for name in identity["base"]}
        # Records of before 0.2 have no checksums.
        files = {name: (str(sha256), None) for name, sha256 in record.get("files", {}).items()}
    except (OSError, UsageError, KeyError, TypeError, AttributeError):
        return False
    wanted = all(record.get(name) == value for name, value in identity.items())
    return wanted and not find_damage(folder, files)
