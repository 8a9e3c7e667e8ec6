"""A transformers model as an encoder of texts: vectors, similarities, fine-tuning on choices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kbprobe.arrays import Floats, Ints
from kbprobe.checkpoint_files import find_checkpoint, tokenizer_files, weights_digest
from kbprobe.checkpoints import FILES, reading
from kbprobe.errors import KbprobeError, UsageError, require

if TYPE_CHECKING:
    import torch

OPTION = "--encoder"
"""The option of the audit that names an encoder."""

BATCH = 64
LONGEST = 256
"""Maximum number of tokens read per text."""

EPOCHS, ROWS, LEARNING_RATE = 2, 16, 5e-5
"""Hyperparameters of fine-tuning; ``ROWS`` is the number of rows in a batch."""


def encode(texts: Sequence[str], name: str, option: str = OPTION) -> npt.NDArray[np.float32]:
    """Return the mean of the last hidden states of each text's tokens, (texts, dimensions).

    Args:
        texts: what to encode.
        name: a folder or an id on the Hub, of any model that ``AutoModel`` loads.
        option: the one that names it, for messages.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        UsageError: the model cannot be loaded, or encodes no texts.
    """
    import torch

    tokenizer, model = _loaded(name, option)
    model.eval()
    vectors = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
    # Texts of similar length are batched together, to reduce padding.
    order = np.argsort([len(text) for text in texts], kind="stable")
    with (
        torch.inference_mode(),
        reading(f"{option} {name} encodes no texts", Path(name), FILES, UsageError),
    ):
        for batch in np.split(order, np.arange(BATCH, order.size, BATCH)):
            some = _pooled(tokenizer, model, [texts[at] for at in batch])
            vectors[batch] = some.cpu().numpy()
    if not np.isfinite(vectors).all():
        raise UsageError(f"{option} {name}: its vectors are not numbers. Get its weights again.")
    return vectors


def encoded_cosines(left: Sequence[str], right: Sequence[str], name: str) -> Floats:
    """Return the cosine of the vectors of each pair of texts; see :func:`encode`."""
    texts = sorted({*left, *right})
    number = {text: index for index, text in enumerate(texts)}
    vectors = encode(texts, name)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    lefts, rights = (vectors[[number[text] for text in side]] for side in (left, right))
    return np.asarray(np.einsum("ij,ij->i", lefts, rights), dtype=np.float64)


def tuned_scores(
    texts: list[str], train: Ints, answer: Ints, scored: Ints, name: str, seed: int
) -> Floats:
    """Fine-tune a whole encoder to distinguish the gold from other choices, without questions.

    A new linear head scores the mean-pooled vector of each choice; the loss is the cross-entropy
    over the choices of a row.

    Args:
        texts: the distinct texts of choices.
        train: (train rows, K) index into ``texts``, or -1.
        answer: (train rows,) the gold's column.
        scored: (scored rows, K) index into ``texts``, or -1.
        name: see :func:`encode`.
        seed: of the new head.

    Returns:
        (scored rows, K), minus infinity where there is no choice.

    Raises:
        MissingDependencyError, UsageError: see :func:`encode`.
    """
    import torch

    tokenizer, model = _loaded(name, OPTION)
    answers = torch.from_numpy(answer).to(model.device)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = torch.nn.Linear(model.config.hidden_size, 1).to(model.device)
        weights = [*model.parameters(), *head.parameters()]
        optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.01)
        steps = EPOCHS * -(-len(train) // ROWS)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
        model.train()
        for epoch in range(EPOCHS):
            order = np.random.default_rng(epoch).permutation(len(train))
            for batch in np.split(order, np.arange(ROWS, order.size, ROWS)):
                scores = _scores(tokenizer, model, head, texts, train[batch])
                loss = torch.nn.functional.cross_entropy(scores, answers[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    model.eval()
    with torch.inference_mode():
        of_rows = [
            _scores(tokenizer, model, head, texts, some).cpu().numpy()
            for some in np.split(scored, np.arange(BATCH, len(scored), BATCH))
        ]
    return np.asarray(np.concatenate(of_rows), dtype=np.float64)


def encoder_digest(name: str, option: str) -> str:
    """Return the digest of an encoder's weights and configuration, as results name them.

    Raises:
        MissingDependencyError: torch or transformers is not installed.
        UsageError: there is no such model.
        KbprobeError: its files cannot be read or fetched.
    """
    _require(option)
    loading = {"trust_remote_code": False}
    try:
        folder, _ = find_checkpoint(name, None, loading)
        if not tokenizer_files(folder):
            raise UsageError(f"no tokenizer in {folder}")
        return weights_digest(name, folder, loading)
    except KbprobeError as error:
        kind = UsageError if isinstance(error, UsageError) else KbprobeError
        raise kind(f"{option} {name}: {error}") from error


def _require(option: str) -> None:
    for package in ("torch", "transformers"):
        require(package, "eval", option)


def _loaded(name: str, option: str) -> tuple[Any, Any]:
    _require(option)
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    with reading(f"{option} {name} cannot be loaded", Path(name), FILES, UsageError):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        model = AutoModel.from_pretrained(name, trust_remote_code=False)
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    tokenizer.padding_side = "right"
    return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu")


def _pooled(tokenizer: Any, model: Any, texts: list[str]) -> torch.Tensor:
    """Return the mean of the last hidden states of each text's tokens, (texts, dimensions)."""
    # Some models count positions from 2.
    positions = getattr(model.config, "max_position_embeddings", None) or LONGEST + 2
    given = tokenizer(
        texts,
        padding=True,
        truncation=True,
        max_length=min(LONGEST, positions - 2),
        return_tensors="pt",
    ).to(model.device)
    states = model(**given).last_hidden_state.float()
    mask = given["attention_mask"][:, :, None]
    pooled: torch.Tensor = (states * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)
    return pooled


def _scores(tokenizer: Any, model: Any, head: Any, texts: list[str], codes: Ints) -> torch.Tensor:
    """Score the choices of some rows, (rows, K); minus infinity if a row has no such choice.

    Each distinct text is read once.
    """
    import torch

    used, local = np.unique(codes[codes >= 0], return_inverse=True)
    of_text = head(_pooled(tokenizer, model, [texts[code] for code in used])).squeeze(1)
    scores = torch.full(codes.shape, -torch.inf, device=of_text.device)
    scores[torch.from_numpy(codes >= 0)] = of_text[torch.from_numpy(local).to(of_text.device)]
    return scores
