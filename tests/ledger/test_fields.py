"""One field after another: what each accessor takes, what it gives for absent and null, what it refuses."""

import ast
import json
import re
from pathlib import Path

import pytest

import archcards.ledger.families
from archcards.ledger import UnsupportedConfig, read_config
from archcards.ledger.families import READERS
from archcards.ledger.fields import Fields, shown

NULL, ABSENT = {"x": None}, {}
LARGEST_SIZE, MOST_LAYERS = 10**12, 2_000


def of(value):
    return Fields({"x": value})


@pytest.mark.parametrize(
    ("ask", "taken", "absent", "null"),
    [
        (lambda f: f.size("x", 7), {1: 1, LARGEST_SIZE: LARGEST_SIZE}, 7, 7),
        (lambda f: f.size("x", 7, null=9), {3: 3}, 7, 9),
        (lambda f: f.size("x", 7, null=0), {3: 3}, 7, 0),
        (lambda f: f.size("x", least=0, most=5, default=2), {0: 0, 5: 5}, 2, 2),
        (lambda f: f.maybe("x"), {1: 1, LARGEST_SIZE: LARGEST_SIZE}, None, None),
        (lambda f: f.maybe("x", least=0, most=3), {0: 0, 3: 3}, None, None),
        (lambda f: f.layers("x", 4), {1: 1, MOST_LAYERS: MOST_LAYERS}, 4, 4),
        (lambda f: f.flag("x", True), {True: True, False: False}, True, False),
        (lambda f: f.flag("x", False), {True: True}, False, False),
        (lambda f: f.number("x", 0.5), {2: 2, -1.25: -1.25}, 0.5, 0.5),
        (lambda f: f.text("x", "silu"), {"gelu": "gelu", "": ""}, "silu", "silu"),
        (lambda f: f.text("x", None, ["a", "b"]), {"b": "b"}, None, None),
        (lambda f: f.only("x", 1, "one"), {1: None, "one": None}, None, None),
        (lambda f: f.items("x"), {(): [], (1, "b"): [1, "b"]}, None, None),
        (lambda f: f.items("x", 2), {(1, "b"): [1, "b"]}, None, None),
        (lambda f: f.kinds("x", 2, ["a", "b"]), {("a", "b"): ["a", "b"]}, None, None),
        (lambda f: f.sizes("x"), {(0, LARGEST_SIZE): [0, LARGEST_SIZE]}, None, None),
        (lambda f: f.sizes("x", 1, least=2, most=3), {(2,): [2], (3,): [3]}, None, None),
        (lambda f: f.nested("x"), {}, None, None),
    ],
)
def test_what_is_taken_and_what_absent_and_null_give(ask, taken, absent, null):
    for value, found in taken.items():
        assert ask(of(value)) == found and type(ask(of(value))) is type(found)
    assert ask(Fields(ABSENT)) == absent
    assert ask(Fields(NULL)) == null


@pytest.mark.parametrize(
    ("ask", "values", "expected"),
    [
        (lambda f: f.size("x"), [0, -1, True, False, 1.0, "1", [1]], "a whole number of at least 1"),
        (lambda f: f.size("x"), [None], "a whole number of at least 1"),
        (lambda f: f.size("x", 7, least=4), [3, True, "5"], "a whole number of at least 4"),
        (lambda f: f.size("x"), [LARGEST_SIZE + 1], f"a whole number of at least 1 and at most {LARGEST_SIZE}"),
        (lambda f: f.maybe("x", most=3), [4], "a whole number of at least 1 and at most 3"),
        (lambda f: f.maybe("x", least=0), [-1, True, 0.0], "a whole number of at least 0"),
        (lambda f: f.layers("x"), [MOST_LAYERS + 1], f"a whole number of at least 1 and at most {MOST_LAYERS}"),
        (lambda f: f.flag("x", True), [0, 1, "true", []], "true or false"),
        (lambda f: f.number("x", 1), [True, False, "1", [1]], "a number"),
        (lambda f: f.text("x"), [1, True, ["a"]], "a string"),
        (lambda f: f.text("x", None, ["a", "b"]), ["c", "", 1], "one of a, b"),
        (lambda f: f.only("x", 1, "one"), [2, True, 1.0, "1"], "1 or 'one'"),
        (lambda f: f.only("x"), [2], "nothing"),
        (lambda f: f.only("x", False, because="no bias"), [True, 0], "false (no bias)"),
        (lambda f: f.items("x"), ["ab", 1, {}], "a list"),
        (lambda f: f.items("x", 2), ["ab"], "a list of 2 items"),
        (lambda f: f.items("x", 2), [[1], [1, 2, 3], []], "a list of 2 items"),
        (lambda f: f.items("x", 0), [[1]], "a list of 0 items"),
        (lambda f: f.nested("x"), [1, [], "a"], "an object"),
    ],
)
def test_what_is_refused_names_the_field_what_was_expected_and_what_came(ask, values, expected):
    for value in values:
        with pytest.raises(UnsupportedConfig) as caught:
            ask(of(value))
        assert str(caught.value) == f"x: expected {expected}, came {shown(value)}"


def test_an_absent_size_without_a_default_is_refused():
    with pytest.raises(UnsupportedConfig, match="^x: expected a whole number of at least 1, came nothing$"):
        Fields(ABSENT).size("x")


