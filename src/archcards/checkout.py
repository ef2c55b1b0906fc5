"""Where the book stands: the checkout that holds `docs/` beside the package's source."""

from pathlib import Path

__all__ = ["NotACheckout", "find_checkout"]


class NotACheckout(Exception):
    """Raised where only the package is installed, without the book."""


def find_checkout(start: Path | None = None) -> Path:
    """The folder of the checkout that this package runs from; failing that, the one around `start`.

    Args:
        start: Where to look upwards from; the working directory unless given.

    Raises:
        NotACheckout: If there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (Path(__file__).resolve().parents[2], here, *here.parents):
        if (folder / "docs" / "sources.yml").is_file() and (folder / "src" / "archcards").is_dir():
            return folder
    raise NotACheckout(
        "this command needs a checkout of Architecture Cards with its docs/, "
        "and there is none around the working directory"
    )
