"""The delta rule, wrong in named ways."""

import numpy as np

from ._reference import decay_gate, delta_rule, delta_write, gated_write, unit_key
from ..mechanisms._decay import per_step_or_channel
from ._recurrence import (
    by_differences,
    by_clamped_factors,
    by_factors,
    causal,
    chunk_by_chunk,
    exponents,
    pairs,
    read,
    step_by_step,
)
from ._registry import convention, mistake

__all__: list[str] = []


# The rule written out, with what controls change as arguments: step by step, or in chunks where the
# change is in how chunks are computed.


def _shares(beta, *, erases=None, sign=1.0):
    """The factors of the value that a write adds and of what it erases."""
    erased = beta if erases is None else np.full_like(beta, erases)
    return sign * beta, sign * erased


def _step(
    memory, key, value, beta, decay, *, decays="before the read", reads="after the write", **shares
):
    """One step: the memory that the query reads, and the memory to keep."""
    if decays == "never":
        decay, decays = np.ones_like(decay), "before the read"
    decayed = decay * memory
    adds, erases = _shares(beta, **shares)
    added = adds * key * value
    erased = erases * key * read(decayed if decays == "before the read" else memory, key)
    if decays == "after the write":
        written = decay * (memory - erased + added)
    elif decays == "after the erasure":
        written = decay * (memory - erased) + added
    else:
        written = decayed - erased + added
    readable = {"before the decay": memory, "before the write": decayed, "after the write": written}
    return readable[reads], written


def _solved(key, value, beta, exponent, memory, *, between=pairs, gated=None, **shares):
    """What each step of a chunk writes, from one triangular system or from two.

    With two, the erasing keys solve theirs before they decay, as in arXiv 2412.06464, section 3.3;
    `gated` says whether the system of the values and that of the keys have the decay in them.
    """
    adds, erases = _shares(beta, **shares)
    from_start = np.exp(np.cumsum(exponent, axis=-2))

    def system(scores):
        return np.eye(key.shape[-2]) + np.tril(scores(erases * key, key, exponent), -1)

    if gated is None:
        writes = adds * value - erases * ((key * from_start) @ memory)
        return np.linalg.solve(system(between), writes)
    values, keys = (system(between if decays else causal) for decays in gated)
    erased = np.linalg.solve(keys, erases * key) * from_start
    return np.linalg.solve(values, adds * value) - erased @ memory


def _rule(
    query,
    key,
    value,
    beta,
    *,
    log_decay=None,
    scale=1.0,
    state=None,
    form="recurrent",
    chunk=64,
    **change,
):
    exponent = exponents(log_decay, query, key, value, beta)
    options = {"scale": scale, "state": state}
    with np.errstate(invalid="ignore", over="ignore"):
        if change.keys() & {"scores", "gated", "between"}:
            options["chunk"] = chunk
            return _in_chunks(query, key, value, beta, exponent, options, **change)
        factors = np.exp(exponent)
        if change.pop("by_logarithm", False) and log_decay is not None:
            factors = exponent

        def step(*arrays):
            return _step(*arrays, **change)

        return step_by_step(query, key, value, beta, factors, step, **options)


def _in_chunks(
    query,
    key,
    value,
    beta,
    exponent,
    options,
    *,
    between=pairs,
    scores=None,
    reads="after the write",
    decays="before the read",
    by_logarithm=False,
    **change,
):
    """The rule in chunks, where a decay in another place or by its logarithm has no counterpart."""
    exponent = np.zeros_like(exponent) if decays == "never" else exponent

    def writes(*chunk):
        return _solved(*chunk, between=between, **change)

    def read_by(*chunk):
        found = (scores or between)(*chunk)
        return np.tril(found, -1) if reads == "before the write" else found

    options |= {"scores": read_by, "writes": writes}
    return chunk_by_chunk(query, key, value, beta, exponent, **options)


