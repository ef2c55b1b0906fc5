"""A ledger with its working: each count as a product of the numbers that were put into it.

What is shown here is computed from the factors that are shown, and compared with what the ledger
says; where the two differ there is no page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from archcards.ledger import Architecture, cache, flops
from archcards.ledger.architecture import (
    Attention,
    CompressedAttention,
    LatentAttention,
    Reach,
    Recurrence,
)
from archcards.ledger.cache import Term, terms
from archcards.ledger.describe import mixer_words
from archcards.ledger.edges import per_query
from archcards.ledger.flops import compressed_pairs
from archcards.ledger.parameters import lines, parameters, stored

__all__ = ["CacheLine", "TensorLine", "WorkLine", "cache_lines", "tensor_lines", "work_lines"]

KINDS = {
    "keys_values": "keys and values",
    "window_keys_values": "keys and values of a window",
    "chunk_keys_values": "keys and values of a chunk",
    "cross_keys_values": "keys and values of the source",
    "latent": "latents and rotary keys",
    "indexer_keys": "keys of the indexer",
    "compressed_keys_values": "compressed keys and values",
    "compressed_indexer_keys": "compressed keys of the indexer",
    "memory": "recurrent memory",
    "convolution_inputs": "past inputs of convolutions",
}


class TensorLine(NamedTuple):
    """One tensor as often as it is stored, in all layers that have one of this name and shape."""

    component: str
    name: str
    shape: tuple[int, ...]
    copies: int
    times: int
    size: int
    active: int


class CacheLine(NamedTuple):
    """A term of the cache: its formula with the sizes put in, and the scalars at some contexts."""

    what: str
    working: str
    scalars: tuple[int, ...]


class WorkLine(NamedTuple):
    """FLOPs of one decoding step that are no weights': the mixer, its formula, and their number."""

    what: str
    working: str
    flops: int


def tensor_lines(architecture: Architecture) -> list[TensorLine]:
    """Every stored tensor, in order of appearance, equal ones of several layers together.

    Example:
        >>> from archcards.ledger import bundled
        >>> [(line.name, line.shape, line.times) for line in tensor_lines(bundled("gpt2"))][:2]
        [('token embedding', (50257, 768), 1), ('position embedding', (1024, 768), 1)]
    """
    found: dict[tuple, int] = {}
    for component, tensor in (*stored(lines(architecture)), *lines(architecture, "vision")):
        key = (component, tensor.name, tensor.shape, tensor.copies, tensor.size, tensor.active)
        found[key] = found.get(key, 0) + 1
    made = [
        TensorLine(component, name, shape, copies, times, size * times, active * times)
        for (component, name, shape, copies, size, active), times in found.items()
    ]
    _agree("parameters", sum(line.size for line in made), parameters(architecture).total)
    return made


def cache_lines(architecture: Architecture, contexts: Iterable[int]) -> list[CacheLine]:
    """The cache's terms; of an encoder's output, the source is taken to be as long as the context.

    Example:
        >>> from archcards.ledger import bundled
        >>> cache_lines(bundled("Mistral-7B-v0.1"), [8192])[0].working
        '32 layers × (8 × 128 + 8 × 128) × min(T, 4,096)'
    """
    contexts = tuple(contexts)
    made = []
    for term in terms(architecture):
        working = _fixed(architecture, term) if term.fixed_scalars else _growing(term)
        scalars = tuple(term.scalars(context, context) for context in contexts)
        made.append(CacheLine(KINDS[term.kind], working, scalars))
    for place, context in enumerate(contexts):
        counted = cache(architecture, context, source_length=_source(architecture, context))
        _agree(f"cache at {context}", sum(line.scalars[place] for line in made), counted.scalars)
    return made


def _source(architecture: Architecture, context: int) -> int:
    return context if architecture.encoder else 0


def _growing(term: Term) -> str:
    row = " + ".join(f"{count:,} × {width:,}" if count > 1 else f"{width:,}" for count, width in term.rows)
    _agree(term.kind, sum(count * width for count, width in term.rows), term.scalars_per_token)
    length = "S" if term.source else "T"
    held = length if term.limit is None else f"min({length}, {term.limit:,})"
    if term.stride > 1:
        held = f"⌊{held} / {term.stride:,}⌋"
    return f"{_layers(term.layers)} × {_bracketed(row)} × {held}"


