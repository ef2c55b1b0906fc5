"""A link puts its page's content in the place of another's, and everything on it is alive."""

import functools
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

FIRST, SECOND, THIRD = "attention/causal-prefix/", "attention/chunked-prefill/", "attention/local-windows/"
MASKS, STEPS = "attention/masks/", "attention/online-softmax/"
LISTED = re.compile("<loc>([^<]*)</loc>")
# What the site's own scripts hear on the window and the document; the theme's are its own affair.
LISTENERS = r"""(() => {
  window.listeners = 0;
  const own = /javascripts\/(?!bundle)/;
  for (const target of [window, document]) {
    for (const [name, count] of [["addEventListener", 1], ["removeEventListener", -1]]) {
      const before = target[name];
      target[name] = function (...given) {
        if (own.test(new Error().stack) && !given[2]?.signal) window.listeners += count;
        return before.apply(target, given);
      };
    }
  }
})()"""
# What a head says of its page, and how large its formulas and headings are.
SEEN = """() => ({
  title: document.title,
  titles: document.head.querySelectorAll("title").length,
  links: ["canonical", "prev", "next"].map((rel) => [...document.querySelectorAll(`link[rel=${rel}]`)].map((one) => one.href)),
  metas: [...document.head.querySelectorAll("meta")].map((one) => one.outerHTML).sort(),
  sheets: [...document.styleSheets].map((one) => one.href).sort(),
  sizes: [...document.querySelectorAll("article math, article :is(h1, h2)")].map((one) => {
    const { x, width, height } = one.getBoundingClientRect();
    return [one.localName, x, width, height];
  }),
  stops: [...document.querySelectorAll("article [tabindex]:not(h1)")].map((one) => one.className),
})"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing of it."""

    def log_message(self, *_):
        pass


