"""Facts, numerals, equations, front matter, sources: each fault at its line, in every place a reader sees."""

import pytest

BLOCK = """```python exec="true"
from archcards.evidence import fact
edges = fact("edges", len("abc") * 12)
ratio = fact("ratio", len("abc") / 7)
word = fact("word", type(edges).__name__)
```
"""
SOURCES = """
a2020:
  title: A
  authors: B
  year: 2020
  arxiv: "2004.05150"
  verified: seen
  quotes:
    tokens: {value: 4096, where: Table 1, unit: tokens}
b2021: {title: C, authors: D, year: 2021, url: "https://x.org", verified: seen}
"""
CARD = """---
name: N
changed_component: what {{ edges }}
invariant_core: core
analytical_consequence: "{{ a2020.tokens:,}} tokens"
empirical_source_boundary: boundary
later_subject: later
sources: [a2020]
---

"""


def told(n):
    return f"the numeral {n} is typed into prose; register a fact or quote a source, and write {{{{ name }}}} (a proper name goes into names.txt)"


def test_facts_are_put_in_everywhere(judge):
    text = CARD + BLOCK + (
        "\n# {{ edges }} edges\n\n| a |\n|---|\n| {{ edges:05}} |\n\n"
        '!!! note "{{ word }}"\n\n    $x_{ {{ edges }} }$ ![alt {{ ratio:.2f}}](x.svg) `{{ code }}` {{ build.pages }}\n'
    )  # fmt: skip
    verdict = judge(text, sources=SOURCES)
    assert [str(p) for p in verdict.problems] == []
    page = verdict.pages["docs/page.md"]
    assert page.resolve(
        "{{ edges }} {{ edges:05}} {{ ratio:.2f}} {{ word }} `{{ code }}` {{ build.pages }}"
    ) == ("36 00036 0.43 int `{{ code }}` 2")
    assert page.resolve(page.card.analytical_consequence) == "4,096 tokens"
    assert page.resolve(page.card.changed_component) == "what 36"


def test_only_prose_has_lists_whose_numbers_count_the_items(faults):
    text = (
        "---\ntitle: 2. A\n---\n\n3. an item of a list\n\n" '```python title="4. A step"\nx = 1\n```\n\n'
        '```python exec="true"\nfrom archcards.evidence import check\n'
        "check('6. a claim', len('a'), 1, controls={'7. a mistake': lambda: 2})\n```\n"
    )
    assert faults(text) == [(2, told("2")), (7, told("4")), (13, told("6")), (13, told("7"))]


UNDEFINED = "the fact nothing is not defined on this page"
STRAY = "{{ begins no fact; write {{ name }} or {{ name:format}}, with the spaces"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("a\n{{ nothing }}", 9, UNDEFINED),
        ("# {{ nothing }}", 8, UNDEFINED),
        ("| a |\n|---|\n| {{ nothing }} |", 10, UNDEFINED),
        ('!!! note "{{ nothing }}"\n\n    text', 8, UNDEFINED),
        ('- a\n\n    === "{{ nothing }}"\n\n        text', 10, UNDEFINED),
        ("[{{ nothing }}](a.md)", 8, UNDEFINED),
        ("[a]({{ nothing }})", 8, UNDEFINED),
        ("![{{ nothing }}](a.svg)", 8, UNDEFINED),
        ("<b title='{{ nothing }}'>a</b>", 8, UNDEFINED),
        ("$x\n= {{ nothing }}$", 9, UNDEFINED),
        ("[^1]\n\n[^1]: {{ nothing }}", 10, UNDEFINED),
        ("{{edges}}", 8, STRAY),
        ("{{ edges}}", 8, STRAY),
        ("{{ edges }", 8, STRAY),
        ("{{ edges | upper }}", 8, STRAY),
        ("a\n{{", 9, STRAY),
        ("$x^{{2}}$", 8, STRAY),
        (
            "{{ edges:q}}",
            8,
            "the fact edges cannot be shown as 'q': Unknown format code 'q' for object of type 'int'",
        ),
        ("{{ word:,}}", 8, "the fact word cannot be shown as ',': Cannot specify ',' with 's'."),
        (
            "{{ ratio }}",
            8,
            "the fact ratio has many digits; say how many to show, such as {{ ratio:.3f}}",
        ),
        (
            "{{ a2020.tokens }}",
            8,
            "the page does not list a2020 among its sources, so it cannot quote a2020.tokens",
        ),
        ("{{ build.nothing }}", 8, None),
    ],
)
def test_a_fact_that_is_none(text, line, reason, faults):
    before = (
        BLOCK
        if any(name in text for name in ("edges", "word", "ratio"))
        else "\n" * BLOCK.count("\n")
    )
    [(found_line, found)] = faults(f"{before}\n{text}\n", sources=SOURCES)
    assert found_line == line
    assert (
        found == reason
        if reason
        else found.startswith("the build has no number build.nothing; it has build.blocks")
    )


def test_a_quoted_number_that_its_source_lacks(faults):
    assert faults(CARD + BLOCK + "\n{{ a2020.nothing }}\n", sources=SOURCES) == [
        (18, "the source a2020 quotes no number nothing; add it to sources.yml")
    ]


