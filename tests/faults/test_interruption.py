"""Whatever ends a build, the site that was there stays, whole."""

import ctypes
import os
import signal
import subprocess
import sys
import time

import pytest


@pytest.fixture
def running(new_book, root):
    """A book, and a build of it that is busy with a chapter."""
    book = new_book().put()
    page = book.folder / "docs" / "index.md"
    page.write_text(page.read_text().replace("sound_page_value =", "import time; time.sleep(19)\nsound_page_value ="))
    build = subprocess.Popen(
        [sys.executable, "-m", "mkdocs", "build", "-q"], cwd=book.folder,
        env=os.environ | {"PYTHONPATH": str(root / "src")}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + 120
    while not [path for path in book.folder.glob(".site-*") if path.is_dir()]:
        assert build.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    yield book, build
    build.kill()
    build.wait()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_build_that_is_stopped(running, how):
    book, build = running
    build.send_signal(how)
    assert build.wait(60) != 0
    assert book.published() == book.before


def test_two_builds_at_once(running):
    book, build = running
    other = book.run("mkdocs", "build", "-q")
    assert other.returncode != 0 and "Traceback" not in other.stderr
    assert f"another build of {book.site} is running; wait for it or end it" in other.stderr
    assert build.poll() is None and book.published() == book.before


def test_a_place_that_cannot_hold_a_site(new_book):
    book = new_book().put()
    (book.folder / "file").write_text("")
    with open(book.folder / "mkdocs.yml", "a") as settings:
        settings.write("site_dir: file/site\n")
    built = book.run("mkdocs", "build", "-q")
    assert built.returncode != 0 and "Traceback" not in built.stderr
    assert f"cannot build {book.folder / 'file' / 'site'}: " in built.stderr


ROOT_ELSEWHERE = hasattr(os, "geteuid") and os.geteuid() == 0 and not sys.platform.startswith("linux")


@pytest.mark.skipif(os.name == "nt", reason="a folder on Windows cannot be made unwritable this way")
@pytest.mark.skipif(ROOT_ELSEWHERE, reason="root may write everywhere, and gives that up on Linux only")
def test_a_tree_that_can_only_be_read(new_book):
    book = new_book().put()
    book.folder.chmod(0o555)
    try:
        built = book.run("mkdocs", "build", "-q", first=without_override if os.geteuid() == 0 else None)
    finally:
        book.folder.chmod(0o755)
    assert built.returncode != 0 and "Traceback" not in built.stderr
    assert f"cannot build {book.site}: " in built.stderr and book.published() == book.before


def without_override():
    """Has the program that this process becomes, and what that starts, heed permissions although it is root."""
    drop, override = 24, 1  # PR_CAPBSET_DROP of prctl(2), CAP_DAC_OVERRIDE of capabilities(7)
    if ctypes.CDLL(None, use_errno=True).prctl(drop, override, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot give up the right to write everywhere")
