"""What the Linux kernel can hold a page to: where it writes, and that it dies with its parent.

The guards of `guards` give a page's own mistakes a line; this one also holds for programs that the
page starts and for code that goes round Python (Landlock). Elsewhere these functions do nothing.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Iterable

__all__ = ["confine", "die_with_parent"]

# From the kernel's landlock.h; the numbers of these system calls are the same on all architectures.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_SET_DEATH_SIGNAL, _SET_NO_NEW_PRIVILEGES = 1, 38
_WRITE = sum(
    1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12)
)  # write, remove and make of each kind
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # since versions 2 and 3
_TCP = 0b11  # bind and connect, since version 4


class _Ruleset(ctypes.Structure):
    _fields_ = [("files", ctypes.c_uint64), ("network", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"  # what `_pack_` implies; Python 3.14 wants it said
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def confine(folders: Iterable[str]) -> bool:
    """Allows writing in `folders` only, and no TCP connection, from now on; says whether it worked."""
    if not sys.platform.startswith("linux"):
        return False
    call = ctypes.CDLL(None, use_errno=True).syscall
    version = call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if version < 1:
        return False
    files = _WRITE | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    ruleset = _Ruleset(files, _TCP)
    size = ctypes.sizeof(ruleset) if version >= 4 else 8
    rules = call(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if rules < 0:
        return False
    for folder in (*folders, "/dev"):
        if not os.path.exists(folder):
            continue
        place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        beneath = _Beneath(files, place)
        call(_ADD_RULE, rules, 1, ctypes.byref(beneath), ctypes.c_uint32(0))
        os.close(place)
    ctypes.CDLL(None).prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    restricted = call(_RESTRICT_SELF, rules, ctypes.c_uint32(0)) == 0
    os.close(rules)
    return restricted


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when process `parent`, which started it, dies."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before
            os._exit(1)
