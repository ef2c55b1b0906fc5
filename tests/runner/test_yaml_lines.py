"""Each value of a YAML text knows its lines."""

import pytest

from archcards.evidence.yaml_lines import YamlError, read_yaml

TEXT = """\
plain: word
folded: >
  two words
  on a line
kept: |
  line
list:
  - 1
  - two:
      three
empty:
quoted: "a
  b"
last: 2020-01-02
"""


def test_values_stand_on_their_lines():
    root = read_yaml(TEXT, 11)
    assert {key: (node.line, node.last) for key, node in root.value.items()} == {
        "plain": (11, 11), "folded": (13, 14), "kept": (16, 16), "list": (18, 20), "empty": (21, 21),
        "quoted": (22, 23), "last": (24, 24),
    }  # fmt: skip
    assert root.keys == (("plain", 11), ("folded", 12), ("kept", 15), ("list", 17), ("empty", 21), ("quoted", 22), ("last", 24))
    first, second = root.value["list"].value
    assert (first.line, second.line, second.value["two"].line) == (18, 19, 20)
    assert (root.line, root.last) == (11, 24)


def test_values_are_plain_and_dates_are_text():
    assert read_yaml(TEXT).plain() == {
        "plain": "word", "folded": "two words on a line\n", "kept": "line\n", "list": [1, {"two": "three"}],
        "empty": None, "quoted": "a b", "last": "2020-01-02",
    }  # fmt: skip


def test_nothing_is_none_on_its_first_line():
    assert (read_yaml("", 7).plain(), read_yaml("# a word\n", 7).line, read_yaml("", 7).last) == (None, 7, 7)


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a: 1\nb: 2\na: 3\n", 13, "a is given twice"),
        ("a: 1\nb: [2\nc: 3\n", 13, "cannot read this YAML: "),
        ("a: 1\n\tb: 2\n", 12, "cannot read this YAML: "),
        ("a: \x00", 11, "cannot read this YAML: "),
        ("a: 1\n--- \nb: 1\n", 12, "cannot read this YAML: "),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, line, reason):
    with pytest.raises(YamlError) as caught:
        read_yaml(text, 11)
    assert caught.value.line == line and caught.value.reason.startswith(reason)
    assert "\n" not in caught.value.reason


def test_numbers_are_those_that_were_typed():
    text = "[1:30, 010, 0x1f, .nan, 1.50e+3, .5, 12, -3, 0]"
    assert read_yaml(text).plain() == ["1:30", "010", "0x1f", ".nan", 1500.0, 0.5, 12, -3, 0]
