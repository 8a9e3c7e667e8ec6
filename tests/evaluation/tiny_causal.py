"""Tiny seeded causal LMs of several families, with tokenizers trained here on a few lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    pre_tokenizers,
    processors,
    trainers,
)

TEXT = """
A dog is a kind of animal. A cat is an animal too, and a mouse is a rodent.
The word "dog" means a domestic animal; the word "run" means to move fast.
The capital of a country is the city where its government meets.
A robin can fly. A penguin cannot fly, but it swims well: always, never, often or rarely.
Question: What is a vehicle? A. a car B. a bus C. a truck Answer: A
"""
CHAT_TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}>{{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>\n{% endif %}"
)


def byte_level() -> Tokenizer:
    """As GPT-2's: bytes, and a space belongs to the word that follows it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    return tokenizer


def sentencepiece() -> Tokenizer:
    """As Llama's: a space before the text, bytes for what is unknown, ``<s>`` before all."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    return tokenizer


@dataclass(frozen=True)
class Family:
    """How to make a checkpoint of a family."""

    tokenizer: Callable[[], Tokenizer]
    specials: dict[str, str]
    config: Callable[[int], Any]
    attention: str | None = None


GPT2_SPECIALS = {key: "<|endoftext|>" for key in ("bos_token", "eos_token")}
LLAMA_SPECIALS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}

_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_WIDE = {"initializer_range": 0.3}
"""Wider than usual: tokens that wrongly see one another then show in the scores."""
_LLAMA_SIZES = {**_SIZES, **_WIDE, "intermediate_size": 48, "num_key_value_heads": 2}
_ENDS = {"bos_token_id": 1, "eos_token_id": 2}
_START = {"bos_token_id": 0, "eos_token_id": 0}


def _gemma2(vocabulary: int) -> Any:
    return transformers.Gemma2Config(
        vocab_size=vocabulary,
        max_position_embeddings=128,
        head_dim=8,
        sliding_window=40,
        final_logit_softcapping=2.0,
        attn_logit_softcapping=3.0,
        query_pre_attn_scalar=8,
        **_LLAMA_SIZES,
        **_ENDS,
    )


FAMILIES = {
    "gpt2": Family(
        byte_level,
        GPT2_SPECIALS,
        lambda vocabulary: transformers.GPT2Config(
            vocab_size=vocabulary,
            n_positions=128,
            n_embd=32,
            n_layer=2,
            n_head=4,
            **_START,
            **_WIDE,
        ),
    ),
    "gpt-neo": Family(
        byte_level,
        GPT2_SPECIALS,
        lambda vocabulary: transformers.GPTNeoConfig(
            vocab_size=vocabulary,
            max_position_embeddings=128,
            hidden_size=32,
            num_layers=2,
            num_heads=4,
            attention_types=[[["global", "local"], 1]],
            window_size=32,
            **_START,
            **_WIDE,
        ),
    ),
    "llama": Family(
        sentencepiece,
        LLAMA_SPECIALS,
        lambda vocabulary: transformers.LlamaConfig(
            vocab_size=vocabulary, max_position_embeddings=128, **_LLAMA_SIZES, **_ENDS
        ),
    ),
    "mistral": Family(
        sentencepiece,
        LLAMA_SPECIALS,
        lambda vocabulary: transformers.MistralConfig(
            vocab_size=vocabulary,
            max_position_embeddings=128,
            sliding_window=24,
            **_LLAMA_SIZES,
            **_ENDS,
        ),
    ),
    "gemma2": Family(sentencepiece, LLAMA_SPECIALS, _gemma2, attention="eager"),
    "bloom": Family(
        byte_level,
        GPT2_SPECIALS,
        lambda vocabulary: transformers.BloomConfig(
            vocab_size=vocabulary, hidden_size=32, n_layer=2, n_head=4, **_START, **_WIDE
        ),
    ),
    "mamba": Family(
        byte_level,
        GPT2_SPECIALS,
        lambda vocabulary: transformers.MambaConfig(
            vocab_size=vocabulary,
            hidden_size=32,
            num_hidden_layers=2,
            state_size=8,
            **_START,
            **_WIDE,
        ),
    ),
}


def write(name: str, folder: Path, *, chat_template: str | None = None) -> Path:
    """Write a family's checkpoint into a folder: what ``from_pretrained`` loads."""
    family = FAMILIES[name]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=family.tokenizer(), **family.specials
    )
    tokenizer.chat_template = chat_template
    tokenizer.save_pretrained(folder)
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(family.config(len(tokenizer)))
    model.save_pretrained(folder)
    return folder


def write_slow(folder: Path) -> Path:
    """Write a checkpoint whose tokenizer has no fast version: CTRL's, letter by letter."""
    letters = sorted(set(TEXT) - {" ", "\n"})
    pieces = ["<unk>", *letters, *(f"{letter}@@" for letter in letters)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({piece: n for n, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\n\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "CTRLTokenizer"}')
    torch.manual_seed(3)
    config = FAMILIES["gpt2"].config(len(pieces))
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def load(name: str, folder: Path) -> tuple[Any, Any]:
    """Load a checkpoint as a user's is loaded."""
    attention = FAMILIES[name].attention
    options = {"attn_implementation": attention} if attention else {}
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, **options
    )
    return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)
