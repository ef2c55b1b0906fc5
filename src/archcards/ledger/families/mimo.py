"""MiMo-V2-Flash: window layers with more key/value heads than the others, and with sinks."""

from ..architecture import Architecture, Layer, Reach
from ..fields import Fields
from ._blocks import attention, dense, experts, gated, pre_norms, rms_norm, vector
from ._decoder import FULL, assemble, tied_table
from .mixtures import chosen

__all__ = ["mimo_v2_flash"]

KINDS = ("full_attention", "sliding_attention")
PARTS = ("dense", "sparse")


def _kinds(
    fields: Fields, count: int, newer: str, older: str, words: tuple[str, str], implied: list[str]
) -> list[str]:
    """A word for each layer, or the older list of a 0 or a 1; they must agree."""
    named, numbers = fields.kinds(newer, count, words), fields.sizes(older, count, most=1)
    told = None if numbers is None else [words[number] for number in numbers]
    if named is not None and told is not None and named != told:
        raise fields.refuse(newer, f"the layers that {older} names")
    return named or told or implied


def mimo_v2_flash(fields: Fields) -> Architecture:
    """MiMo-V2-Flash: five window layers to a full one, values narrower than keys, experts."""
    hidden, count = fields.size("hidden_size"), fields.layers()
    heads, kv_heads = fields.size("num_attention_heads"), fields.size("num_key_value_heads", 4)
    keys, values = fields.size("head_dim", 192), fields.size("v_head_dim", 128)
    near_heads = fields.size("swa_num_key_value_heads", 2 * kv_heads)
    for number in (kv_heads, near_heads):
        fields.divides("num_key_value_heads", number, heads, "num_attention_heads")
    fields.only("swa_num_attention_heads", heads)
    fields.only("swa_head_dim", keys)
    fields.only("swa_v_head_dim", values)
    fields.only("add_swa_attention_sink_bias", True)
    fields.only("add_full_attention_sink_bias", False)
    fields.only("use_qk_norm", False)
    fields.only("mlp_bias", False)
    fields.only("n_shared_experts", 0)
    fields.only("hybrid_block_size", 0)
    fields.skip("attention_value_scale", "attention_chunk_size")
    before, window = fields.maybe("sliding_window_size"), fields.size("sliding_window", 129)
    if before is not None:
        window = before + 1
        fields.note(f"a window is {before} tokens (sliding_window_size) and the token itself")
    kinds = _kinds(
        fields, count, "layer_types", "hybrid_layer_pattern", KINDS,
        [KINDS[layer > 0 and (layer + 1) % 6 != 0] for layer in range(count)],
    )  # fmt: skip
    parts = _kinds(
        fields, count, "mlp_layer_types", "moe_layer_freq", PARTS,
        [PARTS[layer > 0] for layer in range(count)],
    )  # fmt: skip
    number = fields.size(fields.first("n_routed_experts", "num_local_experts"), 256)
    mixture = experts(
        hidden,
        fields.size("moe_intermediate_size"),
        number,
        chosen(fields, "num_experts_per_tok", number, 8),
    )
    bias = fields.flag("attention_bias", False)

    def mixer(number: int, reach: Reach, extra: tuple = ()):
        return attention(
            hidden, heads, number, keys, values,
            bias=bias, output_bias=False, reach=reach, extra=extra,
        )  # fmt: skip

    mixers = {
        KINDS[0]: mixer(kv_heads, FULL),
        KINDS[1]: mixer(near_heads, Reach("window", window), (vector("sinks", heads),)),
    }
    networks = {
        PARTS[0]: dense(gated(hidden, fields.size("intermediate_size"))),
        PARTS[1]: mixture,
    }
    fields.note(
        f"{kinds.count(KINDS[1])} of {count} layers read a window of {window} tokens, with "
        f"{near_heads} key/value heads instead of {kv_heads}"
    )
    return assemble(
        fields,
        layers=[
            Layer((mixers[kind],), (networks[part],), pre_norms(hidden))
            for kind, part in zip(kinds, parts, strict=True)
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )
