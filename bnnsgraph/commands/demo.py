"""``bnnsgraph demo``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bnnsgraph.commands.parsing import add_command, positive

if TYPE_CHECKING:
    from bnnsgraph.commands.parsing import Commands

EXAMPLES = """\
  %(prog)s
  %(prog)s --query "how do I pass an array to a graph?" --top 5
  %(prog)s notes.txt thesis.md --query "things I wanted to finish"

needs: pip install "bnnsgraph[demo]"
"""


def add_demo(commands: Commands) -> None:
    """``demo``: search text by meaning."""
    from bnnsgraph.demo import QUERY

    parser = add_command(
        commands,
        "demo",
        "search text by meaning",
        "Search text by meaning: embed passages with a small graph, rank them for a query, and show what it took.",
        EXAMPLES,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="text or Markdown files (default: bnnsgraph's own texts)")
    parser.add_argument("--query", default=QUERY, metavar="TEXT", help="what to look for (default: %(default)s)")
    parser.add_argument("--top", type=positive, default=3, metavar="N", help="how many hits to show (default: %(default)s)")
    parser.set_defaults(run=run_demo)


def run_demo(options: argparse.Namespace) -> None:
    """Run ``demo``."""
    from bnnsgraph.demo import demo

    demo(options.files, options.query, options.top)
