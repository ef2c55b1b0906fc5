"""A reason why the book cannot be published, at a line of a file."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Problem", "decoded"]


@dataclass(frozen=True, order=True)
class Problem:
    """What is wrong (`reason`, which says what to do) and where; ordered by file, line and reason.

    `source` is the offending line as it stands in the file, `detail` a traceback where there is one.

    Example:
        >>> print(Problem("docs/part/page.md", 12, "the fact `edges` is defined nowhere on this page"))
        docs/part/page.md:12: the fact `edges` is defined nowhere on this page
    """

    path: str
    line: int
    reason: str
    source: str = field(default="", compare=False)
    detail: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}"


def decoded(path: str, data: bytes) -> tuple[str, list[Problem]]:
    r"""The text of a file, without its byte order mark; what is not UTF-8 is no text and a problem.

    Example:
        >>> decoded("docs/names.txt", b"Llama 3\n")
        ('Llama 3\n', [])
    """
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return "", [Problem(path, line, "not UTF-8; save the file as UTF-8")]
