"""Tiny seeded encoder-decoder models, with tokenizers whose vocabularies are made here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, processors

from tests.evaluation import tiny_masked

SENTINELS = [f"<extra_id_{number}>" for number in range(3)]
T5_SPECIALS = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}


def _unigram(ending: str = "$A </s>", extra: tuple[str, ...] = ()) -> Tokenizer:
    """As T5's: nothing before a text, and ``</s>`` after it."""
    names = {**T5_SPECIALS, "cls_token": "</s>", "sep_token": "</s>"}
    names |= {text: text for text in extra}
    tokenizer = tiny_masked.unigram(names, None, split_at_spaces=True)()
    end = [("</s>", tokenizer.token_to_id("</s>"))]
    tokenizer.post_processor = processors.TemplateProcessing(single=ending, special_tokens=end)
    return tokenizer


def t5() -> Any:
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=_unigram(), **T5_SPECIALS)
    tokenizer.add_special_tokens({"additional_special_tokens": SENTINELS})
    return tokenizer


def mt5() -> Any:
    """Sentinels are ordinary pieces that begin with a space; the added ones were never trained."""
    pieces = tuple(f"▁{sentinel}" for sentinel in SENTINELS)
    backend = _unigram(extra=pieces)
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **T5_SPECIALS)
    tokenizer.add_special_tokens({"additional_special_tokens": SENTINELS})
    return tokenizer


def pegasus() -> Any:
    """No sentinels, and a mask that stands for whole sentences."""
    backend = _unigram(extra=("<mask_2>",))
    specials = {**T5_SPECIALS, "mask_token": "<mask_2>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **specials)


def bart() -> Any:
    backend = tiny_masked.byte_level(tiny_masked.ROBERTA_SPECIALS)()
    specials = {**tiny_masked.ROBERTA_SPECIALS}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **specials)


_BART_SIZES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 128,
    "init_std": 0.3,
}
_T5_SIZES = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "n_positions": 128,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
    "initializer_factor": 1.0,
}


@dataclass(frozen=True)
class Family:
    """How to make a checkpoint of a family."""

    tokenizer: Callable[[], Any]
    config: Callable[[Any], Any]


def _t5_config(kind: Any, **changes: Any) -> Callable[[Any], Any]:
    return lambda tokenizer: kind(vocab_size=len(tokenizer) + 8, **{**_T5_SIZES, **changes})


def _bart_config(kind: Any, start: str) -> Callable[[Any], Any]:
    return lambda tokenizer: kind(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.convert_tokens_to_ids(start),
        **_BART_SIZES,
    )


FAMILIES = {
    "t5": Family(t5, _t5_config(transformers.T5Config, feed_forward_proj="relu")),
    "flan-t5": Family(
        t5,
        _t5_config(
            transformers.T5Config, feed_forward_proj="gated-gelu", tie_word_embeddings=False
        ),
    ),
    "mt5": Family(mt5, _t5_config(transformers.MT5Config)),
    "bart": Family(bart, _bart_config(transformers.BartConfig, "</s>")),
    "pegasus": Family(pegasus, _bart_config(transformers.PegasusConfig, "<pad>")),
}


def write(name: str, folder: Path) -> Path:
    """Write a family's checkpoint into a folder: what ``from_pretrained`` loads."""
    family = FAMILIES[name]
    tokenizer = family.tokenizer()
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    config = family.config(tokenizer)
    transformers.AutoModelForSeq2SeqLM.from_config(config).save_pretrained(folder)
    return folder


def load(folder: Path, dtype: torch.dtype = torch.float32) -> tuple[Any, Any]:
    """Load a checkpoint as a user's is loaded."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype)
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)
