"""`conform` with real tensors: every dtype, gradients, and code as readers have it.

Nothing here is recorded: the other files compare the mechanisms, these tests the comparison.
"""

import inspect

import in_torch
import numpy as np
import oracle_attention
import oracle_layers
import oracle_position
import oracle_recurrence
import oracle_sparse
import pytest
import torch
import torch.nn.functional as F
from float64 import float64
from in_torch import FUNCTIONS
from packages import naive
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb, repeat_kv

from archcards import cases
from archcards.cases import EPSILON
from archcards.cli import main
from archcards.conform import conform

TORCH = {"arrays": "torch"}


def but_empty_rows(function):
    """Says of rows without a readable key that they are not implemented."""

    def wrapped(*arguments, mask=None, **options):
        if mask is not None and not mask.any(-1).all():
            raise NotImplementedError("a row reads nothing")
        return function(*arguments, mask=mask, **options)

    wrapped.__signature__ = inspect.signature(function)
    return wrapped if "mask" in wrapped.__signature__.parameters else function


# Every dtype


# Objects, which conform calls with NumPy's arrays; numbers, which it gives as they are.
WITHOUT_TENSORS = {"KVCache", "merge", "compute_optimal", "expected_tokens"}


@pytest.mark.parametrize("dtype", ["float64", *EPSILON])
@pytest.mark.parametrize("mechanism", [name for name in FUNCTIONS if name not in WITHOUT_TENSORS])
def test_term_by_term_is_within_the_bounds_of_each_dtype(mechanism, dtype):
    """Every operation rounds to the dtype, forwards and backwards."""
    seen = set()

    def watched(**given):
        seen.update(x.dtype for x in given.values() if torch.is_tensor(x) and x.is_floating_point())
        return FUNCTIONS[mechanism](**given)

    watched.__signature__ = inspect.signature(FUNCTIONS[mechanism])
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, dtype))
    try:
        report = conform(mechanism, but_empty_rows(watched), dtype=dtype, **TORCH)
    finally:
        torch.set_default_dtype(before)
    assert report, str(report)
    assert seen == {getattr(torch, dtype)}
    published = cases.of(mechanism)
    kept = [case for case in published.cases if _by_tensors(published, case)]
    assert len({slope.case for slope in report.gradients}) == len(kept) > 0


def _by_tensors(published, case):
    """Whether there are gradients with respect to what a PyTorch function is given as tensors."""
    found = cases.gradients(published, case)
    names = {name.partition(".")[0] for by_argument in found.values() for name in by_argument}
    return any(isinstance(case.arguments[name], np.ndarray) or name == "state" for name in names)


@pytest.mark.parametrize("dtype", ["float64", *EPSILON])
def test_the_command_s_child_has_tensors_and_gradients(dtype, capfd):
    function = f"{in_torch.__file__}:rms_norm"
    status = main(["conform", "rms_norm", function, "--arrays", "torch", "--dtype", dtype])
    out, err = capfd.readouterr()
    assert status == 0, out + err
    assert out.startswith(f"rms_norm as rms_norm, {dtype}\nmatches") and "gradients that are right" in out


# Gradients


def gated(query, key, value, beta, log_decay=None, state=None):
    """A delta rule that computes its decay without gradients: the gate never learns."""
    fixed = None if log_decay is None else log_decay.detach()
    return FUNCTIONS["delta_rule"](query, key, value, beta, fixed, state=state)


@pytest.mark.parametrize("dtype", ["float64", *EPSILON])
def test_a_gradient_that_is_stopped_is_named(dtype):
    report = conform("delta_rule", gated, dtype=dtype, **TORCH)
    assert all(outcome.equal for outcome in report.outcomes) and report.status == 1
    assert {slope.argument for slope in report.gradients if not slope.equal} == {"log_decay"}
    assert "in every case it is zero: nothing flows back to it" in str(report)


def detached(logits, k, order="softmax_first", renormalise=True):
    """A router whose weights do not learn."""
    experts, weights = FUNCTIONS["route_top_k"](logits, k, order, renormalise)
    return experts, weights.detach() + 0 * logits.sum()


