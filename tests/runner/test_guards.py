"""What a page may not do: unseeded randomness, the clock, the network, writing into the repository."""

import sys

import pytest

from archcards.evidence.confine import confine

GENERATOR = "a random generator without a seed; give it one: default_rng(seed)"
CLOCK = "reads the clock, so the page would differ from build to build; times belong in a benchmark"
SEEDED = "use numpy.random.default_rng(seed)"

# Code whose last line is refused, and why.
REFUSED = {
    "import numpy as np\nnp.random.default_rng()": GENERATOR,
    "import numpy as np\nnp.random.default_rng(None)": GENERATOR,
    "from numpy.random import default_rng\ndefault_rng()": GENERATOR,
    "import numpy as np\nnp.random.Generator(np.random.PCG64())": GENERATOR,
    "import numpy as np\nnp.random.SeedSequence()": GENERATOR,
    "import numpy as np\nnp.random.RandomState()": GENERATOR,
    "import numpy as np\nnp.random.rand(3)": f"numpy.random.rand draws from the global generator; {SEEDED}",
    "import numpy as np\nnp.random.seed(0)": f"numpy.random.seed draws from the global generator; {SEEDED}",
    "from numpy.random import randn\nrandn()": f"numpy.random.randn draws from the global generator; {SEEDED}",
    "import random\nrandom.random()": f"random.random draws from a global generator; {SEEDED}",
    "import random\nrandom.seed(1)": f"random.seed draws from a global generator; {SEEDED}",
    "from random import shuffle\nshuffle([1, 2])": f"random.shuffle draws from a global generator; {SEEDED}",
    "import random\nrandom.Random()": f"random.Random() without a seed; {SEEDED}",
    "import random\nrandom.SystemRandom().random()": f"randomness of the system; {SEEDED}",
    "import secrets\nsecrets.randbelow(9)": f"randomness of the system; {SEEDED}",
    "import secrets\nsecrets.token_hex()": f"randomness of the system; {SEEDED}",
    "import os\nos.urandom(1)": f"os.urandom is randomness of the system; {SEEDED}",
    "import uuid\nuuid.uuid4()": "uuid.uuid4 differs each time; write an id out",
    "import uuid\nuuid.uuid1()": "uuid.uuid1 differs each time; write an id out",
    "import time\ntime.time()": f"time.time {CLOCK}",
    "from time import perf_counter as clock\nclock()": f"time.perf_counter {CLOCK}",
    "import time\ntime.monotonic_ns()": f"time.monotonic_ns {CLOCK}",
    "import time\ntime.strftime('%Y')": f"time.strftime {CLOCK}",
    "import time\ntime.localtime()": f"time.localtime {CLOCK}",
    "import datetime\ndatetime.datetime.now()": f"datetime.datetime.now {CLOCK}",
    "from datetime import date\ndate.today()": f"datetime.date.today {CLOCK}",
    "from datetime import datetime, timezone\ndatetime.now(timezone.utc)": f"datetime.datetime.now {CLOCK}",
    "import timeit\ntimeit.timeit('1', number=1)": f"timeit.timeit {CLOCK}",
    "import timeit\ntimeit.Timer('1').timeit(1)": f"timeit {CLOCK}",
    "import urllib.request\nurllib.request.urlopen('http://192.0.2.1/')":
        "uses the network, which a build may not need; put the data into the repository",
    "import socket\nsocket.create_connection(('localhost', 9))":
        "uses the network, which a build may not need; put the data into the repository",
    "def f():\n    import random\n    return random.random()\ntry:\n    f()\nexcept Exception:\n    pass":
        f"random.random draws from a global generator; {SEEDED}",
}  # fmt: skip


def page(code):
    return f'```python exec="true"\n{code}\n```\n'


