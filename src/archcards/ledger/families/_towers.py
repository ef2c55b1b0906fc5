"""Vision towers."""

from collections.abc import Callable

from ..architecture import Image, Layer, Reach, Tensor, Tower
from ..fields import Fields
from ._blocks import attention, dense, gated, layer_norm, linear, plain, rms_norm, vector

__all__ = [
    "ALL",
    "gemma4_vision",
    "llama4_vision",
    "patch_embedding",
    "pixtral",
    "qwen2_5_vision",
    "qwen2_vision",
    "qwen_vision",
    "siglip",
]

ALL = Reach("all")


def patch_embedding(
    hidden: int, channels: int, *patch: int, bias: bool = True
) -> tuple[Tensor, ...]:
    """The projection of one patch's pixels."""
    weight = Tensor("patch embedding", (hidden, channels, *patch), per="patch")
    extra = (Tensor("patch embedding bias", (hidden,), "vector", per="patch"),) if bias else ()
    return (weight, *extra)


def siglip(
    fields: Fields, hidden: int, projector: Callable[[int, int], tuple[Tensor, ...]]
) -> Tower:
    """A SigLIP tower: learned positions, biases, no class token; a pooling head unless told."""
    fields.only("model_type", "siglip_vision_model")
    width = fields.size("hidden_size", 1152)
    heads = fields.size("num_attention_heads", 16)
    per_head = fields.divides("num_attention_heads", heads, width, "the tower's hidden size")
    count = fields.layers(default=27)
    inner = fields.size("intermediate_size", 4304)
    channels = fields.size("num_channels", 3)
    size, patch = fields.size("image_size", 896), fields.size("patch_size", 14)
    pooled = fields.flag("vision_use_head", True)
    fields.only("num_key_value_heads", heads)
    side = size // patch
    layer = Layer(
        (attention(width, heads, heads, per_head, bias=True, reach=ALL, cached=False),),
        (dense(plain(width, inner)),),
        layer_norm("attention", width) + layer_norm("feed-forward", width),
    )
    head: tuple[Tensor, ...] = ()
    if pooled:
        head = (
            vector("probe", width),
            *linear("pooling in", width, 3 * width, True),
            *linear("pooling out", width, width, True),
            *layer_norm("pooling", width),
            *plain(width, inner),
        )
        fields.note("the tower has its pooling head (vision_use_head)")
    fields.finish()
    return Tower(
        layers=(layer,) * count,
        embeddings=patch_embedding(width, channels, patch, patch)
        + (Tensor("positions", (side * side, width), "table"),),
        others=layer_norm("final", width) + head,
        projector=projector(width, hidden),
        image=Image(size, size, patch, patch),
    )


def qwen_vision(fields: Fields, hidden: int) -> Tower:
    """The tower of Qwen3-VL and Qwen3.5: 3D patches, learned positions, a merger of 2 by 2."""
    fields.text("model_type")
    width = fields.size("hidden_size", 1152)
    heads = fields.size(fields.first("num_heads", "num_attention_heads"), 16)
    per_head = fields.divides("num_heads", heads, width, "the tower's hidden size")
    count = fields.layers(fields.first("depth", "num_hidden_layers"), 27)
    patch, frames = fields.size("patch_size", 16), fields.size("temporal_patch_size", 2)
    merged = width * fields.size("spatial_merge_size", 2) ** 2
    channels = fields.size("in_channels", 3)
    inner = fields.size("intermediate_size", 4304)
    positions = fields.size("num_position_embeddings", 2304)
    out = fields.size("out_hidden_size", hidden)
    if out != hidden:
        raise fields.refuse("out_hidden_size", f"{hidden}, the text model's hidden size")
    deep = fields.sizes("deepstack_visual_indexes", most=count - 1) or []
    layer = Layer(
        (attention(width, heads, heads, per_head, bias=True, reach=ALL, cached=False),),
        (dense(plain(width, inner)),),
        layer_norm("attention", width) + layer_norm("feed-forward", width),
    )

    def merger(norm: int) -> tuple[Tensor, ...]:
        return (
            layer_norm("merger", norm)
            + linear("merger up", merged, merged, True)
            + linear("merger down", merged, out, True)
        )

    return Tower(
        layers=(layer,) * count,
        embeddings=patch_embedding(width, channels, frames, patch, patch)
        + (Tensor("positions", (positions, width), "table"),),
        projector=merger(width) + merger(merged) * len(deep),
    )


