"""A new site replaces the old one in a single step, when it is proved, or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = ["BuildInProgress", "beside", "discard", "lock", "publish"]

_AT_FDCWD, _EXCHANGE = -100, 2


class BuildInProgress(RuntimeError):
    """Another build of the same site is running."""


@contextlib.contextmanager
def lock(site: Path) -> Iterator[None]:
    """Holds the right to build `site`; left-overs of a build that was killed are cleared away.

    Raises:
        BuildInProgress: another process holds it.
    """
    site.parent.mkdir(parents=True, exist_ok=True)
    # The kernel frees a lock when its process ends, however it ends.
    with open(site.parent / f".{site.name}.lock", "w") as held:
        try:
            if sys.platform == "win32":
                msvcrt.locking(held.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BuildInProgress(f"another build of {site} is running; wait for it or end it") from None
        _recover(site)
        yield


def beside(site: Path) -> Path:
    """A new empty folder on the same file system as the site."""
    fresh = site.parent / f".{site.name}-{os.getpid()}"
    discard(fresh)
    fresh.mkdir()
    return fresh


def publish(fresh: Path, site: Path) -> None:
    """Puts `fresh` where `site` is. At no moment is there half a site."""
    if not site.exists():
        fresh.rename(site)
    elif _exchange(fresh, site):
        discard(fresh)
    else:
        old = site.parent / f".{site.name}-old"
        discard(old)
        site.rename(old)
        fresh.rename(site)
        discard(old)


def discard(folder: Path) -> None:
    """Removes a folder if it is there."""
    if folder.exists():
        shutil.rmtree(folder)


def _recover(site: Path) -> None:
    old = site.parent / f".{site.name}-old"
    if old.exists() and not site.exists():  # killed between the two renames
        old.rename(site)
    for folder in site.parent.glob(f".{site.name}-*"):
        if folder.is_dir():
            discard(folder)


def _exchange(first: Path, second: Path) -> bool:
    """Swaps two folders atomically, where the system can."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    return rename(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _EXCHANGE) == 0
