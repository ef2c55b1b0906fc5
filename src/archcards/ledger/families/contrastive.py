"""CLIP and SigLIP: a tower of text and one of images, and each of them alone."""

from ..architecture import Architecture, Embeddings, Head, Image, Layer, Reach, Tensor, Tower
from ..fields import Fields
from ._blocks import attention, dense, layer_norm, layer_norms, linear, plain, vector
from ._heads import architecture_class
from ._towers import ALL, patch_embedding, siglip
from .encoders import LONGEST_SIDE

__all__ = [
    "clip",
    "clip_text",
    "clip_vision",
    "siglip_pair",
    "siglip_text",
]

# What the library means where a file leaves a size of a tower out.
CLIP_TEXT = {
    "vocab_size": 49408,
    "hidden_size": 512,
    "intermediate_size": 2048,
    "num_hidden_layers": 12,
    "num_attention_heads": 8,
    "max_position_embeddings": 77,
}
SIGLIP_TEXT = {
    "vocab_size": 32000,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "max_position_embeddings": 64,
}
IMAGES = {
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "num_channels": 3,
    "image_size": 224,
}
CLIP_IMAGES = {**IMAGES, "patch_size": 32}
SIGLIP_IMAGES = {**IMAGES, "patch_size": 16}


def _layers(fields: Fields, hidden: int, reach: Reach) -> tuple[Layer, ...]:
    heads = fields.size("num_attention_heads")
    width = fields.divides("num_attention_heads", heads, hidden, "hidden_size")
    # Older files write out every field of the library; no tower has a table to tie.
    fields.skip("tie_word_embeddings")
    # Causal layers have keys and values of their own to keep, though nothing here decodes.
    own = reach != ALL
    layer = Layer(
        (attention(hidden, heads, heads, width, bias=True, reach=reach, cached=own),),
        (dense(plain(hidden, fields.size("intermediate_size"))),),
        layer_norms(hidden),
    )
    return (layer,) * fields.layers()


def _text(
    fields: Fields, sizes: dict[str, int], reach: Reach, ends: tuple[Tensor, ...]
) -> Architecture:
    """A tower of text: two tables, pre-norm layers, a norm; `ends` reads one token of the text."""
    fields = fields.filled(sizes)
    hidden, vocabulary = fields.size("hidden_size"), fields.size("vocab_size")
    length = fields.size("max_position_embeddings")
    fields.skip("projection_dim", "projection_size")
    found = Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=vocabulary,
        hidden=hidden,
        embeddings=Embeddings(
            Tensor("token embedding", (vocabulary, hidden), "table"),
            (Tensor("position embedding", (length, hidden), "table"),),
        ),
        layers=_layers(fields, hidden, reach),
        head=Head(),
        final=layer_norm("final", hidden) + ends,
        decodes=False,
        trained_length=length,
    )
    fields.finish()
    return found


def _clip_images(fields: Fields, projector: tuple[Tensor, ...]) -> Tower:
    """CLIP's tower of images: a class token, no bias on the patches, norms at both ends."""
    fields = fields.filled(CLIP_IMAGES)
    hidden, channels = fields.size("hidden_size"), fields.size("num_channels")
    size, patch = fields.size("image_size", most=LONGEST_SIDE), fields.size("patch_size")
    if patch > size:
        raise fields.refuse("patch_size", f"at most image_size, {size}")
    fields.skip("projection_dim", "vocab_size")
    tower = Tower(
        layers=_layers(fields, hidden, ALL),
        embeddings=(
            *patch_embedding(hidden, channels, patch, patch, bias=False),
            vector("class token", hidden),
            Tensor("positions", ((size // patch) ** 2 + 1, hidden), "table"),
        ),
        others=layer_norm("first", hidden) + layer_norm("final", hidden),
        projector=projector,
        image=Image(size, size, patch, patch, 1),
    )
    fields.finish()
    return tower


def _alone(fields: Fields, tower: Tower) -> Architecture:
    """A tower of images as a model of its own."""
    return Architecture(
        model_type=str(fields.values.get("model_type")),
        vocabulary=None,
        hidden=tower.layers[0].norms[0].shape[0],
        embeddings=Embeddings(others=tower.embeddings),
        layers=tower.layers,
        head=Head(),
        final=tower.others + tower.projector,
        image=tower.image,
        decodes=False,
    )


def _class(fields: Fields, *known: str) -> str:
    name = architecture_class(fields) or known[0]
    if name not in known:
        raise fields.refuse("architectures", " or ".join(known))
    return name


def _tower(fields: Fields, name: str) -> Fields:
    """A tower's fields: an older file's `..._dict` is what counts, where it has one."""
    older, newer = fields.nested(f"{name}_dict"), fields.nested(name)
    if older is None and newer is None:
        raise fields.refuse(name, "an object with the tower's fields")
    return newer if older is None else older


def clip(fields: Fields) -> Architecture:
    """CLIP: both towers, each projected without a bias to where they are compared."""
    _class(fields, "CLIPModel")
    text, images = _tower(fields, "text_config"), _tower(fields, "vision_config")
    text.only("model_type", "clip_text_model")
    images.only("model_type", "clip_vision_model")
    common = fields.size("projection_dim", 512)
    fields.skip("logit_scale_init_value")
    hidden, width = text.size("hidden_size", 512), images.size("hidden_size", 768)
    ends = linear("text projection", hidden, common, per="sequence") + (vector("scale", 1),)
    tower = _clip_images(images, linear("projection", width, common))
    return _text(text, CLIP_TEXT, Reach(), ends)._replace(vision=tower)


def clip_text(fields: Fields) -> Architecture:
    """CLIP's tower of text, which image generators read."""
    name = _class(fields, "CLIPTextModel", "CLIPTextModelWithProjection")
    ends: tuple[Tensor, ...] = ()
    common = fields.size("projection_dim", 512)
    if name != "CLIPTextModel":
        hidden = fields.size("hidden_size", 512)
        ends = linear("text projection", hidden, common, per="sequence")
    return _text(fields, CLIP_TEXT, Reach(), ends)


def clip_vision(fields: Fields) -> Architecture:
    """CLIP's tower of images."""
    name = _class(fields, "CLIPVisionModel", "CLIPVisionModelWithProjection")
    common, hidden = fields.size("projection_dim", 512), fields.size("hidden_size", 768)
    projector = linear("projection", hidden, common, per="sequence")
    return _alone(fields, _clip_images(fields, () if name == "CLIPVisionModel" else projector))


def _siglip_ends(fields: Fields) -> tuple[Tensor, ...]:
    hidden = fields.size("hidden_size", SIGLIP_TEXT["hidden_size"])
    out = fields.size("projection_size", hidden)
    return linear("head", hidden, out, True, per="sequence")


def siglip_pair(fields: Fields) -> Architecture:
    """SigLIP: both towers, each with a head of its own."""
    _class(fields, "SiglipModel")
    text, images = _tower(fields, "text_config"), _tower(fields, "vision_config")
    text.only("model_type", "siglip_text_model")
    ends = (*_siglip_ends(text), vector("scale", 1), vector("shift", 1))
    tower = siglip(images.filled(SIGLIP_IMAGES), 0, lambda width, hidden: ())
    return _text(text, SIGLIP_TEXT, ALL, ends)._replace(vision=tower)


def siglip_text(fields: Fields) -> Architecture:
    """SigLIP's tower of text."""
    _class(fields, "SiglipTextModel")
    return _text(fields, SIGLIP_TEXT, ALL, _siglip_ends(fields))
