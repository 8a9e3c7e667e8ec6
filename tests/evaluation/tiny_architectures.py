"""Tiny seeded causal LMs of every architecture that docs/models.md lists, made by model type."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from evaluation.scorers.causal.forward import Sharing
from tests.evaluation import tiny_masked
from tests.evaluation.tiny_causal import GPT2_SPECIALS, byte_level

_SIZES: dict[str, Any] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "word_embed_proj_dim", "lru_width"), 32),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads"), 4),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len"), 128),
    **dict.fromkeys(("intermediate_size", "ffn_dim"), 48),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts"), 4),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    **dict.fromkeys(("sliding_window", "attention_window_size"), 24),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "v_head_dim", "state_size"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim", "rotary_dim", "mamba_n_heads"), 4),
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), 0),
    "num_key_value_heads": 2,
    "head_dim": 8,
    "num_experts_per_tok": 2,
    "mamba_d_state": 8,
    "mamba_expand": 2,
    "mamba_d_head": 16,
    # Wider than usual: tokens that wrongly see one another then show in the scores.
    "initializer_range": 0.3,
}
"""What small models of any type are like, as far as their configurations have it."""

CAUSAL: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1], "mamba_n_groups": 1},
    "biogpt": {},
    "bloom": {},
    "codegen": {},
    "cohere": {},
    "ctrl": {},
    "deepseek_v3": {
        "head_dim": None, "num_key_value_heads": 4, "n_group": 1, "topk_group": 1,
        "first_k_dense_replace": 1, "n_shared_experts": 1,
    },
    "falcon": {"head_dim": None},
    "falcon_h1": {"mamba_n_groups": 1, "mamba_d_ssm": 64},
    "falcon_mamba": {"use_mambapy": False},
    "gemma": {},
    "gemma2": {},
    "gemma3_text": {},
    "gpt2": {},
    "gpt_neo": {
        "num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]],
        "window_size": 24,
    },
    "gpt_neox": {},
    "gpt_oss": {"layer_types": ["sliding_attention", "full_attention"]},
    "gptj": {},
    "granitemoehybrid": {
        "layer_types": ["mamba", "attention"], "mamba_n_groups": 1, "shared_intermediate_size": 16,
    },
    "jamba": {
        "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
        "expert_layer_offset": 1, "num_experts": 2, "num_experts_per_tok": 1,
        "use_mamba_kernels": False,
    },
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "llama": {},
    "mamba": {},
    "mamba2": {"num_heads": 4, "head_dim": 16, "n_groups": 1},
    "mistral": {},
    "mixtral": {},
    "mpt": {},
    "olmo2": {},
    "olmoe": {},
    "opt": {},
    "phi": {},
    "phi3": {},
    "qwen2": {},
    "qwen2_moe": {},
    "qwen3": {},
    "qwen3_next": {
        "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2,
        "linear_num_value_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
    },
    "recurrent_gemma": {
        "num_hidden_layers": 3, "block_types": ("recurrent", "recurrent", "attention"),
    },
    "rwkv": {"context_length": 128},
    "smollm3": {},
    "stablelm": {},
    "starcoder2": {},
    "xglm": {},
    "zamba2": {
        "layers_block_type": ["mamba", "hybrid"], "n_mamba_heads": 4, "mamba_ngroups": 1,
        "mamba_headdim": 16, "num_mem_blocks": 1, "attention_hidden_size": 64,
        "attention_head_dim": 16,
    },
}  # fmt: skip
"""Model types, and what else their configurations need to be small; None: leave it out."""

STATE_COPIED = frozenset(
    {
        "bamba", "bloom", "falcon_h1", "falcon_mamba", "granitemoehybrid", "jamba", "lfm2",
        "mamba", "mamba2", "mpt", "qwen3_next",
    }
)  # fmt: skip
"""Those whose state after the question is copied for each choice: their scores depend on the order
of tokens, not on the positions and the mask that they are given."""
QUESTION_AGAIN = frozenset({"recurrent_gemma", "rwkv", "zamba2"})
"""Those whose state cannot be copied, and which read the question again."""


def sharing(model_type: str) -> Sharing:
    """Return how a model of a type reads questions."""
    if model_type in QUESTION_AGAIN:
        return Sharing.NONE
    return Sharing.STATE if model_type in STATE_COPIED else Sharing.MASK


def make(model_type: str) -> tuple[Any, Any]:
    """Return a model of a type and its tokenizer."""
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level(), **GPT2_SPECIALS)
    kind = type(transformers.AutoConfig.for_model(model_type))
    usual = kind()
    given = {name: value for name, value in _SIZES.items() if hasattr(usual, name)}
    given |= {"vocab_size": len(tokenizer), **CAUSAL.get(model_type, {})}
    torch.manual_seed(3)
    config = kind(**{name: value for name, value in given.items() if value is not None})
    return transformers.AutoModelForCausalLM.from_config(config).eval(), tokenizer


def roberta_decoder() -> tuple[Any, Any]:
    """Return RoBERTa as a causal LM, whose positions start after the padding token's, and whose
    tokenizer ends every text with ``</s>``."""
    specials = tiny_masked.ROBERTA_SPECIALS
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tiny_masked.byte_level(specials)(), **specials
    )
    torch.manual_seed(3)
    config = transformers.RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=66,
        is_decoder=True,
        initializer_range=0.3,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return transformers.RobertaForCausalLM(config).eval(), tokenizer
