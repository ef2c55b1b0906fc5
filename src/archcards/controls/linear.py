"""Linear attention, wrong in named ways."""

import numpy as np

from ._reference import elu_plus_one, linear_attention
from ._recurrence import (
    by_differences,
    by_factors,
    causal,
    chunk_by_chunk,
    exponents,
    pairs,
    step_by_step,
)
from ._registry import convention, mistake

__all__: list[str] = []


@mistake("elu_plus_one", "one not added")
def elu_alone(x):
    """Return ELU itself, which is negative for negative numbers: scores no longer normalise.

    Seen in: `F.elu(x)` in place of `F.elu(x) + 1`.
    """
    return elu_plus_one(x) - 1


@convention("elu_plus_one", "relu")
def relu(x):
    """Cut at zero: features may vanish, and with them the normaliser.

    Seen in: flash-linear-attention's choice of feature maps.
    """
    return np.maximum(x, 0.0)


# Linear attention written out, with what controls change as arguments: step by step, or in chunks where
# the change is in how chunks are computed. The normaliser is one more value channel.


def _step(memory, key, value, beta, decay, *, decays="before the write", reads="after the write"):
    """One step: the memory that the query reads, and the memory to keep."""
    if decays == "never":
        decay = np.ones_like(decay)
    decayed = memory if decays == "after the write" else decay * memory
    written = decayed + key * value
    if decays == "after the write":
        written = decay * written
    return memory if reads == "before the write" else written, written


def _written_out(
    query,
    key,
    value,
    *,
    log_decay=None,
    normalise=False,
    scale=1.0,
    state=None,
    form="recurrent",
    chunk=64,
    **change,
):
    value = np.asarray(value, dtype=float)
    if not normalise:
        return _run(query, key, value, log_decay, chunk, {"scale": scale, "state": state}, change)
    value = np.concatenate([value, np.ones_like(value[..., :1])], axis=-1)
    if state is not None:
        state = np.concatenate([state[0], np.asarray(state[1])[..., None]], axis=-1)
    output, memory = _run(query, key, value, log_decay, chunk, {"state": state}, change)
    with np.errstate(divide="ignore", invalid="ignore"):
        output = output[..., :-1] / output[..., -1:]
    return output, (memory[..., :-1], memory[..., -1])


def _run(query, key, value, log_decay, chunk, options, change):
    exponent = exponents(log_decay, query, key, value)
    with np.errstate(invalid="ignore", over="ignore"):
        if change.keys() & {"scores", "memory_decays"}:
            options["chunk"] = chunk
            return _in_chunks(query, key, value, exponent, options, **change)
        factors = np.exp(exponent)
        if change.pop("by_logarithm", False) and log_decay is not None:
            factors = exponent

        def step(*arrays):
            return _step(*arrays, **change)

        return step_by_step(query, key, value, 1.0, factors, step, **options)


def _in_chunks(
    query,
    key,
    value,
    exponent,
    options,
    *,
    scores=pairs,
    reads="after the write",
    decays="before the write",
    by_logarithm=False,
    **change,
):
    """In chunks, where a decay in another place or by its logarithm has no counterpart."""
    exponent = np.zeros_like(exponent) if decays == "never" else exponent

    def read_by(*chunk):
        found = scores(*chunk)
        return np.tril(found, -1) if reads == "before the write" else found

    options |= {"scores": read_by, **change}
    return chunk_by_chunk(query, key, value, 1.0, exponent, **options)


@convention("linear_attention", "query scaled by 1/sqrt(d)")
def linear_attention_scaled(query, key, value, *, scale=None, **options):
    """Scale the query as softmax attention does, unless a scale is given; a normaliser hides it.

    Seen in: flash-linear-attention, whose `scale` is d^(−1/2) unless given; the papers have none.
    """
    scale = 1 / np.sqrt(np.shape(query)[-1]) if scale is None else scale
    return linear_attention(query, key, value, scale=scale, **options)


@convention("linear_attention", "memory as (value, key)")
def linear_attention_transposed(query, key, value, *, normalise=False, state=None, **options):
    """Keep the transpose of the memory: the outputs agree, the state does not.

    Seen in: the equations of arXiv 2102.11174 and 2412.06464, where the code is (key, value).
    """

    def transposed(state):
        if normalise:
            return np.swapaxes(state[0], -1, -2), state[1]
        return np.swapaxes(state, -1, -2)

    state = None if state is None else transposed(state)
    output, state = linear_attention(
        query, key, value, normalise=normalise, state=state, **options
    )
    return output, transposed(state)


