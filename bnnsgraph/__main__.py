"""The command line: ``bnnsgraph COMMAND``, or ``python -m bnnsgraph COMMAND``. Each command adds its own parser."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from bnnsgraph import __version__
from bnnsgraph.commands.bench import add_bench
from bnnsgraph.commands.demo import add_demo
from bnnsgraph.commands.doctor import add_doctor
from bnnsgraph.commands.export import add_export
from bnnsgraph.commands.parsing import FailedError, Parser
from bnnsgraph.commands.run import add_run
from bnnsgraph.commands.show import add_show
from bnnsgraph.errors import GraphError

COMMANDS = (add_demo, add_show, add_run, add_export, add_bench, add_doctor)


def command_line() -> Parser:
    """The parser of everything."""
    program = "bnnsgraph" if Path(sys.argv[0]).stem == "bnnsgraph" else "python -m bnnsgraph"
    parser = Parser(
        prog=program,
        description="Apple's BNNSGraph.Builder for Python. FILE is a graph that bnnsgraph.save wrote.",
        epilog=f"{program} COMMAND --help shows examples",
    )
    parser.add_argument("--version", action="version", version=f"bnnsgraph {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for add in COMMANDS:
        add(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``arguments`` name (those of the process when None), and return its exit code.

    0: done. 1: what was asked could not be done, such as a run with an index out of bounds. 2: the arguments or a file are
    wrong. 130: interrupted.
    """
    parser = command_line()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # text of users must not stop a terminal that cannot show it
    try:
        options.run(options)
        sys.stdout.flush()
    except GraphError as error:
        reason, code = "\n  ".join([error.reason, *error.details]), 1 if isinstance(error, FailedError) else 2
    except BrokenPipeError:  # nobody reads on, as after `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        reason, code = f"{os.fsdecode(error.filename)}: {error.strerror}" if error.filename else str(error), 2
    except KeyboardInterrupt:
        reason, code = "interrupted", 130
    else:
        return 0
    print(f"{parser.prog} {options.command}: {reason}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
