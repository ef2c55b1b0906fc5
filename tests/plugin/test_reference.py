"""The reference leaves nothing out, and shows examples as sessions."""

import re
from pathlib import Path

from griffe import GriffeLoader, load_extensions

ROOT = Path(__file__).parents[2]


def test_every_public_module_of_the_mechanisms_is_in_the_reference():
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs/api").rglob("*.md"))
    shown = re.findall(r"^::: archcards\.mechanisms\.(\w+)$", text, re.MULTILINE)
    there = [path.stem for path in (ROOT / "src/archcards/mechanisms").glob("[a-z]*.py")]
    assert sorted(shown) == sorted(there)


def test_an_example_is_drawn_as_a_session(tmp_path):
    (tmp_path / "sample.py").write_text('def f():\n    """One.\n\n    Example:\n        >>> f()\n    """\n')
    extensions = load_extensions("archcards.plugin.docstrings")
    loaded = GriffeLoader(search_paths=[tmp_path], extensions=extensions).load("sample")
    kinds = [section.kind.value for section in loaded["f"].docstring.parse("google")]
    assert kinds == ["text", "examples"]
