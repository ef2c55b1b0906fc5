"""Each control of masks, attention, caches and online softmax is off on a small case."""

import numpy as np
import pytest

from archcards import controls, mechanisms
from archcards.mechanisms import alibi_slopes, attend, causal, sliding_window

FAR = 1e-3


def wave(*shape, start=0.0):
    """Numbers between −2 and 2 without pattern or randomness."""
    return 2 * np.sin(1 + start + np.arange(np.prod(shape)) ** 2).reshape(shape)


QUERY, KEY, VALUE = wave(4, 5, 2), wave(4, 5, 2, start=0.3), wave(4, 5, 3, start=0.7)
BIAS = -alibi_slopes(4)[:, None, None] * abs(np.arange(5)[:, None] - np.arange(5))
GAP = causal(5) & (np.arange(5)[:, None] != 2)  # query 2 reads nothing


def weights(mask=None, **options):
    return lambda function: function(QUERY, KEY, mask, **options)


def read(mask=None, **options):
    return lambda function: function(QUERY, KEY, VALUE, mask, **options)


OF_WEIGHTS = {
    "scores not scaled": (None, {}),
    "scores scaled twice": (None, {}),
    "scaled by 1/d": (None, {}),
    "scaled by the width of all heads": (None, {}),
    "softmax over the queries": (None, {}),
    "hidden by the smallest float": (GAP, {"empty": "zeros"}),
    "NaN where nothing is readable": (GAP, {"empty": "zeros"}),
    "hidden scores set to zero": (causal(5), {}),
    "masked after the softmax": (causal(5), {}),
    "mask upside down": (causal(5), {}),
    "soft cap before the scale": (None, {"softcap": 0.5}),
    "soft cap after the mask": (causal(5), {"softcap": 0.5}),
    "soft cap after the bias": (None, {"softcap": 0.5, "bias": BIAS}),
    "bias scaled with the scores": (None, {"bias": BIAS}),
    "sink left out": (None, {"sink": [0.0, 1.0, -1.0, 2.0]}),
    "sink scaled with the scores": (None, {"sink": [0.0, 1.0, -1.0, 2.0]}),
    "sink put first, last column dropped": (None, {"sink": [0.0, 1.0, -1.0, 2.0]}),
    "the sink is the first key": (sliding_window(5, window=2), {"sink": [0.0, 1.0, -1.0, 2.0]}),
}
HEADS_TWO = (QUERY, KEY[:2], VALUE[:2])
CASES = {
    "causal": {
        "aligned to the top left": lambda f: f(2, 5),
        "the query cannot read itself": lambda f: f(3),
        "diagonal one too far": lambda f: f(2, 5),
        "mask upside down": lambda f: f(3),
    },
    "sliding_window": {
        "window counts only the keys before": lambda f: f(5, window=2),
        "one key short": lambda f: f(5, window=2),
        "the query itself is left out": lambda f: f(5, window=2),
        "the future is not hidden": lambda f: f(5, window=2),
        "window on both sides": lambda f: f(5, window=2),
        "aligned to the top left": lambda f: f(2, 5, window=2),
    },
    "chunked_causal": {
        "a sliding window of the same size": lambda f: f(5, chunk=2),
        "chunks counted from the first query": lambda f: f(2, 5, chunk=2),
        "the future of the chunk is read": lambda f: f(4, chunk=2),
    },
    "with_sinks": {
        "sinks before they are reached": lambda f: f(sliding_window(5, window=1), 2),
        "aligned to the top left": lambda f: f(sliding_window(1, 5, window=1), 2),
        "the sinks take the place of the oldest keys": lambda f: f(sliding_window(5, window=2), 1),
    },
    "with_global": {
        "global tokens are read but do not read": lambda f: f(sliding_window(5, window=1), [2]),
        "global tokens read but are not read": lambda f: f(sliding_window(5, window=1), [2]),
        "rows counted from the first query": lambda f: f(sliding_window(3, 5, window=1), [2]),
        "both ways in time": lambda f: f(sliding_window(5, window=1), [2]),
    },
    "edges": {
        "every pair counted": lambda f: f(causal(8)),
        "half the square": lambda f: f(causal(8)),
        "each row as full as the last": lambda f: f(sliding_window(8, window=3)),
    },
    "softmax": {
        "over the other axis": lambda f: f(QUERY[0]),
        "maximum not subtracted": lambda f: f([1000.0, 1001.0]),
        "powers of two of natural scores": lambda f: f([0.0, 1.0]),
        "one added to the denominator": lambda f: f([0.0, 1.0]),
    },
    "attention_weights": {name: weights(m, **o) for name, (m, o) in OF_WEIGHTS.items()},
    "attention": {name: read(m, **o) for name, (m, o) in OF_WEIGHTS.items()}
    | {"scaled by the width of the values": read()},
    "grouped_attention": {
        name: lambda f, m=m, o=o: f(*HEADS_TWO, m, **o) for name, (m, o) in OF_WEIGHTS.items()
    }
    | {
        "heads tiled, not repeated in runs": lambda f: f(*HEADS_TWO),
        "the first head serves all": lambda f: f(*HEADS_TWO),
    },
    "gate_output": {
        "swish instead of the sigmoid": lambda f: f([[2.0, 4.0]], [[0.5, -1.0]]),
        "logits multiplied as they are": lambda f: f([[2.0, 4.0]], [[0.5, -1.0]]),
    },
    "cached_attention": {
        "trimmed to the window first": lambda f: f(*HEADS_TWO, chunks=[2, 3], window=3),
        "ring buffer without positions": lambda f: f(*HEADS_TWO, chunks=[2, 3], window=3),
        "no window inside the chunk": lambda f: f(*HEADS_TWO, chunks=[2, 3], window=3),
        "one key too few is kept": lambda f: f(*HEADS_TWO, chunks=[2, 3], window=3),
        "aligned to the top left": lambda f: f(*HEADS_TWO, chunks=[2, 3]),
        "each chunk reads itself only": lambda f: f(*HEADS_TWO, chunks=[2, 3]),
    },
    "KVCache": {
        "trimmed to the window first": lambda f: held(f(3)),
        "never trimmed": lambda f: held(f(3)),
    },
    "merge": {
        "old mass not rescaled": lambda f: values(f(piece(1.0), piece(2.0, 5.0))),
        "old values not rescaled": lambda f: values(f(piece(1.0), piece(2.0, 5.0))),
        "partial outputs averaged": lambda f: values(f(piece(1.0), piece(2.0, 5.0))),
        "weighted by mass without the maxima": lambda f: values(f(piece(1.0), piece(2.0, 5.0))),
        "natural maxima taken in base two": lambda f: values(f(piece(1.0), piece(2.0, 5.0))),
        "NaN from two empty pieces": lambda f: values(f(f(piece(), piece()), piece(2.0))),
    },
    "attend": {
        name: lambda f: values(f([1.0, 3.0], [[1.0], [2.0]], [True, False]))
        for name in ("hidden keys keep their mass", "masked keys set to zero")
    },
    "blockwise_attention": {
        name: lambda f: f(QUERY, KEY, VALUE, block=2)
        for name in (
            "old mass not rescaled",
            "old values not rescaled",
            "partial outputs averaged",
            "weighted by mass without the maxima",
            "natural maxima taken in base two",
            "the last, shorter block is dropped",
            "log-sum-exp in base two",
        )
    }
    | {
        # The last query reads the last key only: its first two blocks are empty.
        "NaN from two empty pieces": lambda f: f(
            QUERY, KEY, VALUE, sliding_window(5, window=1), block=1
        )
    },
}


