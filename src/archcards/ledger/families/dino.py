"""DINOv2 and DINOv3: ViTs with scaled halves, a token for masked patches, perhaps registers."""

from ..architecture import Architecture, Embeddings, Head, Image, Layer, Tensor
from ..fields import Fields
from ._blocks import attention, dense, gated, layer_norm, layer_norms, linear, plain, vector
from ._heads import CLASSES, architecture_class, labels
from ._towers import ALL, patch_embedding
from .encoders import sides

__all__ = ["dinov2", "dinov2_with_registers", "dinov3_vit"]

MOST_REGISTERS = 10_000
"""Tokens beside the patches, so that the sequence stays a length that can be counted with."""


def _read(
    fields: Fields,
    prefix: str,
    network: tuple[Tensor, ...],
    *,
    hidden: int,
    patch: int,
    registers: int = 0,
    mask: bool = True,
    positions: bool = True,
    **biases,
) -> Architecture:
    heads = fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    height, across = sides(fields, "image_size", 224)
    patch_height, patch_width = sides(fields, "patch_size", patch)
    channels = fields.size("num_channels", 3)
    count = (height // patch_height) * (across // patch_width)
    if not count:
        raise fields.refuse("patch_size", f"at most image_size, {min(height, across)}")
    fields.skip("layerscale_value", "apply_layernorm", "reshape_hidden_states")
    fields.skip("out_features", "out_indices", "stage_names")
    layer = Layer(
        (attention(hidden, heads, heads, width, reach=ALL, cached=False, **biases),),
        (dense(network),),
        layer_norms(hidden),
        (vector("attention scale", hidden), vector("feed-forward scale", hidden)),
    )
    name, final = architecture_class(fields) or f"{prefix}Model", layer_norm("final", hidden)
    if name == f"{prefix}ForImageClassification":
        classes = labels(fields) or CLASSES
        # It reads the class token and the mean of the patches.
        final += linear("classifier", 2 * hidden, classes, True, per="sequence")
        fields.note(f"with the classifier of {classes} classes; image of {height} by {across}")
    elif name not in (f"{prefix}Model", f"{prefix}Backbone"):
        raise fields.refuse("architectures", f"{prefix}ForImageClassification or {prefix}Model")
    tokens = [vector("class token", hidden)]
    if mask:
        tokens.append(vector("mask token", hidden))
    if registers:
        tokens.append(vector("registers", registers, hidden))
    table = (Tensor("position embedding", (count + 1, hidden), "table"),) if positions else ()
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=None,
        hidden=hidden,
        embeddings=Embeddings(
            None,
            table,
            (*tokens, *patch_embedding(hidden, channels, patch_height, patch_width)),
        ),
        layers=(layer,) * fields.layers(),
        head=Head(),
        final=final,
        image=Image(height, across, patch_height, patch_width, 1 + registers),
        decodes=False,
    )


def _dinov2(fields: Fields, prefix: str, **options) -> Architecture:
    hidden = fields.size("hidden_size", 768)
    inner = hidden * fields.size("mlp_ratio", 4)
    if fields.flag("use_swiglu_ffn", False):
        # A gated network of two thirds of the width, rounded up to a multiple of 8.
        network = gated(hidden, -(-(2 * inner // 3) // 8) * 8, True)
    else:
        network = plain(hidden, inner)
    bias = fields.flag("qkv_bias", True)
    return _read(
        fields,
        prefix,
        network,
        hidden=hidden,
        patch=options.pop("patch"),
        bias=bias,
        output_bias=True,
        **options,
    )


def dinov2(fields: Fields) -> Architecture:
    """DINOv2."""
    return _dinov2(fields, "Dinov2", patch=14, mask=fields.flag("use_mask_token", True))


def dinov2_with_registers(fields: Fields) -> Architecture:
    """DINOv2 with registers: tokens beside the class token that no patch stands behind."""
    registers = fields.size("num_register_tokens", 4, least=0, most=MOST_REGISTERS)
    return _dinov2(fields, "Dinov2WithRegisters", patch=16, registers=registers)


def dinov3_vit(fields: Fields) -> Architecture:
    """DINOv3's ViTs: rotary positions, no bias on the keys, perhaps gated networks."""
    hidden, inner = fields.size("hidden_size", 384), fields.size("intermediate_size", 1536)
    fields.skip("pos_embed_jitter", "pos_embed_rescale", "pos_embed_shift")
    network = gated if fields.flag("use_gated_mlp", False) else plain
    return _read(
        fields,
        "DINOv3ViT",
        network(hidden, inner, fields.flag("mlp_bias", True)),
        hidden=hidden,
        patch=16,
        registers=fields.size("num_register_tokens", 0, least=0, most=MOST_REGISTERS),
        positions=False,
        query_bias=fields.flag("query_bias", True),
        key_bias=fields.flag("key_bias", False),
        value_bias=fields.flag("value_bias", True),
        output_bias=fields.flag("proj_bias", True),
    )
