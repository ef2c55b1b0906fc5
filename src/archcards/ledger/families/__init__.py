"""The families that the ledger reads, one small reader each; loaded when first needed."""

from importlib import import_module

__all__ = ["READERS", "reader"]

READERS = {
    "llama": "llama:llama",
    "granite": "llama:granite",
    "mistral": "llama:mistral",
    "phi3": "llama:phi3",
    "qwen2": "llama:qwen2",
    "qwen3": "llama:qwen3",
    "mixtral": "mixtures:mixtral",
    "qwen2_moe": "mixtures:qwen2_moe",
    "qwen3_moe": "mixtures:qwen3_moe",
    "granitemoe": "mixtures:granite_moe",
    "granitemoeshared": "mixtures:granite_moe",
    "minimax_m2": "mixtures:minimax_m2",
    "gpt_oss": "gpt_oss:gpt_oss",
    "gemma": "gemma:gemma",
    "gemma2": "gemma:gemma2",
    "gemma3": "gemma:gemma3",
    "gemma3_text": "gemma:gemma3_text",
    "deepseek_v2": "deepseek:deepseek_v2",
    "deepseek_v3": "deepseek:deepseek_v3",
    "kimi_k2": "deepseek:deepseek_v3",
    "deepseek_v32": "deepseek:deepseek_v32",
    "bert": "encoders:bert",
    "roberta": "encoders:roberta",
    "xlm-roberta": "encoders:roberta",
    "vit": "encoders:vit",
    "deit": "encoders:deit",
    "gpt2": "early:gpt2",
    "opt": "early:opt",
    "bloom": "early:bloom",
    "falcon": "early:falcon",
    "gpt_neox": "early:gpt_neox",
    "t5": "t5:t5",
    "mt5": "t5:mt5",
    "umt5": "t5:umt5",
    "switch_transformers": "t5:switch",
    "mamba": "state_space:mamba",
    "falcon_mamba": "state_space:falcon_mamba",
    "mamba2": "state_space:mamba2",
    "jamba": "hybrids:jamba",
    "zamba": "hybrids:zamba",
    "zamba2": "hybrids:zamba2",
    "nemotron_h": "hybrids:nemotron_h",
    "granitemoehybrid": "hybrids:granite_hybrid",
    "bamba": "hybrids:bamba",
    "recurrent_gemma": "hybrids:recurrent_gemma",
    "qwen3_next": "linear:qwen3_next",
    "qwen3_5": "linear:qwen3_5",
    "qwen3_5_text": "linear:qwen3_5_text",
    "qwen3_5_moe": "linear:qwen3_5_moe",
    "qwen3_5_moe_text": "linear:qwen3_5_moe_text",
    "kimi_linear": "linear:kimi_linear",
    "minimax": "linear:minimax",
    "minimax_text_01": "linear:minimax",
    "minimax_m1": "linear:minimax",
    "llama4": "llama4:llama4",
    "llama4_text": "llama4:llama4_text",
    "gemma4": "gemma4:gemma4",
    "gemma4_text": "gemma4:gemma4_text",
    "deepseek_v4": "deepseek_v4:deepseek_v4",
}


def reader(model_type: str):
    """The function that reads configurations of this type."""
    module, function = READERS[model_type].split(":")
    return getattr(import_module(f".{module}", __name__), function)
