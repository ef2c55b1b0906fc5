"""Vision towers."""

from collections.abc import Callable

from ..architecture import Image, Layer, Reach, Tensor, Tower
from ..fields import Fields
from ._blocks import attention, dense, layer_norm, plain

__all__ = ["ALL", "patch_embedding", "siglip"]

ALL = Reach("all")


def patch_embedding(hidden: int, channels: int, *patch: int, bias: bool = True) -> tuple[Tensor, ...]:
    """The projection of one patch's pixels."""
    weight = Tensor("patch embedding", (hidden, channels, *patch), per="patch")
    extra = (Tensor("patch embedding bias", (hidden,), "vector", per="patch"),) if bias else ()
    return (weight, *extra)


def siglip(fields: Fields, hidden: int, projector: Callable[[int, int], tuple[Tensor, ...]]) -> Tower:
    """A SigLIP tower: learned positions, biases, no class token, no pooling head."""
    fields.only("model_type", "siglip_vision_model")
    width = fields.size("hidden_size", 1152)
    heads = fields.size("num_attention_heads", 16)
    per_head = fields.divides("num_attention_heads", heads, width, "the tower's hidden size")
    count = fields.layers(default=27)
    inner = fields.size("intermediate_size", 4304)
    channels = fields.size("num_channels", 3)
    size, patch = fields.size("image_size", 896), fields.size("patch_size", 14)
    fields.only("vision_use_head", False)
    fields.only("num_key_value_heads", heads)
    side = size // patch
    layer = Layer((attention(width, heads, heads, per_head, bias=True, reach=ALL, cached=False),),
                  (dense(plain(width, inner)),),
                  layer_norm("attention", width) + layer_norm("feed-forward", width))
    fields.finish()
    return Tower(
        layers=(layer,) * count,
        embeddings=patch_embedding(width, channels, patch, patch)
        + (Tensor("positions", (side * side, width), "table"),),
        others=layer_norm("final", width),
        projector=projector(width, hidden),
        image=Image(size, size, patch, patch),
    )
