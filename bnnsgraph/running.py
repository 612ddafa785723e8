"""How a graph is compiled, once for each set of sizes, and run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import numpy as np

from bnnsgraph.buffers import BNNSTensor
from bnnsgraph.compile import Program, is_tracer, large_constants, x64
from bnnsgraph.errors import ArgumentError, DTypeError, GraphError, NotFiniteError, ParameterError
from bnnsgraph.graph import Argument, CheckedOp, Graph, Node, Value
from bnnsgraph.guards import Look, first_failed, guards
from bnnsgraph.handle import convert
from bnnsgraph.placement import placement, platform
from bnnsgraph.reuse import require_fits
from bnnsgraph.spec import Shape, TensorSpec, element_count, format_shape, is_static
from bnnsgraph.walking import Outcome, checks
from bnnsgraph.xla import jax, jnp

if TYPE_CHECKING:
    from concurrent.futures import Future


class Compilation(NamedTuple):
    """One compilation of a context.

    Attributes:
        reason: why it was needed.
        shapes: of each argument.
        sizes: the named sizes.
        seconds: how long it took.
        cached: whether the folder ``compilation_cache`` had the program; None without such a folder.
    """

    reason: str
    shapes: dict[str, Shape]
    sizes: dict[str, int]
    seconds: float
    cached: bool | None = None


class Variant(NamedTuple):
    """Which of the programs for one set of shapes.

    Attributes:
        into: whether it writes its results into arrays that are given.
        guarded: whether checks that can be made before the run are, see :mod:`bnnsgraph.guards`.
    """

    into: bool = False
    guarded: bool = True


PLAIN, INTO = Variant(), Variant(into=True)


class Entry(NamedTuple):
    """The program for one set of shapes.

    Attributes:
        run: of the parameters and the arguments, in one row; before them the arrays that results are written into.
        outputs: what it returns.
        variant: which of the programs for its shapes it is.
        guards: what must be true of the arguments; where it is not, another variant is needed.
        checks: what the program checks; the last value is the place of the first that failed, unless there is ``check``.
        check: of the same, where the checks are a program of their own.
        looks: how often to look whether a run is over before sleeping until it is.
    """

    run: Callable[..., Any]
    outputs: tuple[TensorSpec, ...]
    variant: Variant
    guards: tuple[Look, ...]
    checks: tuple[Node, ...]
    check: Callable[..., Any] | None
    looks: range


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


Direct: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], range | None, type, tuple[Look, ...]]
"""The shortest way through a graph of which every size is known: JAX itself looks whether the arrays fit.

A function of parameters and arguments, in one row, which raises :class:`NotPreparedError` for arrays that do not fit, and whose
last value is :data:`passed` if no check failed; the parameters; how often to look whether a run is over, None without checks;
the class of JAX's arrays, without tracers; and what must be true of the arguments."""

passed = bytearray(4)
"""The place of the first failed check where none failed, as memory: a bytearray compares itself with whatever shows its memory,
as JAX's arrays do on the CPU, in a quarter of the time that ``item()`` takes."""

OPERATIONS, WRITTEN = (1_000, 50_000), 128 << 10
"""From so much arithmetic on JAX has a program run by another thread; up to so much, and so many bytes of results, the other
thread takes some 20 microseconds, which is less than it takes to fall asleep and be woken."""
LOOKS = range(256)
"""Some 80 microseconds."""


def scalar(array: Any, looks: range = range(0)) -> int:
    """The value of an int32 array of rank 0, read the shortest way there is."""
    for _ in looks:
        if array.is_ready():
            break
    return 0 if passed == array else array.item()


