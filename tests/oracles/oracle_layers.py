"""Routers, losses, mixtures and norms against Transformers and PyTorch."""

from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from comparison import oracle
from packages import FLA, TORCH, TRANSFORMERS, naive
from transformers import DeepseekV4Config, SwitchTransformersConfig
from transformers.models.deepseek_v2.modeling_deepseek_v2 import DeepseekV2TopkRouter
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3TopkRouter
from transformers.models.deepseek_v4.modeling_deepseek_v4 import (
    DeepseekV4DecoderLayer,
    DeepseekV4HyperConnection,
)
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssTopKRouter
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.models.mixtral.modeling_mixtral import MixtralExperts, MixtralTopKRouter
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func as mixtral_loss
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeTopKRouter
from transformers.models.switch_transformers.modeling_switch_transformers import (
    SwitchTransformersTop1Router,
    router_z_loss_func,
)
from transformers.models.switch_transformers.modeling_switch_transformers import (
    load_balancing_loss_func as switch_loss,
)


def router(kind, logits, k, **settings):
    """A router whose weights are the identity, so that its input is its logits."""
    count = logits.shape[-1]
    config = SimpleNamespace(
        num_experts_per_tok=k, num_local_experts=count, num_experts=count, hidden_size=count,
        n_routed_experts=count, **settings,
    )  # fmt: skip
    made = kind(config)
    made.weight.data = torch.eye(count)
    return made


def sorted_choice(scores, experts):
    """Experts by falling weight, as here; some routers leave the order open."""
    order = scores.argsort(dim=-1, descending=True)
    return experts.gather(-1, order), scores.gather(-1, order)


PLACE = "transformers.models.{0}.modeling_{0}."


@oracle("route_top_k", PLACE.format("mixtral") + "MixtralTopKRouter", TRANSFORMERS, where={"renormalise": True})
def test_mixtral(logits, k, order="softmax_first"):
    _, scores, experts = router(MixtralTopKRouter, logits, k)(logits)
    return experts, scores


@oracle("route_top_k", PLACE.format("gpt_oss") + "GptOssTopKRouter", TRANSFORMERS, where={"renormalise": True})
def test_gpt_oss(logits, k, order="softmax_first"):
    made = router(GptOssTopKRouter, logits, k)
    _, scores, experts = made(logits)
    return experts, scores


@oracle("route_top_k", PLACE.format("qwen3_moe") + "Qwen3MoeTopKRouter", TRANSFORMERS, where={"order": "softmax_first"})
def test_qwen(logits, k, renormalise=True):
    _, scores, experts = router(Qwen3MoeTopKRouter, logits, k, norm_topk_prob=renormalise)(logits)
    return experts, scores


@oracle("route_sigmoid", PLACE.format("deepseek_v3") + "DeepseekV3TopkRouter", TRANSFORMERS)
def test_deepseek_v3(logits, k, bias=None, groups=1, kept_groups=1, renormalise=True, scale=1.0):
    if logits.shape[-1] < 2 * groups:
        raise NotImplementedError("it adds up the best two experts of a group")
    made = router(
        DeepseekV3TopkRouter, logits, k, routed_scaling_factor=scale, n_group=groups,
        topk_group=kept_groups, norm_topk_prob=renormalise,
    )  # fmt: skip
    if bias is not None:
        made.e_score_correction_bias.data = bias
    _, scores, experts = made(logits)
    biased = torch.sigmoid(logits) + (0 if bias is None else bias)
    order = biased.gather(-1, experts).argsort(dim=-1, descending=True)
    return experts.gather(-1, order), scores.gather(-1, order)


@oracle("route_group_max", PLACE.format("deepseek_v2") + "DeepseekV2TopkRouter", TRANSFORMERS)
def test_deepseek_v2(logits, k, *, groups, kept_groups, scale=1.0):
    made = router(
        DeepseekV2TopkRouter, logits, k, routed_scaling_factor=scale, n_group=groups,
        topk_group=kept_groups, topk_method="group_limited_greedy",
    )  # fmt: skip
    _, scores, experts = made(logits)
    return sorted_choice(scores, experts)


SWITCH = PLACE.format("switch_transformers")


@oracle("route_switch", SWITCH + "SwitchTransformersTop1Router", TRANSFORMERS)
def test_switch(logits, capacity):
    """It says by a mask of zeros which tokens are dropped."""
    count = logits.shape[-1]
    config = SwitchTransformersConfig(num_experts=count, hidden_size=count, expert_capacity=capacity)
    made = SwitchTransformersTop1Router(config).eval()
    made.dtype = torch.float64
    made.classifier.weight.data = torch.eye(count)
    kept, probability, found = made(logits[None])
    weights = probability[0] * kept[0].sum(-1, keepdim=True)
    return found[0].argmax(-1, keepdim=True), weights


@oracle("load_balance_loss", SWITCH + "load_balancing_loss_func", TRANSFORMERS, follows=())
def test_balance_of_one(logits, k):
    if k != 1:
        raise NotImplementedError("it is about one expert a token")
    return switch_loss(torch.softmax(logits, -1)[None], logits.argmax(-1)[None])


@oracle("load_balance_loss", PLACE.format("mixtral") + "load_balancing_loss_func", TRANSFORMERS,
        follows="k when balanced")  # fmt: skip
def test_balance_of_k(logits, k):
    return mixtral_loss((logits,), logits.shape[-1], k)


@oracle("router_z_loss", SWITCH + "router_z_loss_func", TRANSFORMERS)
def test_z_loss(logits):
    return router_z_loss_func(logits[None])


