"""``bnnsgraph bench``: how long a graph compiles and runs."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

import bnnsgraph as bg
from bnnsgraph.commands.arrays import inputs_from
from bnnsgraph.commands.graphs import graph_from, on_device, shapes_for
from bnnsgraph.commands.parsing import FILE, add_command, add_inputs, add_sizes, seconds, working
from bnnsgraph.dtypes import Floating, Integer
from bnnsgraph.graph import argument_of
from bnnsgraph.progress import waiting
from bnnsgraph.spec import TensorSpec

if TYPE_CHECKING:
    from bnnsgraph.commands.parsing import Commands

Arrays = dict[str, np.ndarray[Any, Any]]

EXAMPLES = """\
  %(prog)s model.bnnsgraph
  %(prog)s model.bnnsgraph --size batch=8,length=128
  %(prog)s model.bnnsgraph --input tokens=tokens.npy --seconds 10   # on real inputs, for longer
"""
HIGHEST = 2**15
"""Random integers are below this, or below a smaller power of two where they are indices that must exist."""
LEAST_RUNS = 5


def add_bench(commands: Commands) -> None:
    """``bench``: how long a graph compiles and runs."""
    parser = add_command(
        commands,
        "bench",
        "measure how long a graph compiles and runs",
        "Measure a graph: the time to compile it, the median and the quartiles of the time of a run, and what XLA says a run "
        "costs. Inputs that are not given are random: floats are normal, integers are from 0 up, below 32,768 or a smaller "
        "power of two where they are indices that must exist. They are on the device before a run starts, and a run ends when "
        "its results are there.",
        EXAMPLES,
    )
    parser.add_argument("file", metavar="FILE", help=FILE)
    add_sizes(parser)
    add_inputs(parser, "real inputs, as for the command run; others are random")
    parser.add_argument(
        "--seconds", type=seconds, default=2.0, metavar="S", help="how long to measure runs (default: %(default)s)"
    )
    parser.set_defaults(run=run_bench)


def run_bench(options: argparse.Namespace) -> None:
    """Run ``bench``."""
    graph = graph_from(options.file)
    given = inputs_from(graph, options.input, all_of_them=False)
    shapes = shapes_for(graph, options.size, options.shape, given)
    graph = on_device(graph, options.device)
    with working():
        context = bg.Context(graph, compile_now=False)
        inputs = _inputs(context, given, shapes)
        times = _measured(context, inputs.arrays, options.seconds)
        with waiting("counting what a run costs"):
            runner = context._runner  # pyright: ignore[reportPrivateUsage] - for sizes that have no name
            cost = runner.cost(runner.lowered(shapes))
        print("\n".join(f"{name:<10}  {text}" for name, text in _report(context, inputs, times, cost)))


class _Inputs(NamedTuple):
    """Arrays, and in words how each was made."""

    arrays: Arrays
    words: dict[str, str]


def _inputs(context: bg.Context, given: Mapping[str, Any], shapes: Sequence[tuple[int, ...]]) -> _Inputs:
    """Random arrays where none is given: integers as large as the graph's indices allow, which is tried. Compiles."""
    specs = {
        argument_of(value).name: value.spec.with_shape(shape)
        for value, shape in zip(context.graph.arguments, shapes, strict=True)
    }
    high = HIGHEST
    while True:
        random = np.random.default_rng(0)
        arrays = {name: given[name] if name in given else random_array(random, spec, high) for name, spec in specs.items()}
        try:
            context(**arrays)
            break
        except bg.IndexOutOfBoundsError:
            if high == 1 or not any(issubclass(spec.dtype, Integer) for name, spec in specs.items() if name not in given):
                raise
            high //= 2
    words = {name: "given" if name in given else _words(spec, high) for name, spec in specs.items()}
    return _Inputs(arrays, words)


def random_array(random: Any, spec: TensorSpec, high: int) -> np.ndarray[Any, Any]:
    """Random elements: normal floats, integers from 0 up and below ``high``, truth values."""
    shape: Any = spec.shape
    if issubclass(spec.dtype, Integer):
        array = random.integers(0, _below(spec, high), shape)
    elif issubclass(spec.dtype, Floating):
        array = random.standard_normal(shape, np.float32)
    else:
        array = random.random(shape) < 0.5
    return array.astype(spec.dtype.numpy)


def _below(spec: TensorSpec, high: int) -> int:
    return min(high, int(np.iinfo(spec.dtype.numpy).max) + 1)


def _words(spec: TensorSpec, high: int) -> str:
    if issubclass(spec.dtype, Integer):
        return f"random from 0 to {_below(spec, high) - 1:,}"
    return "random, normal" if issubclass(spec.dtype, Floating) else "random"


def _measured(context: bg.Context, arrays: Arrays, limit: float) -> list[float]:
    """Seconds of each run, after some that do not count."""
    import jax

    from bnnsgraph.compile import x64

    placement = context._runner.placed().placement  # pyright: ignore[reportPrivateUsage]

    def ready() -> list[Any]:
        with x64(context.graph):
            there = placement.put(list(arrays.values())) if placement else jax.device_put(list(arrays.values()))
        return cast("list[Any]", jax.block_until_ready(there))

    inputs, renewed = ready(), bool(context.graph.updates)  # a run takes the memory of in-out arguments

    def run() -> float:
        taken = ready() if renewed else inputs
        start = time.perf_counter()
        jax.block_until_ready(context(*taken))
        return time.perf_counter() - start

    with waiting("measuring"):
        return repeated(run, limit)


def repeated(run: Callable[[], float], limit: float) -> list[float]:
    """What ``run`` returns, for ``limit`` seconds and at least :data:`LEAST_RUNS` times; two runs before do not count."""
    for _ in range(2):
        run()
    found: list[float] = []
    end = time.perf_counter() + limit
    while len(found) < LEAST_RUNS or time.perf_counter() < end:
        found.append(run())
    return found


def _report(context: bg.Context, inputs: _Inputs, times: Sequence[float], cost: Any) -> list[tuple[str, str]]:
    import jax

    from bnnsgraph.placement import platform

    low, median, high = statistics.quantiles(times, n=4, method="inclusive")
    lines = [("graph", repr(context.graph)), ("device", f"{platform(context.graph)}, JAX {jax.__version__}")]
    for name, array in inputs.arrays.items():
        shape = ", ".join(map(str, array.shape))
        lines.append(("input", f"{name}: {array.dtype}[{shape}], {inputs.words[name]}"))
    lines.append(("compile", duration(context.compilations[0].seconds)))
    lines.append(("run", f"{duration(median)} median, quartiles {duration(low)} and {duration(high)}, {len(times):,} runs"))
    lines.append(("FLOPs", rate(cost.flops, median, "FLOP")))
    lines.append(("bytes", rate(cost.bytes_accessed, median, "B")))
    lines.append(("memory", f"{quantity(cost.peak_bytes)}B for arguments, results and what lies between"))
    return lines


def duration(seconds: float) -> str:
    """Three digits, in the unit that suits.

    >>> duration(0.0000412), duration(0.0031), duration(1.25)
    ('41.2 µs', '3.1 ms', '1.25 s')
    """
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def quantity(number: float) -> str:
    """Three digits and a prefix of units.

    >>> quantity(0), quantity(1500), quantity(2.5e9)
    ('0 ', '1.5 k', '2.5 G')
    """
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}"
    return f"{number:.3g} "


def rate(number: float, seconds: float, unit: str) -> str:
    """A quantity of one run, and of one second."""
    if number < 0:
        return "not known"
    return f"{quantity(number)}{unit} a run, {quantity(number / max(seconds, 1e-9))}{unit}/s"