def llama4_vision(fields: Fields, hidden: int) -> Tower:
    """Llama 4's tower: a class token, norms at both ends, a pixel shuffle and two projections."""
    fields.only("model_type", "llama4_vision_model")
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    per_head = fields.divides("num_attention_heads", heads, width, "the tower's hidden size")
    size, patch = fields.size("image_size"), fields.size("patch_size")
    inner = fields.size("intermediate_size")
    channels, count = fields.size("num_channels", 3), fields.layers()
    middle, out = fields.size("projector_input_dim"), fields.size("projector_output_dim")
    if middle != out:
        raise fields.refuse("projector_output_dim", f"{middle}, as projector_input_dim")
    into = fields.size("vision_output_dim")
    if into != out:
        fields.note(f"the vision projector reads vision_output_dim {into}")
    fields.only("multi_modal_projector_bias", False)
    fields.skip(
        "pixel_shuffle_ratio",
        "vision_feature_layer",
        "vision_feature_select_strategy",
        "projector_dropout",
    )
    layer = Layer(
        (attention(width, heads, heads, per_head, bias=True, reach=ALL, cached=False),),
        (dense(plain(width, inner)),),
        layer_norm("attention", width) + layer_norm("feed-forward", width),
    )
    fields.finish()
    return Tower(
        layers=(layer,) * count,
        embeddings=patch_embedding(width, channels, patch, patch, bias=False)
        + (
            vector("class token", width),
            Tensor("positions", ((size // patch) ** 2 + 1, width), "table"),
        ),
        others=layer_norm("first", width)
        + layer_norm("final", width)
        + linear("adapter in", inner, middle)
        + linear("adapter out", out, out),
        projector=linear("projection", into, hidden),
        image=Image(size, size, patch, patch, 1),
    )


def gemma4_vision(fields: Fields, hidden: int) -> Tower:
    """Gemma 4's tower: two tables of positions (rows and columns), gated networks, four norms."""
    fields.only("model_type", "gemma4_vision")
    width, heads = fields.size("hidden_size"), fields.size("num_attention_heads")
    kv_heads = fields.size("num_key_value_heads", heads)
    fields.divides("num_key_value_heads", kv_heads, heads, "num_attention_heads")
    per_head = fields.size("head_dim")
    fields.only("global_head_dim", per_head)
    fields.only("attention_bias", False)
    patch, positions = fields.size("patch_size", 16), fields.size("position_embedding_size", 10240)
    inner, count = fields.size("intermediate_size"), fields.layers()
    fields.skip(
        "pooling_kernel_size", "default_output_length", "standardize", "use_clipped_linears"
    )
    names = ("attention", "after attention", "feed-forward", "after feed-forward")
    layer = Layer(
        (
            attention(
                width,
                heads,
                kv_heads,
                per_head,
                reach=ALL,
                cached=False,
                extra=rms_norm("query", per_head) + rms_norm("key", per_head),
            ),
        ),
        (dense(gated(width, inner)),),
        sum((rms_norm(name, width) for name in names), ()),
    )
    fields.finish()
    return Tower(
        layers=(layer,) * count,
        embeddings=(
            Tensor("patch embedding", (width, 3 * patch * patch), per="patch"),
            Tensor("positions", (2, positions, width), "table"),
        ),
        projector=linear("projection", width, hidden),
    )


def _merger(width: int, squared: int, out: int, norm: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    merged = width * squared
    return (
        norm + linear("merger up", merged, merged, True) + linear("merger down", merged, out, True)
    )


def qwen2_vision(fields: Fields, hidden: int) -> Tower:
    """Qwen2-VL's tower: 3D patches without bias, layer norms, a merger of 2 by 2."""
    fields.only("model_type", "qwen2_vl_vision", "qwen2_vl")
    width, heads = fields.size("embed_dim", 1280), fields.size("num_heads", 16)
    per_head = fields.divides("num_heads", heads, width, "embed_dim")
    inner = width * fields.size("mlp_ratio", 4)
    channels = fields.size(fields.first("in_channels", "in_chans"), 3)
    patch, frames = fields.size("patch_size", 14), fields.size("temporal_patch_size", 2)
    merge, out = fields.size("spatial_merge_size", 2), fields.size("hidden_size", hidden)
    fields.only("spatial_patch_size", patch)
    layer = Layer(
        (attention(width, heads, heads, per_head, bias=True, reach=ALL, cached=False),),
        (dense(plain(width, inner)),),
        layer_norm("attention", width) + layer_norm("feed-forward", width),
    )
    return Tower(
        layers=(layer,) * fields.layers("depth", 32),
        embeddings=patch_embedding(width, channels, frames, patch, patch, bias=False),
        projector=_merger(width, merge * merge, out, layer_norm("merger", width)),
    )


def qwen2_5_vision(fields: Fields, hidden: int) -> Tower:
    """Qwen2.5-VL's tower: gated networks, norms without shift; some layers attend in windows."""
    fields.only("model_type", "qwen2_5_vl_vision", "qwen2_5_vl")
    width, heads = fields.size("hidden_size", 3584), fields.size("num_heads", 16)
    per_head = fields.divides("num_heads", heads, width, "the tower's hidden size")
    inner = fields.size("intermediate_size", 3420)
    channels = fields.size(fields.first("in_channels", "in_chans"), 3)
    patch, frames = fields.size("patch_size", 14), fields.size("temporal_patch_size", 2)
    merge, out = fields.size("spatial_merge_size", 2), fields.size("out_hidden_size", hidden)
    fields.only("spatial_patch_size", patch)
    fields.skip("window_size", "fullatt_block_indexes", "tokens_per_second")
    layer = Layer(
        (attention(width, heads, heads, per_head, bias=True, reach=ALL, cached=False),),
        (dense(gated(width, inner, True)),),
        rms_norm("attention", width) + rms_norm("feed-forward", width),
    )
    return Tower(
        layers=(layer,) * fields.layers("depth", 32),
        embeddings=patch_embedding(width, channels, frames, patch, patch, bias=False),
        projector=_merger(width, merge * merge, out, rms_norm("merger", width)),
    )


def pixtral(fields: Fields, hidden: int, merge: int, bias: bool) -> Tower:
    """Pixtral's tower: rotary positions in two dimensions, no biases, gated networks."""
    fields.only("model_type", "pixtral")
    width, heads = fields.size("hidden_size", 1024), fields.size("num_attention_heads", 16)
    per_head = fields.divides("num_attention_heads", heads, width, "the tower's hidden size")
    fields.only("head_dim", per_head)
    inner, patch = fields.size("intermediate_size", 4096), fields.size("patch_size", 14)
    channels = fields.size("num_channels", 3)
    fields.skip("image_size", "vocab_size")
    layer = Layer(
        (attention(width, heads, heads, per_head, reach=ALL, cached=False),),
        (dense(gated(width, inner)),),
        rms_norm("attention", width) + rms_norm("feed-forward", width),
    )
    return Tower(
        layers=(layer,) * fields.layers(default=24),
        embeddings=patch_embedding(width, channels, patch, patch, bias=False)
        + rms_norm("first", width),
        projector=rms_norm("projector", width)
        + linear("merger", width * merge * merge, width)
        + linear("projection in", width, hidden, bias)
        + linear("projection out", hidden, hidden, bias),
    )
