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


# Steps: a step is `step(memory, key, value, beta, decay)` → (memory to read, memory to keep), and
# is wrong in the write alone and in the whole rule alike.


def _wrong_step(kind, name, *mechanisms):
    """Register a step for those of `delta_write`, `gated_write` and `delta_rule` that have it."""

    def register(step):
        def rule(
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
        ):
            decay = np.exp(exponents(log_decay, query, key, value, beta))
            options = {"scale": scale, "state": state}
            return step_by_step(query, key, value, beta, decay, step, **options)

        def gated(state, key, value, beta, decay):
            state, key, value, beta, decay = (
                np.asarray(x, dtype=float) for x in (state, key, value, beta, decay)
            )
            leads = (state.shape[:-2], key.shape[:-1], value.shape[:-1], beta.shape)
            lead = np.broadcast_shapes(*leads)
            decay = per_step_or_channel("decay", decay, lead, (), key.shape[-1])
            key, value, decay = key[..., :, None], value[..., None, :], decay[..., :, None]
            return step(state, key, value, beta[..., None, None], decay)[1]

        def write(state, key, value, beta):
            return gated(state, key, value, beta, 1.0)

        functions = {"delta_rule": rule, "gated_write": gated, "delta_write": write}
        for mechanism in mechanisms:
            function = functions[mechanism]
            function.__doc__, function.__name__ = step.__doc__, step.__name__
            kind(mechanism, name)(function)
        return step

    return register


@_wrong_step(mistake, "added instead of corrected", "delta_write", "gated_write", "delta_rule")
def step_without_error(memory, key, value, beta, decay):
    """Add the value without subtracting what the key reads already: linear attention.

    Seen in: the rule that Schlag et al., arXiv 2102.11174, section 4, set out to replace.
    """
    memory = decay * memory + beta * key * value
    return memory, memory


@_wrong_step(mistake, "beta on the value alone", "delta_write", "gated_write", "delta_rule")
def step_with_beta_on_the_value(memory, key, value, beta, decay):
    """Erase all that the key reads, whatever beta is.

    Seen in: β v stored in advance and the erasure left without its factor.
    """
    memory = decay * memory
    memory = memory + key * (beta * value - read(memory, key))
    return memory, memory


@_wrong_step(mistake, "error with the wrong sign", "delta_write", "gated_write", "delta_rule")
def step_away_from_the_value(memory, key, value, beta, decay):
    """Subtract value from prediction: the memory moves away from the value.

    Seen in: derivations that start from the gradient and do not turn its sign.
    """
    memory = decay * memory
    memory = memory - beta * key * (value - read(memory, key))
    return memory, memory


@_wrong_step(mistake, "no decay", "gated_write", "delta_rule")
def step_without_decay(memory, key, value, beta, decay):
    """Forget nothing: the plain delta rule.

    Seen in: ports that drop an argument which the first models of the family did not have.
    """
    memory = memory + beta * key * (value - read(memory, key))
    return memory, memory


@_wrong_step(mistake, "decay after the read", "gated_write", "delta_rule")
def step_decayed_after_the_read(memory, key, value, beta, decay):
    """Take the error against the memory as it was before it decayed.

    Seen in: fla #885, on the order of the two factors.
    """
    memory = decay * memory + beta * key * (value - read(memory, key))
    return memory, memory


@_wrong_step(mistake, "decay after the write", "gated_write", "delta_rule")
def step_decayed_after_the_write(memory, key, value, beta, decay):
    """Let what was just written decay with the rest.

    Seen in: `state = decay * delta_write(state, ...)`.
    """
    memory = decay * (memory + beta * key * (value - read(memory, key)))
    return memory, memory


@_wrong_step(mistake, "factors in the other order", "gated_write", "delta_rule")
def step_with_swapped_factors(memory, key, value, beta, decay):
    """Apply diag(α) (I − β k kᵀ): the same for one decay per step, not for one per channel.

    Seen in: fla #885.
    """
    memory = decay * (memory - beta * key * read(memory, key)) + beta * key * value
    return memory, memory


@_wrong_step(mistake, "read before the write", "delta_rule")
def step_read_early(memory, key, value, beta, decay):
    """Read the output from the memory of the step before.

    Seen in: loops that compute the output at the top; a query does not find its own key.
    """
    decayed = decay * memory
    return memory, decayed + beta * key * (value - read(decayed, key))