def test_what_is_refused(judge):
    codes = [code for code, reason in REFUSED.items() if reason]
    verdict = judge(**{f"p{n:02}": page(code) for n, code in enumerate(codes)})
    found = [(p.path, p.line, p.reason) for p in verdict.problems]
    expected = [
        (f"docs/p{n:02}.md", 4 if code.startswith("def") else code.count("\n") + 2, REFUSED[code])
        for n, code in enumerate(codes)
    ]
    assert found == expected


def test_what_is_allowed(judge):
    verdict = judge(page("""
import datetime, random, tempfile, time, uuid, pickle, logging
import numpy as np
import matplotlib
import matplotlib.pyplot as plt
import matplotlib.dates
import sympy

rng = np.random.default_rng(0)
rng.normal(size=3)
np.random.Generator(np.random.PCG64(1)).random()
np.random.RandomState(3).rand()
random.Random(3).random()
pickle.loads(pickle.dumps(rng)).random()
uuid.uuid5(uuid.NAMESPACE_DNS, "x.org")
time.sleep(0)
time.strftime("%Y", time.gmtime(0))
day = datetime.date(2024, 5, 17)
assert isinstance(day, datetime.date) and isinstance(datetime.datetime(2024, 5, 17), datetime.date)
assert datetime.datetime.fromisoformat("2024-05-17") - datetime.timedelta(days=1) < datetime.datetime(2024, 5, 17)
with tempfile.NamedTemporaryFile("w") as file:
    file.write("x")
with tempfile.TemporaryDirectory() as folder:
    open(folder + "/a", "w").close()
open("scratch.txt", "w").close()
figure, axes = plt.subplots()
axes.plot([1, 2])
figure.savefig("a.png")
plt.close(figure)
x = sympy.symbols("x")
assert sympy.simplify(sympy.sin(x) ** 2 + sympy.cos(x) ** 2) == 1
assert sympy.Matrix([[x, 1], [1, x]]).det() == x**2 - 1
logging.getLogger("a").debug("b")
"""))  # fmt: skip
    assert [str(p) for p in verdict.problems] == []


def test_processes_of_a_page_may_speak_to_each_other(judge):
    code = """
import socket
with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as caller:
    listener.bind("here")
    listener.listen()
    caller.connect("here")
    caller.send(b"a word")
    with listener.accept()[0] as answerer:
        print(answerer.recv(9))
"""
    verdict = judge(page(code))
    assert [str(p) for p in verdict.problems] == []
    assert [event.text for event in verdict.pages["docs/page.md"].events] == ["b'a word'\n"]


WRITES = {
    "open(root / 'docs' / 'new.md', 'w')": "docs/new.md",
    "open(root / 'docs' / 'sources.yml', 'r+')": "docs/sources.yml",
    "os.open(root / 'docs' / 'sources.yml', os.O_WRONLY)": "docs/sources.yml",
    "os.open(root / 'docs' / 'sources.yml', os.O_RDONLY | os.O_TRUNC)": "docs/sources.yml",
    "open(root / 'docs' / 'page.md', 'a')": "docs/page.md",
    "(root / 'docs' / 'sources.yml').write_text('x')": "docs/sources.yml",
    "(root / 'new').mkdir()": "new",
    "(root / 'docs' / 'page.md').unlink()": "docs/page.md",
    "(root / 'docs' / 'page.md').rename('/tmp/page.md')": "docs/page.md",
    "(pathlib.Path('x').touch(), os.rename('x', root / 'x'))": "x",
    "os.open(root / 'y', os.O_CREAT | os.O_WRONLY)": "y",
    "os.symlink('/tmp', root / 'link')": "link",
    "(os.chdir(root), open('z', 'w'))": "z",
    "(os.symlink(root, 'way'), open('way/w', 'w'))": "w",
    "np.save(root / 'a.npy', np.ones(2))": "a.npy",
    "os.truncate(root / 'docs' / 'page.md', 0)": "docs/page.md",
    "os.chmod(root / 'docs' / 'page.md', 0o600)": "docs/page.md",
    "os.utime(root / 'docs' / 'page.md')": "docs/page.md",
    "os.chown(root / 'docs' / 'page.md', -1, -1)": "docs/page.md",
    "os.rmdir(root / 'docs')": "docs",
    "(pathlib.Path('x').touch(), os.link('x', root / 'hard'))": "hard",
    "os.unlink('page.md', dir_fd=os.open(root / 'docs', os.O_RDONLY))": "docs/page.md",
    "os.mkdir('in', dir_fd=os.open(root, os.O_RDONLY))": "in",
    "os.setxattr(root / 'docs' / 'page.md', 'user.x', b'1')": "docs/page.md",
    "shutil.rmtree(root / 'docs')": None,
}


