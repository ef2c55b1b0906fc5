"""Dense decoders by other makers: each differs from Llama in a few norms, biases or windows."""

from ..architecture import Architecture, Reach, Tensor
from ..fields import Fields
from ._blocks import (
    after_norms,
    gated,
    layer_norm,
    layer_norms,
    plain,
    pre_norms,
    rms_norm,
    sandwich_norms,
    vector,
)
from ._decoder import Widths, decoder, reaches, windows
from .gemma import pattern
from .llama import all_heads, each_head

__all__ = [
    "apertus",
    "arcee",
    "bitnet",
    "cohere",
    "cohere2",
    "cwm",
    "ernie4_5",
    "exaone",
    "exaone4",
    "glm",
    "glm4",
    "granite_swa",
    "helium",
    "hunyuan_dense",
    "hunyuan_extras",
    "hyperclovax",
    "internlm3",
    "jais2",
    "ministral",
    "ministral3",
    "nanochat",
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


# Norms of attention that some of them have.


def one_for_each_head(widths: Widths) -> tuple[Tensor, ...]:
    """A scale of its own for each query head and each key head."""
    return (
        vector("query norms", widths.heads, widths.width),
        vector("key norms", widths.kv_heads, widths.width),
    )


def shifted_heads(widths: Widths) -> tuple[Tensor, ...]:
    """Norms with a shift of queries and keys, over one head each."""
    return layer_norm("query", widths.width) + layer_norm("key", widths.width)


def nothing(widths: Widths) -> tuple[Tensor, ...]:
    """None."""
    return ()


# The families.


def smollm3(fields: Fields) -> Architecture:
    """SmolLM3: Llama's layer; every fourth is not rotated, and reads a window if there is one."""

    def reach(fields: Fields, count: int) -> list[Reach]:
        used = fields.flag("use_sliding_window", False)
        window = fields.maybe("sliding_window") if used else None
        interval = fields.size("no_rope_layer_interval", 4)
        rotated = fields.sizes("no_rope_layers", count, most=1) or [
            (layer + 1) % interval for layer in range(count)
        ]
        return reaches(fields, count, window, implied=lambda layer: not rotated[layer])

    fields.skip("sliding_window", "max_window_layers")
    return decoder(
        fields,
        kv_heads=4,
        reach=reach,
        network_bias=fields.flag("mlp_bias", False),
        tied=True,
        bias=fields.flag("attention_bias", False),
    )


def arcee(fields: Fields) -> Architecture:
    """Arcee: a plain network with a squared activation in place of the gated one."""
    return decoder(
        fields,
        network=plain,
        network_bias=fields.flag("mlp_bias", False),
        bias=fields.flag("attention_bias", False),
    )


def apertus(fields: Fields) -> Architecture:
    """Apertus: a plain network whose activation has two parameters, head norms."""
    fields.text("hidden_act", "xielu", ["xielu"])
    fields.only("mlp_bias", False)
    fields.only("post_norm", False)
    fields.only("qk_norm", True)
    return decoder(
        fields,
        network=lambda *sizes: (*plain(*sizes), vector("activation", 2)),
        bias=fields.flag("attention_bias", False),
        extra=each_head,
    )


def nemotron(fields: Fields) -> Architecture:
    """Nemotron 4 and Minitron: layer norms, a plain network with a squared activation."""
    return decoder(
        fields,
        network=plain,
        network_bias=fields.flag("mlp_bias", False),
        norms=layer_norms,
        final=layer_norm,
        bias=fields.flag("attention_bias", False),
    )


def starcoder2(fields: Fields) -> Architecture:
    """StarCoder2: layer norms, biases, a plain network, every layer a window unless it is null."""
    bias = fields.flag("use_bias", True)
    fields.only("norm_type", "layer_norm")
    fields.only("mlp_type", "default")
    return decoder(
        fields,
        kv_heads=2,
        reach=windows(),
        network=plain,
        network_bias=bias,
        norms=layer_norms,
        final=layer_norm,
        tied=True,
        bias=bias,
    )


def stablelm(fields: Fields) -> Architecture:
    """StableLM: layer norms, optional norms per head, perhaps one norm for both halves."""
    parallel = fields.flag("use_parallel_residual", False)
    return decoder(
        fields,
        kv_heads=32,
        norms=(lambda hidden: layer_norm("layer", hidden)) if parallel else layer_norms,
        final=layer_norm,
        bias=fields.flag("use_qkv_bias", False),
        output_bias=False,
        extra=one_for_each_head if fields.flag("qk_layernorm", False) else nothing,
    )


def phi(fields: Fields) -> Architecture:
    """Phi 1 to 2: one norm for both halves, which run in parallel; biases, also on the head."""
    return decoder(
        fields,
        network=plain,
        network_bias=True,
        norms=lambda hidden: layer_norm("layer", hidden),
        final=layer_norm,
        head_bias=True,
        bias=True,
        extra=shifted_heads if fields.flag("qk_layernorm", False) else nothing,
    )


def persimmon(fields: Fields) -> Architecture:
    """Persimmon: GPT-NeoX's layer with norms on queries and keys."""
    fields.only("num_key_value_heads", fields.size("num_attention_heads"))
    return decoder(
        fields,
        share=True,
        network=plain,
        network_bias=True,
        norms=layer_norms,
        final=layer_norm,
        bias=True,
        extra=shifted_heads if fields.flag("qk_layernorm", True) else nothing,
    )


def olmo(fields: Fields) -> Architecture:
    """OLMo: norms without parameters."""
    fields.skip("clip_qkv")
    return decoder(
        fields,
        norms=lambda hidden: (),
        final=lambda name, hidden: (),
        bias=fields.flag("attention_bias", False),
    )


def _olmo2(fields: Fields, **reach) -> Architecture:
    bias = fields.flag("attention_bias", False)
    return decoder(fields, norms=after_norms, bias=bias, extra=all_heads, **reach)


def olmo2(fields: Fields) -> Architecture:
    """OLMo 2: norms after each half, and on queries and keys over all heads."""
    return _olmo2(fields)


def olmo3(fields: Fields) -> Architecture:
    """OLMo 3: OLMo 2 with three window layers to a full one."""
    return _olmo2(fields, reach=windows(4096, lambda layer: (layer + 1) % 4 != 0))


def _cohere(fields: Fields, **differences) -> Architecture:
    return decoder(
        fields,
        norms=lambda hidden: layer_norm("layer", hidden, False),
        final=lambda name, hidden: layer_norm(name, hidden, False),
        tied=True,
        bias=fields.flag("attention_bias", False),
        **differences,
    )


def cohere(fields: Fields) -> Architecture:
    """Command R: one norm without bias for both halves, which run in parallel; tied."""
    normed = fields.flag("use_qk_norm", False)
    return _cohere(fields, extra=one_for_each_head if normed else nothing)


def cohere2(fields: Fields) -> Architecture:
    """Command R7B and A: Command R with three window layers to a full one."""
    every = fields.first("sliding_window_pattern", "_sliding_window_pattern")
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
    return _cohere(fields, share=True, reach=windows(4096, pattern(fields, every, 4)))


def _glm(fields: Fields, norms) -> Architecture:
    return decoder(
        fields,
        head_width=128,
        kv_heads=2,
        norms=norms,
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
    bias = fields.flag("use_bias", False)
    return decoder(fields, head_width=128, kv_heads=2, network_bias=bias, tied=True, bias=bias)


def helium(fields: Fields) -> Architecture:
    """Helium."""
    return decoder(
        fields,
        head_width=128,
        kv_heads=20,
        share=True,
        network_bias=fields.flag("mlp_bias", False),
        bias=fields.flag("attention_bias", False),
        output_bias=False,
    )


def hyperclovax(fields: Fields) -> Architecture:
    """HyperCLOVA X: Granite's multipliers, which change no count, and a norm after each half."""
    after = fields.flag("use_post_norm", True)
    return decoder(
        fields,
        norms=sandwich_norms if after else pre_norms,
        bias=fields.flag("attention_bias", False),
        network_bias=fields.flag("mlp_bias", False),
    )


def hunyuan_dense(fields: Fields) -> Architecture:
    """Hunyuan, dense: head norms on query and key."""
    hunyuan_extras(fields)
    return decoder(fields, bias=fields.flag("attention_bias", False), extra=each_head)


def hunyuan_extras(fields: Fields) -> None:
    """What Hunyuan's files carry of models of images and of attention that they do not use."""
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


def exaone4_windows(fields: Fields, count: int) -> list[Reach]:
    """EXAONE's windows: a zero is none, and the pattern a number or letters."""
    window = fields.maybe("sliding_window", least=0) or None
    if "sliding_window" not in fields:
        window = 4096
    implied = None if window is None else pattern(fields, "sliding_window_pattern", 4)
    fields.skip("sliding_window_pattern")
    return reaches(fields, count, window, implied=implied)


def exaone4(fields: Fields) -> Architecture:
    """EXAONE 4: norms after each half and on heads; a window pattern as a number or as letters."""
    fields.skip("cache_implementation")
    return decoder(fields, kv_heads=32, reach=exaone4_windows, norms=after_norms, extra=each_head)


def seed_oss(fields: Fields) -> Architecture:
    """Seed-OSS: biases on query, key and value."""
    return decoder(
        fields,
        head_width=128,
        kv_heads=8,
        network_bias=fields.flag("mlp_bias", False),
        bias=fields.flag("attention_bias", True),
        output_bias=fields.flag("attention_out_bias", False),
    )


def ministral(fields: Fields) -> Architecture:
    """Ministral 8B: Mistral with a kind for each layer."""
    return decoder(fields, kv_heads=8, reach=windows(4096))


def ministral3(fields: Fields) -> Architecture:
    """Ministral 3: Mistral's layer, full attention unless a window is given."""
    return decoder(fields, head_width=128, kv_heads=8, reach=windows())


def vaultgemma(fields: Fields) -> Architecture:
    """VaultGemma: Gemma 2 without the norms after each half."""
    return decoder(
        fields,
        head_width=256,
        kv_heads=4,
        reach=windows(4096, lambda layer: layer % 2 == 0),
        tied=True,
        bias=fields.flag("attention_bias", False),
    )


def bitnet(fields: Fields) -> Architecture:
    """BitNet b1.58: a norm before the output projection, and one inside the network."""
    hidden = fields.size("hidden_size")
    return decoder(
        fields,
        kv_heads=5,
        network=lambda width, inner, bias: gated(width, inner, bias) + rms_norm("inner", inner),
        bias=fields.flag("attention_bias", False),
        extra=lambda widths: rms_norm("before output", hidden),
    )


def exaone(fields: Fields) -> Architecture:
    """EXAONE 3 and 3.5: Llama's layer under other names of fields."""
    if fields.values.get("tie_word_embeddings") is None:
        raise fields.refuse("tie_word_embeddings", "true or false (its two defaults differ)")
    return decoder(
        fields,
        kv_heads=8,
        count=fields.first("num_layers", "num_hidden_layers"),
        bias=fields.flag("attention_bias", False),
        network_bias=fields.flag("mlp_bias", False),
    )


def internlm3(fields: Fields) -> Architecture:
    """InternLM3: Llama's layer, one switch for query, key and value, one for all other biases."""
    bias = fields.flag(fields.first("bias", "mlp_bias"), False)
    return decoder(
        fields,
        head_width=128,
        kv_heads=2,
        network_bias=bias,
        bias=fields.flag(fields.first("qkv_bias", "attention_bias"), False),
        output_bias=bias,
    )


def cwm(fields: Fields) -> Architecture:
    """Code World Model: three window layers after each full one, which comes first."""
    return decoder(
        fields,
        head_width=128,
        kv_heads=8,
        reach=windows(8192, lambda layer: layer % 4 != 0),
        network_bias=fields.flag("mlp_bias", False),
    )


def granite_swa(fields: Fields) -> Architecture:
    """Granite with windows: three after each full layer, and a sink for each head."""
    fields.skip("layer_rope_theta")
    return decoder(
        fields,
        kv_heads=4,
        reach=windows(128, lambda layer: layer % 4 != 0),
        network_bias=fields.flag("mlp_bias", False),
        tied=True,
        bias=fields.flag("attention_bias", False),
        extra=lambda widths: (vector("sinks", widths.heads),),
    )


def jais2(fields: Fields) -> Architecture:
    """Jais 2: layer norms, biases, a plain network with a squared activation."""
    return decoder(
        fields,
        network=plain,
        network_bias=fields.flag("mlp_bias", True),
        norms=layer_norms,
        final=layer_norm,
        bias=fields.flag("attention_bias", True),
    )


def nanochat(fields: Fields) -> Architecture:
    """nanochat: norms without parameters, a plain network without biases."""
    return decoder(
        fields,
        network=plain,
        norms=lambda hidden: (),
        final=lambda name, hidden: (),
        bias=fields.flag("attention_bias", False),
    )
