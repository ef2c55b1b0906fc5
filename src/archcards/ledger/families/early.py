"""Decoders from before Llama: GPT-2, OPT, BLOOM, Falcon, GPT-NeoX and their kin."""

from ..architecture import Architecture, Layer, Reach, Tensor
from ..fields import Fields
from ._blocks import attention, dense, layer_norm, layer_norms, linear, plain
from ._decoder import assemble, tied_table

__all__ = ["biogpt", "bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt", "opt"]


WIDTH = ("n_embd", "hidden_size")
HEADS = ("n_head", "num_attention_heads")
LAYERS = ("n_layer", "num_hidden_layers")
"""Names of the sizes in GPT-2's files, the older first."""

SUMMARY = ("summary_type", "summary_use_proj", "summary_proj_to_labels", "summary_activation")
"""Fields of a head that no language model has."""


def _heads(fields: Fields, width: tuple[str, ...], heads: tuple[str, ...]) -> tuple[int, int, int]:
    """The model's width, the number of heads and the width of one, under any of these names."""
    wide, many = fields.first(*width), fields.first(*heads)
    hidden, number = fields.size(wide), fields.size(many)
    return hidden, number, fields.divides(many, number, hidden, wide)


def _stack(
    fields: Fields,
    layer: Layer,
    hidden: int,
    *,
    count: tuple[str, ...] = ("num_hidden_layers",),
    tied: bool = True,
    shift: bool = True,
    **parts,
) -> Architecture:
    """As many equal layers as the file says, and a layer norm after them."""
    return assemble(
        fields,
        layers=[layer] * fields.layers(fields.first(*count)),
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, tied),
        final=layer_norm("final", hidden, shift),
        **parts,
    )


def gpt2(fields: Fields) -> Architecture:
    """GPT-2: learned positions, biases everywhere, the table tied."""
    hidden, heads, width = _heads(fields, WIDTH, HEADS)
    length = fields.first("n_positions", "max_position_embeddings")
    positions = (Tensor("position embedding", (fields.size(length), hidden), "table"),)
    fields.only("add_cross_attention", False)
    fields.skip(
        *SUMMARY,
        "scale_attn_weights",
        "scale_attn_by_inverse_layer_idx",
        "reorder_and_upcast_attn",
        "n_ctx",
    )
    inner = fields.size("n_inner", 4 * hidden)
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=True),),
        (dense(plain(hidden, inner)),),
        layer_norms(hidden),
    )
    return _stack(fields, layer, hidden, count=LAYERS, positions=positions, trained_length=length)


def opt(fields: Fields) -> Architecture:
    """OPT: learned positions with two spare rows; a table narrower than the model is projected."""
    hidden, heads, width = _heads(fields, ("hidden_size",), ("num_attention_heads",))
    table = fields.size("word_embed_proj_dim", hidden)
    bias = fields.flag("enable_bias", True)
    affine = fields.flag("layer_norm_elementwise_affine", True)
    before = fields.flag("do_layer_norm_before", True)
    no_final = fields.flag("_remove_final_layer_norm", False)
    length = fields.size("max_position_embeddings")

    def norm(name: str) -> tuple:
        return layer_norm(name, hidden) if affine else ()

    final, others = norm("final") if before and not no_final else (), ()
    if table != hidden:
        others = linear("project in", table, hidden)
        final += linear("project out", hidden, table)
        fields.note(f"the token table is {table} wide and projected to and from {hidden}")
    fields.skip("init_std")
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=bias),),
        (dense(plain(hidden, fields.size("ffn_dim"), bias)),),
        norm("attention") + norm("feed-forward"),
    )
    return assemble(
        fields,
        layers=[layer] * fields.layers(),
        hidden=hidden,
        table_width=table,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, True),
        final=final,
        positions=(Tensor("position embedding", (length + 2, hidden), "table"),),
        others=others,
    )


def biogpt(fields: Fields) -> Architecture:
    """BioGPT: OPT's layer and its two spare rows of positions."""
    hidden, heads, width = _heads(fields, ("hidden_size",), ("num_attention_heads",))
    length = fields.size("max_position_embeddings", 1024)
    fields.skip("scale_embedding")
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=True),),
        (dense(plain(hidden, fields.size("intermediate_size"))),),
        layer_norms(hidden),
    )
    table = (Tensor("position embedding", (length + 2, hidden), "table"),)
    return _stack(fields, layer, hidden, positions=table)._replace(trained_length=length)


