"""The scanner agrees with SuperFences and markdown-exec on which fences run, and with which code."""

import markdown
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_exec import validator

from archcards.evidence.chapter import read_chapter

EXTENSIONS = [
    "admonition",
    "pymdownx.details",
    "pymdownx.superfences",
    "pymdownx.tabbed",
    "footnotes",
    "attr_list",
]


def stock(text):
    """The code that markdown-exec would be given, in order."""
    ran = []

    def record(source, language, css_class, options, md, **more):
        ran.append(source)
        return f"<pre>ran {len(ran)}</pre>"

    fences = [
        {"name": name, "class": name, "validator": validator, "format": record}
        for name in ("python", "py", "pycon")
    ]
    settings = {
        "pymdownx.superfences": {"custom_fences": fences},
        "pymdownx.tabbed": {"alternate_style": True},
    }
    html = markdown.markdown(text, extensions=EXTENSIONS, extension_configs=settings)
    return [source for n, source in enumerate(ran, 1) if f"<pre>ran {n}</pre>" in html]


def ours(text):
    page = read_chapter("docs/a.md", text.encode())
    return [f.code for f in page.blocks if f.executed], page.problems


line = st.sampled_from(
    [
        "",
        "text",
        "- item",
        "1. item",
        '!!! note "N"',
        '=== "Tab"',
        "> quote",
        "    text",
        "  text",
        "`a`",
        "# H",
    ]
    + [
        indent + part
        for indent in ("", "    ", "        ", "  ", "> ", "\t")
        for part in (
            '```python exec="true"',
            "```",
            "x = 1",
            "    y",
            "~~~",
            '~~~py exec="on"',
            '````python exec="1"',
        )
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(line, min_size=1, max_size=12))
def test_what_we_run_without_complaint_is_what_stock_runs(lines):
    text = "\n".join(lines) + "\n"
    codes, problems = ours(text)
    if not problems:
        assert codes == stock(text)


@pytest.mark.parametrize(
    "text",
    [
        '```python exec="true"\nx\n```\n',
        '- a\n\n    ```python exec="true"\n    x\n\n      y\n    ```\n',
        '1. a\n\n    - b\n\n        ~~~~py exec="on" id="i"\n        x\n        ~~~~\n',
        '!!! note "T"\n\n    text\n\n    ```pycon exec="yes"\n    >>> 1\n    ```\n',
        '=== "T"\n\n    ??? tip "U"\n\n        ```python exec="1" title="t"\n        x\n        ```\n',
        '> a\n>\n> ```python exec="true"\n> x\n>\n>   y\n> ```\n',
        '```python exec="true" hl_lines="1" linenums="1"\n\tx\n```\n',
        'a[^1]\n\n[^1]: note\n\n    ```python exec="true"\n    x\n    ```\n',
        '````markdown\n```python exec="true"\nx\n```\n````\n',
    ],
)
def test_sound_pages_run_the_same(text):
    codes, problems = ours(text)
    assert not problems
    assert codes == stock(text)
