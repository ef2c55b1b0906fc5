"""What a page may load and run: a Content-Security-Policy without `unsafe-inline`.

Inline scripts are admitted one by one, by the hash of their text. Inline styles become classes of
one style sheet, because a policy cannot name them.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re

from .markup import Token, rewrite, tag, tokens

__all__ = ["StyleSheet", "with_policy"]

_NOT_RUN = {"application/json", "text/plain", "text/template"}


class StyleSheet:
    """Collects the declarations of `style` attributes under class names made from their text."""

    def __init__(self) -> None:
        self._rules: dict[str, str] = {}

    def name(self, declarations: str) -> str:
        declarations = "; ".join(
            ": ".join(part.strip() for part in one.split(":", 1))
            for one in declarations.split(";")
            if one.strip()
        )
        name = "s-" + hashlib.sha256(declarations.encode()).hexdigest()[:8]
        self._rules[name] = declarations
        return name

    def without_styles(self, page: str) -> str:
        """The page with each `style` attribute turned into a class."""

        def change(token: Token) -> str:
            if token.kind != "open" or " style=" not in token.text:
                return token.text
            given: dict[str, str | None] = dict(token.attributes)
            declarations = given.pop("style", None)
            if not declarations:
                return token.text
            given["class"] = " ".join(filter(None, [given.get("class"), self.name(declarations)]))
            # Attributes of SVG are case-sensitive (viewBox), so only what has to change is changed.
            text = re.sub(r"""\sstyle=("[^"]*"|'[^']*')""", "", token.text, count=1)
            if re.search(r"\sclass=", text):
                return re.sub(
                    r"""\sclass=("[^"]*"|'[^']*')""",
                    lambda _: f' class="{html.escape(given["class"])}"',
                    text,
                    count=1,
                )
            cut = len(token.name) + 1
            return f'{text[:cut]} class="{html.escape(given["class"])}"{text[cut:]}'

        return rewrite(page, change) if " style=" in page else page

    def css(self) -> str:
        """The rules, sorted, so that the order of pages leaves no trace."""
        return "".join(f".{name}{{{rule}}}\n" for name, rule in sorted(self._rules.items()))


def with_policy(page: str, *, webassembly: bool = False) -> str:
    """The page with a policy that admits exactly the scripts and styles it has.

    `webassembly` admits its compilation, and still no text run as a script: a browser may hold a
    worker to the policy of the page that starts it.
    """
    scripts, styles = [], []
    kind = ""
    for token in tokens(page):
        if token.kind == "open" and token.name in {"script", "style"}:
            kind = token.attributes.get("type", "")
        elif token.kind == "raw" and token.inside[-1] == "script" and kind not in _NOT_RUN:
            scripts.append(_hash(token.text))
        elif token.kind == "raw" and token.inside[-1] == "style":
            styles.append(_hash(token.text))
    admitted = ["'wasm-unsafe-eval'"] if webassembly else []
    policy = {
        "default-src": "'none'",
        "script-src": " ".join(["'self'", *admitted, *sorted(set(scripts))]),
        "style-src": " ".join(["'self'", *sorted(set(styles))]),
        "img-src": "'self' data:",
        "font-src": "'self'",
        "connect-src": "'self'",
        "worker-src": "'self'",
        "manifest-src": "'self'",
        "base-uri": "'self'",
        "form-action": "'self'",
    }
    meta = tag(
        "meta",
        {
            "http-equiv": "Content-Security-Policy",
            "content": "; ".join(f"{name} {value}" for name, value in policy.items()),
        },
    ).replace("&#x27;", "'")
    # First thing in the head after the character set: a policy does not govern what stands before it.
    return re.sub(r"(<meta charset=[^>]*>)", lambda found: found.group() + meta, page, count=1)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
