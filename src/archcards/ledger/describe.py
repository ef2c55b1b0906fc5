"""A ledger in words: what each layer is, and the whole as JSON's numbers, lists and objects."""

from collections.abc import Iterator
from itertools import groupby

from .architecture import (
    Architecture,
    Attention,
    CompressedAttention,
    Experts,
    LatentAttention,
    Layer,
)
from .cache import Cache, Term
from .flops import Flops, Work, absorbed
from .parameters import Parameters

__all__ = [
    "cache_record",
    "flops_record",
    "in_step",
    "layer_kinds",
    "mixer_words",
    "notes",
    "parameters_record",
    "patterns",
    "repeats",
    "runs",
]


def mixer_words(mixer) -> str:
    """A mixer in a few words."""
    if isinstance(mixer, Attention):
        reach = {
            "full": "",
            "all": ", both ways",
            "window": f", window {mixer.reach.size}",
            "chunk": f", chunks of {mixer.reach.size}",
            "top": f", {mixer.reach.size} chosen",
            "around": f", {mixer.reach.size} to each side",
        }
        widths = f"{mixer.key_width}"
        if mixer.value_width != mixer.key_width:
            widths += f"/{mixer.value_width}"
        name = "cross-attention" if mixer.cross else "attention"
        causal = mixer.reach.kind not in ("all", "around")
        borrowed = ", borrowed keys and values" if causal and not mixer.cached else ""
        return (
            f"{name} {mixer.heads}/{mixer.kv_heads} x {widths}{reach[mixer.reach.kind]}{borrowed}"
        )
    if isinstance(mixer, LatentAttention):
        chosen = f", {mixer.indexer.top} chosen" if mixer.indexer else ""
        widths = f"{mixer.latent_width} + {mixer.rope_width}"
        return f"latent attention {mixer.heads} heads, {widths}{chosen}"
    if isinstance(mixer, CompressedAttention):
        beyond = f", 1 entry per {mixer.stride}" if mixer.stride else ""
        return f"attention {mixer.heads}/1 x {mixer.width}, window {mixer.window}{beyond}"
    # A short convolution has channels and no memory beside its inputs.
    memory = f" x {mixer.key_width} x {mixer.value_width}" if mixer.memory else ""
    return f"{mixer.kind.replace('_', ' ')} {mixer.heads}{memory}"


def layer_kinds(layer: Layer) -> str:
    """A layer in a few words: its mixers and feed-forward parts."""
    words = [mixer_words(mixer) for mixer in layer.mixers]
    for part in layer.feed_forwards:
        if isinstance(part, Experts):
            shared = " + shared" if part.shared else ""
            words.append(f"{part.chosen} of {part.count} experts{shared}")
        else:
            down = part.tensors[-2] if part.tensors[-1].name.endswith("bias") else part.tensors[-1]
            gated = any(tensor.name == "gate" for tensor in part.tensors)
            words.append(f"{'gated ' if gated else ''}feed-forward {down.shape[-1]}")
    return " | ".join(words)


def runs(layers: tuple[Layer, ...]) -> list[tuple[int, str]]:
    """Layers in order, equal neighbours together: how many, and what they are."""
    return [(len(list(group)), words) for words, group in groupby(layers, layer_kinds)]


def patterns(
    layers: tuple[Layer, ...], longest: int = 16
) -> list[tuple[int, list[tuple[int, str]]]]:
    """Layers in order as repeated patterns: how often, and the runs that repeat."""
    return repeats([layer_kinds(layer) for layer in layers], longest)


def repeats(words: list, longest: int = 16) -> list[tuple[int, list[tuple[int, object]]]]:
    """A list as repeated patterns: how often, and the runs that repeat.

    At each place the pattern of at most `longest` items that covers most of what follows, the
    shortest of equals; what repeats nowhere stands once.

    Example:
        >>> repeats(["a", "a", "b", "a", "a", "b", "c"])
        [(2, [(2, 'a'), (1, 'b')]), (1, [(1, 'c')])]
    """
    found: list[tuple[int, list]] = []
    place = 0
    while place < len(words):
        best, times = 1, 1
        for length in range(1, min(longest, len(words) - place) + 1):
            unit, count = words[place : place + length], 1
            while words[place + count * length : place + (count + 1) * length] == unit:
                count += 1
            if (count > 1 or length == 1) and count * length > best * times:
                best, times = length, count
        found.append((times, words[place : place + best]))
        place += best * times
    return [
        (times, [(len(list(group)), one) for one, group in groupby(unit)]) for times, unit in found
    ]


def in_step(first: Architecture, second: Architecture) -> Iterator[tuple[str, str, str]]:
    """Two stacks from the input up: which layers, and what they are in the one and in the other.

    Equal neighbours and repeated patterns stand together; the shorter stack ends in empty words.

    Example:
        >>> from archcards.ledger import bundled
        >>> for layers, here, there in in_step(bundled("gemma-2b"), bundled("gemma-2-2b")):
        ...     print(layers, bool(here), bool(there))
        1, 3, …, 17 (9 layers) True True
        2, 4, …, 18 (9 layers) True True
        19, 21, 23, 25 False True
        20, 22, 24, 26 False True
    """
    stacks = [[layer_kinds(layer) for layer in one.layers] for one in (first, second)]
    depth = max(map(len, stacks))
    both = list(zip(*(stack + [""] * (depth - len(stack)) for stack in stacks), strict=True))
    place = 1
    for times, unit in repeats(both):
        if len(unit) == 1:  # neighbours, all alike
            times, unit = 1, [(times * unit[0][0], unit[0][1])]
        period = sum(count for count, _ in unit)
        for count, (here, there) in unit:
            yield _which(place, count, period, times), here, there
            place += count
        place += (times - 1) * period


