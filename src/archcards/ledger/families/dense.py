"""Dense decoders by other makers: each differs from Llama in a few norms, biases or windows."""

from ..architecture import Architecture, Layer, Reach, Tensor
from ..fields import Fields
from ._blocks import attention, dense, gated, layer_norm, plain, rms_norm, vector
from ._decoder import FULL, Widths, assemble, head_widths, reaches, tied_table
from .gemma import pattern, sandwich_norms
from .llama import head_norms, pre_norms

__all__ = [
    "apertus",
    "arcee",
    "bitnet",
    "cohere",
    "cohere2",
    "ernie4_5",
    "exaone4",
    "glm",
    "glm4",
    "helium",
    "hunyuan_dense",
    "ministral",
    "ministral3",
    "nemotron",
    "olmo",
    "olmo2",
    "olmo3",
    "persimmon",
    "phi",
    "seed_oss",
    "smollm3",
    "stablelm",
    "starcoder2",
    "vaultgemma",
]


def _decoder(
    fields: Fields,
    hidden: int,
    widths: Widths,
    windows: list[Reach],
    network: tuple[Tensor, ...],
    norms: tuple[Tensor, ...],
    final: tuple[Tensor, ...],
    *,
    tied: bool = False,
    head_bias: bool = False,
    **options,
) -> Architecture:
    """Equal layers of attention and a dense network, but for what each may read."""
    part = dense(network)
    return assemble(
        fields,
        layers=[
            Layer(
                (
                    attention(
                        hidden, widths.heads, widths.kv_heads, widths.width, reach=reach, **options
                    ),
                ),
                (part,),
                norms,
            )
            for reach in windows
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, tied),
        final=final,
        head_bias=head_bias,
    )


def _full(fields: Fields) -> list[Reach]:
    count = fields.layers()
    fields.kinds("layer_types", count, ["full_attention"])
    return [FULL] * count


def smollm3(fields: Fields) -> Architecture:
    """SmolLM3: Llama's layer; every fourth without rotation, which changes no count."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=4)
    window = fields.maybe("sliding_window") if fields.flag("use_sliding_window", False) else None
    fields.skip("sliding_window", "no_rope_layer_interval", "max_window_layers")
    rotated = fields.sizes("no_rope_layers", count, most=1) or [1] * count
    windows = reaches(fields, count, window, implied=lambda layer: not rotated[layer])
    inner, mlp_bias = fields.size("intermediate_size"), fields.flag("mlp_bias", False)
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        gated(hidden, inner, mlp_bias),
        pre_norms(hidden),
        rms_norm("final", hidden),
        tied=True,
        bias=fields.flag("attention_bias", False),
    )


def arcee(fields: Fields) -> Architecture:
    """Arcee: a plain network with a squared activation in place of the gated one."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    network = plain(hidden, fields.size("intermediate_size"), fields.flag("mlp_bias", False))
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        network,
        pre_norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", False),
    )


def apertus(fields: Fields) -> Architecture:
    """Apertus: a plain network whose activation has two parameters, head norms."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    fields.text("hidden_act", "xielu", ["xielu"])
    fields.only("mlp_bias", False)
    fields.only("post_norm", False)
    fields.only("qk_norm", True)
    network = plain(hidden, fields.size("intermediate_size"), False) + (vector("activation", 2),)
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        network,
        pre_norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", False),
        extra=head_norms(widths.width),
    )


def nemotron(fields: Fields) -> Architecture:
    """Nemotron 4 and Minitron: layer norms, a plain network with a squared activation."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    network = plain(hidden, fields.size("intermediate_size"), fields.flag("mlp_bias", False))
    norms = layer_norm("attention", hidden) + layer_norm("feed-forward", hidden)
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        network,
        norms,
        layer_norm("final", hidden),
        bias=fields.flag("attention_bias", False),
    )


def starcoder2(fields: Fields) -> Architecture:
    """StarCoder2: layer norms, biases, a plain network, every layer a window unless it is null."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=2)
    bias = fields.flag("use_bias", True)
    windows = reaches(fields, count, fields.maybe("sliding_window"), implied=lambda layer: True)
    fields.only("norm_type", "layer_norm")
    fields.only("mlp_type", "default")
    norms = layer_norm("attention", hidden) + layer_norm("feed-forward", hidden)
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        plain(hidden, fields.size("intermediate_size"), bias),
        norms,
        layer_norm("final", hidden),
        tied=True,
        bias=bias,
    )


def stablelm(fields: Fields) -> Architecture:
    """StableLM: layer norms, optional norms per head, perhaps one norm for both halves."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    norms = layer_norm("attention", hidden)
    if not fields.flag("use_parallel_residual", False):
        norms += layer_norm("feed-forward", hidden)
    extra = ()
    if fields.flag("qk_layernorm", False):
        extra = (
            vector("query norms", widths.heads, widths.width),
            vector("key norms", widths.kv_heads, widths.width),
        )
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        gated(hidden, fields.size("intermediate_size")),
        norms,
        layer_norm("final", hidden),
        bias=fields.flag("use_qkv_bias", False),
        output_bias=False,
        extra=extra,
    )


