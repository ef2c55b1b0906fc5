"""What a committed comparison vouches for: the code of a mechanism, without comments and docstrings.

The digest of a module covers what it computes with: itself and the modules of `mechanisms` that it
imports, but not the checks of arguments. Comments, docstrings and spaces may change freely.
"""

import ast
import hashlib
import importlib
import inspect
import io
import json
import tokenize
from pathlib import Path

import archcards.mechanisms

__all__ = ["GRADIENTS", "RESULTS", "digest", "module_of", "results"]

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "oracles.json"
GRADIENTS = ROOT / "results" / "gradients.npz"
_NOT_COMPUTING = {"_checks"}


def results():
    """The committed comparisons."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def module_of(mechanism):
    """The name of the module of `archcards.mechanisms` that defines a mechanism."""
    owner = "AttentionState" if mechanism == "merge" else mechanism
    return inspect.unwrap(getattr(archcards.mechanisms, owner)).__module__.rpartition(".")[2]


def digest(module):
    """The SHA-256 digest of a module's code and of the code that it computes with."""
    texts = [f"{name}\n{_code(name)}" for name in sorted(_reached(module))]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _source(module):
    found = importlib.import_module(f"archcards.mechanisms.{module}")
    return Path(found.__file__).read_text(encoding="utf-8")


def _reached(module, seen=frozenset()):
    seen |= {module}
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and node.module:
            if node.module not in seen | _NOT_COMPUTING:
                seen = _reached(node.module, seen)
    return seen


def _code(module):
    """The source without docstrings, comments and white space, the same for every Python."""
    source = _source(module)
    lines = source.split("\n")
    spans = [*_comments(source), *_docstrings(source)]
    for (row, column), (last, end) in sorted(spans, reverse=True):
        lines[row - 1 : last] = [lines[row - 1][:column] + lines[last - 1][end:]]
    return "".join("".join(lines).split())


def _comments(source):
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end


def _docstrings(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                if isinstance(first.value.value, str):
                    # Columns of the syntax tree count bytes of UTF-8.
                    lines = source.split("\n")
                    start = len(lines[first.lineno - 1].encode()[: first.col_offset].decode())
                    end = len(lines[first.end_lineno - 1].encode()[: first.end_col_offset].decode())
                    yield (first.lineno, start), (first.end_lineno, end)