def test_writes_into_the_repository_are_refused(judge, tmp_path):
    head = f"import os, pathlib, shutil, numpy as np\nroot = pathlib.Path({str(tmp_path / 'book')!r})\n"
    pages = {f"p{n:02}": page(head + code) for n, code in enumerate(WRITES)}
    verdict = judge(**pages)
    assert [(p.path, p.line) for p in verdict.problems] == [
        (f"docs/{name}.md", 4) for name in pages
    ]
    for problem, name in zip(verdict.problems, WRITES.values(), strict=True):
        if name:
            assert (
                problem.reason == f"writes into the repository ({name}); write to a temporary file"
            )
    left = {p.relative_to(tmp_path / "book").as_posix() for p in (tmp_path / "book").rglob("*")}
    assert left == {
        "docs",
        "docs/sound.md",
        "docs/sources.yml",
        "docs/names.txt",
        *(f"docs/{n}.md" for n in pages),
    }


def test_reading_the_repository_is_fine(judge):
    code = "import pathlib, archcards\nprint(len(pathlib.Path(archcards.__file__).read_text()) > 0)"
    assert judge(page(code)).ok


def test_a_swallowed_refusal_is_reported_once(judge):
    code = "import random\nfor _ in range(3):\n    try:\n        random.random()\n    except Exception:\n        pass"
    assert len(judge(page(code)).problems) == 1


def _confines():
    """Whether this kernel can confine a process: asked in a process of its own."""
    import subprocess

    code = f"from {confine.__module__} import confine; print(confine([]))"
    return (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
        == "True\n"
    )


confined = pytest.mark.skipif(not _confines(), reason="the kernel has no Landlock")


@confined
def test_a_child_process_cannot_write_into_the_repository(judge, tmp_path):
    child = tmp_path / "book" / "child"
    commands = (
        [sys.executable, "-c", f"import os; os.truncate({str(tmp_path / 'book' / 'docs' / 'sound.md')!r}, 0)"],
        ["touch", str(child)],
        ["sh", "-c", f"echo x > {child}"],
        ["sh", "-c", f"rm {tmp_path}/book/docs/*.md"],
    )
    pages = [
        page(f"import subprocess\nsubprocess.run({command!r}, check=True)") for command in commands
    ]
    verdict = judge(*pages)
    assert [p.reason.split(":")[0] for p in verdict.problems] == ["CalledProcessError"] * 4
    assert (tmp_path / "book" / "docs" / "sound.md").stat().st_size > 0
    assert not child.exists() and (tmp_path / "book" / "docs" / "page.md").exists()


@confined
def test_no_program_that_a_page_starts_has_more_rights_than_the_page(judge):
    """The kernel says so itself; without it only a superuser could be confined."""
    code = "import pathlib, re\nprint(re.findall('NoNewPrivs:.(.)', pathlib.Path('/proc/self/status').read_text()))"
    assert [event.text for event in judge(page(code)).pages["docs/page.md"].events] == ["['1']\n"]


@confined
def test_code_that_goes_round_python_cannot_write_into_the_repository(judge, tmp_path):
    target = tmp_path / "book" / "docs" / "sound.md"
    code = f"import ctypes\nprint(ctypes.CDLL(None).unlink({str(target).encode()!r}))"
    judge(page(code))
    assert target.exists()