def piece(*scores):
    return attend(np.array(scores), np.arange(1.0, 1 + len(scores))[:, None] * [1.0, -2.0])


def values(state):
    with np.errstate(invalid="ignore"):
        return state.weighted / state.mass[..., None], state.mass


def held(cache):
    sizes = []
    for chunk in (4, 2):
        cache.append(np.zeros((chunk, 2)), np.zeros((chunk, 2)))
        sizes.append(cache.key.shape[-2])
        cache.trim()
    return np.array([*sizes, cache.scalars])


@pytest.mark.parametrize("mechanism", CASES)
def test_each_control_is_far_off(mechanism, errors):
    near = {name: error for name, error in errors(mechanism, CASES[mechanism]).items() if error < FAR}
    assert not near


ALWAYS_OFF = {"scores scaled twice", "softmax over the queries"}


@pytest.mark.parametrize("name", sorted(OF_WEIGHTS.keys() - ALWAYS_OFF))
def test_a_control_is_right_where_its_subject_does_not_occur(name):
    """A control gets one thing wrong: with the scale given and no mask, cap, bias or sink, none."""
    case = weights(**{"scale": 0.5} if "scale" in name and "sink" not in name else {})
    if name == "mask upside down":
        case = weights(np.eye(5, dtype=bool) ^ True, empty="zeros")
        reference = lambda q, k, m, **o: mechanisms.attention_weights(q, k, ~m, **o)  # noqa: E731
    else:
        reference = mechanisms.attention_weights
    expected = case(reference)
    np.testing.assert_allclose(case(controls.attention_weights[name]), expected, rtol=0, atol=1e-14)


def test_top_left_alignment_reads_the_first_value_exactly():
    """One query over five keys: trap of `is_causal=True` in decoding."""
    mask = controls.causal["aligned to the top left"](1, 5)
    output = mechanisms.attention(QUERY[0, -1:], KEY[0], VALUE[0], mask)
    assert output.tolist() == VALUE[0, :1].tolist()


def test_a_fully_masked_row_is_silently_uniform_with_the_smallest_float():
    control = controls.attention_weights["hidden by the smallest float"]
    row = control(QUERY[0], KEY[0], GAP, empty="zeros")[2]
    assert row.tolist() == [0.2] * 5
