"""Citations and reports: what they name, and what is refused."""

import html
import re
from urllib.parse import parse_qs, urlsplit

import pytest

from archcards.plugin.citing import BadForm, Edition, edition, form, section
from archcards.plugin.pages import addresses_switch

EDITION = Edition("The Book", "A & B", "1.2", "abc123", 1_700_000_000)  # 14 November 2023, 22:13:20 UTC
ADDRESS = "https://book.example/part/page/"


def data(drawn, name):
    return html.unescape(re.search(f'data-{name}="([^"]*)"', drawn)[1])


def test_an_edition_states_what_is_known_of_it():
    assert EDITION.stated == "version 1.2, commit abc123, 14 November 2023"
    assert Edition("T", "A", "", "", 0).stated == ""
    assert Edition("T", "A", "3", "", 0).stated == "version 3"


def test_an_edition_comes_from_the_citation_file(tmp_path):
    (tmp_path / "CITATION.cff").write_text(
        "title: T\nversion: 0.1\nauthors:\n  - name: The keepers\n  - given-names: Ann\n    family-names: Lee\n"
    )
    found = edition(tmp_path, "other", 0)
    assert (found.title, found.version, found.authors) == ("T", "0.1", "The keepers and Ann Lee")


def test_a_book_without_a_citation_file_has_its_own_title(tmp_path):
    assert edition(tmp_path, "A book", 0) == Edition("A book", "The authors of A book", "", "", 0)


def test_a_page_is_cited_with_its_title_edition_and_address():
    drawn = section(EDITION, "Masks & $T_k$", ADDRESS, "")
    shown = html.unescape(re.search("<p>(.*?)</p>", drawn)[1])
    assert shown == f"A & B. “Masks & $T_k$”. The Book, version 1.2, commit abc123, 14 November 2023. {ADDRESS}"
    bibtex = html.unescape(re.search("<code>(.*?)</code>", drawn, re.S)[1])
    assert r"title = {Masks \& $T_k$}" in bibtex and r"author = {{A \& B}}" in bibtex
    assert "year = {2023}" in bibtex and f"url = {{{ADDRESS}}}" in bibtex
    assert bibtex.startswith("@misc{the-book-masks-t-k,\n") and bibtex.count("{") == bibtex.count("}")


def test_what_a_script_fills_has_the_same_places():
    drawn = section(EDITION, "A {title}", ADDRESS, "")
    for name in ("citation", "bibtex", "report"):
        assert "{title}" in data(drawn, name) and "{address}" in data(drawn, name)
    assert "“A {title}”" in drawn  # a title is put in once, whatever it holds


def test_a_report_carries_the_page_its_address_and_the_edition():
    drawn = section(EDITION, "Q & A?", ADDRESS, form("", "https://code.example/o/r"))
    link = urlsplit(html.unescape(re.search('<a href="([^"]*)"', drawn)[1]))
    told = parse_qs(link.query)
    assert link.path == "/o/r/issues/new" and told["title"] == ["Error: Q & A?"]
    assert all(part in told["body"][0] for part in ("Q & A?", ADDRESS, "commit abc123"))


def test_without_a_form_no_host_is_made_up():
    assert "href" not in section(EDITION, "Page", ADDRESS, form("", ""))


def test_forms_of_other_hosts():
    assert form("", "https://gitlab.example/o/r").startswith("https://gitlab.example/o/r/-/issues/new?issue[title]=")
    assert form("https://x.example/?a={title}&b={body}", "https://code.example/o/r").startswith("https://x.example/")


@pytest.mark.parametrize("given", ["mailto:a@b.example?subject={title}&body={body}", "https://x.example/?a={title}", "{title}{body}"])
def test_a_form_that_cannot_carry_a_report_is_refused(given):
    with pytest.raises(BadForm):
        form(given, "")


@pytest.mark.parametrize("piece", ['<div class="ac-table" id="table-a">', '<figure class="ac-stack" id="figure-a">'])
def test_a_page_with_something_to_cite_offers_it_where_it_is_cited_itself(piece):
    offers = addresses_switch(f"<p>text</p>{piece}")
    assert '<input type="checkbox"' in offers and "<kbd>e</kbd>" in offers
    drawn = section(EDITION, "T", ADDRESS, "", offers)
    assert drawn.endswith(f"{offers}</section>")


@pytest.mark.parametrize("content", ["<p>text</p>", '<div class="ac-table" role="group">', '<div class="ac-tables" id="a">'])
def test_a_page_without_it_offers_nothing(content):
    assert addresses_switch(content) == ""
