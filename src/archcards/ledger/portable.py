"""The ledger of a model as JSON from which any program gets every number by a short formula.

The site's live ledger reads these records: of bundled models as the build wrote them, of any other
configuration as `answer` gives them inside the browser.
"""

import json
from collections.abc import Iterable, Iterator

from .architecture import (
    FRAMES,
    Architecture,
    Attention,
    CompressedAttention,
    LatentAttention,
    Layer,
    Tensor,
)
from .cache import Term, terms
from .describe import parameters_record, term_record
from .images import image_sequence, patches
from .parameters import parameters, stack_lines
from .reading import parse, read_config

__all__ = ["RANKS", "answer", "record"]

RANKS = (1, 2, 4, 8, 16, 32, 64)
"""Tensor-parallel ranks for which a record has the cache's terms."""

LARGEST_SAFE = 2**53 - 1
"""Larger integers are written as strings: a program that reads JSON as floats would round them."""

Read = tuple[str, int | None, int | None, str]
"""What a query reads (as in `Reach`, or `source`, `compressed`, `memory`), sizes, and over what."""


def _reads(mixer, over: str) -> Iterator[tuple[Read, int]]:
    """What a mixer reads of the past, and the multiply-adds of each thing read."""
    if isinstance(mixer, Attention):
        width = mixer.heads * (mixer.key_width + mixer.value_width)
        kind, size = ("source", None) if mixer.cross else mixer.reach
        yield (kind, size, None, over), width
    elif isinstance(mixer, LatentAttention):
        width = mixer.heads * (mixer.content_width + mixer.rope_width + mixer.value_width)
        indexer = mixer.indexer
        if indexer is None:
            yield ("full", None, None, over), width
        else:
            yield ("top", indexer.top, None, over), width
            yield ("full", None, None, over), indexer.heads * (indexer.width + 1)
    elif isinstance(mixer, CompressedAttention):
        width = 2 * mixer.heads * mixer.width
        yield ("window", mixer.window, None, over), width
        if mixer.stride:
            top = mixer.indexer.top if mixer.indexer else None
            yield ("compressed", top, mixer.stride, over), width
            if mixer.indexer:
                scored = mixer.indexer.heads * (mixer.indexer.width + 1)
                yield ("compressed", None, mixer.stride, over), scored
    else:
        yield ("memory", None, None, over), mixer.accesses * mixer.memory


def _reads_source(architecture: Architecture) -> bool:
    """Whether some layer reads what the tokens of a source become."""
    mixers = (mixer for layer in architecture.layers for mixer in layer.mixers)
    return any(isinstance(mixer, Attention) and mixer.cross for mixer in mixers)


def _weights(architecture: Architecture) -> dict[str, int]:
    """Multiply-adds of the weights for each token, each token of the source, and each sequence."""
    found = {"token": 0, "source": 0, "sequence": 0}
    image = patches(architecture.image) if architecture.image else 0

    def add(tensors: Iterable[Tensor], of_token: str) -> None:
        for tensor in tensors:
            if tensor.per == "patch":
                found["sequence"] += tensor.multiply_adds * image
            elif tensor.per == "frame":
                found["source"] += tensor.multiply_adds * FRAMES
            else:
                found[of_token if tensor.per == "token" else tensor.per] += tensor.multiply_adds

    head, embeddings = architecture.head, architecture.embeddings
    add((line.tensor for line in stack_lines(architecture.layers)), "token")
    add((*embeddings.positions, *embeddings.others, *architecture.final, *head.others), "token")
    add((head.table,) if head.table else (), "token")
    if architecture.encoder:
        add((line.tensor for line in stack_lines(architecture.encoder.layers)), "source")
        add(architecture.encoder.others, "source")
    return found


def _reading(architecture: Architecture) -> list[dict]:
    """What the layers read of the past, equal things of several layers added up."""
    found: dict[Read, int] = {}

    def add(layers: Iterable[Layer], over: str) -> None:
        for layer in layers:
            for mixer in layer.mixers:
                for read, multiply_adds in _reads(mixer, over):
                    found[read] = found.get(read, 0) + multiply_adds

    add(architecture.layers, "context")
    if architecture.encoder:
        add(architecture.encoder.layers, "source")
    return [
        {"reads": kind, "size": size, "stride": stride, "over": over, "multiply_adds": number}
        for (kind, size, stride, over), number in found.items()
        if number
    ]


def _kept(architecture: Architecture) -> list[dict]:
    """The cache's terms by the ranks that they hold for, or why the heads do not divide."""
    found: dict[tuple[Term, ...] | str, list[int]] = {}
    for ranks in RANKS:
        try:
            key: tuple[Term, ...] | str = terms(architecture, ranks=ranks)
        except ValueError as error:
            key = str(error)
        found.setdefault(key, []).append(ranks)
    return [
        {"ranks": ranks, "refused": kept}
        if isinstance(kept, str)
        else {
            "ranks": ranks,
            "terms": [{**term_record(term), "rows": [list(row) for row in term.rows]} for term in kept],
        }
        for kept, ranks in found.items()
    ]


def _exact(value):
    """Integers beyond what a float holds as strings."""
    if isinstance(value, dict):
        return {name: _exact(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_exact(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool) and value > LARGEST_SAFE:
        return str(value)
    return value


def record(architecture: Architecture) -> dict:
    """Parameters, and the terms of cache and FLOPs for any context.

    With T the context (of an image model `image_sequence`) and S the source's length, a cache term
    holds `layers * scalars_per_token * floor(min(T or S, limit) / stride) + fixed_scalars`; the
    FLOPs of a sequence are two times `token * T + source * S + sequence` for the weights and two
    times each `multiply_adds` times the number of things read (see `archcards.ledger.edges`).

    Example:
        >>> from archcards.ledger import bundled
        >>> record(bundled("Mixtral"))["cache"][0]["terms"][0]["scalars_per_token"]
        2048
    """
    return _exact(
        {
            "model_type": architecture.model_type,
            "trained_length": architecture.trained_length,
            "decodes": architecture.decodes,
            "encoder": architecture.encoder is not None or _reads_source(architecture),
            "image_sequence": image_sequence(architecture) if architecture.image else None,
            "parameters": parameters_record(parameters(architecture)),
            "cache": _kept(architecture),
            "flops": {"weights": _weights(architecture), "reading": _reading(architecture)},
            "notes": list(architecture.notes),
        }
    )


def answer(text: str) -> str:
    """The record of a `config.json`'s text as JSON, or `{"error": …}` with the ledger's one line.

    Example:
        >>> answer("[]")
        '{"error": "config.json: expected a JSON object, came a list of 0"}'
    """
    try:
        return json.dumps(record(read_config(parse(text, "config.json"))))
    except ValueError as error:
        return json.dumps({"error": str(error)})
