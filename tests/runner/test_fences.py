"""Fences: those that run, at their true lines, and those that would silently not run."""

import pytest

from archcards.evidence.chapter import _cut, read_chapter


def blocks(text):
    return [(f.line, f.first, f.end, f.code) for f in read(text).blocks]


def reasons(text):
    return [(p.line, p.reason) for p in read(text).problems]


def read(text):
    return read_chapter("docs/page.md", text if isinstance(text, bytes) else text.encode())


@pytest.mark.parametrize("mark", ["```", "````", "~~~", "~~~~~~"])
def test_fences_of_any_length(mark):
    assert blocks(f'a\n\n{mark}python exec="true"\nx = 1\n{mark}\n') == [(3, 4, 5, "x = 1")]


def test_a_fence_in_a_list_an_admonition_a_tab_and_a_quote():
    text = """- item

    ```python exec="true"
    a = 1

    if a:
        b = 2
    ```

!!! note

    === "Tab"

        ~~~py exec="on"
        c = 3
        ~~~

> quoted
>
> ```python exec="1"
> d = 4
>
>     e = 5
> ```
"""
    assert blocks(text) == [
        (3, 4, 8, "a = 1\n\nif a:\n    b = 2"),
        (14, 15, 16, "c = 3"),
        (20, 21, 24, "d = 4\n\n    e = 5"),
    ]
    assert reasons(text) == []


def test_windows_line_ends_change_nothing():
    text = '# Über\n\n```python exec="true"\nx = "ä"\n```\n\n{{\n'
    assert read(text.replace("\n", "\r\n")) == read(text)


def test_form_feeds_and_line_separators_shift_nothing():
    text = 'a\x0cb\n\u2028c\x0b\x85\n\n```python exec="true"\nx = 1\n```\n'
    assert blocks(text) == [(4, 5, 6, "x = 1")]


def test_tabs_are_four_columns():
    assert blocks('- a\n\n\t```python exec="true"\n\tif 1:\n\t\tx = 1\n\t```\n') == [
        (3, 4, 6, "if 1:\n    x = 1")
    ]


def test_a_fence_inside_a_longer_one_is_text():
    assert blocks('````md\n```python exec="true"\n1/0\n```\n````\n') == []
    assert reasons('````md\n```python exec="tru\n1/0\n```\n````\n') == []


def test_inline_code_is_no_fence():
    text = 'as in ```` ```python exec="true"` ````\n\n```python exec="true"``` inline\n'
    assert blocks(text) == [] and reasons(text) == []


def test_a_byte_order_mark_is_no_text():
    assert blocks(b'\xef\xbb\xbf```python exec="true"\nx\n```') == [(1, 2, 3, "x")]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ('pyhton exec="true"', "unknown language 'pyhton' of a fence; did you mean 'python'?"),
        ("pyhton", "unknown language 'pyhton' of a fence; did you mean 'python'?"),
        ('bash exec="true"', "a fence in bash cannot be executed; executed fences are python, py, pycon"),
        ('exec="true"', "a fence in no language cannot be executed; executed fences are python, py, pycon"),
        ('python exce="true"', "unknown fence option 'exce'; did you mean 'exec'?"),
        ('python exec="true" sorce="above"', "unknown fence option 'sorce'; did you mean 'source'?"),
        ('python exec="true" a-b="c"', 'cannot read the fence option a-b="c"; write each as name="value"'),
        ("python exec=true", 'cannot read the fence option exec=true; write each as name="value"'),
        ('python exec="true', 'cannot read the fence option exec="true; write each as name="value"'),
        ("python exec", 'the fence option exec has no value; write exec="…"'),
        ('python exec="false"', 'exec="false" does not run the block; write exec="true" or remove it'),
        ('python exec="ture"', 'exec="ture" does not run the block; write exec="true" or remove it'),
        ('python exec="true" exec="true"', "the fence option exec is given twice"),
        ('python exec="true" source="over"',
         'source="over" is none of above, below, block, tabbed-left, tabbed-right, console'),
        ('python exec="true" html="ja"', 'html="ja" is neither true nor false'),
        ('python exec="true" id="A b"', 'id="A b" must be small letters, digits and single hyphens'),
        ('python exec="true" result="pyton"', "result=\"pyton\" is no known language; did you mean 'python'?"),
        ('{.python exec="true"}', 'an executed fence takes its options without braces: ```python exec="true"'),
        ("{.python data-x=1}", "cannot read the attributes of this fence; write {.language .class #id}"),
        ('python source="above"', 'the fence option source is for executed fences; add exec="true" or remove it'),
    ],
)  # fmt: skip
def test_a_header_that_would_not_run_as_meant(header, reason):
    assert reasons(f"text\n\n```{header}\nx = 1\n```\n") == [(3, reason)]
    assert blocks(f"text\n\n```{header}\nx = 1\n```\n") == []


