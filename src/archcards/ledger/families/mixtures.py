"""Llama-like decoders whose feed-forward networks are routed experts."""

from collections.abc import Callable
from functools import partial

from ..architecture import Architecture, Experts, FeedForward, Layer
from ..fields import Fields
from ._blocks import (
    after_norms,
    attention,
    dense,
    experts,
    gated,
    layer_norm,
    layer_norms,
    linear,
    sandwich_norms,
)
from ._decoder import assemble, decoder, tied_table, windows
from .dense import hunyuan_extras
from .llama import all_heads, each_head, qwen_windows

__all__ = [
    "afmoe",
    "dbrx",
    "ernie4_5_moe",
    "flex_olmo",
    "granite_moe",
    "hunyuan_moe",
    "minimax_m2",
    "mixtral",
    "olmoe",
    "phimoe",
    "qwen2_moe",
    "qwen3_moe",
    "solar_open",
]


def chosen(fields: Fields, name: str, count: int, default: int | None = None) -> int:
    """How many experts a token takes, at most `count`."""
    number = fields.size(name, default)
    if number > count:
        raise fields.refuse(name, f"at most {count}, the number of experts")
    return number


def routed(
    fields: Fields,
    hidden: int,
    *,
    count: int | None = None,
    taken: int | None = None,
    inner: str = "intermediate_size",
    **shared,
) -> Experts:
    """The mixture that the usual fields describe; `count` and `taken` where they are silent."""
    number = fields.size(
        fields.first("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"),
        count,
    )
    some = chosen(fields, fields.first("num_experts_per_tok", "moe_k"), number, taken)
    return experts(hidden, fields.size(inner), number, some, **shared)


def everywhere(**options) -> Callable[[Fields, int, int], list[Experts]]:
    """The same mixture in each layer."""
    return lambda fields, hidden, layers: [routed(fields, hidden, **options)] * layers


def mixtral(fields: Fields) -> Architecture:
    """Mixtral: every feed-forward network a mixture of gated experts."""
    return decoder(fields, kv_heads=8, reach=windows(), parts=everywhere(count=8, taken=2))


def sparse_layers(
    fields: Fields, count: int, mixture: Experts, network: FeedForward | None
) -> list:
    """Qwen's choice of the layers that are mixtures: every `decoder_sparse_step`-th, but for
    `mlp_only_layers`."""
    step = fields.size("decoder_sparse_step", 1)
    only_dense = set(fields.sizes("mlp_only_layers", most=count - 1) or ())
    found = [
        mixture if (layer + 1) % step == 0 and layer not in only_dense else network
        for layer in range(count)
    ]
    if None in found:
        raise fields.refuse("intermediate_size", "the width of the dense layers")
    return found


def _qwen_parts(**options) -> Callable[[Fields, int, int], list]:
    def read(fields: Fields, hidden: int, layers: int) -> list:
        inner = fields.maybe("intermediate_size")
        network = dense(gated(hidden, inner)) if inner else None
        mixture = routed(fields, hidden, inner="moe_intermediate_size", **options)
        return sparse_layers(fields, layers, mixture, network)

    return read


def qwen2_moe(fields: Fields) -> Architecture:
    """Qwen 1.5 and 2 with experts: a shared expert with a gate, biases on query, key, value."""
    shared = fields.size("shared_expert_intermediate_size")
    return decoder(
        fields,
        kv_heads=16,
        reach=qwen_windows,
        parts=_qwen_parts(count=60, shared=shared, shared_gate=True),
        bias=fields.flag("qkv_bias", True),
        output_bias=False,
    )


def qwen3_moe(fields: Fields, *, kv_heads: int = 4, count: int = 128) -> Architecture:
    """Qwen3 with experts: no shared expert, head norms on query and key."""
    return decoder(
        fields,
        kv_heads=kv_heads,
        reach=partial(qwen_windows, everywhere=True),
        parts=_qwen_parts(count=count),
        bias=fields.flag("attention_bias", False),
        extra=each_head,
    )


def granite_moe(fields: Fields) -> Architecture:
    """Granite 3 with experts, and its variant with a shared expert."""
    shared = fields.size("shared_intermediate_size", 0, least=0)
    return decoder(
        fields,
        parts=everywhere(count=8, taken=2, shared=shared),
        bias=fields.flag("attention_bias", False),
    )


