"""A printed number is typed once, in the sources, and read from there."""

import pytest

from archcards.evidence import quoted
from archcards.evidence.record import recording

SOURCES = """
paper:
  title: A paper
  authors: An author
  year: 2020
  arxiv: "2001.00001"
  verified: by hand
  quotes:
    layers: {value: 32, where: Table 1}
    gigabytes: {value: "54.0", where: Table 2}
    share: {value: 0.25, where: Table 3}
    span: {value: 131K, where: section 2}
bare:
  title: Another paper
  authors: An author
  year: 2021
  arxiv: "2101.00001"
  verified: by hand
"""


def page(code, sources="paper, bare"):
    return f'---\nsources: [{sources}]\n---\n\n```python exec="true"\n{code}\n```\n'


def test_as_the_source_prints_it(judge):
    names = "layers", "gigabytes", "share"
    code = "from archcards.evidence import fact, quoted\n" + "\n".join(
        f"fact('{name}', quoted('paper.{name}'))" for name in names
    )
    verdict = judge(page(code), sources=SOURCES)
    assert not verdict.problems
    facts = verdict.pages["docs/page.md"].facts
    assert [facts[name].repr for name in names] == ["32", "54.0", "0.25"]


@pytest.mark.parametrize(("name", "reason"), [
    ("paper.heads", "the source paper quotes no number heads; add it to sources.yml"),
    ("bare.layers", "the source bare quotes no number layers; add it to sources.yml"),
    ("paper.span", "paper.span is '131K', which is no number: quote it in prose only"),
    ("layers", "name must be source.name, such as jiang2023.window, got 'layers'"),
])  # fmt: skip
def test_what_cannot_be_quoted(faults, name, reason):
    code = f"from archcards.evidence import quoted\nquoted({name!r})"
    assert faults(page(code), sources=SOURCES) == [(7, f"ValueError: {reason}")]


def test_prose_may_group_its_digits_and_round_nothing(judge):
    text = "---\nsources: [paper]\n---\n\n{{ paper.layers }} and {{ paper.layers:, }}\n\nmore\n\n{{ paper.layers:.1e }}\n"
    reason = "the quoted number paper.layers is shown as its source prints it, its digits grouped at most: {{ paper.layers:,}}"
    assert [(p.line, p.reason) for p in judge(text, sources=SOURCES).problems] == [(9, reason)]


def test_in_a_formula_a_number_is_one_thing(judge):
    code = "from archcards.evidence import fact\nfact('two', len('ab'))\nfact('many', len('ab') ** 4)"
    proved = judge(page(code), sources=SOURCES).pages["docs/page.md"]
    text = "$2^{{ many }} + x_{{ two }}$, {{ many }}"
    assert proved.resolve(text) == "$2^{16} + x_2$, 16"


def test_only_sources_that_the_page_lists(faults):
    code = "from archcards.evidence import quoted\nquoted('paper.layers')"
    reason = "the page does not list paper among its sources, so it cannot quote paper.layers"
    assert faults(page(code, "bare"), sources=SOURCES) == [(7, f"ValueError: {reason}")]


def test_a_page_that_runs_without_sources():
    with recording("docs/page.md"), pytest.raises(ValueError, match="does not list jiang2023"):
        quoted("jiang2023.window")


def test_elsewhere_the_book_of_the_checkout():
    assert quoted("jiang2023.window") == 4096
    assert quoted("gemma2025.weights_27b") == 54
    with pytest.raises(ValueError, match="no source nobody1900"):
        quoted("nobody1900.window")
    with pytest.raises(ValueError, match="quotes no number heads"):
        quoted("jiang2023.heads")


def test_elsewhere_without_a_checkout(monkeypatch):
    from archcards import checkout

    def none():
        raise checkout.NotACheckout("none here")

    monkeypatch.setattr(checkout, "find_checkout", none)
    with pytest.raises(ValueError, match="no sources to quote from: none here"):
        quoted("jiang2023.window")
