"""Points satisfy what is given, exactly and however steep it is."""

import numpy as np
import pytest

from archcards.evidence.algebra.expressions import Undefined
from archcards.evidence.algebra.witness import Point, floats, points, precise


def test_points_between_the_integers_lie_on_a_steep_line_whatever_the_start():
    """Newton's method reaches a line in one step from anywhere, if it knows the slope."""

    def off(point):
        return (1000 * point.values["x"] - point.values["y"]).ravel()

    found = list(points({"x": (1, 1), "y": (1, 1)}, set(), off, {"x", "y"}))
    pairs = [(point.values["x"].item(), point.values["y"].item()) for point in found]
    between = [(x, y) for x, y in pairs if not float(y).is_integer()]
    assert len(between) > 30
    np.testing.assert_allclose([1000 * x for x, _ in between], [y for _, y in between], atol=1e-9)


@pytest.mark.parametrize(("off", "some"), [(0.0, True), (9e-10, True), (1e-9, False), (1.0, False)])
def test_what_is_off_by_the_tolerance_or_more_satisfies_nothing(off, some):
    found = points({"x": (1, 1)}, set(), lambda _: np.array([off]), set())
    assert any(True for _ in found) == some


def test_a_start_that_satisfies_what_is_given_is_taken_as_it_is():
    """A sum's bounds have no meaning a little to the left and right of a point where they have one."""

    def defined_on_a_grid(point):
        if (abs(80 * point.values["x"] - np.round(80 * point.values["x"])) > 1e-9).any():
            raise Undefined("a sum needs integer bounds")
        return np.zeros(1)

    found = list(points({"x": (1, 1)}, set(), defined_on_a_grid, {"x"}))
    assert sum(not point.values["x"].item().is_integer() for point in found) > 30


def test_what_is_positive_is_never_zero_or_less():
    shapes = {"x": (2, 1), "y": (1, 1)}
    found = list(points(shapes, {"x"}, lambda _: np.zeros(1), set()))
    assert all((point.values["x"] > 0).all() for point in found)
    assert {-1, 0, 1} <= {point.values["y"].item() for point in found}


def test_a_point_is_told_in_the_order_of_the_symbols():
    values = {"x": np.array([[-1.5]]), "v": np.array([[1.0], [2.0]]), "A": np.array([[1.0, 2.0], [3.0, 4.25]])}
    assert Point(values).told({"A", "x", "v"}, ["v", "A", "b", "x"]) == "v = (1, 2), A = (1, 2; 3, 4.25), x = −1.5"


def test_a_sum_of_nothing_is_zero_and_one_of_less_than_nothing_is_none():
    for arithmetic in (floats(), precise()):
        assert arithmetic.sum_between("i", 2, 1, lambda i: i) == 0
        assert arithmetic.sum_between("i", 2, 4, lambda i: i * i) == 29
        for low, high in ((2, 0), (0.5, 2), (0, 1.5)):
            with pytest.raises(Undefined):
                arithmetic.sum_between("i", low, high, lambda i: i)


def test_powers_with_fifty_digits():
    arithmetic = precise()
    assert arithmetic.power(arithmetic.number(4), arithmetic.number(0.5)) == 2
    assert abs(arithmetic.power(2, arithmetic.number(0.5)) ** 2 - 2) < 1e-48
    assert arithmetic.power(2, 10) == 1024
    with pytest.raises(Undefined):
        arithmetic.power(-8, arithmetic.number(1 / 3))