def _gated(state, key, value, beta, decay, **change):
    state, key, value, beta, decay = (
        np.asarray(x, dtype=float) for x in (state, key, value, beta, decay)
    )
    leads = (state.shape[:-2], key.shape[:-1], value.shape[:-1], beta.shape)
    decay = per_step_or_channel("decay", decay, np.broadcast_shapes(*leads), (), key.shape[-1])
    key, value, decay = key[..., :, None], value[..., None, :], decay[..., :, None]
    return _step(state, key, value, beta[..., None, None], decay, **change)[1]


def _write(state, key, value, beta, **change):
    return _gated(state, key, value, beta, 1.0, **change)


_WITH_OUTPUT = {"delta_rule": _rule}
_WITH_DECAY = _WITH_OUTPUT | {"gated_write": _gated}
_EVERYWHERE = _WITH_DECAY | {"delta_write": _write}


def _changed(mechanisms, name, **change):
    """Register a changed step for every mechanism that has it: a write alone and the whole rule."""

    def register(function):
        for mechanism, written in mechanisms.items():
            mistake(mechanism, name, written, **change)(function)
        return function

    return register


@_changed(_EVERYWHERE, "added instead of corrected", erases=0.0)
def step_without_error():
    """Add the value without subtracting what the key reads already: linear attention.

    Seen in: the rule that Schlag et al., arXiv 2102.11174, section 4, set out to replace.
    """


@_changed(_EVERYWHERE, "beta on the value alone", erases=1.0)
def step_with_beta_on_the_value():
    """Erase all that the key reads, whatever beta is.

    Seen in: β v stored in advance and the erasure left without its factor.
    """


@_changed(_EVERYWHERE, "error with the wrong sign", sign=-1.0)
def step_away_from_the_value():
    """Subtract value from prediction: the memory moves away from the value.

    Seen in: derivations that start from the gradient and do not turn its sign.
    """


@_changed(_WITH_DECAY, "no decay", decays="never")
def step_without_decay():
    """Forget nothing: the plain delta rule.

    Seen in: ports that drop an argument which the first models of the family did not have.
    """


@_changed(_WITH_DECAY, "decay after the read", decays="after the read")
def step_decayed_after_the_read():
    """Take the error against the memory as it was before it decayed.

    Seen in: fla #885, on the order of the two factors.
    """


@_changed(_WITH_DECAY, "decay after the write", decays="after the write")
def step_decayed_after_the_write():
    """Let what was just written decay with the rest.

    Seen in: `state = decay * delta_write(state, ...)`.
    """


@_changed(_WITH_DECAY, "factors in the other order", decays="after the erasure")
def step_with_swapped_factors():
    """Apply diag(α) (I − β k kᵀ): the same for one decay per step, not for one per channel.

    Seen in: fla #885.
    """


@_changed(_WITH_OUTPUT, "read before the write", reads="before the decay")
def step_read_early():
    """Read the output from the memory of the step before.

    Seen in: loops that compute the output at the top; a query does not find its own key.
    """


@_changed(_WITH_OUTPUT, "read after the decay, before the write", reads="before the write")
def step_read_between():
    """Read the output together with the error, from the memory that has only decayed.

    Seen in: kernels that fuse the two reads of a step.
    """


# Writes


@convention("delta_write", "beta doubled")
def delta_write_twice_as_far(state, key, value, beta):
    """Take beta in (0, 1) and go up to twice the error: reflections, not only projections.

    Seen in: Grazzi et al., arXiv 2411.12537; `allow_neg_eigval` of flash-linear-attention.
    """
    return delta_write(state, key, value, 2 * np.asarray(beta))


@convention("gated_write", "beta doubled")
def gated_write_twice_as_far(state, key, value, beta, decay):
    """Take beta in (0, 1) and go up to twice the error: reflections, not only projections.

    Seen in: Grazzi et al., arXiv 2411.12537; `allow_neg_eigval` of flash-linear-attention.
    """
    return gated_write(state, key, value, 2 * np.asarray(beta), decay)


@convention("delta_write", "memory as (value, key)")
def delta_write_transposed(state, key, value, beta):
    """Take and return the transpose of the memory.

    Seen in: the equations of arXiv 2102.11174 and 2412.06464, where the code is (key, value).
    """
    return np.swapaxes(delta_write(np.swapaxes(state, -1, -2), key, value, beta), -1, -2)