def olmoe(fields: Fields) -> Architecture:
    """OLMoE: query and key norms over all heads, experts throughout."""
    fields.skip("clip_qkv")
    return decoder(
        fields,
        parts=everywhere(count=64, taken=8),
        bias=fields.flag("attention_bias", False),
        extra=all_heads,
    )


def phimoe(fields: Fields) -> Architecture:
    """Phi-3.5-MoE: layer norms, biases on all of attention, perhaps one on the head."""
    fields.skip("input_jitter_noise")
    return decoder(
        fields,
        kv_heads=8,
        reach=windows(),
        parts=everywhere(count=16, taken=2),
        norms=layer_norms,
        final=layer_norm,
        head_bias=fields.flag("lm_head_bias", False),
        bias=fields.flag("attention_bias", False),
    )


def dbrx(fields: Fields) -> Architecture:
    """DBRX: norms without bias, fused projections, sixteen experts of which four."""
    hidden, heads = fields.size("d_model"), fields.size("n_heads")
    width = fields.divides("n_heads", heads, hidden, "d_model")
    options, network = fields.nested("attn_config"), fields.nested("ffn_config")
    if options is None or network is None:
        raise fields.refuse("ffn_config" if options else "attn_config", "an object")
    kv_heads = options.size("kv_n_heads", 1)
    options.divides("kv_n_heads", kv_heads, heads, "n_heads")
    options.skip("clip_qkv", "attn_pdrop", "rope_theta")
    options.finish()
    count = network.size("moe_num_experts", 4)
    mixture = experts(
        hidden, network.size("ffn_hidden_size", 3584), count, chosen(network, "moe_top_k", count, 1)
    )
    network.only("hidden_size", hidden)
    network.skip(
        "ffn_act_fn",
        "moe_jitter_eps",
        "moe_loss_weight",
        "moe_normalize_expert_weights",
        "uniform_expert_assignment",
    )
    network.finish()
    fields.only("num_key_value_heads", kv_heads)
    layer = Layer(
        (attention(hidden, heads, kv_heads, width),),
        (mixture,),
        layer_norms(hidden, False),
    )
    return assemble(
        fields,
        layers=[layer] * fields.layers("n_layers"),
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=layer_norm("final", hidden, False),
        trained_length="max_seq_len",
    )


def minimax_m2(fields: Fields) -> Architecture:
    """MiniMax-M2: query and key norms over all heads at once."""
    fields.only("use_qk_norm", True)
    fields.only("qk_norm_type", "per_layer")
    fields.only("attention_bias", False)
    fields.only("shared_intermediate_size", 0)
    fields.skip(
        "use_routing_bias",
        "shared_moe_mode",
        *(
            f"layernorm_{part}_{side}"
            for part in ("full_attention", "linear_attention", "mlp")
            for side in ("alpha", "beta")
        ),
        "mtp_transformer_layers",
        "mlp_intermediate_size",  # published with M2; none of its tensors has this width
    )
    layers = fields.layers()
    attention_types = fields.sizes("attn_type_list", layers, most=1)
    if attention_types and 0 in attention_types:
        raise fields.refuse("attn_type_list", "1 for every layer (softmax attention)")
    modules = fields.size("num_mtp_modules", 0, least=0)
    if fields.flag("use_mtp", False) and modules:
        fields.note(
            f"{modules} multi-token-prediction modules are announced (num_mtp_modules) "
            "whose tensors the configuration does not describe: not counted"
        )
    return decoder(fields, head_width=128, kv_heads=8, parts=everywhere(), extra=all_heads)


def _each(fields: Fields, name: str, layers: int, default: int | None = None) -> list[int]:
    """One number for all layers, or a list with one for each."""
    if isinstance(fields.values.get(name), (list, tuple)):
        return fields.sizes(name, layers, least=1)
    return [fields.size(name, default)] * layers


