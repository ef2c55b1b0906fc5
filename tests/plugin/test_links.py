"""Every link and anchor of a finished site is followed."""

import pytest

from archcards.plugin.links import check_site, find_line


def site(folder, **pages):
    for name, text in pages.items():
        path = folder / f"{name.replace('__', '/')}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def reasons(folder, **options):
    return {(dead.page, dead.reason) for dead in check_site(folder, **options)}


GOOD = '<h1 id="top">T</h1><img src="data:image/png;base64,AA" alt="a dot">'


@pytest.mark.parametrize(
    "link",
    ["part/", "part/#there", "part/index.html#there", "#top", "./", ".", "", "mailto:a@b.c", "https://x.org/y",
     "/part/", "http://here.org/part/#there", "?q=1", "part/?q=1#there"],
)  # fmt: skip
def test_a_live_link(tmp_path, link):
    site(tmp_path, index=f'{GOOD}<a href="{link}">x</a>', part__index='<p id="there"><a href="..">up</a></p>')
    assert reasons(tmp_path, site_url="http://here.org/") == set()


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        ("nowhere/", "which the site does not have"),
        ("part", "which lacks its final slash"),
        ("part/#gone", "no anchor #gone"),
        ("#gone", "no anchor #gone"),
        ("../out/", "lies outside the site"),
        ("javascript:alert(1)", "scheme"),
        ("http://here.org/nowhere/", "which the site does not have"),
        ("page.md", "which the site does not have"),
    ],
)
def test_a_dead_link(tmp_path, link, reason):
    site(tmp_path, index=f'{GOOD}<a href="{link}">x</a>', part__index="<p>")
    [(page, told)] = reasons(tmp_path, site_url="http://here.org/")
    assert page == "index.html" and reason in told and link in told


def test_an_anchor_in_a_comment_or_a_script_is_none(tmp_path):
    site(tmp_path, index="""<!-- <p id="a"> --><script>'<p id="a">'</script><a href="#a">x</a>""")
    assert len(reasons(tmp_path)) == 1


@pytest.mark.parametrize(
    "element",
    ['<script src="https://cdn.org/x.js"></script>', '<link rel="stylesheet" href="//fonts.org/f.css">',
     '<img src="https://x.org/a.png" alt="a">'],
)  # fmt: skip
def test_a_request_to_another_host_is_a_fault(tmp_path, element):
    site(tmp_path, index=element)
    [(_, told)] = reasons(tmp_path)
    assert "from another host" in told


def test_images_say_what_they_show_and_anchors_are_unique(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    site(tmp_path, index='<img src="a.png" alt=" "><p id="b"><p id="b">')
    assert reasons(tmp_path) == {
        ("index.html", "image a.png without alternative text"),
        ("index.html", "anchor #b occurs 2 times"),
    }


def test_the_line_of_a_link_in_its_source():
    source = "one [a](../masks.md#edges)\n\n[b]: other.md\n<a href='x.md#y'>z</a> [c](#here)"
    assert find_line(source, "../masks/#edges") == 1
    assert find_line(source, "../other/") == 3
    assert find_line(source, "../x/#y") == 4
    assert find_line(source, "#here") == 4
    assert find_line(source, "#gone") is None