def phi(fields: Fields) -> Architecture:
    """Phi 1 to 2: one norm for both halves, which run in parallel; biases, also on the head."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    extra = ()
    if fields.flag("qk_layernorm", False):
        extra = layer_norm("query", widths.width) + layer_norm("key", widths.width)
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        plain(hidden, fields.size("intermediate_size")),
        layer_norm("layer", hidden),
        layer_norm("final", hidden),
        head_bias=True,
        bias=True,
        extra=extra,
    )


def persimmon(fields: Fields) -> Architecture:
    """Persimmon: GPT-NeoX's layer with norms on queries and keys."""
    hidden, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    extra = ()
    if fields.flag("qk_layernorm", True):
        extra = layer_norm("query", width) + layer_norm("key", width)
    norms = layer_norm("attention", hidden) + layer_norm("feed-forward", hidden)
    return _decoder(
        fields,
        hidden,
        Widths(heads, heads, width),
        _full(fields),
        plain(hidden, fields.size("intermediate_size")),
        norms,
        layer_norm("final", hidden),
        bias=True,
        extra=extra,
    )


def olmo(fields: Fields) -> Architecture:
    """OLMo: norms without parameters."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    fields.skip("clip_qkv")
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        gated(hidden, fields.size("intermediate_size")),
        (),
        (),
        bias=fields.flag("attention_bias", False),
    )


def all_head_norms(widths: Widths) -> tuple[Tensor, ...]:
    """Norms over all query heads, and over all key heads, at once."""
    return rms_norm("query", widths.heads * widths.width) + rms_norm(
        "key", widths.kv_heads * widths.width
    )


def after_norms(hidden: int) -> tuple[Tensor, ...]:
    """A norm after each half, none before."""
    return rms_norm("after attention", hidden) + rms_norm("after feed-forward", hidden)


def _olmo2(fields: Fields, hidden: int, widths: Widths, windows: list[Reach]) -> Architecture:
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        gated(hidden, fields.size("intermediate_size")),
        after_norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", False),
        extra=all_head_norms(widths),
    )


def olmo2(fields: Fields) -> Architecture:
    """OLMo 2: norms after each half, and on queries and keys over all heads."""
    hidden = fields.size("hidden_size")
    return _olmo2(fields, hidden, head_widths(fields, hidden), _full(fields))


def olmo3(fields: Fields) -> Architecture:
    """OLMo 3: OLMo 2 with three window layers to a full one."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    window = 4096 if "sliding_window" not in fields else fields.maybe("sliding_window")
    windows = reaches(fields, count, window, implied=lambda layer: (layer + 1) % 4 != 0)
    return _olmo2(fields, hidden, head_widths(fields, hidden), windows)


def cohere(fields: Fields) -> Architecture:
    """Command R: one norm without bias for both halves, which run in parallel; tied."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    extra = ()
    if fields.flag("use_qk_norm", False):
        extra = (
            vector("query norms", widths.heads, widths.width),
            vector("key norms", widths.kv_heads, widths.width),
        )
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        gated(hidden, fields.size("intermediate_size")),
        layer_norm("layer", hidden, False),
        layer_norm("final", hidden, False),
        tied=True,
        bias=fields.flag("attention_bias", False),
        extra=extra,
    )


def cohere2(fields: Fields) -> Architecture:
    """Command R7B and A: Command R with three window layers to a full one."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden)
    if widths.heads * widths.width != hidden:
        raise fields.refuse(
            "head_dim", f"{hidden // widths.heads}, the heads' share of hidden_size"
        )
    window = 4096 if "sliding_window" not in fields else fields.maybe("sliding_window")
    every = fields.first("sliding_window_pattern", "_sliding_window_pattern")
    windows = reaches(fields, count, window, implied=pattern(fields, every, 4))
    fields.only("use_qk_norm", False)
    fields.skip(
        "layer_switch",
        "order_of_interleaved_layers",
        "position_embedding_type",
        "rotary_pct",
        "cache_implementation",
        "use_embedding_sharing",
        "use_gated_activation",
        "use_parallel_block",
        "use_parallel_embedding",
    )
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        gated(hidden, fields.size("intermediate_size")),
        layer_norm("layer", hidden, False),
        layer_norm("final", hidden, False),
        tied=True,
        bias=fields.flag("attention_bias", False),
    )


def _glm(fields: Fields, norms) -> Architecture:
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden, default=128, kv_default=2)
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        gated(hidden, fields.size("intermediate_size")),
        norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", True),
        output_bias=False,
    )


