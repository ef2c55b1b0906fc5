"""The built site, served and read in Chromium: the system's, or the one that $CHROMIUM names."""

import functools
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

SITE = Path(os.environ.get("ARCHCARDS_SITE", Path(__file__).parents[2] / "site"))
NAMES = ("chromium", "chromium-browser", "google-chrome")
# The sandbox needs rights that a container's root lacks; only the site itself is read.
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address():
    """Where the site is served."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"{SITE} has no site; run make browser", pytrace=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def browser():
    """Chromium, once for all tests."""
    named = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), "")
    if not Path(named).is_file():
        pytest.fail("no Chromium was found; install it (Debian: apt-get install chromium) or set CHROMIUM", pytrace=False)
    expect.set_options(timeout=60_000)  # A busy machine is slow, and nothing here is timed.
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=named, args=ARGUMENTS.split())
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def new_page(browser, address):
    """Makes a page in a context of its own, and a list of what goes wrong on it."""

    def make(**options):
        page = browser.new_context(**options).new_page()
        wrong = []
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url} {request.failure}"))
        page.on("response", lambda got: got.status >= 400 and wrong.append(f"{got.status}: {got.url}"))
        page.on(
            "request",
            lambda request: request.url.startswith((address, "data:", "blob:"))
            or wrong.append(f"foreign: {request.url}"),
        )
        return page, wrong

    return make


@pytest.fixture
def page(new_page):
    """A page on which nothing may go wrong."""
    made, wrong = new_page()
    yield made
    made.context.close()
    assert not wrong