def bloom(fields: Fields) -> Architecture:
    """BLOOM: ALiBi instead of positions, a norm on the embeddings, biases."""
    hidden, heads, width = _heads(fields, ("n_embed", "hidden_size"), HEADS)
    fields.skip(
        "apply_residual_connection_post_layernorm",
        "masked_softmax_fusion",
        "attention_softmax_in_fp32",
        "bias_dropout_fusion",
        "offset_alibi",
        "n_inner",
        "skip_bias_add",
        "skip_bias_add_qkv",
        "unk_token_id",
    )
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=True),),
        (dense(plain(hidden, 4 * hidden)),),
        layer_norms(hidden),
    )
    return _stack(
        fields,
        layer,
        hidden,
        count=LAYERS,
        others=layer_norm("embedding", hidden),
        trained_length="seq_length",
    )


def falcon(fields: Fields) -> Architecture:
    """Falcon: one key/value head (`multi_query`), or grouped ones in the newer decoder."""
    hidden = fields.size(fields.first("hidden_size", "n_embed"))
    name = fields.first("num_attention_heads", "n_head")
    heads = fields.size(name)
    width = fields.divides(name, heads, hidden, "hidden_size")
    # Files from before the field name the newer decoder by the type.
    newer = fields.flag("new_decoder_architecture", fields.values.get("model_type") == "RefinedWeb")
    single = fields.flag("multi_query", True)
    parallel = fields.flag("parallel_attn", True)
    bias = fields.flag("bias", False)
    kv_name = fields.first("num_kv_heads", "n_head_kv", "num_key_value_heads")
    listed = fields.size(kv_name, heads)
    fields.skip("alibi", "rotary", "apply_residual_connection_post_layernorm", "n_embed")
    if newer:
        kv_heads = listed
        fields.divides(kv_name, kv_heads, heads, name)
    else:
        kv_heads = 1 if single else heads
        if single:
            fields.note(
                f"multi_query: {heads} query heads share one key/value head"
                + (f", whatever {kv_name} says" if kv_name in fields.values and listed != 1 else "")
            )
    norms_given = fields.maybe("num_ln_in_parallel_attn")
    if norms_given is not None and norms_given > 2:
        raise fields.refuse("num_ln_in_parallel_attn", "1 or 2")
    count = 2 if newer and norms_given is None else norms_given
    # Without parallel attention there are two norms; with it one, or two where so asked.
    norms = layer_norms(hidden) if not parallel or count == 2 else layer_norm("layer", hidden)
    layer = Layer(
        (attention(hidden, heads, kv_heads, width, bias=bias),),
        (dense(plain(hidden, fields.size("ffn_hidden_size", 4 * hidden), bias)),),
        norms,
    )
    return _stack(fields, layer, hidden, count=("num_hidden_layers", "n_layer"))


def gpt_neox(fields: Fields) -> Architecture:
    """GPT-NeoX and Pythia: rotary positions, parallel halves, an output table of its own."""
    hidden, heads, width = _heads(fields, ("hidden_size",), ("num_attention_heads",))
    fields.skip("use_parallel_residual")
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=fields.flag("attention_bias", True)),),
        (dense(plain(hidden, fields.size("intermediate_size"))),),
        layer_norms(hidden),
    )
    return _stack(fields, layer, hidden, tied=False)


def gpt_bigcode(fields: Fields) -> Architecture:
    """StarCoder and SantaCoder: GPT-2 with one key/value head."""
    hidden, heads, width = _heads(fields, WIDTH, HEADS)
    single = fields.flag("multi_query", True)
    fields.only("num_key_value_heads", 1 if single else heads)
    if single:
        fields.note(f"multi_query: {heads} query heads share one key/value head")
    length = fields.first("n_positions", "max_position_embeddings")
    positions = (Tensor("position embedding", (fields.size(length), hidden), "table"),)
    fields.only("add_cross_attention", False)
    fields.skip(
        *SUMMARY,
        "scale_attn_weights",
        "scale_attention_softmax_in_fp32",
        "attention_softmax_in_fp32",
        "n_ctx",
        "inference_runner",
        "max_batch_size",
        "max_sequence_length",
        "pad_key_length",
        "pre_allocate_kv_cache",
        "validate_runner_input",
    )
    layer = Layer(
        (attention(hidden, heads, 1 if single else heads, width, bias=True),),
        (dense(plain(hidden, fields.size("n_inner", 4 * hidden))),),
        layer_norms(hidden),
    )
    return _stack(fields, layer, hidden, count=LAYERS, positions=positions, trained_length=length)


