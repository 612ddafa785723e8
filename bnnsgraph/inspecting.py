"""Looking inside a run: every recorded value, and where a graph first differs from a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from bnnsgraph.compile import compiler_options, is_tracer, x64
from bnnsgraph.dtypes import Floating, as_dtype
from bnnsgraph.errors import ArgumentError, ParameterError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import Argument, Constant, Graph, Node, Op, Value
from bnnsgraph.handle import as_array
from bnnsgraph.naming import is_numbered, value_names
from bnnsgraph.origin import Origin
from bnnsgraph.running import PLAIN, Entry
from bnnsgraph.spec import TensorSpec, as_number, element_count, format_shape
from bnnsgraph.surface import ArgumentSurface
from bnnsgraph.walking import checks, walk
from bnnsgraph.xla import jax, jnp

if TYPE_CHECKING:
    import numpy.typing as npt

Array: TypeAlias = np.ndarray[Any, Any]

TOLERANCES = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}
"""Largest difference, relative to the largest magnitude in a tensor, that passes for rounding."""


class Traced(NamedTuple):
    """One value of a run."""

    name: str
    value: jax.Array
    op: Op
    spec: TensorSpec
    origin: Origin


class Trace:
    """Every recorded value of one run: by name, and in recorded order. Made by :meth:`Context.trace`."""

    def __init__(self, values: Sequence[Traced]) -> None:
        self._values = {traced.name: traced for traced in values}

    def __getitem__(self, name: str) -> Traced:
        if name not in self._values:
            raise ArgumentError(f"the name of a value must be one of {', '.join(self._values)}, got {name!r}")
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[Traced]:
        return iter(self._values.values())

    def __len__(self) -> int:
        return len(self._values)

    @property
    def arrays(self) -> dict[str, Array]:
        """NumPy arrays by name, such as ``numpy.savez`` and :meth:`Context.compare` take."""
        return {traced.name: np.asarray(traced.value) for traced in self}

    def _rows(self) -> list[tuple[str, ...]]:
        head = ("value", "type", "min", "max", "mean", "NaN", "operation", "line")
        rows = [(t.name, str(t.spec), *_summary(np.asarray(t.value)), type(t.op).__name__, t.origin.place) for t in self]
        return [head, *rows]

    def __repr__(self) -> str:
        return _table(self._rows())

    def _repr_html_(self) -> str:
        from bnnsgraph.display.html import trace_page

        return trace_page(self._rows(), [traced.value for traced in self], repr(self))


@frozen
class Difference(Frozen):
    """How far one value is from its reference.

    Attributes:
        absolute: the largest difference; infinite where one of the two is NaN, or an infinity that the other is not.
        relative: the largest difference divided by the magnitude of the reference's element.
        index: where the absolute difference is largest; None where there are no elements, or shapes differ.
        count: how many elements differ by more than the tolerance.
        tolerance: what differences may be, relative to the largest finite magnitude in the reference; 0 where neither of the
            two is a float.
        got: the element at ``index``.
        wanted: the reference's element at ``index``.
        mismatch: the two shapes where they differ, else nothing.
    """

    name: str
    op: Op
    spec: TensorSpec
    origin: Origin
    absolute: float
    relative: float
    index: tuple[int, ...] | None
    count: int
    tolerance: float
    got: Any
    wanted: Any
    mismatch: str

    @property
    def ok(self) -> bool:
        """Whether the value agrees with its reference."""
        return not self.count and not self.mismatch

    def __str__(self) -> str:
        where = f"{self.name} ({self.op}), recorded at {self.origin}:  {self.origin.text}\n  "
        if self.mismatch:
            return f"{where}shapes differ: {self.mismatch}"
        if self.index is None:
            return f"{where}no elements"
        place = f" at {list(self.index)}" if self.index else ""
        of = element_count(self.spec.shape)
        return (
            f"{where}{_number(self.got)}{place} where the reference has {_number(self.wanted)}: absolute difference up to "
            f"{self.absolute:.3g}, relative {self.relative:.3g}; {self.count} of {of} elements beyond the "
            f"tolerance of {self.tolerance:.3g}"
        )


class Comparison:
    """Every value that was compared, in recorded order. Made by :meth:`Context.compare`."""

    def __init__(self, differences: Sequence[Difference]) -> None:
        self.differences = tuple(differences)

    @property
    def ok(self) -> bool:
        """Whether all values agree."""
        return self.first is None

    @property
    def first(self) -> Difference | None:
        """The first value that differs."""
        return next((each for each in self.differences if not each.ok), None)

    def __repr__(self) -> str:
        head = ("value", "absolute", "relative", "beyond", "operation", "line")
        rows = [
            (d.name, f"{d.absolute:.3g}", f"{d.relative:.3g}", d.mismatch or str(d.count), type(d.op).__name__, d.origin.place)
            for d in self.differences
        ]
        count = len(self.differences)
        summary = f"all {count} values agree" if self.first is None else f"first of {count} values to differ: {self.first}"
        return f"{summary}\n\n{_table([head, *rows])}"


Reference: TypeAlias = (
    "Literal['op by op'] | Mapping[str, npt.ArrayLike] | Trace | Inspection | Callable[[str], npt.ArrayLike | None]"
)


class Inspection(ArgumentSurface):
    """What a context shows of its values."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._tracing: Entry | None = None
        self._value_names: dict[Value, str] | None = None

    def trace(self, *args: Any, **kwargs: Any) -> Trace:
        """Run the graph and return every recorded value, with its name, operation, type and line. Not in Apple's builder.

        A value is called after the variable that it was assigned to, see :func:`bnnsgraph.naming.value_names`. One program
        computes all of them, so that each is really made, and may differ in the last bits from what the fused program has in
        its place. Checks are made as in any run.

        >>> @bg.make_context
        ... def share(b):
        ...     x = b.argument("x", bg.Float32, [2, 2])
        ...     total = x.sum([1], keep_dimensions=True)
        ...     return x / total
        >>> trace = share.trace([[1, 3], [0, 0]])
        >>> trace["total"].value.tolist()
        [[4.0], [0.0]]
        >>> [traced.name for traced in trace]
        ['x', 'total', 'output_0']
        >>> print(trace)  # doctest: +ELLIPSIS
        value     type           min   max   mean  NaN  operation  line
        x         float32[2, 2]  0     3     1     0    Argument   ...
        total     float32[2, 1]  0     4     2     0    ReduceSum  ...
        output_0  float32[2, 2]  0.25  0.75  0.5   2    Divide     ...

        Raises:
            ArgumentError, DTypeError, ShapeError, IndexOutOfBoundsError: as calling the context does.
        """
        names, arrays = self._entered(args, kwargs)
        values = self._traced(arrays)
        return Trace(
            [
                Traced(name, array, value.node.op, value.spec.with_shape(array.shape), value.node.origin)
                for value, name in names.items()
                for array in [values[value.node][value.index]]
            ]
        )

    def compare(self, reference: Reference, *args: Any, tolerance: float | None = None, **kwargs: Any) -> Comparison:
        """Where the graph first differs from a reference. Not in Apple's builder.

        Args:
            reference: one of

                - ``"op by op"``: each operation run by itself, uncompiled, on the compiled program's operands: what differs
                  was made by that operation.
                - a mapping of names to arrays, such as intermediate values saved by another framework, or a :class:`Trace`:
                  the values of these names are compared. A difference carries on to the values made from it.
                - a function of a name, which returns an array, or None for what it does not have.
                - another context with the same arguments, which are converted to its float types: a value is compared with
                  that at its place when both graphs are the same operations, otherwise with that of its name if a user gave it.
            args: the arguments, as in a run.
            tolerance: how far a float may be from its reference, relative to the largest finite magnitude of the reference's
                elements; by default 1e-12 for float64, 1e-5 for float32, 4e-3 for float16 and 3e-2 for bfloat16. Integers and
                Bool must be equal.
            kwargs: the arguments, as in a run.

        >>> @bg.make_context
        ... def norm(b):
        ...     x = b.argument("x", bg.Float32, [2])
        ...     squares = x * x
        ...     return squares.sum(None).sqrt()
        >>> norm.compare("op by op", [3, 4]).ok
        True
        >>> print(norm.compare({"squares": [9, 15]}, [3, 4]).first)  # doctest: +ELLIPSIS
        squares (Multiply()), recorded at ...:  squares = x * x
          16 at [1] where the reference has 15: absolute difference up to 1, relative 0.0667; 1 of 2 elements beyond ...

        Raises:
            ArgumentError: the reference has a name that no value has, or nothing to compare.
        """
        if tolerance is not None and not as_number(tolerance, "tolerance") >= 0:
            raise ParameterError(f"tolerance must be at least 0, got {tolerance!r}")
        names, arrays = self._entered(args, kwargs)
        values = self._traced(arrays)
        if isinstance(reference, str) and reference == "op by op":
            wanted = self._op_by_op(arrays, values, names)
        elif isinstance(reference, Inspection):
            wanted = self._elsewhere(reference, arrays, names)
        else:
            wanted = _by_name(reference, names)
        found = {value: array for value, array in wanted.items() if array is not None}
        if not found:
            raise ArgumentError(f"the reference must have some of {', '.join(names.values())}, got none of them")
        return Comparison(
            [
                _difference(name, value, np.asarray(values[value.node][value.index]), as_array(found[value]), tolerance)
                for value, name in names.items()
                if value in found
            ]
        )

    def _entered(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[Value, str], list[Any]]:
        """The names of the values, and the arguments as arrays whose sizes satisfy every rule."""
        arrays = [self._runner.convert(index, array) for index, array in enumerate(self._runner.arrange(args, kwargs))]
        if any(map(is_tracer, arrays)):
            raise ArgumentError(
                "trace and compare must be given arrays, got one that JAX traces; call them outside jit and grad"
            )
        self.graph.specialize([array.shape for array in arrays])
        if self._value_names is None:
            self._value_names = value_names(self.graph)
        return self._value_names, arrays

    def _traced(self, arrays: Sequence[Any]) -> dict[Node, tuple[Any, ...]]:
        """The values of every node."""
        graph, program = self.graph, self._runner.placed()
        if self._tracing is None:

            def run(*given: Any) -> tuple[Any, ...]:
                parameters, arrays = program.parted(given)
                seen: dict[Node, tuple[Any, ...]] = {}
                large = dict(zip(program.constants, parameters, strict=True))
                outcome = walk(graph, arrays, large, checked=True, visit=seen.__setitem__)
                computed = tuple(seen[node] for node in graph.nodes if _computed(node))
                return outcome._replace(results=computed, updates=()).values

            compiled = jax.jit(run, compiler_options=compiler_options(graph))
            self._tracing = Entry(compiled, (), PLAIN, (), checks(graph), None, range(0))
        results = iter(self._runner.run(self._tracing, arrays))
        with x64(graph):
            given = {value.node: (jnp.asarray(array),) for value, array in zip(graph.arguments, arrays, strict=True)}
            given |= {node: (array,) for node, array in zip(program.constants, program.parameters, strict=True)}
            return {node: next(results) if _computed(node) else given.get(node) or (node.op.lower(),) for node in graph.nodes}

    def _op_by_op(
        self, arrays: Sequence[Any], values: Mapping[Node, tuple[Any, ...]], names: Mapping[Value, str]
    ) -> dict[Value, Any]:
        """What each operation gives by itself for the operands in ``values``."""
        found: dict[Node, tuple[Any, ...]] = {}

        def visit(node: Node, results: tuple[Any, ...]) -> tuple[Any, ...]:
            found[node] = results
            return values[node]

        program = self._runner.placed()
        with program.modes():
            if program.placement is not None:
                arrays = program.placement.put(arrays)
            large = dict(zip(program.constants, program.parameters, strict=True))
            walk(self.graph, [jnp.asarray(array) for array in arrays], large, checked=False, visit=visit)
        return {value: found[value.node][value.index] for value in names if _computed(value.node)}

    def _elsewhere(self, other: Inspection, arrays: Sequence[Any], names: Mapping[Value, str]) -> dict[Value, Any]:
        """The values of another context that correspond to those of this one."""
        given = {
            name: np.asarray(array).astype(value.spec.dtype.numpy) if _is_float(array) and _is_float(value.spec) else array
            for name, array, value in zip(self._names, arrays, other.graph.arguments, strict=False)
        }
        theirs = list(other.trace(**given))
        if [type(value.node.op) for value in names] == [type(traced.op) for traced in theirs]:
            pairs = {value: traced.value for value, traced in zip(names, theirs, strict=True)}
        else:
            by_name = {traced.name: traced.value for traced in theirs}
            pairs = {value: by_name.get(name) for value, name in names.items() if not is_numbered(value, name)}
        return {value: array for value, array in pairs.items() if not isinstance(value.node.op, Argument)}


