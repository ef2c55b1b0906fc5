"""The `archcards` command. Subcommands import what they need when they run, so that each is quick.

Bad input ends with status 2 and one line on standard error, never with a traceback; a check that
fails ends with status 1.
"""

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

__all__ = ["main"]

Run = Callable[[argparse.Namespace], int]


class BadInput(Exception):
    """What the user gave cannot be used: one line says why, and the status is 2."""


class _Parser(argparse.ArgumentParser):
    def _get_formatter(self) -> argparse.HelpFormatter:
        # A width given: argparse, which lays out every argument as it is added, would otherwise
        # import shutil, with all its compressors, to ask the terminal for it.
        return self.formatter_class(prog=self.prog, width=80)

    def error(self, message: str) -> NoReturn:
        raise BadInput(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its status."""
    parser = _Parser(
        prog="archcards",
        description="Transformer-family architectures, computed, proved and counted.",
    )
    commands = parser.add_subparsers(
        # With a name given, argparse need not lay out its help (and import what that takes).
        title="commands",
        metavar="COMMAND",
        required=True,
        prog="archcards",
    )
    for name, (define, purpose) in _COMMANDS.items():
        command = commands.add_parser(name, help=purpose, description=f"{purpose}.".replace("?.", "?"))
        command.set_defaults(run=define(command))
    try:
        if sys.stdout is None:
            raise BadInput("standard output: expected one that is open, came none")
        given = parser.parse_args(arguments)
        status = given.run(given)
        sys.stdout.flush()
        return status
    except BadInput as error:
        return _refuse(str(error))
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("archcards"):
            raise
        return _refuse(f"this command needs {error.name}, which the extra archcards[site] installs")
    except BrokenPipeError:  # the reader of a pipe, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            raise
        _refuse(f"standard output: expected room for the answer, came an error ({error.strerror})")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except KeyboardInterrupt:
        return 130


def _refuse(reason: str) -> int:
    with contextlib.suppress(OSError):  # standard error may be full; the status says it too
        print("archcards:", " ".join(reason.split()), file=sys.stderr, flush=True)
    return 2


def _ledger(command: argparse.ArgumentParser) -> Run:
    command.add_argument(
        "model",
        help="a config.json, a folder with one, - for standard input, "
        "or the name of a bundled model",
    )
    command.add_argument("--context", default="4096", metavar="N[,N...]", help="tokens (4096)")
    command.add_argument("--batch", default="1", metavar="N[,N...]", help="sequences (1)")
    command.add_argument(
        "--source-length", default="0", metavar="N", help="tokens the encoder reads (0)"
    )
    command.add_argument(
        "--dtype", default="bf16", help="of the cache: fp32, bf16, fp8, q8_0, ... (bf16)"
    )
    command.add_argument("--state-dtype", help="of recurrent memory (as --dtype)")
    command.add_argument(
        "--reserve",
        choices=("need", "full"),
        default="need",
        help="full: every layer holds the whole context",
    )
    command.add_argument("--ranks", default="1", metavar="N", help="tensor-parallel ranks (1)")
    command.add_argument("--memory", metavar="SIZE", help="what fits in it? such as 80GB or 24GiB")
    command.add_argument(
        "--flops",
        choices=("exact", "torchtitan"),
        default="exact",
        help="torchtitan: its training FLOPs too",
    )
    command.add_argument(
        "--beside", metavar="MODEL", help="a second model, the two compared layer by layer"
    )
    command.add_argument("--json", action="store_true", help="one JSON object")

    def run(given: argparse.Namespace) -> int:
        from .ledger import _command

        return _counted(_command.ledger, given)

    return run


def _models(command: argparse.ArgumentParser) -> Run:
    command.add_argument("--families", action="store_true", help="the model types that can be read")
    command.add_argument("--json", action="store_true", help="with their parameters, as JSON")

    def run(given: argparse.Namespace) -> int:
        from .ledger import _command

        return _counted(_command.models, given)

    return run


def _counted(command: Run, given: argparse.Namespace) -> int:
    try:
        return command(given)
    except ValueError as error:
        raise BadInput(error) from None


def _report(command: argparse.ArgumentParser) -> Run:
    command.add_argument("report", choices=("cards", "lab"), help="which of the two reports")

    def run(given: argparse.Namespace) -> int:
        import json

        from . import checkout, reports

        try:
            checkout.find_checkout()
            report = {"cards": reports.cards, "lab": reports.lab}[given.report]()
        except checkout.NotACheckout as error:
            raise BadInput(error) from None
        except reports.ReportFailed as error:
            print(error, file=sys.stderr)
            return 1
        print(json.dumps(report, indent=2, allow_nan=False))
        return 0

    return run


def _build(command: argparse.ArgumentParser) -> Run:
    command.add_argument("--site-dir", metavar="FOLDER", help="where to put the site (site/)")

    def run(given: argparse.Namespace) -> int:
        from . import checkout
        from .plugin import command

        try:
            return command.build(checkout.find_checkout(), given.site_dir)
        except checkout.NotACheckout as error:
            raise BadInput(error) from None

    return run


def _serve(command: argparse.ArgumentParser) -> Run:
    command.add_argument("--address", metavar="HOST:PORT", help="where to serve (127.0.0.1:8000)")

    def run(given: argparse.Namespace) -> int:
        from . import checkout
        from .plugin import command

        try:
            return command.serve(checkout.find_checkout(), given.address)
        except checkout.NotACheckout as error:
            raise BadInput(error) from None

    return run


def _check(command: argparse.ArgumentParser) -> Run:
    command.add_argument(
        "chapters", nargs="*", metavar="CHAPTER",
        help="a file, or the end of its path such as local-windows, whose blocks and text are judged; "
        "unless given every page is, with its links and formulas as a site would have them",
    )  # fmt: skip

    def run(given: argparse.Namespace) -> int:
        from . import checkout
        from .evidence.command import NoSuchChapter, check_chapters
        from .plugin.command import rehearse

        try:
            return check_chapters(checkout.find_checkout(), given.chapters, rehearse)
        except (checkout.NotACheckout, NoSuchChapter) as error:
            raise BadInput(error) from None

    return run


def _conform(command: argparse.ArgumentParser) -> Run:
    command.add_argument("mechanism", nargs="?", help="such as delta_rule")
    command.add_argument("function", nargs="?", metavar="MODULE:FUNCTION",
                         help="or FILE.py:FUNCTION; an adapter file may name it")
    command.add_argument("--list", action="store_true", help="the mechanisms, with their parameters")
    command.add_argument("--adapter", metavar="FILE", help="a TOML file with what the options say")
    command.add_argument("--names", action="append", metavar="OURS=THEIRS[,...]",
                         help="parameters, such as log_decay=g")
    command.add_argument("--axes", action="append", metavar="[NAME=]LAYOUT",
                         help='their order, such as "batch time head"')
    command.add_argument("--each", metavar="AXES", help="axes that the function does not have")
    command.add_argument("--returns", metavar="NAMES", help="what it returns, _ for what is not compared")
    command.add_argument("--arrays", choices=("numpy", "torch"), help="(numpy)")
    command.add_argument("--dtype", choices=("float64", "float32", "bfloat16"), help="(float64)")
    command.add_argument("--where", action="append", metavar="NAME=VALUE",
                         help="an option that is built in, such as normalise=true")
    command.add_argument("--extra", action="append", metavar="NAME=VALUE", help="an argument of its own")
    command.add_argument("--backward", metavar="MODULE:FUNCTION",
                         help="what computes gradients, if PyTorch does not")
    command.add_argument("--gradients", metavar="NAMES", help="whose gradients it returns")
    command.add_argument("--seconds", type=float, metavar="LIMIT", help="for each case (60)")
    command.add_argument("--follows", action="append", metavar="CONTROL",
                         help="a convention that is no difference (at most two)")

    def run(given: argparse.Namespace) -> int:
        from . import conform_command

        try:
            return conform_command.run(given)
        except ValueError as error:
            raise BadInput(error) from None

    return run


# Name → (what defines its arguments and returns what runs it, what it is for).
_COMMANDS: dict[str, tuple[Callable[[argparse.ArgumentParser], Run], str]] = {
    "ledger": (_ledger, "what a model stores and does, as exact integers"),
    "models": (_models, "the bundled models, one a line"),
    "report": (_report, "one of the two reports, as JSON"),
    "check": (_check, "judge chapters without publishing a site"),
    "conform": (_conform, "which convention does an implementation follow?"),
    "build": (_build, "build and prove the site"),
    "serve": (_serve, "serve the site while writing"),
}
