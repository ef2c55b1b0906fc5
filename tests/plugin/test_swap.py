"""The old site stays whole until the new one is there, whatever happens."""

import os
import signal
import subprocess
import sys
import time

import pytest

from archcards.plugin import swap


@pytest.fixture(params=["exchange", "two renames"])
def publish(request, monkeypatch):
    if request.param == "two renames":
        monkeypatch.setattr(swap, "_exchange", lambda first, second: False)
    return swap.publish


def make(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(text)
    return folder


def left(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_the_new_replaces_the_old(tmp_path, publish):
    site = make(tmp_path / "site", "old")
    (site / "gone.html").write_text("old")
    publish(make(tmp_path / ".site-1", "new"), site)
    assert left(site) == ["index.html"] and (site / "index.html").read_text() == "new"
    assert left(tmp_path) == ["site"]


def test_a_first_site(tmp_path, publish):
    publish(make(tmp_path / ".site-1", "new"), tmp_path / "site")
    assert left(tmp_path) == ["site"]


def test_killed_between_the_renames_the_old_site_comes_back(tmp_path):
    make(tmp_path / ".site-old", "old")
    make(tmp_path / ".site-77", "half")
    with swap.lock(tmp_path / "site"):
        assert (tmp_path / "site" / "index.html").read_text() == "old"
    assert left(tmp_path) == ["site"]


def test_left_overs_do_not_bring_an_older_site_back(tmp_path):
    make(tmp_path / "site", "new")
    make(tmp_path / ".site-old", "old")
    with swap.lock(tmp_path / "site"):
        assert (tmp_path / "site" / "index.html").read_text() == "new"
    assert left(tmp_path) == ["site"]


def test_a_second_build_is_refused_until_the_first_ends_however_it_ends(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from archcards.plugin import swap\n"
        "with swap.lock(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "site")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(swap.BuildInProgress, match="another build"), swap.lock(tmp_path / "site"):
            pass
        os.kill(other.pid, signal.SIGKILL)
    for _ in range(50):  # the kernel frees the lock when the process is gone
        try:
            with swap.lock(tmp_path / "site"):
                return
        except swap.BuildInProgress:
            time.sleep(0.1)
    pytest.fail("the lock outlives its process")


def test_a_fresh_folder_is_empty_and_on_the_same_file_system(tmp_path):
    fresh = swap.beside(tmp_path / "site")
    (fresh / "a").write_text("")
    again = swap.beside(tmp_path / "site")
    assert again == fresh and left(again) == []
    assert fresh.stat().st_dev == tmp_path.stat().st_dev
