"""Which families the ledger reads, and which fields it refuses: read off the readers themselves."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from archcards.ledger import families
from archcards.ledger.families import READERS, purpose

from .layout import Link, anchor, table
from .model import Model
from .render import code_name, inline

__all__ = ["conditions_table", "families_table", "refusals", "refusals_table", "unread_list"]

UNREAD = {
    "deberta-v2": "what its attention multiplies by tables of relative positions depends on the program, so that no count of FLOPs holds for all",
    "longformer": "which tokens read and are read by all is a matter of the input, and with it the pairs that are counted",
    "longcat_flash": "two attention parts a layer, and experts that do nothing, so that no count of active parameters holds for every token",
    "minimax_m3_vl": "an indexer chooses blocks of keys",
    "paligemma": "the prefix reads itself in both directions, which changes the pairs that are counted",
    "rwkv": "a recurrent memory of another form",
    "swin": "its windows shift and its patches merge, stage by stage",
    "wav2vec2": "seven convolutions of different strides read samples of sound, and a token's share of them depends on the length",
    "xlstm": "a recurrent memory of another form",
}
"""Well-known families that no reader covers, and what in them no reader understands."""


def families_table(models: Iterable[Model], link: Link) -> str:
    """Each family, what its reader says of it, and the bundled models that prove it."""
    by_type: dict[str, list[Model]] = {}
    for model in models:
        by_type.setdefault(model.architecture.model_type, []).append(model)
    rows = []
    for model_type in sorted(READERS, key=str.casefold):
        named = ", ".join(anchor(model, link) for model in by_type.get(model_type, ()))
        rows.append(
            f'<tr><th scope="row">{code_name(model_type)}</th>'
            f"<td>{inline(purpose(model_type))}</td><td>{named}</td></tr>"
        )
    return table(
        f"The {len(READERS)} values of model_type that the ledger reads",
        ("model_type", "what it reads", "bundled models"),
        rows,
        search=True,
    )


def unread_list() -> str:
    """Well-known families that are refused by their type; one that is read is a mistake here."""
    read = sorted(set(UNREAD) & set(READERS))
    if read:
        raise ValueError(f"read by the ledger, and listed as not: {', '.join(read)}")
    items = "".join(f"<li><code>{escape(name)}</code>: {escape(why)}</li>" for name, why in sorted(UNREAD.items()))
    return f"<ul>{items}</ul>"


def _calls(method: str) -> Iterator[tuple[str, ast.Call]]:
    """Each call of that method in the readers, with the module that it is in."""
    folder = Path(inspect.getfile(families)).parent
    for file in sorted(folder.glob("*.py")):
        for call in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == method:
                yield file.stem.removeprefix("_"), call


def _readers(conditions: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], list[str]]:
    """The modules that state each condition on a field, in their order and once each."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for module, field, condition in conditions:
        found.setdefault((field, condition), {})[module] = None
    return {condition: list(modules) for condition, modules in found.items()}


def conditions_table() -> str:
    """What the readers expect of a field besides: each refusal that names a field and says in words why."""
    found = _readers(
        (module, *(part.value for part in call.args))
        for module, call in _calls("refuse")
        if len(call.args) == 2 and all(isinstance(part, ast.Constant) for part in call.args)
    )
    rows = [
        f'<tr><th scope="row">{code_name(field)}</th><td>{escape(expected)}</td>'
        f"<td>{escape(', '.join(readers))}</td></tr>"
        for (field, expected), readers in sorted(found.items())
    ]
    return table("What else is expected of a field", ("field", "expected", "in the readers of"), rows)


def refusals() -> Iterator[tuple[str, str, str]]:
    """Fields that a reader understands at some values only: module, field, those values as written.

    Example:
        >>> ("t5", "is_encoder_decoder", "True") in set(refusals())
        True
    """
    for module, call in _calls("only"):
        name, *allowed = call.args
        if isinstance(name, ast.Constant) and name.value != "model_type":
            values = ("any number" if isinstance(value, ast.Starred) else ast.unparse(value) for value in allowed)
            yield module, str(name.value), ", ".join(values)


def refusals_table() -> str:
    """The refused fields, each with the readers that refuse it."""
    rows = [
        f'<tr><th scope="row">{code_name(field)}</th>'
        f"<td>{f'<code>{escape(allowed)}</code>' if allowed else 'absent'}</td>"
        f"<td>{escape(', '.join(readers))}</td></tr>"
        for (field, allowed), readers in sorted(_readers(refusals()).items())
    ]
    return table(
        "Fields that are refused at any other value",
        ("field", "understood at", "in the readers of"),
        rows,
    )