class Runner:
    """Compiles a graph for the sizes it meets, and runs it. Safe to use from several threads."""

    def __init__(self, graph: Graph) -> None:
        import threading

        from bnnsgraph.passes.rewriting import Rewriter

        self.graph = graph
        self.names = graph.argument_names
        self.entries: dict[Any, Entry] = {}
        self.compilations: list[Compilation] = []
        self.direct: Direct | None = None
        self._check_finite = False
        self._lock = threading.Lock()
        self._pending: dict[Any, Future[Entry]] = {}
        self._dropped: set[Any] = set()
        self.rewriter = Rewriter(graph)
        self._program: Program | None = None
        self._finite: Callable[[Sequence[Any]], Node | None] | None = None
        placed = graph.options.device is not None or graph.options.mesh is not None
        self._plain = not graph.uses_64_bit and not placed
        if graph.options.mesh is not None:
            placement(graph, large_constants(graph))  # which says at once what is wrong

    @property
    def check_finite(self) -> bool:
        """Whether runs look for NaN and infinity."""
        return self._check_finite

    @check_finite.setter
    def check_finite(self, value: bool) -> None:
        self._check_finite = value
        self._shorten()

    def _shorten(self) -> None:
        """Find out whether there is a direct way."""
        self.direct = None
        if not self._plain or self._check_finite or not self.graph.is_static or self._program is None:
            return
        entry = next((entry for entry in self.entries.values() if entry.variant == PLAIN), None)
        if entry is None or entry.check is not None or (entry.checks and platform(self.graph) != "cpu"):
            return
        with jax.ensure_compile_time_eval():
            looks = entry.looks if entry.checks else None
            self.direct = entry.run, self._program.parameters, looks, type(jax.device_put(np.int8(0))), entry.guards

    def placed(self) -> Program:
        """The program with its large constants on the device."""
        if self._program is None:
            with self._lock:
                if self._program is None:
                    self._program = Program.place(self.graph, self.rewriter)
        return self._program

    def prepare(self, shapes: Sequence[Shape], reason: str, variant: Variant = PLAIN) -> Entry:
        """The program for the shapes, compiled if they are new: once, by whichever thread comes first.

        Different shapes are compiled at the same time.
        """
        from concurrent.futures import Future

        shapes = [tuple(shape) for shape in shapes]
        types = [(shape, value.spec.dtype.numpy) for shape, value in zip(shapes, self.graph.arguments, strict=True)]
        key = (variant, *types)
        program = self.placed()
        with self._lock:
            if key in self.entries:
                return self.entries[key]
            promise = self._pending.get(key)
            mine = promise is None
            if promise is None:
                promise = self._pending[key] = Future()
        if not mine:
            return promise.result()
        try:
            entry, compilation = self._compile(program, shapes, reason, variant)
        except BaseException as error:
            with self._lock:
                del self._pending[key]
            promise.set_exception(error)
            raise
        with self._lock:
            if key in self._dropped:
                compilation = compilation._replace(reason=f"{reason}, dropped earlier to keep {self._limit} programs")
            self.compilations.append(compilation)
            self.entries[key] = entry
            if len(self.entries) > self._limit:
                oldest = next(iter(self.entries))
                del self.entries[oldest]
                self._dropped.add(oldest)
            del self._pending[key]
        self._shorten()
        promise.set_result(entry)
        return entry

    @property
    def _limit(self) -> int:
        return self.graph.options.max_executables

    def _compile(self, program: Program, shapes: Sequence[Shape], reason: str, variant: Variant) -> tuple[Entry, Compilation]:
        from bnnsgraph.executables import kept_in
        from bnnsgraph.progress import waiting

        specs, sizes = self._sized(shapes)
        named = dict(zip(self.names, shapes, strict=True))
        start = time.perf_counter()
        found = guards(self.graph, specs) if variant.guarded else {}
        guarded = frozenset(found)
        results = tuple(specs[value] for value in self.graph.results)
        into = results if variant.into else ()
        run = program.compiled(shapes, guarded, into)
        check = program.checker(guarded) if program.checks_first(guarded) else None
        label = f"compiling for {', '.join(f'{name} {format_shape(shape)}' for name, shape in named.items())}"
        with waiting(label), kept_in(self.graph.options.compilation_cache) as lookup, program.modes():
            compiled = self._lower(run, shapes, into).compile()
            if check is not None:
                self._lower(check, shapes).compile()
        seconds = time.perf_counter() - start
        checked = program.checks(guarded)
        looks = LOOKS if checked and check is None and self._is_short(compiled, results) else range(0)
        looked = tuple(guard.look for guard in dict.fromkeys(guard for each in found.values() for guard in each))
        entry = Entry(run, results, variant, looked, checked, check, looks)
        return entry, Compilation(reason, named, sizes, seconds, lookup.found)

    def _is_short(self, compiled: Any, results: Sequence[TensorSpec]) -> bool:
        """Whether JAX gives the program to another thread, which has it done before this one could sleep and wake."""
        written = sum(cast(int, element_count(spec.shape)) * spec.dtype.numpy.itemsize for spec in results)
        if platform(self.graph) != "cpu" or written > WRITTEN:
            return False
        return OPERATIONS[0] <= compiled.cost_analysis().get("flops", 0.0) < OPERATIONS[1]

    def _sized(self, shapes: Sequence[Shape]) -> tuple[dict[Value, TensorSpec], dict[str, int]]:
        """The specs of the graph's values for the arguments' shapes, if every rule holds for them, and the named sizes."""
        specs, sizes = self.graph.specialize(shapes)
        placed = self.placed().placement
        if placed is not None:
            placed.require_even(shapes, [specs[value].shape for value in self.graph.results])
        return specs, sizes

    def _lower(self, run: Any, shapes: Sequence[Shape], into: Sequence[TensorSpec] = ()) -> Any:
        program = self.placed()
        shardings = [None] * len(shapes) if program.placement is None else program.placement.arguments
        structs = [
            jax.ShapeDtypeStruct(tuple(shape), value.spec.dtype.numpy, sharding=sharding)
            for shape, value, sharding in zip(shapes, self.graph.arguments, shardings, strict=True)
        ]
        memory = [jax.ShapeDtypeStruct(spec.shape, spec.dtype.numpy) for spec in into]
        with program.modes():
            return run.lower(*memory, *program.parameters, *structs)

    def lowered(self, shapes: Sequence[Shape]) -> Any:
        """The program for the shapes, with all its checks, as ``jax.stages.Lowered``."""
        missing = [name for name, shape in zip(self.names, shapes, strict=True) if not is_static(shape)]
        if missing:
            raise ParameterError(f"every size must be given, got an argument {missing[0]!r} with flexible sizes")
        self._sized([tuple(shape) for shape in shapes])
        return self._lower(self.placed().compiled(shapes), shapes)

    def cost(self, lowered: Any) -> Cost:
        """The cost of a lowered program, which is compiled for it."""
        with self.placed().modes():
            compiled = lowered.compile()
        analysis, memory = compiled.cost_analysis(), compiled.memory_analysis()
        peak = (
            memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes - memory.alias_size_in_bytes
        )
        return Cost(analysis.get("flops", 0.0), analysis.get("bytes accessed", 0.0), peak)

    def run(self, entry: Entry, arrays: Sequence[Any], spare: Sequence[Any] = ()) -> Sequence[Any]:
        """The results and updates of one run, and what is left of its checks; one that failed raises and hands out nothing.

        ``spare``: the arrays that the results are written into, for an entry that does so.
        """
        program = self._program or self.placed()
        if entry.guards and not all(guard(arrays) for guard in entry.guards):
            entry = self._unguarded(entry, arrays)
        if spare:
            require_fits(self.graph, entry.outputs, spare)
            spare = [array.astype(array.dtype) if array.weak_type else array for array in spare]
        if self._plain and not self._check_finite and entry.check is None:  # the short way: a call costs microseconds
            values = entry.run(*spare, *program.parameters, *arrays)
            if entry.checks and (failure := scalar(values[-1], entry.looks)):
                raise self._failure(arrays, entry.checks[failure - 1])
            return values
        with program.modes():
            if program.placement is not None:
                arrays = program.placement.put(arrays)
            return self._run(program, entry, arrays, spare)

    def _unguarded(self, entry: Entry, arrays: Sequence[Any]) -> Entry:
        """The program for arrays of which the guards of another are not true. Raises where none would pass."""
        shapes = [array.shape for array in arrays]
        if not entry.checks:
            nodes = checks(self.graph)
            node = first_failed(nodes, self.graph, self.graph.specialize(shapes)[0], arrays)
            if node is not None:
                raise self._failure(arrays, node)
        variant = entry.variant._replace(guarded=False)
        return self.prepare(shapes, "first run of these sizes with indices from the end", variant)

    def _run(self, program: Program, entry: Entry, arrays: Sequence[Any], spare: Sequence[Any]) -> Sequence[Any]:
        parameters = program.parameters
        if entry.check is not None and (failure := scalar(entry.check(*parameters, *arrays))):
            raise self._failure(arrays, entry.checks[failure - 1])
        if self.check_finite and self.graph.updates:  # before arguments are donated
            self._require_finite(program, arrays)
        values = entry.run(*spare, *parameters, *arrays)
        if entry.checks and entry.check is None and (failure := scalar(values[-1], entry.looks)):
            raise self._failure(arrays, entry.checks[failure - 1])
        if self.check_finite and not self.graph.updates:
            self._require_finite(program, arrays)
        return values

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

    def _failure(self, arrays: Sequence[Any], node: Node) -> GraphError:
        reason = self.placed().explain_failure(arrays, node)
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
        if getattr(array, "weak_type", False) and is_tracer(array) is not (array.dtype == dtype.numpy):
            return array.astype(dtype.numpy)  # a number that is traced; an array that would be compiled for
        if array.dtype != dtype.numpy:
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
