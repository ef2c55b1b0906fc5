"""Linear-attention hybrids: Qwen3-Next, Qwen3.5, Kimi Linear, MiniMax-01."""

from collections.abc import Callable

from ..architecture import Architecture, Attention, Layer, Module, Recurrence
from ..fields import Fields
from ._blocks import attention, dense, experts, gated, head_norms, linear, pre_norms, rms_norm
from ._decoder import assemble, head_widths, tied_table
from ._recurrences import gated_delta, kimi_delta, lightning
from .deepseek import latent, mixed_feed_forward
from .mixtures import chosen, sparse_layers

__all__ = ["kimi_linear", "minimax", "qwen3_5_moe_text", "qwen3_5_text", "qwen3_next"]

KINDS = ("linear_attention", "full_attention")


def _interval(fields: Fields, layers: int, default: int = 4) -> list[str]:
    every = fields.size("full_attention_interval", default)
    return fields.kinds("layer_types", layers, KINDS) or [
        "linear_attention" if (layer + 1) % every else "full_attention" for layer in range(layers)
    ]


def _qwen_mixers(
    fields: Fields, hidden: int, kv_heads: int
) -> tuple[Attention, Recurrence]:
    widths = head_widths(fields, hidden, default=256, kv_default=kv_heads)
    fields.only("attn_output_gate", True)
    reads = attention(
        hidden,
        widths.heads,
        widths.kv_heads,
        widths.width,
        gate=True,
        bias=fields.flag("attention_bias", False),
        extra=head_norms(widths.width),
    )
    keys, values = fields.size("linear_num_key_heads"), fields.size("linear_num_value_heads")
    fields.divides("linear_num_key_heads", keys, values, "linear_num_value_heads")
    recurrent = gated_delta(
        hidden,
        keys,
        values,
        fields.size("linear_key_head_dim"),
        fields.size("linear_value_head_dim"),
        fields.size("linear_conv_kernel_dim", 4),
    )
    return reads, recurrent


def _qwen_moe(fields: Fields, hidden: int):
    count = fields.size(fields.first("num_experts", "num_local_experts"))
    return experts(
        hidden,
        fields.size("moe_intermediate_size"),
        count,
        chosen(fields, "num_experts_per_tok", count),
        shared=fields.size("shared_expert_intermediate_size"),
        shared_gate=True,
    )


def qwen3_next(fields: Fields) -> Architecture:
    """Qwen3-Next: three gated-delta layers to one of gated attention; experts throughout."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    kinds = _interval(fields, layers)
    reads, recurrent = _qwen_mixers(fields, hidden, 2)
    inner = fields.maybe("intermediate_size")
    parts = sparse_layers(
        fields, layers, _qwen_moe(fields, hidden), dense(gated(hidden, inner)) if inner else None
    )
    fields.only("use_sliding_window", False)
    fields.skip("sliding_window")
    return assemble(
        fields,
        layers=[
            Layer((reads if kind == "full_attention" else recurrent,), (part,), pre_norms(hidden))
            for kind, part in zip(kinds, parts, strict=True)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )


def _qwen3_5_text(fields: Fields, part: Callable, kv_heads: int) -> Architecture:
    hidden, layers = fields.size("hidden_size"), fields.layers()
    kinds = _interval(fields, layers)
    reads, recurrent = _qwen_mixers(fields, hidden, kv_heads)
    network = part(fields, hidden)
    if fields.items("mlp_only_layers"):
        raise fields.refuse("mlp_only_layers", "an empty list")
    fields.skip("mamba_ssm_dtype", "mlp_only_layers")
    fields.only("mtp_use_dedicated_embeddings", False)
    modules = fields.size("mtp_num_hidden_layers", 0, least=0, most=64)
    norms = pre_norms(hidden)
    prediction = ()
    if modules:
        others = (
            rms_norm("embedding", hidden)
            + rms_norm("hidden", hidden)
            + linear("projection", 2 * hidden, hidden)
            + rms_norm("head", hidden)
        )
        prediction = (Module((Layer((reads,), (network,), norms),) * modules, others),)
    return assemble(
        fields,
        layers=[
            Layer((reads if kind == "full_attention" else recurrent,), (network,), norms)
            for kind in kinds
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
        multi_token_prediction=prediction,
    )


def _dense(fields: Fields, hidden: int):
    return dense(gated(hidden, fields.size("intermediate_size")))


def _experts(fields: Fields, hidden: int):
    fields.skip("intermediate_size", "decoder_sparse_step")
    return _qwen_moe(fields, hidden)


def qwen3_5_text(fields: Fields) -> Architecture:
    """Qwen3.5's text model, dense."""
    return _qwen3_5_text(fields, _dense, 4)