@mistake("linear_attention", "no decay", _written_out, decays="never")
def linear_attention_without_decay():
    """Forget nothing.

    Seen in: ports that drop an argument which the first models of the family did not have.
    """


@mistake("linear_attention", "decay after the write", _written_out, decays="after the write")
def linear_attention_decayed_late():
    """Let what was just written decay before it is read.

    Seen in: `state = decay * (state + outer)`, where the papers have `decay * state + outer`.
    """


@mistake("linear_attention", "log-decay read as decay", _written_out, by_logarithm=True)
def linear_attention_by_the_logarithm():
    """Multiply by the logarithm, a number below zero, where its exponential is meant.

    Seen in: calls of libraries whose argument `g` is a log-decay, from code that holds the decay.
    """


@mistake("linear_attention", "read before the write", _written_out, reads="before the write")
def linear_attention_read_early():
    """Read the memory of the step before: a query does not find its own key.

    Seen in: RWKV (arXiv 2305.13048), where it is meant: there the present has a weight of its own.
    """


@mistake("linear_attention", "causal mask in place of the decay mask", _written_out, scores=causal)
def linear_attention_under_the_causal_mask():
    """Let the memory between chunks decay, and what is read inside a chunk not.

    Seen in: the output formula as printed in arXiv 2412.06464 (GatedDeltaNet #13, #15).
    """


@mistake("linear_attention", "memory between chunks does not decay", _written_out, memory_decays=False)
def linear_attention_with_a_lasting_memory():
    """Decay what is read from the memory inside a chunk, and hand the memory on as it was.

    Seen in: chunked ports that test lengths of one chunk only, where nothing is handed on.
    """


@mistake("linear_attention", "decay by differences of sums", _written_out, scores=by_differences)
def linear_attention_by_differences():
    """Take the decay from j to i as exp(Gᵢ − Gⱼ): NaN once a decay is zero.

    Seen in: chunked kernels of the gated families, right as long as no gate closes entirely.
    """


@mistake("linear_attention", "decay by two factors", _written_out, scores=by_factors)
def linear_attention_by_factors():
    """Multiply queries by e^Gᵢ and keys by e^−Gⱼ: the second overflows where decay is strong.

    Seen in: arXiv 2312.06635, section 4.3, which divides chunks once more to avoid it.
    """


@mistake("linear_attention", "initial state forgotten")
def linear_attention_from_nothing(query, key, value, *, state=None, **options):
    """Start from zero whatever the previous call returned.

    Seen in: decoding loops that drop the state of a prefill.
    """
    return linear_attention(query, key, value, **options)


@mistake("linear_attention", "not normalised")
def linear_attention_without_normaliser(query, key, value, *, normalise=False, **options):
    """Return the sum of values where their mean is asked for.

    Seen in: ports between libraries of which one divides and the other does not unless told.
    """
    if not normalise:
        return linear_attention(query, key, value, **options)
    output, state = linear_attention(query, key, value, normalise=True, **options)
    options |= {"state": options["state"][0]} if options.get("state") is not None else {}
    return linear_attention(query, key, value, **options)[0], state


def _divided_by(normaliser):
    """Register-ready linear attention whose normaliser is `normaliser(key)` and not the sum."""

    def mechanism(query, key, value, *, normalise=False, **options):
        if not normalise:
            return linear_attention(query, key, value, **options)
        _, state = linear_attention(query, key, value, normalise=True, **options)
        options |= {"state": options["state"][0]} if options.get("state") is not None else {}
        output, _ = linear_attention(query, key, value, **options | {"scale": 1.0})
        mass = np.sum(query * normaliser(np.asarray(key, dtype=float)), axis=-1, keepdims=True)
        return output / mass, state

    mechanism.__doc__, mechanism.__name__ = normaliser.__doc__, normaliser.__name__
    return mechanism


@mistake("linear_attention", "normaliser summed along the heads")
@_divided_by
def normaliser_along_the_heads(key):
    """Accumulate the keys along the axis before time.

    Seen in: fla #594, after the layout changed from head-first to time-first, and #850, in a form
    that keeps heads first.
    """
    return key if key.ndim == 2 else np.cumsum(key, axis=-3)


@mistake("linear_attention", "normaliser without the running sum")
@_divided_by
def normaliser_of_the_present(key):
    """Divide by the present key's score alone.

    Seen in: implementations that add up k vᵀ and forget to add up k.
    """
    return key


@mistake("linear_attention", "normaliser does not decay")
@_divided_by
def normaliser_without_decay(key):
    """Divide by the plain sum of keys where the memory has decayed.

    Seen in: decays added to a normalised linear attention afterwards.
    """
    return np.cumsum(key, axis=-2)