@_wrong_step(mistake, "read after the decay, before the write", "delta_rule")
def step_read_between(memory, key, value, beta, decay):
    """Read the output together with the error, from the memory that has only decayed.

    Seen in: kernels that fuse the two reads of a step.
    """
    memory = decay * memory
    return memory, memory + beta * key * (value - read(memory, key))


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


@mistake("delta_rule", "log-decay read as decay")
def delta_rule_by_the_logarithm(
    query, key, value, beta, *, log_decay=None, scale=1.0, state=None, form="recurrent", chunk=64
):
    """Multiply by the logarithm, a number below zero, where its exponential is meant.

    Seen in: calls of libraries whose argument `g` is a log-decay, from code that holds the decay.
    """

    def step(memory, key, value, beta, decay):
        memory = decay * memory
        memory = memory + beta * key * (value - read(memory, key))
        return memory, memory

    factors = exponents(log_decay, query, key, value, beta)
    factors = np.exp(factors) if log_decay is None else factors
    with np.errstate(invalid="ignore"):
        return step_by_step(query, key, value, beta, factors, step, scale=scale, state=state)


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


def _solved(key, value, beta, exponent, memory, *, system=pairs, read_system=None):
    """What each step of a chunk writes, from one triangular system or from two.

    With two, the erasing keys solve theirs before they decay, as in arXiv 2412.06464, section 3.3.
    """
    from_start = np.exp(np.cumsum(exponent, axis=-2))
    one = np.eye(key.shape[-2])
    gated = one + np.tril(system(beta * key, key, exponent), -1)
    if read_system is None:
        return np.linalg.solve(gated, beta * (value - (key * from_start) @ memory))
    plain = one + np.tril(read_system(beta * key, key, exponent), -1)
    erased = np.linalg.solve(plain, beta * key) * from_start
    return np.linalg.solve(gated, beta * value) - erased @ memory


def _wrong_chunk(name, *, scores=pairs, **systems):
    def register(function):
        def rule(
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
        ):
            def writes(*chunk):
                return _solved(*chunk, **systems)

            decay = exponents(log_decay, query, key, value, beta)
            options = {"chunk": chunk, "scale": scale, "state": state}
            with np.errstate(invalid="ignore", over="ignore"):
                return chunk_by_chunk(
                    query, key, value, beta, decay, scores=scores, writes=writes, **options
                )

        rule.__doc__, rule.__name__ = function.__doc__, function.__name__
        return mistake("delta_rule", name)(rule)

    return register


@_wrong_chunk("causal mask in place of the decay mask", scores=causal)
def delta_rule_under_the_causal_mask():
    """Read what a chunk has written as if it had not decayed.

    Seen in: the output formula as printed in arXiv 2412.06464 (GatedDeltaNet #13, #15).
    """


@_wrong_chunk("both triangular systems gated", system=pairs, read_system=pairs)
def delta_rule_both_gated():
    """Put the decay into the system of the erasing keys too, which decay afterwards: twice.

    Seen in: readings of arXiv 2412.06464, section 3.3 (GatedDeltaNet #13, #15).
    """


@_wrong_chunk("neither triangular system gated", system=causal, read_system=causal)
def delta_rule_neither_gated():
    """Leave the decay out of the system of the values too: DeltaNet's own form.

    Seen in: readings of arXiv 2412.06464, section 3.3 (GatedDeltaNet #13, #15).
    """


@_wrong_chunk("decay by differences of sums", scores=by_differences, system=by_differences)
def delta_rule_by_differences():
    """Take the decay from j to i as exp(Gᵢ − Gⱼ): NaN once a decay is zero.

    Seen in: chunked kernels of the gated families, right as long as no gate closes entirely.
    """


@_wrong_chunk("decay by two factors", scores=by_factors, system=by_factors)
def delta_rule_by_factors():
    """Multiply by e^Gᵢ and e^−Gⱼ: the second overflows where decay is strong.

    Seen in: arXiv 2312.06635, section 4.3, which divides chunks once more to avoid it.
    """


@_wrong_chunk("decay by two clamped factors", scores=by_clamped_factors, system=by_clamped_factors)
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
