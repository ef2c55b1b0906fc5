"""`archcards conform`: the status, one screen, and one line for bad input."""

import os
import subprocess
import sys

import pytest

from archcards.cli import main

KERNELS = '''
import numpy as np

def write(state, key, value, beta):
    error = value - np.einsum("bk,bkv->bv", key, state)
    return state + beta[:, None, None] * key[:, :, None] * error[:, None, :]

def added(S, k, v, b):
    return S + b[:, None, None] * k[:, :, None] * v[:, None, :]

def squared(state, key, value, beta):
    return write(state, key, value, beta**2)

class Layer:
    forward = staticmethod(write)

number = 3
'''


ODD = """
import functools, sys, time
import numpy as np

def write(state, key, value, beta):
    error = value - np.einsum("bk,bkv->bv", key, state)
    return state + beta[:, None, None] * key[:, :, None] * error[:, None, :]

def back(g, state, key, value, beta):
    along = beta[:, None] * np.einsum("bk,bkv->bv", key, g)
    return g - key[:, :, None] * along[:, None], None, along, None

class Layer:
    def __call__(self, state, key, value, beta): return write(state, key, value, beta)
    def forward(self, state, key, value, beta): return write(state, key, value, beta)

layer, partial = Layer(), functools.partial(write)

def listed(state, key, value, beta): return write(state, key, value, beta).tolist()
def renamed(S, k, v, b): return write(S, k, v, b)
def more(state, key, value, beta, eps): return write(state, key, value, beta)
def fewer(state, key, value): return state
def nothing(state, key, value, beta): return None
def words(state, key, value, beta): return "done"
def record(state, key, value, beta): return {"output": write(state, key, value, beta)}
def pieces(state, key, value, beta): yield write(state, key, value, beta)
async def waits(state, key, value, beta): return write(state, key, value, beta)
def leaves(state, key, value, beta): sys.exit(3)
def hungry(state, key, value, beta): raise MemoryError
def lost(state, key, value, beta): return np.nan * write(state, key, value, beta)
def complex_(state, key, value, beta): return write(state, key, value, beta) + 0j
def stopped(state, key, value, beta): raise KeyboardInterrupt

def careless(state, key, value, beta):
    result = write(state, key, value, beta)
    state *= 0
    return result

def talks(state, key, value, beta):
    print("here I am")
    return write(state, key, value, beta)

def picky(state, key, value, beta):
    if not beta.any():
        raise ValueError("nothing to write")
    return write(state, key, value, beta)

def endless(state, key, value, beta):
    while True:
        pass

def stubborn(state, key, value, beta):
    try:
        time.sleep(60)
    except Exception:
        return state
"""