def rescaled(logits, k, order="softmax_first", renormalise=True):
    """A router in which nothing flows back through what the weights are divided by."""
    experts, weights = FUNCTIONS["route_top_k"](logits, k, order, False)
    return experts, weights / weights.sum(-1, keepdim=True).detach() if renormalise else weights


def through_the_bias(logits, k, bias=None, groups=1, kept_groups=1, renormalise=True, scale=1.0):
    """A router whose weights are right, and whose gradients are of the scores with the bias."""
    given = logits, k, bias, groups, kept_groups, renormalise, scale
    experts, weights = FUNCTIONS["route_sigmoid"](*given)
    return experts, weights if bias is None else weights + (bias - bias.detach())[experts]


def held_fixed(streams, sublayer, mixing, read, write):
    """Hyper-connections whose mixing does not learn."""
    return FUNCTIONS["hyper_connection"](streams, sublayer, mixing.detach(), read, write)


def blocks_held_fixed(query, key, value, block_key, block_value, block, window, scale=None, sink=None):
    """Blocks that are read, and not learnt from."""
    fixed = block_key.detach(), block_value.detach()
    return FUNCTIONS["compressed_attention"](query, key, value, *fixed, block, window, scale, sink)


def index_without_relu(query, key, weight, scale=1.0):
    """An indexer whose rectifier lets gradients through everywhere."""
    products = scale * query @ key.transpose(-1, -2)
    products = products + (F.relu(products) - products).detach()
    return (weight.transpose(-1, -2)[..., None] * products).sum(-3)


def counts_that_learn(logits, k):
    """A balance loss through the probabilities that are counted too."""
    chosen = torch.zeros_like(logits).scatter(-1, logits.topk(k, -1).indices, 1.0)
    soft = chosen + torch.softmax(logits, -1) - torch.softmax(logits, -1).detach()
    count = logits.shape[-1]
    return count * ((soft / k).mean(-2) * torch.softmax(logits, -1).mean(-2)).sum(-1)


NOTHING = "in every case it is zero: nothing flows back to it"
BROKEN = [
    ("route_top_k", detached, {"logits"}, NOTHING),
    ("route_top_k", rescaled, {"logits"}, "the gradient of logits[0, "),
    ("route_sigmoid", through_the_bias, {"bias"}, "in every case it is not zero, where nothing flows back to it"),
    ("hyper_connection", held_fixed, {"mixing"}, NOTHING),
    ("compressed_attention", blocks_held_fixed, {"block_key", "block_value"}, NOTHING),
    ("index_scores", index_without_relu, {"query", "key"}, "the gradient of key[0, "),
    ("load_balance_loss", counts_that_learn, {"logits"}, "the gradient of logits[0, "),
]


@pytest.mark.parametrize("mechanism, function, arguments, said", BROKEN, ids=[f.__name__ for _, f, *_ in BROKEN])
def test_right_results_with_wrong_gradients(mechanism, function, arguments, said):
    report = conform(mechanism, function, **TORCH)
    assert all(outcome.equal for outcome in report.outcomes) and report.status == 1
    assert {slope.argument for slope in report.gradients if not slope.equal} == arguments
    assert said in str(report)


class _WithoutBeta(torch.autograd.Function):
    """A write whose backward was derived by hand, and lost a factor."""

    @staticmethod
    def forward(context, state, key, value, beta):
        context.save_for_backward(state, key, value, beta)
        return FUNCTIONS["delta_write"](state, key, value, beta)

    @staticmethod
    def backward(context, g):
        state, key, value, beta = context.saved_tensors
        error = value - torch.einsum("bk,bkv->bv", key, state)
        along = torch.einsum("bk,bkv->bv", key, g)
        b = beta[:, None]
        return (
            g - b[..., None] * key[:, :, None] * along[:, None],
            b * (torch.einsum("bkv,bv->bk", g, error) - torch.einsum("bkv,bv->bk", state, along)),
            along,
            (error * along).sum(-1),
        )


