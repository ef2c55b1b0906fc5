"""Floating-point operations: two per multiply-add, of weights and of what is read of the past."""

from collections.abc import Iterable
from typing import NamedTuple

from . import edges
from .architecture import (
    FRAMES,
    Architecture,
    Attention,
    CompressedAttention,
    LatentAttention,
    Layer,
    Reach,
    Recurrence,
    Tensor,
)
from .cache import whole
from .images import image_sequence, patches
from .parameters import parameters, stack_lines

__all__ = ["Flops", "Work", "absorbed", "flops", "torchtitan", "training_per_token"]


class Work(NamedTuple):
    """FLOPs of the weights (`matmul`) and of reading the past (`attention`)."""

    matmul: int
    attention: int

    @property
    def total(self) -> int:
        """Both."""
        return self.matmul + self.attention


class Flops(NamedTuple):
    """Forward FLOPs: of one decoding step at a context, and of a whole sequence that long."""

    context: int
    source_length: int
    per_token: Work
    per_sequence: Work


def _uses(tensors: Iterable[Tensor], counts: dict[str, int]) -> int:
    """Multiply-adds of the weights, each as often as `counts` says for its kind of use."""
    return sum(
        tensor.multiply_adds * counts[tensor.per] for tensor in tensors if tensor.multiply_adds
    )


def _chunked(mixer: Recurrence, length: int, chunk: int) -> int:
    """Multiply-adds of a chunkwise form over `length` steps.

    In a chunk of c steps, per head: 2 c memory entries read and written; c(c + 1)/2 pairs of
    scores and weighted values. The delta rule adds a read for the errors, c(c - 1)/2 pairs of
    keys, and the solution of a triangular system with keys and values as right-hand sides.
    """
    heads, keys, values = mixer.heads, mixer.key_width, mixer.value_width
    scores = mixer.score_heads or heads

    def of(steps: int) -> int:
        within, before = steps * (steps + 1) // 2, steps * (steps - 1) // 2
        found = mixer.accesses * mixer.memory * steps + within * (scores * keys + heads * values)
        if mixer.accesses == 3:
            found += before * (scores * keys + heads * (keys + values))
        return found

    return length // chunk * of(chunk) + of(length % chunk)


def _pairs(mixer, length: int, source: int, one: bool, chunk: int | None = None) -> int:
    """Multiply-adds of a mixer beside its weights: for the last position, or for all."""

    def count(reach: Reach) -> int:
        return edges.per_query(reach, length) if one else edges.of(reach, length)

    if isinstance(mixer, Attention):
        width = mixer.heads * (mixer.key_width + mixer.value_width)
        return width * ((source if one else source * length) if mixer.cross else count(mixer.reach))
    if isinstance(mixer, LatentAttention):
        width = mixer.heads * (mixer.content_width + mixer.rope_width + mixer.value_width)
        if mixer.indexer is None:
            return width * count(Reach())
        indexer = mixer.indexer
        scores = indexer.heads * (indexer.width + 1) * count(Reach())
        return width * count(Reach("top", indexer.top)) + scores
    if isinstance(mixer, CompressedAttention):
        return _compressed(mixer, length, one)
    if chunk is not None and mixer.chunks and not one:
        return _chunked(mixer, length, chunk)
    return mixer.accesses * mixer.memory * (1 if one else length)


def _compressed(mixer: CompressedAttention, length: int, one: bool) -> int:
    window = Reach("window", mixer.window)
    width = 2 * mixer.heads * mixer.width
    near = edges.per_query(window, length) if one else edges.of(window, length)
    if not mixer.stride:
        return width * near
    top = mixer.indexer.top if mixer.indexer else None
    read, scored = compressed_pairs(length, mixer.stride, top, one)
    extra = mixer.indexer.heads * (mixer.indexer.width + 1) * scored if mixer.indexer else 0
    return width * (near + read) + extra


def compressed_pairs(length: int, stride: int, top: int | None, one: bool) -> tuple[int, int]:
    """Compressed entries read, and scored by an indexer: floor(t / stride) at position t.

    For the last of `length` positions, or summed over all.
    """

    def total(limit: int | None) -> int:
        """Of t = 1 … length, the sum of min(floor(t / stride), limit)."""
        whole_blocks, rest = divmod(length + 1, stride)
        # t = 0 adds nothing, so blocks n = 0, 1, … hold `stride` positions each.
        cap = whole_blocks if limit is None else min(limit, whole_blocks)
        full = cap * (cap - 1) // 2 + cap * (whole_blocks - cap)
        return stride * full + rest * (whole_blocks if limit is None else min(whole_blocks, limit))

    if one:
        entries = length // stride
        return (entries if top is None else min(entries, top)), entries
    return total(top), total(None)


def _stack(
    layers: Iterable[Layer],
    counts: dict[str, int],
    length: int,
    source: int,
    one: bool,
    chunk: int | None = None,
) -> tuple[int, int]:
    """Multiply-adds of a stack's weights, and of what it reads of the past."""
    weights = mixing = 0
    known: dict[int, tuple[int, int]] = {}
    for layer in layers:
        if id(layer) not in known:
            known[id(layer)] = (
                _uses((line.tensor for line in stack_lines((layer,))), counts),
                sum(_pairs(mixer, length, source, one, chunk) for mixer in layer.mixers),
            )
        weights += known[id(layer)][0]
        mixing += known[id(layer)][1]
    return weights, mixing


