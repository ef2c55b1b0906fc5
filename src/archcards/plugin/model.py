"""A bundled model with its ledger, as the pages about it ask for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from archcards.ledger import Architecture, cache, flops, parameters
from archcards.ledger.architecture import (
    Attention,
    CompressedAttention,
    Experts,
    LatentAttention,
    Recurrence,
)

__all__ = ["CONTEXTS", "Model"]

CONTEXTS = {8192: "8k", 131072: "128k", 1048576: "1M"}
"""Tokens at which caches are compared, and how a heading names them."""

_RECURRENCES = {
    "gated_delta": "delta rule",
    "kimi_delta": "kimi delta",
    "lightning": "linear attention",
    "linear_attention": "linear attention",
    "mamba": "state space",
    "mamba2": "state space dual",
}


@dataclass(frozen=True)
class Model:
    """A bundled model with its ledger."""

    name: str
    config: Mapping[str, object]
    architecture: Architecture

    @property
    def short(self) -> str:
        return self.name.split("/")[1]

    @property
    def src_uri(self) -> str:
        return f"models/{re.sub(r'[^a-z0-9]+', '-', self.short.lower()).strip('-')}.md"

    @cached_property
    def parameters(self):
        return parameters(self.architecture)

    @property
    def decodes(self) -> bool:
        return self.architecture.decodes

    def cache(self, context: int):
        """The cache in two bytes a scalar; an encoder's input is as long as the context."""
        return cache(self.architecture, context, source_length=context if self.architecture.encoder else 0)

    def flops(self, context: int):
        """Of an image model, whose sequence has its own length, the context is left out."""
        if self.architecture.image is not None:
            return flops(self.architecture)
        return flops(self.architecture, context, context if self.architecture.encoder else 0)

    def within(self, context: int) -> bool:
        """Whether the configuration allows for so long a context."""
        longest = self.architecture.trained_length
        return longest is None or context <= longest

    @cached_property
    def traits(self) -> tuple[str, ...]:
        """What the model is made of, in the words by which the list is filtered."""
        return tuple(dict.fromkeys(_traits(self)))

    def quantity(self, name: str) -> int | Fraction:
        """One number of the ledger by its dotted name, such as `active.without_embeddings`."""
        head, _, rest = name.partition(".")
        if head == "cache_bytes":
            return cache(self.architecture, int(rest)).bytes
        if head == "components":
            return self.parameters.components[rest]
        if name == "scalars_per_token":
            return self.cache(1).scalars_per_token
        if name == "with_prediction":
            return self.parameters.total + self.parameters.multi_token_prediction
        if name == "without_embeddings":
            counted = self.parameters
            return counted.text - counted.input_embedding - (0 if counted.tied else counted.output_embedding)
        found = self.parameters
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _traits(model: Model) -> Iterator[str]:
    architecture = model.architecture
    if architecture.decodes:
        yield "causal"
    for layer in architecture.layers:
        for mixer in layer.mixers:
            match mixer:
                case Attention():
                    if mixer.kv_heads < mixer.heads:
                        yield "grouped heads"
                    if mixer.reach.kind in ("window", "around", "chunk", "top"):
                        yield {"chunk": "chunks", "top": "chosen entries"}.get(mixer.reach.kind, "window")
                case LatentAttention():
                    yield "latent"
                    if mixer.indexer:
                        yield "chosen entries"
                case CompressedAttention():
                    yield "window"
                    if mixer.stride:
                        yield "chosen entries"
                case Recurrence():
                    yield "recurrent"
                    if mixer.kind in _RECURRENCES:
                        yield _RECURRENCES[mixer.kind]
        if any(isinstance(part, Experts) for part in layer.feed_forwards):
            yield "experts"
    if any("rope" in key or "rotary" in key for key in _keys(model.config)):
        yield "rotary"
    if architecture.encoder:
        yield "encoder"
    if architecture.vision or architecture.image:
        yield "images"


def _keys(config: Mapping[str, object]) -> Iterator[str]:
    for key, value in config.items():
        yield key
        if isinstance(value, Mapping):
            yield from _keys(value)