@convention("gated_write", "memory as (value, key)")
def gated_write_transposed(state, key, value, beta, decay):
    """Take and return the transpose of the memory.

    Seen in: the equations of arXiv 2102.11174 and 2412.06464, where the code is (key, value).
    """
    return np.swapaxes(gated_write(np.swapaxes(state, -1, -2), key, value, beta, decay), -1, -2)


@mistake("gated_write", "decay taken for its logarithm")
def gated_write_by_the_exponential(state, key, value, beta, decay):
    """Exponentiate a decay that is one already: the memory grows.

    Seen in: calls of libraries whose argument `g` is a log-decay, from code that holds the decay.
    """
    decay = np.exp(np.asarray(decay, dtype=float))
    largest = np.max(decay)
    return gated_write(np.multiply(state, largest), key, value, beta, decay / largest)


# The whole rule


@convention("delta_rule", "query scaled by 1/sqrt(d)")
def delta_rule_scaled(query, key, value, beta, *, scale=None, **options):
    """Scale the query as softmax attention does, unless a scale is given.

    Seen in: flash-linear-attention, whose `scale` is d^(−1/2) unless given; the papers have none.
    """
    scale = 1 / np.sqrt(np.shape(query)[-1]) if scale is None else scale
    return delta_rule(query, key, value, beta, scale=scale, **options)


@convention("delta_rule", "memory as (value, key)")
def delta_rule_transposed(query, key, value, beta, *, state=None, **options):
    """Keep the transpose of the memory: the outputs agree, the state does not.

    Seen in: the equations of arXiv 2102.11174 and 2412.06464, where the code is (key, value).
    """
    state = None if state is None else np.swapaxes(state, -1, -2)
    output, state = delta_rule(query, key, value, beta, state=state, **options)
    return output, np.swapaxes(state, -1, -2)


@convention("delta_rule", "beta doubled")
def delta_rule_twice_as_far(query, key, value, beta, **options):
    """Take beta in (0, 1) and go up to twice the error: reflections, not only projections.

    Seen in: Grazzi et al., arXiv 2411.12537; `allow_neg_eigval` of flash-linear-attention.
    """
    return delta_rule(query, key, value, 2 * np.asarray(beta, dtype=float), **options)


@convention("delta_rule", "unit queries and keys made inside")
def delta_rule_of_unit_keys(query, key, value, beta, **options):
    """Normalise queries and keys before use.

    Seen in: `use_qk_l2norm_in_kernel` of flash-linear-attention; with keys longer than √(2/β) the
    rule as written diverges.
    """
    return delta_rule(unit_key(query), unit_key(key), value, beta, **options)


@mistake("delta_rule", "log-decay read as decay", _rule, by_logarithm=True)
def delta_rule_by_the_logarithm():
    """Multiply by the logarithm, a number below zero, where its exponential is meant.

    Seen in: calls of libraries whose argument `g` is a log-decay, from code that holds the decay.
    """


@mistake("delta_rule", "decay of the step before")
def delta_rule_with_shifted_decay(query, key, value, beta, *, log_decay=None, **options):
    """Let each step decay by the gate of the step before it; the first does not decay.

    Seen in: exclusive cumulative sums where inclusive ones are meant.
    """
    if log_decay is not None:
        decay = exponents(log_decay, query, key, value, beta)
        first = np.zeros_like(decay[..., :1, :])
        decay = np.concatenate([first, decay[..., :-1, :]], axis=-2)
        log_decay = decay[..., 0] if decay.shape[-1] == 1 else decay
    return delta_rule(query, key, value, beta, log_decay=log_decay, **options)


@mistake("delta_rule", "initial state forgotten")
def delta_rule_from_nothing(query, key, value, beta, *, state=None, **options):
    """Start from zero whatever the previous call returned.

    Seen in: decoding loops that drop the state of a prefill.
    """
    return delta_rule(query, key, value, beta, **options)


# Chunks: what each step writes solves a triangular system, and its output is read by scores.


