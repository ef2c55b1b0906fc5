"""Mamba, Falcon-Mamba and Mamba-2: no attention at all."""

from ..architecture import Architecture, Layer, Recurrence
from ..fields import Fields
from ._blocks import rms_norm
from ._decoder import assemble, tied_table
from ._recurrences import mamba as mamba_block
from ._recurrences import mamba2 as mamba2_block

__all__ = ["falcon_mamba", "mamba", "mamba2", "rank_of"]


def rank_of(fields: Fields, name: str, hidden: int) -> int:
    """The rank of the step's projection: a number, or "auto" for hidden / 16 rounded up."""
    if name not in fields or fields.values[name] == "auto":
        fields.skip(name)
        return -(-hidden // 16)
    return fields.size(name)


def _assembled(fields: Fields, hidden: int, mixer: Recurrence, tied: bool) -> Architecture:
    layer = Layer((mixer,), (), rms_norm("mixer", hidden))
    # Some conversions keep the names of the original package beside these.
    fields.skip(
        "d_model",
        "n_layer",
        "d_inner",
        "ssm_cfg",
        "rms_norm",
        "fused_add_norm",
        "residual_in_fp32",
        "rescale_prenorm_residual",
        "pad_vocab_size_multiple",
        "use_mambapy",
        "use_falcon_mambapy",
        "use_associative_scan",
        "time_step_init_scheme",
        "time_step_floor",
        "time_step_max",
        "time_step_min",
        "time_step_scale",
        "time_step_limit",
        "mixer_rms_eps",
        "chunk_size",
        "norm_before_gate",
    )
    fields.note("no attention: the cache is a fixed state per sequence")
    return assemble(
        fields,
        layers=[layer] * fields.layers(),
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, tied),
        final=rms_norm("final", hidden),
    )


def _mamba(fields: Fields) -> Architecture:
    hidden = fields.size("hidden_size")
    inner = fields.maybe("intermediate_size")
    expand = fields.size("expand", 2)
    if inner is None:
        inner = expand * hidden
    elif "expand" in fields and inner != expand * hidden:
        fields.note(f"intermediate_size {inner} counts, not expand {expand} times {hidden}")
    mixer = mamba_block(
        hidden,
        inner,
        fields.size("state_size", 16),
        rank_of(fields, "time_step_rank", hidden),
        fields.size("conv_kernel", 4),
        bias=fields.flag("use_bias", False),
        conv_bias=fields.flag("use_conv_bias", True),
    )
    return _assembled(fields, hidden, mixer, True)


def mamba(fields: Fields) -> Architecture:
    """Mamba."""
    return _mamba(fields)


def falcon_mamba(fields: Fields) -> Architecture:
    """Falcon-Mamba: Mamba with norms on step, B and C that have no parameters."""
    return _mamba(fields)


def mamba2(fields: Fields) -> Architecture:
    """Mamba-2: heads times their width is the inner size."""
    hidden = fields.size("hidden_size")
    heads, width = fields.size("num_heads", 128), fields.size("head_dim", 64)
    expand = fields.size("expand", 2)
    if heads * width != expand * hidden:
        raise fields.refuse(
            "num_heads", f"{expand * hidden} / head_dim {width} (expand times hidden_size)"
        )
    fields.only("intermediate_size", heads * width)
    fields.skip("time_step_rank")
    groups = fields.size("n_groups", 8)
    fields.divides("n_groups", groups, heads, "num_heads")
    mixer = mamba2_block(
        hidden,
        heads,
        width,
        groups,
        fields.size("state_size", 128),
        fields.size("conv_kernel", 4),
        bias=fields.flag("use_bias", False),
        conv_bias=fields.flag("use_conv_bias", True),
    )
    return _assembled(fields, hidden, mixer, False)