def test_headers_that_are_sound():
    for header in (
        "",
        "python",
        'python title="a b"',
        "{.python .copy #x}",
        'python hl_lines="1 2" linenums="1"',
        *(f'python exec="{said}" html="{said}" updatetoc="{said}"' for said in ("true", "on", "Yes", "1")),
        *(f'python exec="1" html="{said}" updatetoc="{said}"' for said in ("false", "off", "No", "0", "")),
    ):
        assert reasons(f"```{header}\nx\n```\n") == []
    assert read("```python exec='true' title=\"it's\"\nx\n```").blocks[0].options == {
        "exec": "true",
        "title": "it's",
    }


def test_a_line_that_leaves_its_fence():
    expected = "this line leaves the fence of line 3, which thereby is none; indent (and quote) all its lines like its first"
    assert reasons('- a\n\n    ```python exec="true"\n    x = 1\n  y = 2\n    ```\n') == [
        (5, expected)
    ]
    assert reasons('> a\n>\n> ```python exec="true"\n> x = 1\ny = 2\n> ```\n') == [(5, expected)]


def test_a_broken_fence_still_has_its_header_read():
    found = reasons('- a\n\n    ```pyhton exec="true"\n  y = 2\n    ```\n')
    assert [line for line, _ in found] == [3, 4]


def test_a_fence_that_is_never_closed():
    assert reasons('a\n\n````python exec="true"\nx = 1\n```\n') == [
        (3, "this fence is never closed; end it with ```` at the same indentation")
    ]


def test_a_fence_behind_a_list_marker():
    reason = "a fence must begin its line; put it on the line below, indented by four"
    assert (1, reason) in reasons('- ```python exec="true"\n  x = 1\n  ```\n')


def test_a_fence_in_indented_code():
    reason = "a fence indented like code is not a fence; indent it no more than what holds it"
    text = 'a\n\n    ```python exec="true"\n    x = 1\n    ```\n'
    assert blocks(text) == [] and reasons(text) == [(3, reason)]
    assert reasons("- a\n\nb" + text[1:]) == [(5, reason)]  # the list has ended
    assert reasons(text.removeprefix("a\n\n")) == [(1, reason)]  # nothing stands before it


@pytest.mark.parametrize("above", ["> a\n", "> a\nb\n", "a\n    b\n", "a\n    b\nc\n"])
def test_a_fence_right_below_indented_or_quoted_lines(above):
    reason = "a fence below indented or quoted lines needs a blank line above it"
    fence = '```python exec="true"\nx = 1\n```\n'
    assert blocks(above + fence) == [] and reasons(above + fence) == [(above.count("\n") + 1, reason)]
    assert len(blocks(above + "\n" + fence)) == 1 and reasons(above + "\n" + fence) == []


def test_a_quote_mark_and_its_space_are_no_indentation():
    text = '> ```python exec="true"\n> x = 1\n> ```\n'
    assert blocks(text) == [(1, 2, 3, "x = 1")] and reasons(text) == []
    assert blocks("a\n\n" + text) == [(3, 4, 5, "x = 1")] and reasons("a\n\n" + text) == []


