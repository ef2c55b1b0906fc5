"""Attention among recurrent layers: Jamba, Granite 4, Bamba, Falcon-H1, LFM2, RecurrentGemma."""

from ..architecture import (
    Architecture,
    Layer,
    Reach,
    Recurrence,
)
from ..errors import UnsupportedConfig
from ..fields import Fields, shown
from ._blocks import attention, dense, experts, gated, head_norms, pre_norms, rms_norm
from ._decoder import Widths, assemble, head_widths, tied_table
from ._recurrences import mamba, mamba2, real_gated, short_convolution
from .mixtures import chosen
from .state_space import rank_of

__all__ = [
    "bamba",
    "falcon_h1",
    "granite_hybrid",
    "jamba",
    "lfm2",
    "lfm2_moe",
    "recurrent_gemma",
]

RECURRENT = ("linear_attention", "mamba", "mamba2")
FULL = ("full_attention", "attention")


def listed(fields: Fields, count: int, *names: str) -> list[str] | None:
    """The kinds of the layers, by whichever of `names` the file uses."""
    return fields.kinds(fields.first(*names), count, [*RECURRENT, *FULL, "hybrid"])


def jamba(fields: Fields) -> Architecture:
    """Jamba: one attention layer in a period, and every other feed-forward network a mixture."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    period, offset = (
        fields.size("attn_layer_period", 8),
        fields.size("attn_layer_offset", 4, least=0),
    )
    every, first = (
        fields.size("expert_layer_period", 2),
        fields.size("expert_layer_offset", 1, least=0),
    )
    if offset >= period:
        raise fields.refuse("attn_layer_offset", f"less than attn_layer_period, {period}")
    if first >= every:
        raise fields.refuse("expert_layer_offset", f"less than expert_layer_period, {every}")
    inner = fields.size("intermediate_size")
    count = fields.size(fields.first("num_experts", "num_local_experts"), 16)
    network = dense(gated(hidden, inner))
    mixture = network
    if count > 1:
        mixture = experts(hidden, inner, count, chosen(fields, "num_experts_per_tok", count, 2))
    else:
        fields.skip("num_experts_per_tok")
    recurrent = mamba(
        hidden,
        fields.size("mamba_expand", 2) * hidden,
        fields.size("mamba_d_state", 16),
        rank_of(fields, "mamba_dt_rank", hidden),
        fields.size("mamba_d_conv", 4),
        bias=fields.flag("mamba_proj_bias", False),
        conv_bias=fields.flag("mamba_conv_bias", True),
        norms=True,
    )
    fields.only("mamba_inner_layernorms", True)
    fields.only("sliding_window")
    fields.skip(
        "use_mamba_kernels", "use_mambapy", "use_associative_scan", "calc_logits_for_entire_prompt"
    )
    reads = attention(hidden, widths.heads, widths.kv_heads, widths.width)
    kinds = listed(fields, layers, "layers_block_type", "layer_types")
    implied = ["attention" if i % period == offset else "mamba" for i in range(layers)]
    if kinds is not None and [kind in FULL for kind in kinds] != [kind in FULL for kind in implied]:
        raise fields.refuse("layers_block_type", "the layers that attn_layer_period implies")
    return assemble(
        fields,
        layers=[
            Layer(
                (reads if kind in FULL else recurrent,),
                (mixture if i % every == first else network,),
                pre_norms(hidden),
            )
            for i, kind in enumerate(implied)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )


def _mamba2_of(
    fields: Fields, hidden: int, *, heads: int, state: int, inner: int | None = None, **options
) -> Recurrence:
    number = fields.size("mamba_n_heads", heads)
    if inner is None:
        inner = fields.size("mamba_expand", 2) * hidden
    else:
        # The inner size stands for itself; some files then give the ratio as a fraction.
        fields.skip("mamba_expand")
    width = fields.divides("mamba_n_heads", number, inner, "mamba_expand times hidden_size")
    if fields.values.get("mamba_d_head") != "auto":
        fields.only("mamba_d_head", width)
    else:
        fields.skip("mamba_d_head")
    groups = fields.size("mamba_n_groups", 1)
    fields.divides("mamba_n_groups", groups, number, "mamba_n_heads")
    fields.skip(
        "mamba_chunk_size",
        "time_step_floor",
        "time_step_max",
        "time_step_min",
        "time_step_limit",
        "use_mamba_kernels",
    )
    return mamba2(
        hidden,
        number,
        width,
        groups,
        fields.size("mamba_d_state", state),
        fields.size("mamba_d_conv", 4),
        bias=fields.flag("mamba_proj_bias", False),
        conv_bias=fields.flag("mamba_conv_bias", True),
        **options,
    )


def granite_hybrid(fields: Fields) -> Architecture:
    """Granite 4: Mamba-2 and a few attention layers, a shared network and perhaps experts."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden)
    kinds = listed(fields, layers, "layer_types", "layers_block_type")
    if kinds is None:
        raise fields.refuse("layer_types", "a list with the kind of each layer")
    if "hybrid" in kinds:
        raise fields.refuse("layer_types", "mamba or attention")
    count = fields.size(fields.first("num_local_experts", "num_experts"), 8, least=0)
    always = fields.size("shared_intermediate_size", 1024)
    inner = fields.maybe("intermediate_size")
    if count:
        if inner is None:
            raise fields.refuse("intermediate_size", "the width of an expert")
        part = experts(
            hidden, inner, count, chosen(fields, "num_experts_per_tok", count, 2), shared=always
        )
    else:
        fields.skip("num_experts_per_tok")
        part = dense(gated(hidden, always))
        if inner is not None and inner != always:
            fields.note(
                f"without experts only shared_intermediate_size {always} counts, not "
                f"intermediate_size {inner}"
            )
    fields.skip(
        "position_embedding_type", "normalization_function", "init_method", "shared_expert_gate"
    )
    recurrent = None
    if any(kind in RECURRENT for kind in kinds):
        recurrent = _mamba2_of(fields, hidden, heads=128, state=256)
    else:
        fields.skip(*(name for name in fields.values if name.startswith("mamba_")))
    reads = attention(
        hidden,
        widths.heads,
        widths.kv_heads,
        widths.width,
        bias=fields.flag("attention_bias", False),
    )
    return assemble(
        fields,
        layers=[
            Layer((reads if kind in FULL else recurrent,), (part,), pre_norms(hidden))
            for kind in kinds
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )


def bamba(fields: Fields) -> Architecture:
    """Bamba: Mamba-2 layers, attention at the listed indices, a gated network after each."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    found = set(fields.sizes("attn_layer_indices", most=layers - 1) or ())
    kinds = listed(fields, layers, "layers_block_type", "layer_types")
    if kinds is not None and [kind in FULL for kind in kinds] != [
        i in found for i in range(layers)
    ]:
        raise fields.refuse("layer_types", "the layers that attn_layer_indices names")
    fields.skip("attn_rotary_emb", "z_loss_coefficient")
    recurrent = _mamba2_of(fields, hidden, heads=128, state=256)
    reads = attention(
        hidden,
        widths.heads,
        widths.kv_heads,
        widths.width,
        bias=fields.flag("attention_bias", False),
    )
    network = dense(gated(hidden, fields.size("intermediate_size"), fields.flag("mlp_bias", False)))
    return assemble(
        fields,
        layers=[
            Layer((reads if i in found else recurrent,), (network,), pre_norms(hidden))
            for i in range(layers)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )


def falcon_h1(fields: Fields) -> Architecture:
    """Falcon-H1: attention and Mamba-2 side by side in every layer."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    listed(fields, layers, "layers_block_type", "layer_types")
    inner = fields.maybe("mamba_d_ssm") if "mamba_d_ssm" in fields else 1024
    recurrent = _mamba2_of(
        fields,
        hidden,
        heads=128,
        state=256,
        inner=inner,
        norm=fields.flag("mamba_rms_norm", False),
        out_bias=fields.flag("projectors_bias", False),
    )
    fields.skip(
        "mamba_norm_before_gate",
        "mamba_use_mlp",
        "mlp_expansion_factor",
        "attn_layer_indices",
        "attention_in_multiplier",
        "attention_out_multiplier",
        "key_multiplier",
        "lm_head_multiplier",
        "mlp_multipliers",
        "ssm_in_multiplier",
        "ssm_multipliers",
        "ssm_out_multiplier",
        "attn_rotary_emb",
        "use_mem_eff_path",
    )
    reads = attention(
        hidden,
        widths.heads,
        widths.kv_heads,
        widths.width,
        bias=fields.flag("attention_bias", False),
    )
    network = dense(gated(hidden, fields.size("intermediate_size"), fields.flag("mlp_bias", False)))
    layer = Layer((reads, recurrent), (network,), pre_norms(hidden))
    return assemble(
        fields,
        layers=[layer] * layers,
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )


def lfm2(fields: Fields) -> Architecture:
    """LFM2: short convolutions, and attention with head norms at the listed layers."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    kinds = fields.kinds("layer_types", layers, ["conv", "full_attention"])
    found = fields.sizes("full_attn_idxs", most=layers - 1)
    if kinds is None and found is None:
        raise fields.refuse("layer_types", "the kind of each layer, here or in full_attn_idxs")
    if kinds is None:
        kinds = ["full_attention" if i in set(found) else "conv" for i in range(layers)]
    elif found is not None and kinds != [
        "full_attention" if i in set(found) else "conv" for i in range(layers)
    ]:
        raise fields.refuse("layer_types", "the layers that full_attn_idxs names")
    fields.only("block_dim", hidden)
    fields.only("conv_dim", hidden)
    fields.only("conv_dim_out", hidden)
    fields.only("block_mlp_init_scale", 1.0)
    fields.only("block_out_init_scale", 1.0)
    fields.only("block_use_swiglu", True)
    fields.only("block_use_xavier_init", True)
    fields.only("conv_use_xavier_init", True)
    fields.only("use_pos_enc", True)
    fields.only("num_heads", widths.heads)
    fields.only(
        "block_norm_eps",
        *(v for v in [fields.values.get("block_norm_eps")] if isinstance(v, float)),
    )
    inner_name = fields.first("block_ff_dim", "intermediate_size")
    inner = fields.size(inner_name)
    if fields.flag("block_auto_adjust_ff_dim", True):
        if inner < 2:
            raise fields.refuse(inner_name, "at least 2, of which two thirds count")
        inner = 2 * inner // 3
        factor = fields.number("block_ffn_dim_multiplier", 1.0)
        if not 0 < factor <= 100:
            raise fields.refuse("block_ffn_dim_multiplier", "a factor from 0 to 100")
        multiple = fields.size("block_multiple_of", 256)
        if (
            "block_ffn_dim_multiplier" not in fields
            or fields.values["block_ffn_dim_multiplier"] is not None
        ):
            inner = -(-int(factor * inner) // multiple) * multiple
        fields.note(f"the feed-forward network is {inner} wide, after block_auto_adjust_ff_dim")
    else:
        fields.skip("block_ffn_dim_multiplier", "block_multiple_of")
    return _convolved(fields, hidden, widths, kinds, [dense(gated(hidden, inner))] * layers)


def lfm2_moe(fields: Fields) -> Architecture:
    """LFM2 with experts: the first layers dense, the width of a network as the file states it."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    kinds = fields.kinds("layer_types", layers, ["conv", "full_attention"])
    if kinds is None:
        raise fields.refuse("layer_types", "the kind of each layer")
    count = fields.size("num_experts", 32)
    taken = chosen(fields, "num_experts_per_tok", count, 4)
    mixture = experts(hidden, fields.size("moe_intermediate_size"), count, taken)
    network = dense(gated(hidden, fields.size("intermediate_size")))
    first = fields.size("num_dense_layers", 2, least=0)
    fields.skip("use_expert_bias")
    parts = [network if layer < first else mixture for layer in range(layers)]
    return _convolved(fields, hidden, widths, kinds, parts)


def _convolved(
    fields: Fields, hidden: int, widths: Widths, kinds: list[str], parts: list
) -> Architecture:
    """LFM2's layers: a convolution, or attention with head norms, before each of `parts`."""
    reads = attention(
        hidden, widths.heads, widths.kv_heads, widths.width, extra=head_norms(widths.width)
    )
    kernel, bias = fields.size("conv_L_cache", 3), fields.flag("conv_bias", False)
    convolved = short_convolution(hidden, kernel, bias)
    tied = fields.flag(fields.first("tie_embedding", "tie_word_embeddings"), True)
    if tied:
        fields.note("tied: the output head is the token table, counted once")
    return assemble(
        fields,
        layers=[
            Layer((reads if kind == "full_attention" else convolved,), (part,), pre_norms(hidden))
            for kind, part in zip(kinds, parts, strict=True)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied,
        final=rms_norm("final", hidden),
    )


def recurrent_gemma(fields: Fields) -> Architecture:
    """RecurrentGemma: RG-LRU layers with a windowed attention layer in turn."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    heads = fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    fields.only("head_dim", width)
    kv_heads = fields.size("num_key_value_heads", heads)
    fields.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    lru = fields.size("lru_width", hidden)
    fields.divides("num_attention_heads", heads, lru, "lru_width")
    window = fields.size(fields.first("attention_window_size", "sliding_window"), 2048)
    pattern = fields.items("block_types") or ["recurrent", "recurrent", "attention"]
    for position, word in enumerate(pattern):
        if word not in ("recurrent", "attention"):
            raise UnsupportedConfig(
                f"{fields.where('block_types')}[{position}]: expected recurrent or "
                f"attention, came {shown(word)}"
            )
    fields.skip(
        "_block_types",
        "layers_block_type",
        "layer_types",
        "w_init_variance_scale",
        "final_w_init_variance_scale",
        "partial_rotary_factor",
        "embeddings_scale_by_sqrt_dim",
    )
    inner = fields.size("intermediate_size")
    if inner % 2:
        raise fields.refuse(
            "intermediate_size", "an even number: each half of the gated network has half"
        )
    fields.note(
        f"intermediate_size {inner} is both halves of the gated network: each is {inner // 2} wide"
    )
    network = dense(gated(hidden, inner // 2, True))
    reads = attention(
        hidden,
        heads,
        kv_heads,
        width,
        bias=fields.flag("attention_bias", False),
        output_bias=True,
        reach=Reach("window", window),
    )
    recurrent = real_gated(hidden, lru, heads, fields.size("conv1d_width", 4))
    kinds = [pattern[i % len(pattern)] for i in range(layers)]
    fields.note(f"{kinds.count('attention')} of {layers} layers read a window of {window} tokens")
    return assemble(
        fields,
        layers=[
            Layer((reads if kind == "attention" else recurrent,), (network,), pre_norms(hidden))
            for kind in kinds
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, True),
        final=rms_norm("final", hidden),
    )
