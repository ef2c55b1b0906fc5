"""Mechanisms in PyTorch, term by term: written to be differentiated, not to be fast.

What chooses (the top k experts, the place in a queue, a token that is accepted) is constant between
ties, and its gradient is that of what is chosen; cases at ties are left out where it is differentiated.
"""

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

__all__ = ["FUNCTIONS"]


def attention(query, key, value, mask=None, scale=None, bias=None, sink=None, softcap=None, empty=None):
    groups = query.shape[-3] // key.shape[-3]
    key, value = (x.repeat_interleave(groups, dim=-3) for x in (key, value))
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    scores = scores if softcap is None else softcap * torch.tanh(scores / softcap)
    scores = scores if bias is None else scores + bias
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    if sink is not None:
        column = sink[:, None, None].expand(*scores.shape[:-1], 1)
        return torch.softmax(torch.cat([scores, column], -1), -1)[..., :-1] @ value
    return torch.softmax(scores, -1) @ value


def delta_rule(query, key, value, beta, log_decay=None, scale=1.0, state=None):
    S = 0 * key[:, :, 0, :, None] * value[:, :, 0, None] if state is None else state
    output = []
    for t in range(query.shape[2]):
        if log_decay is not None:
            decay = torch.exp(log_decay[:, :, t])
            S = S * (decay[..., None] if decay.ndim == 3 else decay[..., None, None])
        error = value[:, :, t] - torch.einsum("bhk,bhkv->bhv", key[:, :, t], S)
        S = S + beta[:, :, t, None, None] * key[:, :, t, :, None] * error[:, :, None]
        output.append(scale * torch.einsum("bhk,bhkv->bhv", query[:, :, t], S))
    return torch.stack(output, 2), S


def selective_scan(u, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False, state=None,
                   discretisation="exponential_euler"):  # fmt: skip
    dt = dt if dt_bias is None else dt + dt_bias
    dt = F.softplus(dt) if dt_softplus else dt
    h, output = torch.zeros(()) if state is None else state, []
    for t in range(u.shape[1]):
        step = dt[:, t, :, None]
        rise = step if discretisation == "exponential_euler" else torch.expm1(step * A) / A
        h = torch.exp(step * A) * h + rise * B[:, t, None] * u[:, t, :, None]
        output.append(torch.einsum("bcn,bn->bc", h, C[:, t]))
    y = torch.stack(output, 1)
    y = y if D is None else y + D * u
    return (y if z is None else y * F.silu(z)), h


def state_space_dual(x, dt, A, B, C, D=None, dt_bias=None, dt_softplus=True, dt_limit=(0.0, math.inf),
                     state=None):  # fmt: skip
    B, C = (g.repeat_interleave(x.shape[1] // g.shape[1], dim=1) for g in (B, C))
    dt = dt if dt_bias is None else dt + dt_bias[:, None]
    dt = torch.clamp(F.softplus(dt) if dt_softplus else dt, *dt_limit)
    h, output = torch.zeros(()) if state is None else state, []
    for t in range(x.shape[2]):
        step = dt[:, :, t, None, None]
        write = B[:, :, t, :, None] * x[:, :, t, None]
        h = torch.exp(step * A[:, None, None]) * h + step * write
        output.append(torch.einsum("bhnp,bhn->bhp", h, C[:, :, t]))
    y = torch.stack(output, 2)
    return (y if D is None else y + D[:, None, None] * x), h


def rms_norm(x, weight=None, eps=1e-6):
    y = x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)
    return y if weight is None else y * weight


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    y = centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def causal_convolution(x, weight, bias=None):
    width = weight.shape[1]
    padded = F.pad(x, (0, 0, width - 1, 0))
    y = sum(padded[:, i : i + x.shape[1]] * weight[:, i] for i in range(width))
    return y if bias is None else y + bias


def softmax(scores, axis=-1):
    return torch.softmax(scores, axis)


def attention_weights(query, key, mask=None, scale=None, bias=None, sink=None, softcap=None, empty=None):
    """What attention gives for values that are the rows of the identity."""
    value = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-1], -1)
    return attention(query, key, value, mask, scale, bias, sink, softcap)