def test_a_backward_that_loses_a_factor_is_named():
    def write(state, key, value, beta):
        return _WithoutBeta.apply(state, key, value, beta)

    report = conform("delta_write", write, **TORCH)
    assert {slope.argument for slope in report.gradients if not slope.equal} == {"value"}
    assert "in every case it is the published one without the factor beta" in str(report)


def test_a_function_without_gradients_is_compared_without_them():
    @torch.no_grad()
    def write(state, key, value, beta):
        return FUNCTIONS["delta_write"](state, key, value, beta)

    report = conform("delta_write", write, **TORCH)
    assert report and "gradients not compared: no result depends on" in str(report)


def test_gradients_may_be_chosen():
    report = conform("delta_rule", gated, gradients="query key", **TORCH)
    assert report and {slope.argument for slope in report.gradients} == {"query", "key"}


def test_what_pytorch_cannot_differentiate_by_is_told():
    """A router's weights stand in a record: that they are not compared has to be on the screen."""

    def mixed(x, experts, routing, shared=()):
        given = sum(function(x) for function in shared) + 0 * x
        for place, function in enumerate(experts):
            weight = (routing.weights * (routing.experts == place)).sum(-1, keepdims=True)
            given = given + torch.as_tensor(weight) * function(x)
        return given

    report = conform("mixture", mixed, **TORCH)
    assert report and {slope.argument for slope in report.gradients} == {"x"}
    assert "gradients not compared: PyTorch is given no tensors in routing" in str(report)
    # Who asks for those of x alone has been given what was asked for.
    assert "not compared" not in str(conform("mixture", mixed, gradients="x", **TORCH))
    assert "not compared" not in str(conform("gated_norm", FUNCTIONS["gated_norm"], **TORCH))
    numbers = conform("compute_optimal", cases.of("compute_optimal").reference, **TORCH)
    assert "none are published, or it is no tensor" in str(numbers)


def test_gradients_reach_through_layouts_and_calls_for_each():
    def single(query, key, value, mask=None):
        """One head, and time last."""
        query, key, value = query.T, key.T, value.T
        return F.scaled_dot_product_attention(query[None], key[None], value[None], mask)[0].T

    layout = {name: "feature time" for name in ("query", "key", "value", "output")}
    report = conform("attention", single, each="batch head", axes=layout, **TORCH)
    assert report and {slope.argument for slope in report.gradients} == {"query", "key", "value"}


def test_inputs_may_be_changed_in_place():
    def careless(x, weight=None, eps=1e-6):
        size = torch.sqrt((x**2).mean(-1, keepdim=True) + eps)
        x /= size
        return x if weight is None else x * weight

    report = conform("rms_norm", careless, **TORCH)
    assert all(outcome.equal for outcome in report.outcomes)


REAL = [
    (oracle_recurrence, name, mechanism, options)
    for name, mechanism, options in [
        ("test_delta_recurrent", "delta_rule", {"follows": "query scaled by 1/sqrt(d)"}),
        ("test_delta_chunked", "delta_rule", {"follows": "query scaled by 1/sqrt(d)"}),
        ("test_kimi_recurrent", "delta_rule", {"axes": "batch time head"}),
        ("test_kimi_chunked", "delta_rule", {"axes": "batch time head"}),
        ("test_simple_chunked", "linear_attention", {"axes": "batch time head", "where": {"normalise": False}}),
        ("test_padded_convolution", "causal_convolution", {"axes": "batch channel time"}),
    ]
] + [
    (oracle_attention, "test_sdpa", "attention", {}),
    (oracle_attention, "test_gpt_oss", "grouped_attention", {}),
    (oracle_position, "test_gptj", "rotate", {"where": {"layout": "interleaved"}}),
    (oracle_layers, "test_rms_norm", "rms_norm", {}),
    (oracle_layers, "test_mixtral", "route_top_k", {"where": {"renormalise": True}}),
    (oracle_layers, "test_gpt_oss", "route_top_k", {"where": {"renormalise": True}}),
    (oracle_layers, "test_qwen", "route_top_k", {"where": {"order": "softmax_first"}}),
    (oracle_layers, "test_deepseek_v2", "route_group_max", {}),
    (oracle_layers, "test_deepseek_v3", "route_sigmoid", {"gradients": "logits"}),
    (oracle_layers, "test_switch", "route_switch", {}),
    (oracle_layers, "test_z_loss", "router_z_loss", {}),
    (oracle_layers, "test_mixtral_experts", "mixture", {}),
    (oracle_layers, "test_hyper_connection", "hyper_connection", {}),
    (oracle_sparse, "test_index_scores", "index_scores", {}),
    (oracle_sparse, "test_block_scores", "block_scores", {}),
    (oracle_sparse, "test_selection_scores", "selection_scores", {}),
    (oracle_sparse, "test_compress_blocks", "compress_blocks", {}),
    (oracle_sparse, "test_compressed_attention", "compressed_attention", {}),
    (oracle_attention, "test_llama_with_its_cache", "cached_attention", {}),
    (oracle_position, "test_deepseek_v3", "latent_attention", {}),
    (oracle_position, "test_deepseek_v2", "latent_attention", {}),
]  # fmt: skip


