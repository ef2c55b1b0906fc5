"""`archcards build` and `archcards serve`: MkDocs with this site's settings, told quietly; and what the
finished pages would show beyond the chapters' own verdict, for `archcards check` and the tests."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import warnings
from pathlib import Path

from archcards.evidence.book import Verdict
from archcards.evidence.problem import Problem

__all__ = ["build", "rehearse", "serve"]

os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")  # Material's notice on every start


def build(root: Path, site: str | None = None) -> int:
    """Builds and proves the site of a checkout; the status of the command."""
    from click.exceptions import ClickException
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort, ConfigurationError

    logger, told = logging.getLogger("mkdocs"), logging.StreamHandler()
    told.setLevel(logging.ERROR)  # warnings are reported among the faults
    logger.setLevel(logging.WARNING)
    logger.addHandler(told)
    print("running the chapters and building their pages", file=sys.stderr)
    try:
        config = load_config(str(root / "mkdocs.yml"), **({"site_dir": site} if site else {}))
        config.plugins.on_startup(command="build", dirty=False)
        try:
            mkdocs_build(config)
        finally:
            config.plugins.on_shutdown()
    except Abort:
        return 1
    except (ConfigurationError, ClickException) as error:
        print(f"archcards: {error}", file=sys.stderr)
        return 1
    finally:
        logger.removeHandler(told)
    return 0


def rehearse(root: Path, verdict: Verdict) -> list[Problem]:
    """What the pages of a proved book would have against them (a dead link, TeX that does not parse).

    The site is drawn in a folder that is thrown away.
    """
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config
    from mkdocs.exceptions import MkDocsException

    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="archcards-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what libraries say of themselves
        try:
            config = load_config(str(root / "mkdocs.yml"), site_dir=os.path.join(folder, "site"))
            config.plugins.on_startup(command="build", dirty=False)
            plugin = config.plugins["archcards"]
            plugin.rehearsed = verdict
            mkdocs_build(config)
        except (MkDocsException, OSError) as error:
            return [Problem("mkdocs.yml", 1, f"the pages cannot be drawn: {' '.join(str(error).split())}")]
        finally:
            os.environ.clear()
            os.environ.update(before)
    return [problem for problem in plugin.problems if problem not in verdict.problems]


def serve(root: Path, address: str | None = None) -> int:
    """Serves the site of a checkout while it is being written."""
    from mkdocs.commands.serve import serve as mkdocs_serve

    logging.basicConfig(level=logging.INFO, format="%(message)s")
    options = {"dev_addr": address} if address else {}
    mkdocs_serve(str(root / "mkdocs.yml"), livereload=True, **options)
    return 0