def _computed(node: Node) -> bool:
    """Whether an operation makes the node's values, which are otherwise given."""
    return not isinstance(node.op, (Argument, Constant))


def _is_float(array: Any) -> bool:
    return issubclass(as_dtype(array.dtype), Floating)


def _by_name(reference: Any, names: Mapping[Value, str]) -> dict[Value, Any]:
    if isinstance(reference, Trace):
        reference = reference.arrays
    if isinstance(reference, Mapping):
        arrays = cast("Mapping[str, Any]", reference)
        unknown = [name for name in arrays if name not in names.values()]
        if unknown:
            raise ArgumentError(f"the names of a reference must be among {', '.join(names.values())}, got {unknown[0]!r}")
        reference = arrays.get
    if not callable(reference):
        raise ArgumentError(
            "reference must be 'op by op', a mapping of names to arrays, a function of a name or a context, "
            f"got {type(reference).__name__}"
        )
    return {value: reference(name) for value, name in names.items()}


def _difference(name: str, value: Value, got: Array, wanted: Array, tolerance: float | None) -> Difference:
    """Compare two arrays, in float64; integers and Bool exactly."""
    node, spec = value.node, value.spec.with_shape(got.shape)
    rounding = [TOLERANCES[dtype.name] for dtype in map(as_dtype, (got.dtype, wanted.dtype)) if issubclass(dtype, Floating)]
    allowed = 0.0 if not rounding else max(rounding) if tolerance is None else tolerance
    if got.shape != wanted.shape:
        mismatch = f"{format_shape(got.shape)} against {format_shape(wanted.shape)}"
        return Difference(name, node.op, spec, node.origin, np.nan, np.nan, None, 0, allowed, None, None, mismatch)
    if not got.size:
        return Difference(name, node.op, spec, node.origin, 0, 0, None, 0, allowed, None, None, "")
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.isnan(a) & np.isnan(b)) if rounding else got == wanted
        absolute = np.where(same, 0, np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf))
        relative = np.where(same, 0, np.nan_to_num(absolute / np.abs(b), nan=np.inf, posinf=np.inf))
        beyond = ~same & ~(absolute <= allowed * np.abs(b).max(initial=0, where=np.isfinite(b))) if rounding else ~same
    worst = np.unravel_index(int((absolute if rounding else beyond).argmax()), got.shape)
    index = tuple(int(part) for part in worst)
    elements = got[index].item(), wanted[index].item()
    largest = float(absolute.max()), float(relative.max())
    return Difference(name, node.op, spec, node.origin, *largest, index, int(beyond.sum()), allowed, *elements, "")


def _number(element: Any) -> str:
    """An element with all the digits that tell float32 numbers apart."""
    return f"{element:.9g}" if isinstance(element, float) else str(element)


def _summary(array: Array) -> tuple[str, str, str, str]:
    """Smallest, largest and mean element without NaN, and the number of NaN."""
    missing = np.isnan(array.astype(np.float64)) if array.dtype.kind in "fV" else np.zeros(array.shape, bool)
    present = array[~missing].astype(np.float64) if array.dtype.kind in "fV" else array[~missing]
    if not present.size:
        return "-", "-", "-", str(missing.sum())
    low, high = present.min(), present.max()
    with np.errstate(all="ignore"):
        mean = present.mean(dtype=np.float64)
    return f"{low.item():.4g}", f"{high.item():.4g}", f"{mean:.4g}", str(missing.sum())


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