@pytest.fixture
def page(new_page):
    """A page on which nothing may go wrong, and nothing moves."""
    made, wrong = new_page(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    made.add_init_script(LISTENERS)
    yield made
    made.context.close()
    assert not wrong


def begin(page, address, place):
    """Loads a page, and leaves a mark that no load survives."""
    page.goto(address + place)
    listed(page)
    page.evaluate("window.mark = true; 0")


def listed(page):
    """Waits for the list of pages: until it is there, links load."""
    until(page, "performance.getEntriesByType('resource').some(one => one.name.endsWith('exchanged.xml') && one.responseEnd)")


def until(page, condition):
    """Waits for what only a script can see; the page's policy lets none be made from a text later."""
    page.evaluate(f"() => new Promise(done => {{ const look = () => ({condition}) ? done() : setTimeout(look, 20); look(); }})")


def arrive(page, place):
    """Waits until a page's content is there."""
    page.locator(f'link[rel=canonical][href$="/{place}"]').wait_for(state="attached")
    expect(page).to_have_url(re.compile(rf"{re.escape(place)}([?#].*)?$"))


def loaded(page):
    """Whether a load has come between."""
    return not page.evaluate("window.mark === true")


def follow(page, name, place, **options):
    page.get_by_role("link", name=name, **options).first.click()
    arrive(page, place)


def test_what_is_exchanged_is_alike_in_its_head(site):
    """Policies add up and style sheets change their order where a head brings others."""
    listed = set(LISTED.findall((site / "assets/exchanged.xml").read_text("utf-8")))
    heads, alone = set(), set()
    for path in site.rglob("*.html"):
        text, place = path.read_text("utf-8"), path.relative_to(site).as_posix().removesuffix("index.html")
        if place not in listed:
            alone.add(place)
            assert '"navigation.instant"' not in text or place == "404.html"
            continue
        assert '"navigation.instant"' in text and "wasm" not in text.partition("<body")[0]
        head = text.partition("</head>")[0]
        sheets = re.findall(r'<link rel="stylesheet" href="(?:\.\./|\./)*([^"]*)">', head)
        heads.add((*sheets, re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', head)[1]))
    assert len(heads) == 1
    assert {place for place in alone if not place.startswith(("api/", "accounting/"))} == {"404.html", "models/live/"}


def test_a_page_is_the_same_however_one_comes_to_it(page, address):
    begin(page, address, FIRST)
    follow(page, "Next: ", SECOND)
    follow(page, "Next: ", THIRD)
    follow(page, "Conventions", "conventions/", exact=True)
    page.go_back()
    arrive(page, THIRD)
    assert not loaded(page)
    exchanged = page.evaluate(SEEN)
    page.goto(address + THIRD)
    page.evaluate("document.fonts.ready")
    fresh = page.evaluate(SEEN)
    assert any(name == "math" for name, *_ in fresh["sizes"])
    assert exchanged == fresh


def test_switches_and_citations_are_those_of_the_page(page, address):
    begin(page, address, FIRST)
    follow(page, "Next: ", SECOND)
    switch = page.locator(".ac-switch").first
    switch.locator("label").nth(1).click()
    expect(switch.locator(".ac-panel").nth(1)).to_be_visible()
    expect(switch.locator(".ac-panel").nth(0)).to_be_hidden()
    page.keyboard.press("e")
    expect(page.locator(".ac-origin").first).to_be_visible()
    offers = page.locator(".ac-cite").count()
    assert offers > 0
    title = page.locator("article h1").evaluate("one => one.firstChild.textContent")
    page.locator(".ac-check .ac-cite").first.click()
    dialog = page.get_by_role("dialog").filter(has=page.get_by_role("button", name="Close"))
    expect(dialog).to_contain_text(f"in “{title}”")
    expect(dialog.locator("pre")).to_contain_text(f"{SECOND}#")
    # Who goes back leaves the dialog, and still wants to know where numbers come from.
    page.go_back()
    arrive(page, FIRST)
    expect(dialog).to_have_count(0)
    expect(page.locator(".ac-sources input")).to_be_checked()
    assert page.locator(".ac-cite").count() > 0
    page.go_forward()
    arrive(page, SECOND)
    expect(page.locator(".ac-cite")).to_have_count(offers)
    page.keyboard.press("e")
    expect(page.locator(".ac-origin").first).to_be_hidden()
    assert not loaded(page)


def test_things_to_touch_begin_in_every_content_and_leave_nothing_behind(page, address):
    begin(page, address, FIRST)
    heard = []
    for queries in ("4", "5", "6"):
        follow(page, "Masks to try", MASKS)
        page.get_by_label("Queries", exact=True).fill(queries)
        expect(page.locator(".ac-masks [role=status]")).to_contain_text(f"of {int(queries) ** 2}")
        follow(page, re.compile("^Online softmax"), STEPS)
        page.locator("ac-steps").scroll_into_view_if_needed()
        page.get_by_role("button", name="Next", exact=True).click()
        expect(page.locator("ac-steps [role=status]")).to_contain_text("Step 2 of")
        heard.append(page.evaluate("window.listeners"))
    assert heard[0] == heard[-1] > 0
    assert not loaded(page)


def test_the_list_of_models_is_filtered_and_sorted_each_time(page, address):
    begin(page, address, "models/coverage/")
    for _ in range(2):
        page.locator("a[href$='/models/']:visible").first.click()
        arrive(page, "models/")
        expect(page.locator(".ac-models thead button")).to_have_count(page.locator(".ac-models thead th").count())
        page.get_by_label("Filter").fill("latent")
        expect(page.locator(".ac-filter output")).to_contain_text(" of ")
        page.get_by_role("button", name="parameters", exact=True).click()
        expect(page.locator(".ac-models [aria-sort]")).to_have_count(1)
        page.go_back()
        arrive(page, "models/coverage/")
    assert not loaded(page)


def test_the_ledger_is_loaded_in_full_by_every_way(page, address):
    """Its policy admits WebAssembly, which no other page's does, and an exchange would keep the first."""
    begin(page, address, FIRST)
    follow(page, "Live ledger", "models/live/")
    assert loaded(page)
    expect(page.locator(".ac-live pre code")).to_contain_text('"cache"')
    page.get_by_label("Context, in tokens").fill("4321")
    expect(page).to_have_url(re.compile("#ledger:.*context=4321"))
    view = page.url
    page.evaluate("window.mark = true; 0")
    follow(page, "Conventions", "conventions/", exact=True)
    assert loaded(page)
    listed(page)
    follow(page, "By symptom", "symptoms/")
    page.go_back()
    arrive(page, "conventions/")
    page.go_back()
    arrive(page, "models/live/")
    assert page.url == view
    expect(page.get_by_label("Context, in tokens")).to_have_value("4321")
    assert page.evaluate("""async () => WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => true)""")
    page.go_back()
    arrive(page, FIRST)
    expect(page.locator("math").first).to_be_visible()
    follow(page, "Next: ", SECOND)


def test_a_link_within_the_page_keeps_what_was_chosen(page, address):
    begin(page, address, FIRST)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    for place in (FIRST, SECOND):
        second = page.locator(".ac-switch").first.locator("input").nth(1)
        second.check(force=True)
        sections = page.locator(".md-sidebar--secondary a")
        for number in (3, 4):
            sections.nth(number).click()
            target = sections.nth(number).evaluate("one => decodeURIComponent(one.hash)")
            expect(page.locator(target)).to_be_in_viewport()
        page.go_back()
        expect(page.locator(sections.nth(3).evaluate("one => decodeURIComponent(one.hash)"))).to_be_in_viewport()
        expect(second).to_be_checked()
        assert address + place not in asked
        asked.clear()
        if place == FIRST:
            follow(page, "Next: ", SECOND)
            asked.clear()
    assert not loaded(page)


def test_the_keyboard_and_the_eye_come_to_the_new_page(page, address):
    begin(page, address, FIRST)
    following = page.get_by_role("link", name="Next: ")
    following.focus()
    until(page, "scrollY > 0")
    # What the reader saw is remembered when the scrolling has come to rest.
    until(page, "history.state?.y === scrollY")
    below = page.evaluate("scrollY")
    page.keyboard.press("Enter")
    arrive(page, SECOND)
    expect(page.locator(".md-content h1")).to_be_focused()
    until(page, "scrollY === 0")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('.md-content').contains(document.activeElement)")
    assert page.locator(".md-content h1[tabindex]").count() == 0
    page.go_back()
    arrive(page, FIRST)
    until(page, f"scrollY === {below}")
    # The keys of the theme, and the way past the menu.
    page.keyboard.press("n")
    arrive(page, SECOND)
    expect(page.locator(".md-content h1")).to_be_focused()
    skip = page.get_by_role("link", name="Skip to content")
    skip.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#."))
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('.md-content').contains(document.activeElement)")
    assert not loaded(page)


def test_a_search_leads_to_its_section_and_marks_the_words(page, address):
    begin(page, address, FIRST)
    page.keyboard.press("/")
    expect(page.get_by_role("textbox", name="Search")).to_be_focused()
    page.keyboard.type("MLA absorb")
    result = page.locator(".md-search-result__link[href*='#the-derivation']").first
    result.wait_for()
    result.click()
    arrive(page, "attention/latent-attention/")
    section = page.locator("#the-derivation")
    expect(section).to_be_focused()
    expect(section).to_be_in_viewport()
    expect(page.locator(".md-search__output")).to_be_hidden()
    page.locator(".md-content mark").first.wait_for()
    assert not loaded(page)


def test_a_link_into_another_page_s_fold_opens_it(page, address):
    begin(page, address, FIRST)
    page.goto(address + SECOND)
    fold = page.locator(".md-content details:not([open]) [id]:not([id^=__])").first.get_attribute("id")
    begin(page, address, FIRST)
    page.evaluate("""(href) => {
      const link = Object.assign(document.createElement("a"), { href, textContent: "into a fold" });
      document.querySelector("article").prepend(link);
    }""", f"{address}{SECOND}#{fold}")
    follow(page, "into a fold", SECOND)
    expect(page.locator(f'[id="{fold}"]')).to_be_in_viewport()
    assert not loaded(page)


def test_other_keys_and_files_are_left_to_the_browser(page, address):
    begin(page, address, FIRST)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Next: ").click(modifiers=["Shift"])
    opened.value.close()
    expect(page).to_have_url(address + FIRST)
    with page.expect_download() as download:
        page.locator("a[href$='.ipynb']").first.click()
    assert download.value.suggested_filename.endswith(".ipynb")
    assert not loaded(page)


def test_on_paper_addresses_of_other_sites_alone_stand_beside_their_links(page, address):
    begin(page, address, THIRD)
    page.emulate_media(media="print")
    beside = page.locator(".md-content p > a:not(.headerlink)").evaluate_all(
        "links => links.map(one => [one.host === location.host, getComputedStyle(one, '::after').content])"
    )
    assert {content == "none" for own, content in beside if own} == {True}
    assert {content == "none" for own, content in beside if not own} == {False}


def test_the_site_may_be_served_from_anywhere(browser, site, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "place").symlink_to(site, target_is_directory=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/some/place/"
    page = browser.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("request", lambda request: request.url.startswith(address) or wrong.append(request.url))
    try:
        begin(page, address, "")
        page.locator(".ac-map a").first.click()
        arrive(page, FIRST)
        follow(page, "Next: ", SECOND)
        page.locator(".md-logo:visible").first.click()
        page.locator(".ac-map").wait_for()
        expect(page).to_have_url(address)
        assert not loaded(page)
    finally:
        page.close()
        server.shutdown()
        server.server_close()
    assert not wrong
