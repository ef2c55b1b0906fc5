"""What is asked of the kernel, in each of its versions: by a kernel that only listens."""

import ctypes
import os
import sys

import pytest

from archcards.evidence import confine as module

# From Linux's include/uapi/linux/landlock.h and asm-generic/unistd.h.
WRITE_FILE, REMOVE_DIR, REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
MAKE = sum(1 << bit for bit in range(6, 13))  # a device, folder, file, socket, pipe, block device and link
REFER, TRUNCATE = 1 << 13, 1 << 14
WRITING = WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
VERSION, PATH_BENEATH = 1, 1
BIND_AND_CONNECT = 3
NO_NEW_PRIVILEGES = 38


class Kernel:
    """Answers as a kernel of that version, and remembers what it is asked."""

    def __init__(self, version, ruleset=None, restricted=0):
        self.version, self.restricted = version, restricted
        self.ruleset = os.open(os.devnull, os.O_RDONLY) if ruleset is None else ruleset
        self.asked = []

    def syscall(self, number, *given):
        if number == CREATE_RULESET and given[0] is None:
            assert (given[1].value, given[2].value) == (0, VERSION)
            return self.version
        if number == CREATE_RULESET:
            size = given[1].value
            words = ctypes.string_at(ctypes.addressof(given[0]._obj), size)
            self.asked.append(("rules", [int.from_bytes(words[n : n + 8], sys.byteorder) for n in range(0, size, 8)], given[2].value))
            return self.ruleset
        if number == ADD_RULE:
            rules, kind, beneath, flags = given
            allowed = ctypes.string_at(ctypes.addressof(beneath._obj), 12)
            place = os.readlink(f"/proc/self/fd/{int.from_bytes(allowed[8:], sys.byteorder)}")
            self.asked.append(("beneath", rules, kind, int.from_bytes(allowed[:8], sys.byteorder), place, flags.value))
            return 0
        assert number == RESTRICT_SELF
        self.asked.append(("restrict", given[0], given[1].value))
        return self.restricted

    def prctl(self, *given):
        self.asked.append(("prctl", *given))
        return 0


@pytest.fixture
def kernel(monkeypatch):
    def made(*given, **options):
        one = Kernel(*given, **options)
        monkeypatch.setattr(module.ctypes, "CDLL", lambda *_, **__: one)
        return one

    return made


pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has these calls")


@pytest.mark.parametrize(
    ("version", "rights"),
    [
        (1, [WRITING]), (2, [WRITING | REFER]), (3, [WRITING | REFER | TRUNCATE]),
        (4, [WRITING | REFER | TRUNCATE, BIND_AND_CONNECT]), (6, [WRITING | REFER | TRUNCATE, BIND_AND_CONNECT]),
    ],
)  # fmt: skip
def test_each_version_is_asked_for_what_it_knows(kernel, tmp_path, version, rights):
    one = kernel(version)
    assert module.confine([str(tmp_path), str(tmp_path / "not there")])
    rules = one.ruleset
    assert one.asked == [
        ("rules", rights, 0),
        ("beneath", rules, PATH_BENEATH, rights[0], str(tmp_path), 0),
        ("beneath", rules, PATH_BENEATH, rights[0], "/dev", 0),
        ("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0),  # the kernel refuses other numbers here
        ("restrict", rules, 0),
    ]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(rules)


@pytest.mark.parametrize("version", [0, -1])
def test_a_kernel_without_it_is_asked_for_nothing(kernel, version):
    one = kernel(version)
    assert not module.confine(["/"]) and not one.asked
    os.close(one.ruleset)


def test_what_the_kernel_refuses_is_said(kernel, tmp_path):
    kernel(4, restricted=-1)
    assert not module.confine([str(tmp_path)])
    one = kernel(4, ruleset=-1)
    assert not module.confine([str(tmp_path)])
    assert [asked[0] for asked in one.asked] == ["rules"]


def test_no_other_system_is_asked(kernel, monkeypatch):
    one = kernel(6)
    monkeypatch.setattr(module.sys, "platform", "darwin")
    assert not module.confine(["/"])
    module.die_with_parent(os.getppid())
    assert not one.asked
    os.close(one.ruleset)


def test_a_process_dies_with_its_parent_and_at_once_if_that_has_died(kernel, monkeypatch):
    one = kernel(6)
    module.die_with_parent(os.getppid())
    assert one.asked == [("prctl", 1, 9, 0, 0, 0)]  # PR_SET_PDEATHSIG, SIGKILL
    left = []
    monkeypatch.setattr(module.os, "_exit", left.append)
    module.die_with_parent(os.getpid())
    assert left == [1]
    os.close(one.ruleset)
