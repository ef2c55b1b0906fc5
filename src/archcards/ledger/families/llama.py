"""Llama and the dense decoders that differ from it in a bias, a norm or a window."""

from ..architecture import Architecture, Reach, Tensor
from ..fields import Fields
from ._blocks import head_norms, rms_norm
from ._decoder import Widths, decoder, reaches, windows

__all__ = ["granite", "llama", "mistral", "phi3", "qwen2", "qwen3"]


def llama(fields: Fields) -> Architecture:
    """Llama 1 to 3 and what shares their fields: gated MLP, two norms, optional biases."""
    return decoder(
        fields,
        bias=fields.flag("attention_bias", False),
        network_bias=fields.flag("mlp_bias", False),
    )


def granite(fields: Fields) -> Architecture:
    """Granite 3, dense: Llama's layer with multipliers, which change no count."""
    return llama(fields)


def mistral(fields: Fields) -> Architecture:
    """Mistral 7B and its successors: Llama's layer, every layer a window unless it is null."""
    return decoder(fields, kv_heads=8, reach=windows(4096))


def phi3(fields: Fields) -> Architecture:
    """Phi-3 and Phi-4: fused projections (the same tensors), a window unless it is null."""
    fields.only("attention_bias", False)
    fields.only("mlp_bias", False)
    fields.only("embd_layer", "default")
    fields.only("lm_head_bias", False)
    fields.only("full_attn_mod", 1)
    fields.skip("interpolate_factor")
    return decoder(fields, reach=windows())


def qwen_windows(fields: Fields, count: int, *, everywhere: bool = False) -> list[Reach]:
    """Qwen's windows: only with `use_sliding_window`, from layer `max_window_layers` on.

    `everywhere`: in all layers, whatever that field says, as in Qwen3 with experts.
    """
    window = fields.maybe("sliding_window", least=0) or None
    first = fields.size("max_window_layers", 28, least=0)
    if fields.nested("dual_chunk_attention_config") is not None:
        fields.note("dual_chunk_attention_config: only how long contexts are read, not counted")
    if not fields.flag("use_sliding_window", False):
        if window is not None:
            fields.note("sliding_window is not used: use_sliding_window is not true")
        window = None
    elif window is None and "sliding_window" not in fields:
        window = 4096
    return reaches(fields, count, window, implied=lambda layer: everywhere or layer >= first)


def qwen2(fields: Fields, *, kv_heads: int = 32, share: bool = False) -> Architecture:
    """Qwen 1.5 to 2.5: biases on query, key and value, none on the output."""
    fields.only("attention_bias", True, because="this family has them on query, key and value")
    fields.only("mlp_bias", False)
    return decoder(
        fields, kv_heads=kv_heads, share=share, reach=qwen_windows, bias=True, output_bias=False
    )


def qwen3(fields: Fields) -> Architecture:
    """Qwen3: query and key norms over the head's width, which is 128 unless told."""
    fields.only("mlp_bias", False)
    return decoder(
        fields,
        head_width=128,
        kv_heads=32,
        reach=qwen_windows,
        bias=fields.flag("attention_bias", False),
        extra=each_head,
    )


def each_head(widths: Widths) -> tuple[Tensor, ...]:
    """Norms of queries and keys, over one head each."""
    return head_norms(widths.width)


def all_heads(widths: Widths) -> tuple[Tensor, ...]:
    """Norms over all query heads, and over all key heads, at once."""
    return rms_norm("query", widths.heads * widths.width) + rms_norm(
        "key", widths.kv_heads * widths.width
    )
