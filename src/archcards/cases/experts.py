"""Cases of routers, mixtures and their losses. Logits are apart: ties are cases of their own."""

import numpy as np

from ..mechanisms import Routing
from ._registry import case, edge, published
from .numbers import numbers

__all__: list[str] = []

_LOGITS = np.array(
    [
        [2.0, 1.5, 0.0, -1.0, 0.5, -0.5, 1.0, -2.0],
        [0.25, -1.75, 1.25, 2.25, -0.75, 0.75, -1.25, 1.75],
        [-3.0, -1.0, -2.0, 0.5, -0.25, -4.0, -2.5, -1.5],
    ]
)
_BIAS = np.array([0.0, 0.25, -0.5, 1.0, 0.125, 2.0, -1.0, 0.5])
_NEGATIVE = np.array([-3.0, -3.5, -9.0, -9.5, -8.0, -8.5, -7.0, -7.5])
_GROUPS = {"groups": 4, "kept_groups": 2}


@published("capacity", returns="places")
def capacity():
    yield case("rounded up", tokens=10, experts=4, factor=1.0)
    yield case("a factor above one", tokens=64, experts=8, factor=1.25)
    yield case("a product that a float puts above a whole number", tokens=100, experts=1, factor=1.1)
    yield case("a minimum", tokens=10, experts=4, factor=1.0, minimum=4)
    yield edge("one expert", tokens=7, experts=1, factor=1.0)
    yield edge("fewer tokens than experts", tokens=3, experts=8, factor=1.0)


@published("route_top_k", returns="experts weights")
def route_top_k():
    yield case("two of eight", logits=_LOGITS, k=2)
    yield case("not renormalised", logits=_LOGITS, k=2, renormalise=False)
    yield case("top-k first", logits=_LOGITS, k=3, order="top_k_first")
    yield edge("one of eight", logits=_LOGITS, k=1)
    yield edge("one of eight, not renormalised", logits=_LOGITS, k=1, renormalise=False)
    yield edge("all experts", logits=_LOGITS[:, :4], k=4)
    yield edge("one expert", logits=_LOGITS[:, :1], k=1)
    yield edge("ties to the lower index", logits=np.zeros((1, 3)), k=1)


@published("route_switch", returns="experts weights")
def route_switch():
    crowd = _LOGITS[[0, 0, 1, 0, 1]] + np.arange(5)[:, None] * [0.25, 0, 0, 0.125, 0, 0, 0, 0]
    yield case("room for two", logits=crowd, capacity=2)
    yield case("room for one", logits=crowd, capacity=1)
    yield case("room for all", logits=_LOGITS, capacity=3)
    yield edge("one expert", logits=_LOGITS[:, :1], capacity=2)
    yield edge("one token", logits=_LOGITS[:1], capacity=1)


@published("route_sigmoid", returns="experts weights")
def route_sigmoid():
    yield case("two of eight", logits=_LOGITS, k=2)
    yield case("a bias", logits=_LOGITS, k=2, bias=_BIAS)
    yield case("groups", logits=_LOGITS, k=2, **_GROUPS)
    yield case("a bias and groups", logits=_LOGITS, k=3, bias=_BIAS, **_GROUPS)
    apart = np.array([[3.0, -3.0, 2.0, 1.75]])
    yield case("the best expert is not in the best group", logits=apart, k=2, groups=2, kept_groups=1)
    yield case("biases below zero", logits=_LOGITS, k=3, bias=_NEGATIVE, groups=4, kept_groups=2)
    yield case("not renormalised", logits=_LOGITS, k=2, renormalise=False)
    yield case("a scale", logits=_LOGITS, k=2, scale=2.5)
    yield edge("one of eight", logits=_LOGITS, k=1)
    yield edge("all experts", logits=_LOGITS[:, :4], k=4)
    yield edge("one expert", logits=_LOGITS[:, :1], k=1)
    yield edge("all groups", logits=_LOGITS, k=2, groups=4, kept_groups=4)


@published("route_group_max", returns="experts weights")
def route_group_max():
    yield case("groups", logits=_LOGITS, k=2, **_GROUPS)
    yield case("a scale", logits=_LOGITS, k=3, scale=16.0, **_GROUPS)
    apart = np.array([[2.0, -1.0, 1.75, 1.5]])
    yield case("the best expert is not in the best group", logits=apart, k=2, groups=2, kept_groups=1)
    yield edge("one of eight", logits=_LOGITS, k=1, **_GROUPS)
    yield edge("all experts", logits=_LOGITS[:, :4], k=4, groups=2, kept_groups=2)
    yield edge("one expert", logits=_LOGITS[:, :1], k=1, groups=1, kept_groups=1)
    yield edge("all groups", logits=_LOGITS, k=2, groups=4, kept_groups=4)


@published("mixture")
def mixture():
    experts = [np.tanh, np.exp, np.arctan, np.cbrt]
    x = numbers(4, 3, seed=1)
    routing = Routing(np.array([[0, 1], [2, 3], [1, 2], [3, 0]]), numbers(4, 2, seed=2))
    dropped = Routing(np.array([[0], [1], [1], [3]]), np.array([[0.75], [0.0], [0.5], [0.0]]))
    yield case("two experts a token", x=x, experts=experts, routing=routing)
    yield case("shared experts", x=x, experts=experts, routing=routing, shared=(np.sin, np.cos))
    everyone = Routing(np.tile(np.arange(4), (4, 1)), numbers(4, 4, seed=3))
    yield edge("all experts", x=x, experts=experts, routing=everyone)
    yield edge("dropped tokens", x=x, experts=experts, routing=dropped)
    one = Routing(np.zeros((4, 1), int), np.ones((4, 1)))
    yield edge("one expert", x=x, experts=experts[:1], routing=one)


@published("load_balance_loss", returns="loss")
def load_balance_loss():
    yield case("top one", logits=_LOGITS, k=1)
    yield case("top two", logits=_LOGITS, k=2)
    yield edge("all experts: balanced", logits=_LOGITS[:, :4], k=4)
    yield edge("one expert", logits=_LOGITS[:, :1], k=1)


@published("router_z_loss", returns="loss")
def router_z_loss():
    yield case("three tokens", logits=_LOGITS)
    yield case("logits of both signs", logits=np.array([[5.0, 0.0], [-5.0, -6.0]]))
    yield edge("large logits", logits=np.array([[800.0, 808.0]]))
    yield edge("one expert", logits=_LOGITS[:, :1])