@pytest.mark.parametrize("module, name, mechanism, options", REAL, ids=[name for _, name, *_ in REAL])
def test_others_have_the_published_gradients(module, name, mechanism, options):
    with float64(gradients=True):
        report = conform(mechanism, getattr(module, name).implementation, **TORCH, **options)
    assert report and report.gradients, str(report)


# Code as it is found: recognised by its conventions


def recognised(mechanism, function, **options):
    with float64():
        return conform(mechanism, function, **TORCH, **options)


def test_sdpa_aligns_its_own_causal_mask_to_the_top_left():
    def causal(queries, keys=None):
        keys = keys or queries
        scores = torch.zeros(1, queries, 1), torch.zeros(1, keys, 1), torch.eye(keys)[None]
        return F.scaled_dot_product_attention(*scores, is_causal=True)[0] > 0

    assert recognised("causal", causal).diagnosis == (("aligned to the top left",),)


def test_kv_heads_repeated_in_runs_and_tiled():
    def attention(query, key, value, mask=None, *, repeat):
        groups = query.shape[1] // key.shape[1]
        return F.scaled_dot_product_attention(query, repeat(key, groups), repeat(value, groups), mask)

    assert recognised("grouped_attention", attention, extra={"repeat": repeat_kv})
    tiled = {"repeat": lambda x, n: x.repeat(1, n, 1, 1)}
    assert recognised("grouped_attention", attention, extra=tiled).diagnosis == (
        ("heads tiled, not repeated in runs",),
    )


def test_llama_turns_halves_and_not_neighbours():
    def llama(x, positions, frequencies):
        if frequencies.inverse.size * 2 < x.shape[-1]:
            raise NotImplementedError("it turns all channels")
        angle = positions[None, :, None] * torch.as_tensor(frequencies.inverse).repeat(2)
        return apply_rotary_pos_emb(x, x, torch.cos(angle), torch.sin(angle))[0]

    assert recognised("rotate", llama, where={"layout": "half"})
    other = recognised("rotate", llama, where={"layout": "interleaved"})
    assert other.diagnosis == (("pairs of the other layout",),)


def test_fla_scales_where_it_is_not_told():
    """Its recurrent Kimi Delta Attention with the scale left to itself."""

    def kimi(query, key, value, beta, log_decay=None, state=None):
        g = torch.zeros_like(key) if log_decay is None else log_decay
        g = g if g.ndim == 4 else g[..., None].expand(key.shape)
        return naive("kda").naive_recurrent_kda(query, key, value, g, beta, None, state, True)

    report = recognised("delta_rule", kimi, axes="batch time head")
    assert report.diagnosis == (("query scaled by 1/sqrt(d)",),)
    report = recognised("delta_rule", kimi)  # and if nobody says that heads come after time
    assert report.otherwise.diagnosis == (("query scaled by 1/sqrt(d)",),)
