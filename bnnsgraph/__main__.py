"""The command line: ``python -m bnnsgraph COMMAND``. Each command adds its own parser."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bnnsgraph.errors import GraphError

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage]


def add_demo(commands: Commands) -> None:
    """``demo``: search text by meaning."""
    from bnnsgraph.demo import QUERY

    parser = commands.add_parser(
        "demo",
        help="search text by meaning",
        description="Search text by meaning: embed passages with a small graph, rank them for a query, and show what it took.",
        epilog="""\
examples:
  python -m bnnsgraph demo
  python -m bnnsgraph demo --query "how do I pass an array to a graph?" --top 5
  python -m bnnsgraph demo notes.txt thesis.md --query "things I wanted to finish"

needs: pip install "bnnsgraph[demo]"
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="text or Markdown files (default: bnnsgraph's own texts)")
    parser.add_argument("--query", default=QUERY, metavar="TEXT", help="what to look for (default: %(default)s)")
    parser.add_argument("--top", type=positive, default=3, metavar="N", help="how many hits to show (default: %(default)s)")
    parser.set_defaults(run=run_demo)


def run_demo(options: argparse.Namespace) -> None:
    """Run ``demo``."""
    from bnnsgraph.demo import demo

    demo(options.files, options.query, options.top)


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` name (those of the process when None), and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bnnsgraph", description="Apple's BNNSGraph.Builder for Python.")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    add_demo(commands)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # text of users must not stop a terminal that cannot show it
    try:
        options.run(options)
    except GraphError as error:
        print("\n  ".join([f"{parser.prog} {options.command}: {error.reason}", *error.details]), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