@oracle("mixture", PLACE.format("mixtral") + "MixtralExperts", TRANSFORMERS)
def test_mixtral_experts(x, experts, routing, shared=()):
    """Its loop over experts, each a function in place of a gated layer: one expert at a time."""
    width = x.shape[-1]
    config = SimpleNamespace(
        num_local_experts=len(experts), hidden_size=width, intermediate_size=width, hidden_act="relu",
        _experts_implementation="eager",
    )
    made = MixtralExperts(config)
    made.act_fn = One()
    made.gate_up_proj.data = torch.eye(width).repeat(len(experts), 2, 1)
    made.down_proj.data = torch.eye(width).repeat(len(experts), 1, 1)
    chosen, weights = (torch.as_tensor(np.asarray(part)) for part in routing)
    total = sum(expert(x) for expert in shared)
    for number, expert in enumerate(experts):
        total = total + made(expert(x), chosen, weights * (chosen == number))
    return total


class One(torch.nn.Module):
    """A gate that is open, so that a gated layer with identities around it passes its input on."""

    def forward(self, x):
        return torch.ones_like(x)


# Norms


@oracle("layer_norm", "torch.nn.functional.layer_norm", TORCH)
def test_layer_norm(x, weight=None, bias=None, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


@oracle("rms_norm", "torch.nn.functional.rms_norm", TORCH)
def test_rms_norm(x, weight=None, eps=1e-6):
    return F.rms_norm(x, x.shape[-1:], weight, eps)


@oracle("rms_norm", PLACE.format("llama") + "LlamaRMSNorm", TRANSFORMERS)
def test_llama_norm(x, weight=None, eps=1e-6):
    norm = LlamaRMSNorm(x.shape[-1], eps)
    norm.weight.data = torch.ones(x.shape[-1]) if weight is None else weight
    return norm(x)


@oracle("qk_norm", "torch.nn.functional.rms_norm", TORCH)
def test_qk_norm(query, key, query_weight=None, key_weight=None, eps=1e-6):
    return tuple(
        F.rms_norm(x, x.shape[-1:], weight, eps)
        for x, weight in ((query, query_weight), (key, key_weight))
    )


# Hyper-connections


@oracle("sinkhorn", "fla.ops.utils.sinkhorn.naive.naive_sinkhorn", FLA)
def test_sinkhorn(logits, *, iterations=20):
    return naive("utils/sinkhorn").naive_sinkhorn(logits, iterations)


def connection(count, channels, eps=1e-6, iterations=20):
    """Its epsilon in each division is left out; its matrix has the streams that give in its rows."""
    config = DeepseekV4Config(
        hc_mult=count, hidden_size=channels, hc_sinkhorn_iters=iterations, hc_eps=0.0, rms_norm_eps=eps
    )
    return DeepseekV4HyperConnection(config)


HYPER = PLACE.format("deepseek_v4") + "DeepseekV4HyperConnection"


@oracle("sinkhorn", HYPER, TRANSFORMERS)
def test_transformers_sinkhorn(logits, *, iterations=20):
    """It normalises within the computation of coefficients, whose other logits are zero here."""
    count = logits.shape[-1]

    def one(square):
        made = connection(count, 1, iterations=iterations)
        made.fn.data = torch.zeros(count * (2 + count), count)
        made.base.data = torch.cat([torch.zeros(2 * count), square.T.flatten()])
        made.scale.data = torch.ones(3)
        return made(torch.ones(1, 1, count, 1))[1][0, 0].T

    many = logits.reshape(-1, count, count)
    return torch.stack([one(square) for square in many]).reshape(logits.shape)


@oracle("hyper_coefficients", HYPER, TRANSFORMERS)
def test_hyper_coefficients(streams, weight, bias, scale, *, iterations=20, eps=1e-6):
    """It uses the weights that read itself; they are found from what it read."""
    count, channels = streams.shape[-2:]
    made = connection(count, channels, eps, iterations)

    def turned(logits):  # the logits of the mixing matrix in its order
        own, mixing = logits[..., : 2 * count], logits[..., 2 * count :]
        mixing = mixing.unflatten(-1, (count, count)).transpose(-1, -2).flatten(-2)
        return torch.cat([own, mixing], dim=-1)

    made.fn.data, made.base.data, made.scale.data = turned(weight).T, turned(bias), scale
    write, mixing, collapsed = made(streams[None])
    read = torch.linalg.lstsq(streams.transpose(-1, -2), collapsed[0, ..., None]).solution[..., 0]
    return mixing[0].transpose(-1, -2), read, write[0]


@oracle("hyper_connection", PLACE.format("deepseek_v4") + "DeepseekV4DecoderLayer", TRANSFORMERS)
def test_hyper_connection(streams, sublayer, *, mixing, read, write):
    """The layer, with the sublayer for its attention and a second connection that does nothing."""
    time, count, _ = streams.shape
    given = mixing.T.expand(1, time, count, count)
    read = torch.einsum("s,tsc->tc", read, streams)[None]
    nothing = torch.zeros(1, time, count), torch.eye(count), streams[None, :, 0]
    layer = DeepseekV4DecoderLayer.__new__(DeepseekV4DecoderLayer)
    torch.nn.Module.__init__(layer)
    layer.attn_hc = lambda x: (write.expand(1, time, count), given, read)
    layer.self_attn = lambda x: (sublayer(x), None)
    layer.ffn_hc, layer.mlp = lambda x: nothing, lambda x, input_ids: x
    layer.input_layernorm = layer.post_attention_layernorm = lambda x: x
    return layer.forward(streams[None])[0]