def test_a_fact_of_another_page_is_not_visible(faults):
    assert faults("{{ edges }}\n", other=BLOCK) == [
        (1, "the fact edges is not defined on this page")
    ]


def test_a_fact_defined_twice(faults):
    text = BLOCK + BLOCK.replace('"ratio"', '"ratio2"').replace('"word"', '"word2"')
    [(line, reason)] = faults(text)
    assert line == 9 and "edges" in reason and "3" in reason


def test_a_page_that_did_not_run_is_not_blamed_for_its_facts(faults):
    assert faults('```python exec="true"\n1 / 0\n```\n\n{{ edges }}\n') == [
        (2, "ZeroDivisionError: division by zero")
    ]


def test_numerals_in_every_place(faults):
    text = (
        "# 36\n\na\nb 37\n\n- c\n\n    d 38\n\n| 39 |\n|---|\n| x |\n\n"
        '```python title="40"\n```\n\n<!-- 41 -->\n\n!!! note "42"\n\n    43\n\n> 44\n\n$45$ `46` `x 47`\n'
    )
    lines = [(1, 36), (4, 37), (8, 38), (10, 39), (14, 40), (19, 42), (21, 43), (23, 44)]
    assert faults(text) == [*((line, told(n)) for line, n in lines), (25, (
        "the numeral 45 is typed into a formula; a formula may hold single digits, "
        "exponents and subscripts: register a fact and write {{ name }}"
    )), (25, told(46))]  # fmt: skip


def test_numerals_in_what_blocks_say(faults):
    text = """```python exec="true"
from archcards.evidence import check, table
n = len("ab")
check("claim of 36", n, 2, controls={"off by 37": lambda: 1})
table(["a 38"], [[n]],
      caption="of 39")
```
"""
    assert faults(text) == [(4, told(36)), (4, told(37)), (5, told(38)), (5, told(39))]


def test_numerals_in_front_matter_have_their_own_lines(faults):
    text = """---
name: N 36
changed_component: >
  folded
  twice 37
  and 37
invariant_core: |
  literal
  38
analytical_consequence: "quoted
  over 39
  lines"
empirical_source_boundary: plain
  over 40
later_subject: >-

  41
sources: []
---
"""
    assert faults(text) == [(2, told(36)), (5, told(37)), (6, told(37)), (9, told(38)), (11, told(39)), (14, told(40)),
                            (17, told(41))]  # fmt: skip


def test_exempt_names(faults):
    assert faults(
        "A Llama 3.1 8B and a Llama 3.1\n8B, not a Llama 3.1.\n", names="# names\nLlama 3.1 8B\n"
    ) == [(2, told("3.1"))]


def test_displayed_equations(faults):
    reason = 'a displayed equation is proved by derive(...) or stands in a !!! definition "Name"'
    assert faults("a\n\n$$\nx = y\n$$\n") == [(3, reason)]
    assert faults("\\[ x \\]\n") == [(1, reason)]
    assert faults('!!! note "N"\n\n    $$ x $$\n') == [(3, reason)]
    assert faults('!!! definition "D"\n\n    where\n\n    $$\n    x = y\n    $$\n') == []
    assert faults('- a\n\n    !!! definition "D"\n\n        - b\n\n            $$ x $$\n') == []
    assert faults('!!! definition "D"\n\n    where\n\n$$ x $$\n') == [(5, reason)]  # it has ended
    assert faults('!!! definition "D"\n\n    !!! note "N"\n\n    $$ x $$\n') == []
    assert faults('- a\n\n    !!! definition "D"\n\n        where\n\n    $$ x $$\n') == [(7, reason)]
    assert faults("a $$ b\n") == [(1, "$$ without its partner in the same paragraph")]


CARD_FAULTS = {
    "name: N": ("name:", 2, "the card's name is empty"),
    "later_subject: later\n": ("", 1, "the card has no later_subject; it has exactly name, changed_component, "
                             "invariant_core, analytical_consequence, empirical_source_boundary, later_subject"),
    "invariant_core: core": ("invariant_core: [core]", 4, "the card's invariant_core must be one text"),
    "later_subject: later": ("later_subject: later\nextra: x", 8, "unknown field 'extra' in the front matter"),
    "sources: [a2020]": ("sources: [c2022]", 8, "unknown source 'c2022'; add it to sources.yml"),
    "sources: [a2020]\n": ("", 1, "the card has no sources; list keys of sources.yml"),
    "[a2020]": ("[a2020, a2020]", 8, "the source 'a2020' is listed twice"),
    "name: N\n": ("name: N\nname: M\n", 3, "name is given twice"),
    "core\n": ("core\n  x: [\n", 5, None),
}  # fmt: skip


@pytest.mark.parametrize("old", CARD_FAULTS)
def test_an_incomplete_card(old, faults):
    new, line, reason = CARD_FAULTS[old]
    text = (
        CARD.replace("{{ a2020.tokens:,}} tokens", "x")
        .replace("{{ edges }}", "x")
        .replace(old, new, 1)
    )
    [(found_line, found)] = faults(text, sources=SOURCES)
    assert found_line == line and (
        found == reason if reason else found.startswith("cannot read this YAML")
    )


def test_a_plain_page_has_no_card(judge):
    verdict = judge("---\ntitle: Home\nhide: [toc]\n---\n\n# Home\n")
    assert verdict.ok and verdict.pages["docs/page.md"].card is None


SOURCE_FAULTS = {
    "  title: A\n": ("", 2, "the source a2020 has no title"),
    "  authors: B": ("  authors:", 4, "the field authors of the source a2020 is empty"),
    "  verified: seen\n": ("", 2, "the source a2020 has no verified"),
    '  arxiv: "2004.05150"\n': ("", 2, "the source a2020 has no arxiv, doi or url; readers could not find it"),
    "  year: 2020": ("  year: 2020\n  yaer: 2020", 6, "unknown field 'yaer' of the source a2020"),
    ", where: Table 1": ("", 9, "the quoted number a2020.tokens needs a value and where the source prints it"),
    ", unit: tokens": (", units: tokens", 9, "unknown field 'units' of the quoted number a2020.tokens"),
    "b2021:": ("a2020:", 10, "a2020 is given twice"),
    "b2021: {": ("B-2021: {", 10, "the source key 'B-2021' must be small letters, digits and underscores"),
}  # fmt: skip


@pytest.mark.parametrize("old", SOURCE_FAULTS)
def test_an_incomplete_source(old, judge):
    new, line, reason = SOURCE_FAULTS[old]
    verdict = judge(sources=SOURCES.replace(old, new, 1))
    assert [str(p) for p in verdict.problems] == [f"docs/sources.yml:{line}: {reason}"]


def test_ids_and_sessions(judge):
    def block(**options):
        return (
            '```python exec="true" '
            + " ".join(f'{k}="{v}"' for k, v in options.items())
            + "\nx = 1\n```\n"
        )

    verdict = judge(
        a=block(id="one", session="a") + block(id="two", session="a"),
        b=block(id="two", session="b") + block(id="three", session="c"),
        c=block(session="a"),
        d=block() + block(session="d"),
    )
    assert [str(p) for p in verdict.problems] == [
        'docs/b.md:1: id="two" is also the id of the block at docs/a.md:4',
        'docs/b.md:4: session="c" differs from the page\'s first, "b"; a page is one session',
        'docs/c.md:1: session="a" is the session of docs/a.md; name it after this page',
        'docs/d.md:4: session="d" differs from the page\'s first, ""; a page is one session',
    ]


def test_executed_fences_in_docstrings_and_snippets(judge, tmp_path):
    source = tmp_path / "book" / "src" / "package"
    source.mkdir(parents=True)
    (source / "module.py").write_text(
        '"""One.\n\n```python exec="true"\n1\n```\n"""\n\nX = """\n```python exec="a"\n"""\n'
    )
    (source / "shown.md").write_text('~~~python exec="true"\n~~~\n')
    (source / "fine.py").write_text("x = 1\n")
    text = '```python\n--8<-- "src/package/fine.py"\n--8<-- "src/package/shown.md"\n--8<-- "gone.py"\n```\n'
    assert [str(p) for p in judge(text).problems] == [
        "docs/page.md:3: the snippet src/package/shown.md holds an executed fence; move it into the chapter",
        "docs/page.md:4: the snippet gone.py does not exist",
        "src/package/module.py:3: an executed fence in a docstring; write a doctest or move it into a chapter",
    ]


def test_options_of_a_fence_take_no_facts(faults):
    assert faults(BLOCK + '\n```python title="{{ edges }}"\n```\n') == [
        (8, "the options of a fence take no facts")
    ]


CHECKED = """    ```python exec="true"
    from archcards.evidence import check
    check("{}", len("ab"), 2, controls={{"off": lambda: 5}})
    ```
"""


def test_an_exercise_without_a_verified_solution(faults):
    text = (
        '## Exercises\n\n### Exercise: one\n\n??? success "Solution"\n\n' + CHECKED.format("a")
        + '\n### Exercise: two\n\n??? success "Solution"\n\n    ```python exec="true"\n    x = 1\n    ```\n'
        + "\n### More\n\n- b\n\n" + CHECKED.format("b")
    )  # fmt: skip
    assert faults(text) == [(12, "this exercise has no solution that a check verifies")]


def test_pages_that_would_be_published_unproved(judge, tmp_path):
    docs = tmp_path / "book" / "docs"
    (docs / ".hidden").mkdir(parents=True)
    for name in ("a.markdown", "b.html", "c.MD", "d.txt", ".hidden/e.html"):
        (docs / name).write_text("36\n")
    assert [str(p) for p in judge().problems] == [
        f"docs/{name}:1: a page that is not proved; pages end in .md"
        for name in ("a.markdown", "b.html", "c.MD")
    ]


def test_a_page_whose_name_is_not_ascii(judge):
    verdict = judge(**{"über": '```python exec="true"\nprint("ü")\n1 / 0\n```\n'})
    assert [str(p) for p in verdict.problems] == [
        "docs/über.md:3: ZeroDivisionError: division by zero"
    ]
