"""Gemma 4: other heads in full layers, borrowed keys and values, per-layer embeddings, experts."""

from ..architecture import Architecture, Experts, Layer, Reach, Tensor, Tower
from ..fields import Fields
from ._blocks import (
    attention,
    dense,
    experts,
    gated,
    head_norms,
    linear,
    rms_norm,
    sandwich_norms,
    vector,
)
from ._decoder import FULL, assemble, has_head, tied_table
from ._towers import gemma4_vision
from .mixtures import chosen

__all__ = ["gemma4", "gemma4_text"]

WINDOW, WHOLE = "sliding_attention", "full_attention"


def _kinds(fields: Fields, layers: int) -> list[str]:
    kinds = fields.kinds("layer_types", layers, [WINDOW, WHOLE]) or [
        WINDOW if (layer + 1) % 6 else WHOLE for layer in range(layers)
    ]
    if kinds[-1] != WHOLE:
        kinds[-1] = WHOLE
        fields.note("the last layer reads everything, whatever layer_types says")
    return kinds


def _mixture(fields: Fields, hidden: int) -> Experts | None:
    if not fields.flag("enable_moe_block", False):
        fields.skip(
            "num_experts", "top_k_experts", "moe_intermediate_size", "expert_intermediate_size"
        )
        return None
    fields.only("expert_intermediate_size", fields.values.get("moe_intermediate_size"))
    count = fields.size("num_experts")
    made = experts(
        hidden,
        fields.size("moe_intermediate_size"),
        count,
        chosen(fields, fields.first("top_k_experts", "num_experts_per_tok"), count),
    )
    scales = (vector("router scale", hidden), vector("expert scales", count))
    return Experts(made.count, made.chosen, made.router + scales, made.routed)


def _overrides(
    fields: Fields, kinds: list[str], kv_heads: dict[str, int], width: dict[str, int]
) -> None:
    """What `per_layer_config` says of the full layers, as newer files write it instead."""
    given = fields.nested("per_layer_config")
    if given is None:
        return
    full = {number for number, kind in enumerate(kinds) if kind == WHOLE}
    if {int(name) if name.isdecimal() and len(name) < 9 else -1 for name in given.values} != full:
        raise fields.refuse("per_layer_config", "a key for each full layer")
    for position, name in enumerate(given.values):
        layer = given.nested(name)
        if layer is None:
            raise given.refuse(name, "an object")
        found = (
            layer.size("head_dim", width[WINDOW]),
            layer.size("num_key_value_heads", kv_heads[WINDOW]),
        )
        layer.finish()
        if position == 0:
            width[WHOLE], kv_heads[WHOLE] = found
        elif found != (width[WHOLE], kv_heads[WHOLE]):
            raise given.refuse(name, "the same heads in every full layer")


