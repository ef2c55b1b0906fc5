"""A reader's function may do to its process what it likes: `archcards conform` says so and goes on."""

import base64
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from archcards import cases
from archcards.adapter import Adapter, ConformError
from archcards.cli import main
from archcards.conform_child import arrays
from archcards.conform_process import ReaderProcess

HOSTILE = """
import base64, ctypes, json, os, signal, subprocess, sys, threading, time
import numpy as np

def write(state, key, value, beta):
    error = value - np.einsum("bk,bkv->bv", key, state)
    return state + beta[:, None, None] * key[:, :, None] * error[:, None, :]

def leaves_well(*given): os._exit(0)
def leaves_ill(*given): os._exit(3)
def aborts(*given): os.abort()
def crashes(*given): ctypes.string_at(0)
def starves(*given): os.kill(os.getpid(), signal.SIGKILL)
def closes(*given): os.closerange(3, 256)

def clings(*given):
    while True:
        try:
            time.sleep(60)
        except BaseException:
            pass

def waits_for_itself(*given):
    lock = threading.Lock()
    with lock, lock:
        pass

def late_once(state, key, value, beta):
    if state.size > 4:
        clings()
    return write(state, key, value, beta)

def leaves_later(state, key, value, beta):
    if len(beta) > 1:
        os._exit(0)
    return write(state, key, value, beta)

def shouts(state, key, value, beta):
    os.write(1, b"\\xff\\x00 nonsense \\n" * 10)
    subprocess.run([sys.executable, "-c", "print('a child of a child')"])
    print('{"value": null}', file=sys.__stdout__)
    return write(state, key, value, beta)

def listens(state, key, value, beta):
    assert sys.stdin.read() == "" and os.read(0, 10) == b""
    return write(state, key, value, beta)

def forks(state, key, value, beta):
    forked = os.fork()
    if forked == 0:
        time.sleep(600)
    with open("forked", "a") as file:
        file.write(f"{forked}\\n")
    return write(state, key, value, beta)

def comes_back_twice(state, key, value, beta):
    os.fork()
    return write(state, key, value, beta)

def daemonises(state, key, value, beta, dies=False):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(2)
            os.dup2(os.open(os.devnull, os.O_RDWR), 1)
            time.sleep(10)
        os._exit(0)
    if dies:
        os._exit(0)
    return write(state, key, value, beta)

def daemonises_and_leaves(*given): return daemonises(*given, dies=True)

def speaks_for_us(state, key, value, beta):
    for pipe in range(3, 20):
        try:
            os.write(pipe, b"nonsense\\n")
        except OSError:
            pass
    return write(state, key, value, beta)

CALLS = []

def answers_another_question(state, key, value, beta):
    right = np.ascontiguousarray(write(state, key, value, beta))
    CALLS.append(right)
    if len(CALLS) < 5:
        return right
    # In the last case, when no later question would find the answers one step out.
    packed = ["<f8", right.shape, base64.b64encode(right.tobytes()).decode()]
    return forged({"number": 1, "arrays": {"state": packed}}, state)

def answers_with_a_word(state, key, value, beta):
    CALLS.append(state)
    # The first two questions are of the function, and then there are two of each case.
    number = 2 + 2 * len(CALLS)
    return forged({"number": number, "value": None}, state) if len(CALLS) == 5 else write(state, key, value, beta)

def forged(answer, state):
    for pipe in range(3, 20):
        try:
            os.write(pipe, (json.dumps(answer) + "\\n").encode())
        except OSError:
            pass
    return 0 * state

def rewords(state, key, value, beta):
    json.dumps = lambda *_, **__: '{"value": null}'
    return 0 * state

def sleeps_beside(*given):
    beside = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    open("beside", "w").write(str(beside.pid))
    clings()

def back_and_gone(*given, **named): os._exit(0)

class Unspeakable(Exception):
    def __str__(self): raise self

def unspeakable(*given): raise Unspeakable

def huge(state, key, value, beta): return np.broadcast_to(np.zeros(1), (2**20, 2**10))
def text(state, key, value, beta): return np.array(["one"])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "hostile.py").write_text(HOSTILE)
    (tmp_path / "leaving_well.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "gone.py").write_text("import os\nos._exit(0)\n")
    (tmp_path / "loud.py").write_text(
        "print('many words ' * 100_000)\n" + HOSTILE.replace("hostile", "loud")
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, capfd):
    def command(*arguments):
        status = main(["conform", "delta_write", *arguments])
        return status, *capfd.readouterr()

    return command


posix = pytest.mark.skipif(os.name != "posix", reason="Windows has no signals and no fork")


def _in_time(reason):
    """A limit that is reached where it is to be, and nowhere else on a busy machine."""
    return ("--seconds", "2") if "takes more than" in reason else ()


@pytest.mark.parametrize(
    "function, reason",
    [
        ("hostile:leaves_well", "hostile:leaves_well ended its process with status 0, and must return (case 'one number')"),
        ("hostile:leaves_ill", "hostile:leaves_ill ended its process with status 3, and must return"),
        pytest.param("hostile:aborts", "ended its process by SIGABRT, and must return", marks=posix),
        pytest.param("hostile:crashes", "ended its process by SIGSEGV, and must return", marks=posix),
        pytest.param("hostile:starves", "by SIGKILL, which is what a system out of memory sends, and", marks=posix),
        ("hostile:clings", "hostile:clings takes more than 2 seconds; --seconds allows more (case "),
        ("hostile:waits_for_itself", "hostile:waits_for_itself takes more than 2 seconds"),
        ("hostile:late_once", "hostile:late_once takes more than 2 seconds; --seconds allows more (case "),
        ("hostile:leaves_later", "hostile:leaves_later ended its process with status 0, and must return (case "),
        ("hostile:unspeakable", "the function raises Unspeakable at hostile.py:"),
        ("hostile:huge", "output must have at most 67108864 bytes, got shape (1048576, 1024)"),
        ("hostile:text", "the function must return arrays of numbers, got an array of dtype <U3"),
        ("leaving_well:f", "leaving_well cannot be imported: SystemExit at leaving_well.py:2: 0"),
        ("gone:f", "importing gone ended its process with status 0, and must return"),
    ],
)  # fmt: skip
def test_no_way_out_is_a_pass(run, function, reason):
    status, out, err = run(function, *_in_time(reason))
    assert status == 2 and not out
    assert reason in err and len(err.strip().splitlines()) == 1


@posix
@pytest.mark.parametrize("function", ["daemonises", "comes_back_twice", "listens"])
def test_what_a_right_function_does_beside_is_its_own_affair(run, function):
    status, out, err = run(f"hostile:{function}")
    assert status == 0 and out.startswith(f"{function} as delta_write, float64\nmatches: ")
    assert out.count("matches") == 1 and "Traceback" not in err


@posix
def test_what_it_forked_ends_with_it(run, folder):
    assert run("hostile:forks")[0] == 0
    forked = [int(line) for line in (folder / "forked").read_text().split()]
    assert len(forked) == len(cases.of("delta_write").cases) and all(map(_gone, forked))


@posix
def test_a_daemon_does_not_hide_that_its_parent_died(run):
    status, out, err = run("hostile:daemonises_and_leaves")
    assert (status, out) == (2, "")
    assert "hostile:daemonises_and_leaves ended its process with status 0" in err


@posix
def test_answers_that_others_write_are_none_of_ours(run):
    assert len(cases.of("delta_write").cases) == 5
    for function, number in (("answers_another_question", 1), ("answers_with_a_word", 12)):
        status, out, err = run(f"hostile:{function}")
        assert (status, out) == (2, "")
        assert f'hostile:{function} must leave our pipe alone, got {{"number": {number}, ' in err
    assert run("hostile:rewords")[0] == 1


def test_garbage_on_standard_output_is_no_report(run):
    status, out, err = run("hostile:shouts")
    assert status == 0 and out.startswith("shouts as delta_write") and "nonsense" not in out
    assert "nonsense" in err and "a child of a child" in err and '{"value": null}' in err


@posix
def test_garbage_in_our_own_pipe_is_refused(run):
    status, out, err = run("hostile:speaks_for_us")
    assert (status, out) == (2, "")
    assert "hostile:speaks_for_us must leave our pipe alone, got b'nonsense\\n' from it" in err


@posix
def test_a_pipe_that_is_closed_is_the_end(run):
    status, out, err = run("hostile:closes")
    assert (status, out) == (2, "") and "hostile:closes ended its process" in err.splitlines()[-1]


def test_a_module_may_print_a_lot(run):
    status, out, err = run("loud:write")
    assert status == 0 and out.startswith("write as delta_write") and len(err) > 1_000_000


def test_a_backward_that_ends_the_process(run):
    gradients = ("--backward", "hostile:back_and_gone", "--gradients", "state key value beta")
    status, out, err = run("hostile:write", *gradients)
    assert (status, out) == (2, "")
    assert "hostile:write with gradients ended its process with status 0, and must return (case '" in err


def test_after_a_death_another_child_goes_on(folder):
    with ReaderProcess("delta_write", "hostile:leaves_later") as process:
        bound = process.bind(Adapter())
        one, *_, many = sorted(cases.of("delta_write").cases, key=lambda case: len(case.arguments["beta"]))
        for _ in range(2):
            assert list(bound.results(one)) == ["output"]
            with pytest.raises(ConformError, match="ended its process with status 0"):
                bound.results(many)
        assert bound.name == "leaves_later"


@pytest.fixture
def marking(folder):
    """The command at work on a function that swallows every exception, and its child's number."""
    marks = "\ndef marks(*given):\n    open('child', 'w').write(str(os.getpid()))\n    clings()\n"
    (folder / "marking.py").write_text(HOSTILE + marks)
    command = [sys.executable, "-m", "archcards", "conform", "delta_write", "marking:marks"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_surroundings()) as started:
        mark = folder / "child"
        while not mark.exists() or not mark.read_text():
            assert started.poll() is None
            time.sleep(0.02)
        yield started, int(mark.read_text())
        started.kill()


