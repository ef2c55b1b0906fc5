"""Gemma 3n: parallel residual streams, a low-rank branch, borrowed keys, per-layer embeddings."""

from ..architecture import Architecture, Layer, Tensor
from ..fields import Fields
from ._blocks import attention, dense, gated, head_norms, linear, rms_norm, sandwich_norms, vector
from ._decoder import assemble, has_head, head_widths, reaches, tied_table

__all__ = ["gemma3n", "gemma3n_text"]


def _streams(hidden: int, count: int) -> tuple[Tensor, ...]:
    """AltUp: how `count` residual streams are predicted and corrected in each layer."""
    return (
        *rms_norm("streams", hidden),
        *linear("stream router", hidden, count),
        *linear("stream prediction", count, count * count),
        *linear("stream correction", count, count),
        vector("stream scale", hidden),
    )


def gemma3n_text(fields: Fields, *, head: bool | None = None) -> Architecture:
    """Gemma 3n's text model."""
    hidden, layers = fields.size("hidden_size", 2048), fields.layers(default=35)
    widths = head_widths(fields, hidden, default=256, heads_default=8, kv_default=2)
    window = fields.size("sliding_window", 512)
    windows = reaches(fields, layers, window, implied=lambda layer: (layer + 1) % 5 != 0)
    borrowing = fields.size("num_kv_shared_layers", 15, least=0, most=layers - 1)
    if borrowing >= layers:  # the default, of a model with fewer layers
        raise fields.refuse("num_kv_shared_layers", f"fewer than the {layers} layers")
    owners = layers - borrowing
    if borrowing and set(windows[:owners]) != set(windows):
        raise fields.refuse(
            "num_kv_shared_layers", "fewer, so that each kind of layer has one to borrow from"
        )
    if isinstance(fields.values.get("intermediate_size"), (list, tuple)):
        inner = fields.sizes("intermediate_size", layers, least=1)
    else:
        inner = [fields.size("intermediate_size", 16384)] * layers
    streams, rank = fields.size("altup_num_inputs", 4, most=1000), fields.size("laurel_rank", 64)
    per_layer = fields.size("hidden_size_per_layer_input", 256)
    rows = fields.size("vocab_size_per_layer_input", 262144)
    bias = fields.flag("attention_bias", False)
    fields.skip(
        "activation_sparsity_pattern",
        "altup_active_idx",
        "altup_coef_clip",
        "altup_correct_scale",
        "altup_lr_multiplier",
    )
    others = (
        _streams(hidden, streams)
        + linear("low-rank down", hidden, rank)
        + linear("low-rank up", rank, hidden)
        + rms_norm("low-rank", hidden)
        + linear("per-layer gate", hidden, per_layer)
        + linear("per-layer projection", per_layer, hidden)
        + rms_norm("per-layer", hidden)
    )
    made = []
    for number, reach in enumerate(windows):
        own = number < owners
        mixer = attention(
            hidden,
            widths.heads,
            widths.kv_heads,
            widths.width,
            bias=bias,
            own_keys=own,
            cached=own,
            reach=reach,
            extra=head_norms(widths.width) if own else rms_norm("query", widths.width),
        )
        made.append(
            Layer((mixer,), (dense(gated(hidden, inner[number])),), sandwich_norms(hidden), others)
        )
    tables = (
        Tensor("per-layer embedding", (rows, layers * per_layer), "table"),
        *linear("per-layer projection", hidden, layers * per_layer),
        *rms_norm("per-layer", per_layer),
        Tensor("streams in", (streams - 1, hidden, hidden)),
    )
    if borrowing:
        fields.note(
            f"the last {borrowing} of {layers} layers read the keys and values of earlier ones: "
            f"{owners} layers own a cache"
        )
    fields.note(
        f"per-layer embeddings: a second table of {rows} by {layers * per_layer}, which counts "
        "as active in every convention"
    )
    fields.note("a sparse activation in the first layers costs less than counted")
    return assemble(
        fields,
        layers=made,
        hidden=hidden,
        vocabulary=fields.size("vocab_size", 262400),
        tied=tied_table(fields, True),
        head=head,
        others=tables,
        final=(*rms_norm("final", hidden), Tensor("streams out", (streams - 1, hidden, hidden))),
    )


def gemma3n(fields: Fields) -> Architecture:
    """Gemma 3n with its towers, of which only the text model is counted."""
    text = fields.nested("text_config")
    if text is None:
        raise fields.refuse("text_config", "an object with the text model's fields")
    text.only("model_type", "gemma3n_text")
    fields.only("tie_word_embeddings", True)
    fields.nested("vision_config")
    fields.nested("audio_config")
    fields.skip("audio_soft_tokens_per_image", "vision_soft_tokens_per_image")
    fields.note(
        "the vision and audio towers and their projectors are not counted: text weights only"
    )
    found = gemma3n_text(text, head=has_head(fields))
    text.finish()
    return found
