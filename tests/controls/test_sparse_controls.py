"""Each control of norms, sparse attention and hyper-connections is off on a small case."""

import numpy as np
import pytest

from archcards import controls
from archcards.mechanisms import compress_blocks, index_scores, rms_norm, select_top_k

FAR = 1e-3


def wave(*shape, start=0.0):
    """Numbers between −2 and 2 without pattern or randomness."""
    return 2 * np.sin(1 + start + np.arange(np.prod(shape)) ** 2).reshape(shape)


X, GATE = wave(4, 6), wave(4, 6, start=0.4)
QUERY, KEY, VALUE = wave(6, 2), wave(6, 2, start=0.3), wave(6, 3, start=0.7)
INDEX = (wave(2, 6, 3), wave(6, 3, start=0.2), wave(6, 2, start=0.9))
SCORES = wave(6, 6, start=0.5)
FALLING = np.tile([3.0, 2.0, 1.0], (6, 1))
CAUSAL = np.tril(np.ones((6, 6), dtype=bool))
STREAMS = wave(3, 2, 4)
MIXING = np.array([[0.6, 0.4], [0.1, 0.9]])
COEFFICIENTS = (wave(3, 2, 4, start=0.1), wave(8, 8, start=0.6), wave(8), [0.5, 0.5, 0.5])
LOGITS = wave(3, 3) * 2
SERIES = {"overlap": wave(6, 3, start=0.3), "overlap_logits": wave(6, 3, start=1.3)}
BLOCKS = {
    "block_key": compress_blocks(KEY, block=2),
    "block_value": compress_blocks(VALUE, block=2),
    "block": 2,
    "window": 2,
}


def hyper(function):
    return function(STREAMS, np.tanh, mixing=MIXING, read=[0.7, 0.3], write=[1.5, 0.5])


def pooled(function):
    return function(VALUE, wave(6, 3, start=0.1), block=2, **SERIES)


def important(function):
    return function(abs(wave(3, 5)), 6, block=2, stride=1, selected=2)


CASES = {
    "layer_norm": {
        "Bessel's correction": lambda f: f(X, wave(6), wave(6, start=1.0)),
        "epsilon outside the root": lambda f: f(X / 100),
        "mean not removed": lambda f: f(X, wave(6), wave(6, start=1.0)),
        "over time instead of channels": lambda f: f(X),
        "epsilon of 1e-6": lambda f: f(X / 100),
        "epsilon of 1e-12": lambda f: f(X / 100),
    },
    "rms_norm": {
        "the weight is stored less one": lambda f: f(X, wave(6)),
        "epsilon outside the root": lambda f: f(X / 1000),
        "sum of squares instead of their mean": lambda f: f(X),
        "mean removed": lambda f: f(X),
        "epsilon of 1e-5": lambda f: f(X / 1000),
    },
    "gated_norm": {"epsilon of 1e-6": lambda f: f(X / 100, GATE)}
    | {
        name: lambda f: f(X, GATE, wave(6), groups=2)
        for name in (
            "norm over the whole vector",
            "gate after the norm",
            "a sigmoid gate",
            "gate left out",
            "gated twice",
        )
    },
    "qk_norm": {"epsilon of 1e-5": lambda f: f(wave(2, 3, 4) / 1000, wave(2, 3, 4) / 1000)}
    | {
        name: lambda f: f(wave(2, 3, 4), wave(2, 3, 4, start=0.2), wave(4), wave(4, start=0.5))
        for name in ("over all heads together", "queries only", "unit length")
    },
    "residual_step": {
        name: lambda f: f(X, np.tanh, rms_norm)
        for name in (
            "the other order",
            "the sublayer's output is normalised",
            "the stream itself is normalised",
        )
    },
    "sinkhorn": {
        "sigmoid instead of the exponential": lambda f: f(LOGITS),
        "rows only": lambda f: f(LOGITS),
        "one iteration": lambda f: f(LOGITS),
        "columns last": lambda f: f(LOGITS, iterations=2),
    },
    "hyper_connection": {
        name: hyper
        for name in (
            "mixing transposed",
            "the read stream is mixed, not the streams",
            "streams not mixed",
            "the sublayer reads each stream",
        )
    },
    "hyper_coefficients": {
        name: lambda f: f(*COEFFICIENTS)
        for name in ("writing weights not doubled", "streams not normalised")
    },
    "index_scores": {
        name: lambda f: f(*INDEX)
        for name in (
            "ReLU left out",
            "ReLU after the sum over heads",
            "heads not weighted",
            "scaled by 1/sqrt(d) and 1/sqrt(heads)",
        )
    },
    "select_top_k": {
        "chosen before the mask": lambda f: f(SCORES, 2, CAUSAL),
        "every query reads what any query chose": lambda f: f(SCORES, 2, CAUSAL),
        "the choice of the last query for all": lambda f: f(SCORES, 2, CAUSAL),
        "ties to the later key": lambda f: f(np.maximum(SCORES, 0), 4),
    },
    "block_scores": {
        "sum of the keys": lambda f: f(QUERY, KEY, block=2),
        "best key of the block": lambda f: f(QUERY, KEY, block=2),
    },
    "selection_scores": {
        "the paper's indices counted from zero": important,
        "overlap ignored": important,
    },
    "select_blocks": {
        "the query's own block is read to its end": lambda f: f(FALLING, 2, 6, block=2),
        "no block is forced": lambda f: f(FALLING, 2, 6, block=2),
        "blocks of the future compete": lambda f: f(-FALLING, 2, 6, block=2),
        "forced blocks not counted": lambda f: f(FALLING, 1, 6, block=2),
    },
    "compress_blocks": {
        name: pooled
        for name in (
            "logits ignored",
            "softmax over the channels",
            "overlap left out",
            "the first block has zeros before it",
            "the series change places",
        )
    },
    "completed_blocks": {
        name: lambda f: f(6, block=2)
        for name in ("visible from the first token", "all visible", "visible from the token after")
    },
    "compressed_attention": {
        name: lambda f: f(QUERY, KEY, VALUE, **BLOCKS)
        for name in (
            "a softmax for each branch, added",
            "the window is left out",
            "the blocks are left out",
        )
    },
}


@pytest.mark.parametrize("mechanism", CASES)
def test_each_control_is_far_off(mechanism, errors):
    near = {name: error for name, error in errors(mechanism, CASES[mechanism]).items() if error < FAR}
    assert not near


def test_a_scaled_indexer_chooses_the_same():
    """A convention: other scores, the same keys."""
    scaled = controls.index_scores["scaled by 1/sqrt(d) and 1/sqrt(heads)"](*INDEX)
    plain = index_scores(*INDEX)
    assert (select_top_k(scaled, 2, CAUSAL) == select_top_k(plain, 2, CAUSAL)).all()
