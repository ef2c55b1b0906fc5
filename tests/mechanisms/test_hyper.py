"""Hyper-connections: marginals, the norm bound, and the residual connection as a special case."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.mechanisms import hyper_coefficients, hyper_connection, sinkhorn

EXACT = {"rtol": 0, "atol": 1e-12}
seeds = st.integers(0, 2**32 - 1)


def plain_sinkhorn(logits, iterations):
    """Columns, then rows, on the exponentials themselves."""
    matrix = [[math.exp(entry) for entry in row] for row in logits]
    size = range(len(matrix))
    for _ in range(iterations):
        columns = [math.fsum(matrix[i][j] for i in size) for j in size]
        matrix = [[matrix[i][j] / columns[j] for j in size] for i in size]
        matrix = [[entry / math.fsum(row) for entry in row] for row in matrix]
    return matrix


@given(seeds, st.integers(1, 5), st.integers(1, 6))
def test_sinkhorn_is_columns_then_rows(seed, streams, iterations):
    logits = np.random.default_rng(seed).normal(size=(2, streams, streams))
    output = sinkhorn(logits, iterations=iterations)
    for got, given_logits in zip(output, logits.tolist(), strict=True):
        np.testing.assert_allclose(got, plain_sinkhorn(given_logits, iterations), **EXACT)


@settings(max_examples=20)
@given(seeds, st.integers(1, 5))
def test_marginals_and_the_norm_bound(seed, streams):
    """Rows are exact; columns converge; then no vector grows, and the sum over streams is kept."""
    generator = np.random.default_rng(seed)
    matrix = sinkhorn(generator.normal(size=(streams, streams)), iterations=150)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, **EXACT)
    np.testing.assert_allclose(matrix.sum(axis=0), 1, rtol=0, atol=1e-9)
    assert (matrix > 0).all()
    assert np.linalg.norm(matrix, 2) <= 1 + 1e-9
    x = generator.normal(size=(streams, 3))
    np.testing.assert_allclose((matrix @ x).sum(axis=0), x.sum(axis=0), rtol=0, atol=1e-8)
    other = sinkhorn(generator.normal(size=(streams, streams)), iterations=150)
    np.testing.assert_allclose((matrix @ other).sum(axis=0), 1, rtol=0, atol=1e-8)


@settings(max_examples=20)
@given(seeds)
def test_adding_to_a_row_or_column_of_logits_changes_nothing_in_the_limit(seed):
    generator = np.random.default_rng(seed)
    logits, row, column = generator.normal(size=(3, 3)), generator.normal(size=3), generator.normal(size=3)
    moved = logits + row[:, None] + column
    left, right = (sinkhorn(x, iterations=150) for x in (logits, moved))
    np.testing.assert_allclose(left, right, rtol=0, atol=1e-8)


def test_far_logits_give_a_permutation():
    """Exponentials of ±1000 would overflow or vanish; in logarithms they do neither."""
    logits = np.array([[0.0, 1000.0, 0.0], [0.0, 0.0, 1000.0], [1000.0, 0.0, 0.0]])
    assert (sinkhorn(logits) == np.roll(np.eye(3), 1, axis=1)).all()
    assert (sinkhorn(1000 * np.eye(4)) == np.eye(4)).all()


@given(seeds, st.integers(1, 4))
def test_hyper_connection_stream_by_stream(seed, count):
    generator = np.random.default_rng(seed)
    streams, mixing = generator.normal(size=(2, count, 3)), generator.normal(size=(2, count, count))
    read, write = generator.normal(size=(2, count)), generator.normal(size=count)
    output = hyper_connection(streams, np.tanh, mixing=mixing, read=read, write=write)
    for token in range(2):
        inside = np.tanh(sum(read[token, s] * streams[token, s] for s in range(count)))
        for out in range(count):
            expected = sum(mixing[token, out, s] * streams[token, s] for s in range(count))
            expected = expected + write[out] * inside
            np.testing.assert_allclose(output[token, out], expected, **EXACT)


def test_one_stream_is_the_residual_connection():
    x = np.array([[1.0, -2.0]])
    output = hyper_connection(x, np.tanh, mixing=[[1.0]], read=[1.0], write=[1.0])
    assert (output == x + np.tanh(x)).all()


@given(seeds, st.integers(1, 5))
def test_equal_streams_are_the_residual_connection(seed, count):
    """Copies stay copies: rows of the mixing sum to one, and so do the reading weights."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(4, 3))
    streams = np.repeat(x[:, None], count, axis=1)
    output = hyper_connection(
        streams,
        np.tanh,
        mixing=sinkhorn(generator.normal(size=(count, count))),
        read=np.full(count, 1 / count),
        write=np.ones(count),
    )
    for s in range(count):
        np.testing.assert_allclose(output[:, s], x + np.tanh(x), **EXACT)