def test_a_fence_in_a_comment():
    reason = (
        "an executed fence inside an HTML comment, where no reader sees it; delete one or the other"
    )
    text = '<!--\n```python exec="true"\nx = 1\n```\n-->\n\n```python exec="true"\ny = 1\n```\n'
    assert blocks(text) == [(7, 8, 9, "y = 1")] and reasons(text) == [(2, reason)]


def test_comments():
    page = read("a <!-- b --> c\n\n`<!--` d\n\n<!-- e\n\nf --> g\n")
    assert page.problems == ()
    assert [line.split() for line in page.prose if line.strip()] == [
        ["a", "c"],
        ["`<!--`", "d"],
        ["g"],
    ]
    assert read("a <!----> b\n\nc <!-- d -->\n").prose[0].split() == ["a", "b"]
    assert reasons("a\n\nb <!-- c\nd --> e\n") == []  # the blank line is before it, not in it
    assert read("<!-- a\nb --> c <!-- d --> e\n").prose[1].split() == ["c", "e"]
    assert reasons("a\n\nb \x02 c\n") == [(3, "a control character that Markdown reserves; remove it")]
    assert read("<!-- a\nb -->\nc\nd\n").prose[2:4] == ("c", "d")
    for line in ("a <!-- b --> c <!----> d", "<!--b--><!-- c --> d"):  # each word stays at its place
        [prose] = read(f"{line}\n").prose[:1]
        assert len(prose) == len(line) and prose.find("d") == line.find("d")
    assert reasons("a\n<!-- b\n") == [(2, "this comment is never closed; end it with -->")]
    assert reasons("a <!-- b\n\nc -->\n") == [
        (1, "a comment with a blank line in it must begin its line, unindented")
    ]


@pytest.mark.parametrize(
    ("line", "width", "cut"),
    [
        (" ```", 4, (" ", "```")), ("> ```", 4, ("> ", "```")), (">```", 2, (">", "```")), ("   x", 2, ("  ", " x")),
        ("    ", 2, ("  ", "")), ("", 2, ("", "")), ("x", 2, ("", "x")), (" x", 0, ("", " x")),
    ],
)  # fmt: skip
def test_a_line_is_cut_at_its_first_word_at_the_latest(line, width, cut):
    assert _cut(line, width) == cut


def test_snippets():
    assert reasons('--8<-- "a.md"\n') == [
        (1, "a snippet outside a fence; its text would not be checked")
    ]
    assert reasons('```python exec="true"\n--8<-- "a.py"\n```\n') == [
        (2, "a snippet inside an executed fence; write the code out or import it")
    ]
    assert [line for line, _ in reasons('a\n\n```python exec="true"\nx = 1\n--8<-- "a.py"\n```\n')] == [5]
    assert reasons('```python\n--8<-- "a.py"\n```\n') == []


@pytest.mark.parametrize(
    "fence",
    [
        '```python exec="true"\nx = 1\n```\n',
        '```python exec="true"\n--8<-- "a.py"\n```\n',
        '```pyhton exec="true"\nx = 1\n```\n',
        '    ```python\n    x = 1\n    ```\n',
    ],
)  # fmt: skip
def test_the_line_right_below_a_fence_is_read_whatever_the_fence_is(fence):
    page = read(fence + '--8<-- "b.md"\n36\n')
    assert (page.problems[-1].line, page.prose[4]) == (4, "36")
    assert page.problems[-1].reason == "a snippet outside a fence; its text would not be checked"


def test_bytes_that_are_no_text():
    assert reasons(b"a\nb\n\xff\n") == [(3, "not UTF-8; save the file as UTF-8")]
    assert reasons("a\nb\rc\n") == [
        (2, "a carriage return inside a line; end lines with a line feed")
    ]


def test_front_matter():
    page = read("---\nname: x\n---\ntext\n")
    assert page.front == "name: x\n" and page.prose == ("", "", "", "text", "")
    assert reasons("---\nname: x\n") == [
        (1, "front matter without an end; close it with a line of three hyphens")
    ]
