"""Programs over 1, 2, 4 and 8 virtual devices of the CPU, and over two processes: ``python -m tests.benchmarks.scaling``.

Answers are compared with those of one device before anything is timed. Virtual devices share the cores of the machine, so the
times say what the spreading costs, not what it gains; the collectives and their bytes are those of any machine with as many
devices.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tests.benchmarks.collectives import Collective, collectives, compiled_text
from tests.devices import meet, meeting, run_together

DEVICES = (1, 2, 4, 8)
AXIS = "devices"


@dataclass(frozen=True)
class Figure:
    """One program on one number of devices."""

    program: str
    devices: int
    processes: int
    seconds: float
    collectives: list[Collective]

    @property
    def sent(self) -> float:
        """Bytes that each device sends."""
        return sum(Collective(*found).moved for found in self.collectives)

    def __str__(self) -> str:
        """One line of the table."""
        kinds = Counter(Collective(*found).kind for found in self.collectives)
        names = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "none"
        where = f"{self.devices}" if self.processes == 1 else f"{self.devices} in {self.processes}"
        return f"{self.program:<14} {where:>8} {self.seconds * 1e3:>9.2f} ms  {names:<24} {self.sent:>12,.0f}"


HEAD = f"{'program':<14} {'devices':>8} {'time':>12}  {'collectives':<24} {'bytes/device':>12}"


# In a process with several devices


def spread(mesh: Any, array: np.ndarray, *spec: Any) -> Any:
    """A global array, of which each process makes its own part."""
    import jax

    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def require_same(got: Any, wanted: Any, bound: float) -> None:
    """Each part that is here is that of the wanted array; ``bound`` is relative to the largest magnitude."""
    wanted = np.asarray(wanted)
    for shard in got.addressable_shards:
        np.testing.assert_allclose(shard.data, wanted[shard.index], rtol=0, atol=bound * np.abs(wanted).max())


def measured(name: str, run: Callable[[], Any], text: str, quick: bool) -> Figure:
    """The median of some calls."""
    import jax

    jax.block_until_ready(run())
    times: list[float] = []
    for _ in range(3 if quick else 15):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return Figure(name, jax.device_count(), jax.process_count(), statistics.median(times), collectives(text))


def rows_of_a_table(mesh: Any, quick: bool) -> Figure:
    """Rows by index, from a constant whose rows lie on all the devices. The same to the bit as on one."""
    from jax.sharding import PartitionSpec

    import bnnsgraph as bg

    rng = np.random.default_rng(0)
    table = rng.normal(size=(2**12 if quick else 2**18, 64)).astype(np.float32)
    indices = rng.integers(-len(table), len(table), 256 if quick else 4096).astype(np.int32)

    def block(b: bg.Builder) -> Any:
        return b.constant("table", values=table).gather(b.argument("indices", bg.Int32, ["n"]), axis=0)

    context = bg.make_context(block, options=bg.CompileOptions(mesh=mesh, shardings={"table": PartitionSpec(AXIS)}))
    given = spread(mesh, indices)
    require_same(context(given), table[indices], 0)
    return measured("table rows", lambda: context(given), compiled_text(context, n=len(indices)), quick)


def network(width: int) -> Callable[[Any], Any]:
    """Two layers."""
    import bnnsgraph as bg

    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, ["batch", width])
        w1, w2 = b.argument("w1", bg.Float32, [width, 4 * width]), b.argument("w2", bg.Float32, [4 * width, width])
        y = (x @ w1).tanh() @ w2
        error = y - b.argument("wanted", bg.Float32, ["batch", width])
        return {"y": y, "loss": (error * error).mean(None)}

    return block


def network_arrays(quick: bool) -> list[np.ndarray]:
    """A batch, two matrices, and what is wanted."""
    rng = np.random.default_rng(1)
    width, batch = (32, 64) if quick else (256, 4096)
    shapes = ((batch, width), (width, 4 * width), (4 * width, width), (batch, width))
    return [(rng.normal(size=shape) / width**0.5).astype(np.float32) for shape in shapes]


def batch(mesh: Any, quick: bool) -> Figure:
    """Rows of a batch through two layers, whose weights every device has. Sums of ``4 * width`` products, in float32."""
    from jax.sharding import PartitionSpec

    import bnnsgraph as bg

    x, w1, w2, _ = network_arrays(quick)

    def block(b: bg.Builder) -> Any:
        h = b.argument("x", bg.Float32, ["batch", w1.shape[0]]) @ b.argument("w1", bg.Float32, w1.shape)
        return {"y": h.tanh() @ b.argument("w2", bg.Float32, w2.shape)}

    shardings = {"x": PartitionSpec(AXIS), "y": PartitionSpec(AXIS)}
    context = bg.make_context(block, options=bg.CompileOptions(mesh=mesh, shardings=shardings))
    given = spread(mesh, x, AXIS), spread(mesh, w1), spread(mesh, w2)
    require_same(context(*given), bg.make_context(block)(x, w1, w2), 1e-5)
    return measured("batch", lambda: context(*given), compiled_text(context, batch=len(x)), quick)


def training_step(mesh: Any, quick: bool) -> Figure:
    """Loss, gradients and new weights of a batch that is spread: one sum of both gradients over the devices."""
    import jax
    from jax.sharding import PartitionSpec

    import bnnsgraph as bg

    arrays = x, w1, w2, wanted = network_arrays(quick)
    shardings = {"x": PartitionSpec(AXIS), "wanted": PartitionSpec(AXIS)}
    context = bg.make_context(network(x.shape[1]), options=bg.CompileOptions(mesh=mesh, shardings=shardings))

    def step(function: Callable[..., Any]) -> Any:
        def run(x: Any, w1: Any, w2: Any, wanted: Any) -> Any:
            loss, slopes = jax.value_and_grad(lambda weights: function(x, *weights, wanted).loss)((w1, w2))
            return (loss, *[weight - 0.1 * slope for weight, slope in zip((w1, w2), slopes, strict=True)])

        return jax.jit(run)

    given = spread(mesh, x, AXIS), spread(mesh, w1), spread(mesh, w2), spread(mesh, wanted, AXIS)
    run = step(context.function).lower(*given).compile()
    for got, expected in zip(run(*given), step(bg.make_context(network(x.shape[1])).function)(*arrays), strict=True):
        require_same(got, expected, 1e-5)
    return measured("training step", lambda: run(*given), run.as_text(), quick)


def worker(quick: bool) -> None:
    """Take and print the figures of the devices of this process, or of all that meet."""
    import jax

    mesh = jax.sharding.Mesh(np.array(jax.devices()), (AXIS,))
    figures = [program(mesh, quick) for program in (rows_of_a_table, batch, training_step)]
    print(json.dumps([asdict(figure) for figure in figures]))


# In the process that starts the others


def figures(count: int, processes: int, *, quick: bool) -> list[Figure]:
    """Those of processes with ``count`` devices each."""
    command = ["tests.benchmarks.scaling", "--worker", *(["--quick"] if quick else [])]
    commands = [command] if processes == 1 else [[*command, *arguments] for arguments in meeting(processes)]
    return [Figure(**found) for found in json.loads(run_together(commands, count)[0])]


def main() -> None:
    """Parse the command line; print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.scaling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small programs, few calls")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--process", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        meet(options.process, options.port)
        worker(options.quick)
        return
    print(HEAD)
    for count, processes in (*((count, 1) for count in DEVICES), (4, 2)):
        for figure in figures(count, processes, quick=options.quick):
            print(figure, flush=True)
    print(f"The devices share {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
