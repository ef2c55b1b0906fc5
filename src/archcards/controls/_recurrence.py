"""Recurrences in steps and in chunks, for the controls, which say what is wrong in them."""

import numpy as np

from ..mechanisms._decay import log_decays, segment_sums

__all__: list[str] = []


def exponents(log_decay, query, key, value, beta=1.0):
    """Return the log-decays of each step, `(..., time, 1 or key)`; zeros unless given."""
    leads = [np.shape(array)[:-2] for array in (query, key, value)] + [np.shape(beta)[:-1]]
    time, width = np.shape(key)[-2:]
    decays = log_decays(log_decay, np.broadcast_shapes(*leads), time, width)
    return np.zeros((time, 1)) if decays is None else decays


def step_by_step(query, key, value, beta, factors, step, *, scale=1.0, state=None):
    """Run `step(memory, key, value, beta, decay)` → (memory to read, memory to keep)."""
    query, key, value, beta, memory = _arrays(query, key, value, beta, factors, state)
    output = np.empty((*memory.shape[:-2], key.shape[-2], value.shape[-1]))
    for t in range(key.shape[-2]):
        k, v, decay = key[..., t, :, None], value[..., t, None, :], factors[..., t, :, None]
        read, memory = step(memory, k, v, beta[..., t, None, None], decay)
        output[..., t, :] = scale * np.sum(query[..., t, :, None] * read, axis=-2)
    return output, memory


def read(memory, key):
    """What a key `(..., key, 1)` reads, `(..., 1, value)`."""
    return np.sum(key * memory, axis=-2, keepdims=True)


def pairs(left, right, exponent):
    """Scores Σ_c left[i, c] right[j, c] decay[j→i, c] for j ≤ i."""
    exponent = np.broadcast_to(exponent, (*exponent.shape[:-1], left.shape[-1]))
    decay = np.exp(segment_sums(exponent.mT))
    return np.einsum("...ic,...jc,...cij->...ij", left, right, decay)


def chunk_by_chunk(
    query,
    key,
    value,
    beta,
    exponent,
    *,
    chunk,
    scale=1.0,
    state=None,
    scores=pairs,
    writes=lambda key, value, beta, exponent, memory: value,
    memory_decays=True,
):
    """Run chunks; `scores` is what the output is read by, `writes` what each step writes."""
    query, key, value, beta, memory = _arrays(query, key, value, beta, exponent, state)
    output = np.empty((*memory.shape[:-2], key.shape[-2], value.shape[-1]))
    for start in range(0, key.shape[-2], chunk):
        part = np.s_[..., start : start + chunk, :]
        q, k, g = query[part], key[part], exponent[part]
        sums = np.cumsum(g, axis=-2)
        to_end = np.exp(segment_sums(g.mT)[..., -1, :]).mT
        written = writes(k, value[part], beta[..., None][part], g, memory)
        output[part] = scale * ((q * np.exp(sums)) @ memory + scores(q, k, g) @ written)
        if memory_decays:
            memory = np.exp(sums[..., -1, :, None]) * memory
        memory = memory + (k * to_end).mT @ written
    return output, memory


def by_differences(left, right, exponent):
    """Scores whose decay is exp(Gᵢ − Gⱼ), G the cumulative sums: ∞ − ∞ where a decay is zero."""
    sums = np.cumsum(np.broadcast_to(exponent, (*exponent.shape[:-1], left.shape[-1])), axis=-2)
    with np.errstate(invalid="ignore", over="ignore"):
        decay = np.exp(sums[..., :, None, :] - sums[..., None, :, :])
        return np.tril(np.einsum("...ic,...jc,...ijc->...ij", left, right, decay))


def by_factors(left, right, exponent):
    """Scores whose decay is e^Gᵢ · e^−Gⱼ: the second factor overflows where decay is strong."""
    sums = np.cumsum(exponent, axis=-2)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.tril((left * np.exp(sums)) @ (right * np.exp(-sums)).mT)


def by_clamped_factors(left, right, exponent):
    """Scores by two factors with exponents held where float32 can go: past it both stand still."""
    sums = np.clip(np.cumsum(exponent, axis=-2), -87.0, 87.0)
    return np.tril((left * np.exp(sums)) @ (right * np.exp(-sums)).mT)


def causal(left, right, exponent):
    """Scores under the causal mask, without any decay."""
    return np.tril(left @ right.mT)


def _arrays(query, key, value, beta, decay, state):
    query, key, value, beta = (np.asarray(x, dtype=float) for x in (query, key, value, beta))
    beta = np.broadcast_to(beta, (*beta.shape[:-1], key.shape[-2]))
    memory = np.zeros((key.shape[-1], value.shape[-1])) if state is None else np.asarray(state)
    leads = [x.shape[:-2] for x in (query, key, value, decay, memory, beta[..., None])]
    memory = np.broadcast_to(memory, (*np.broadcast_shapes(*leads), *memory.shape[-2:]))
    return query, key, value, beta, memory
