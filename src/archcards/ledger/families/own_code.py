"""Decoders that are no part of the transformers library: their code stands beside the weights."""

from ..architecture import Architecture
from ..fields import Fields
from ._blocks import dense, gated
from ._decoder import FULL, decoder, head_widths
from .glm_moe import first_dense

__all__ = ["baichuan", "chatglm", "deepseek", "internlm2", "minicpm", "qwen"]


def internlm2(fields: Fields) -> Architecture:
    """InternLM2 and 2.5: Llama's layer, query, key and value in one matrix."""
    return decoder(fields, bias=fields.flag("bias", False))


def baichuan(fields: Fields) -> Architecture:
    """Baichuan 1 and 2: Llama's layer; the larger ones have no rotary positions."""
    fields.skip("z_loss_weight")
    return decoder(fields, bias=fields.flag("bias", False))


def minicpm(fields: Fields) -> Architecture:
    """MiniCPM 1: Llama's layer with scales, which change no count; tied unless told."""
    fields.skip("scale_emb", "scale_depth", "dim_model_base", "scale_width")
    fields.only("num_experts", 0)
    return decoder(fields, bias=fields.flag("attention_bias", False), tied=True)


def qwen(fields: Fields) -> Architecture:
    """Qwen 1: biases on query, key and value; each gated matrix has half the width that is told."""
    fields.only("no_bias", True)
    inner = fields.size("intermediate_size")
    if inner % 2:
        raise fields.refuse("intermediate_size", "an even number")
    half = inner // 2
    fields.note(f"intermediate_size {inner} is the width of gate and up together: {half} each")
    fields.skip(
        "attn_dropout_prob",
        "emb_dropout_prob",
        "onnx_safe",
        "scale_attn_weights",
        "softmax_in_fp32",
        "use_cache_kernel",
        "use_cache_quantization",
        "use_dynamic_ntk",
        "use_logn_attn",
    )
    fields.only("num_key_value_heads", fields.size("num_attention_heads"))
    part = dense(gated(fields.size("hidden_size"), half))
    return decoder(
        fields.named(head_dim="kv_channels"),
        parts=lambda fields, hidden, layers: [part] * layers,
        bias=True,
        output_bias=False,
    )


def chatglm(fields: Fields) -> Architecture:
    """ChatGLM 2 and 3 and GLM-4: shared key/value heads, biases on query, key and value."""
    heads = fields.size("num_attention_heads")
    shared = fields.flag("multi_query_attention", False)
    groups = fields.size("multi_query_group_num", 1)
    fields.only("add_bias_linear", False)
    fields.only("rmsnorm", True)
    fields.only("post_layer_norm", True)
    fields.only("interleaved_qkv", False)
    fields.only("prefix_projection", False)
    fields.only("pre_seq_len", 0)
    fields.only("quantization_bit", 0, 4, 8)
    if fields.raw("architectures") == ["ChatGLMModel"]:
        fields.note("ChatGLMModel: the file names the body alone, and its weights have the head")
    fields.skip(
        "apply_query_key_layer_scaling",
        "apply_residual_connection_post_layernorm",
        "attention_softmax_in_fp32",
        "bias_dropout_fusion",
    )
    return decoder(
        fields.named(
            head_dim="kv_channels", intermediate_size="ffn_hidden_size", vocab_size="padded_vocab_size"
        ),
        kv_heads=groups if shared else heads,
        count="num_layers",
        head=True,
        bias=fields.flag("add_qkv_bias", False),
        output_bias=False,
    )


def deepseek(fields: Fields) -> Architecture:
    """DeepSeek-MoE: Llama's attention, the first layers dense, two shared experts."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    return first_dense(
        fields,
        hidden,
        head_widths(fields, hidden),
        [FULL] * layers,
        dense_first=0,
        head_norm=False,
        bias=fields.flag("attention_bias", False),
        output_bias=fields.flag("attention_bias", False),
    )
