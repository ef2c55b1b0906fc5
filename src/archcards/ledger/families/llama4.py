"""Llama 4: layers that attend in chunks, one expert a token beside a shared one."""

from ..architecture import Architecture, Layer, Reach, Tower
from ..fields import Fields
from ._blocks import attention, dense, experts, gated, pre_norms, rms_norm
from ._decoder import FULL, assemble, has_head, head_widths, tied_table
from ._towers import llama4_vision
from .mixtures import chosen

__all__ = ["llama4", "llama4_text"]


def llama4_text(
    fields: Fields, *, head: bool | None = None, tower: Tower | None = None
) -> Architecture:
    """Llama 4's text model: chunked attention with rotation, full attention without."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, default=128, kv_default=8)
    every = fields.size("no_rope_layer_interval", 4)
    rotated = fields.sizes("no_rope_layers", most=1)
    if rotated and len(rotated) != layers:
        raise fields.refuse("no_rope_layers", f"a list of {layers} items, or an empty one")
    rotated = rotated or [int((layer + 1) % every != 0) for layer in range(layers)]
    chunk = 8192 if "attention_chunk_size" not in fields else fields.maybe("attention_chunk_size")
    kinds = fields.kinds("layer_types", layers, ["chunked_attention", "full_attention"]) or [
        "chunked_attention" if rotates and chunk else "full_attention" for rotates in rotated
    ]
    if "chunked_attention" in kinds and not chunk:
        raise fields.refuse("attention_chunk_size", "a chunk, since layer_types has chunked layers")
    step = fields.size("interleave_moe_layer_step", 1)
    mixtures = fields.sizes("moe_layers", most=layers - 1)
    mixtures = set(range(step - 1, layers, step)) if mixtures is None else set(mixtures)
    count = fields.size(fields.first("num_local_experts", "num_experts"), 16)
    inner = fields.size("intermediate_size")
    mixture = experts(
        hidden, inner, count, chosen(fields, "num_experts_per_tok", count, 1), shared=inner
    )
    network = None
    if len(mixtures) < layers:
        network = dense(gated(hidden, fields.size("intermediate_size_mlp")))
    fields.skip(
        "intermediate_size_mlp",
        "use_qk_norm",
        "attn_temperature_tuning",
        "floor_scale",
        "attn_scale",
        "for_llm_compressor",
        "cache_implementation",
    )
    bias = fields.flag("attention_bias", False)
    limited = kinds.count("chunked_attention")
    if limited:
        fields.note(
            f"{limited} of {layers} layers attend within chunks of {chunk} positions: of T tokens "
            f"they need the last (T - 1) mod {chunk} + 1; counted is a store that keeps {chunk}"
        )
    reach = {"full_attention": FULL, "chunked_attention": Reach("chunk", chunk)}
    return assemble(
        fields,
        layers=[
            Layer(
                (
                    attention(
                        hidden,
                        widths.heads,
                        widths.kv_heads,
                        widths.width,
                        bias=bias,
                        reach=reach[kind],
                    ),
                ),
                (mixture if layer in mixtures else network,),
                pre_norms(hidden),
            )
            for layer, kind in enumerate(kinds)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        head=head,
        final=rms_norm("final", hidden),
        vision=tower,
    )


def llama4(fields: Fields) -> Architecture:
    """Llama 4 with its vision tower, where the file describes one."""
    text = fields.nested("text_config")
    if text is None:
        raise fields.refuse("text_config", "an object with the text model's fields")
    text.only("model_type", "llama4_text")
    fields.only("tie_word_embeddings", False)
    vision = fields.nested("vision_config")
    tower = llama4_vision(vision, text.size("hidden_size")) if vision is not None else None
    if tower is None:
        fields.note("the file describes no vision tower: text weights only")
    found = llama4_text(text, head=has_head(fields), tower=tower)
    text.finish()
    return found
