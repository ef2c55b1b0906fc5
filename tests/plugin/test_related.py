"""Chapters, models and the package lead to one another."""

import re

import pytest

import archcards.mechanisms
from archcards.evidence.book import prove
from archcards.ledger import read_config
from archcards.ledger.bundled import bundled_config, bundled_names
from archcards.plugin.book import Book
from archcards.plugin.model import Model
from archcards.plugin.model_page import CHAPTERS
from archcards.plugin.related import NAMES, Related, imported

CARD = """---
name: N
changed_component: c
invariant_core: c
analytical_consequence: c
empirical_source_boundary: c
later_subject: c
sources: [s2020]
---

# Windows

```python exec="true" session="a" id="a"
from archcards.evidence import fact
from archcards.mechanisms import causal as triangle, edges

fact("seen", edges(triangle(3)))
```
"""
SOURCES = "s2020:\n  title: T\n  authors: A\n  year: 2020\n  url: https://example.org/a\n  verified: read\n"


@pytest.fixture(scope="module")
def related(tmp_path_factory):
    docs = tmp_path_factory.mktemp("book") / "docs"
    (docs / "attention").mkdir(parents=True)
    (docs / "sources.yml").write_text(SOURCES)
    (docs / "attention" / "local-windows.md").write_text(CARD)
    (docs / "index.md").write_text("# Index\n\n```python\nfrom archcards.mechanisms import softmax\n```\n")
    models = {}
    for name in bundled_names():
        config = bundled_config(name)
        models[name] = Model(name, config, read_config(config))
    return Related(Book.of(prove(docs)), models)


def link(src_uri):
    return f"../{src_uri}", src_uri


def test_a_chapter_uses_what_its_executed_blocks_import(related):
    assert related.used == {
        "attention/local-windows.md": ["archcards.mechanisms.masks.causal", "archcards.mechanisms.masks.edges"]
    }


@pytest.mark.parametrize("code", [">>> 1\n1", "import numpy", "from archcards.evidence import fact", "from archcards import controls"])
def test_other_code_uses_no_mechanism(code):
    assert list(imported(code)) == []


def test_a_chapter_names_what_it_uses_and_exactly_the_models_that_have_it(related):
    page = related.book.pages["attention/local-windows.md"]
    drawn = related.section(page, link, {"archcards.mechanisms.masks.causal": "../api/#causal"})
    assert '<a href="../api/#causal"><code>causal</code></a>' in drawn
    for trait in ("window", "chunks"):
        [models] = re.findall(f"<summary>{trait}: .*?</details>", drawn)
        assert set(re.findall('href="../(.*?)"', models)) == {
            model.src_uri for model in related.models.values() if trait in model.traits
        }


def test_the_reference_names_the_chapters_and_the_models(related):
    heading = '<h3 id="{}" class="doc doc-heading">x</h3><div class="doc doc-contents ">'
    page = "".join(heading.format(f"archcards.mechanisms.masks.{name}") for name in ("causal", "sliding_window", "with_sinks"))
    elsewhere = {"causal": "there#elsewhere-causal"}
    causal, window, sinks = related.documented(page, link, lambda name, _: elsewhere.get(name)).split("<h3")[1:]
    assert "local-windows.md" in causal and "Models" not in causal
    assert "tags.md#tag:mechanism/window" in window and "Used in" not in window
    assert "ac-used" not in sinks
    assert '<a href="there#elsewhere-causal">In other libraries</a>.' in causal and "libraries" not in window


def test_tags_are_those_of_chapters_and_models_alone(related):
    assert related.tags("attention/local-windows.md", "Attention") == ["Mechanism/window", "Mechanism/chunks", "Part/Attention"]
    assert related.tags("index.md", "") == []
    model = next(model for model in related.models.values() if "experts" in model.traits)
    tags = related.tags(model.src_uri, "")
    assert "Mechanism/experts" in tags and f"Model family/{model.architecture.model_type}" in tags


def test_the_tables_name_what_there_is():
    assert NAMES.keys() <= CHAPTERS.keys()
    for names in NAMES.values():
        assert all(hasattr(archcards.mechanisms, name) for name in names)
