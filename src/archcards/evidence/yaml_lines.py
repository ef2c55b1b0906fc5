"""YAML that remembers on which line each value stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

__all__ = ["Node", "YamlError", "read_yaml"]


class YamlError(ValueError):
    """What is wrong with the YAML, and on which line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class Node:
    """A value and the lines on which it begins and ends.

    `value` is a mapping from text to nodes, a tuple of nodes, or a scalar; `keys` are those of a
    mapping with their lines.
    """

    value: Any
    line: int
    last: int
    keys: tuple[tuple[str, int], ...] = ()

    def plain(self) -> Any:
        """The value without its lines."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value


class _Loader(yaml.SafeLoader):
    """Reads dates, octal and sexagesimal numbers as text, since every value is shown to a reader as
    it was typed: `1:30` is not 90, and `010` is not 8."""


_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(?:0|[1-9][0-9_]*)$"),
    "tag:yaml.org,2002:float": re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?$"),
}
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, _NUMBERS.get(tag, pattern))
        for tag, pattern in resolvers
        if tag != "tag:yaml.org,2002:timestamp"
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(text: str, first_line: int = 1) -> Node:
    """Reads a YAML document that begins on line `first_line` of its file; no key may come twice.

    Example:
        >>> read_yaml("a: 1\\nb: [x]").value["b"].value[0]
        Node(value='x', line=2, last=2, keys=())
    """
    try:
        loader = _Loader(text)  # which refuses characters that no text has
        root = loader.get_single_node()
        if root is None:
            return Node(None, first_line, first_line)
        return _convert(loader, root, first_line)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        raise YamlError(line, f"cannot read this YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlError(
            first_line, f"cannot read this YAML: {str(error).splitlines()[0]}"
        ) from None


def _convert(
    loader: _Loader, node: yaml.Node, first: int, around: tuple[yaml.Node, ...] = ()
) -> Node:
    line = first + node.start_mark.line
    if node in around:
        raise YamlError(line, "this value holds itself")
    around = (*around, node)
    last = max(line, first + node.end_mark.line - (node.end_mark.column == 0))
    if isinstance(node, yaml.MappingNode):
        values: dict[str, Node] = {}
        keys = []
        for key_node, value_node in node.value:
            key = str(loader.construct_object(key_node, deep=True))
            if key in values:
                raise YamlError(first + key_node.start_mark.line, f"{key} is given twice")
            values[key] = _convert(loader, value_node, first, around)
            keys.append((key, first + key_node.start_mark.line))
        return Node(values, line, last, tuple(keys))
    if isinstance(node, yaml.SequenceNode):
        items = tuple(_convert(loader, item, first, around) for item in node.value)
        return Node(items, line, last)
    block = node.style in ("|", ">")  # begins on the line of its sign, one above its text
    return Node(loader.construct_object(node, deep=True), min(line + block, last), last)
