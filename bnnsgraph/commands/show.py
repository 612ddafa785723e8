"""``bnnsgraph show``: a graph as text, picture or page."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from bnnsgraph.commands.graphs import graph_from, output_path, write
from bnnsgraph.commands.parsing import FILE, add_command

if TYPE_CHECKING:
    from bnnsgraph.commands.parsing import Commands

EXAMPLES = """\
  %(prog)s model.bnnsgraph
  %(prog)s model.bnnsgraph --svg              # writes model.svg
  %(prog)s model.bnnsgraph --html page.html   # a page: the picture, and a table of costs
  %(prog)s model.py:embed                     # runs model.py and shows its block 'embed'
"""
PAGE = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>{title}</title></head>
<body class="bnnsgraph" style="background:var(--paper);margin:0">
{body}
</body>
</html>
"""


def add_show(commands: Commands) -> None:
    """``show``: a graph as text, picture or page."""
    parser = add_command(
        commands,
        "show",
        "show a graph as text, picture or page",
        "Show a graph: one line for each operation with its type and the line that recorded it, or as a picture or page.",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help=FILE)
    parser.add_argument("--svg", nargs="?", const="", metavar="OUT", help="write a picture (default: FILE's name with .svg)")
    parser.add_argument(
        "--html", nargs="?", const="", metavar="OUT",
        help="write a page with the picture and a table of operations and their costs (default: FILE's name with .html)",
    )  # fmt: skip
    parser.set_defaults(run=run_show)


def run_show(options: argparse.Namespace) -> None:
    """Run ``show``."""
    graph = graph_from(options.file)
    svg = None if options.svg is None else output_path(options.svg, options.file, ".svg")
    html = None if options.html is None else output_path(options.html, options.file, ".html")
    if svg is None and html is None:
        print(graph)
    if svg is not None:
        write(svg, graph.to_svg().encode())
    if html is not None:
        from bnnsgraph.display.html import graph_page
        from bnnsgraph.display.style import escaped

        title = os.path.basename(Path(options.file))
        write(html, PAGE.format(title=escaped(title), body=graph_page(graph, title)).encode())
