"""What a page's process does: namespace, lines, output in order, and every way of going wrong."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import archcards
from archcards.evidence.record import Check, Failure, Output
from archcards.evidence.runner import Limits, _compile, run_chapters

HEAD = '```python exec="true"\n'


def page(*codes):
    """A page of blocks, each begun by its fence; the first line of code is line 2."""
    return "\n".join(f"{HEAD}{code}\n```\n" for code in codes)


def outputs(verdict):
    return [e.text for e in verdict.pages["docs/page.md"].events if isinstance(e, Output)]


def test_blocks_share_a_namespace_in_order(judge):
    verdict = judge(page("x = 1", "x += 1", "print(x)"))
    assert verdict.ok and outputs(verdict) == ["2\n"]


def test_pages_share_nothing(faults):
    assert faults(page("x = 1"), other=page("y = 2", "x")) == [
        (6, "NameError: name 'x' is not defined")
    ]


def test_output_of_the_page_and_its_children_in_order(judge):
    code = """import os, subprocess, sys
print("a", end="")
subprocess.run(["sh", "-c", "echo b; echo c >&2"])
print("d", file=sys.stderr)
os.write(1, b"e\\n")
subprocess.run([sys.executable, "-c", "print('f')"])
print("ü")"""
    verdict = judge(page(code))
    assert verdict.ok and outputs(verdict) == ["ab\nc\nd\ne\nf\nü\n"]


def test_output_interleaves_with_evidence(judge):
    code = """from archcards.evidence import check
print("before")
check("two is two", len("ab"), 2, controls={"off by one": lambda: 1})
print("after")"""
    events = judge(page(code)).pages["docs/page.md"].events
    assert [type(e) for e in events] == [Output, Check, Output]
    assert [e.text for e in events if isinstance(e, Output)] == ["before\n", "after\n"]
    assert events[1].line == 4 and events[1].claim == "two is two"


def test_a_failed_check_does_not_end_its_block(judge):
    code = """from archcards.evidence import check