def gemma4_text(
    fields: Fields,
    *,
    tied: bool | None = None,
    head: bool | None = None,
    tower: Tower | None = None,
) -> Architecture:
    """Gemma 4's text model."""
    hidden, layers = fields.size("hidden_size"), fields.layers()
    heads = fields.size("num_attention_heads")
    kinds = _kinds(fields, layers)
    window = fields.size("sliding_window", 512)
    same = fields.flag("attention_k_eq_v", False)
    listed = fields.size("num_key_value_heads")
    wide = fields.maybe("num_global_key_value_heads")
    kv_heads = {WINDOW: listed, WHOLE: wide if same and wide is not None else listed}
    width = {WINDOW: fields.size("head_dim", 256), WHOLE: fields.size("global_head_dim", 512)}
    _overrides(fields, kinds, kv_heads, width)
    for name, number in (
        ("num_key_value_heads", listed),
        ("num_global_key_value_heads", kv_heads[WHOLE]),
    ):
        fields.divides(name, number, heads, "num_attention_heads")
    borrowing = fields.size("num_kv_shared_layers", 0, least=0, most=layers - 1)
    owners = layers - borrowing
    if borrowing and set(kinds[:owners]) != set(kinds):
        raise fields.refuse(
            "num_kv_shared_layers", "fewer, so that each kind of layer has one to borrow from"
        )
    double = fields.flag("use_double_wide_mlp", False)
    inner, bias = fields.size("intermediate_size"), fields.flag("attention_bias", False)
    if fields.values.get("use_bidirectional_attention") == "all":
        raise fields.refuse("use_bidirectional_attention", "vision or null")
    fields.skip("use_bidirectional_attention")
    per_layer = fields.size("hidden_size_per_layer_input", 256, least=0, null=0)
    mixture = _mixture(fields, hidden)
    norms = sandwich_norms(hidden)
    if mixture:
        norms += sum(
            (rms_norm(f"{name} experts", hidden) for name in ("before", "after", "dense beside")),
            (),
        )
    others = ()
    if per_layer:
        others = (
            linear("per-layer gate", hidden, per_layer)
            + linear("per-layer projection", per_layer, hidden)
            + rms_norm("per-layer", hidden)
        )
    made = []
    for number, kind in enumerate(kinds):
        own = number < owners
        mixer = attention(
            hidden,
            heads,
            kv_heads[kind],
            width[kind],
            bias=bias,
            own_keys=own,
            own_values=not (same and kind == WHOLE),
            cached=own,
            extra=head_norms(width[kind]) if own else rms_norm("query", width[kind]),
            reach=Reach("window", window) if kind == WINDOW else FULL,
        )
        network = dense(gated(hidden, inner * (2 if double and not own else 1)))
        made.append(Layer((mixer,), (network, mixture) if mixture else (network,), norms, others))
    tables: tuple[Tensor, ...] = ()
    if per_layer:
        rows = fields.size("vocab_size_per_layer_input", 262144)
        tables = (
            Tensor("per-layer embedding", (rows, layers * per_layer), "table"),
            *linear("per-layer projection", hidden, layers * per_layer),
            *rms_norm("per-layer", per_layer),
        )
        fields.note(
            f"per-layer embeddings: a second table of {rows} by {layers * per_layer}, which counts "
            "as active in every convention"
        )
    else:
        fields.skip("vocab_size_per_layer_input")
    if borrowing:
        fields.note(
            f"the last {borrowing} of {layers} layers read the keys and values of earlier ones: "
            f"{owners} layers own a cache"
        )
    if same:
        fields.note(
            "attention_k_eq_v: full layers have no value projection, but keys (normed and "
            "rotated) and values differ and both are cached"
        )
    fields.note(
        f"{kinds.count(WINDOW)} of {layers} layers read a window of {window} tokens; full layers "
        f"have heads {width[WHOLE]} wide, the others {width[WINDOW]}"
    )
    if tied is None:
        tied = tied_table(fields, True)
    else:
        fields.only("tie_word_embeddings", tied)
        fields.note("tied: the output head is the token table, counted once")
    return assemble(
        fields,
        layers=made,
        hidden=hidden,
        vocabulary=fields.size("vocab_size", 262144),
        tied=tied,
        head=head,
        final=rms_norm("final", hidden),
        others=tables,
        vision=tower,
    )


def gemma4(fields: Fields) -> Architecture:
    """Gemma 4 with its vision tower, where the file describes one."""
    text = fields.nested("text_config")
    if text is None:
        raise fields.refuse("text_config", "an object with the text model's fields")
    text.only("model_type", "gemma4_text")
    fields.only("tie_word_embeddings", True)
    vision = fields.nested("vision_config")
    tower = gemma4_vision(vision, text.size("hidden_size")) if vision is not None else None
    if tower is None:
        fields.note("the file describes no vision tower: text weights only")
    if fields.nested("audio_config") is not None:
        fields.note("audio_config: the audio tower is not counted")
    fields.skip("vision_soft_tokens_per_image")
    found = gemma4_text(text, tied=True, head=has_head(fields), tower=tower)
    text.finish()
    return found
