"""Llama 3.2 Vision: a Llama with layers between that read an image's tokens by cross-attention."""

from ..architecture import Architecture, Embeddings, Head, Image, Layer, Tensor, Tower
from ..fields import Fields
from ._blocks import (
    attention,
    dense,
    gated,
    head_norms,
    layer_norm,
    layer_norms,
    linear,
    plain,
    pre_norms,
    rms_norm,
    vector,
)
from ._decoder import has_head, head_widths
from ._towers import ALL, patch_embedding

__all__ = ["mllama", "mllama_text"]

IMAGE_TOKENS = 8
"""Rows of the token table beyond the vocabulary, for the image and its kin."""

LISTED = (3, 8, 13, 18, 23, 28, 33, 38)
INDICES = (3, 7, 15, 23, 30)
"""Layers that read the image, and layers of the tower whose outputs are read, unless told."""


def mllama_text(fields: Fields, *, vision: Tower | None = None, head: bool = True) -> Architecture:
    """The text model of Llama 3.2 Vision: cross-attention layers have gates and head norms."""
    hidden, count = fields.size("hidden_size", 4096), fields.layers(default=40)
    widths = head_widths(fields, hidden, heads_default=32, kv_default=8)
    inner, vocabulary = (
        fields.size("intermediate_size", 14336),
        fields.size("vocab_size", 128256),
    )
    fields.only("tie_word_embeddings", False)
    listed = fields.sizes("cross_attention_layers", most=count - 1)
    between = set(LISTED if listed is None else listed)
    if max(between, default=0) >= count:
        raise fields.refuse("cross_attention_layers", f"layers below {count}")
    sizes = (hidden, widths.heads, widths.kv_heads, widths.width)
    network = dense(gated(hidden, inner))
    own = Layer((attention(*sizes),), (network,), pre_norms(hidden))
    norms = head_norms(widths.width)
    cross = attention(*sizes, keys_from="source", cross=True, extra=norms)
    gates = (vector("attention gate", 1), vector("feed-forward gate", 1))
    other = Layer((cross,), (network,), pre_norms(hidden), gates)
    fields.note(
        f"{len(between)} of {count} layers read the image: its tokens are the source, and their "
        "keys and values are kept once"
    )
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary + IMAGE_TOKENS, hidden), "table")
        ),
        layers=tuple(other if layer in between else own for layer in range(count)),
        head=Head(Tensor("output embedding", (vocabulary, hidden)) if head else None),
        final=rms_norm("final", hidden),
        vision=vision,
        trained_length=fields.maybe("max_position_embeddings"),
    )


def _tower(fields: Fields, hidden: int) -> Tower:
    """Tiles of an image, each with its place; then layers with gates, and six outputs at once."""
    fields.only("model_type", "mllama_vision_model")
    width, heads = fields.size("hidden_size", 1280), fields.size("attention_heads", 16)
    per_head = fields.divides("attention_heads", heads, width, "hidden_size")
    inner, channels = fields.size("intermediate_size", 5120), fields.size("num_channels", 3)
    size, patch = fields.size("image_size", 448), fields.size("patch_size", 14)
    if patch > size:
        raise fields.refuse("patch_size", f"at most image_size, {size}")
    tiles = fields.size("max_num_tiles", 4)
    ratios = fields.items("supported_aspect_ratios")
    kinds = 1 + (8 if ratios is None else len(ratios))
    indices = fields.sizes("intermediate_layers_indices")
    outputs = 1 + len(INDICES if indices is None else indices)
    into = fields.size("vision_output_dim", 7680)
    if into != outputs * width:
        raise fields.refuse("vision_output_dim", f"{outputs} times hidden_size, {outputs * width}")
    layer = Layer(
        (attention(width, heads, heads, per_head, reach=ALL, cached=False),),
        (dense(plain(width, inner)),),
        layer_norms(width),
    )
    gate = (vector("attention gate", 1), vector("feed-forward gate", 1))
    local, overall = fields.layers(default=32), fields.layers("num_global_layers", 8)
    positions = (size // patch) ** 2 + 1

    def places(name: str, scalars: int) -> tuple[Tensor, ...]:
        return (vector(f"{name} gate", 1), Tensor(name, (kinds, tiles * scalars), "table"))

    return Tower(
        layers=(layer,) * local + (layer._replace(others=gate),) * overall,
        embeddings=(
            *patch_embedding(width, channels, patch, patch, bias=False),
            vector("class token", width),
            Tensor("positions", (positions, width), "table"),
            *places("positions in tiles", positions * width),
            *places("tiles before", width),
            *places("tiles after", width),
        ),
        others=layer_norm("first", width) + layer_norm("final", width),
        projector=linear("projection", into, hidden, True),
        image=Image(size, size, patch, patch, 1),
    )


def mllama(fields: Fields) -> Architecture:
    """Llama 3.2 Vision, 11B and 90B."""
    text, vision = fields.nested("text_config"), fields.nested("vision_config")
    if text is None:
        raise fields.refuse("text_config", "an object with the text model's fields")
    text.only("model_type", "mllama_text_model")
    fields.only("tie_word_embeddings", False)
    tower = None
    if vision is None:
        fields.note("the file describes no vision tower: text weights only")
    else:
        tower = _tower(vision, text.size("hidden_size", 4096))
        vision.finish()
    found = mllama_text(text, vision=tower, head=has_head(fields))
    text.finish()
    return found
