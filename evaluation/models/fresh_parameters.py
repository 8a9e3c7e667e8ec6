"""Heads that a checkpoint does not hold: they must never be scored as if they were trained.

``from_pretrained`` fills what is missing with random numbers and merely warns. Scores of a model
with such a head are noise, and look like any other scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluation.models.capabilities import Head
from kbprobe.errors import UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_SHOWN = 4


def fresh_parameters(loading_info: Mapping[str, Any]) -> list[str]:
    """Name the parameters that loading a checkpoint filled with random numbers.

    Args:
        loading_info: the second result of ``from_pretrained(..., output_loading_info=True)``.
            Its ``missing_keys`` leave out tied weights of which the other end was found, buffers
            that are never stored, and what the architecture itself declares optional.

    Returns:
        Names as in the model's ``state_dict``, sorted: those missing from the checkpoint, and
        those that it holds in another shape.
    """
    mismatched = {name for name, *_ in loading_info.get("mismatched_keys", ())}
    return sorted({*loading_info["missing_keys"], *mismatched})


def refuse_fresh_head(model_id: str, fresh: Sequence[str], head: Head) -> None:
    """Refuse to score with parameters that were never trained.

    Args:
        model_id: the checkpoint, as the user wrote it.
        fresh: from :func:`fresh_parameters`.
        head: the head that it was loaded with.

    Raises:
        UsageError: there are such parameters; it names some, and the remedy.
    """
    used = [name for name in fresh if head.uses_pooler or not _is_pooler(name)]
    if used:
        raise UsageError(
            f"{model_id} has no {head.missing}: {_listed(used)} not in the checkpoint, and random "
            f"numbers in their place would make every score noise. {head.remedy}."
        )


def refuse_fresh_encoder(model_id: str, fresh: Sequence[str], model: PreTrainedModel) -> None:
    """Refuse to fine-tune a network whose encoder, not just its head, is not in the checkpoint.

    Raises:
        UsageError: there are such parameters.
    """
    encoder = f"{model.base_model_prefix}."
    missing = [name for name in fresh if name.startswith(encoder) and not _is_pooler(name)]
    if missing:
        raise UsageError(
            f"{model_id} does not hold the encoder that its configuration describes: "
            f"{_listed(missing)} not in the checkpoint. Check that config.json and the weights "
            "belong together."
        )


def draw_fresh(model: PreTrainedModel, fresh: Sequence[str], seed: int) -> None:
    """Draw parameters again, so that they depend on the seed alone.

    ``from_pretrained`` draws them from torch's global generator, whatever its state. Here
    matrices are normal with the standard deviation that the configuration gives
    (``initializer_range``, 0.02 where it gives none), norms' weights are one, and biases zero, as
    in BERT. Drawn on the CPU, in order of name: equal on every device.

    Args:
        model: changed in place.
        fresh: names of its parameters, from :func:`fresh_parameters`.
        seed: any integer of 0 or more.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    # Some configurations hold None, and Funnel a name of a scheme of its own.
    deviation = getattr(model.config, "initializer_range", None) or 0.02
    with torch.no_grad():
        for name in sorted(fresh):
            parameter = model.get_parameter(name)
            if parameter.dim() > 1:
                drawn = torch.empty(parameter.shape).normal_(0, deviation, generator=generator)
                parameter.copy_(drawn)
            else:
                parameter.fill_(1.0 if name.endswith(".weight") else 0.0)


def _is_pooler(name: str) -> bool:
    return "pooler" in name.split(".")


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - _SHOWN
    more = f" and {rest:,} more" if rest > 0 else ""
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names[:_SHOWN])}{more} {verb}"
