"""Llama and the dense decoders that differ from it in a bias, a norm or a window."""

from ..architecture import Architecture, Layer, Reach
from ..fields import Fields
from ._blocks import attention, dense, gated, rms_norm
from ._decoder import FULL, assemble, head_widths, reaches, tied_table

__all__ = ["granite", "llama", "mistral", "phi3", "qwen2", "qwen3"]


def pre_norms(hidden: int) -> tuple:
    """The two norms of a pre-norm layer."""
    return rms_norm("attention", hidden) + rms_norm("feed-forward", hidden)


def _dense(
    fields: Fields,
    hidden: int,
    windows: list[Reach],
    *,
    tied: bool = False,
    mlp_bias: bool = False,
    **blocks,
) -> Architecture:
    inner = fields.size("intermediate_size")
    network = dense(gated(hidden, inner, mlp_bias))
    layers = [
        Layer((attention(hidden, reach=reach, **blocks),), (network,), pre_norms(hidden))
        for reach in windows
    ]
    return assemble(
        fields,
        layers=layers,
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, tied),
        final=rms_norm("final", hidden),
    )


def llama(fields: Fields) -> Architecture:
    """Llama 1 to 3 and what shares their fields: gated MLP, two norms, optional biases."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden)
    bias, mlp_bias = fields.flag("attention_bias", False), fields.flag("mlp_bias", False)
    return _dense(
        fields,
        hidden,
        [FULL] * count,
        mlp_bias=mlp_bias,
        heads=widths.heads,
        kv_heads=widths.kv_heads,
        key_width=widths.width,
        bias=bias,
    )


def granite(fields: Fields) -> Architecture:
    """Granite 3, dense: Llama's layer with multipliers, which change no count."""
    return llama(fields)


def mistral(fields: Fields) -> Architecture:
    """Mistral 7B and its successors: Llama's layer, every layer a window unless it is null."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    window = _window(fields, default=4096)
    return _dense(
        fields,
        hidden,
        reaches(fields, count, window, implied=lambda layer: True),
        heads=widths.heads,
        kv_heads=widths.kv_heads,
        key_width=widths.width,
    )


def _window(fields: Fields, default: int | None = None) -> int | None:
    if "sliding_window" not in fields and default is not None:
        fields.note(f"sliding_window absent: the family's default, {default}")
        return default
    return fields.maybe("sliding_window")


def phi3(fields: Fields) -> Architecture:
    """Phi-3 and Phi-4: fused projections (the same tensors), a window unless it is null."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden)
    fields.only("attention_bias", False)
    fields.only("mlp_bias", False)
    fields.only("embd_layer", "default")
    fields.only("lm_head_bias", False)
    fields.only("full_attn_mod", 1)
    fields.skip("interpolate_factor")
    return _dense(
        fields,
        hidden,
        reaches(fields, count, _window(fields), implied=lambda layer: True),
        heads=widths.heads,
        kv_heads=widths.kv_heads,
        key_width=widths.width,
    )


def qwen_windows(fields: Fields, count: int) -> list[Reach]:
    """Qwen's windows: only with `use_sliding_window`, from layer `max_window_layers` on."""
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
    return reaches(fields, count, window, implied=lambda layer: layer >= first)


def qwen2(fields: Fields) -> Architecture:
    """Qwen 1.5 to 2.5: biases on query, key and value, none on the output."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden)
    fields.only("attention_bias", True, because="this family has them on query, key and value")
    fields.only("mlp_bias", False)
    return _dense(
        fields,
        hidden,
        qwen_windows(fields, count),
        heads=widths.heads,
        kv_heads=widths.kv_heads,
        key_width=widths.width,
        bias=True,
        output_bias=False,
    )


def qwen3(fields: Fields) -> Architecture:
    """Qwen3: query and key norms over the head's width, which is 128 unless told."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, default=128)
    fields.only("mlp_bias", False)
    return _dense(
        fields,
        hidden,
        qwen_windows(fields, count),
        heads=widths.heads,
        kv_heads=widths.kv_heads,
        key_width=widths.width,
        bias=fields.flag("attention_bias", False),
        extra=head_norms(widths.width),
    )


def head_norms(width: int) -> tuple:
    """Norms of queries and keys over one head's width, shared by the heads."""
    return rms_norm("query", width) + rms_norm("key", width)