def hunyuan_moe(fields: Fields) -> Architecture:
    """Hunyuan with experts: one shared expert, head norms, experts taken layer by layer."""
    hunyuan_extras(fields)

    def parts(fields: Fields, hidden: int, layers: int) -> list[Experts]:
        inner, count = fields.size("intermediate_size"), fields.size("num_experts", 1)
        for name, value in (("moe_intermediate_size", inner), ("num_shared_expert", 1)):
            if name in fields and _each(fields, name, layers) != [value] * layers:
                raise fields.refuse(name, f"{value} in each layer")
        taken = _each(fields, fields.first("moe_topk", "num_experts_per_tok"), layers, 1)
        if max(taken) > count:
            raise fields.refuse("moe_topk", f"at most {count}, the number of experts")
        made = {some: experts(hidden, inner, count, some, shared=inner) for some in set(taken)}
        return [made[some] for some in taken]

    fields.only("use_mixed_mlp_moe", True)
    fields.only("moe_layer_num_skipped", 0)
    fields.only("use_mla", False)
    fields.skip(
        "moe_drop_tokens",
        "moe_random_routing_dropped_token",
        "group_limited_greedy",
        "capacity_factor",
        "anyres_pooling_size",
        "vit_norm_type",
    )
    return decoder(
        fields, parts=parts, bias=fields.flag("attention_bias", False), extra=each_head
    )


def flex_olmo(fields: Fields) -> Architecture:
    """FlexOlmo: OLMo 2's norms around experts throughout."""
    return decoder(
        fields,
        parts=everywhere(count=7, taken=5),
        norms=after_norms,
        bias=fields.flag("attention_bias", False),
        extra=all_heads,
    )


def solar_open(fields: Fields) -> Architecture:
    """Solar Open: experts throughout with a shared one, biases on query, key and value if asked."""
    shared = fields.size("n_shared_experts", 1, least=0) * fields.size("moe_intermediate_size")
    return decoder(
        fields,
        head_width=128,
        kv_heads=8,
        parts=everywhere(count=128, taken=8, inner="moe_intermediate_size", shared=shared),
        bias=fields.flag("attention_bias", False),
        output_bias=False,
    )


def _some_dense(number: str, default: int, mixed: Callable[[int], bool], **options):
    """A mixture with shared experts in the layers that `mixed` names, a dense network elsewhere."""

    def read(fields: Fields, hidden: int, layers: int) -> list[FeedForward | Experts]:
        inner = fields.size("moe_intermediate_size")
        shared = inner * fields.size(number, default, least=0)
        mixture = routed(fields, hidden, inner="moe_intermediate_size", shared=shared, **options)
        network = dense(gated(hidden, fields.size("intermediate_size")))
        return [mixture if mixed(layer) else network for layer in range(layers)]

    return read


def afmoe(fields: Fields) -> Architecture:
    """Trinity: four norms a layer, gated attention with head norms, three windows to a full layer."""
    hidden, first = fields.size("hidden_size"), fields.size("num_dense_layers", 1, least=0)
    every = fields.size("global_attn_every_n_layers", 4)
    return decoder(
        fields,
        head_width=128,
        reach=windows(1024, lambda layer: (layer + 1) % every != 0),
        parts=_some_dense(
            "num_shared_experts", 2, lambda layer: layer >= first, count=64, taken=6
        ),
        norms=sandwich_norms,
        bias=fields.flag("attention_bias", False),
        extra=lambda widths: (
            *each_head(widths),
            # Of the output; it has no bias, whatever the other projections have.
            *linear("gate", hidden, widths.heads * widths.width),
        ),
    )


def ernie4_5_moe(fields: Fields) -> Architecture:
    """ERNIE 4.5 with experts from some layer on, and shared ones; tied."""
    fields.only("use_bias", False)
    start = fields.size("moe_layer_start_index", 1, least=0)
    end = fields.raw("moe_layer_end_index", -1)
    if end in (-1, None):
        end = fields.layers()
    elif isinstance(end, bool) or not isinstance(end, int) or end < start:
        raise fields.refuse("moe_layer_end_index", f"-1 or a layer from {start} on")
    every = fields.size("moe_layer_interval", 1)
    fields.skip("moe_norm_min", "moe_capacity", "moe_gate", "moe_use_aux_free")
    return decoder(
        fields,
        kv_heads=4,
        share=True,
        parts=_some_dense(
            "moe_num_shared_experts",
            2,
            lambda layer: (layer + 1) % every == 0 and start <= layer <= end,
            count=64,
            taken=6,
        ),
        tied=True,
    )
