"""How many tokens an image becomes."""

from .architecture import Architecture, Image

__all__ = ["image_sequence", "patches"]


def patches(image: Image) -> int:
    """Whole patches: floor(height / patch) · floor(width / patch)."""
    return (image.height // image.patch_height) * (image.width // image.patch_width)


def image_sequence(architecture: Architecture) -> int:
    """The length of the sequence that the image model, or the vision tower, attends over.

    Patches and class token: (H/p)(W/p) + 1 for a ViT.

    Raises:
        ValueError: the architecture reads no image of a fixed size.

    Example:
        >>> from archcards.ledger import bundled
        >>> image_sequence(bundled("vit-huge-patch14-224"))
        257
    """
    image = architecture.image
    if image is None and architecture.vision is not None:
        image = architecture.vision.image
    if image is None:
        raise ValueError(
            "architecture: expected a model of images of a fixed size, came "
            f"{architecture.model_type}"
        )
    return patches(image) + image.extra_tokens