def _work(
    architecture: Architecture, length: int, source: int, one: bool, chunk: int | None = None
) -> Work:
    counts = {
        "token": 1 if one else length,
        "source": 0 if one else source,
        "frame": 0 if one else FRAMES * source,
        "sequence": 0 if one and architecture.decodes else 1,
        "patch": 0,
    }
    if architecture.image:
        counts["patch"] = patches(architecture.image)
    weights, mixing = _stack(architecture.layers, counts, length, source, one, chunk)
    ends = (
        *architecture.embeddings.positions,
        *architecture.embeddings.others,
        *architecture.final,
        *architecture.head.others,
    )
    weights += _uses(ends, counts)
    if architecture.head.table:
        weights += _uses((architecture.head.table,), counts)
    if architecture.encoder and not one:
        over = {**counts, "token": source}
        inside = _stack(architecture.encoder.layers, over, source, 0, False)
        weights += inside[0] + _uses(architecture.encoder.others, over)
        mixing += inside[1]
    return Work(2 * weights, 2 * mixing)


def flops(
    architecture: Architecture,
    context: int | None = None,
    source_length: int = 0,
    *,
    chunk: int | None = None,
) -> Flops:
    """Forward FLOPs of one decoding step at `context` tokens, and of the whole sequence.

    A multiply-add is two. `matmul` is every weight matrix and convolution kernel, the router,
    the experts taken and the head; `attention` the scores and the weighted sums of exactly the
    visible pairs, indexer scores, and for recurrent layers the reads and writes of their memory
    (linear and state-space layers one of each a step, the delta rule two reads and a write).
    Norms, activations, biases, gates, rotations, softmax and decay are not counted, a look-up
    is free. The sequence costs the sum of its steps. Latent attention is counted in its
    explicit form; what the absorbed form costs at decoding is `absorbed`.

    Args:
        architecture: the model. Of one with a vision tower, the text model is counted.
        context: tokens. An image model has one sequence, the image's, whatever is given.
        source_length: tokens of the encoder's input, where there is an encoder.
        chunk: count the sequence's linear, delta and Mamba-2 layers in their chunkwise form with
            chunks this long, instead of the recurrence. Decoding steps stay recurrent.

    Raises:
        ValueError: a number out of bounds, or no context for a model of text.

    Example:
        >>> from archcards.ledger import bundled
        >>> flops(bundled("vit-base-patch16-224")).per_sequence.total
        35127656448
    """
    if architecture.image is not None:
        context = image_sequence(architecture)
    if context is None:
        raise ValueError("context: expected a number of tokens, came nothing")
    whole("context", context)
    whole("source_length", source_length, 0)
    if chunk is not None:
        whole("chunk", chunk)
    once = _work(architecture, context, source_length, False, chunk)
    if not architecture.decodes:
        # Without decoding a token has no step of its own: the whole, shared out, rounded down.
        step = Work(once.matmul // context, once.attention // context)
    else:
        step = _work(architecture, context, source_length, True)
    return Flops(context, source_length, step, once)


def absorbed(architecture: Architecture, context: int) -> int:
    """Attention FLOPs of a decoding step whose latent layers read the cached latents directly.

    Per pair and head 2 (latent + rope) + 2 latent instead of 2 (content + rope) + 2 value; the
    projections cost the same in both forms.
    """
    total = 0
    for layer in architecture.layers:
        for mixer in layer.mixers:
            pairs = _pairs(mixer, context, 0, True)
            if isinstance(mixer, LatentAttention):
                read = context if mixer.indexer is None else min(context, mixer.indexer.top)
                wider = 2 * mixer.latent_width - mixer.content_width - mixer.value_width
                pairs += mixer.heads * wider * read
            total += 2 * pairs
    return total


def training_per_token(architecture: Architecture, context: int) -> int:
    """Training FLOPs per token: three times the forward pass (backward is twice), rounded down."""
    return 3 * flops(architecture, context).per_sequence.total // context


def torchtitan(architecture: Architecture, context: int, *, exact_pairs: bool = False) -> int:
    """Training FLOPs per token as torchtitan counts them.

    Six per active parameter but the input table's (norms and biases included), and for each
    attention layer 12 · heads · width per key, where a query is charged with all `context` keys,
    or the window's, whatever the causal mask hides. `exact_pairs` charges the mean number of
    visible keys instead (rounded down to a whole number of FLOPs).

    Example:
        >>> from archcards.ledger import bundled
        >>> torchtitan(bundled("gpt-oss-120b"), 4096)
        34534221696
        >>> torchtitan(bundled("gpt-oss-120b"), 4096, exact_pairs=True)
        32720969088
    """
    whole("context", context)
    weights = parameters(architecture).active.without_input_embedding
    charged = 0
    for layer in architecture.layers:
        for mixer in layer.mixers:
            if isinstance(mixer, Attention):
                width, reach = mixer.heads * (mixer.key_width + mixer.value_width), mixer.reach
            elif isinstance(mixer, LatentAttention) and mixer.indexer is None:
                width = mixer.heads * (mixer.content_width + mixer.rope_width + mixer.value_width)
                reach = Reach()
            else:
                raise ValueError(
                    "architecture: expected softmax attention in every layer (what "
                    f"torchtitan's formula covers), came {type(mixer).__name__}"
                )
            if exact_pairs:
                charged += 6 * width * edges.of(reach, context)
            else:
                keys = context if reach.size is None else min(edges.widest(reach), context)
                charged += 6 * width * keys * context
    return 6 * weights + charged // context
