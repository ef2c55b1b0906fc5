"""Things to touch: their places in pages, and what the site serves for the live ledger.

Bundled models are answered by a script from the terms that stand in `models.json`. A reader's own
configuration is read by the package's ledger itself, on Pyodide, which the site serves where npm has
brought it; without it the widget says so.
"""

from __future__ import annotations

import io
import json
import zipfile
from html import escape
from pathlib import Path

import archcards
from archcards.ledger.cache import FORMATS, LARGEST_LENGTH
from archcards.ledger.portable import RANKS, record

from .models import Link, Models

__all__ = ["MARK", "files", "mount"]

FOLDER = "assets/live"
MARK = "<ac-live "
"""What a page has that needs WebAssembly admitted by its policy."""

PARTS = {"live": "", "live-cache": "cache", "live-parameters": "parameters", "live-flops": "flops"}
"""The live ledger, and what a chapter shows of it."""

_RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_PACKAGE = Path(archcards.__file__).parent


def mount(what: str, of: str, link: Link) -> str | None:
    """A widget's place, with what stands there where no script runs; None if `what` is no widget.

    `of` names the models that the ledger starts with (one, or two separated by a space), those
    that the chart of growth has, or the block whose tables are gone through step by step.
    """
    name = "live" if what in PARTS else what
    if name == "live":
        first, _, second = of.partition(" ")
        given = {"data-part": PARTS[what], "data-first": first, "data-second": second}
        listed = link("models/index.md")
        tables = f'<a href="{escape(listed[0])}">the table of all models</a>' if listed else "the tables"
        static = (
            f"The live ledger needs JavaScript. Without it, {tables} has the same numbers for three "
            "contexts, and <code>archcards ledger</code> prints them for any."
        )
    elif name == "masks":
        given = {}
        static = "Trying masks needs JavaScript; the chapters draw theirs without."
    elif name == "growth":
        given = {"data-models": of}
        static = "Choosing models and a context needs JavaScript; the tables of this page do without."
    elif name == "steps":
        given = {"data-of": of}
        static = f'Step by step in <a href="#{escape(of)}">the table</a>:'
    else:
        return None
    top = escape((link("index.md") or ("", ""))[0])
    attributes = "".join(f' {key}="{escape(value)}"' for key, value in given.items() if value)
    return (
        f'<link rel="stylesheet" href="{top}assets/stylesheets/live.css">'
        f'<ac-{name} class="ac-{name}"{attributes} data-search-exclude><p>{static}</p></ac-{name}>'
        f'<script type="module" src="{top}assets/javascripts/widgets.js"></script>'
    )


def files(models: Models, root: Path) -> dict[str, str | bytes]:
    """Everything the widget fetches, by its path in the site; `root` may have `node_modules`."""
    runtime = _runtime(root / "node_modules" / "pyodide")
    known = {
        "largest_length": LARGEST_LENGTH,
        "ranks": RANKS,
        "formats": {name: list(form) for name, form in FORMATS.items()},
        "models": {
            model.name: {"page": model.src_uri.removesuffix(".md") + "/", **record(model.architecture)}
            for model in models.models.values()
        },
        # Bytes of each file, for the progress of its download.
        "runtime": {name.rpartition("/")[2]: len(content) for name, content in runtime.items()} or None,
    }
    return {
        f"{FOLDER}/models.json": json.dumps(known, separators=(",", ":")) + "\n",
        f"{FOLDER}/ledger.zip": _archive(),
        **runtime,
    }


def _archive() -> bytes:
    """The ledger's own modules, importable from the archive; equal sources make equal bytes."""
    sources = [_PACKAGE / "__init__.py", *sorted((_PACKAGE / "ledger").rglob("*.py"))]
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sources:
            name = (Path("archcards") / source.relative_to(_PACKAGE)).as_posix()
            archive.writestr(zipfile.ZipInfo(name), source.read_bytes(), zipfile.ZIP_DEFLATED)
    return data.getvalue()


def _runtime(folder: Path) -> dict[str, bytes]:
    """Pyodide's core, with a list of packages that is empty: the ledger needs none."""
    if not all((folder / name).is_file() for name in (*_RUNTIME, "pyodide-lock.json")):
        return {}
    lock = json.loads((folder / "pyodide-lock.json").read_text("utf-8")) | {"packages": {}}
    found = {f"{FOLDER}/pyodide/{name}": (folder / name).read_bytes() for name in _RUNTIME}
    # Its source map is not served.
    script = f"{FOLDER}/pyodide/pyodide.mjs"
    found[script] = found[script].partition(b"//# sourceMappingURL=")[0]
    return found | {f"{FOLDER}/pyodide/pyodide-lock.json": json.dumps(lock).encode()}