@mistake("delta_rule", "causal mask in place of the decay mask", _rule, scores=causal)
def delta_rule_under_the_causal_mask():
    """Read what a chunk has written as if it had not decayed.

    Seen in: the output formula as printed in arXiv 2412.06464 (GatedDeltaNet #13, #15).
    """


@mistake("delta_rule", "both triangular systems gated", _rule, gated=(True, True))
def delta_rule_both_gated():
    """Put the decay into the system of the erasing keys too, which decay afterwards: twice.

    Seen in: the first draft of a port (shainet #170).
    """


@mistake("delta_rule", "neither triangular system gated", _rule, gated=(False, False))
def delta_rule_neither_gated():
    """Leave the decay out of the system of the values too: DeltaNet's own form.

    Seen in: readings of the reference code, which forms both matrices under one name (GatedDeltaNet
    #14 asks after it).
    """


@mistake("delta_rule", "decay by differences of sums", _rule, between=by_differences)
def delta_rule_by_differences():
    """Take the decay from j to i as exp(Gᵢ − Gⱼ): NaN once a decay is zero.

    Seen in: chunked kernels of the gated families, right as long as no gate closes entirely.
    """


@mistake("delta_rule", "decay by two factors", _rule, between=by_factors)
def delta_rule_by_factors():
    """Multiply by e^Gᵢ and e^−Gⱼ: the second overflows where decay is strong.

    Seen in: arXiv 2312.06635, section 4.3, which divides chunks once more to avoid it.
    """


@mistake("delta_rule", "decay by two clamped factors", _rule, between=by_clamped_factors)
def delta_rule_by_clamped_factors():
    """Clamp the exponents of e^Gᵢ and e^−Gⱼ: they cancel where all is forgotten.

    Seen in: sglang #39971, whose report finds forgotten keys read at full weight.
    """


# Keys and gates


@convention("unit_key", "largest of norm and epsilon")
def unit_key_by_the_maximum(x, eps=1e-6):
    """Divide by max(‖x‖, ε): at length 10⁻³ the key is a unit key, with ε in the root it is 0.71.

    Seen in: `torch.nn.functional.normalize`.
    """
    x = np.asarray(x, dtype=float)
    return x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), eps)


@convention("unit_key", "epsilon added to the norm")
def unit_key_by_the_sum(x, eps=1e-6):
    """Divide by ‖x‖ + ε.

    Seen in: hand-written normalisations.
    """
    x = np.asarray(x, dtype=float)
    return x / (np.linalg.norm(x, axis=-1, keepdims=True) + eps)


@mistake("unit_key", "mean square in place of the sum")
def unit_key_by_the_mean(x, eps=1e-6):
    """Normalise to length √d, as RMSNorm does: |1 − β k·k| is then above 1.

    Seen in: a norm layer that is at hand put in place of the missing one.
    """
    x = np.asarray(x, dtype=float)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)


@mistake("decay_gate", "rate not exponentiated")
def decay_gate_of_the_logarithm(x, log_rate, bias):
    """Use the stored logarithm as the rate.

    Seen in: ports that load `A_log` and skip `-exp(A_log)`.
    """
    return np.multiply(log_rate, decay_gate(x, 0.0, bias))


@mistake("decay_gate", "sign forgotten")
def decay_gate_of_growth(x, log_rate, bias):
    """Return a positive number: the memory grows.

    Seen in: A = exp(A_log) for A = −exp(A_log).
    """
    return -decay_gate(x, log_rate, bias)


@mistake("decay_gate", "bias after the softplus")
def decay_gate_with_late_bias(x, log_rate, bias):
    """Add the bias to the softplus, which may then be negative.

    Seen in: projections whose own bias is kept apart.
    """
    return decay_gate(x, log_rate, 0.0) - np.exp(log_rate) * np.asarray(bias, dtype=float)


@convention("decay_gate", "decay itself")
def decay_gate_exponentiated(x, log_rate, bias):
    """Return α and not ln α.

    Seen in: the equations of the papers; the code passes the logarithm.
    """
    return np.exp(decay_gate(x, log_rate, bias))
