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


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    (tmp_path / "kernels_of_a_reader.py").write_text(KERNELS)
    (tmp_path / "broken_module_of_a_reader.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def command(*arguments):
        status = main(["conform", *arguments])
        return status, *capsys.readouterr()

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
    "arguments, reason",
    [
        (["delta_writ", "x:y"], "did you mean delta_write"),
        (["delta_write", "no_such_module_at_all:f"], "cannot be imported: ModuleNotFoundError"),
        (["delta_write", "broken_module_of_a_reader:f"], "cannot be imported: ZeroDivisionError"),
        (["delta_write", "kernels_of_a_reader:wrote"], "must have wrote"),
        (["delta_write", "kernels_of_a_reader:number"], "must be a function, got int"),
        (["delta_write", "kernels_of_a_reader"], "must be MODULE:FUNCTION"),
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
