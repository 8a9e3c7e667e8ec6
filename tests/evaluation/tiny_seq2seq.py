"""Tiny seeded encoder-decoder models, with tokenizers whose vocabularies are made here."""

from __future__ import annotations

import json
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


def _unigram(extra: tuple[str, ...] = ()) -> Tokenizer:
    """As T5's: nothing before a text, and ``</s>`` after it."""
    names = {**T5_SPECIALS, "cls_token": "</s>", "sep_token": "</s>"}
    names |= {text: text for text in extra}
    tokenizer = tiny_masked.unigram(names, None, split_at_spaces=True)()
    end = [("</s>", tokenizer.token_to_id("</s>"))]
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=end)
    return tokenizer


def _pieces(backend: Tokenizer) -> list[tuple[str, float]]:
    return [(piece, score) for piece, score in json.loads(backend.to_str())["model"]["vocab"]]


def t5() -> Any:
    return transformers.T5Tokenizer(vocab=_pieces(_unigram()), extra_ids=3)


def mt5() -> Any:
    """Sentinels are ordinary pieces that begin with a space; the added ones were never trained."""
    backend = _unigram(extra=tuple(f"▁{sentinel}" for sentinel in SENTINELS))
    return transformers.T5Tokenizer(vocab=_pieces(backend), extra_ids=3)


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


_ALL = {**_BART_SIZES, "max_encoder_position_embeddings": 128, "attention_window": 8}
_EXPERTS = {"num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2}
_LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 8,
}
_BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}


def _t5gemma(vocabulary: int) -> Any:
    part = {**_LLAMA, "vocab_size": vocabulary, "pad_token_id": 1, "bos_token_id": 2}
    return transformers.T5GemmaConfig(vocab_size=vocabulary, encoder=part, decoder=part)


def _two_berts(vocabulary: int) -> Any:
    encoder = transformers.BertConfig(vocab_size=vocabulary, **_BERT)
    decoder = transformers.BertConfig(
        vocab_size=vocabulary, is_decoder=True, add_cross_attention=True, **_BERT
    )
    return transformers.EncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)


def _fsmt(vocabulary: int) -> Any:
    both = {"src_vocab_size": vocabulary, "tgt_vocab_size": vocabulary, "langs": ["en", "de"]}
    return transformers.FSMTConfig(**both, **_BART_SIZES)


OTHERS: dict[str, Callable[[int], Any]] = {
    "led": lambda size: transformers.LEDConfig(vocab_size=size, **_ALL),
    "m2m_100": lambda size: transformers.M2M100Config(vocab_size=size, **_BART_SIZES),
    "nllb-moe": lambda size: transformers.NllbMoeConfig(vocab_size=size, **_BART_SIZES, **_EXPERTS),
    "fsmt": _fsmt,
    "umt5": lambda size: transformers.UMT5Config(vocab_size=size, **_T5_SIZES),
    "longt5": lambda size: transformers.LongT5Config(vocab_size=size, local_radius=4, **_T5_SIZES),
    "t5gemma": _t5gemma,
    "encoder-decoder": _two_berts,
}
"""Further architectures by model type, with BART's tokenizer, by the size of the vocabulary."""

QUESTION_AGAIN = {"fsmt", "nllb-moe"}
"""Those that read a question again for each choice."""


def other(name: str) -> tuple[Any, Any]:
    """Return a model of a further architecture and its tokenizer."""
    tokenizer = bart()
    config = OTHERS[name](len(tokenizer))
    config.pad_token_id, config.decoder_start_token_id = tokenizer.pad_token_id, 2
    config.bos_token_id, config.eos_token_id = tokenizer.bos_token_id, tokenizer.eos_token_id
    torch.manual_seed(3)
    return transformers.AutoModelForSeq2SeqLM.from_config(config).eval(), tokenizer


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