def _fixed(architecture: Architecture, term: Term) -> str:
    """Recurrent terms name only their size; the layer that has it says how it comes about."""
    for mixer in _mixers(architecture):
        if not isinstance(mixer, Recurrence):
            continue
        if term.kind == "memory" and mixer.memory * term.layers == term.fixed_scalars:
            sizes = " × ".join(
                f"{size:,}" for size in (mixer.heads, mixer.key_width, mixer.value_width) if size > 1
            )
            return f"{_layers(term.layers)} × {sizes}"
        if term.kind == "convolution_inputs" and mixer.past_inputs * term.layers == term.fixed_scalars:
            channels = " + ".join(
                f"{units:,} × {width:,}" if units > 1 and width > 1 else f"{units * width:,}"
                for units, width in mixer.inputs
            )
            return f"{_layers(term.layers)} × {_bracketed(channels)} × ({mixer.kernel} − 1)"
    raise ValueError(f"{term.kind}: no layer keeps {term.fixed_scalars} scalars over {term.layers} layers")


def work_lines(architecture: Architecture, context: int) -> list[WorkLine]:
    """What one decoding step does beside multiplying by weights, mixer by mixer.

    Example:
        >>> from archcards.ledger import bundled
        >>> work_lines(bundled("Meta-Llama-3.1-8B"), 8192)[0].working
        '32 layers × 2 × 32 × (128 + 128) × 8,192'
    """
    counted: dict[object, int] = {}
    for mixer in _mixers(architecture):
        bare = mixer._replace(tensors=(), **({"inputs": ()} if isinstance(mixer, Recurrence) else {}))
        if getattr(mixer, "indexer", None) is not None:
            bare = bare._replace(indexer=mixer.indexer._replace(tensors=(), cached=True))
        if isinstance(mixer, Attention):
            bare = bare._replace(cached=True)
        counted[bare] = counted.get(bare, 0) + 1
    made = []
    source = _source(architecture, context)
    for mixer, layers in counted.items():
        for what, working, each in _steps(mixer, context, source):
            if each:
                made.append(WorkLine(what, f"{_layers(layers)} × {working}", layers * each))
    if architecture.decodes:
        step = flops(architecture, context, source).per_token.attention
        _agree(f"attention FLOPs at {context}", sum(line.flops for line in made), step)
    return made


def _steps(mixer, context: int, source: int) -> Iterator[tuple[str, str, int]]:
    """What the last of `context` positions does in one layer: name, formula, FLOPs."""
    words = mixer_words(mixer)
    if isinstance(mixer, Attention):
        keys = source if mixer.cross else per_query(mixer.reach, context)
        yield words, *_product(mixer.heads, (mixer.key_width, mixer.value_width), keys)
    elif isinstance(mixer, LatentAttention):
        keys = context if mixer.indexer is None else per_query(Reach("top", mixer.indexer.top), context)
        widths = (mixer.content_width, mixer.rope_width, mixer.value_width)
        yield words, *_product(mixer.heads, widths, keys)
        if mixer.indexer is not None:
            yield "indexer's scores", *_product(mixer.indexer.heads, (mixer.indexer.width, 1), context)
    elif isinstance(mixer, CompressedAttention):
        keys = per_query(Reach("window", mixer.window), context)
        scored = 0
        if mixer.stride:
            top = mixer.indexer.top if mixer.indexer else None
            read, scored = compressed_pairs(context, mixer.stride, top, True)
            keys += read
        yield words, *_product(mixer.heads, (mixer.width, mixer.width), keys)
        if mixer.indexer is not None and mixer.stride:
            yield "indexer's scores", *_product(mixer.indexer.heads, (mixer.indexer.width, 1), scored)
    else:
        sizes = (mixer.heads, mixer.key_width, mixer.value_width)
        working = " × ".join(f"{size:,}" for size in sizes if size > 1)
        yield words, f"2 × {mixer.accesses} × {working}", 2 * mixer.accesses * mixer.memory


def _product(heads: int, widths: tuple[int, ...], keys: int) -> tuple[str, int]:
    shown = " + ".join(f"{width:,}" for width in widths)
    return f"2 × {heads:,} × ({shown}) × {keys:,}", 2 * heads * sum(widths) * keys


def _mixers(architecture: Architecture) -> Iterator:
    for layer in architecture.layers:
        yield from layer.mixers


def _layers(count: int) -> str:
    return f"{count:,} layer{'s' * (count != 1)}"


def _bracketed(sum_of: str) -> str:
    return f"({sum_of})" if "+" in sum_of else sum_of


def _agree(what: str, shown: int, counted: int) -> None:
    if shown != counted:
        raise ValueError(f"{what}: the working shown gives {shown}, the ledger {counted}")
