"""Cases of linear attention, the delta family and state spaces."""

import numpy as np

from ..mechanisms import Mamba2Weights, MambaWeights, RecurrentCache
from ..mechanisms import elu_plus_one as _elu_plus_one
from ..mechanisms import mamba2_block as _mamba2
from ..mechanisms import mamba_block as _mamba
from ._registry import case, edge, published
from .numbers import between, numbers

__all__: list[str] = []

_SEQUENCE = {name: "batch head time feature" for name in ("query", "key", "value", "output")}
_DELTA = _SEQUENCE | {
    "beta": "batch head time",
    "log_decay": "batch head time feature",
    "state": "batch head key value",
    "normaliser": "batch head key",
}


def _read(time, value_width=4, small=1.0, heads=2):
    """Queries, keys of length about one, values."""
    return {
        "query": numbers(2, heads, time, 4, seed=time),
        "key": small * numbers(2, heads, time, 4, seed=time + 1) / 2,
        "value": numbers(2, heads, time, value_width, seed=time + 2),
    }


_STATE = numbers(2, 2, 4, 4, seed=7)


def _per_step(time):
    return -between(2, 2, time, seed=time + 4) - 1 / 256


def _per_channel(time):
    return -2 * between(2, 2, time, 4, seed=time + 5) - 1 / 128


def _decays():
    """The decays and memories to start from that both families share: name, arguments, edge.

    Few cases need an initial memory: a function that takes none has something to be compared by.
    """
    shut = _per_step(7)
    shut[..., 4] = -np.inf
    channel_shut = _per_channel(7)
    channel_shut[..., 4, 1:3] = -np.inf
    strong = np.full((2, 2, 7), -200.0)
    yield "no decay", 7, {}, False
    yield "one decay per step", 7, {"log_decay": _per_step(7)}, False
    yield "one decay per step and channel", 7, {"log_decay": _per_channel(7)}, False
    yield "a memory to start from", 7, {"state": _STATE}, False
    yield "a memory and decays", 7, {"state": _STATE, "log_decay": _per_step(7)}, False
    yield "a memory and decays per channel", 7, {
        "state": _STATE, "log_decay": _per_channel(7),
    }, False  # fmt: skip
    yield "scale given", 5, {"scale": 0.5}, False
    yield "a length that is no multiple of a chunk", 70, {"log_decay": _per_step(70) / 8}, False
    yield "the same with a decay per channel", 70, {"log_decay": _per_channel(70) / 8}, False
    yield "the same from a memory", 70, {"state": _STATE, "log_decay": _per_step(70) / 8}, False
    yield "one step", 1, {}, True
    yield "one step from a memory", 1, {"state": _STATE, "log_decay": _per_step(1)}, True
    yield "a log-decay of zero", 5, {"log_decay": np.zeros((2, 2, 5))}, True
    yield "a gate that shuts", 7, {"log_decay": shut}, True
    yield "a gate that shuts in some channels", 7, {"log_decay": channel_shut}, True
    yield "a decay of e^-200 a step", 7, {"log_decay": strong}, True
    yield "the same in some channels", 7, {
        "log_decay": strong[..., None] * [0.0, 1.0, 2.0, 0.0],
    }, True  # fmt: skip


@published("elu_plus_one")
def elu_plus_one():
    yield case("both signs", x=numbers(3, 4))
    yield edge("zero and large numbers", x=np.array([0.0, -800.0, 800.0]))


@published(
    "linear_attention", returns="output state normaliser", axes=_DELTA, choices="form chunk"
)
def linear_attention():
    yield case("values narrower than keys", **_read(7, value_width=3))
    for name, time, options, degenerate in _decays():
        yield (edge if degenerate else case)(name, **_read(time, small=0.5), **options)
    for name, log_decay in (("normalised", None), ("normalised, one decay per step", _per_step(7))):
        read = _read(7)
        read |= {part: _elu_plus_one(read[part].clip(0)) for part in ("query", "key")}
        pair = (numbers(2, 2, 4, 4, seed=8), 1 + between(2, 2, 4, seed=9))
        yield case(name, **read, normalise=True, state=pair, log_decay=log_decay)
    positive = _read(1) | {"query": 1 + between(2, 2, 1, 4), "key": 1 + between(2, 2, 1, 4, seed=1)}
    yield edge("normalised, one step", **positive, normalise=True)


@published("delta_rule", returns="output state", axes=_DELTA, choices="form chunk")
def delta_rule():
    def beta(time):
        return between(2, 2, time, seed=time + 3)

    yield case("values narrower than keys", **_read(7, value_width=3), beta=beta(7))
    for name, time, options, degenerate in _decays():
        small = 0.5 if time > 7 else 1.0
        read = _read(time, small=small) | {"beta": beta(time)} | options
        yield (edge if degenerate else case)(name, **read)
    fixed = _read(6) | {"state": _STATE}
    unit = np.eye(4)[[0, 1, 2, 0, 3, 3]] * np.ones((2, 2, 1, 1))
    yield edge("beta zero", **fixed, beta=np.zeros((2, 2, 6)))
    unit = _read(6) | {"key": unit}
    yield edge("beta one and unit keys: overwritten", **unit, beta=np.ones((2, 2, 6)))
    yield edge("beta two and unit keys: reflected", **unit, beta=np.full((2, 2, 6), 2.0))
    same = unit | {"key": np.ones((2, 2, 6, 1)) * np.eye(4)[2]}
    yield edge("the same key at every step", **same, beta=beta(6))


