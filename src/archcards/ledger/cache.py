"""What a model keeps between tokens: terms that grow, terms that stop, and fixed state."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .architecture import (
    Architecture,
    Attention,
    CompressedAttention,
    LatentAttention,
    Layer,
    Recurrence,
)

if TYPE_CHECKING:
    from fractions import Fraction

__all__ = [
    "FORMATS",
    "Cache",
    "Format",
    "Term",
    "cache",
    "largest_batch",
    "largest_context",
    "terms",
]

LARGEST_LENGTH = 10**12
"""Tokens. A longer context is a mistake."""


class Format(NamedTuple):
    """How scalars are stored: bits each, and `scale_bits` per block of `block` scalars."""

    bits: int
    block: int = 0
    scale_bits: int = 0

    def of_row(self, width: int) -> int:
        """Bits for one vector of `width` scalars; its last block may be part empty."""
        blocks = -(-width // self.block) if self.block else 0
        return width * self.bits + blocks * self.scale_bits


FORMATS = {
    "fp32": Format(32),
    "bf16": Format(16),
    "fp16": Format(16),
    "fp8": Format(8),
    "int8": Format(8),
    "int4": Format(4),
    "mxfp8": Format(8, 32, 8),
    "mxfp4": Format(4, 32, 8),
    "nvfp4": Format(4, 16, 8),
    "q8_0": Format(8, 32, 16),
    "q4_0": Format(4, 32, 16),
    "q5_0": Format(5, 32, 16),
}
"""Formats by name; the last six keep one scale per block beside the scalars."""


class Term(NamedTuple):
    """One kind of thing kept, the same in `layers` layers.

    After `length` tokens (of the context, or of the encoder's input where `source`) it holds
    `layers * scalars_per_token * floor(min(length, limit) / stride) + fixed_scalars` scalars.
    `rows` are one token's vectors in one layer, or the fixed part's of all layers, as
    (how many, how wide): vectors share no block of a quantised format.
    """

    kind: str
    layers: int
    scalars_per_token: int = 0
    limit: int | None = None
    stride: int = 1
    source: bool = False
    fixed_scalars: int = 0
    rows: tuple[tuple[int, int], ...] = ()

    def entries(self, length: int) -> int:
        """Tokens, or compressed tokens, that a layer holds."""
        return min(length, length if self.limit is None else self.limit) // self.stride

    def scalars(self, context: int, source_length: int = 0) -> int:
        """Scalars held for one sequence."""
        length = source_length if self.source else context
        return self.layers * self.scalars_per_token * self.entries(length) + self.fixed_scalars

    def bits(self, form: Format, context: int, source_length: int = 0) -> int:
        """Bits held for one sequence in this format."""
        row = sum(count * form.of_row(width) for count, width in self.rows)
        if self.fixed_scalars:
            return row
        return self.layers * row * self.entries(source_length if self.source else context)


class Cache(NamedTuple):
    """The cache of `batch` sequences after `context` tokens: its terms and their sums.

    `scalars_per_token` is the growth per token of one sequence while no limit is filled (an
    average where entries stand for several tokens), `scalars_per_token_beyond` what is left of
    it when every limit is. All counts are for one of `ranks` tensor-parallel ranks.
    """

    context: int
    batch: int
    source_length: int
    ranks: int
    terms: tuple[Term, ...]
    scalars: int
    bytes: int
    scalars_per_token: "int | Fraction"
    scalars_per_token_beyond: "int | Fraction"
    scalars_per_source_token: int
    fixed_scalars: int


# What an engine refuses is nobody's cache. The rules are vLLM's: heads, an encoder's too, are divided
# evenly; key/value heads, where there are fewer than ranks, are copied evenly; and a single group is
# copied to every rank.


def _share(units: int, ranks: int, name: str) -> int:
    """Units on one rank, which has as many as any other."""
    if units % ranks:
        raise ValueError(f"ranks: expected a divisor of the {units} {name}, came {ranks}")
    return units // ranks


def _key_value_share(heads: int, ranks: int) -> int:
    """Key/value heads on one rank: their share, or one that several ranks copy."""
    if heads % ranks == 0:
        return heads // ranks
    if ranks % heads == 0:
        return 1
    raise ValueError(
        f"ranks: expected a divisor or a multiple of the {heads} key/value heads, came {ranks}"
    )


def _group_share(groups: int, ranks: int, name: str) -> int:
    """Groups on one rank: their share, or the one that all ranks copy."""
    return 1 if groups == 1 else _share(groups, ranks, name)


def _attention(mixer: Attention, ranks: int) -> Iterator[Term]:
    _share(mixer.heads, ranks, "query heads")
    if not mixer.cached:
        return
    heads = _key_value_share(mixer.kv_heads, ranks)
    limit = mixer.reach.size if mixer.reach.kind in ("window", "chunk") else None
    kind = (
        "cross_keys_values"
        if mixer.cross
        else {"window": "window_keys_values", "chunk": "chunk_keys_values"}.get(
            mixer.reach.kind, "keys_values"
        )
    )
    yield Term(
        kind,
        1,
        heads * (mixer.key_width + mixer.value_width),
        limit,
        source=mixer.cross,
        rows=((heads, mixer.key_width), (heads, mixer.value_width)),
    )


def _latent(mixer: LatentAttention, ranks: int) -> Iterator[Term]:
    _share(mixer.heads, ranks, "query heads")
    # One latent serves all heads, so every rank keeps it whole.
    yield Term(
        "latent",
        1,
        mixer.latent_width + mixer.rope_width,
        rows=((1, mixer.latent_width), (1, mixer.rope_width)),
    )
    if mixer.indexer is not None and mixer.indexer.cached:
        yield Term("indexer_keys", 1, mixer.indexer.width, rows=((1, mixer.indexer.width),))


def _compressed(mixer: CompressedAttention, ranks: int) -> Iterator[Term]:
    _share(mixer.heads, ranks, "query heads")
    yield Term("window_keys_values", 1, mixer.width, mixer.window, rows=((1, mixer.width),))
    if mixer.stride:
        yield Term(
            "compressed_keys_values", 1, mixer.width, stride=mixer.stride, rows=((1, mixer.width),)
        )
        if mixer.indexer is not None:
            yield Term(
                "compressed_indexer_keys",
                1,
                mixer.indexer.width,
                stride=mixer.stride,
                rows=((1, mixer.indexer.width),),
            )


def _recurrence(mixer: Recurrence, ranks: int) -> Iterator[Term]:
    # A memory one value wide, or none at all, belongs to a channel.
    units = "channels" if mixer.value_width < 2 else "heads"
    kind = mixer.kind.replace("_", " ")
    heads = _share(mixer.heads, ranks, f"{kind} {units}")
    memory = heads * mixer.key_width * mixer.value_width
    if memory:
        yield Term(
            "memory", 1, fixed_scalars=memory, rows=((heads * mixer.key_width, mixer.value_width),)
        )
    past = sum(
        _group_share(units, ranks, f"{kind} groups") * width for units, width in mixer.inputs
    )
    past *= mixer.kernel - 1
    if past:
        yield Term("convolution_inputs", 1, fixed_scalars=past, rows=((1, past),))


def _layer(layer: Layer, ranks: int) -> Iterator[Term]:
    for mixer in layer.mixers:
        if isinstance(mixer, Attention):
            yield from _attention(mixer, ranks)
        elif isinstance(mixer, LatentAttention):
            yield from _latent(mixer, ranks)
        elif isinstance(mixer, CompressedAttention):
            yield from _compressed(mixer, ranks)
        else:
            yield from _recurrence(mixer, ranks)


def terms(architecture: Architecture, *, ranks: int = 1, reserve: str = "need") -> tuple[Term, ...]:
    """The cache's terms, equal ones of several layers together, in order of appearance."""
    encoder = architecture.encoder.layers if architecture.encoder else ()
    for layer in encoder if architecture.decodes else architecture.layers:
        # Nothing is kept, and yet ranks have to divide the heads.
        tuple(_layer(layer, ranks))
    if not architecture.decodes:
        return ()
    found: dict[Term, int] = {}
    for layer in architecture.layers:
        for term in _layer(layer, ranks):
            if reserve == "full" and term.limit is not None:
                term = term._replace(limit=None)
            found[term] = found.get(term, 0) + term.layers
    return tuple(
        term._replace(
            layers=layers,
            fixed_scalars=term.fixed_scalars * layers,
            rows=tuple((count * layers, width) for count, width in term.rows)
            if term.fixed_scalars
            else term.rows,
        )
        for term, layers in found.items()
    )


def _format(name: str, value: str | Format) -> Format:
    if isinstance(value, Format):
        return value
    if value not in FORMATS:
        raise ValueError(f"{name}: expected one of {', '.join(FORMATS)}, came {str(value)[:40]!r}")
    return FORMATS[value]


def whole(name: str, value: int, least: int = 1, most: int = LARGEST_LENGTH) -> int:
    """A whole number within bounds, or a one-line `ValueError`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        came = repr(value) if len(repr(value)) < 40 else repr(value)[:36] + "..."
        raise ValueError(f"{name}: expected a whole number from {least} to {most}, came {came}")
    return value


def _growth(found: list[Term]) -> "int | Fraction":
    """Scalars that a token adds: a fraction where an entry stands for several tokens."""
    if all(term.layers * term.scalars_per_token % term.stride == 0 for term in found):
        return sum(term.layers * term.scalars_per_token // term.stride for term in found)
    from fractions import Fraction

    exact = sum(Fraction(term.layers * term.scalars_per_token, term.stride) for term in found)
    return int(exact) if exact.denominator == 1 else exact


def cache(
    architecture: Architecture,
    context: int,
    batch: int = 1,
    source_length: int = 0,
    *,
    dtype: str | Format = "bf16",
    state_dtype: str | Format | None = None,
    reserve: str = "need",
    ranks: int = 1,
) -> Cache:
    """What `batch` sequences of `context` tokens keep, term by term, exactly.

    Args:
        architecture: the model.
        context: tokens of each sequence so far.
        batch: sequences.
        source_length: tokens of the encoder's input, where there is an encoder.
        dtype: format of keys, values, latents and past convolution inputs, one of `FORMATS`.
        state_dtype: format of recurrent memory; `dtype` unless given.
        reserve: `"need"`, or `"full"`: what an engine holds that gives every layer the whole
            context, windows or not.
        ranks: tensor-parallel ranks; the result is for one of them. By vLLM's rules they divide
            the query heads and a recurrence's heads and groups evenly, but for a single group,
            which each has; of key/value heads, where there are fewer, each rank has a copy of one.

    Raises:
        ValueError: a number out of bounds, an unknown format, heads that ranks do not divide.

    Example:
        >>> from archcards.ledger import bundled
        >>> cache(bundled("DeepSeek-V3"), 1).scalars
        35136
        >>> cache(bundled("Mistral-7B-v0.1"), 32768, dtype="fp16").bytes == 65536 * 4096 * 2
        True
    """
    whole("context", context)
    whole("batch", batch)
    whole("source_length", source_length, 0)
    whole("ranks", ranks, 1, 2**20)
    if reserve not in ("need", "full"):
        raise ValueError(f"reserve: expected need or full, came {reserve!r}")
    form = _format("dtype", dtype)
    state = form if state_dtype is None else _format("state_dtype", state_dtype)
    found = terms(architecture, ranks=ranks, reserve=reserve)
    bits = sum(
        term.bits(state if term.kind == "memory" else form, context, source_length)
        for term in found
    )
    growing = [term for term in found if not term.source]
    return Cache(
        context=context,
        batch=batch,
        source_length=source_length,
        ranks=ranks,
        terms=found,
        scalars=batch * sum(term.scalars(context, source_length) for term in found),
        bytes=batch * -(-bits // 8),
        scalars_per_token=_growth(growing),
        scalars_per_token_beyond=_growth([term for term in growing if term.limit is None]),
        scalars_per_source_token=sum(t.layers * t.scalars_per_token for t in found if t.source),
        fixed_scalars=sum(term.fixed_scalars for term in found),
    )


def largest_batch(architecture: Architecture, memory: int, context: int, **options) -> int:
    """The most sequences of `context` tokens whose cache fits `memory` bytes; 0 if none does.

    Raises:
        ValueError: as `cache`; also where a sequence keeps nothing, so that any number fits.
    """
    whole("memory", memory, 0, 10**30)
    each = cache(architecture, context, 1, **options).bytes
    if not each:
        raise ValueError(
            "memory: expected a model that keeps something per sequence, came one without a cache"
        )
    return memory // each


def largest_context(
    architecture: Architecture, memory: int, batch: int = 1, **options
) -> int | None:
    """The longest context at which `batch` sequences fit `memory` bytes.

    The exact inverse of `cache`, which grows unevenly: windows fill, strides step. 0 if not
    even one token fits; None if there is no longest, since the cache stops growing below.

    Example:
        >>> from archcards.ledger import bundled
        >>> largest_context(bundled("Mistral-7B-v0.1"), 10**8)
        762
    """
    whole("memory", memory, 0, 10**30)

    def fits(context: int) -> bool:
        return cache(architecture, context, batch, **options).bytes <= memory

    if fits(LARGEST_LENGTH):
        return None
    low, high = 0, LARGEST_LENGTH
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