@pytest.mark.parametrize(
    ("ask", "value", "message"),
    [
        (lambda f: f.kinds("x", 3, iter("ab")), ["a", "b", "c"], r"x\[2\]: expected one of a, b, came 'c'"),
        (lambda f: f.kinds("x", 3, "ab"), ["a", 1, "b"], r"x\[1\]: expected one of a, b, came 1"),
        (lambda f: f.sizes("x"), [1, True], r"x\[1\]: expected a whole number from 0 to 1000000000000, came true"),
        (lambda f: f.sizes("x"), ["1"], r"x\[0\]: expected a whole number from 0 to 1000000000000, came '1'"),
        (lambda f: f.sizes("x", most=3), [3, 4], r"x\[1\]: expected a whole number from 0 to 3, came 4"),
        (lambda f: f.sizes("x", least=1), [1, 0], r"x\[1\]: expected a whole number from 1 to .*, came 0"),
        (lambda f: f.sizes("x"), [1.0], r"x\[0\]: expected a whole number .*, came 1.0"),
    ],
)
def test_what_is_refused_in_a_list_names_its_place(ask, value, message):
    with pytest.raises(UnsupportedConfig, match=f"^{message}$"):
        ask(of(value))


def test_of_several_names_the_one_in_use_and_they_must_agree():
    assert Fields({"b": 1, "c": 1}).first("a", "b", "c") == "b"
    assert Fields({"a": None, "b": 1}).first("a", "b") == "b"
    assert Fields({"b": None}).first("a", "b") == "b"
    assert Fields({}).first("a", "b") == "a"
    with pytest.raises(UnsupportedConfig, match="^c: expected the same value as b, 1, came 2$"):
        Fields({"b": 1, "c": 2}).first("a", "b", "c")


def test_a_divisor_must_divide():
    assert Fields({"x": 4}).divides("x", 4, 12, "the width") == 3
    with pytest.raises(UnsupportedConfig, match="^x: expected a divisor of the width, 13, came 4$"):
        Fields({"x": 4}).divides("x", 4, 13, "the width")


def test_a_nested_object_tells_its_path_and_shares_the_notes():
    outer = Fields({"a": {"b": {"c": 0}}})
    inner = outer.nested("a").nested("b")
    inner.note("seen")
    inner.note("seen")
    assert outer.notes == ["seen"] and "c" in inner and "b" not in inner
    with pytest.raises(UnsupportedConfig, match=r"^a\.b\.c: expected a whole number of at least 1, came 0$"):
        inner.size("c")


def test_a_name_that_cannot_be_printed_or_is_long_is_shown_as_text():
    assert Fields({}).where("a" * 60) == "a" * 60
    assert Fields({}).where("a" * 61) == f"'{'a' * 56}..."
    assert Fields({}).where("a\nb") == r"'a\nb'"


def test_values_are_shown_as_json_spells_them_on_one_short_line():
    for value, text in (
        (None, "null"), (True, "true"), (False, "false"), (0, "0"), ("a\n", r"'a\n'"), ({}, "an object of 0"),
        ([1], "a list of 1"), ((1, 2), "a list of 2"), (2**200 - 1, f"{2**200 - 1}"[:57] + "..."),
        (2**200, "an integer of 201 bits"), ("a" * 58, repr("a" * 58)), ("a" * 59, "'" + "a" * 56 + "..."),
    ):  # fmt: skip
        assert shown(value) == text


def test_what_nobody_asked_for_is_noted_or_refused_at_the_end():
    asked = Fields({name: 1 for name in "abcd"} | {"_hidden": 1, "own": 2})
    asked.size("a"), asked.skip("b"), asked.first("c", "d")
    asked.finish("own")
    assert not asked.notes
    for empty in (None, False, [], {}, ""):
        left = Fields({"hidden_layers_of_something": empty})
        left.finish()
        assert not left.notes
    for value in (0, True, "on", [0]):
        with pytest.raises(UnsupportedConfig, match=re.escape("x.num_heads_of_it: expected no such field")):
            Fields({"num_heads_of_it": value}, "x").finish()
    left = Fields({f"q{n}": n for n in range(7)})
    left.finish()
    assert left.notes == ["not read, taken to change no count: q0, q1, q2, q3, q4, q5 and 1 more"]


# Fields that a family knows and that count for nothing

FAMILIES = Path(archcards.ledger.families.__file__).parent
LIBRARY = json.loads(Path(__file__).with_name("library_counts.json").read_text("utf-8"))


def passed_over():
    """The fields that a family's reader passes over by name, each with a file that lacks it."""
    files = {case["config"]["model_type"]: case["config"] for case in LIBRARY}
    for model_type, where in READERS.items():
        module, reader = where.split(":")
        for node in ast.walk(ast.parse((FAMILIES / f"{module}.py").read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == reader and model_type in files:
                for call in ast.walk(node):
                    if isinstance(call, ast.Call) and ast.unparse(call.func) == "fields.skip":
                        names = {name.value for name in call.args if isinstance(name, ast.Constant)}
                        for name in sorted(names - set(files[model_type])):
                            yield model_type, name, files[model_type]


def test_a_field_that_is_known_to_count_for_nothing_is_not_told():
    seen = 0
    for model_type, name, config in passed_over():
        try:
            told = read_config(config | {name: 3}).notes
        except UnsupportedConfig as error:  # Another name of a field that does count.
            assert f"{name}: expected the same value as" in str(error)
            continue
        seen += 1
        assert told == read_config(config).notes, f"{model_type}: {name}"
    assert seen > 100