def gptj(fields: Fields) -> Architecture:
    """GPT-J and CodeGen: one norm for both halves, no biases in attention, one on the head."""
    hidden, heads, width = _heads(fields, WIDTH, HEADS)
    length = fields.first("n_positions", "max_position_embeddings")
    fields.skip(
        *SUMMARY,
        "rotary",
        "scale_attn_weights",
        "n_ctx",
    )
    layer = Layer(
        (attention(hidden, heads, heads, width),),
        (dense(plain(hidden, fields.size("n_inner", 4 * hidden))),),
        layer_norm("layer", hidden),
    )
    return _stack(
        fields,
        layer,
        hidden,
        count=LAYERS,
        tied=False,
        head_bias=True,
        trained_length=length,
    )


def gpt_neo(fields: Fields) -> Architecture:
    """GPT-Neo: GPT-2's layer, a bias only on the output of attention, windows in turn."""
    hidden, heads, width = _heads(
        fields, ("hidden_size",), ("num_heads", "num_attention_heads")
    )
    count = fields.layers(fields.first("num_layers", "num_hidden_layers"))
    window = fields.size("window_size", 256)
    kinds = fields.items("attention_layers")
    types = fields.items("attention_types")
    if types is not None:
        expanded: list = []
        for item in types:
            if not (
                isinstance(item, (list, tuple))
                and len(item) == 2
                and isinstance(item[0], (list, tuple))
                and type(item[1]) is int
                and 0 < item[1] <= count
                and len(item[0]) <= count
            ):
                raise fields.refuse(
                    "attention_types", "pairs of a list of kinds and how often it repeats"
                )
            expanded += list(item[0]) * item[1]
        if kinds is not None and kinds != expanded:
            raise fields.refuse("attention_layers", "the kinds that attention_types repeats")
        kinds = expanded
    if (
        kinds is None
        or len(kinds) != count
        or any(kind not in ("global", "local") for kind in kinds)
    ):
        raise fields.refuse("attention_types", f"global or local for each of {count} layers")
    fields.skip(
        *SUMMARY,
        "resid_dropout",
        "embed_dropout",
    )
    length = fields.size("max_position_embeddings")
    fields.note(f"{kinds.count('local')} of {count} layers read a window of {window} tokens")
    made = [
        Layer(
            (
                attention(
                    hidden,
                    heads,
                    heads,
                    width,
                    output_bias=True,
                    reach=Reach("window", window) if kind == "local" else Reach(),
                ),
            ),
            (dense(plain(hidden, fields.size("intermediate_size", 4 * hidden))),),
            layer_norms(hidden),
        )
        for kind in kinds
    ]
    return assemble(
        fields,
        layers=made,
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, True),
        final=layer_norm("final", hidden),
        positions=(Tensor("position embedding", (length, hidden), "table"),),
    )


def mpt(fields: Fields) -> Architecture:
    """MPT: ALiBi, no biases at all, norms without bias."""
    hidden, heads, width = _heads(fields, ("d_model",), ("n_heads",))
    fields.only("no_bias", True)
    fields.only("expansion_ratio", 4, because="the library's network is four times as wide")
    options = fields.nested("attn_config")
    if options is not None:
        options.only("attn_type", "multihead_attention")
        options.only("qk_ln", False)
        options.only("prefix_lm", False)
        if options.flag("alibi", True) is not True:
            raise options.refuse("alibi", "true")
        options.skip(
            "alibi_bias_max", "attn_impl", "attn_uses_sequence_id", "clip_qkv", "softmax_scale"
        )
        options.finish()
    fields.only("embedding_fraction", 1.0, 1)
    fields.only("norm_type", "low_precision_layernorm")
    fields.skip(
        "learned_pos_emb", "init_config", "init_device", "logit_scale", "emb_pdrop", "verbose"
    )
    layer = Layer(
        (attention(hidden, heads, heads, width),),
        (dense(plain(hidden, 4 * hidden, False)),),
        layer_norms(hidden, False),
    )
    return _stack(
        fields,
        layer,
        hidden,
        count=("n_layers",),
        shift=False,
        trained_length="max_seq_len",
    )