_WRITE = {
    "state": numbers(2, 4, 4, seed=1), "key": numbers(2, 4, seed=2) / 2,
    "value": numbers(2, 4, seed=3), "beta": between(2, seed=4),
}  # fmt: skip
_WRITE_AXES = {
    "state": "batch key value", "key": "batch key", "value": "batch value", "beta": "batch",
    "decay": "batch key", "output": "batch key value",
}  # fmt: skip


@published("delta_write", axes=_WRITE_AXES)
def delta_write():
    yield case("two memories", **_WRITE)
    yield edge("beta zero", **_WRITE | {"beta": np.zeros(2)})
    yield edge("beta one and a unit key", **_WRITE | {"beta": np.ones(2), "key": np.eye(4)[:2]})
    yield edge("beta two and a unit key", **_WRITE | {"beta": np.full(2, 2.0), "key": np.eye(4)[:2]})
    yield edge("one number", state=np.array([[[4.0]]]), key=np.array([[1.0]]),
               value=np.array([[10.0]]), beta=np.array([0.25]))  # fmt: skip


@published("gated_write", axes=_WRITE_AXES)
def gated_write():
    yield case("one decay", **_WRITE, decay=between(2, seed=5))
    yield case("one decay per channel", **_WRITE, decay=between(2, 4, seed=6))
    yield edge("a decay of one", **_WRITE, decay=np.ones(2))
    yield edge("a decay of zero", **_WRITE, decay=np.zeros(2))
    yield edge("a decay that leaves next to nothing", **_WRITE, decay=np.full(2, 2.0**-100))
    yield edge("beta zero", **_WRITE | {"beta": np.zeros(2)}, decay=between(2, seed=5))
    for beta, name in ((1.0, "one"), (2.0, "two")):
        unit = {"beta": np.full(2, beta), "key": np.eye(4)[:2]}
        yield edge(f"beta {name} and a unit key", **_WRITE | unit, decay=between(2, seed=5))


@published("unit_key")
def unit_key():
    yield case("of ordinary length", x=numbers(3, 4))
    yield case("as short as the root of epsilon", x=numbers(3, 4, seed=1) / 1024, eps=2.0**-20)
    yield edge("zero", x=np.zeros((1, 4)))
    yield edge("one component", x=np.array([[-3.0]]))


@published("decay_gate")
def decay_gate():
    yield case("one rate", x=numbers(3, 4), log_rate=0.5, bias=0.25)
    yield case("a rate per channel", x=numbers(3, 4, seed=1), log_rate=numbers(4, seed=2),
               bias=numbers(4, seed=3))  # fmt: skip
    yield edge("far from zero", x=np.array([-800.0, 0.0, 800.0]), log_rate=0.0, bias=0.0)


# State spaces

_SCAN_AXES = {name: "batch time channel" for name in ("u", "dt", "z", "y")} | {
    "B": "batch time N", "C": "batch time N", "A": "channel N", "state": "batch channel N",
    "D": "channel", "dt_bias": "channel",
}  # fmt: skip


def _scan(time, channels=4, n=4):
    return {
        "u": numbers(2, time, channels, seed=1),
        "dt": between(2, time, channels, seed=2) + 1 / 256,
        "A": -between(channels, n, seed=3) - 1 / 256,
        "B": numbers(2, time, n, seed=4),
        "C": numbers(2, time, n, seed=5),
    }


@published("selective_scan", returns="y state", axes=_SCAN_AXES, choices="form")
def selective_scan():
    skip, gate = {"D": numbers(4, seed=6)}, {"z": numbers(2, 7, 4, seed=7)}
    step = {"dt_bias": numbers(4, seed=8), "dt_softplus": True}
    memory = {"state": numbers(2, 4, 4, seed=9)}
    yield case("inputs alone", **_scan(7))
    yield case("fewer state numbers than channels", **_scan(5, n=3))
    yield case("a memory to start from", **_scan(7), **memory)
    yield case("a skip", **_scan(7), **skip)
    yield case("a gate", **_scan(7), **gate)
    yield case("a skip and a gate", **_scan(7), **skip, **gate)
    yield case("steps from a softplus", **_scan(7), **step)
    yield case("everything", **_scan(7), **skip, **gate, **step, **memory)
    yield case("zero-order hold", **_scan(7), discretisation="zero_order_hold")
    yield case("seventy steps", **_scan(70))
    yield edge("one step", **_scan(1))
    yield edge("one step from a memory", **_scan(1), **memory)
    yield edge("steps of zero", **_scan(5) | {"dt": np.zeros((2, 5, 4))}, **memory)
    yield edge("strong decay", **_scan(5) | {"A": np.full((4, 4), -256.0)})


