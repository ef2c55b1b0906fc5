"""GLM-4.5 and dots.llm1: grouped heads, first layers dense, a shared expert, grouped routing."""

from ..architecture import Architecture, Experts, Layer, Reach
from ..fields import Fields
from ._blocks import attention, head_norms, pre_norms, rms_norm
from ._decoder import FULL, Widths, assemble, head_widths, reaches, tied_table
from .deepseek import mixed_feed_forward, prediction
from .gemma import pattern
from .mixtures import chosen

__all__ = ["dots1", "exaone_moe", "first_dense", "glm4_moe"]


def first_dense(
    fields: Fields,
    hidden: int,
    widths: Widths,
    windows: list[Reach],
    *,
    dense_first: int,
    head_norm: bool,
    bias: bool,
    output_bias: bool,
    shared_default: int = 0,
) -> Architecture:
    """A decoder whose first layers are dense and whose others are mixtures with shared experts."""
    layers = len(windows)
    count = fields.size(fields.first("n_routed_experts", "num_experts", "num_local_experts"))
    fields.skip("n_group", "topk_group", "num_experts_per_token")
    parts, mixture = mixed_feed_forward(
        fields,
        hidden,
        layers,
        count=count,
        taken=chosen(fields, "num_experts_per_tok", count),
        dense_first=dense_first,
        inner=fields.size("moe_intermediate_size"),
        shared=fields.size(
            fields.first("n_shared_experts", "num_shared_experts"), shared_default, least=0, null=0
        ),
        dense_inner=fields.maybe("intermediate_size"),
    )
    extra = head_norms(widths.width) if head_norm else ()
    mixers = [
        attention(
            hidden,
            widths.heads,
            widths.kv_heads,
            widths.width,
            bias=bias,
            output_bias=output_bias,
            extra=extra,
            reach=reach,
        )
        for reach in windows
    ]
    modules = fields.size(
        fields.first("num_nextn_predict_layers", "num_mtp_layers"), 0, least=0, most=64
    )
    norms = pre_norms(hidden)
    return assemble(
        fields,
        layers=[Layer((mixer,), (part,), norms) for mixer, part in zip(mixers, parts, strict=True)],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
        multi_token_prediction=prediction(hidden, Layer((mixers[-1],), (mixture,), norms), modules),
    )


def glm4_moe(fields: Fields) -> Architecture:
    """GLM-4.5, 4.6 and 4.7: biases on query, key and value if asked, head norms if asked."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    return first_dense(
        fields,
        hidden,
        widths,
        [FULL] * layers,
        dense_first=1,
        shared_default=1,
        head_norm=fields.flag("use_qk_norm", False),
        bias=fields.flag("attention_bias", False),
        output_bias=False,
    )


def dots1(fields: Fields) -> Architecture:
    """dots.llm1: head norms; windows only where the file lists them."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=32)
    window = 4096 if "sliding_window" not in fields else fields.maybe("sliding_window")
    first = fields.size("max_window_layers", 62, least=0)
    if fields.values.get("use_sliding_window") is False:
        window = None
    fields.skip("use_sliding_window")
    fields.only("use_qk_norm", True)
    windows = reaches(fields, layers, window, implied=lambda layer: layer >= first)
    bias = fields.flag("attention_bias", False)
    return first_dense(
        fields, hidden, widths, windows, dense_first=0, head_norm=True, bias=bias, output_bias=bias
    )


def exaone_moe(fields: Fields) -> Architecture:
    """K-EXAONE: head norms, three window layers to a full one."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=32)
    window = (
        4096 if "sliding_window" not in fields else fields.maybe("sliding_window", least=0) or None
    )
    implied = None if window is None else pattern(fields, "sliding_window_pattern", 4)
    fields.skip("sliding_window_pattern")
    windows = reaches(fields, layers, window, implied=implied)
    found = first_dense(
        fields,
        hidden,
        widths,
        windows,
        dense_first=1,
        head_norm=True,
        bias=False,
        output_bias=False,
        shared_default=1,
    )
    mixed = [isinstance(layer.feed_forward, Experts) for layer in found.layers]
    if fields.items("is_moe_layer") not in (None, mixed):
        raise fields.refuse("is_moe_layer", "the layers that first_k_dense_replace names")
    return found
