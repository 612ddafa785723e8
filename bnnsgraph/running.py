"""How a graph is compiled, once for each set of sizes, and run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bnnsgraph.buffers import BNNSTensor
from bnnsgraph.compile import Outcome, Program, explain_failure, is_tracer, x64
from bnnsgraph.errors import ArgumentError, DTypeError, GraphError, NotFiniteError, ParameterError
from bnnsgraph.graph import Argument, CheckedOp, Graph, Node
from bnnsgraph.handle import convert
from bnnsgraph.spec import Shape, TensorSpec, is_static
from bnnsgraph.xla import jax, jnp


class Compilation(NamedTuple):
    """One compilation of a context."""

    reason: str
    shapes: dict[str, Shape]
    sizes: dict[str, int]
    seconds: float


class Entry(NamedTuple):
    """The program for one set of shapes."""

    run: Callable[..., Any]
    outputs: tuple[TensorSpec, ...]


class Cost(NamedTuple):
    """XLA's own account of one run.

    Attributes:
        flops: arithmetic operations.
        bytes_accessed: bytes read and written by the program's kernels.
        peak_bytes: arguments, results and temporaries, without what they share.
    """

    flops: float
    bytes_accessed: float
    peak_bytes: int


class Runner:
    """Compiles a graph for the sizes it meets, and runs it. Safe to use from several threads."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = graph.argument_names
        self.entries: dict[Any, Entry] = {}
        self.compilations: list[Compilation] = []
        self._lock = threading.Lock()
        self._program: Program | None = None
        self.check_finite = False
        self._finite: Callable[[Sequence[Any]], Node | None] | None = None
        self._wide = graph.uses_64_bit

    def placed(self) -> Program:
        """The program with its large constants on the device."""
        if self._program is None:
            with self._lock:
                if self._program is None:
                    self._program = Program.place(self.graph)
        return self._program

    def prepare(self, shapes: Sequence[Shape], reason: str) -> Entry:
        """The program for the shapes, compiled if they are new: once, by whichever thread comes first."""
        key = tuple((tuple(shape), value.spec.dtype.numpy) for shape, value in zip(shapes, self.graph.arguments, strict=True))
        program = self.placed()
        with self._lock:
            if key in self.entries:
                return self.entries[key]
            specs, sizes = self.graph.specialize([tuple(shape) for shape in shapes])
            start = time.perf_counter()
            run = program.compiled()
            with x64(self.graph):
                self._lower(run, shapes).compile()
            seconds = time.perf_counter() - start
            named = dict(zip(self.names, (tuple(shape) for shape in shapes), strict=True))
            self.compilations.append(Compilation(reason, named, sizes, seconds))
            entry = Entry(run, tuple(specs[value] for value in self.graph.results))
            self.entries[key] = entry
            return entry

    def _lower(self, run: Any, shapes: Sequence[Shape]) -> Any:
        structs = [
            jax.ShapeDtypeStruct(tuple(shape), value.spec.dtype.numpy)
            for shape, value in zip(shapes, self.graph.arguments, strict=True)
        ]
        with x64(self.graph):
            return run.lower(self.placed().parameters, *structs)

    def lowered(self, shapes: Sequence[Shape]) -> Any:
        """The program for the shapes as ``jax.stages.Lowered``."""
        missing = [name for name, shape in zip(self.names, shapes, strict=True) if not is_static(shape)]
        if missing:
            raise ParameterError(f"every size must be given, got an argument {missing[0]!r} with flexible sizes")
        self.graph.specialize([tuple(shape) for shape in shapes])
        return self._lower(self.placed().compiled(), shapes)

    def cost(self, lowered: Any) -> Cost:
        """The cost of a lowered program, which is compiled for it."""
        with x64(self.graph):
            compiled = lowered.compile()
        analysis, memory = compiled.cost_analysis(), compiled.memory_analysis()
        peak = (
            memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes - memory.alias_size_in_bytes
        )
        return Cost(analysis.get("flops", 0.0), analysis.get("bytes accessed", 0.0), peak)

    def run(self, entry: Entry, arrays: Sequence[Any]) -> Outcome:
        """Run the compiled program; a failed check raises and hands out nothing."""
        program = self.placed()
        if self._wide:
            with x64(self.graph):
                outcome = entry.run(program.parameters, *arrays)
        else:
            outcome = entry.run(program.parameters, *arrays)
        if outcome.failure is not None and (failure := outcome.failure.item()):  # bool() of an array takes ten times as long
            raise self._failure(arrays, failure)
        if self.check_finite:
            self._require_finite(program, arrays)
        return outcome

    def _require_finite(self, program: Program, arrays: Sequence[Any]) -> None:
        if self._finite is None:
            self._finite = program.finite_checker()
        node = self._finite(arrays)
        if node is not None:
            subject = f"argument {node.op.name!r}" if isinstance(node.op, Argument) else f"{node.op}: the result"
            raise NotFiniteError(
                f"{subject} must be finite while check_for_nans_and_infinities is on, got a NaN or an infinity",
                f"recorded at {node.origin}:  {node.origin.text}",
            )

    def _failure(self, arrays: Sequence[Any], failure: int) -> GraphError:
        node, reason = explain_failure(self.graph, arrays, failure)
        assert isinstance(node.op, CheckedOp)
        return node.op.error(f"{node.op}: {reason}", f"recorded at {node.origin}:  {node.origin.text}")

    def arrange(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Arrays in declaration order, each given exactly once."""
        if len(args) > len(self.names):
            raise ArgumentError(
                f"the graph must be given {len(self.names)} arguments ({', '.join(self.names)}), got {len(args)}"
            )
        given: dict[str, Any] = dict(zip(self.names, args, strict=False))
        for name, array in kwargs.items():
            if name not in self.names:
                raise ArgumentError(f"the name of an argument must be one of {', '.join(self.names) or 'none'}, got {name!r}")
            if name in given:
                raise ArgumentError(f"argument {name!r} must be given once, got it by position and by name")
            given[name] = array
        missing = [name for name in self.names if name not in given]
        if missing:
            raise ArgumentError(f"every argument must be given, got none for {', '.join(missing)}")
        return [given[name] for name in self.names]

    def convert(self, index: int, array: Any) -> Any:
        """An argument's value; arrays must have the declared dtype, numbers and lists are converted."""
        value = self.graph.arguments[index]
        dtype = value.spec.dtype
        if isinstance(array, BNNSTensor):
            array = array.data
        if not hasattr(array, "dtype") or not hasattr(array, "shape"):
            try:
                return convert(array, dtype)
            except GraphError as error:
                raise type(error)(f"argument {self.names[index]!r}: {error.reason}") from None
        if array.dtype != dtype.numpy:
            if is_tracer(array) and getattr(array, "weak_type", False):
                return array.astype(dtype.numpy)
            raise DTypeError(
                f"argument {self.names[index]!r} must be of dtype {dtype.name}, got {array.dtype}; "
                f"pass {self.names[index]}.astype({dtype.name!r})",
                f"declared at {value.node.origin}",
            )
        return array

    def pure(self, arrays: Sequence[Any], *, checked: bool = False) -> Outcome:
        """Run, without checks unless asked, in whatever transformation of JAX is under way."""
        with x64(self.graph):
            arrays = [jnp.asarray(self.convert(index, array)) for index, array in enumerate(arrays)]
            if not self.graph.is_static and all(is_static(array.shape) for array in arrays):
                self.graph.specialize([array.shape for array in arrays])  # our rules speak before JAX's do
            return self.placed().pure(*arrays, checked=checked)