@posix
def test_ctrl_c_ends_the_command_and_its_child(marking):
    started, child = marking
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out, err) == (130, b"", b"")
    assert _gone(child)


@posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP] if os.name == "posix" else [])
def test_a_command_that_is_told_to_end_leaves_nothing(folder, number):
    command = [sys.executable, "-m", "archcards", "conform", "delta_write", "hostile:sleeps_beside"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_surroundings()) as started:
        mark = folder / "beside"
        while not mark.exists() or not mark.read_text():
            assert started.poll() is None
            time.sleep(0.02)
        started.send_signal(number)
        started.communicate(timeout=60)
        assert started.returncode == 128 + number
    assert _gone(int(mark.read_text()))


@posix
@pytest.mark.parametrize(
    ("closed", "status", "told"),
    [
        ("2>&-", 0, b""),  # what the function writes goes nowhere, and not into our pipe
        (">&-", 2, b"archcards: standard output: expected one that is open, came none\n"),
    ],
)
def test_closed_standard_streams(folder, closed, status, told):
    command = f"exec {sys.executable} -m archcards conform delta_write hostile:shouts {closed}"
    ran = subprocess.run(["sh", "-c", command], capture_output=True, env=_surroundings())
    assert (ran.returncode, ran.stderr) == (status, told)


