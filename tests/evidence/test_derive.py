"""Derivations of the book's kind are proved; false, special and undecidable steps are not."""

import re

import pytest

from archcards.evidence import CheckFailed
from archcards.evidence.algebra.cases import Case
from archcards.evidence.derive import derive
from archcards.evidence.record import recording

# Each is what a chapter needs: title, symbols, steps, options. All must pass.
PROOFS = {
    "causal prefix read": (
        {"s": ("n",), "V": ("n", "v")},
        [
            ("sum(j, 0, n - 1, (j <= i) * exp(s[j]) * V[j]) / sum(j, 0, n - 1, (j <= i) * exp(s[j]))", "masked row i"),
            ("sum(j, 0, i, exp(s[j]) * V[j]) / sum(j, 0, i, exp(s[j]))", "what is masked adds nothing"),
        ],
        {
            "sizes": {"n": 4, "v": 2, "i": range(4)},
            "control": ("sum(j, 0, i, exp(s[j]) * V[j]) / sum(j, 0, n - 1, exp(s[j]))", "masked after the softmax"),
        },
    ),
    "chunk offset": (
        {"s": ("T",)},
        [
            ("sum(j, 0, T - 1, (j <= P + i) * exp(s[j]))", "query i of a chunk stands at P + i"),
            ("sum(j, 0, P - 1, exp(s[j])) + sum(j, P, P + i, exp(s[j]))", "the prefix, then the chunk"),
        ],
        {
            "sizes": {"T": 5, "P": 3, "i": (0, 1)},
            "control": (1, "sum(j, 0, T - 1, (j <= i) * exp(s[j]))"),
        },
    ),
    "edges of a window": (
        {"T": (), "W": ()},
        [
            ("sum(i, 0, W - 1, i + 1) + sum(i, W, T - 1, W)", "the first W queries see all before them"),
            ("W * (W + 1) / 2 + W * (T - W)", "both sums"),
            ("W * T - W * (W - 1) / 2", "collect"),
        ],
        {"control": ("W * T", "forgets the corner")},
    ),
    "online softmax: merge": (
        {"a": ("n",), "b": ("n",), "M": (), "N": (), "R": ()},
        [
            (
                "exp(M - R) * sum(i, 0, n - 1, exp(a[i] - M)) + exp(N - R) * sum(i, 0, n - 1, exp(b[i] - N))",
                "each part is rescaled to the common reference",
            ),
            ("sum(i, 0, n - 1, exp(a[i] - R)) + sum(i, 0, n - 1, exp(b[i] - R))", "M and N cancel"),
            ("exp(-R) * (sum(i, 0, n - 1, exp(a[i])) + sum(i, 0, n - 1, exp(b[i])))", "take out the reference"),
        ],
        {
            "control": (
                1, "sum(i, 0, n - 1, exp(a[i] - M)) + sum(i, 0, n - 1, exp(b[i] - N))",
            ),
        },
    ),
    "online softmax: the merge is associative": (
        {"m1": (), "m2": (), "m3": (), "m12": (), "m23": (), "m": (), "l1": (), "l2": (), "l3": ()},
        [
            ("exp(m12 - m) * (exp(m1 - m12) * l1 + exp(m2 - m12) * l2) + exp(m3 - m) * l3", "left first"),
            ("exp(m1 - m) * l1 + exp(m2 - m) * l2 + exp(m3 - m) * l3", "m12 cancels"),
            ("exp(m1 - m) * l1 + exp(m23 - m) * (exp(m2 - m23) * l2 + exp(m3 - m23) * l3)", "right first"),
        ],
        {"control": ("exp(m1 - m) * l1 + exp(m2 - m23) * l2 + exp(m3 - m23) * l3", "not rescaled")},
    ),
    "cache of grouped heads": (
        {"B": (), "L": (), "H": (), "G": (), "T": (), "d": ()},
        [
            ("(2 * B * L * G * T * d) / (2 * B * L * H * T * d)", "grouped over full"),
            ("G / H", "all else cancels"),
        ],
        {"control": ("G / H / H", "divides by the query heads twice")},
    ),
    "rotary positions are relative": (
        {"x": (2,), "y": (2,), "s": (), "t": (), "f": ()},
        [
            (
                "([[cos(s * f), -sin(s * f)], [sin(s * f), cos(s * f)]] @ x).T"
                " @ ([[cos(t * f), -sin(t * f)], [sin(t * f), cos(t * f)]] @ y)",
                "rotated query and key",
            ),
            ("x.T @ ([[cos((t - s) * f), -sin((t - s) * f)], [sin((t - s) * f), cos((t - s) * f)]] @ y)", "angles add"),
        ],
        {
            "control": (
                "x.T @ ([[cos((t + s) * f), -sin((t + s) * f)], [sin((t + s) * f), cos((t + s) * f)]] @ y)",
                "angles of the wrong sign",
            ),
        },
    ),
    "delta rule: a unit key is overwritten": (
        {"S": ("d", "v"), "k": ("d",), "t": ("v",)},
        [
            ("(S + outer(k, t - S.T @ k)).T @ k", "read after the write"),
            ("S.T @ k + (t - S.T @ k) * dot(k, k)", "distribute"),
            ("t", "the key has length one"),
        ],
        {"given": ["k.T @ k == 1"], "control": (1, "S.T @ k + t * dot(k, k)")},
    ),
    "delta rule: an orthogonal read is untouched": (
        {"S": ("d", "v"), "k": ("d",), "p": ("d",), "t": ("v",), "beta": ()},
        [
            ("(S + beta * outer(k, t - S.T @ k)).T @ p", "read p after a write at k"),
            ("S.T @ p + beta * dot(k, p) * (t - S.T @ k)", "distribute"),
            ("S.T @ p", "k and p are orthogonal"),
        ],
        {
            "given": ["dot(k, p) == 0", "dot(k, k) == 1", "dot(p, p) == 1"],
            "control": ("(1 - beta) * S.T @ p", "decays every key"),
        },
    ),
    "Kimi delta attention: affine form": (
        {"S": ("d", "v"), "k": ("d",), "t": ("v",), "a": ("d",), "beta": (), "D": ("d", "v")},
        [
            ("D + beta * outer(k, t - D.T @ k)", "decay, then correct"),
            ("(eye(d) - beta * outer(k, k)) @ D + beta * outer(k, t)", "collect the memory"),
            ("(eye(d) - beta * outer(k, k)) @ diag(a) @ S + beta * outer(k, t)", "D is the decayed memory"),
        ],
        {
            "given": ["D == diag(a) @ S"],
            "control": ("diag(a) @ (eye(d) - beta * outer(k, k)) @ S + beta * outer(k, t)", "decays after the read"),
        },
    ),
    "latent attention: absorption": (
        {"q": ("d",), "U": ("d", "c"), "z": ("c",)},
        [
            ("q.T @ (U @ z)", "the key is projected up"),
            ("(U.T @ q).T @ z", "the query is projected down instead"),
        ],
        {"sizes": {"d": 3, "c": 3}, "control": ("(U @ q).T @ z", "not transposed")},
    ),
    "linear attention: the recurrence": (
        {"K": ("n", "d"), "V": ("n", "v"), "q": ("d",)},
        [
            ("sum(i, 0, t, (q.T @ K[i]) * V[i])", "every pair up to t"),
            ("sum(i, 0, t, outer(K[i], V[i])).T @ q", "the query comes out"),
            ("(sum(i, 0, t - 1, outer(K[i], V[i])) + outer(K[t], V[t])).T @ q", "the last term alone"),
        ],
        {
            "sizes": {"n": 3, "d": 2, "v": 2, "t": (0, 1, 2)},
            "control": ("sum(i, 0, t, outer(K[i], V[i])) @ q", "the memory the other way round"),
        },
    ),
    "linear attention: decayed": (
        {"a": ("n",), "s": ("n",)},
        [
            ("sum(i, 0, 2, prod(j, i + 1, 2, a[j]) * s[i])", "each write decays until now"),
            ("a[2] * (a[1] * s[0] + s[1]) + s[2]", "as a recurrence"),
        ],
        {"sizes": {"n": 3}, "control": ("a[2] * (a[1] * (a[0] * s[0]) + s[1]) + s[2]", "decays what is written now")},
    ),
    "speculative decoding reproduces the target": (
        {"p": ("n",), "q": ("n",), "r": ()},
        [
            ("min(p[0], q[0]) + r * (max(p[0] - q[0], 0) / sum(i, 0, n - 1, max(p[i] - q[i], 0)))", "accept, or resample"),
            ("min(p[0], q[0]) + max(p[0] - q[0], 0)", "the rejected mass is the mass of the residual"),
            ("p[0]", "both cases of the minimum"),
        ],
        {
            "given": ["r == 1 - sum(i, 0, n - 1, min(p[i], q[i]))", "sum(i, 0, n - 1, p[i]) == 1"],
            "positive": ["p", "q"],
            "control": ("q[0]", "keeps the draft"),
        },
    ),
    "zero-order hold of a scalar state": (
        {"a": (), "D": (), "b": (), "h": ()},
        [
            ("exp(2 * D * a) * h + (exp(2 * D * a) - 1) / a * b", "one step of twice the length"),
            ("exp(D * a) * (exp(D * a) * h + (exp(D * a) - 1) / a * b) + (exp(D * a) - 1) / a * b", "two steps"),
        ],
        {"control": ("exp(D * a) * (exp(D * a) * h + D * b) + D * b", "Euler")},
    ),
    "half exponents meet whole ones": (
        {"x": (), "y": ()},
        [("exp(x / 2 + y / 3) ** 6", "start"), ("exp(3 * x) * exp(y) ** 2", "the exponents add")],
        {"control": ("exp(3 * x) * exp(y)", "one exponent too few")},
    ),
    "decimals are exact": (
        {"x": ()},
        [("0.1 * x + 0.2 * x", "start"), ("0.3 * x", "three tenths")],
        {"control": ("0.31 * x", "not quite")},
    ),
    "a half angle": (
        {"x": ()},
        [("1 - cos(x)", "start"), ("2 * sin(x / 2)**2", "the double angle")],
        {"control": ("2 * cos(x / 2)**2", "the other one")},
    ),
    "scores have unit variance": (
        {"d": (), "x": ()},
        [("(x / sqrt(d)) ** 2 * d", "start"), ("x**2", "the root is squared")],
        {"positive": ["d"], "control": ("x**2 / d", "a root too many")},
    ),
    "a normalised key has length one": (
        {"x": ("d",)},
        [("dot(x / norm(x), x / norm(x))", "start"), ("dot(x, x) / norm(x)**2", "take out"), ("1", "by definition")],
        {"control": (1, "dot(x, x) / norm(x)")},
    ),
    "the loss at the compute-optimal size": (
        {"A": (), "N": (), "alpha": ()},
        [("A / N**alpha", "start"), ("exp(log(A) - alpha * log(N))", "in logarithms")],
        {"positive": ["A", "N"], "control": ("exp(log(A) + alpha * log(N))", "the wrong sign")},
    ),
    "softmax ignores a shift": (
        {"s": ("n",), "c": ()},
        [("softmax(s + c * ones(n))", "start"), ("softmax(s)", "exp(c) cancels")],
        {"control": ("exp(c) * softmax(s)", "it does not")},
    ),
    "scores over two parts of the channels add": (
        {"a": ("d",), "b": ("r",), "x": ("d",), "y": ("r",)},
        [("dot(concat(a, b), concat(x, y))", "one score"), ("dot(a, x) + dot(b, y)", "the two parts")],
        {"control": ("dot(a, x) * dot(b, y)", "multiplied")},
    ),
    "a zero-one mask squares to itself": (
        {"m": ("n",), "x": ("n",)},
        [("dot(hadamard(m, x), hadamard(m, x))", "start"), ("dot(m, hadamard(x, x))", "m is 0 or 1")],
        {"given": ["hadamard(m, m) == m"], "control": ("dot(x, x)", "forgets the mask")},
    ),
    "a root of what is known": (
        {"k": ("d",), "c": ()},
        [("c * norm(k)", "start"), ("c", "the key has length one")],
        {"given": ["dot(k, k) == 1"], "control": ("-c", "the other root")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", PROOFS)
def test_the_derivations_of_the_book_are_proved(title):
    symbols, steps, options = PROOFS[title]
    result = derive(title, symbols, steps, **options)
    assert result.passed
    assert [step.status for step in result.steps] == ["start"] + ["proved"] * (len(steps) - 1)
    assert result.control.status == "refuted"
    assert result.control.witness


def on_a_page(*args, **options):
    with recording("docs/x.md") as recorder:
        derive(*args, **options)
    [event] = recorder.events
    return event


FALSE = {
    "true at 0 and 1 only": ({"x": ()}, "x**2", "x", {}),
    "true for positive numbers only": ({"x": ()}, "abs(x)", "x", {}),
    "the root of a square": ({"x": ()}, "sqrt(x**2)", "x", {}),
    "true for scalars only": ({"A": ("d", "d"), "B": ("d", "d")}, "A @ B", "B @ A", {}),
    "true for symmetric matrices only": ({"A": ("d", "d")}, "A.T", "A", {}),
    "true at size two only": ({"x": ("d",)}, "sum(i, 0, d - 1, x[i])", "x[0] + x[1]", {}),
    "true only without what is given": ({"x": (), "y": ()}, "x * y", "x", {"given": ["x * y == 2"]}),
    "true for unit keys only": ({"k": ("d",)}, "dot(k, k)", "norm(k)", {}),
    "the logarithm of a sum": ({"a": (), "b": ()}, "log(a + b)", "log(a) + log(b)", {"positive": ["a", "b"]}),
    "exp of a product": ({"a": (), "b": ()}, "exp(a * b)", "exp(a) * exp(b)", {}),
    "a minimum taken for its first": ({"a": (), "b": ()}, "min(a, b)", "a", {}),
    "a decimal taken for another": ({"x": ()}, "0.5 * x + exp(1 / 3)", "x / 3 + exp(0.5)", {}),
    "fractions alone": ({"x": ()}, "1 / 3", "0.5", {}),
    "far below the other terms": ({"x": ()}, "1000000 * x", "1000000 * x + 2 * x", {"given": ["x**2 == 2"]}),
}


@pytest.mark.parametrize("name", FALSE)
def test_a_false_step_is_refuted_by_a_counterexample(name):
    symbols, start, false, options = FALSE[name]
    event = on_a_page("t", symbols, [(start, "start"), (false, "so they say")], control=(1, "0"), **options)
    assert not event.passed
    assert event.steps[1].status == "refuted"
    assert "before" in event.steps[1].witness
    assert "is refuted" in event.reasons[0]


def test_what_is_defined_may_be_negative_unless_it_is_declared_positive():
    symbols, lines = {"x": (), "u": ()}, [("u + x", "start"), ("x - x**2 - 1", "insert u")]
    options = {"given": ["u == -x**2 - 1"], "control": ("x + x**2 + 1", "loses the sign")}
    assert on_a_page("t", symbols, lines, positive=["x"], **options).passed
    never = on_a_page("t", symbols, lines, positive=["x", "u"], **options)
    assert [step.status for step in never.steps] == ["start", "undecided"]
    lines, options = [("u + x", "start"), ("x - x**2", "insert u")], {"given": ["u == -x**2"], "control": ("x + x**2", "the sign")}
    assert on_a_page("t", symbols, lines, **options).passed
    zero = on_a_page("t", symbols, lines, positive=["u"], **options)  # which is not positive either
    assert [step.status for step in zero.steps] == ["start", "undecided"]


def test_a_counterexample_gives_both_lines_in_their_order():
    event = on_a_page("t", {"x": ()}, [("x", "start"), ("3 * x + 7", "so they say")], control=(1, "x + 1"))
    for witness, after in ((event.steps[1].witness, lambda x: 3 * x + 7), (event.control.witness, lambda x: x + 1)):
        x, left, right = re.fullmatch("x = (.+): (.+) before, (.+) after", witness.replace("−", "-")).groups()
        assert (float(left), float(right)) == (float(x), after(float(x)))


def test_a_failed_derivation_raises_outside_a_page():
    with pytest.raises(CheckFailed, match=r"squares: the step 'x' is refuted: x = .* before, .* after"):
        derive("squares", {"x": ()}, [("x**2", "start"), ("x", "no")], control=("2 * x", "no"))


UNDECIDED = {
    "nothing satisfies what is given": ({"x": ()}, "x", "x + 1", {"given": ["x**2 == -1"]}),
    "a contradiction is given": ({"x": ()}, "x", "2 * x", {"given": ["x == x + 1"]}),
    "nowhere defined": ({"x": ()}, "1 / (x - x)", "2 / (x - x)", {}),
    "not a polynomial identity": ({"x": ()}, "sqrt(x**2 + 2 * x + 1)", "abs(x + 1)", {}),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_is_undecided_does_not_pass(name):
    symbols, start, end, options = UNDECIDED[name]
    event = on_a_page("t", symbols, [(start, "start"), (end, "perhaps")], control=(1, "17"), **options)
    assert event.kind == "failure" or not event.passed
    if event.kind == "derivation":
        assert event.steps[1].status == "undecided"
        assert "is undecided" in event.reasons[0]


def test_what_is_undecided_says_at_which_sizes():
    left, right = "sqrt(x**2 + 2 * x + 1)", "abs(x + 1)"
    for shape, sizes, at in ((("n",), {"n": 2}, " at n = 2,"), ((), {}, " decide it,")):
        told = "sum(i, 0, n - 1, x[i])" if shape else "x"
        lines = [(part.replace("x", told), word) for part, word in ((left, "start"), (right, "perhaps"))]
        event = on_a_page("t", {"x": shape}, lines, control=(1, "17"), sizes=sizes)
        assert event.steps[1].status == "undecided" and at in event.steps[1].witness


def test_rounding_is_no_counterexample():
    terms = " * ".join(f"exp({x} * {y})" for x in "abc" for y in "abc")
    event = on_a_page(
        "t", {"a": (), "b": (), "c": ()}, [(terms, "start"), ("exp((a + b + c)**2)", "the exponents add")],
        control=(1, f"exp((a + b + c)**2) * (1 - ({terms}) / exp((a + b + c)**2) + 1)"),
    )  # fmt: skip
    assert event.steps[1].status == "proved"
    assert "is true" in event.reasons[0]


def test_a_failed_derivation_in_a_notebook_shows_its_lines():
    event = on_a_page("t", {"x": ()}, [("x**2", "start"), ("x", "no")], control=(1, "2 * x"))
    assert event._repr_markdown_() == (
        r"$$\begin{aligned}& x^{2} && \text{start} \\ & = x && \text{no}\end{aligned}$$"
    )


class TestControl:
    STEPS = (("(x + 1)**2", "start"), ("x**2 + 2 * x + 1", "multiply out"))

    def test_a_true_control_fails_the_derivation(self):
        event = on_a_page("t", {"x": ()}, self.STEPS, control=("1 + 2 * x + x**2", "not a mistake"))
        assert [step.status for step in event.steps] == ["start", "proved"]
        assert not event.passed
        assert "the control '1 + 2 * x + x**2' is true" in event.reasons[0]

    def test_it_takes_the_place_of_the_step_it_names(self):
        steps = [*self.STEPS, ("x * (x + 2) + 1", "factor")]
        event = on_a_page("t", {"x": ()}, steps, control=(1, "x**2 + 1"))
        assert event.passed
        assert (event.control_of, event.control.source) == (1, "x**2 + 1")

    @pytest.mark.parametrize(
        ("control", "reason"),
        [
            (None, "control must be"),
            ("x", "control must be"),
            ((0, "x"), "replaces step 0"),
            ((2, "x"), "replaces step 2, and there are 1 to 1"),
            ((1, "x**2 + 2*x + 1"), "the step itself"),
            (("x",), "control must be"),
            (("x", ""), "needs a reason"),
        ],
    )
    def test_what_is_no_control_is_refused(self, control, reason):
        with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
            derive("t", {"x": ()}, self.STEPS, control=control)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"title": ""}, "title must say"),
        ({"symbols": {}}, "symbols must map"),
        ({"symbols": {"x": "d"}}, "the shape of x"),
        ({"symbols": {"x": ("d", "d", "d")}}, "the shape of x"),
        ({"symbols": {"exp": ()}}, "no function"),
        ({"symbols": {"x": (), "y": ("x",)}}, "a symbol and a size"),
        ({"steps": [("x", "start")]}, "at least one step"),
        ({"steps": [("x", "start"), ("x", "again")]}, "repeats the line before"),
        ({"steps": [("x", "start"), ("x + 0", " ")]}, "needs a reason"),
        ({"steps": [("x", "start"), ("y", "r")]}, "symbol y is not declared"),
        ({"steps": [("x", "start"), ("x +", "r")]}, "no expression"),
        ({"steps": [("x", "start"), ("x if x else x", "r")]}, "has no meaning"),
        ({"steps": [("x", "start"), ("(lambda: x)()", "r")]}, "no function lambda"),
        ({"steps": [("x", "start"), ("x.__class__", "r")]}, "has no meaning"),
        ({"steps": [("x", "start"), ("open(x)", "r")]}, "no function open"),
        ({"steps": [("x", "start"), ("[x, 1]", "r")]}, "cannot equal"),
        ({"steps": [("x", "start"), ("x[1]", "r")]}, "outside"),
        ({"steps": [("x", "start"), ("x[-1]", "r")]}, "outside"),
        ({"steps": [("x", "start"), ("[[1, 2], [3, 4]][0, 1, 1]", "r")]}, "one index or two"),
        ({"steps": [("x", "start"), ("x + [1, 2]", "r")]}, "cannot be added"),
        ({"steps": [("x", "start"), ("[1, 2] @ [1, 2]", "r")]}, "cannot be multiplied"),
        ({"steps": [("x", "start"), ("[1, 2] * [1, 2]", "r")]}, "takes a scalar"),
        ({"steps": [("x", "start"), ("sum(x, 0, 1, x)", "r")]}, "already a symbol"),
        ({"steps": [("x", "start"), ("sum(i, 0, x, exp(i))", "r")]}, "polynomial in i"),
        ({"steps": [("x", "start"), ("'x'", "r")]}, "no number"),
        ({"steps": [(3, "start"), ("x", "r")]}, "an expression must be text, and it is 3"),
        ({"steps": [("x", "start"), "x"]}, "a step is an expression and its reason, and it is 'x'"),
        ({"steps": [("x", "start"), ("1 / [x, 1]", "r")]}, "/ takes a scalar below, and its shape is 2 × 1"),
        ({"steps": [("x", "start"), ("[x, 1] ** 2", "r")]}, r"\*\* takes scalars"),
        ({"steps": [("x", "start"), ("2 ** [x, 1]", "r")]}, r"\*\* takes scalars"),
        ({"steps": [("x", "start"), ("x % 2", "r")]}, "the operator Mod has no meaning"),
        ({"steps": [("x", "start"), ("~x", "r")]}, "'~x' has no meaning"),
        ({"steps": [("x", "start"), ("[[1, 2], [x]]", "r")]}, "the rows of a matrix differ in length"),
        ({"steps": [("x", "start"), ("[[1, [x, 1]], [1, 2]]", "r")]}, "a matrix holds scalars: stack vectors"),
        ({"steps": [("x", "start"), ("dot(x)", "r")]}, "dot takes 2 of them, and there are 1"),
        ({"steps": [("x", "start"), ("exp(x, x)", "r")]}, "exp takes 1 of them, and there are 2"),
        ({"steps": [("x", "start"), ("concat()", "r")]}, "concat takes 1 of them, and there are 0"),
        ({"steps": [("x", "start"), ("sum(x)", "r")]}, "sum takes an index, two bounds and a term"),
        ({"steps": [("x", "start"), ("prod(i, 1, 2, [i, x])", "r")]}, "prod takes scalars"),
        ({"steps": [("x", "start"), ("prod(i, 1, x, i)", "r")]}, "the bounds of prod must be integers"),
        ({"steps": [("x", "start"), ("ones(0)", "r")]}, "a size must be positive, and it is 0"),
        ({"steps": [("x", "start"), ("hadamard([x, 1], [x, 1, 2])", "r")]}, "hadamard takes equal shapes, and they are 2 × 1"),
        ({"steps": [("x", "start"), ("dot([[1, x], [x, 1]], x)", "r")]}, "dot takes vectors, and the shape is 2 × 2"),
        ({"steps": [("x", "start"), ("sum(i, [1, x], 2, i)", "r")]}, "a bound must be a scalar, and its shape is 2 × 1"),
        ({"steps": [("x", "start"), ("ones(x)", "r")]}, "must be an integer at the stated sizes"),
        ({"steps": [("x", "start"), ("x + 1 / 0", "r")]}, "a division by zero|is undecided|divides by zero"),
        ({"symbols": {"x": (), "u": ("d",)}, "given": ["u == x"]}, "u is declared .* and defined with shape"),
        ({"given": "x == 1"}, "list of equations"),
        ({"given": ["x"]}, "an equation with =="),
        ({"given": ["x < 1"]}, "an equation with =="),
        ({"sizes": {"x": 2}}, "no symbol"),
        ({"sizes": {"d": 1.5}}, "the size d must be"),
        ({"sizes": {"d": []}}, "the size d must be"),
        ({"sizes": {"d": -1}}, "the size d must be"),
        ({"sizes": {"d": range(20)}}, "at most 16"),
        ({"positive": ["y"]}, "positive must list"),
        ({"tex": {"y": "z"}}, "no symbol: y"),
    ],
)  # fmt: skip
def test_what_means_nothing_is_refused_in_one_line(options, reason):
    sound = {"title": "t", "symbols": {"x": ()}, "steps": [("2 * x", "start"), ("x + x", "so")], "control": ("x", "m")}
    with pytest.raises(ValueError, match=reason) as caught:
        derive(**sound | options)
    assert "\n" not in str(caught.value)
    event = on_a_page(**sound | options)
    assert event.kind == "failure"


