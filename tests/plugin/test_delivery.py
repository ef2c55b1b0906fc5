"""What the site serves, and under which names and headers."""

import re

import pytest

from archcards.plugin.delivery import EXCHANGED, UnknownTheme, anywhere, headers, kept_name, told_apart, unhurried

HURRIED = 'a($(location.protocol!=="file:"),J("search"));V("search.highlight")?A(e):y'

BOUND = (
    'l.href;new URL("sitemap.xml",e);n=P("loc",o),i=[f(new URL(n.textContent),t)];'
    'h(window,"popstate");V("navigation.instant")&&g({sitemap$:q}).subscribe(d)'
)


@pytest.mark.parametrize(
    "script",
    [
        "",
        HURRIED.replace("location.protocol", "location.host"),
        HURRIED.replace("search.highlight", "search.share"),
        HURRIED + HURRIED,
    ],
)
def test_a_script_that_is_not_known_is_refused(script):
    with pytest.raises(UnknownTheme):
        unhurried(script)


def test_the_theme_s_list_of_pages_is_the_site_s_own_and_knows_no_host():
    assert anywhere(BOUND) == (
        f'l.href;new URL("{EXCHANGED}",e);n=P("loc",o),i=[f(new URL(n.textContent,t),t)];'
        'h(window,"archcards:return");V("navigation.instant")&&location.protocol!=="file:"&&g({sitemap$:q}).subscribe(d)'
    )


@pytest.mark.parametrize("part", ["sitemap.xml", "textContent", "popstate", "navigation.instant"])
def test_a_script_that_exchanges_otherwise_is_refused(part):
    for script in (BOUND.replace(part, "other"), BOUND + BOUND):
        with pytest.raises(UnknownTheme):
            anywhere(script)


@pytest.mark.parametrize("script", ["", "e=e+s+o.name}return e}", "e=e+s+o.id}return e}e=e+s+o.id}return e}"])
def test_a_search_that_is_not_known_is_refused(script):
    with pytest.raises(UnknownTheme):
        told_apart(script)


def test_the_search_that_is_served_tells_its_words_apart(demo):
    [worker] = (demo.site / "assets" / "javascripts" / "workers").glob("search.*.js")
    assert '.id+","}return ' in worker.read_text("utf-8")


def test_pages_are_exchanged_where_they_have_one_policy_and_one_style(demo):
    listed = set(re.findall("<loc>([^<]*)</loc>", (demo.site / EXCHANGED).read_text("utf-8")))
    assert "part/every-component/" in listed and "" in listed
    heads = set()
    for place in listed:
        page = demo.page(place)
        assert '"navigation.instant"' in page
        sheets = re.findall(r'<link rel="stylesheet" href="(?:\.\./)*([^"]*)">', page.partition("</head>")[0])
        heads.add((*sheets, re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]))
    assert len(heads) == 1


def test_a_name_follows_the_content_alone():
    names = {kept_name(path, content) for path in ("a/b.css", "a/b.01234567.css") for content in (b"x", b"y")}
    assert len(names) == 2
    assert all(re.fullmatch(r"a/b\.[0-9a-f]{8}\.css", name) for name in names)


def test_headers_do_not_depend_on_order():
    assert headers(["b.css", "a.js"], "") == headers(["a.js", "b.css"], "")


def directives(policy):
    found = {}
    for directive in policy.split("; "):
        name, *values = directive.split(" ")
        found[name] = set(values)
    return found


def test_the_header_has_the_whole_policy_and_blocks_nothing_that_a_page_admits(demo):
    told = (demo.site / "_headers").read_text("utf-8")
    [sent] = re.findall(r"(?m)^  Content-Security-Policy: (.*)$", told)
    assert told.startswith(f"/*\n  Content-Security-Policy: {sent}\n")
    header = directives(sent)
    assert header.pop("frame-ancestors") == {"'none'"}
    pages = list(demo.site.rglob("*.html"))
    assert pages
    for path in pages:
        own = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', path.read_text("utf-8"))[1]
        page = directives(own)
        assert page.keys() == header.keys()
        for name, values in page.items():
            assert values <= header[name], f"{path.name}: {name}"
    assert "'unsafe-inline'" not in header["script-src"] and "'unsafe-eval'" not in header["script-src"]


def test_a_site_serves_what_its_headers_name_and_no_source_map(demo):
    told = (demo.site / "_headers").read_text("utf-8")
    paths = re.findall(r"(?m)^/(\S+)$", told)
    kept = [path for path in paths if path != "*"]
    assert any("bundle." in path for path in kept) and any("search." in path for path in kept)
    for path in kept:
        assert kept_name(path, (demo.site / path).read_bytes()) == path
    for path in demo.site.rglob("*"):
        assert path.suffix != ".map"
        if path.suffix in {".js", ".css"}:
            assert "sourceMappingURL" not in path.read_text("utf-8")


def test_a_page_names_its_files_as_they_are_served(demo):
    page = demo.page("part/every-component")
    for path in re.findall(r'(?:href|src)="(?:\.\./)*(assets/[^"]+)"|"search": "(?:\.\./)*([^"]+)"', page):
        assert (demo.site / "".join(path)).is_file(), path
