"""What the commands share of their parsers, and how they end."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import textwrap
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, NoReturn

from bnnsgraph.errors import GraphError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction["Parser"]  # pyright: ignore[reportPrivateUsage]

FILE = (
    "a graph that bnnsgraph.save wrote; or PATH.py:NAME or MODULE:NAME, a block, context or graph in Python code, which is run"
)


class FailedError(GraphError):
    """What was asked is understood and could not be done: exit code 1. Other errors of a command are 2."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and stop with exit code 2."""
        if re.match(r"unrecognized arguments: \w+=", message):
            message += "; write --input, or --size, before each"
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_command(commands: Commands, name: str, summary: str, description: str, examples: str) -> argparse.ArgumentParser:
    """The parser of one command. ``%(prog)s`` in the examples is the command as it was started."""
    return commands.add_parser(
        name,
        help=summary,
        description=textwrap.fill(description, 88),
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """``--size`` and ``--shape``."""
    parser.add_argument(
        "--size",
        type=_sizes,
        action="extend",
        default=[],
        metavar="NAME=N",
        help="named sizes: batch=8 or batch=8,length=64",
    )
    parser.add_argument(
        "--shape", type=_shape, action="append", default=[], metavar="ARGUMENT=N,N",
        help="the whole shape of an argument, such as x=8,128; needed where a size is -1 and has no name",
    )  # fmt: skip


def add_inputs(parser: argparse.ArgumentParser, help: str) -> None:  # noqa: A002 - as argparse calls it
    """``--input`` and ``--device``."""
    parser.add_argument("--input", action="append", default=[], metavar="NAME=VALUE", help=help)
    parser.add_argument("--device", metavar="DEVICE", help="where to run: cpu, gpu, gpu:1, … (default: JAX's first device)")


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A number from 0 to a day."""
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 86_400:
            return float(text)
    raise argparse.ArgumentTypeError(f"must be a number of seconds, got {text!r}")


def _sizes(text: str) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        if not name.isidentifier() or not equals or not _is_count(number):
            raise argparse.ArgumentTypeError(f"must be a name and a number, such as batch=8, got {part!r}")
        found.append((name, int(number)))
    return found


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, numbers = text.partition("=")
    parts = [part.strip() for part in re.split("[,x]", numbers.strip("[]"))] if numbers.strip("[]") else []
    if not name or not equals or not all(map(_is_count, parts)):
        raise argparse.ArgumentTypeError(f"must be an argument and its sizes, such as x=8,128, got {text!r}")
    return name, tuple(map(int, parts))


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) < 19


@contextlib.contextmanager
def working() -> Generator[None]:
    """What goes wrong in the block is no fault of the command's arguments."""
    try:
        yield
    except GraphError as error:
        raise FailedError(error.reason, *error.details) from error
    except MemoryError as error:
        raise FailedError(f"there must be enough memory, got none left: {str(error) or 'an allocation failed'}") from error
    except RuntimeError as error:  # of XLA: a device that is not there, or too small
        raise FailedError(str(error).strip().partition("\n")[0] or type(error).__name__) from error


def say(lines: Iterable[str], *, beside: bool = False) -> None:
    """Print lines; ``beside`` the output, when that is what standard output is for."""
    print("\n".join(lines), file=sys.stderr if beside else sys.stdout)


__all__ = ["FILE", "FailedError", "Parser", "add_command", "add_inputs", "add_sizes", "positive", "say", "seconds", "working"]
