"""What the site says to programs: `evidence.json`, the two reports, the published cases.

Times and exact errors stay out of `evidence.json`, so that two builds are the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from archcards.evidence.problem import Problem
from archcards.evidence.record import Check, Derivation, Fact

from .book import Book, BookPage

__all__ = ["cases", "evidence_json", "reports"]


def evidence_json(book: Book) -> str:
    """The evidence of the whole book, in the order of its pages."""
    pages = list(book.pages.values())
    quoted = [
        {
            "source": source.key,
            "name": quote.name,
            "value": quote.value,
            "unit": quote.unit,
            "where": quote.where,
            "title": source.title,
            "url": source.url,
        }
        for _, source in sorted(book.verdict.sources.items())
        for _, quote in sorted(source.quotes.items())
    ]
    report = {
        "totals": {name.removeprefix("build."): fact.value for name, fact in book.verdict.build.items()},
        "blocks": [
            {"page": page.path, "line": block.fence.line, "id": block.fence.id or None}
            for page in pages
            for block in page.proved.blocks
        ],
        "checks": [_check(page, check) for page in pages for check in page.of(Check)],
        "facts": [
            {
                "name": fact.name,
                "value": fact.value,
                "unit": fact.unit,
                "given": fact.given,
                "page": page.path,
                "line": fact.line,
                "anchor": page.anchors.of(fact),
            }
            for page in pages
            for fact in page.of(Fact)
        ],
        "derivations": [_derivation(page, one) for page in pages for one in page.of(Derivation)],
        "quoted": quoted,
    }
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def _check(page: BookPage, check: Check) -> dict[str, Any]:
    return {
        "claim": check.claim,
        "page": page.path,
        "line": check.line,
        "anchor": page.anchors.of(check),
        "relation": check.relation,
        "tolerance": check.tolerance,
        "controls": [
            {"name": control.name, "error": control.shown, "caught": control.caught}
            for control in check.controls
        ],
    }


def _derivation(page: BookPage, derivation: Derivation) -> dict[str, Any]:
    return {
        "title": derivation.title,
        "page": page.path,
        "line": derivation.line,
        "anchor": page.anchors.of(derivation),
        "steps": [
            {"expression": step.source, "reason": step.reason, "status": step.status}
            for step in derivation.steps
        ],
        "control": derivation.control.source if derivation.control else None,
        "sizes": list(derivation.sizes),
    }


def reports(book: Book) -> tuple[dict[str, str], list[Problem]]:
    """The two reports by their path in the site; what they find wrong is a fault of the book."""
    from archcards import reports

    made, found = {}, []
    for name, make in (
        ("cards", lambda: reports.cards(reports.chapter_cards(book.verdict.pages))),
        ("lab", reports.lab),
    ):
        try:
            made[f"reports/{name}.json"] = json.dumps(make(), indent=2, allow_nan=False) + "\n"
        except reports.ReportFailed as failure:
            found += [Problem("src/archcards/reports.py", 1, line) for line in str(failure).split("\n")]
    return made, found


def cases(root: Path) -> dict[str, bytes]:
    """The published cases by their path in the site, and the gradients that were recorded for them."""
    from archcards.cases.files import files

    made = {f"cases/{name}": content for name, content in files().items()}
    recorded = sorted((root / "results").glob("gradients.*"))
    return made | {f"cases/{path.name}": path.read_bytes() for path in recorded}