def glm(fields: Fields) -> Architecture:
    """GLM-4 9B: biases on query, key and value."""
    return _glm(fields, pre_norms)


def glm4(fields: Fields) -> Architecture:
    """GLM-4 0414: GLM with norms also after each half."""
    return _glm(fields, sandwich_norms)


def ernie4_5(fields: Fields) -> Architecture:
    """ERNIE 4.5, dense."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden, default=128, kv_default=2)
    bias = fields.flag("use_bias", False)
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        gated(hidden, fields.size("intermediate_size"), bias),
        pre_norms(hidden),
        rms_norm("final", hidden),
        tied=True,
        bias=bias,
    )


def helium(fields: Fields) -> Architecture:
    """Helium."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden, default=128)
    if widths.heads * widths.width != hidden:
        raise fields.refuse("head_dim", "the heads' share of hidden_size")
    network = gated(hidden, fields.size("intermediate_size"), fields.flag("mlp_bias", False))
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        network,
        pre_norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", False),
        output_bias=False,
    )


def hunyuan_dense(fields: Fields) -> Architecture:
    """Hunyuan, dense: head norms on query and key."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    fields.only("use_qk_norm", True)
    fields.only("use_cla", False)
    fields.skip(
        "attention_head_dim",
        "cla_share_factor",
        "dense_list",
        "eod_token_id",
        "norm_type",
        "sep_token_id",
        "text_end_id",
        "text_start_id",
        "mask_init_id",
        "im_start_id",
        "im_end_id",
        "im_newline_id",
        "num_media_embeds",
        "position_embedding_xdrope",
        "org_vocab_size",
        "use_rotary_pos_emb",
        "enable_lm_head_fp32",
        "eod_id",
        "pad_id",
        "class_num",
        "pool_type",
        "add_classification_head",
        "skip_cls_token",
        "unused_vocab",
    )
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        gated(hidden, fields.size("intermediate_size")),
        pre_norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", False),
        extra=head_norms(widths.width),
    )


def exaone4(fields: Fields) -> Architecture:
    """EXAONE 4: norms after each half and on heads; a window pattern as a number or as letters."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden)
    window = (
        4096 if "sliding_window" not in fields else fields.maybe("sliding_window", least=0) or None
    )
    implied = None if window is None else pattern(fields, "sliding_window_pattern", 4)
    fields.skip("sliding_window_pattern")
    windows = reaches(fields, count, window, implied=implied)
    fields.skip("cache_implementation")
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        gated(hidden, fields.size("intermediate_size")),
        after_norms(hidden),
        rms_norm("final", hidden),
        extra=head_norms(widths.width),
    )


def seed_oss(fields: Fields) -> Architecture:
    """Seed-OSS: biases on query, key and value."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden, default=128, kv_default=8)
    network = gated(hidden, fields.size("intermediate_size"), fields.flag("mlp_bias", False))
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        network,
        pre_norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", True),
        output_bias=fields.flag("attention_out_bias", False),
    )


def ministral(fields: Fields) -> Architecture:
    """Ministral 8B: Mistral with a kind for each layer."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    window = 4096 if "sliding_window" not in fields else fields.maybe("sliding_window")
    windows = reaches(fields, count, window, implied=lambda layer: True)
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        gated(hidden, fields.size("intermediate_size")),
        pre_norms(hidden),
        rms_norm("final", hidden),
    )


def ministral3(fields: Fields) -> Architecture:
    """Ministral 3: Mistral's layer, full attention unless a window is given."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, kv_default=8)
    windows = reaches(fields, count, fields.maybe("sliding_window"), implied=lambda layer: True)
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        gated(hidden, fields.size("intermediate_size")),
        pre_norms(hidden),
        rms_norm("final", hidden),
    )


def vaultgemma(fields: Fields) -> Architecture:
    """VaultGemma: Gemma 2 without the norms after each half."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, default=256, kv_default=4)
    window = 4096 if "sliding_window" not in fields else fields.maybe("sliding_window")
    windows = reaches(fields, count, window, implied=lambda layer: layer % 2 == 0)
    return _decoder(
        fields,
        hidden,
        widths,
        windows,
        gated(hidden, fields.size("intermediate_size")),
        pre_norms(hidden),
        rms_norm("final", hidden),
        tied=True,
        bias=fields.flag("attention_bias", False),
    )


def bitnet(fields: Fields) -> Architecture:
    """BitNet b1.58: a norm before the output projection, and one inside the network."""
    hidden = fields.size("hidden_size")
    widths = head_widths(fields, hidden)
    inner = fields.size("intermediate_size")
    return _decoder(
        fields,
        hidden,
        widths,
        _full(fields),
        gated(hidden, inner) + rms_norm("inner", inner),
        pre_norms(hidden),
        rms_norm("final", hidden),
        bias=fields.flag("attention_bias", False),
        extra=rms_norm("before output", hidden),
    )
