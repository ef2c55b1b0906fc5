"""Which families the ledger reads, and which fields it refuses: read off the readers themselves."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from html import escape
from importlib import import_module

from archcards.ledger import families
from archcards.ledger.families import READERS, purpose

from .layout import Link, anchor, table
from .model import Model
from .render import inline

__all__ = ["families_table", "refusals", "refusals_table"]


def families_table(models: Iterable[Model], link: Link) -> str:
    """Each family, what its reader says of it, and the bundled models that prove it."""
    by_type: dict[str, list[Model]] = {}
    for model in models:
        by_type.setdefault(model.architecture.model_type, []).append(model)
    rows = []
    for model_type in sorted(READERS):
        named = ", ".join(anchor(model, link) for model in by_type.get(model_type, ()))
        rows.append(
            f'<tr><th scope="row"><code>{escape(model_type)}</code></th>'
            f"<td>{inline(purpose(model_type))}</td><td>{named}</td></tr>"
        )
    return table(
        f"The {len(READERS)} values of model_type that the ledger reads",
        ("model_type", "what it reads", "bundled models"),
        rows,
        search=True,
    )


def refusals() -> Iterator[tuple[str, str, str]]:
    """Fields that a reader understands at some values only: module, field, those values as written.

    Example:
        >>> ("t5", "is_encoder_decoder", "True") in set(refusals())
        True
    """
    for module in sorted({name.split(":")[0] for name in READERS.values()}):
        source = inspect.getsource(import_module(f"{families.__name__}.{module}"))
        for call in ast.walk(ast.parse(source)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.args):
                continue
            name, *allowed = call.args
            if call.func.attr == "only" and isinstance(name, ast.Constant) and name.value != "model_type":
                yield module, str(name.value), ", ".join(map(ast.unparse, allowed))


def refusals_table() -> str:
    """The refused fields, each with the readers that refuse it."""
    found: dict[tuple[str, str], list[str]] = {}
    for module, field, allowed in refusals():
        readers = found.setdefault((field, allowed), [])
        if module not in readers:
            readers.append(module)
    rows = [
        f'<tr><th scope="row"><code>{escape(field)}</code></th>'
        f"<td>{f'<code>{escape(allowed)}</code>' if allowed else 'absent'}</td>"
        f"<td>{escape(', '.join(readers))}</td></tr>"
        for (field, allowed), readers in sorted(found.items())
    ]
    return table(
        "Fields that are refused at any other value",
        ("field", "understood at", "in the readers of"),
        rows,
    )