def test_sizes_are_stated_and_each_is_proved():
    result = derive(
        "t", {"A": ("d", "v"), "x": ("v",)}, [("(A @ x).T", "start"), ("x.T @ A.T", "transposed")],
        control=("2 * x.T @ A.T", "twice"),
    )  # fmt: skip
    assert result.sizes == ("d = 2, v = 3", "d = 3, v = 2")
    stated = derive(
        "t", {"x": ("d",)}, [("dot(x, x) / d", "start"), ("dot(x / d, x)", "inside")],
        sizes={"d": (2, 5)}, control=("dot(x / d, x / d)", "twice"),
    )  # fmt: skip
    assert stated.sizes == ("d = 2", "d = 5")


def test_entries_rows_and_a_plus_sign():
    """What an index takes out of a matrix, and that a sign that changes nothing changes nothing."""
    steps = [("[[a, b], [c, a]][0, 1] + [[a, b], [c, a]][1, 0]", "start"), ("+b + c", "the entries off the diagonal")]
    symbols = {"a": (), "b": (), "c": ()}
    assert derive("t", symbols, steps, control=("2 * a", "those on it"))
    rows = [("[[a, b], [c, a]][1]", "start"), ("[c, a]", "the second row, as a column")]
    assert derive("t", symbols, rows, control=("[b, a]", "the second column"))
    powers = [("2**3 * a + 2**-2 * b", "start"), ("8 * a + b / 4", "the powers")]
    assert derive("t", symbols, powers, control=("6 * a + b / 4", "times, not to the power"))
    zero = [("a * [b, c] - a * [b, c]", "start"), ("0", "nothing is left, whatever its shape")]
    assert derive("t", symbols, zero, control=("[a, 0]", "something"))


