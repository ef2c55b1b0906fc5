"""How docstrings become pages of the reference: an example is drawn as the session that it is."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

__all__ = ["Sessions"]


class Sessions(Extension):
    """Takes `Example:` for the section of examples; Griffe knows only its plural."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"(?m)^(\s*)Example:$", r"\1Examples:", obj.docstring.value)
