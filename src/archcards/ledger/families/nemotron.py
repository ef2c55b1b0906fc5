"""Nemotron-H and Nemotron 3: a pattern string, one thing a layer."""

from ..architecture import Architecture, Experts, Layer, Module, Tensor
from ..fields import MOST_LAYERS, Fields
from ._blocks import attention, dense, linear, plain, rms_norm
from ._decoder import assemble
from ._recurrences import mamba2
from .hybrids import FULL, RECURRENT
from .mixtures import chosen

__all__ = ["nemotron_h"]

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}


def _words(fields: Fields, name: str) -> list[str] | None:
    """A list of kinds in this module's words, whichever the file uses; None where absent."""
    listed = fields.items(name)
    if listed is None:
        return None
    return [
        "mamba" if kind in RECURRENT else "attention" if kind in FULL else kind
        for kind in fields.kinds(name, len(listed), [*RECURRENT, *FULL, "mlp", "moe"])
    ]


def nemotron_kinds(fields: Fields) -> list[str]:
    """Nemotron-H's layers: letters of a pattern, or words."""
    words = fields.first("layers_block_type", "layer_types")
    pattern = fields.text("hybrid_override_pattern")
    found = _words(fields, words)
    if found is None:
        if not pattern:
            raise fields.refuse("hybrid_override_pattern", "a letter for each layer")
        if not set(pattern) <= set(LETTERS):
            raise fields.refuse("hybrid_override_pattern", f"the letters {' '.join(LETTERS)}")
        found = [LETTERS[letter] for letter in pattern]
    count = fields.maybe("num_hidden_layers", most=MOST_LAYERS)
    if count is not None and count != len(found):
        raise fields.refuse(
            "num_hidden_layers", f"{len(found)}, as many as the pattern has letters"
        )
    if not 0 < len(found) <= MOST_LAYERS:
        raise fields.refuse(words, f"between 1 and {MOST_LAYERS} layers")
    return found


def nemotron_h(fields: Fields) -> Architecture:
    """Nemotron-H and Nemotron 3: each layer one thing only, as a pattern string spells them."""
    hidden = fields.size("hidden_size")
    kinds = nemotron_kinds(fields)
    heads = fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads", 8, null=heads)
    fields.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    width = fields.size(fields.first("head_dim", "attention_head_dim"), 128)
    bias = fields.flag("use_bias", False)
    fields.only("attention_bias", False)
    fields.only("mamba_proj_bias", bias)
    fields.only("sliding_window")
    fields.skip(
        "expand",
        "mamba_expand",
        "chunk_size",
        "mamba_chunk_size",
        "mamba_hidden_act",
        "mamba_ssm_cache_dtype",
        "rescale_prenorm_residual",
        "residual_in_fp32",
        "time_step_floor",
        "time_step_max",
        "time_step_min",
        "time_step_limit",
        "use_mamba_kernels",
        "moe_shared_expert_overlap",
        "mamba_dt_init_floor",
        "rope_theta",
        "time_step_rank",
        "mtp_layers_block_type",
    )
    blocks: dict[str, tuple] = {}
    if "mamba" in kinds:
        number, groups = (
            fields.size("mamba_num_heads"),
            fields.size(fields.first("n_groups", "mamba_n_groups"), 8),
        )
        fields.divides("n_groups", groups, number, "mamba_num_heads")
        blocks["mamba"] = (
            (
                mamba2(
                    hidden,
                    number,
                    fields.size("mamba_head_dim"),
                    groups,
                    fields.size("ssm_state_size"),
                    fields.size(fields.first("conv_kernel", "mamba_d_conv"), 4),
                    bias=bias,
                    conv_bias=fields.flag(fields.first("use_conv_bias", "mamba_conv_bias"), True),
                ),
            ),
            (),
        )
    if "attention" in kinds:
        blocks["attention"] = ((attention(hidden, heads, kv_heads, width),), ())
    mlp_bias = fields.flag("mlp_bias", False)
    if "mlp" in kinds:
        blocks["mlp"] = ((), (dense(plain(hidden, fields.size("intermediate_size"), mlp_bias)),))
    if "moe" in kinds:
        blocks["moe"] = ((), (_nemotron_experts(fields, hidden, mlp_bias),))
    # A file without experts, attention or state-space layers still carries their sizes.
    fields.skip(
        "mamba_num_heads",
        "mamba_head_dim",
        "ssm_state_size",
        "n_groups",
        "mamba_n_groups",
        "conv_kernel",
        "mamba_d_conv",
        "use_conv_bias",
        "mamba_conv_bias",
        "intermediate_size",
        "n_routed_experts",
        "num_local_experts",
        "num_experts_per_tok",
        "n_shared_experts",
        "moe_intermediate_size",
        "moe_shared_expert_intermediate_size",
    )
    if "moe" not in kinds:
        fields.skip("moe_latent_size")
    norm = rms_norm("mixer", hidden)
    fields.only("tie_word_embeddings", False)
    modules = fields.size("num_nextn_predict_layers", 0, least=0, most=64)
    prediction = _nemotron_prediction(fields, hidden, blocks, norm) * modules if modules else ()
    return assemble(
        fields,
        layers=[Layer(*blocks[kind], norm) for kind in kinds],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=False,
        final=rms_norm("final", hidden),
        multi_token_prediction=prediction,
    )


def _nemotron_prediction(
    fields: Fields, hidden: int, blocks: dict[str, tuple], norm: tuple[Tensor, ...]
) -> tuple[Module, ...]:
    """One prediction module: its pattern's blocks between two norms and a projection, and a norm."""
    pattern = fields.text("mtp_hybrid_override_pattern")
    kinds = _words(fields, "mtp_layers_block_type") or [LETTERS.get(c) for c in pattern or ""]
    if not 0 < len(kinds) <= 64 or not set(kinds) <= set(blocks):
        fields.note(
            "multi-token-prediction layers are announced (num_nextn_predict_layers) and not "
            "described: not counted"
        )
        return ()
    others = (
        rms_norm("embedding", hidden)
        + rms_norm("hidden", hidden)
        + linear("projection", 2 * hidden, hidden)
        + rms_norm("final", hidden)
    )
    return (Module(tuple(Layer(*blocks[kind], norm) for kind in kinds), others),)


def _nemotron_experts(fields: Fields, hidden: int, bias: bool) -> Experts:
    count = fields.size(fields.first("n_routed_experts", "num_local_experts"))
    taken = chosen(fields, "num_experts_per_tok", count)
    inner, always = (
        fields.size("moe_intermediate_size"),
        fields.size("moe_shared_expert_intermediate_size"),
    )
    fields.only("n_shared_experts", 1)
    latent = fields.maybe("moe_latent_size")
    routed = plain(latent or hidden, inner, False, copies=count, used=taken)
    if latent:
        routed += linear("latent down", hidden, latent, bias) + linear(
            "latent up", latent, hidden, bias
        )
    return Experts(
        count, taken, linear("router", hidden, count), routed, plain(hidden, always, bias)
    )
