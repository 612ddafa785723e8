"""``bnnsgraph export``: a graph in a form that other tools take."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import bnnsgraph as bg
from bnnsgraph.commands.graphs import graph_from, output_path, shapes_for, write, wrote
from bnnsgraph.commands.parsing import FILE, add_command, add_sizes, say, working
from bnnsgraph.progress import waiting

if TYPE_CHECKING:
    from bnnsgraph.commands.parsing import Commands

SUFFIXES = {"stablehlo": ".mlir", "jax-export": ".jax_export", "swift": ".swift"}
PLATFORMS = ("cpu", "cuda", "tpu")
EXAMPLES = """\
  %(prog)s model.bnnsgraph --to jax-export   # model.jax_export runs with JAX alone, for all sizes
  %(prog)s model.bnnsgraph --to stablehlo --size batch=8,length=64   # model.mlir, text
  %(prog)s model.bnnsgraph --to swift --output Model.swift   # for Apple's BNNSGraph.Builder
  %(prog)s model.bnnsgraph --to swift --output -   # prints it
"""


def add_export(commands: Commands) -> None:
    """``export``: a graph in a form that other tools take."""
    parser = add_command(
        commands,
        "export",
        "write a graph as StableHLO, jax.export artifact or Swift",
        "Write a graph in a form that other tools take: StableHLO text, an artifact that runs with JAX alone, or Swift source "
        "against Apple's BNNSGraph.Builder.",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help=FILE)
    parser.add_argument("--to", required=True, choices=SUFFIXES, help="the form")
    parser.add_argument(
        "--output", metavar="PATH",
        help=f"where to write (default: FILE's name with {', '.join(SUFFIXES.values())}); - prints text",
    )  # fmt: skip
    add_sizes(parser)
    parser.add_argument(
        "--platform", action="append", choices=["cpu", "cuda", "rocm", "tpu"], metavar="NAME",
        help=f"for jax-export: where it shall run, once for each: cpu, cuda, rocm, tpu (default: {', '.join(PLATFORMS)})",
    )  # fmt: skip
    parser.add_argument(
        "--constraint", action="append", metavar="TEXT",
        help="for jax-export: what holds of the flexible sizes, such as 'length >= 2'",
    )  # fmt: skip
    parser.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> None:
    """Run ``export``."""
    given = {"--size": options.size or options.shape, "--platform": options.platform, "--constraint": options.constraint}
    for option, value in given.items():
        form = "stablehlo" if option == "--size" else "jax-export"
        if value and options.to != form:
            raise bg.ParameterError(f"{option} must be given with --to {form}, got it with --to {options.to}")
    to_terminal = options.output == "-"
    if to_terminal and options.to == "jax-export":
        raise bg.ParameterError("--output must be a file for --to jax-export, which is no text, got -")
    graph = graph_from(options.file)
    path = output_path(None if to_terminal else options.output, options.file, SUFFIXES[options.to])
    match options.to:
        case "stablehlo":
            _stablehlo(graph, options, None if to_terminal else path)
        case "swift":
            _swift(graph, None if to_terminal else path)
        case _:
            with working(), waiting("exporting"):
                exported = _exported(graph, options.platform or PLATFORMS, options.constraint or ())
            write(path, exported)
            names = ", ".join(graph.argument_names)
            code = f"from jax import export; from pathlib import Path; export.deserialize(Path({str(path)!r}).read_bytes())"
            print(f"  to run it: {code}.call({names})")


def _exported(graph: bg.Graph, platforms: Sequence[str], constraints: Sequence[str]) -> bytes:
    try:
        artifact = bg.Context(graph, compile_now=False).export(platforms=platforms, constraints=constraints)
    except bg.ParameterError as error:
        reason = error.reason.replace("constraints=['length >= 2']", "--constraint 'length >= 2'")
        raise bg.ParameterError(reason.replace("constraints must", "--constraint must"), *error.details) from None
    return bytes(artifact.serialize())


def _stablehlo(graph: bg.Graph, options: argparse.Namespace, path: Path | None) -> None:
    from bnnsgraph.compile import large_constants
    from bnnsgraph.running import Runner

    shapes = shapes_for(graph, options.size, options.shape, {})
    with working(), waiting("lowering"):
        runner = Runner(graph)
        text = runner.lowered(shapes).as_text()
    if path is None:
        sys.stdout.write(text)
    else:
        write(path, text.encode())
    parameters = [f"{getattr(node.op, 'name', None) or 'constant'}: {node.outputs[0]}" for node in large_constants(graph)]
    if parameters:
        say([f"  its first parameters are large constants of the graph: {', '.join(parameters)}"], beside=path is None)
    if runner.placed().checks_last(frozenset()):
        say(["  its last result is 0, or more where an index is out of bounds"], beside=path is None)


def _swift(graph: bg.Graph, path: Path | None) -> None:
    with working():
        text = graph.to_swift(path)
    if path is None:
        sys.stdout.write(text)
        if "weights url: URL" in text:
            say(["  its constants come with a file: --output NAME.swift writes NAME.weights too"], beside=True)
    else:
        print(wrote(path))
        if "weights url: URL" in text:
            print(wrote(path.with_suffix(".weights")))
    differences = bg.portability(graph)
    if differences:
        lines = [f"  {line}" for line in str(differences).splitlines()]
        say(["on Apple's side:", *lines], beside=path is None)