def _which(first: int, count: int, period: int, times: int) -> str:
    """The numbers of `count` layers from `first` on, and of those `times - 1` periods further up.

    Example:
        >>> _which(3, 1, 4, 2), _which(1, 3, 4, 12)
        ('3, 7', '1 to 3, 5 to 7, …, 45 to 47 (36 layers)')
    """
    spans = [
        f"{start}" if count == 1 else f"{start} to {start + count - 1}"
        for start in range(first, first + times * period, period)
    ]
    if times <= 4:
        return ", ".join(spans)
    return f"{spans[0]}, {spans[1]}, …, {spans[-1]} ({count * times} layers)"


def parameters_record(counted: Parameters) -> dict:
    """Parameters as JSON has them."""
    active = counted.active
    return {
        "total": counted.total,
        "text": counted.text,
        "vision": counted.vision,
        "multi_token_prediction": counted.multi_token_prediction,
        "input_embedding": counted.input_embedding,
        "output_embedding": counted.output_embedding,
        "tied": counted.tied,
        "active": {
            "with_embeddings": active.with_embeddings,
            "without_input_embedding": active.without_input_embedding,
            "without_embeddings": active.without_embeddings,
        },
        "components": dict(counted.components),
    }


def term_record(term: Term) -> dict:
    """A cache term as JSON has it."""
    return {
        "kind": term.kind,
        "layers": term.layers,
        "scalars_per_token": term.scalars_per_token,
        "limit": term.limit,
        "stride": term.stride,
        "source": term.source,
        "fixed_scalars": term.fixed_scalars,
    }


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) else None


def cache_record(kept: Cache) -> dict:
    """A cache as JSON has it; a growth that is no whole number is null."""
    return {
        "context": kept.context,
        "batch": kept.batch,
        "source_length": kept.source_length,
        "ranks": kept.ranks,
        "scalars": kept.scalars,
        "bytes": kept.bytes,
        "scalars_per_token": _integer(kept.scalars_per_token),
        "scalars_per_token_beyond_limits": _integer(kept.scalars_per_token_beyond),
        "scalars_per_source_token": kept.scalars_per_source_token,
        "fixed_scalars": kept.fixed_scalars,
        "terms": [term_record(term) for term in kept.terms],
    }


def work_record(work: Work) -> dict:
    """FLOPs as JSON has them."""
    return {"matmul": work.matmul, "attention": work.attention, "total": work.total}


def flops_record(counted: Flops) -> dict:
    """FLOPs as JSON has them."""
    return {
        "context": counted.context,
        "source_length": counted.source_length,
        "per_token": work_record(counted.per_token),
        "per_sequence": work_record(counted.per_sequence),
    }


def notes(
    architecture: Architecture, kept: Cache, counted: Flops, reserve: str = "need"
) -> list[str]:
    """The decisions that a careful reader would ask about, the reader's own first."""
    found = list(architecture.notes)
    mixers = [mixer for layer in architecture.layers for mixer in layer.mixers]
    if any(term.kind == "latent" for term in kept.terms):
        found.append(
            f"latent attention's FLOPs are those of its explicit form; a decoding step in the "
            f"absorbed form has {absorbed(architecture, counted.context):,} attention FLOPs"
        )
    if any(not isinstance(m, (Attention, LatentAttention, CompressedAttention)) for m in mixers):
        found.append(
            "attention FLOPs include the reads and writes of recurrent memory, in recurrent form"
        )
    chunks = {m.reach.size for m in mixers if isinstance(m, Attention) and m.reach.kind == "chunk"}
    for size in sorted(chunks):
        needed = (kept.context - 1) % size + 1
        found.append(
            f"at {kept.context} tokens a chunked layer needs {needed} of the "
            f"{min(kept.context, size)} tokens counted"
        )
    if architecture.head.table and architecture.decodes:
        found.append("the FLOPs of all tokens include the output head at every position")
    if reserve == "full":
        found.append("reserved: every layer holds the whole context, windows too")
    if kept.ranks > 1 and architecture.decodes:
        heads = {m.kv_heads for m in mixers if isinstance(m, Attention) and m.cached}
        repeated = [h for h in heads if h < kept.ranks]
        found.append(
            f"the cache is one rank's of {kept.ranks}"
            + (
                f"; with fewer key/value heads than that ({min(repeated)}), heads are copied"
                if repeated
                else ""
            )
        )
    if architecture.encoder and not kept.source_length:
        found.append(
            "source length 0: the encoder's FLOPs and the cross-attention cache are left out"
        )
    elif kept.scalars_per_source_token and not kept.source_length:
        found.append("source length 0: the cross-attention cache is left out")
    if kept.source_length and not architecture.encoder and not kept.scalars_per_source_token:
        found.append(
            f"source length {kept.source_length}: this model has no encoder, so it counts for nothing"
        )
    if not architecture.decodes:
        found.append(
            "no decoding, so no cache; a token's FLOPs are the sequence's, shared out evenly"
        )
    if architecture.image:
        found.append(
            f"one image is a sequence of {counted.context} tokens, whatever context was asked for"
        )
    elif architecture.trained_length and kept.context > architecture.trained_length:
        found.append(
            f"{kept.context} tokens are more than the {architecture.trained_length} the "
            "configuration allows for"
        )
    if architecture.vision:
        found.append(
            "with the vision tower: total is text and vision; active, cache and FLOPs are of text"
        )
    elif architecture.image is None:
        found.append("text weights only")
    if architecture.multi_token_prediction:
        found.append(
            "multi-token-prediction modules stand on a line of their own, outside the total"
        )
    if any(
        isinstance(part, Experts) for layer in architecture.layers for part in layer.feed_forwards
    ):
        found.append("routing-correction biases are buffers, not parameters")
    return list(dict.fromkeys(found))