@pytest.fixture
def odd(tmp_path):
    """Modules of somebody who tries what a module can be."""
    (tmp_path / "odd.py").write_text(ODD)
    (tmp_path / "unwritten.py").write_text("def f(x:\n")
    (tmp_path / "needy.py").write_text("\nimport no_such_module_at_all\n")
    (tmp_path / "leaving.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "sleepy.py").write_text("import time\ntime.sleep(60)\n")


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    (tmp_path / "kernels_of_a_reader.py").write_text(KERNELS)
    (tmp_path / "broken_module_of_a_reader.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def command(*arguments):
        status = main(["conform", *arguments])
        return status, *capfd.readouterr()  # of the child too

    return command


def test_a_match_is_status_zero(run):
    for function in ("kernels_of_a_reader:write", "kernels_of_a_reader.py:Layer.forward"):
        status, out, err = run("delta_write", function)
        assert status == 0 and not err
        assert "matches: largest difference" in out


def test_a_mistake_is_named_and_is_status_one(run):
    status, out, _ = run("delta_write", "kernels_of_a_reader:added", "--dtype", "float32")
    assert status == 1
    assert 'equals the reference with "added instead of corrected"' in out
    assert "mistake: Add the value without subtracting" in out
    status, out, _ = run("delta_write", "kernels_of_a_reader:squared")
    assert status == 1 and "matches nothing known" in out


def test_an_adapter_file_says_what_the_options_say(run, tmp_path):
    adapter = tmp_path / "adapter.toml"
    adapter.write_text(
        'mechanism = "delta_write"\nfunction = "kernels_of_a_reader:added"\ndtype = "float32"\n'
        'follows = ["added instead of corrected"]\n[names]\nstate = "S"\nkey = "k"\nvalue = "v"\n'
        'beta = "b"\n'
    )
    assert run("--adapter", str(adapter))[0] == 0
    adapter.write_text('mechanism = "delta_write"\nfuncton = "x"\n')
    status, _, err = run("--adapter", str(adapter))
    assert status == 2 and "must set only" in err and "'functon'" in err


def test_the_mechanisms_are_listed(run):
    status, out, _ = run("--list")
    assert status == 0
    assert "causal(queries, keys, offset) → mask" in out.splitlines()


def test_a_terminal_without_unicode_shows_what_it_can():
    surroundings = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "archcards", "conform", "--list"]
    shown = subprocess.run(command, env=surroundings, capture_output=True, check=True).stdout
    assert b"causal(queries, keys, offset) ? mask" in shown


@pytest.mark.parametrize(
    "setting, reason",
    [
        ("names = 5", "names must be a mapping of names, got 5"),
        ("names = {state = 3}", "names must give state as text, got 3"),
        ('names = {state = "S"}', "names must give state as a parameter of the function (beta, key, state, value), got 'S'"),
        ("axes = 5", "axes must be an order of axes, or a mapping of names, got 5"),
        ("axes = {state = 3}", "axes must give state as text, got 3"),
        ("each = 4", "each must be names, got 4"),
        ("returns = [1]", "returns must be names, got [1]"),
        ('arrays = ["torch"]', "arrays must be a name, got ['torch']"),
        ("where = 4", "where must be a mapping of names, got 4"),
        ("extra = 3", "extra must be a mapping of names, got 3"),
        ("follows = [3]", "follows must be names of controls, got [3]"),
        ("backward = 3", "a function must be MODULE:FUNCTION, got 3"),
        ('backward = "kernels_of_a_reader:number"', "must be a function, got int"),
        ("gradients = 3", "gradients must be names, got 3"),
        ("seconds = nan", "seconds must be a number above 0 and below 1,000,000, got nan"),
        ('seconds = "long"', "seconds must be a number above 0 and below 1,000,000, got 'long'"),
    ],
)
def test_what_an_adapter_file_may_not_say(run, tmp_path, setting, reason):
    adapter = tmp_path / "adapter.toml"
    adapter.write_text(f'mechanism = "delta_write"\nfunction = "kernels_of_a_reader:write"\n{setting}\n')
    status, out, err = run("--adapter", str(adapter))
    assert status == 2 and not out
    assert reason in err and len(err.strip().splitlines()) == 1


def _in_time(reason):
    """A limit that is reached where it is to be, and nowhere else on a busy machine."""
    return ("--seconds", "2") if "takes more than" in reason else ()


# Whatever a reader's code does, the answer is one line or one screen.


@pytest.mark.parametrize(
    "function, reason",
    [
        ("odd:nothing", "the function must return output, got nothing"),
        ("odd:words", "must return arrays of numbers, got str"),
        ("odd:record", "must return arrays of numbers, got dict"),
        ("odd:waits", "got a coroutine: wrap an async function in one that runs it"),
        ("odd:pieces", "got generator"),
        ("odd:leaves", "raises SystemExit at odd.py:"),
        ("odd:hungry", "raises MemoryError at odd.py:"),
        ("odd:endless", "odd:endless takes more than 2 seconds; --seconds allows more (case "),
        ("odd:stubborn", "odd:stubborn takes more than 2 seconds"),
        ("odd:Layer", "got the class Layer: name an instance, or a method of one"),
        ("odd:more", "the function needs eps, which delta_write does not have"),
        ("odd:fewer", "the function takes 3 arguments, not 4"),
        ("odd:write_", "has no write_; did you mean write?"),
        ("unwritten:f", "unwritten cannot be imported: SyntaxError: "),
        ("needy:f", "needy cannot be imported: ModuleNotFoundError at needy.py:2: No module named 'no_such"),
        ("leaving:f", "leaving cannot be imported: SystemExit at leaving.py:1: 3"),
        ("sleepy:f", "importing sleepy takes more than 2 seconds"),
    ],
)
def test_odd_code_is_one_line_and_status_two(run, odd, function, reason):
    status, out, err = run("delta_write", function, *_in_time(reason))
    assert status == 2 and not out
    assert reason in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "function", ["odd:write", "odd:layer", "odd:layer.forward", "odd:partial", "odd:listed", "odd:careless", "odd:renamed"]
)
def test_unusual_code_that_is_right_matches(run, odd, function):
    status, out, _ = run("delta_write", function)
    assert status == 0 and "matches: " in out


def test_what_the_code_prints_is_no_part_of_the_report(run, odd):
    status, out, err = run("delta_write", "odd:talks")
    assert status == 0 and out.startswith("talks as delta_write") and "here I am" in err


@pytest.mark.parametrize(
    "function, reason",
    [("odd:lost", "is nan, not "), ("odd:picky", "raises ValueError at odd.py:"), ("odd:complex_", "has dtype complex128")],
)
def test_a_case_that_fails_is_status_one(run, odd, function, reason):
    status, out, _ = run("delta_write", function)
    assert status == 1 and reason in out


def test_an_interruption_is_no_result(run, odd):
    assert run("delta_write", "odd:stopped")[0] == 130


def test_a_backward_is_named_like_a_function(run, odd):
    gradients = ("--backward", "odd:back", "--gradients", "state _ value _")
    status, out, _ = run("delta_write", "odd:write", *gradients)
    assert status == 0 and "gradients that are right" in out
    status, out, _ = run("delta_write", "odd:write", "--backward", "odd:back", "--gradients", "value _ state _")
    assert status == 1 and "results match, gradients do not" in out


@pytest.mark.parametrize(
    "arguments, reason",
    [
        (["delta_writ", "x:y"], "did you mean delta_write"),
        (["delta_write", "no_such_module_at_all:f"], "cannot be imported: ModuleNotFoundError"),
        (["delta_write", "broken_module_of_a_reader:f"], "cannot be imported: ZeroDivisionError"),
        (["delta_write", "kernels_of_a_reader:wrote"], "must have wrote"),
        (["delta_write", "kernels_of_a_reader:number"], "must be a function, got int"),
        (["delta_write", "kernels_of_a_reader"], "a function must be MODULE:FUNCTION"),
        (["delta_write", "nowhere.py:f"], "the file nowhere.py must exist"),
        (["delta_write"], "MODULE:FUNCTION is needed"),
        (["delta_write", "kernels_of_a_reader:write", "--names", "state"], "--names must be NAME=VALUE"),
        (["delta_write", "kernels_of_a_reader:write", "--dtype", "int8"], "invalid choice"),
        (["--adapter", "nowhere.toml"], "the adapter nowhere.toml cannot be read"),
    ],
)
def test_bad_input_is_one_line_and_status_two(run, arguments, reason):
    status, out, err = run(*arguments)
    assert status == 2 and not out
    assert reason in err and len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(("command", "ends"), [("conform", "implementation follow?"), ("ledger", "exact integers.")])
def test_help_says_what_a_command_is_for_in_one_sentence(capsys, command, ends):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"{ends}\n" in capsys.readouterr().out