@given(seeds, st.integers(1, 3))
def test_coefficients_by_hand(seed, count):
    generator = np.random.default_rng(seed)
    streams = generator.normal(size=(2, count, 3))
    logits = count * (2 + count)
    weight, bias, scale = generator.normal(size=(3 * count, logits)), generator.normal(size=logits), [0.5, 1.5, 2.0]
    mixing, read, write = hyper_coefficients(streams, weight, bias, scale)
    for token in range(2):
        flat = [c for stream in streams[token].tolist() for c in stream]
        root = math.sqrt(math.fsum(c * c for c in flat) / len(flat) + 1e-6)
        values = [math.fsum(c / root * w for c, w in zip(flat, column, strict=True)) for column in weight.T]
        for s in range(count):
            logit = 0.5 * values[s] + bias[s]
            assert math.isclose(read[token, s], 1 / (1 + math.exp(-logit)), abs_tol=1e-12)
            logit = 1.5 * values[count + s] + bias[count + s]
            assert math.isclose(write[token, s], 2 / (1 + math.exp(-logit)), abs_tol=1e-12)
        rest = [2 * v + b for v, b in zip(values[2 * count :], bias[2 * count :], strict=True)]
        square = [rest[i * count : (i + 1) * count] for i in range(count)]
        np.testing.assert_allclose(mixing[token], plain_sinkhorn(square, 20), rtol=0, atol=1e-10)


STREAMS = np.ones((5, 2, 3))
WHOLE = {"mixing": np.eye(2), "read": [1.0, 1.0], "write": [1.0, 1.0]}


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: sinkhorn(np.ones((2, 3))), "logits must end in a square matrix, got shape (2, 3)"),
        (lambda: sinkhorn(np.ones((0, 0))), "logits must end in a square matrix, got shape (0, 0)"),
        (lambda: sinkhorn([1.0]), "logits must have at least 2 axes, got shape (1,)"),
        (lambda: sinkhorn([[np.inf]]), "logits must be finite, got inf at index (0, 0)"),
        (lambda: sinkhorn([[1.0]], iterations=0), "iterations must be an integer at least 1, got 0"),
        (
            lambda: hyper_connection(STREAMS, abs, **WHOLE | {"mixing": np.eye(3)}),
            "mixing must end in 2 by 2, one for each stream, got shape (3, 3)",
        ),
        (
            lambda: hyper_connection(STREAMS, abs, **WHOLE | {"read": [1.0]}),
            "read must end in 2, one for each stream, got shape (1,)",
        ),
        (
            lambda: hyper_connection(STREAMS, abs, **WHOLE | {"write": np.ones((4, 2))}),
            "streams and write must have leading axes that broadcast, got streams (5,), write (4,)",
        ),
        (
            lambda: hyper_connection(STREAMS, abs, **WHOLE | {"write": np.ones((4, 1, 2))}),
            "write must broadcast to the leading axes (5,), got (4, 1)",
        ),
        (
            lambda: hyper_connection(STREAMS, lambda x: x[0], **WHOLE),
            "sublayer must keep the shape (5, 3), got (3,)",
        ),
        (
            lambda: hyper_coefficients(STREAMS, np.ones((6, 7)), np.ones(8), np.ones(3)),
            "weight must have shape (6, 8), got (6, 7)",
        ),
        (
            lambda: hyper_coefficients(STREAMS, np.ones((6, 8)), np.ones(7), np.ones(3)),
            "bias must have shape (8,), got (7,)",
        ),
        (
            lambda: hyper_coefficients(STREAMS, np.ones((6, 8)), np.ones(8), 1.0),
            "scale must have shape (3,), got ()",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
