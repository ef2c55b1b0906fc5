"""The built site, served and read in Chromium: the system's, or the one that $CHROMIUM names."""

import functools
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import expect, sync_playwright

SITE = Path(os.environ.get("ARCHCARDS_SITE", Path(__file__).parents[2] / "site"))
PAGES = sorted(path.relative_to(SITE).as_posix().removesuffix("index.html") for path in SITE.rglob("*.html"))
NAMES = ("chromium", "chromium-browser", "google-chrome")
# The sandbox needs rights that a container's root lacks; only the site itself is read.
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


def pytest_generate_tests(metafunc):
    """A test that takes `path` is run for every page."""
    if "path" in metafunc.fixturenames:
        metafunc.parametrize("path", PAGES, ids=lambda path: path or "home")


class _Quiet(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def end_headers(self):
        # Ten minutes are what GitHub's Pages say of all they serve.
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site():
    """The folder of the built site."""
    if not (SITE / "index.html").is_file():
        pytest.fail(f"{SITE} has no site; run make browser", pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def address(site):
    """Where the site is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=site))
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
        # Whoever leaves a page, or takes a file, breaks off what is under way.
        page.on(
            "requestfailed",
            lambda request: request.failure == "net::ERR_ABORTED"
            or wrong.append(f"failed: {request.url} {request.failure}"),
        )
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


@pytest.fixture(scope="session")
def new_examined(new_page):
    """Makes pages as `new_page` does, that axe and examine.js can be asked about."""
    scripts = [Path(path).read_text(encoding="utf-8") for path in (AXE_FILE_PATH, Path(__file__).with_name("examine.js"))]

    def make(**options):
        page, wrong = new_page(reduced_motion="reduce", **options)
        for script in scripts:
            page.add_init_script(script)
        return page, wrong

    return make


@pytest.fixture(scope="session")
def drawn():
    """Waits until a page has been drawn, and its scripts have heard in that frame how wide everything is."""
    return lambda page: page.evaluate("new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")