def test_it_is_the_same_each_time():
    one, two = (
        on_a_page("t", {"k": ("d",)}, [("dot(k, k)", "start"), ("2", "no")], given=["dot(k, k) == 1"], control=("3", "m"))
        for _ in range(2)
    )
    assert one.to_json() == two.to_json()


def test_what_is_defined_is_typeset_and_stands_for_its_expression():
    result = derive(
        "t", {"u": ("v",), "S": ("d", "v"), "k": ("d",), "t": ("v",)},
        [("S + outer(k, u)", "write the error"), ("S + outer(k, t) - outer(k, S.T @ k)", "u is the error")],
        given=["u == t - S.T @ k"], tex={"S": "S_{t-1}"}, control=("S + outer(k, t)", "no error"),
    )  # fmt: skip
    assert result.given == (r"u = t - S_{t-1}^{\top} k",)
    assert {s.name: s.tex for s in result.symbols}["S"] == "S_{t-1}"


@pytest.mark.parametrize(("points", "status"), [(2, "undecided"), (3, "proved")])
def test_a_step_is_compared_at_three_points_at_least(monkeypatch, points, status):
    refuted = Case.refuted

    def at_so_many(case, before, after):
        witness, _ = refuted(case, before, after)
        return witness, points

    monkeypatch.setattr(Case, "refuted", at_so_many)
    with recording("docs/x.md"):
        result = derive("a square", {"x": ()}, [("(x + 1)**2", "a square"), ("x**2 + 2 * x + 1", "opened")], control=(1, "x**2 + 1"))
    assert [step.status for step in result.steps] == ["start", status]


@pytest.mark.parametrize("shape", [(0,), (-1,), ("a-b",), (1.5,), ("n", 0), (True, "n", "m"), ["n"], "n"])
def test_a_shape_is_of_names_and_positive_numbers(shape):
    with pytest.raises(ValueError, match="the shape of x is"):
        derive("a square", {"x": shape}, [("x + x", "start"), ("2 * x", "sum")], control=(1, "3 * x"))
