"""Gemma 1 to 3."""

from collections.abc import Callable

from ..architecture import Architecture, Layer, Reach, Tensor
from ..fields import Fields
from ._blocks import (
    attention,
    dense,
    gated,
    head_norms,
    rms_norm,
    sandwich_norms,
)
from ._decoder import assemble, decoder, has_head, head_widths, tied_table, windows
from ._towers import siglip

__all__ = ["gemma", "gemma2", "gemma3", "gemma3_text"]


def gemma(fields: Fields) -> Architecture:
    """Gemma 1: Llama's layer, heads 256 wide, the table tied."""
    fields.only("use_bidirectional_attention", False)
    bias = fields.flag("attention_bias", False)
    return decoder(fields, head_width=256, kv_heads=16, tied=True, bias=bias)


def gemma2(fields: Fields) -> Architecture:
    """Gemma 2: four norms a layer; every other layer, the first included, a window."""
    fields.only("use_bidirectional_attention", False)
    fields.skip("cache_implementation", "sliding_window_size")
    return decoder(
        fields,
        head_width=256,
        kv_heads=4,
        reach=windows(4096, lambda layer: layer % 2 == 0),
        norms=sandwich_norms,
        tied=True,
        bias=fields.flag("attention_bias", False),
    )


def pattern(fields: Fields, name: str, default: int) -> Callable[[int], bool]:
    """A window pattern: every n-th layer reads everything, or letters, L for a window."""
    value = fields.raw(name)
    if isinstance(value, str):
        if not value or set(value) - set("LG"):
            raise fields.refuse(name, "a number of layers, or a string of L (window) and G (full)")
        return lambda layer: value[layer % len(value)] == "L"
    every = fields.size(name, default)
    return lambda layer: (layer + 1) % every != 0


def gemma3_text(fields: Fields, **parts) -> Architecture:
    """Gemma 3's text model: five window layers to a full one, head norms on query and key."""
    hidden, count = fields.size("hidden_size"), fields.layers(default=26)
    # The published files of the larger models leave out what equals the library's defaults.
    for name, value in (("num_attention_heads", 8), ("num_key_value_heads", 4), ("head_dim", 256)):
        if name not in fields:
            fields.note(f"{fields.where(name)} absent: the family's default, {value}")
    widths = head_widths(fields, hidden, default=256, heads_default=8, kv_default=4)
    both_ways = fields.flag("use_bidirectional_attention", False)
    fields.skip("cache_implementation")
    every = fields.first("sliding_window_pattern", "_sliding_window_pattern")
    reach = windows(4096, pattern(fields, every, 6))
    network = dense(gated(hidden, fields.size("intermediate_size")))
    bias, extra = fields.flag("attention_bias", False), head_norms(widths.width)
    seen = reach(fields, count)
    if both_ways:
        # Half the window lies to each side; nothing is decoded, so nothing is cached.
        seen = [Reach("around", one.size // 2) if one.size else Reach("all") for one in seen]
        parts |= {"decodes": False}
        fields.note("use_bidirectional_attention: an encoder, each window half to each side")
    sizes = (hidden, widths.heads, widths.kv_heads, widths.width)
    return assemble(
        fields,
        layers=[
            Layer(
                (attention(*sizes, bias=bias, extra=extra, reach=one, cached=not both_ways),),
                (network,),
                sandwich_norms(hidden),
            )
            for one in seen
        ],
        hidden=hidden,
        vocabulary=fields.size("vocab_size", 262208),
        tied=tied_table(fields, True),
        final=rms_norm("final", hidden),
        **parts,
    )


def gemma3(fields: Fields) -> Architecture:
    """Gemma 3 with its SigLIP tower: the text model is nested in `text_config`."""
    text = fields.nested("text_config")
    if text is None:
        raise fields.refuse("text_config", "an object with the text model's fields")
    # The table is tied, or not, by what the whole file says; the text model's own word is not read.
    tied = fields.flag("tie_word_embeddings", True)
    text = Fields({**text.values, "tie_word_embeddings": tied}, text.path, fields.notes)
    text.only("model_type", "gemma3_text")
    vision = fields.nested("vision_config")
    tokens = fields.size("mm_tokens_per_image", 256)
    tower = None
    if vision is not None:
        tower = siglip(
            vision,
            text.size("hidden_size"),
            projector=lambda width, hidden: (
                Tensor("projection", (width, hidden), per="image token"),
                *rms_norm("soft embedding", width),
            ),
        )
        fields.note(f"an image is {tokens} tokens of the text model")
    else:
        fields.note("the file describes no vision tower: text weights only")
    inner = gemma3_text(text, head=has_head(fields), vision=tower)
    text.finish()
    return inner