@pytest.mark.skipif(sys.platform != "linux", reason="only the Linux kernel ends a process with its parent")
def test_a_command_that_is_killed_leaves_no_child(marking):
    started, child = marking
    started.kill()
    started.communicate(timeout=60)  # the child had standard error open
    assert _gone(child)


def _gone(process):
    """Whether a process has ended, though perhaps nobody asked for its status yet."""
    for _ in range(100):  # what is killed takes its time to die
        command = ["ps", "-o", "stat=", "-p", str(process)]
        status = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        if status[:1] in ("", "Z"):
            return True
        time.sleep(0.1)
    return False


def _surroundings():
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def test_the_status_reaches_whoever_calls(folder):
    """As CI sees it: a process that ends well is no pass."""
    command = [sys.executable, "-m", "archcards", "conform", "delta_write", "hostile.py:leaves_well"]
    run = subprocess.run(command, capture_output=True, env=_surroundings())
    assert run.returncode == 2 and not run.stdout and run.stderr.count(b"\n") == 1


def test_arrays_come_back_as_they_were():
    sent = {
        "half": np.arange(6, dtype=np.float16).reshape(2, 3).T,
        "empty": np.zeros((0, 3)), "single": np.array(-0.0), "truth": np.array([True, False]),
        "big-endian": np.array([1, 2], dtype=">i4"), "infinite": np.array([np.inf, np.nan]), "none": None,
    }  # fmt: skip
    packed = {
        name: None if x is None else [x.dtype.str, list(x.shape), base64.b64encode(x.tobytes()).decode()]
        for name, x in sent.items()
    }
    found = arrays(packed)
    assert found.keys() == sent.keys() and found["none"] is None
    for name in sent.keys() - {"none"}:
        assert found[name].dtype == sent[name].dtype and found[name].flags.writeable
        np.testing.assert_array_equal(found[name], sent[name], strict=True)


@pytest.mark.parametrize(
    "dtype, shape, data",
    [("|O", [1], "AAAAAAAAAAA="), ("<f8", [2], "AAAAAAAAAAA="), ("<f8", [1], "not base64"), ("os.system", [1], "AA==")],
)
def test_what_is_no_array_of_numbers_is_refused(dtype, shape, data):
    with pytest.raises((ValueError, TypeError)):
        arrays({"output": [dtype, shape, data]})
