"""Zamba: Mamba layers, and attention blocks whose parameters several layers share."""

from ..architecture import Architecture, FeedForward, Layer, Tensor
from ..fields import Fields
from ._blocks import attention, gated, linear, rms_norm
from ._decoder import assemble, tied_table
from ._recurrences import mamba, mamba2
from .hybrids import listed
from .state_space import rank_of

__all__ = ["zamba", "zamba2"]


def shared(tensors: tuple[Tensor, ...], label: str) -> tuple[Tensor, ...]:
    """The same tensors, stored once wherever the label occurs."""
    return tuple(tensor._replace(shared=label) for tensor in tensors)


def _tied(fields: Fields) -> bool:
    """True: the library that unties the table also copies the block that the layers share."""
    if not tied_table(fields, True):
        raise fields.refuse("tie_word_embeddings", "true")
    return True


def zamba(fields: Fields) -> Architecture:
    """Zamba: Mamba layers, and one attention block whose parameters several layers share.

    The block reads the layer's input beside the token embedding, so it is twice as wide.
    """
    hidden, layers = fields.size("hidden_size"), fields.layers()
    wide = fields.size("attention_hidden_size", 2 * hidden)
    if wide != 2 * hidden:
        raise fields.refuse("attention_hidden_size", f"{2 * hidden}, twice hidden_size")
    heads = fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads", heads)
    fields.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    width = fields.maybe(fields.first("attention_head_dim", "head_dim"))
    if width is None:
        width = fields.divides("num_attention_heads", heads, 2 * hidden, "twice the hidden size")
    inner = fields.size("mamba_expand", 2) * hidden
    mamba_heads = fields.size("n_mamba_heads", 2)
    fields.divides("n_mamba_heads", mamba_heads, inner, "mamba_expand times hidden_size")
    recurrent = mamba(
        hidden,
        inner,
        fields.size("mamba_d_state", 16),
        rank_of(fields, "mamba_dt_rank", hidden),
        fields.size("mamba_d_conv", 4),
        bias=fields.flag("mamba_proj_bias", False),
        conv_bias=fields.flag("mamba_conv_bias", True),
        heads=mamba_heads,
    )
    period, offset = (
        fields.size("attn_layer_period", 6),
        fields.size("attn_layer_offset", 4, least=0),
    )
    kinds = listed(fields, layers, "layers_block_type", "layer_types")
    if kinds is None:
        kinds = [
            "mamba",
            "mamba",
            "hybrid",
            *("hybrid" if i % period == offset else "mamba" for i in range(layers - 3)),
        ][:layers]
    fields.only("sliding_window")
    fields.skip("hidden_mamba_act", "use_mamba_kernels", "use_associative_scan", "use_mambapy")
    reads = attention(wide, heads, kv_heads, width, output=hidden, facts={"shared": "block"})
    network = FeedForward(shared(gated(hidden, fields.size("intermediate_size")), "block"))
    norms = shared(rms_norm("attention", wide) + rms_norm("feed-forward", hidden), "block")
    own = rms_norm("mixer", hidden)
    hybrid = Layer((reads, recurrent), (network,), norms + own, linear("mix", hidden, hidden))
    uses = kinds.count("hybrid")
    fields.note(f"one attention block serves {uses} layers: its parameters once, its cache per use")
    return assemble(
        fields,
        layers=[hybrid if kind == "hybrid" else Layer((recurrent,), (), own) for kind in kinds],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=_tied(fields),
        final=rms_norm("final", hidden),
    )


def zamba2(fields: Fields) -> Architecture:
    """Zamba2: Mamba-2 layers, a few shared blocks in turn, and small adapters at each use."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    wide = 2 * hidden
    fields.only("attention_hidden_size", wide)
    heads = fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, wide, "twice the hidden size")
    fields.only("attention_head_dim", width)
    kv_heads = fields.size("num_key_value_heads", heads)
    fields.only("num_query_groups", heads)
    fields.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    mamba_heads = fields.size("n_mamba_heads", 8)
    per_head = fields.divides(
        "n_mamba_heads",
        mamba_heads,
        fields.size("mamba_expand", 2) * hidden,
        "mamba_expand times hidden_size",
    )
    fields.only("mamba_headdim", per_head)
    bias = fields.flag("add_bias_linear", False)
    recurrent = mamba2(
        hidden,
        mamba_heads,
        per_head,
        fields.size("mamba_ngroups", 1),
        fields.size("mamba_d_state", 64),
        fields.size("mamba_d_conv", 4),
        bias=bias,
    )
    fields.only("use_conv_bias", True)
    kinds = listed(fields, layers, "layers_block_type", "layer_types")
    if kinds is None:
        raise fields.refuse("layers_block_type", "a list with the kind of each layer")
    blocks = fields.size("num_mem_blocks", 1, most=layers)
    adapt = fields.flag(
        fields.first("use_shared_attention_adapter", "use_shared_attention_lora"), False
    )
    fields.only("use_shared_block_lora", True)
    fields.only("state_size", fields.values.get("mamba_d_state", 64))
    fields.only("use_shared_mlp_adapter", True)
    rank = fields.size(fields.first("adapter_rank", "lora_rank"), 128)
    inner = fields.size("intermediate_size", 4 * hidden)
    fields.only("ffn_hidden_size", inner)
    uses = [i for i, kind in enumerate(kinds) if kind == "hybrid"]
    fields.only("hybrid_layer_ids", uses)
    fields.skip(
        "use_mamba_kernels",
        "use_mem_rope",
        "use_long_context",
        "use_mem_eff_path",
        "chunk_size",
        "kv_channels",
        "mamba_dt_rank",
        "num_logits_to_keep",
        "time_step_floor",
        "time_step_max",
        "time_step_min",
        "time_step_limit",
        "use_shared_block_attention",
        "rope_theta",
        "sliding_window",
    )
    own = rms_norm("mixer", hidden)
    made = []
    for kind in kinds:
        if kind != "hybrid":
            made.append(Layer((recurrent,), (), own))
            continue
        label = f"block {sum(1 for one in made if len(one.mixers) == 2) % blocks}"
        extra = ()
        if adapt:
            for name in ("query", "key", "value"):
                extra += linear(f"{name} adapter down", wide, rank) + linear(
                    f"{name} adapter up", rank, wide
                )
        adapter = linear("adapter down", hidden, rank) + linear("adapter up", rank, 2 * inner)
        reads = attention(
            wide, heads, kv_heads, width, output=hidden, facts={"shared": label}, extra=extra
        )
        network = FeedForward(shared(gated(hidden, inner, bias), label) + adapter)
        norms = shared(rms_norm("attention", wide) + rms_norm("feed-forward", hidden), label)
        made.append(
            Layer((reads, recurrent), (network,), norms + own, linear("mix", hidden, hidden))
        )
    fields.note(
        f"{len(uses)} layers share {blocks} attention block(s) in turn: parameters once each, the "
        "cache per use"
    )
    return assemble(
        fields,
        layers=made,
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=_tied(fields),
        final=rms_norm("final", hidden),
    )