def blockwise_attention(query, key, value, mask=None, block=1, scale=None):
    scores = query @ key.transpose(-1, -2) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1)


def latent_read(query, rope_query, latent, rope_key, up_key, up_value, scale, mask=None):
    scores = torch.einsum("hqn,hnr,kr->hqk", query, up_key, latent)
    scores = scale * (scores + torch.einsum("hqn,kn->hqk", rope_query, rope_key))
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return torch.einsum("hqk,hvr,kr->hqv", torch.softmax(scores, -1), up_value, latent)


def linear_attention(query, key, value, log_decay=None, normalise=False, scale=1.0, state=None):
    decays = 0 * key if log_decay is None else log_decay
    decays = torch.exp(decays if decays.ndim == 4 else decays[..., None])
    S = 0 * key[:, :, 0, :, None] * value[:, :, 0, None] if state is None else state
    S, total = S if isinstance(S, tuple) else (S, 0 * key[:, :, 0])
    output = []
    for t in range(query.shape[2]):
        S = decays[:, :, t, :, None] * S + key[:, :, t, :, None] * value[:, :, t, None]
        total = decays[:, :, t] * total + key[:, :, t]
        read = scale * torch.einsum("bhk,bhkv->bhv", query[:, :, t], S)
        mass = scale * (query[:, :, t] * total).sum(-1, keepdim=True)
        output.append(read / mass if normalise else read)
    return (torch.stack(output, 2), S, total) if normalise else (torch.stack(output, 2), S)


def gated_write(state, key, value, beta, decay):
    S = (decay[..., None] if decay.ndim == 2 else decay[:, None, None]) * state
    error = value - torch.einsum("bk,bkv->bv", key, S)
    return S + beta[:, None, None] * key[:, :, None] * error[:, None]


def delta_write(state, key, value, beta):
    return gated_write(state, key, value, beta, torch.ones_like(beta))


def unit_key(x, eps=1e-6):
    return x / torch.sqrt((x * x).sum(-1, keepdim=True) + eps)


def decay_gate(x, log_rate, bias):
    return -torch.exp(torch.as_tensor(log_rate)) * torch.logaddexp(x + bias, torch.zeros(()))


def elu_plus_one(x):
    return torch.where(x > 0, x + 1, torch.exp(torch.clamp(x, max=0)))


def gate_output(output, gate):
    return output * torch.sigmoid(gate)


def gated_norm(y, z, weight=None, groups=1, eps=1e-5, order="gate_first"):
    gate = z * torch.sigmoid(z)
    y = y * gate if order == "gate_first" else y
    normed = rms_norm(y.unflatten(-1, (groups, -1)), eps=eps).flatten(-2)
    normed = normed if weight is None else normed * weight
    return normed if order == "gate_first" else normed * gate


def qk_norm(query, key, query_weight=None, key_weight=None, eps=1e-6):
    return rms_norm(query, query_weight, eps), rms_norm(key, key_weight, eps)


def rotate(x, positions, frequencies, layout="half"):
    angle = torch.as_tensor(positions)[..., None] * torch.as_tensor(frequencies.inverse)
    cos, sin = (f(angle).to(x.dtype) * frequencies.attention_factor for f in (torch.cos, torch.sin))
    width, interleaved = 2 * angle.shape[-1], layout == "interleaved"
    part = x[..., :width]
    first, second = part.unflatten(-1, (-1, 2)).unbind(-1) if interleaved else part.chunk(2, -1)
    turned = [first * cos - second * sin, first * sin + second * cos]
    turned = torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)
    return torch.cat([turned, x[..., width:]], -1)


# Caches and online softmax


def cached_attention(query, key, value, chunks, window=None):
    """Each query reads back to the first key, or as far as a window: the chunks change nothing."""
    return attention(query, key, value, _behind(query.shape[-2], key.shape[-2], window))


