"""Expressions are typeset as written, and so that they cannot be read in another way."""

import math_core
import pytest

from archcards.evidence.algebra.expressions import parse
from archcards.evidence.algebra.typesetting import symbol_tex, to_tex

WRITTEN = {
    "a + (b + c)": r"a + \left(b + c\right)",
    "a - (b - c)": r"a - \left(b - c\right)",
    "a - b - c": "a - b - c",
    "(a + b) * c": r"\left(a + b\right) c",
    "a * (b * c)": r"a \left(b c\right)",
    "2 * 3": r"2 \cdot 3",
    "a * 2": r"a \cdot 2",
    "2 * (a / b)": r"2 \cdot \frac{a}{b}",
    "a * -b": r"a \left(-b\right)",
    "-a * b": r"\left(-a\right) b",
    "-(a + b)": r"-\left(a + b\right)",
    "(a + b) / (c * d)": r"\frac{a + b}{c d}",
    "(a / b)**2": r"\left(\frac{a}{b}\right)^{2}",
    "(a**b)**2": r"\left(a^{b}\right)^{2}",
    "a.T @ b": r"a^{\top} b",
    "(A @ B).T": r"\left(A B\right)^{\top}",
    "A[i]": "A_{i}",
    "A[i, j + 1]": "A_{i, j + 1}",
    "k_new[j].T": r"{k_{\mathrm{new}}}_{j}^{\top}",
    "sum(i, 0, n - 1, x[i])": r"\sum_{i=0}^{n - 1} x_{i}",
    "sum(i, 0, n, x[i] + 1)": r"\sum_{i=0}^{n} \left(x_{i} + 1\right)",
    "sum(i, 0, n, x[i]) * y": r"\left(\sum_{i=0}^{n} x_{i}\right) y",
    "2 * sum(i, 0, n, x[i]) * y": r"\left(2 \sum_{i=0}^{n} x_{i}\right) y",
    "y * sum(i, 0, n, x[i])": r"y \sum_{i=0}^{n} x_{i}",
    "prod(i, 1, n, a[i])": r"\prod_{i=1}^{n} a_{i}",
    "(j <= i) * x[j]": r"\left[j \le i\right] x_{j}",
    "exp(a - b)": "e^{a - b}",
    "exp(a / b)": r"\exp\left(\frac{a}{b}\right)",
    "exp(a)**2": r"\left(e^{a}\right)^{2}",
    "sqrt(d)": r"\sqrt{d}",
    "dot(a, b) * dot(c, d)": r"\left(a \cdot b\right) \left(c \cdot d\right)",
    "dot(a + b, c)": r"\left(a + b\right) \cdot c",
    "beta * outer(k, v - u)": r"\beta k \left(v - u\right)^{\top}",
    "outer(k, v).T": r"\left(k v^{\top}\right)^{\top}",
    "norm(x)": r"\left\lVert x \right\rVert",
    "eye(d) - diag(a)": r"I_{d} - \operatorname{diag}\left(a\right)",
    "hadamard(a, b) + ones(n)": r"a \odot b + \mathbf{1}_{n}",
    "concat(a, b)": r"\begin{pmatrix} a \\ b \end{pmatrix}",
    "[[a, -b], [b, a]]": r"\begin{pmatrix} a & -b \\ b & a \end{pmatrix}",
    "[a, b]": r"\begin{pmatrix} a \\ b \end{pmatrix}",
    "max(a, 0) - abs(b)": r"\max\left(a, 0\right) - \left|b\right|",
    "softmax(s)": r"\operatorname{softmax}\left(s\right)",
    "log(x) + sin(y) + cos(z)": r"\log\left(x\right) + \sin\left(y\right) + \cos\left(z\right)",
}


@pytest.mark.parametrize("source", WRITTEN)
def test_an_expression_is_typeset_as_written(source):
    assert to_tex(parse(source)) == WRITTEN[source]


@pytest.mark.parametrize("source", WRITTEN)
def test_what_is_typeset_is_tex_that_the_site_can_draw(source):
    drawn = math_core.LatexToMathML().convert_with_local_state(to_tex(parse(source)), displaystyle=True)
    assert drawn.startswith("<math")
    assert "merror" not in drawn


def test_a_symbol_may_have_tex_of_its_own():
    assert to_tex(parse("S + S[i]"), {"S": "S_{t-1}"}) == "S_{t-1} + {S_{t-1}}_{i}"


@pytest.mark.parametrize(
    ("name", "tex"),
    [("x", "x"), ("lambda_", r"\lambda"), ("x12", "x_{12}"), ("log_decay", r"\mathrm{log}_{\mathrm{decay}}"),
     ("alpha_t", r"\alpha_{t}"), ("W_0", "W_{0}")],
)  # fmt: skip
def test_names_become_letters_with_subscripts(name, tex):
    assert symbol_tex(name) == tex
