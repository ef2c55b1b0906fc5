"""What a page may load and run: a Content-Security-Policy without `unsafe-inline`.

Inline scripts are admitted one by one, by the hash of their text. Inline styles become classes of
one style sheet, because a policy cannot name them.

All pages have the same policy. A link puts the content of its page in the place of another's, and
the policy of the page that was loaded stays in force: it has to admit what any content brings, and
one that differed would be added to it, and take away. Only what needs WebAssembly has more, and is
loaded in full.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re

from .markup import Token, rewrite, tag, tokens

__all__ = ["Policy", "StyleSheet"]

_PLACE = "<!--policy-->"
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


class Policy:
    """Collects the inline scripts and styles of all pages, for one policy that admits exactly those."""

    def __init__(self) -> None:
        self._scripts: set[str] = set()
        self._styles: set[str] = set()

    def place(self, page: str) -> str:
        """The page with a place for its policy, and what it has inside remembered."""
        kind = ""
        for token in tokens(page):
            if token.kind == "open" and token.name in {"script", "style"}:
                kind = token.attributes.get("type", "")
            elif token.kind == "raw" and token.inside[-1] == "script" and kind not in _NOT_RUN:
                self._scripts.add(_hash(token.text))
            elif token.kind == "raw" and token.inside[-1] == "style":
                self._styles.add(_hash(token.text))
        # First in the head after the character set: a policy does not govern what stands before it.
        return re.sub(r"(<meta charset=[^>]*>)", lambda found: found.group() + _PLACE, page, count=1)

    def fill(self, page: str, *, webassembly: bool = False) -> str:
        """The page with the policy in its place, when all pages are known."""
        given = {"http-equiv": "Content-Security-Policy", "content": self.text(webassembly=webassembly)}
        return page.replace(_PLACE, tag("meta", given).replace("&#x27;", "'"), 1)

    def text(self, *, webassembly: bool = False) -> str:
        """The policy of all pages that are known so far.

        `webassembly` admits its compilation, and still no text run as a script: a browser may hold
        a worker to the policy of the page that starts it.
        """
        admitted = ["'wasm-unsafe-eval'"] if webassembly else []
        policy = {
            "default-src": "'none'",
            "script-src": " ".join(["'self'", *admitted, *sorted(self._scripts)]),
            "style-src": " ".join(["'self'", *sorted(self._styles)]),
            "img-src": "'self' data:",
            "font-src": "'self'",
            "connect-src": "'self'",
            "worker-src": "'self'",
            "manifest-src": "'self'",
            "base-uri": "'self'",
            "form-action": "'self'",
        }
        return "; ".join(f"{name} {value}" for name, value in policy.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
