"""The tensors of the blocks that families share, each written down once."""

from ..architecture import Attention, Experts, FeedForward, Reach, Tensor

__all__ = [
    "after_norms",
    "attention",
    "dense",
    "experts",
    "gated",
    "head_norms",
    "layer_norm",
    "layer_norms",
    "linear",
    "plain",
    "pre_norms",
    "rms_norm",
    "sandwich_norms",
    "vector",
]


def linear(name: str, inputs: int, outputs: int, bias: bool = False, **facts) -> tuple[Tensor, ...]:
    """A projection: a matrix, and a bias if asked."""
    weight = Tensor(name, (outputs, inputs), **facts)
    if not bias:
        return (weight,)
    return (weight, Tensor(f"{name} bias", (outputs,), "vector", **facts))


def vector(name: str, *shape: int, **facts) -> Tensor:
    """Parameters that are added or multiplied element by element."""
    return Tensor(name, shape, "vector", **facts)


def rms_norm(name: str, width: int, **facts) -> tuple[Tensor, ...]:
    """A norm with a scale only."""
    return (vector(f"{name} norm", width, **facts),)


def layer_norm(name: str, width: int, bias: bool = True, **facts) -> tuple[Tensor, ...]:
    """A norm with a scale and, unless told, a shift."""
    scale = vector(f"{name} norm", width, **facts)
    return (scale, vector(f"{name} norm bias", width, **facts)) if bias else (scale,)


def pre_norms(hidden: int) -> tuple[Tensor, ...]:
    """The two norms of a pre-norm layer."""
    return rms_norm("attention", hidden) + rms_norm("feed-forward", hidden)


def layer_norms(hidden: int, bias: bool = True) -> tuple[Tensor, ...]:
    """The same with shifts, unless told."""
    return layer_norm("attention", hidden, bias) + layer_norm("feed-forward", hidden, bias)


def after_norms(hidden: int) -> tuple[Tensor, ...]:
    """A norm after each half of the layer, none before."""
    return rms_norm("after attention", hidden) + rms_norm("after feed-forward", hidden)


def sandwich_norms(hidden: int) -> tuple[Tensor, ...]:
    """A norm before and after each half of the layer."""
    names = ("attention", "after attention", "feed-forward", "after feed-forward")
    return sum((rms_norm(name, hidden) for name in names), ())


def head_norms(width: int) -> tuple[Tensor, ...]:
    """Norms of queries and keys over one head's width, shared by the heads."""
    return rms_norm("query", width) + rms_norm("key", width)


def attention(
    hidden: int,
    heads: int,
    kv_heads: int,
    key_width: int,
    value_width: int | None = None,
    *,
    bias: bool = False,
    query_bias: bool | None = None,
    key_bias: bool | None = None,
    value_bias: bool | None = None,
    output_bias: bool | None = None,
    own_keys: bool = True,
    own_values: bool = True,
    gate: bool = False,
    extra: tuple[Tensor, ...] = (),
    output: int | None = None,
    keys_from: str = "token",
    reach: Reach = Reach(),
    cached: bool = True,
    cross: bool = False,
    facts: dict | None = None,
) -> Attention:
    """Query, key, value and output projections around softmax attention.

    `gate` doubles the query projection by an output gate; `own_values` is false where the
    values are the keys before their norm; `keys_from="source"` where keys come from an encoder.
    """
    value_width = key_width if value_width is None else value_width
    facts = facts or {}
    pick = lambda special: bias if special is None else special  # noqa: E731
    tensors = linear(
        "query", hidden, heads * key_width * (2 if gate else 1), pick(query_bias), **facts
    )
    if own_keys:
        tensors += linear(
            "key", hidden, kv_heads * key_width, pick(key_bias), **{"per": keys_from, **facts}
        )
        if own_values:
            tensors += linear(
                "value",
                hidden,
                kv_heads * value_width,
                pick(value_bias),
                **{"per": keys_from, **facts},
            )
    tensors += linear("output", heads * value_width, output or hidden, pick(output_bias), **facts)
    return Attention(
        heads,
        kv_heads,
        key_width,
        value_width,
        tensors + extra,
        reach=reach,
        cached=cached,
        cross=cross,
    )


def gated(hidden: int, inner: int, bias: bool = False, **facts) -> tuple[Tensor, ...]:
    """A gated network: gate, up and down."""
    return (
        *linear("gate", hidden, inner, bias, **facts),
        *linear("up", hidden, inner, bias, **facts),
        *linear("down", inner, hidden, bias, **facts),
    )


def plain(hidden: int, inner: int, bias: bool = True, **facts) -> tuple[Tensor, ...]:
    """A network without a gate: up and down."""
    return (
        *linear("up", hidden, inner, bias, **facts),
        *linear("down", inner, hidden, bias, **facts),
    )


def experts(
    hidden: int,
    inner: int,
    count: int,
    chosen: int,
    *,
    shared: int = 0,
    shared_gate: bool = False,
    router_bias: bool = False,
    bias: bool = False,
    gate: bool = True,
) -> Experts:
    """A router over `count` networks of `inner` width, and a shared one of `shared` width."""
    network = gated if gate else plain
    routed = network(hidden, inner, bias, copies=count, used=chosen)
    always = network(hidden, shared, False) if shared else ()
    if shared and shared_gate:
        always += linear("shared gate", hidden, 1)
    return Experts(count, chosen, linear("router", hidden, count, router_bias), routed, always)


def dense(tensors: tuple[Tensor, ...]) -> FeedForward:
    """A dense feed-forward network of these tensors."""
    return FeedForward(tensors)