def qwen3_5_moe_text(fields: Fields) -> Architecture:
    """Qwen3.5's text model with experts."""
    return _qwen3_5_text(fields, _experts, 2)


def kimi_linear(fields: Fields) -> Architecture:
    """Kimi Linear: Kimi Delta Attention, and in every fourth layer latent attention."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    heads = fields.size("num_attention_heads")
    fields.skip("num_key_value_heads", "head_dim", "mla_use_nope", "qk_head_dim")
    reads = latent(fields, hidden, heads, bias=fields.flag("attention_bias", False))
    fields.only("tie_word_embeddings", False)
    options = fields.nested("linear_attn_config")
    kinds = fields.kinds("layer_types", layers, KINDS)
    if options is not None:
        number, width = options.size("num_heads"), options.size("head_dim")
        kernel = options.size("short_conv_kernel_size", 4)
        full = options.sizes("full_attn_layers", least=1, most=layers)
        delta = options.sizes("kda_layers", least=1, most=layers)
        options.finish()
        if full is not None:
            if delta is not None and sorted(full + delta) != list(range(1, layers + 1)):
                raise options.refuse(
                    "kda_layers", "with full_attn_layers each layer once, counted from 1"
                )
            implied = [
                "full_attention" if i + 1 in full else "linear_attention" for i in range(layers)
            ]
            if kinds is not None and kinds != implied:
                raise fields.refuse("layer_types", "the layers that linear_attn_config names")
            kinds = implied
    else:
        number, width = fields.size("linear_num_heads"), fields.size("linear_head_dim")
        kernel = fields.size("linear_conv_kernel_dim", 4)
    if kinds is None:
        raise fields.refuse("layer_types", "the kind of each layer, here or in linear_attn_config")
    recurrent = kimi_delta(hidden, number, width, kernel)
    count = fields.size(fields.first("num_experts", "num_local_experts", "n_routed_experts"))
    parts, _ = mixed_feed_forward(
        fields,
        hidden,
        layers,
        count=count,
        taken=chosen(fields, fields.first("num_experts_per_token", "num_experts_per_tok"), count),
        dense_first=1,
        shared=fields.size(fields.first("num_shared_experts", "n_shared_experts"), 1, least=0),
        inner=fields.size("moe_intermediate_size"),
        dense_inner=fields.maybe("intermediate_size"),
    )
    fields.only("num_nextn_predict_layers", 0)
    fields.skip("use_grouped_topk", "model_max_length")
    return assemble(
        fields,
        layers=[
            Layer((reads if kind == "full_attention" else recurrent,), (part,), pre_norms(hidden))
            for kind, part in zip(kinds, parts, strict=True)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=False,
        final=rms_norm("final", hidden),
        trained_length="model_max_length",
    )


def minimax(fields: Fields) -> Architecture:
    """MiniMax-01 and M1: seven lightning layers to one of softmax attention; experts throughout."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    kinds = fields.kinds("layer_types", layers, KINDS)
    # The files of the original code say 0 for a lightning layer and 1 for softmax attention.
    types = fields.sizes("attn_type_list", layers, most=1)
    if types is not None:
        implied = [KINDS[kind] for kind in types]
        if kinds is not None and kinds != implied:
            raise fields.refuse("layer_types", "the layers that attn_type_list names")
        kinds = implied
    if kinds is None:
        kinds = [KINDS[(layer + 1) % 2] for layer in range(layers)]
    count = fields.size(fields.first("num_local_experts", "num_experts"))
    mixture = experts(
        hidden,
        fields.size("intermediate_size"),
        count,
        chosen(fields, "num_experts_per_tok", count, 2),
    )
    fields.only("shared_intermediate_size", 0)
    fields.only("sliding_window")
    fields.skip(
        "block_size",
        "postnorm",
        "shared_moe_mode",
        "layernorm_full_attention_alpha",
        *(
            f"layernorm_{part}_{side}"
            for part in ("full_attention", "linear_attention", "mlp")
            for side in ("alpha", "beta")
        ),
        *(
            f"{part}_{side}_factor"
            for part in ("full_attn", "linear_attn", "mlp")
            for side in ("alpha", "beta")
        ),
    )
    recurrent = lightning(hidden, widths.heads, widths.width)
    reads = attention(hidden, widths.heads, widths.kv_heads, widths.width)
    return assemble(
        fields,
        layers=[
            Layer(
                (reads if kind == "full_attention" else recurrent,), (mixture,), pre_norms(hidden)
            )
            for kind in kinds
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )
