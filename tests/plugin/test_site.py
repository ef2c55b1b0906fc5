"""Whole books through plain `mkdocs build`: what is published, and what is refused."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archcards.plugin.markup import plain_text, tokens

ROOT = Path(__file__).parents[2]
GOOD = """# Good

```python exec="true" source="above" id="good-block" session="good"
from archcards.evidence import check, fact
from archcards.mechanisms import causal, edges
fact("edges", edges(causal(8)))
check("The triangle has its edges", edges(causal(8)), 8 * 9 // 2, controls={"no diagonal": lambda: 28})
```

There are {{ edges }} edges.
"""


# What a reader gets


def test_each_block_stands_where_its_fence_stood(demo):
    page = demo.page("part/every-component")
    order = [page.index(f'id="component-{name}"') for name in ("figure", "check", "print", "table", "tab", "solution")]
    assert order == sorted(order)
    assert page.index("Printed text, as it was printed") < page.index("[[1 0 0]") < page.index("Printed Markdown")
    assert "data-ac-line" not in page and "acline" not in page


def test_source_stands_on_the_side_that_the_fence_asks_for(demo):
    page = demo.page("part/every-component")
    check, tab = page.index('id="component-check"'), page.index('id="component-tab"')
    assert page.index("default_rng", check) < page.index('class="ac-check"', check)
    assert page.index('class="ac-check"', tab) < page.index('<div class="language-python highlight">', page.index("</details>", tab))
    assert "draw_mask(" not in plain_text(page)  # source is not asked for there


def test_a_check_shows_its_claim_tolerance_and_mistakes(demo):
    page = plain_text(demo.page("part/every-component"))
    assert "The last query over 7 keys, with" in page
    assert "within 10−11" in page.replace(" ", "").replace("within", "within ") or "within 10 −11" in page
    assert re.search(r"aligned to the top left\s?: off by \d\.\d+, caught", page)


def test_numbers_come_from_blocks_sources_and_the_build(demo):
    text = plain_text(demo.page("part/every-component"))
    assert "that the text chose, 7, one that code computed, 28, and one that a paper printed, 8 heads" in text
    assert "of 7 positions that makes 28 pairs" in text  # on the card
    assert "full attention scores 33,558,528 pairs at 8,192 tokens" in text
    assert re.search(r"The book has \d+ checks in one chapter", plain_text(demo.page("")))


def test_a_link_never_holds_a_link(demo):
    for path in demo.site.rglob("*.html"):
        for token in tokens(path.read_text(encoding="utf-8")):
            assert not (token.kind == "open" and token.name == "a" and "a" in token.inside), token


def test_the_switch_is_operable_without_a_script(demo):
    page = demo.page("part/every-component")
    radios = re.findall(r'<input type="radio" name="(ac-[^"]+)" id="([^"]+)"', page)
    assert len({name for name, _ in radios}) == 1 and len(radios) == 4
    assert page.count('<div class="ac-panel') - page.count('<div class="ac-panels') == 4
    assert all(f'<label for="{name}">' in page for _, name in radios)


def test_tables_have_captions_and_scopes(demo):
    page = demo.page("part/every-component")
    table = page[page.index('id="table-edges-of') :]
    table = table[: table.index("</table>")]
    assert "<caption>Edges of the causal mask" in table
    assert table.count('scope="col"') == 3 and table.count('scope="row"') == 4


def test_a_derivation_shows_reasons_sizes_and_its_refuted_control(demo):
    page = demo.page("part/every-component")
    proof = page[page.index('<figure class="ac-derivation"') :]
    proof = proof[: proof.index("</figure>")]
    assert proof.count("<li") == 3 and proof.count("<math") >= 5
    text = plain_text(proof)
    assert text.index("read after the write") < text.index("distribute") < text.index("the key has length one")
    assert "proved equal to the one before, entry by entry, at" in text
    assert "forgets to take off what was stored" in text and "Refuted by" in text


def test_figures_are_drawings_that_say_what_they_show(demo):
    page = demo.page("part/every-component")
    [drawing] = re.findall(r'<div class="ac-drawing"[^>]*><svg[^>]*>', page)
    assert 'role="img"' in drawing and 'aria-label="A square grid, filled on and below its diagonal."' in drawing
    assert "var(--ac-accent" in (demo.site / "assets/stylesheets/inline.css").read_text()


def test_cards_and_evidence_list_what_the_book_has(demo):
    assert "of 7 positions that makes 28 pairs" in plain_text(demo.page("cards"))
    assert 'href="../part/every-component/"' in demo.page("cards")
    evidence = json.loads((demo.site / "evidence.json").read_text())
    assert evidence["totals"]["checks"] == len(evidence["checks"]) >= 3
    for kind in ("checks", "facts", "derivations"):
        for entry in evidence[kind]:
            assert f'href="../part/every-component/#{entry["anchor"]}"' in demo.page("evidence")
            assert f'id="{entry["anchor"]}"' in demo.page("part/every-component")
    [quoted] = evidence["quoted"]
    assert (quoted["source"], quoted["name"], quoted["value"], quoted["where"]) == ("vaswani2017", "heads", 8, "Table 3")
    assert "0.9" not in json.dumps([check["tolerance"] for check in evidence["checks"]])


def test_every_page_is_locked_down_and_mathematics_needs_no_script(demo):
    for path in demo.site.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        assert "Content-Security-Policy" in page and "unsafe" not in page
        assert not re.search(r"<[^>]* style=", page) and "arithmatex" not in page
        assert 'name="generator"' not in page
    assert "<math" in demo.page("part/every-component")


def test_search_finds_the_tex(demo):
    index = json.loads((demo.site / "search/search_index.json").read_text())
    assert any("\\sum_{j \\le t}" in entry["text"] for entry in index["docs"])
    for entry in index["docs"]:
        assert "{{" not in entry["title"] + re.sub(r"<code>.*?</code>", "", entry["text"], flags=re.S)


def test_no_map_and_no_unused_language_is_shipped(demo):
    names = [path.name for path in demo.site.rglob("*")]
    assert not [name for name in names if name.endswith(".map") or name.startswith("lunr.")]


def test_two_builds_in_two_folders_are_the_same(book, new_book):
    shots = []
    for made, environment in (
        (book, {"PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "1700000000"}),
        (new_book(), {"PYTHONHASHSEED": "2", "SOURCE_DATE_EPOCH": "1700000000", "TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    ):
        made.write(index="# Home\n\n[A page](good.md) with $x^2$.\n", good=GOOD)
        built = made.build(**environment)
        assert built.returncode == 0, built.stderr
        shots.append({p.relative_to(made.site): p.read_bytes() for p in made.site.rglob("*") if p.is_file()})
    assert shots[0].keys() == shots[1].keys()
    assert [name for name in shots[0] if shots[0][name] != shots[1][name]] == []


def test_addresses_come_from_the_environment(book):
    book.write(index=GOOD)
    built = book.build(ARCHCARDS_SITE_URL="https://cards.test/guide", ARCHCARDS_REPO_URL="https://git.test/a/b")
    assert built.returncode == 0, built.stderr
    assert '<link rel="canonical" href="https://cards.test/guide/">' in book.page("")
    assert 'href="https://git.test/a/b"' in book.page("")


# What ends the build


def faults(built):
    return re.findall(r"^(\S+\.(?:md|yml|html)):(\d+): (.*)$", built.stderr, flags=re.M)


BAD = {
    "dead link": ("# Bad\n\nSee [that](nowhere.md).\n", 3, "link to nowhere.md"),
    "dead anchor": ("# Bad\n\nText.\n\n[b]: index.md#gone\n\nSee [that][b].\n", 5, "no anchor #gone"),
    "image without alternative text": ("# Bad\n\n![](data:image/png;base64,AA)\n", 3, "without alternative text"),
    "TeX that does not parse": ("---\ntitle: Bad\n---\n\n# Bad\n\nSo $\\frac{a}$ it is.\n", 7, "TeX does not parse"),
    "TeX in a claim": (
        '# Bad\n\n```python exec="true" id="b1"\nfrom archcards.evidence import check\n'
        'check("So $\\\\nope$ is", sum([1, 1]), 2, controls={"no": lambda: 3})\n```\n',
        5,
        "Unknown command",
    ),
    "fence hidden in a comment": (
        '# Bad\n\n<!--\n```python exec="true" id="b2"\nx = 1\n```\n-->\n',
        4,
        "HTML comment",
    ),
    "output that closes what it did not open": (
        '# Bad\n\n```python exec="true" html="true" id="b3"\nprint("</div>")\n```\n',
        3,
        "closes a <div>",
    ),
    "output with a script": (
        '# Bad\n\n```python exec="true" id="b4"\nprint("<script>alert()</script>")\n```\n',
        3,
        "<script>",
    ),
    "failing check": (
        '# Bad\n\n```python exec="true" id="b5"\nfrom archcards.evidence import check\n'
        'check("No", sum([1, 1]), 3, controls={"no": lambda: 4})\n```\n',
        5,
        "the check fails",
    ),
    "exception": ('# Bad\n\n```python exec="true" id="b6"\n1 / 0\n```\n', 4, "ZeroDivisionError"),
}


@pytest.fixture(scope="module")
def refused(new_book):
    """All bad pages in one book, a good one among them."""
    made = new_book()
    made.write(index=GOOD, **{page_name(name): text for name, (text, _, _) in BAD.items()})
    return made, made.build()


def page_name(fault):
    return fault.replace(" ", "_")


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_reported_at_its_line(refused, name):
    text, line, reason = BAD[name]
    _, built = refused
    told = [(int(at), why) for path, at, why in faults(built) if path == f"docs/{page_name(name)}.md"]
    assert [at for at, _ in told] == [line], built.stderr
    assert reason in told[0][1]
    assert text.split("\n")[line - 1].strip()[:40] in built.stderr


def test_all_pages_are_judged_in_one_run_the_good_one_is_not_blamed_and_nothing_is_published(refused):
    made, built = refused
    assert built.returncode != 0
    assert {path for path, _, _ in faults(built)} == {f"docs/{page_name(name)}.md" for name in BAD}
    assert sorted(path.name for path in made.folder.iterdir()) == [".site.lock", "docs", "mkdocs.yml"]


def test_a_failed_build_leaves_the_site_as_it_was(book):
    book.write(index=GOOD)
    assert book.build().returncode == 0
    before = {path: path.read_bytes() for path in book.site.rglob("*") if path.is_file()}
    book.write(index=GOOD + "\n[gone](gone.md)\n")
    built = book.build()
    assert built.returncode != 0 and "site/ is as it was" in built.stderr
    assert before == {path: path.read_bytes() for path in book.site.rglob("*") if path.is_file()}
    book.write(index=GOOD.replace("There are", "Now there are"))
    assert book.build().returncode == 0
    assert "Now there are" in book.page("")
    assert sorted(path.name for path in book.folder.iterdir()) == [".site.lock", "docs", "mkdocs.yml", "site"]


def test_interrupted_a_build_leaves_nothing_behind(book):
    book.write(index=GOOD.replace("fact(", "import time; time.sleep(15); fact("))
    made = subprocess.Popen(
        [sys.executable, "-m", "mkdocs", "build", "-q"],
        cwd=book.folder,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"},
        stderr=subprocess.DEVNULL,
    )
    for _ in range(600):
        if [path for path in book.folder.glob(".site-*") if path.is_dir()]:
            break
        time.sleep(0.1)
    time.sleep(1)
    made.send_signal(signal.SIGINT)
    assert made.wait(60) != 0
    assert sorted(path.name for path in book.folder.iterdir()) == [".site.lock", "docs", "mkdocs.yml"]


def test_a_number_in_the_description_and_the_title(book):
    book.write(index=GOOD.replace("# Good", "---\ntitle: All {{ edges }}\ndescription: It has {{ edges }} edges.\n---\n\n# Good"))
    built = book.build()
    assert built.returncode == 0, built.stderr
    assert '<meta name="description" content="It has 36 edges.">' in book.page("")
    assert "All 36" in book.page("") and "{{ edges }}" not in plain_text(book.page("").split("<article")[0])


def test_a_warning_of_another_plugin_is_a_fault(book):
    book.write(index=GOOD, good="# Also\n")
    (book.folder / "mkdocs.yml").write_text((book.folder / "mkdocs.yml").read_text().replace("'good.md', ", ""))
    built = book.build()
    assert built.returncode != 0 and "good.md" in built.stderr


def test_a_site_that_is_a_link_stays_one(book):
    book.write(index=GOOD)
    (book.folder / "elsewhere").mkdir()
    book.site.symlink_to("elsewhere")
    for _ in range(2):
        built = book.build()
        assert built.returncode == 0, built.stderr
    assert book.site.is_symlink() and "There are" in book.page("")
    assert not list(book.folder.glob(".*-*"))


def test_what_is_published_is_what_was_proved(book):
    """The page that is saved while its book runs, here by an extension of the site, is not read again."""
    saved = f"open({str(book.docs / 'index.md')!r}, 'a').write('\\n\\nThere are 36.\\n')"
    (book.folder / "saving.py").write_text(f"def on_files(files, config):\n    {saved}\n")
    book.write(index=GOOD)
    with open(book.folder / "mkdocs.yml", "a") as settings:
        settings.write("hooks: [saving.py]\n")
    built = book.build()
    assert built.returncode == 0 and "There are 36" in (book.docs / "index.md").read_text(), built.stderr
    assert "There are 36." not in plain_text(book.page(""))


def test_code_that_changes_while_the_book_is_built_is_not_published(book):
    code = book.folder / "src" / "own.py"
    code.parent.mkdir()
    code.write_text("x = 1\n")
    (book.folder / "saving.py").write_text(f"def on_files(files, config):\n    open({str(code)!r}, 'w').write('x = 2')\n")
    book.write(index=GOOD)
    with open(book.folder / "mkdocs.yml", "a") as settings:
        settings.write("hooks: [saving.py]\n")
    built = book.build()
    assert built.returncode == 1 and "src/own.py:1: changed while the book was built; build again" in built.stderr
    assert not book.site.exists()
