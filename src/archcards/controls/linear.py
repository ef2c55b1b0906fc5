"""Linear attention, wrong in named ways."""

import numpy as np

from ._reference import elu_plus_one, linear_attention
from ._recurrence import by_differences, by_factors, causal, chunk_by_chunk, exponents, step_by_step
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


# The wrong step or the wrong chunk, with the normaliser as one more value channel.


def _with_normaliser(run):
    """Give `run(query, key, value, log_decay, chunk, scale=, state=)` the mechanism's signature."""

    def mechanism(
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
    ):
        value = np.asarray(value, dtype=float)
        if not normalise:
            return run(query, key, value, log_decay, chunk, scale=scale, state=state)
        value = np.concatenate([value, np.ones_like(value[..., :1])], axis=-1)
        if state is not None:
            state = np.concatenate([state[0], np.asarray(state[1])[..., None]], axis=-1)
        output, memory = run(query, key, value, log_decay, chunk, state=state)
        with np.errstate(divide="ignore", invalid="ignore"):
            output = output[..., :-1] / output[..., -1:]
        return output, (memory[..., :-1], memory[..., -1])

    mechanism.__doc__, mechanism.__name__ = run.__doc__, run.__name__
    return mechanism


def _in_steps(query, key, value, log_decay, step, factors=np.exp, **options):
    decay = factors(exponents(log_decay, query, key, value))
    return step_by_step(query, key, value, 1.0, decay, step, **options)


def _in_chunks(query, key, value, log_decay, chunk, **options):
    decay = exponents(log_decay, query, key, value)
    return chunk_by_chunk(query, key, value, 1.0, decay, chunk=chunk, **options)


def _write_and_read(memory, key, value, beta, decay):
    memory = decay * memory + key * value
    return memory, memory


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


@mistake("linear_attention", "no decay")
def linear_attention_without_decay(query, key, value, *, log_decay=None, **options):
    """Forget nothing.

    Seen in: ports that drop an argument which the first models of the family did not have.
    """
    return linear_attention(query, key, value, **options)


@mistake("linear_attention", "decay after the write")
@_with_normaliser
def linear_attention_decayed_late(query, key, value, log_decay, chunk, **options):
    """Let what was just written decay before it is read.

    Seen in: `state = decay * (state + outer)`, where the papers have `decay * state + outer`.
    """

    def step(memory, key, value, beta, decay):
        memory = decay * (memory + key * value)
        return memory, memory

    return _in_steps(query, key, value, log_decay, step, **options)


@mistake("linear_attention", "log-decay read as decay")
@_with_normaliser
def linear_attention_by_the_logarithm(query, key, value, log_decay, chunk, **options):
    """Multiply by the logarithm, a number below zero, where its exponential is meant.

    Seen in: calls of libraries whose argument `g` is a log-decay, from code that holds the decay.
    """
    factors = np.exp if log_decay is None else np.asarray
    with np.errstate(invalid="ignore"):
        return _in_steps(query, key, value, log_decay, _write_and_read, factors, **options)


@mistake("linear_attention", "read before the write")
@_with_normaliser
def linear_attention_read_early(query, key, value, log_decay, chunk, **options):
    """Read the memory of the step before: a query does not find its own key.

    Seen in: RWKV (arXiv 2305.13048), where it is meant: there the present has a weight of its own.
    """

    def step(memory, key, value, beta, decay):
        return memory, decay * memory + key * value

    return _in_steps(query, key, value, log_decay, step, **options)


@mistake("linear_attention", "causal mask in place of the decay mask")
@_with_normaliser
def linear_attention_under_the_causal_mask(query, key, value, log_decay, chunk, **options):
    """Let the memory between chunks decay, and what is read inside a chunk not.

    Seen in: the output formula as printed in arXiv 2412.06464 (GatedDeltaNet #13, #15).
    """
    return _in_chunks(query, key, value, log_decay, chunk, scores=causal, **options)


@mistake("linear_attention", "memory between chunks does not decay")
@_with_normaliser
def linear_attention_with_a_lasting_memory(query, key, value, log_decay, chunk, **options):
    """Decay what is read from the memory inside a chunk, and hand the memory on as it was.

    Seen in: chunked ports that test lengths of one chunk only, where nothing is handed on.
    """
    return _in_chunks(query, key, value, log_decay, chunk, memory_decays=False, **options)


@mistake("linear_attention", "decay by differences of sums")
@_with_normaliser
def linear_attention_by_differences(query, key, value, log_decay, chunk, **options):
    """Take the decay from j to i as exp(Gᵢ − Gⱼ): NaN once a decay is zero.

    Seen in: chunked kernels of the gated families, right as long as no gate closes entirely.
    """
    return _in_chunks(query, key, value, log_decay, chunk, scores=by_differences, **options)


@mistake("linear_attention", "decay by two factors")
@_with_normaliser
def linear_attention_by_factors(query, key, value, log_decay, chunk, **options):
    """Multiply queries by e^Gᵢ and keys by e^−Gⱼ: the second overflows where decay is strong.

    Seen in: arXiv 2312.06635, section 4.3, which divides chunks once more to avoid it.
    """
    return _in_chunks(query, key, value, log_decay, chunk, scores=by_factors, **options)


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

    Seen in: fla #594 and #850, after the layout changed from time-first to head-first.
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
