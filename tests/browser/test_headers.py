"""A host that sends what `_headers` says blocks nothing that a page needs, and lets no other site frame it."""

import functools
import json
import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from archcards.ledger import bundled_config

PLACES = ["", "attention/masks/", "attention/online-softmax/", "accounting/cache/", "api/conform/", "evidence/", "404.html"]


def rules(text):
    """The headers of each pattern, as such a file gives them."""
    found = {}
    for line in filter(None, text.splitlines()):
        if line.startswith("/"):
            sent = found.setdefault(line, {})
        else:
            name, _, value = line.strip().partition(": ")
            sent[name] = value
    return found


@pytest.fixture(scope="module")
def hosted(site):
    """Where a host serves the site with these headers."""
    known = rules((site / "_headers").read_text(encoding="utf-8"))

    class Host(SimpleHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def end_headers(self):
            path = self.path.partition("?")[0]
            for pattern, sent in known.items():
                if re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), path):
                    for name, value in sent.items():
                        self.send_header(name, value)
            super().end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Host, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def quiet(browser, hosted):
    """A page of that host, on which nothing may be said or refused."""
    page = browser.new_context().new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("response", lambda got: got.status >= 400 and wrong.append(f"{got.status}: {got.url}"))
    yield page
    page.context.close()
    assert not wrong


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place or "home")
def test_pages_are_as_they_were(quiet, hosted, place):
    answer = quiet.goto(hosted + place)
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    for widget in quiet.locator("ac-live, ac-masks, ac-growth, ac-steps").all():
        widget.scroll_into_view_if_needed()
        expect(widget.locator("form").first).to_be_visible()
    if quiet.locator("math").count():
        quiet.evaluate("document.fonts.ready")
        assert quiet.evaluate("[...document.fonts].some(font => font.status === 'loaded')")


def test_a_drawing_is_drawn_by_itself(quiet, hosted, site):
    drawing = min(site.glob("attention/*/*.svg"))
    quiet.route("**/favicon.ico", lambda route: route.fulfill(body=""))  # of which a page of the site says where it is
    quiet.goto(hosted + drawing.relative_to(site).as_posix())
    colours = quiet.evaluate("[...document.querySelectorAll('path')].map((path) => getComputedStyle(path).stroke)")
    assert any(colour.startswith("rgb") for colour in colours)


def test_links_and_the_search_are_as_they_were(quiet, hosted):
    quiet.goto(hosted)
    quiet.get_by_role("link", name="Causal visibility and the prefix read").first.click()
    expect(quiet.locator("h1")).to_contain_text("Causal visibility")
    quiet.keyboard.press("/")
    expect(quiet.get_by_role("textbox", name="Search")).to_be_focused()
    quiet.keyboard.type("kv cache size")
    expect(quiet.locator(".md-search-result__link").first).to_be_visible()


def test_python_runs_in_its_worker(quiet, hosted):
    quiet.goto(f"{hosted}models/live/#ledger:{urlencode({'a': 'own', 'context': '5000'})}")
    quiet.get_by_label("config.json", exact=True).first.fill(json.dumps(bundled_config("Qwen3-0.6B")))
    quiet.get_by_role("button", name="Count").first.click()
    expect(quiet.locator(".ac-live__summary")).to_contain_text("config.json:", timeout=120_000)


@pytest.mark.parametrize("sent", [True, False], ids=["with headers", "without"])
def test_no_other_site_may_frame_it(browser, hosted, address, sent):
    page = browser.new_context().new_page()
    inside = f'<iframe src="{hosted if sent else address}"></iframe>'
    page.route(f"{address}framing", lambda route: route.fulfill(content_type="text/html", body=inside))
    page.goto(f"{address}framing")
    assert page.frame_locator("iframe").locator("h1", has_text="Architecture Cards").count() == (not sent)
    page.context.close()