check("two is three", len("ab"), 3, controls={"off by one": lambda: 1})
check("two is four", len("ab"), 4, controls={"off by one": lambda: 1})
print("after")"""
    verdict = judge(page(code, "print('later')"))
    assert [(p.line, p.reason) for p in verdict.problems] == [
        (3, "the check fails: off by 1: expected 3, got 2 (compared exactly)"),
        (4, "the check fails: off by 2: expected 4, got 2 (compared exactly)"),
    ]
    assert outputs(verdict) == ["after\n", "later\n"]


def test_an_exception_ends_the_page(judge):
    verdict = judge(page("print('a')\n\n1 / 0", "print('b')", "print('c')"))
    assert [(p.line, p.reason) for p in verdict.problems] == [
        (4, "ZeroDivisionError: division by zero"),
        (
            7,
            "this block and the 1 after it were not run, because the block at line 1 did not end well",
        ),
    ]
    assert [b.ran for b in verdict.pages["docs/page.md"].blocks] == [False, False, False]
    assert "1 / 0" in verdict.problems[0].detail
    assert outputs(verdict) == ["a\n"]


EXCEPTIONS = {
    "raise SystemExit": "SystemExit: no block may end the process",
    "raise SystemExit(3)": "SystemExit: 3; no block may end the process",
    "import sys; sys.exit()": "SystemExit: no block may end the process",
    "raise KeyboardInterrupt": "KeyboardInterrupt",
    "raise GeneratorExit('g')": "GeneratorExit: g",
    "raise ExceptionGroup('both', [ValueError('a'), KeyError('b')])":
        "ExceptionGroup: both (2 sub-exceptions): ValueError: a; KeyError: 'b'",
    "class Mute(Exception):\n    __str__ = None\nraise Mute": "Mute: (its message cannot be read: str() of it raises)",
    "class Cruel(Exception):\n    def __str__(self): raise SystemExit\nraise Cruel":
        "Cruel: (its message cannot be read: str() of it raises)",
    "raise ValueError('one\\ntwo')": "ValueError: one",
    "assert 1 == 2": "AssertionError",
    "x = [0] * 10**10": "MemoryError: the page needs more memory than it may use",
    "import numpy; numpy.ones(1 << 40)": None,  # a MemoryError of NumPy's own
    "import warnings; warnings.warn('careful')": "a warning, UserWarning: careful",
    "import numpy; numpy.float64(1) / numpy.float64(0)":
        "a warning, RuntimeWarning: divide by zero encountered in scalar divide",
    "x = (": "SyntaxError: '(' was never closed",
    "x = 2\nx is 1": None,  # a SyntaxWarning, whose words differ from version to version
    "import archcards.nothing": "ModuleNotFoundError: No module named 'archcards.nothing'",
}  # fmt: skip


def test_exceptions_of_every_class(judge):
    verdict = judge(**{f"p{n:02}": page(code) for n, code in enumerate(EXCEPTIONS)})
    told = {p.path: (p.line, p.reason) for p in verdict.problems}
    assert len(told) == len(verdict.problems) == len(EXCEPTIONS)
    for n, (code, expected) in enumerate(EXCEPTIONS.items()):
        line, reason = told[f"docs/p{n:02}.md"]
        assert line == 2 + code.count("\n")
        if expected:
            assert reason == expected
        else:
            assert "MemoryError" in reason or reason.startswith('SyntaxError: "is" with')


def test_recursion_without_end(faults):
    [(line, reason)] = faults(page("def f():\n    return f()\nf()"))
    assert line == 3 and reason.startswith("RecursionError: maximum recursion depth exceeded")


def test_an_error_in_a_function_of_an_earlier_block_is_reported_where_it_happens(faults):
    found = faults(page("def f():\n    raise ValueError('here')", "f()"))
    assert found == [(3, "ValueError: here")]


def test_a_syntax_error_has_its_true_line_in_a_nested_fence(faults):
    text = '- a\n\n    ```python exec="true"\n    x = 1\n    y = = 2\n    ```\n'
    assert faults(text) == [(5, "SyntaxError: invalid syntax")]


ENDINGS = {
    "import os\nos._exit(0)": (3, "os._exit ends the page's process, which no block may"),
    "import os\nf = [os._exit]\nlist(map(f[0], [3]))": (
        4,
        "os._exit ends the page's process, which no block may",
    ),
    "import ctypes\nctypes.CDLL(None)._exit(3)": (
        1,
        "the block ended the process with status 3, which no block may",
    ),
    "import ctypes\nctypes.string_at(0)": (3, "the process died of signal SIGSEGV"),
    "import os\nos.abort()": (3, "the process died of signal SIGABRT"),
    "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)": (
        1,
        "the process died of signal SIGKILL",
    ),
}


def test_the_process_dies(judge):
    verdict = judge(**{f"p{n}": page(code, "x = 1") for n, code in enumerate(ENDINGS)})
    found = [(p.path, p.line, p.reason) for p in verdict.problems]
    expected = []
    for n, (code, (line, reason)) in enumerate(ENDINGS.items()):
        later = (
            code.count("\n") + 5,
            "this block was not run, because the block at line 1 did not end well",
        )
        expected += [(f"docs/p{n}.md", line, reason), (f"docs/p{n}.md", *later)]
    assert found == expected


def test_a_death_without_a_word_is_told_at_its_block(faults):
    text = "# A page\n\nSome prose.\n\n" + page("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")
    assert faults(text) == [(5, "the process died of signal SIGKILL")]


def test_pages_import_the_package_that_runs_them(judge, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    verdict = judge(page("import sys\nprint(sys.path[0])"))
    assert outputs(verdict) == [f"{Path(archcards.__file__).parents[1]}\n"]


LATE = {
    "x = 1\nwhile True:\n    x += 1": (3, 4),
    "import time\ntime.sleep(60)": (3,),
    "import subprocess\nsubprocess.run(['sleep', '60'])": (3,),
    "import threading\nthreading.Event().wait()": (3,),
    "try:\n    while True:\n        pass\nexcept BaseException:\n    pass": (3, 4),
    "x = 10 ** 8\ny = 7 ** x": (3,),  # never lets go of the interpreter's lock
}


def test_a_block_past_its_time(judge):
    pages = {f"p{n}": page(code) for n, code in enumerate(LATE)}
    found = [
        (p.path, p.line, p.reason) for p in judge(limits=Limits(seconds=0.7), **pages).problems
    ]
    assert [path for path, _, _ in found] == [f"docs/p{n}.md" for n in range(len(LATE))]
    assert all(line in lines for (_, line, _), lines in zip(found, LATE.values(), strict=True))
    assert {reason for _, _, reason in found} == {"ran longer than 0.7 s, the limit of a block"}


def test_a_thread_that_never_ends(faults):
    code = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()"
    assert faults(page(code)) == [(1, "a thread of this block does not end; join it in the block")]


def test_an_exception_in_a_thread(faults):
    code = "import threading\ndef f():\n    raise ValueError('t')\nt = threading.Thread(target=f)\nt.start()\nt.join()"
    assert faults(page(code)) == [(4, "in a thread: ValueError: t")]


def test_an_exception_that_python_ignores(faults):
    code = "class A:\n    def __del__(self):\n        raise ValueError('d')\na = A()\ndel a"
    assert faults(page(code)) == [(4, "ignored by Python: ValueError: d")]


def test_a_child_process_that_outlives_the_page(faults):
    code = "import subprocess\nchild = subprocess.Popen(['sleep', '60'])\nchild.__class__.__del__ = lambda self: None"
    assert faults(page(code)) == [
        (1, "a child process outlives the page; wait for it in the block")
    ]


# Python warns of a fork beside other threads, such as the one that watches the time.
FORK = "import os, warnings\nwarnings.simplefilter('ignore')\nchild = os.fork()\n"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="found by /proc")
def test_a_child_process_in_a_session_of_its_own_that_outlives_the_page(faults):
    code = (
        "import subprocess\nchild = subprocess.Popen(['sleep', '61.25'], start_new_session=True)\n"
        "child.__class__.__del__ = lambda self: None"
    )
    reason = "a child process outlives the page; wait for it in the block"
    assert faults(page(code)) == [(1, reason)]
    _wait(lambda: not [c for c in _commands() if c == b"sleep\x0061.25\x00"])


def _commands():
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield file.read_bytes()


def test_a_fork_does_not_run_the_rest_of_the_page(judge):
    code = f"{FORK}if child:\n    os.waitpid(child, 0)\n    print('parent')\nelse:\n    os._exit(0)"
    verdict = judge(page(code, "print('once')"))
    assert verdict.ok and outputs(verdict) == ["parent\n", "once\n"]


def test_evidence_from_a_fork_is_refused(faults):
    code = f"{FORK}from archcards.evidence import fact\nif child:\n    os.waitpid(child, 0)\nelse:\n    fact('n', len('a'))"
    assert faults(page(code)) == [
        (9, "evidence from a child process; state it in the block itself")
    ]


def test_output_without_end(faults):
    found = faults(page("while True:\n    print('x' * 10000)"), limits=Limits(seconds=1))
    assert [
        reason
        for _, reason in found
        if "prints more than 1048576 bytes" in reason or "ran longer" in reason
    ]
    assert faults(page("print('x' * (1 << 21))")) == [(1, "prints more than 1048576 bytes")]


def test_bytes_that_are_no_text(faults):
    assert faults(page("import os\nos.write(1, b'\\xff\\n')")) == [
        (1, "prints bytes that are not UTF-8")
    ]


def test_closed_standard_output(faults):
    [(line, reason)] = faults(page("import sys\nsys.stdout.close()\nprint('x')"))
    assert line == 4 and reason == "ValueError: I/O operation on closed file."


TRANSCRIPT = (
    "# T\n\n```pycon\n>>> x = 2\n>>> x + 1\n3\n>>> print('a\\n\\nb')\na\n<BLANKLINE>\nb\n\n```\n"
)


def test_transcripts_are_compared(faults, judge):
    assert (
        faults(
            "```pycon\n>>> 1 + 1\n2\n>>> 1 / 0\nTraceback (most recent call last):\n...\nZeroDivisionError: division by zero\n```\n"
        )
        == []
    )
    assert faults("```pycon\n>>> x = 1\n\n>>> x\n2\n>>> x\n```\n") == [
        (4, "the transcript says '2', but the code gives '1'"),
        (6, "the transcript says nothing, but the code gives '1'"),
    ]
    assert faults("```pycon\n>>> 1 / 0\n```\n") == [(2, "ZeroDivisionError: division by zero")]
    assert faults("```pycon\n>>> for n in range(2):\n...     print(n)\n0\n1\n```\n") == []
    assert faults("```pycon\n>>>1\n```\n")[0][0] == 1
    assert faults("```pycon\n1\n```\n") == [
        (1, "a transcript without a prompt; begin its lines of code with >>>")
    ]


def test_a_transcript_shares_the_page_namespace(faults):
    assert faults(page("x = 41") + "\n```pycon\n>>> x + 1\n42\n```\n") == []


def test_evidence_in_a_transcript_is_refused(faults):
    text = page("from archcards.evidence import check") + (
        "\n```pycon\n>>> c = check('a', len('a'), 1, controls={'b': lambda: 2})\n```\n"
    )
    assert (6, "evidence inside a transcript; state it in a python block") in faults(text)


def test_the_environment_is_the_same_everywhere(judge, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "77")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SECRET", "x")
    code = "import os, time\nprint(hash('a'), time.tzname, os.environ.get('SECRET'), os.environ['OMP_NUM_THREADS'])"
    first = outputs(judge(page(code)))
    monkeypatch.setenv("PYTHONHASHSEED", "78")
    assert outputs(judge(page(code))) == first
    assert "('UTC', 'UTC') None 1" in first[0]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users have no numbers here")
def test_users_of_one_machine_keep_their_lists_of_fonts_apart(judge, monkeypatch):
    monkeypatch.setenv("USERNAME", "both")
    [place] = outputs(judge(page("import os\nprint(os.environ['MPLCONFIGDIR'])")))
    assert place.strip().endswith(f"-{os.getuid()}")


@pytest.mark.parametrize("system", ["Linux", "macOS", "Windows"])
def test_what_a_page_leaves_behind_is_asked_as_each_system_answers(judge, monkeypatch, system):
    def refused_for_zombies(group, number, killpg=getattr(os, "killpg", None)):
        if number == 0:
            raise PermissionError
        killpg(group, number)

    if system == "macOS":
        monkeypatch.setattr(os, "killpg", refused_for_zombies)
    if system == "Windows":  # has no groups of processes
        monkeypatch.delattr(os, "killpg", raising=False)
    texts = [page("print(1)"), page("import time\ntime.sleep(60)")]
    problems = judge(*texts, limits=Limits(seconds=1)).problems
    assert [str(p) for p in problems] == ["docs/page1.md:3: ran longer than 1 s, the limit of a block"]


def test_no_verdict_depends_on_the_order(judge):
    texts = [page(f"print({n})", "1 / 0" if n == 2 else "") for n in range(5)]
    verdict = judge(*texts)
    assert [str(p) for p in verdict.problems] == [
        "docs/page2.md:6: ZeroDivisionError: division by zero"
    ]
    assert list(verdict.pages) == [
        "docs/page.md",
        *(f"docs/page{n}.md" for n in range(1, 5)),
        "docs/sound.md",
    ]


def test_a_dataclass_and_a_pickle_work_in_a_block(judge):
    code = "import dataclasses, pickle\n@dataclasses.dataclass\nclass A:\n    x: 'int' = 1\nprint(pickle.loads(pickle.dumps(A())))"
    assert outputs(judge(page(code))) == ["A(x=1)\n"]


def test_a_failure_is_an_event_of_its_block(judge):
    blocks = judge(page("x = 1", "1 / 0")).pages["docs/page.md"].blocks
    assert [e.reason for e in blocks[1].events if isinstance(e, Failure)] == [
        "ZeroDivisionError: division by zero"
    ]


def test_nothing_but_the_package_itself_is_compiled_beforehand(tmp_path, monkeypatch):
    """Where it is installed, the folder above holds every other package as well."""
    compiled = []
    monkeypatch.setattr("archcards.evidence.runner._compile", compiled.append)
    assert run_chapters([], tmp_path) == []
    assert compiled == [Path(archcards.__file__).parent]


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux kills what its parent left"
)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_process(how, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text(page("import time\nopen('begun', 'w').close()\ntime.sleep(60)"))
    code = f"from archcards.evidence.book import prove; prove({str(tmp_path / 'docs')!r})"
    paths = [*filter(None, [os.environ.get("PYTHONPATH")]), *sys.path]
    build = subprocess.Popen([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
                             stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        worker = _wait(lambda: next(iter(_children(build.pid)), None))
        _wait(Path(f"/proc/{worker}/cwd/begun").exists)
        build.send_signal(how)
        build.wait(10)
        _wait(lambda: _state(worker) in "XZ")
    finally:
        build.kill()
        build.wait()


def _children(process):
    return [
        int(n)
        for task in Path(f"/proc/{process}/task").iterdir()
        for n in (task / "children").read_text().split()
    ]


def _state(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "X"


def _wait(condition):
    until = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def test_what_a_page_may_use():
    assert Limits() == Limits(seconds=20.0, memory=4_294_967_296)


def test_a_module_that_cannot_be_compiled_is_left_to_whoever_imports_it(tmp_path, capfd):
    for name, source in {"a_broken": "x = (\n", "b_fine": "x = 1\n"}.items():
        (tmp_path / f"{name}.py").write_text(source)
    _compile(tmp_path)
    assert [file.name.split(".")[0] for file in tmp_path.rglob("*.pyc")] == ["b_fine"]
    assert capfd.readouterr() == ("", "")


def test_what_is_linked_from_elsewhere_is_told_at_its_first_line(judge, tmp_path):
    docs = tmp_path / "book" / "docs"
    docs.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (docs / "linked").symlink_to(tmp_path / "elsewhere")
    (docs / "gone.md").symlink_to("nowhere.md")
    (docs / ".hidden").symlink_to("nowhere.md")
    assert [str(p) for p in judge().problems] == [
        "docs/gone.md:1: a link to a file that is not there",
        "docs/linked:1: a link to a folder, whose pages are not proved; move them here",
    ]
