"""Taking text apart keeps every character where it was."""

from hypothesis import given, settings
from hypothesis import strategies as st

from archcards.evidence.prose import BLANK, paragraphs, scan, substitute

pieces = st.lists(
    st.sampled_from(
        ["{{ n }}", "{{ n:,}}", "{{", "}}", "`", "``", "$", "$$", "\\", "\\(", "\\)", "[", "](", ")", "]", "][", "<", ">",
         "<b title='36'>", "&#52;", "&", "{", "}", "{ .a }", "!", "36", "a", " ", "\n", "\"", "'", "https://x.org/1", "[^1]",
         "[^1]: ", "[a]: b", "*", "_", "1. ", "> ", "::: a.b", "|", "^", "é", "<!--", "#"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(pieces)
def test_every_character_stays_where_it_was(text):
    found = scan(text)
    assert len(found.text) == len(text)
    for was, now in zip(text, found.text, strict=True):
        assert now in (was, BLANK) or was in "&<{" or now == "4"
        assert (was == "\n") == (now == "\n")
    for start, code in found.code:
        assert text[start:].startswith(code)
    for use in found.facts:
        assert text[use.start : use.end].startswith("{{ n") and text[use.start : use.end].endswith(
            "}}"
        )


@settings(max_examples=200, deadline=None)
@given(pieces)
def test_putting_each_fact_back_changes_nothing(text):
    assert substitute(text, lambda use: text[use.start : use.end]) == text


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(["", "  ", "a", "b c"])))
def test_paragraphs_are_the_lines_between_blank_ones(lines):
    joined = {
        n: line
        for first, text in paragraphs(lines)
        for n, line in enumerate(text.split("\n"), first)
    }
    assert joined == {n: line for n, line in enumerate(lines, 1) if line.strip()}


def test_facts_where_a_reader_sees_them():
    text = '{{ a }} `{{ b }}` $x_{ {{ c }} }$ [{{ d }}]({{ e }}) <i title="{{ f }}"> {{ g.h:,.2f}}'
    assert [(f.name, f.spec, f.tex) for f in scan(text).facts] == [
        ("a", "", False), ("c", "", True), ("d", "", False), ("e", "", False), ("f", "", False), ("g.h", ",.2f", False),
    ]  # fmt: skip


def test_an_entity_is_the_character_it_stands_for():
    assert scan("a &#52;&#x35; &amp; b").text.replace(BLANK, "") == "a 45 & b"
