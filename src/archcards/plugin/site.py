"""The MkDocs plugin: runs the book, puts its results into the pages, and publishes all or nothing."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import shorten

from mkdocs.config.base import Config
from mkdocs.config.config_options import ExtraScriptValue, Type
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc
from jinja2 import TemplateNotFound
from mkdocs.utils import get_relative_url

import archcards
from archcards.evidence.book import Verdict
from archcards.evidence.memory import Memory
from archcards.evidence.numerals import numerals_of
from archcards.evidence.problem import Problem
from archcards.evidence.prose import scan
from archcards.evidence.sources import read_names

from . import access, citing, controls_page, delivery, facts, fonts, links, live, mathematics, pages, policy, published, render, swap
from .blocks import Blocks, install, mark_fences, misplaced, origins
from .book import Book, BookPage
from .downloads import Downloads
from .finding import FILE, Finding
from .markup import strays
from .mutants import mutants_index
from .models import Models, placeholders
from .related import Related, short_tags
from .rosetta import FILE as ROSETTA
from .rosetta import Rosetta

__all__ = ["ArchitectureCards", "NotProved"]

THEME = Path(__file__).with_name("theme")
SCRIPTS = ("assets/javascripts/archcards.js", "assets/javascripts/citing.js", "assets/javascripts/exchange.js")
STYLES = "assets/stylesheets/archcards.css"
INLINE_STYLES = "assets/stylesheets/inline.css"
FONT = "assets/fonts/stix-two-math.woff2"
_REFERENCE = 'class="doc '
"""What a page has that needs the style sheet of the API."""


class NotProved(PluginError):
    """The book has faults, and nothing was published."""


class Options(Config):
    """Options of the plugin in `mkdocs.yml`."""

    reports = Type(bool, default=False)
    """Whether the two reports of `archcards report` stand beside the pages."""

    models = Type(bool, default=False)
    """Whether each bundled model has a page under `models/`, made from its configuration."""

    cases = Type(bool, default=False)
    """Whether the published cases can be downloaded, under `cases/`."""

    downloads = Type(bool, default=False)
    """Whether chapters can be taken away as notebooks and files, with the package itself."""

    report_form = Type(str, default="")
    """Address of the form for reports of errors, with `{title}` and `{body}` in it; else it is that of `repo_url`."""


class ArchitectureCards(BasePlugin[Options]):
    """Builds the site beside the old one and swaps it in when everything is proved."""

    def __init__(self) -> None:
        self.serving = False
        self.rehearsed: Verdict | None = None
        """A verdict to draw pages of that are only looked at: nothing is told or published."""
        self.exit = contextlib.ExitStack()
        self.warnings = _Warnings()
        self.memory = Memory()
        """While serving: the state of the code, and the verdict it led to."""

    # Before the build

    def on_startup(self, *, command: str, dirty: bool) -> None:
        self.serving = command == "serve"

    @event_priority(100)
    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        self.begun = time.perf_counter()
        self.docs = Path(config.docs_dir)
        self.root = Path(config.config_file_path).parent if config.config_file_path else self.docs.parent
        self.problems: list[Problem] = []
        self.styles = policy.StyleSheet()
        self.policy = policy.Policy()
        self.exchanged: set[str] = set()
        self.listings = _Listings()
        self.kept: dict[str, str] = {}
        self.characters: set[int] = set(fonts.DISPLAY)
        self.current: Blocks | None = None
        self.placed: dict[str, Blocks] = {}
        self.sites: dict[str, Page] = {}
        self.printed: dict[str, dict[str, int]] = {}
        """For each page of the site what its blocks' links lead to, with the blocks' lines."""
        self.warnings.start()
        if not self.serving:
            _addresses(config)
        os.environ.setdefault("SOURCE_DATE_EPOCH", _commit_time(self.root))
        if not self.serving:
            self.site = Path(config.site_dir).resolve()  # a link stays one
            if self.rehearsed is None:
                self._redirect(config)
        self.code = self._code()
        self.book = self._prove()
        self.problems += self.book.verdict.problems
        self.models = Models(self.docs, self.book.verdict.sources)
        self.related = Related(self.book, self.models.models if self.config.models else {})
        names = read_names(self.docs / "names.txt")
        self.rosetta = Rosetta(self.docs, names)
        self.settings = _settings(config)
        for title in _titles(config.nav):
            for numeral in numerals_of(scan(title, lists=False), names):
                self.problems.append(self._of_settings(title, numeral.reason))
        config.theme.dirs.insert(0, str(THEME))
        config.extra_css[:] = [STYLES, INLINE_STYLES, *config.extra_css]
        config.extra_javascript[:] = [*map(_module, SCRIPTS), *config.extra_javascript]
        install(lambda: self.current)
        return config

    def _redirect(self, config: MkDocsConfig) -> None:
        try:
            self.exit.enter_context(swap.lock(self.site))
            self.fresh = swap.beside(self.site)
        except (OSError, swap.BuildInProgress) as error:
            raise NotProved(f"cannot build {self.site}: {error}") from None
        config.site_dir = str(self.fresh)

    def _prove(self) -> Book:
        if self.rehearsed is not None:
            return Book.of(self.rehearsed)
        try:
            return Book.prove(self.docs, self.memory if self.serving else None)
        except Exception as error:
            if not self.serving:
                raise
            problem = Problem(self.docs.name, 1, f"the book cannot be run: {error}")
            return Book(Verdict({}, (problem,), {}, {}), {})

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        """Leaves out what the theme brings and no reader needs; adds what the book says to programs."""
        for file in list(files):
            unread = file.is_documentation_page() and file.src_uri not in (self.book.pages or {file.src_uri})
            if file.abs_src_path and (unread or not os.path.exists(file.abs_src_path)):
                files.remove(file)  # in a linked folder, or a link that leads nowhere: the verdict tells of it
            elif file.src_uri.endswith((".css.map", ".js.map")) or "/javascripts/lunr/" in f"/{file.src_uri}":
                files.remove(file)
            elif re.fullmatch(r"assets/.*\.[0-9a-f]{8}\.min\.(css|js)", file.src_uri):
                files.remove(file)
                files.append(self._delivered(file, config))
        places: dict[str, str] = {}
        for file in files.documentation_pages():
            if (other := places.setdefault(file.dest_uri, file.src_uri)) != file.src_uri:
                reason = f"its place on the site is that of {self.docs.name}/{other}; rename one of them"
                self.problems.append(Problem(f"{self.docs.name}/{file.src_uri}", 1, reason))
        made = {"evidence.json": published.evidence_json(self.book)}
        if self.config.reports:
            reports, problems = published.reports(self.book)
            made |= reports
            self.problems += problems
        if self.config.cases:
            made |= published.cases(self.root)
        if self.config.models:
            made |= live.files(self.models, self.root)
        for name, content in made.items():
            if files.get_file_from_path(name):
                reason = "the build makes a file of this name; choose another"
                self.problems.append(Problem(f"{self.docs.name}/{name}", 1, reason))
            files.append(File.generated(config, name, content=content))
        if self.config.models:
            for name, content in self.models.pages().items():
                files.append(
                    File.generated(config, name, content=content, inclusion=InclusionLevel.NOT_IN_NAV)
                )
            figures = f"{self.docs.name}/{self.models.file.relative_to(self.docs).as_posix()}"
            self.problems += [Problem(figures, line, reason) for line, reason in self.models.faults]
        return files

    def _delivered(self, file: File, config: MkDocsConfig) -> File:
        """A file of the theme as the site serves it, under a name of its own."""
        text = delivery.without_source_map(file.content_string)
        try:
            if "/bundle." in file.src_uri:
                text = delivery.anywhere(delivery.unhurried(text))
            elif "/workers/search." in file.src_uri:
                text = delivery.told_apart(text)
        except delivery.UnknownTheme as error:
            self.problems.append(Problem("mkdocs.yml", 1, str(error)))
        self.kept[file.src_uri] = name = delivery.kept_name(file.src_uri, text.encode())
        return File.generated(config, name, content=text)

    # Each page

    def on_page_read_source(self, /, *, page: Page, config: MkDocsConfig) -> str | None:
        """The text that was proved, whatever its writer has saved since."""
        proved = self.book.pages.get(page.file.src_uri)
        return proved.proved.chapter.text if proved else None

    def on_page_markdown(self, markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        self.current = None
        part = page.ancestors[-1].title if page.ancestors else ""
        if tags := self.related.tags(page.file.src_uri, part):
            page.meta["tags"] = tags
        proved = self.book.pages.get(page.file.src_uri)
        if proved is None:
            return markdown
        page.render = partial(self._render, page.render, page, proved)
        self.current = Blocks(proved.proved.blocks, proved.anchors, proved.lines)
        self.placed[page.file.src_uri] = self.current
        offset = max(0, len(proved.lines) - (markdown.count("\n") + 1))
        return mark_fences(markdown, proved.proved.chapter.blocks, offset)

    def _render(self, render, page: Page, proved: BookPage, config: MkDocsConfig, files: Files) -> None:
        """Markdown to HTML; where that fails, MkDocs would stop at this page and tell of no other."""
        told = len(self.warnings.messages)
        try:
            render(config, files)
        except Exception as error:
            del self.warnings.messages[told:]  # what led to the failure
            reason = " ".join(str(error).split()) or type(error).__name__
            named = next((name for name in re.findall(r"'([^']+)'", reason) if _line_of(proved.lines, name)), "")
            line = _line_of(proved.lines, named) or links.find_broken(proved.lines) or 1
            self.problems.append(self._problem(proved, line, f"the page cannot be drawn: {reason}"))
            page.content, page.toc = "", get_toc([])

    def on_page_content(self, html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
        proved, blocks = self.book.pages.get(page.file.src_uri), self.current
        self.current = None
        if proved is None or blocks is None:
            return html
        html = blocks.fill(html)
        for line, reason in blocks.faults:
            # A fence that the runner refused, such as one inside a comment, is reported already.
            if line or not proved.proved.chapter.problems:
                self.problems.append(self._problem(proved, line or 1, reason))
        if proved.proved.card:
            html = _after_heading(html, pages.card(proved.proved.card) + pages.sources_switch())
        elif any("{{ " in line for line in proved.lines):
            html += pages.sources_switch()
        if bibliography := pages.bibliography(proved.proved.sources.values()):
            html = re.sub(r'(<h2 id="sources">.*?</h2>)', lambda m: m[1] + bibliography, html, flags=re.S)
        for name in strays(html):
            line = _line_of(proved.lines, f"</{name}") or 1
            self.problems.append(self._problem(proved, line, f"</{name}> closes what the page did not open"))
        for formula in mathematics.formulas(html):
            try:
                mathematics.mathml(facts.plain(formula.tex, _NUMBERS), formula.display)
            except mathematics.BadTeX as error:
                line = _line_of(proved.lines, formula.tex) or 1
                self.problems.append(self._problem(proved, line, f"TeX does not parse: {error}"))
        html = facts.place(
            html, proved.values(lambda target, anchor: _address(target, anchor, page, files))
        )
        values = proved.values()
        if page.title:
            page.title = facts.plain(str(page.title), values)
        for name in {"title", "description", "subtitle"} & page.meta.keys():
            page.meta[name] = facts.plain(str(page.meta[name]), values)
        _rename(page.toc, values)
        if controls := files.get_file_from_path(controls_page.PAGE):
            html = controls_page.linked(html, get_relative_url(controls.url, page.url))
        return self.listings.put_aside(access.reachable_tables(html))

    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> Navigation:
        self.nav = nav
        order = {page.file.src_uri: place for place, page in enumerate(nav.pages)}
        self.book = self.book.in_order(lambda name: (order.get(name, len(order)), name))
        return nav

    def on_env(self, env, *, config: MkDocsConfig, files: Files):
        """All pages are read, and their titles known: the lists of the whole book can be drawn."""
        self._check_parts_of_theme(env, files)
        self._shelve(files)
        self._relate(files)
        self._offer_downloads(config, files)
        for file in files.documentation_pages():
            page = file.page
            if page is None or not page.content or '<div data-ac="' not in page.content:
                continue

            def address(target: BookPage | None, anchor: str, page: Page = page) -> str:
                return _address(target, anchor, page, files)

            def place(target: BookPage, html: str, address=address) -> str:
                return facts.place(html, target.values(address))

            def title(target: BookPage) -> str:
                other = files.get_file_from_path(target.src_uri)
                named = other.page.title if other and other.page else None
                return facts.plain(str(named or target.stem), target.values())

            def parts(address=address, title=title):
                """The parts of the book that the menu has, with their chapters."""
                for section in self.nav.items:
                    inside = [self.book.pages.get(page.file.src_uri) for page in section.children or () if page.is_page]
                    chapters = [(title(one), address(one, ""), one) for one in inside if one and one.proved.card]
                    if chapters:
                        yield section.title, chapters

            proved = self.book.pages.values()
            lists = {
                "cards": lambda: pages.cards_index(proved, address, place),
                "controls": controls_page.index,
                "chapters": lambda: pages.chapters_index(parts(address, title)),
                "downloads": lambda page=page: self.downloads.everything("../" * page.url.count("/")) if self.downloads else "",
                "evidence": lambda: pages.evidence_index(proved, address, place, title),
                "mutants": lambda: mutants_index(self.root, link),
                "quotes": lambda: pages.quotes_index(self.book.verdict.sources.values()),
            }

            def link(src_uri: str, page: Page = page) -> tuple[str, str] | None:
                other = files.get_file_from_path(src_uri)
                if other is None or other.page is None:
                    return None
                target = self.book.pages.get(src_uri)
                named = facts.plain(str(other.page.title), target.values() if target else {})
                return get_relative_url(other.url, page.url), named

            def fill(what: str, of: str, lists=lists, link=link) -> str | None:
                if what in lists:
                    return lists[what]()
                if what == "rosetta":
                    return self.rosetta.fill(of, link)
                with contextlib.suppress(KeyError, ValueError):  # of what is none, such as a model misspelt
                    return live.mount(what, of, link) or self.models.fill(what, of, link)
                return None

            page.content = placeholders(page.content, fill)
            for left in re.findall(r'<div data-ac="[^>]*>', page.content):
                source = self.book.pages.get(page.file.src_uri)
                reason = "nothing is known that stands at this place"
                if source:
                    self.problems.append(self._problem(source, _line_of(source.lines, left) or 1, reason))
        self._cite(config, files)
        found = [*self.rosetta.faults, *self.rosetta.unplaced()]
        self.problems += [Problem(f"{self.docs.name}/{ROSETTA}", line, reason) for line, reason in found]
        return env

    def _check_parts_of_theme(self, env, files: Files) -> None:
        """A template or an icon that the theme lacks would end the drawing of all pages."""
        for page in (file.page for file in files.documentation_pages() if file.page):
            for field, path in (("template", "{}"), ("icon", ".icons/{}.svg")):
                try:
                    if field in page.meta:
                        env.get_template(path.format(page.meta[field]))
                except TemplateNotFound:
                    reason = f"the theme has no {field} {page.meta.pop(field)}"
                    if proved := self.book.pages.get(page.file.src_uri):
                        line = _line_of(proved.lines, f"{field}:") or 1
                        self.problems.append(self._problem(proved, line, reason))

    def _offer_downloads(self, config: MkDocsConfig, files: Files) -> None:
        """Puts a line of links under each chapter; the files follow when the site is built."""
        self.downloads = None
        if not self.config.downloads:
            return

        def file(page: BookPage) -> File:
            return files.get_file_from_path(page.src_uri)

        def address(src_uri: str) -> str | None:
            found = files.get_file_from_path(src_uri)
            return found.url if found else None

        def title(page: BookPage) -> str:
            return facts.plain(str(file(page).page.title), page.values())

        url = config.site_url or "http://localhost:8000/"
        self.downloads = Downloads(self.book, self.root, url, address, title)
        for chapter in self.downloads.chapters:
            page = file(chapter).page
            page.content += self.downloads.links(chapter)

    def _shelve(self, files: Files) -> None:
        """Pages of models are in no menu: each is told where it belongs and what stands before and after it."""
        if not self.config.models:
            return
        home = files.get_file_from_path("models/index.md")
        made = (files.get_file_from_path(model.src_uri) for model in self.models.listed())
        before = None
        for page in (file.page for file in made if file and file.page):
            page.parent = home.page.parent if home and home.page else None
            page.previous_page, before = before, page
            if page.previous_page:
                page.previous_page.next_page = page

    def _relate(self, files: Files) -> None:
        """Links chapters, models and the reference with one another."""
        read = [file.page for file in files.documentation_pages() if file.page and file.page.content]
        documented = {
            name: page
            for page in read
            for name in re.findall(r'<h\d id="(archcards\.[\w.]+)" class="doc doc-heading">', page.content)
        }
        for page in read:

            def link(src_uri: str, page: Page = page) -> tuple[str, str] | None:
                other = files.get_file_from_path(src_uri)
                if other is None or other.page is None:
                    return None
                return get_relative_url(other.url, page.url), str(other.page.title)

            proved = self.book.pages.get(page.file.src_uri)
            if proved and proved.proved.card:
                addresses = {
                    name: f"{get_relative_url(other.url, page.url)}#{name}" for name, other in documented.items()
                }
                page.content += self.related.section(proved, link, addresses)
            elif 'class="doc doc-heading"' in page.content:
                page.content = self.related.documented(page.content, link, self.rosetta.entry)

    def _cite(self, config: MkDocsConfig, files: Files) -> None:
        """Puts under each page how it is cited, and where its errors are reported."""
        try:
            form = citing.form(self.config.report_form, config.repo_url or "")
        except citing.BadForm as error:
            self.problems.append(Problem("mkdocs.yml", 1, str(error)))
            form = ""
        edition = citing.edition(self.root, config.site_name, int(os.environ["SOURCE_DATE_EPOCH"]))
        for file in files.documentation_pages():
            page = file.page
            if page is not None and page.content:
                title = mathematics.as_dollars(str(page.title))
                offers = "" if "ac-sources" in page.content else pages.addresses_switch(page.content)
                page.content += citing.section(edition, title, page.canonical_url or "", form, offers)

    def _outline(self):
        """The pages of the menu that are no chapters, by section."""
        for section in self.nav.items:
            inside = [page for page in self.nav.pages if section in page.ancestors]
            rows = [
                (str(page.title), page.url)
                for page in inside
                if page.file.src_uri not in self.book.pages or not self.book.pages[page.file.src_uri].proved.card
            ]
            if rows:
                yield section.title, rows

    @event_priority(-100)
    def on_post_page(self, output: str, *, page: Page, config: MkDocsConfig) -> str:
        proved = self.book.pages.get(page.file.src_uri)
        self.sites[page.file.dest_uri] = page
        if proved is not None:
            executed = [fence.line for fence in proved.proved.chapter.blocks if fence.executed]
            for line, reason in misplaced(output, executed):
                self.problems.append(self._problem(proved, line, reason))
            self.problems += self._leftovers(output, proved)
            self.printed[page.file.dest_uri] = {
                value: line
                for token, line in origins(output) if line and token.kind == "open"
                for name, value in token.attributes.items() if name in {"href", "src", "srcset"}
            }  # fmt: skip
            output = re.sub(r' data-ac-line="\d+"', "", output)
        if live.MARK in output or _REFERENCE in output:
            output = delivery.loaded_in_full(output)
        else:
            self.exchanged.add(page.url)
        return self._finished(output)

    @event_priority(-100)
    def on_post_template(self, output: str, *, template_name: str, config: MkDocsConfig) -> str:
        return self._finished(output) if template_name.endswith(".html") else output

    def _finished(self, output: str) -> str:
        """The last changes that every page has in common."""
        output = access.named(short_tags(mathematics.typeset(output)))
        output = mathematics.typeset_navigation(output)
        self.characters |= mathematics.code_points(output)
        output = re.sub(r'\s*<meta name="generator"[^>]*>', "", output)
        if _REFERENCE not in output:
            output = re.sub(r'\s*<link rel="stylesheet" href="[^"]*/_mkdocstrings\.css">', "", output)
        output = access.outward(output)
        for before, now in self.kept.items():
            output = output.replace(before, now)
        output = self.policy.place(self.styles.without_styles(output))
        return self.listings.put_back(output)

    def _leftovers(self, output: str, proved: BookPage) -> list[Problem]:
        """References that nothing has replaced, wherever they stand, and that no rule has told of."""
        found = []
        known = {problem.line for problem in proved.proved.problems}
        for token, block in origins(output) if "{{" in output else ():
            shown = token.kind == "text" and not {"code", "pre", "script", "style"} & set(token.inside)
            if "{{" in token.text and (shown or token.kind == "open"):
                for left in re.findall(r"\{\{[^{}]*\}?\}?", token.text):
                    line, reason = _line_of(proved.lines, left) or block, f"{left} stands for nothing here"
                    # A card on the index is reported where its own page has it, and a page that did
                    # not run to its end has one fault, not one for each number it did not compute.
                    if not line and _line_of(self.settings, left):
                        found.append(self._of_settings(left, reason))
                    if not line or line in known or not proved.proved.run.complete:
                        continue
                    found.append(self._problem(proved, line, reason))
        return list(dict.fromkeys(found))

    def _show_faults(self, site: Path) -> None:
        """The preview shows the faults of a page at its top; those of blocks stand at their place too."""
        for name, page in self.sites.items():
            proved = self.book.pages.get(page.file.src_uri)
            faults = [p for p in self.problems if proved and p.path == proved.path]
            if not faults:
                continue
            rows = "".join(render.fault(problem.line, problem.reason) for problem in faults)
            box = f'<div class="ac-faults" role="alert"><p>This page cannot be published:</p>{rows}</div>'
            output = (site / name).read_text("utf-8")
            output = re.sub(r"(<article\b[^>]*>)", lambda m, box=box: m[1] + box, output, count=1)
            _write(site / name, output.encode())

    # After the build

    @event_priority(-100)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        site = Path(config.site_dir)
        for path in site.rglob("*.html"):
            text = path.read_bytes().decode()
            _write(path, self.policy.fill(text, webassembly=live.MARK in text).encode())
        _write(site / delivery.EXCHANGED, delivery.exchanged(self.exchanged).encode())
        _write(site / INLINE_STYLES, self.styles.css().encode())
        most = self.policy.text(webassembly=self.config.models)
        _write(site / "_headers", delivery.headers(self.kept.values(), most).encode())
        _write(site / FONT, fonts.mathematics_font(self.characters))
        if self.downloads:
            made = self.downloads.files(config.site_description or config.site_name, self._outline())
            for name, content in made.items():
                _write(site / name, content)
        self._help_finding(site)
        self.problems += self._dead_links(site, config)
        self.problems += self._warned()
        if not self.serving:  # a server builds again
            now = self._code()
            changed = [path for path in sorted({*self.code, *now}) if self.code.get(path) != now.get(path)]
            reason = "changed while the book was built; build again"
            self.problems += [Problem(os.path.relpath(path, self.root), 1, reason) for path in changed]
        self.problems = problems = sorted(set(self.problems))
        if self.rehearsed is not None:
            return
        _tell(problems)
        if self.serving:
            self._show_faults(site)
            return
        if problems:
            count = len(problems)
            raise NotProved(
                f"{count} fault{'s' * (count != 1)}; nothing was published"
                + (f", {self.site.name}/ is as it was" if self.site.exists() else "")
            )
        swap.publish(self.fresh, self.site)
        self._clear()
        verdict = replace(self.book.verdict, seconds=time.perf_counter() - self.begun)
        print(f"{self.site.name}/ is proved and published: {verdict.summary()}", file=sys.stderr)

    def _help_finding(self, site: Path) -> None:
        """Puts the words that readers type into the search index."""
        finding, index = Finding.read(self.docs), site / "search" / "search_index.json"
        if index.exists():
            addresses = {page.file.src_uri: page.url for page in self.sites.values()}
            index.write_text(finding.put_into(index.read_text("utf-8"), addresses), "utf-8")
        name = f"{self.docs.name}/{FILE}"
        self.problems += [Problem(name, line, reason) for line, reason in finding.faults]

    def on_build_error(self, *, error: Exception) -> None:
        self._clear()

    def on_shutdown(self) -> None:
        self._clear()  # also after Ctrl-C, which is no error to MkDocs

    def _clear(self) -> None:
        self.warnings.stop()
        if hasattr(self, "fresh"):
            swap.discard(self.fresh)
        self.exit.close()

    def _dead_links(self, site: Path, config: MkDocsConfig) -> list[Problem]:
        found = []
        doubled = {p.reason.split('"')[1] for p in self.problems if p.reason.startswith('id="')}
        told = links.check_site(site, site_url=config.site_url or "")
        # What stands around every page stands around this one, which has nothing of its own.
        frame = {dead.link.lstrip("./") for dead in told if dead.page == "404.html"}
        for dead in told:
            page = self.sites.get(dead.page)
            proved = self.book.pages.get(page.file.src_uri) if page else None
            if not dead.link and dead.about.removeprefix("#") in doubled:
                continue  # told of the block that has it
            line = links.find_line("\n".join(proved.lines), dead.link or dead.about) if proved else None
            line = line or self.printed.get(dead.page, {}).get(dead.link)
            if dead.link.startswith("#fnref:"):
                continue  # told of the footnote
            if proved and dead.link.startswith("#source-"):
                key = dead.link.removeprefix("#source-")
                reason = f'the page quotes {key} and has no section "Sources" that lists it'
                found.append(self._problem(proved, _line_of(proved.lines, f"{{{{ {key}.") or 1, reason))
            elif line is None and dead.link and dead.link.lstrip("./") in frame:
                link = dead.link.lstrip("./")
                found.append(self._of_settings(link, dead.reason.replace(dead.link, link)))
            elif proved is None:
                name = f"{self.docs.name}/{page.file.src_uri}" if page else f"{self.site.name}/{dead.page}"
                found.append(Problem(name, 1, dead.reason))
            else:
                found.append(self._problem(proved, line or 1, dead.reason))
        return found

    def _warned(self) -> list[Problem]:
        """What MkDocs and its plugins only warn of."""
        found = []
        for message in self.warnings.messages:
            if "not included in the \"nav\"" in message:
                for name in re.findall(r"- (\S+\.md)", message):
                    reason = "in no menu; add it to `nav` in mkdocs.yml"
                    found.append(Problem(f"{self.docs.name}/{name}", 1, reason))
                continue
            named = re.match(r"(?:[\w.-]+: )?(?:Doc file '|')?(?P<page>[\w./-]+\.md)\b", message)
            about, reason = re.findall(r"'([^']+)'", message), " ".join(message.split())
            proved = self.book.pages.get(named["page"]) if named else None
            if proved:
                tried = [text for name in about for text in (f"[{name}]", name)]
                line = next(filter(None, (_line_of(proved.lines, text) for text in tried)), 1)
                found.append(self._problem(proved, line, reason))
            elif named:
                found.append(Problem(f"{self.docs.name}/{named['page']}", 1, reason))
            else:
                found.append(self._of_settings(next(iter(about), ""), reason))
        self.warnings.stop()
        return found

    def _problem(self, proved: BookPage, line: int, reason: str) -> Problem:
        source = proved.lines[line - 1].strip() if 0 < line <= len(proved.lines) else ""
        return Problem(proved.path, line, reason, source)

    def _of_settings(self, text: str, reason: str) -> Problem:
        """A problem of `mkdocs.yml`, on the line that has this text."""
        line = _line_of(self.settings, text) or 1
        return Problem("mkdocs.yml", line, reason, self.settings[line - 1].strip() if self.settings else "")

    # While writing

    def on_serve(self, server, *, config: MkDocsConfig, builder):
        for folder in self._watched():
            server.watch(str(folder))
        return server

    def _code(self) -> dict[Path, bytes]:
        """What the chapters run and the reference shows."""
        files = {file for folder in self._watched() for file in folder.rglob("*.py")}
        return {file: file.read_bytes() for file in files if file.is_file()}

    def _watched(self) -> list[Path]:
        """Folders beside `docs` on which pages depend."""
        folders = (self.root / "src", self.root / "results", Path(archcards.__file__).parent)
        return [folder for folder in folders if folder.is_dir()]


def _address(target: BookPage | None, anchor: str, page: Page, files: Files) -> str:
    """The address of an anchor of a page, or of the Evidence page, seen from `page`."""
    file = files.get_file_from_path(target.src_uri if target else "evidence.md")
    if file is None:
        return "#"
    url = "" if file is page.file else get_relative_url(file.url, page.url)
    return f"{url}#{anchor}" if anchor and target else url or "#"


class _Listings:
    """Folded source code, out of the way of the search index and of all that reads the pages."""

    _FOLDED = re.compile(
        r'<details class="mkdocstrings-source">.*?</details>'
        r'|(?<=</summary>)<div class="language-python highlight">.*?</div>(?=<p class="ac-address">|<ul class="ac-seen">)',
        re.S,
    )
    _HELD = re.compile(r"<!--listing (\d+)-->")

    def __init__(self) -> None:
        self._held: list[str] = []

    def put_aside(self, html: str) -> str:
        def hold(found: re.Match) -> str:
            self._held.append(found.group())
            return f"<!--listing {len(self._held) - 1}-->"

        return self._FOLDED.sub(hold, html)

    def put_back(self, html: str) -> str:
        return self._HELD.sub(lambda found: self._held[int(found[1])], html)


class _Digits(dict):
    """Any name stands for a digit: enough to see whether TeX parses around it."""

    def get(self, name, default=None):
        return facts.Value(1, "", "")


_NUMBERS = _Digits()


class _Warnings(logging.Handler):
    """Keeps the warnings of a build, which `mkdocs build -q` would hide."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())

    def start(self) -> None:
        self.stop()
        self.messages.clear()
        logger = logging.getLogger("mkdocs")
        self._before = (logger.level, {handler: handler.level for handler in logger.handlers})
        for handler in logger.handlers:
            handler.setLevel(max(handler.level, logger.level))
        logger.setLevel(min(logger.getEffectiveLevel(), logging.WARNING))
        logger.addHandler(self)

    def stop(self) -> None:
        logger = logging.getLogger("mkdocs")
        if self in logger.handlers:
            logger.removeHandler(self)
            level, handlers = self._before
            logger.setLevel(level)
            for handler in handlers:
                handler.setLevel(handlers[handler])