_DUAL_AXES = {
    "x": "batch head time feature", "y": "batch head time feature", "dt": "batch head time",
    "A": "head", "B": "batch group time N", "C": "batch group time N", "D": "head",
    "dt_bias": "head", "state": "batch head N P",
}  # fmt: skip


def _dual(time, width=4, groups=2):
    return {
        "x": numbers(2, 4, time, width, seed=1),
        "dt": numbers(2, 4, time, seed=2),
        "A": -between(4, seed=3) - 1 / 256,
        "B": numbers(2, groups, time, 4, seed=4),
        "C": numbers(2, groups, time, 4, seed=5),
    }


@published("state_space_dual", returns="y state", axes=_DUAL_AXES, choices="form chunk")
def state_space_dual():
    skip, memory = {"D": numbers(4, seed=6)}, {"state": numbers(2, 4, 4, 4, seed=7)}
    bias, limit = {"dt_bias": numbers(4, seed=8)}, {"dt_limit": (0.5, 1.5)}
    ready = {"dt": between(2, 4, 7, seed=2), "dt_softplus": False}
    yield case("inputs alone", **_dual(7))
    yield case("fewer channels than state numbers", **_dual(5, width=3))
    yield case("a memory to start from", **_dual(7), **memory)
    yield case("a skip", **_dual(7), **skip)
    yield case("a bias of the step", **_dual(7), **bias)
    yield case("a limit of the step", **_dual(7), **bias, **limit)
    yield case("steps without softplus", **_dual(7) | ready)
    yield case("everything", **_dual(7), **skip, **memory, **bias, **limit)
    yield case("seventy steps", **_dual(70))
    yield edge("one step", **_dual(1))
    yield edge("one step from a memory", **_dual(1), **memory)
    none = {"dt": np.zeros((2, 4, 5)), "dt_softplus": False}
    yield edge("steps of zero", **_dual(5) | none, **memory)
    yield edge("one group", **_dual(5, groups=1))
    yield edge("a group for each head", **_dual(5, groups=4))
    yield edge("strong decay", **_dual(5) | {"A": np.full(4, -256.0)})


@published("causal_convolution", axes={"x": "batch time channel", "output": "batch time channel",
                                       "weight": "channel width"})  # fmt: skip
def causal_convolution():
    arrays = {"x": numbers(2, 6, 3, seed=1), "weight": numbers(3, 4, seed=2)}
    yield case("without a bias", **arrays)
    yield case("with a bias", **arrays, bias=numbers(3, seed=3))
    yield edge("one step", x=numbers(2, 1, 3, seed=1), weight=numbers(3, 4, seed=2))
    yield edge("a kernel of one", x=numbers(2, 4, 3, seed=1), weight=numbers(3, 1, seed=2))


def _block(kind, seed, **shapes):
    """Weights of a block, small enough that nothing in it saturates."""
    return kind(**{
        name: shape if isinstance(shape, int) else numbers(*shape, seed=seed + i) / 2
        for i, (name, shape) in enumerate(shapes.items())
    })  # fmt: skip


def _in_two_parts(block, weights, first):
    """What a block keeps of a past of some steps, rounded to few binary digits."""
    _, cache = block(numbers(2, first, 6, seed=40), weights)
    rounded = (np.round(part * 64) / 64 for part in (cache.inputs, cache.state))
    return RecurrentCache(*rounded)


@published("mamba_block", returns="output inputs state", choices="form")
def mamba_block():
    weights = _block(
        MambaWeights, 20, input=(6, 16), convolution=(8, 4), convolution_bias=(8,),
        selection=(8, 9), dt=(3, 8), dt_bias=(8,), A_log=(8, 3), D=(8,), output=(8, 6),
    )  # fmt: skip
    x, cache = numbers(2, 7, 6, seed=41), _in_two_parts(_mamba, weights, 5)
    yield case("from the start", x=x, weights=weights)
    yield case("a step after a past", x=x[:, :1], weights=weights, cache=cache)
    yield case("three steps after a past", x=x[:, :3], weights=weights, cache=cache)
    yield edge("one step", x=x[:, :1], weights=weights)


@published("mamba2_block", returns="output inputs state", choices="form chunk")
def mamba2_block():
    def weights(groups):
        channels = 12 + 2 * groups * 3
        return _block(
            Mamba2Weights, 30, input=(6, 12 + channels + 4), convolution=(channels, 4),
            convolution_bias=(channels,), dt_bias=(4,), A_log=(4,), D=(4,), norm=(12,),
            output=(12, 6), groups=groups,
        )  # fmt: skip

    x, two = numbers(2, 7, 6, seed=42), weights(2)
    cache = _in_two_parts(_mamba2, two, 5)
    yield case("from the start", x=x, weights=two)
    yield case("one group", x=x, weights=weights(1))
    yield case("a limit of the step", x=x, weights=two, dt_limit=(0.5, 0.75))
    yield case("another epsilon", x=x / 16, weights=two, eps=1 / 64)
    yield case("a step after a past", x=x[:, :1], weights=two, cache=cache)
    yield case("three steps after a past", x=x[:, :3], weights=two, cache=cache)
    yield edge("one step", x=x[:, :1], weights=two)
