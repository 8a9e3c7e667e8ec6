"""The encoder of ``--similarity``: scored as any model is, by the scorer of sentence encoders."""

from __future__ import annotations

from evaluation.models.handle import ModelHandle
from evaluation.options import ModelOptions, RunOptions
from evaluation.scorers.entries import EMBEDDING
from kbprobe.errors import UsageError


def open_encoder(options: RunOptions) -> ModelHandle | None:
    """Open the encoder that similarity is measured by; its weights are loaded later.

    It computes in float32 whatever the model does, so that the baseline is the same for all.

    Returns:
        None where none is named.

    Raises:
        UsageError: there is no such checkpoint, or it gives no vectors.
        KbprobeError: its files cannot be read or fetched.
    """
    if options.similarity is None:
        return None
    own = ModelOptions(device=options.device, dtype="float32")
    handle = ModelHandle(options.similarity, own)
    if EMBEDDING.needs not in handle.checkpoint.capabilities:
        raise UsageError(
            f"--similarity {options.similarity}: this model gives no vectors of texts. Name a "
            "sentence encoder, such as sentence-transformers/all-MiniLM-L6-v2"
        )
    return handle


def encoder_options(encoder: ModelHandle) -> dict[str, str]:
    """Return the options by which an encoder is scored: its own pooling, or the mean."""
    from evaluation.scorers.embedding import saved_pooling

    pooling = saved_pooling(encoder.checkpoint.folder)
    return {} if pooling is None else {"pooling": pooling}
