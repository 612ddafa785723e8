"""``bnnsgraph run``: run a graph on arrays."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

import bnnsgraph as bg
from bnnsgraph.commands.arrays import inputs_from, npz
from bnnsgraph.commands.graphs import graph_from, on_device, output_path, wrote
from bnnsgraph.commands.parsing import FILE, add_command, add_inputs, working
from bnnsgraph.files import write_atomically
from bnnsgraph.graph import argument_of

if TYPE_CHECKING:
    from bnnsgraph.commands.parsing import Commands

EXAMPLES = """\
  %(prog)s model.bnnsgraph --input tokens=tokens.npy --output vectors.npz
  %(prog)s model.bnnsgraph --input x='[1, 2, 3]' --input scale=0.5   # prints the results
  %(prog)s model.bnnsgraph --input arrays.npz          # arrays of the arguments' names
"""


def add_run(commands: Commands) -> None:
    """``run``: run a graph on arrays."""
    parser = add_command(
        commands,
        "run",
        "run a graph on arrays",
        "Run a graph. Its flexible sizes are those of the arrays. The results are printed, or written into a .npz file under "
        "their names, and after them the new values of in-out arguments under theirs.",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help=FILE)
    add_inputs(parser, "NAME=FILE.npy, NAME=NUMBER, NAME='[LIST]', or FILE.npz with arrays of the arguments' names")
    parser.add_argument("--output", metavar="OUT.npz", help="where to write the results (default: print them)")
    parser.add_argument("--check-finite", action="store_true", help="fail where an operation makes a NaN or an infinity")
    parser.set_defaults(run=run_run)


def run_run(options: argparse.Namespace) -> None:
    """Run ``run``."""
    graph = graph_from(options.file)
    path = None if options.output is None else output_path(options.output, options.file, ".npz")
    arrays = inputs_from(graph, options.input)
    graph.specialize([array.shape for array in arrays.values()])
    graph = on_device(graph, options.device)
    names = [*graph.result_names, *(argument_of(value).name for value in graph.updates)]
    with working():
        context = bg.Context(graph, compile_now=False)
        context.check_for_nans_and_infinities = options.check_finite
        returned = context(**arrays)
        results = [np.asarray(each) for each in (returned if len(names) > 1 else [returned])]
    if path is None:
        print("\n".join(f"{name}: {described(result)} =\n{result}" for name, result in zip(names, results, strict=True)))
        return
    write_atomically(path, npz(dict(zip(names, results, strict=True))))
    print(wrote(path))
    print("\n".join(f"  {name}: {described(result)}" for name, result in zip(names, results, strict=True)))


def described(array: np.ndarray) -> str:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    """Element type and shape."""
    return f"{array.dtype}{list(array.shape)}"