def _behind(queries, keys, window=None):
    """Which keys stand at a query's own place or before it, of a window the last ones."""
    back = torch.arange(keys - queries, keys)[:, None] - torch.arange(keys)
    return (back >= 0) & (back < (keys if window is None else window))


def KVCache(key, value, chunks, window=None):
    """What each chunk reads: itself and, of a window, all but one before it."""
    held, end = [], 0
    for length in chunks:
        start, end = 0 if window is None else max(0, end - window + 1), end + length
        kept = end if window is None else min(end, window)
        scalars = kept * (key[..., 0, :].numel() + value[..., 0, :].numel())
        held += [key[..., start:end, :], value[..., start:end, :], torch.tensor(scalars)]
    return tuple(held)


def attend(scores, values, mask=None):
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return torch.softmax(scores, -1) @ values, torch.logsumexp(scores, -1)


def merge(state, other):
    top = torch.maximum(state.maximum, other.maximum).detach()  # any number does: it cancels
    here, there = torch.exp(state.maximum - top), torch.exp(other.maximum - top)
    mass = here * state.mass + there * other.mass
    weighted = here[..., None] * state.weighted + there[..., None] * other.weighted
    return weighted / mass[..., None], top + torch.log(mass)


# Layers: their weights are records


def _tensors(record, like):
    """The fields of a record, arrays as tensors of the dtype of another tensor."""
    fields = record._asdict() if hasattr(record, "_asdict") else vars(record)
    arrays = {n: x for n, x in fields.items() if torch.is_tensor(x) or isinstance(x, np.ndarray)}
    tensors = {n: torch.as_tensor(x).to(like.dtype) for n, x in arrays.items()}
    return SimpleNamespace(**{**fields, **tensors})


def latent_attention(x, weights, frequencies=None, scale=None, cache=None):
    w, nope, rope = _tensors(weights, x), weights.up_key.shape[1], weights.rope_key.shape[0]
    if frequencies is None:
        inverse = 10_000.0 ** (-torch.arange(0, rope, 2, dtype=torch.float64) / rope)
        frequencies = SimpleNamespace(inverse=inverse, attention_factor=1.0)
    held = None if cache is None else _tensors(cache, x)
    past = 0 if cache is None else held.latent.shape[0]
    positions = past + torch.arange(x.shape[0])
    source, up = x, w.query
    if w.query is None:
        source, up = rms_norm(x @ w.query_down.T, w.query_norm, w.norm_epsilon), w.query_up
    query = torch.einsum("td,hod->hto", source, up)
    rope_query = rotate(query[..., nope:], positions, frequencies, "interleaved")
    latent = rms_norm(x @ w.kv_down.T, w.kv_norm, w.norm_epsilon)
    rope_key = rotate(x @ w.rope_key.T, positions, frequencies, "interleaved")
    if held is not None:
        latent = torch.cat([held.latent, latent])
        rope_key = torch.cat([held.rope_key, rope_key])
    scale = (nope + rope) ** -0.5 if scale is None else scale
    mask = _behind(len(x), len(latent))
    read = latent_read(query[..., :nope], rope_query, latent, rope_key, w.up_key, w.up_value, scale, mask)
    return torch.einsum("htv,hov->to", read, w.output), latent, rope_key


def mamba_block(x, weights, cache=None):
    w = _tensors(weights, x)
    (rank, _), N = w.dt.shape, w.A_log.shape[1]
    u, z = (x @ w.input).chunk(2, -1)
    u, inputs, state = _convolved(u, w, cache)
    low_rank, B, C = (u @ w.selection).split([rank, N, N], -1)
    A = -torch.exp(w.A_log)
    y, state = selective_scan(u, low_rank @ w.dt, A, B, C, w.D, z, w.dt_bias, True, state)
    return y @ w.output, inputs, state


