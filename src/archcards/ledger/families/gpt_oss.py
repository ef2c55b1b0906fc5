"""gpt-oss: alternating windows, a sink per head, biases everywhere, experts."""

from ..architecture import Architecture, Layer
from ..fields import Fields
from ._blocks import attention, experts, pre_norms, rms_norm, vector
from ._decoder import assemble, head_widths, reaches, tied_table
from .mixtures import chosen

__all__ = ["gpt_oss"]


def gpt_oss(fields: Fields) -> Architecture:
    """gpt-oss 20B and 120B."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    widths = head_widths(fields, hidden, default=64, kv_default=8)
    count = fields.size(fields.first("num_local_experts", "num_experts"))
    taken = fields.first("num_experts_per_tok", "experts_per_token")
    mixture = experts(
        hidden,
        fields.size("intermediate_size"),
        count,
        chosen(fields, taken, count),
        router_bias=True,
        bias=True,
    )
    window = 128 if "sliding_window" not in fields else fields.maybe("sliding_window")
    windows = reaches(fields, layers, window, implied=lambda layer: layer % 2 == 0)
    sinks = (vector("sinks", widths.heads),)
    bias = fields.flag("attention_bias", True)
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
                        extra=sinks,
                        reach=reach,
                    ),
                ),
                (mixture,),
                pre_norms(hidden),
            )
            for reach in windows
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size"),
        tied=tied_table(fields, False),
        final=rms_norm("final", hidden),
    )