def _module(path: str) -> ExtraScriptValue:
    script = ExtraScriptValue(path)
    script.type = "module"
    return script


def _settings(config: MkDocsConfig) -> tuple[str, ...]:
    """The lines of the file with the settings."""
    if not config.config_file_path:
        return ()
    return tuple(Path(config.config_file_path).read_text("utf-8", "replace").split("\n"))


def _titles(nav) -> Iterator[str]:
    """The titles that the menu gives to pages and parts, at any depth."""
    for item in nav if isinstance(nav, list) else ():
        for title, inside in item.items() if isinstance(item, dict) else ():
            yield str(title)
            yield from _titles(inside)


def _addresses(config: MkDocsConfig) -> None:
    """Where the site and its repository live, so that a fork edits nothing."""
    if site := os.environ.get("ARCHCARDS_SITE_URL"):
        config.site_url = site.rstrip("/") + "/"
    if repository := os.environ.get("ARCHCARDS_REPO_URL"):
        config.repo_url = repository


def _commit_time(root: Path) -> str:
    """The time of the commit, so that two builds of it are the same."""
    command = ["git", "-C", str(root), "log", "-1", "--format=%ct"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return "0"
    return told.stdout.strip() or "0"


def _after_heading(html: str, what: str) -> str:
    """The page with something put after its title, or at its top."""
    end = html.find("</h1>")
    return html[: end + 5] + what + html[end + 5 :] if end >= 0 else what + html


def _rename(toc, values) -> None:
    for item in toc:
        item.title = facts.plain(item.title, values)
        _rename(item.children, values)


def _line_of(lines: tuple[str, ...], text: str) -> int | None:
    """The line that a piece of the page most likely comes from."""
    pieces = [piece.strip() for piece in text.split("\n") if piece.strip()]
    for number, line in enumerate(lines, 1):
        if pieces and pieces[0] in line:
            return number
    return None


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _tell(problems: list[Problem]) -> None:
    """Every fault on its own line, with the line of the file that has it."""
    for problem in problems:
        print(problem, file=sys.stderr)
        if problem.source:
            print(f"    {shorten(problem.source, 140, placeholder=' …')}", file=sys.stderr)
        if problem.detail:
            print("\n".join(f"    | {line}" for line in problem.detail.split("\n")), file=sys.stderr)