def mamba2_block(x, weights, cache=None, dt_limit=(0.0, math.inf), eps=1e-5):
    w = _tensors(weights, x)
    inner, heads, channels = len(w.norm), len(w.A_log), len(w.convolution)
    z, u, dt = (x @ w.input).split([inner, channels, heads], -1)
    u, inputs, state = _convolved(u, w, cache)
    u, B, C = u.split([inner, (channels - inner) // 2, (channels - inner) // 2], -1)
    u, B, C = (
        part.unflatten(-1, (count, -1)).transpose(1, 2)
        for part, count in ((u, heads), (B, w.groups), (C, w.groups))
    )
    A = -torch.exp(w.A_log)
    y, state = state_space_dual(u, dt.transpose(1, 2), A, B, C, w.D, w.dt_bias, True, dt_limit, state)
    y = gated_norm(y.transpose(1, 2).flatten(-2), z, w.norm, w.groups, eps)
    return y @ w.output, inputs, state


def _convolved(inputs, weights, cache):
    """The inputs after a convolution that goes on from the past; the past to keep; the memory, if any."""
    past, state = weights.convolution.shape[1] - 1, None
    before = torch.zeros(len(inputs), past, inputs.shape[-1], dtype=inputs.dtype)
    if cache is not None:
        cache = _tensors(cache, inputs)
        before, state = cache.inputs, cache.state
    extended = torch.cat([before, inputs], 1)
    convolved = causal_convolution(extended, weights.convolution, weights.convolution_bias)
    return F.silu(convolved[:, past:]), extended[:, inputs.shape[1] :], state


def residual_step(x, sublayer, norm, order="pre"):
    return x + sublayer(norm(x)) if order == "pre" else norm(x + sublayer(x))


def sinkhorn(logits, iterations=20):
    matrix = torch.exp(logits)
    for _ in range(iterations):
        matrix = matrix / matrix.sum(-2, keepdim=True)
        matrix = matrix / matrix.sum(-1, keepdim=True)
    return matrix


def hyper_connection(streams, sublayer, mixing, read, write):
    added = sublayer((read[:, None] * streams).sum(-2))
    return mixing @ streams + write[:, None] * added[..., None, :]


def hyper_coefficients(streams, weight, bias, scale, iterations=20, eps=1e-6):
    count = streams.shape[-2]
    sizes = [count, count, count**2]
    logits = (rms_norm(streams.flatten(-2), eps=eps) @ weight).split(sizes, -1)
    parts = zip(scale, logits, bias.split(sizes), strict=True)
    read, write, mixing = (factor * part + shift for factor, part, shift in parts)
    mixing = sinkhorn(mixing.unflatten(-1, (count, count)), iterations)
    return mixing, torch.sigmoid(read), 2 * torch.sigmoid(write)


# Experts


def _top(scores, k):
    """The best k, ties to the lower index."""
    return torch.argsort(scores, dim=-1, descending=True, stable=True)[..., :k]


def _in_best_groups(scores, group_scores, kept):
    """The scores in the groups that are kept, and minus infinity elsewhere."""
    groups = group_scores.shape[-1]
    allowed = (_top(group_scores, kept)[..., None] == torch.arange(groups)).any(-2)
    return scores.masked_fill(~allowed.repeat_interleave(scores.shape[-1] // groups, -1), -torch.inf)


def route_top_k(logits, k, order="softmax_first", renormalise=True):
    """The gradient reaches the logits through the weights of the experts that are chosen."""
    experts = _top(logits, k)
    if order == "top_k_first":
        return experts, torch.softmax(logits.gather(-1, experts), -1)
    weights = torch.softmax(logits, -1).gather(-1, experts)
    return experts, weights / weights.sum(-1, keepdim=True) if renormalise else weights


def route_switch(logits, capacity):
    """Places in an expert's queue are constant; nothing flows back from a token that is dropped."""
    experts = _top(logits, 1)
    place = torch.cumsum(experts == torch.arange(logits.shape[-1]), -2).gather(-1, experts)
    weights = torch.softmax(logits, -1).gather(-1, experts)
    return experts, torch.where(place <= capacity, weights, 0.0)


def route_sigmoid(logits, k, bias=None, groups=1, kept_groups=1, renormalise=True, scale=1.0):
    """The bias chooses, and nothing flows back to it."""
    scores = torch.sigmoid(logits)
    biased = (scores if bias is None else scores + bias).detach()
    grouped = biased.unflatten(-1, (groups, -1))
    best_two = grouped.topk(min(2, grouped.shape[-1]), -1).values.sum(-1)
    experts = _top(_in_best_groups(biased, best_two, kept_groups), k)
    weights = scores.gather(-1, experts)
    return experts, scale * (weights / weights.sum(-1, keepdim=True) if renormalise else weights)


def route_group_max(logits, k, groups, kept_groups, scale=1.0):
    """The gradient of what is chosen: its probability among all experts, those left out too."""
    best = logits.unflatten(-1, (groups, -1)).amax(-1)
    experts = _top(_in_best_groups(logits, best, kept_groups), k)
    return experts, scale * torch.softmax(logits, -1).gather(-1, experts)


def mixture(x, experts, routing, shared=()):
    chosen, weights = torch.as_tensor(routing.experts), torch.as_tensor(routing.weights).to(x.dtype)
    answers = torch.stack([expert(x) for expert in experts], -2)
    picked = answers.gather(-2, chosen[..., None].expand(*chosen.shape, x.shape[-1]))
    return (weights[..., None] * picked).sum(-2) + sum(expert(x) for expert in shared)


def load_balance_loss(logits, k):
    """How many tokens an expert is assigned is constant: the gradient is that of the probabilities."""
    count = logits.shape[-1]
    assigned = (_top(logits, k)[..., None] == torch.arange(count)).to(logits.dtype).mean((-3, -2))
    return count * (assigned * torch.softmax(logits, -1).mean(-2)).sum(-1)


def router_z_loss(logits):
    return (torch.logsumexp(logits, -1) ** 2).mean()


# Sparse attention: what is chosen is a mask, and has no gradient; by which scores has one


def index_scores(query, key, weight, scale=1.0):
    products = F.relu(scale * query @ key.transpose(-1, -2))
    return (weight.transpose(-1, -2)[..., None] * products).sum(-3)


def block_scores(query, key, block):
    means = torch.stack([part.mean(-2) for part in key.split(block, -2)], -2)
    return query @ means.transpose(-1, -2)


def selection_scores(weights, keys, block, stride, selected):
    scores = [torch.zeros_like(weights[..., 0]) for _ in range(0, keys, selected)]
    for i, weight in enumerate(weights.unbind(-1)):
        for start in range(i * stride, i * stride + block, stride):
            scores[start // selected] = scores[start // selected] + weight
    return torch.stack(scores, -1)


def compress_blocks(x, logits=None, block=1, stride=None, overlap=None, overlap_logits=None):
    logits, compressed = torch.zeros_like(x) if logits is None else logits, []
    for start in range(0, x.shape[-2] - block + 1, stride or block):
        values, weights = (part[..., start : start + block, :] for part in (x, logits))
        if overlap is not None and start > 0:
            before = (part[..., start - block : start, :] for part in (overlap, overlap_logits))
            values, weights = (torch.cat(pair, -2) for pair in zip(before, (values, weights), strict=True))
        compressed.append((torch.softmax(weights, -2) * values).sum(-2))
    return torch.stack(compressed, -2)


def compressed_attention(query, key, value, block_key, block_value, block, window, scale=None, sink=None):
    """One softmax over the last tokens and the blocks before."""
    queries, keys = query.shape[-2], key.shape[-2]
    place, ends = torch.arange(keys - queries, keys), block * torch.arange(1, len(block_key) + 1)
    mask = torch.cat([_behind(queries, keys, window), ends <= place[:, None] + 1], -1)
    sink = None if sink is None else torch.as_tensor(sink).to(query.dtype)[None]
    pair = (torch.cat(both)[None] for both in ((key, block_key), (value, block_value)))
    return attention(query[None], *pair, mask, scale, sink=sink)[0]


# Patches


def patchify(pixels, patch):
    return F.unfold(pixels, patch, stride=patch).transpose(-1, -2)


def embed_patches(pixels, kernel, bias=None, class_token=None, positions=None):
    tokens = F.conv2d(pixels[None], kernel, bias, stride=kernel.shape[-2:])[0].flatten(1).T
    tokens = tokens if class_token is None else torch.cat([class_token[None], tokens])
    return tokens if positions is None else tokens + positions


def interpolate_positions(positions, grid, class_token=False):
    """What each entry of the old table gives to each of the new, in float64: rounded places are others."""
    first, table = positions[: int(class_token)], positions[int(class_token) :]
    side, size = math.isqrt(len(table)), (grid, grid) if isinstance(grid, int) else grid
    alone = torch.eye(len(table), dtype=torch.float64).unflatten(-1, (side, side))
    taps = F.interpolate(alone[None], size, mode="bicubic")[0].flatten(1).T
    return torch.cat([first, taps.to(table.dtype) @ table])


# Speculative decoding: distributions, off which the functions are not defined


def residual(target, draft):
    surplus = F.relu(target - draft)
    return surplus / surplus.sum(-1, keepdim=True)


def output_distribution(target, draft):
    accepted, surplus = torch.minimum(target, draft), F.relu(target - draft)
    mass = surplus.sum(-1, keepdim=True)
    rejected = 1 - accepted.sum(-1, keepdim=True)
    return accepted + rejected * surplus / torch.where(mass > 0, mass, 1.0)


def verify(target, draft, tokens, uniforms):
    """Which token is the first to be rejected is constant; the gradient is that of what is left there."""
    for step, token in enumerate(tokens):
        if uniforms[step] * draft[step, token] > target[step, token] or target[step, token] == 0:
            return torch.tensor(step), residual(target[step], draft[step])
    return torch.tensor(len(tokens)), target[-1]


def expected_tokens(acceptance, lookahead):
    return sum(acceptance**kept for kept in range(lookahead + 1))


# Scaling laws


def power_law(points):
    return fit_power_law(*points.T)


def fit_power_law(compute, loss):
    """The line through logarithms, by least squares; through two points it is exact."""
    x, y = torch.log(compute), torch.log(loss)
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return torch.exp(y.mean() - slope * x.mean()), -slope


def parametric_loss(N, D, law):
    N, D = map(torch.as_tensor, (N, D))
    return law.E + law.A / N**law.alpha + law.B / D**law.beta


def compute_optimal(C, law):
    """Where the loss of N and C / 6N is flat in N: α A N^−α = β B D^−β."""
    C = torch.as_tensor(C)
    A, B, alpha, beta = (torch.as_tensor(x) for x in (law.A, law.B, law.alpha, law.beta))
    log_N = (torch.log(alpha * A / (beta * B)) + beta * torch.log(C / 6)) / (alpha + beta)
    return torch.exp(log_N), torch.exp(torch.log(C / 6) - log_N)


FUNCTIONS = {
    function.__name__: function
    for function in (
        KVCache, attend, attention, attention_weights, block_scores, blockwise_attention,
        cached_attention, causal_convolution, compress_blocks, compressed_attention, compute_optimal,
        decay_gate, delta_rule, delta_write, elu_plus_one, embed_patches, expected_tokens,
        fit_power_law, gate_output, gated_norm, gated_write, hyper_coefficients, hyper_connection,
        index_scores, interpolate_positions, latent_attention, latent_read, layer_norm,
        linear_attention, load_balance_loss, mamba2_block, mamba_block, merge, mixture,
        output_distribution, parametric_loss, patchify, power_law, qk_norm, residual, residual_step,
        rms_norm, rotate, route_group_max, route_sigmoid, route_switch, route_top_k, router_z_loss,
        selection_scores, selective_scan, sinkhorn, softmax, state_space_dual, unit_key, verify,
    )
} | {"grouped_attention": attention}  # fmt: skip
"""The mechanisms that have published gradients."""
