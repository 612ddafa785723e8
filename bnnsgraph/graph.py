"""The recorded program: operations, nodes, edges, and the frozen graph.

A node is one operation applied to earlier values at one line of the user's program. Nodes never change; recording appends.
Every walk here is a loop, so a chain of any length is safe.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

from bnnsgraph.drawn import Drawn
from bnnsgraph.errors import ForeignTensorError, GraphError, ShapeError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.identity import Identified
from bnnsgraph.options import CompileOptions
from bnnsgraph.origin import Origin, here
from bnnsgraph.sizes import UNKNOWN, Size
from bnnsgraph.spec import Shape, TensorSpec, equal_size, format_shape
from bnnsgraph.swift.method import Emitted

if TYPE_CHECKING:
    import jax
    import numpy as np


class Intent(enum.Enum):
    """How a run uses an argument (Swift ``Builder.Intent``)."""

    INPUT = "input"
    INPUT_OUTPUT = "input_output"


@frozen
class Op(Frozen):
    """An operation: its parameters, its type rule and its meaning in JAX.

    A subclass is a frozen dataclass whose fields are everything but the tensors. ``infer`` maps the operands' specs to the
    result's (a tuple for several results) and raises one terse line when they do not fit; ``lower`` is a plain function of
    arrays that does the same to values. The names of ``infer``'s parameters are the names that errors use.
    """

    infer: ClassVar[Callable[..., TensorSpec | tuple[TensorSpec, ...]]]
    lower: ClassVar[Callable[..., Any]]

    @property
    def spread_axes(self) -> tuple[int, ...] | None:
        """How many leading axes of each operand and of the result may be spread over a mesh; None where all may."""
        return None

    sizes_only: ClassVar[bool] = False
    """Whether the result follows from the sizes of the operands, whatever their elements."""
    cpu_level: ClassVar[int | None] = None
    """XLA's optimisation level, of 2 and 3, at which the operation is faster on the CPU; None where both are alike."""
    ends_fusion: ClassVar[bool] = False
    """Whether XLA makes a kernel of it alone, so that what it reads and what reads it are two programs for the compiler."""

    def bind(self, sizes: Mapping[str, Any]) -> Self:
        """The operation with named sizes in its parameters replaced by their values."""
        del sizes
        return self

    def __str__(self) -> str:
        listed = [(each, getattr(self, each.name)) for each in sorted(fields(self), key=lambda each: each.kw_only is True)]
        shown = [f"{each.name}={value!r}" for each, value in listed if each.default is MISSING or value != each.default]
        return f"{type(self).__name__}({', '.join(shown)})"


@frozen
class CheckedOp(Op):
    """An operation that a run may have to refuse because of its values, such as a gather with an index out of bounds."""

    failed: ClassVar[Callable[..., Any]]
    """``failed(*arrays)`` is a scalar Bool array: whether the run must be refused."""

    explain: ClassVar[Callable[..., str]]
    """``explain(*arrays)`` says, from NumPy arrays, why."""

    error: ClassVar[type[GraphError]]

    @property
    def needs_check(self) -> bool:
        """Whether a run has to look at ``failed``."""
        raise NotImplementedError

    def assume_checked(self) -> Op:
        """The operation for values that passed the check."""
        raise NotImplementedError

    def lower_beside_check(self, *operands: Any) -> Any:
        """``lower`` of a result for values that passed, in a CPU program that gives ``failed`` and is not differentiated."""
        return self.assume_checked().lower(*operands)


@frozen
class ShapedOp(Op):
    """An operation whose last operand's elements are sizes of the result; they follow from sizes and constants alone."""

    def resolve(self, elements: np.ndarray[Any, Any]) -> Self:
        """The operation for these elements of its last operand."""
        raise NotImplementedError


@frozen
class Argument(Op):
    """An input of the graph."""

    name: str
    spec: TensorSpec
    intent: Intent = Intent.INPUT

    def infer(self) -> TensorSpec:
        return self.spec

    def lower(self) -> jax.Array:
        raise AssertionError(f"the value of argument {self.name!r} comes from the caller")

    def __str__(self) -> str:
        return f"Argument({self.name!r})"


@frozen
class Constant(Op):
    """An array recorded with the graph; its elements never change."""

    __eq__ = object.__eq__  # arrays are not compared
    __hash__ = object.__hash__

    array: np.ndarray[Any, Any]
    spec: TensorSpec
    name: str | None = None

    def infer(self) -> TensorSpec:
        return self.spec

    def lower(self) -> Any:
        from bnnsgraph.xla import jnp

        return jnp.asarray(self.array)

    def __str__(self) -> str:
        shown = [repr(self.name)] if self.name else []
        shown += [str(self.array.tolist())] if self.array.size <= 4 else []
        return f"Constant({', '.join(shown)})"


class Node:
    """One recorded operation. Compared by identity.

    ``group`` is the :meth:`Builder.group` around it: names from the outermost in, with slashes between; empty outside all.
    """

    __slots__ = ("group", "inputs", "op", "origin", "outputs", "serial")

    def __init__(
        self, op: Op, inputs: tuple[Value, ...], outputs: tuple[TensorSpec, ...], origin: Origin, serial: int, group: str = ""
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.outputs = outputs
        self.origin = origin
        self.serial = serial
        self.group = group

    def __repr__(self) -> str:
        return f"Node({self.op}, {self.origin})"


class Value:
    """One result of a node: an edge of the graph. Compared by identity."""

    __slots__ = ("index", "node", "spec")

    def __init__(self, node: Node, index: int) -> None:
        self.node = node
        self.index = index
        self.spec = node.outputs[index]

    def __repr__(self) -> str:
        return f"Value({self.spec}, {self.node.op})"


class Recorder:
    """Appends nodes while a block runs. One recorder belongs to one builder; a finished one refuses to record."""

    __slots__ = ("arguments", "finished", "group", "options", "serial")

    def __init__(self, options: CompileOptions) -> None:
        self.options = options
        self.arguments: list[Value] = []
        self.serial = 0
        self.group = ""
        self.finished: Origin | None = None

    def record(self, op: Op, inputs: tuple[Value, ...] = ()) -> tuple[Value, ...]:
        """Append ``op``; an error of its rule is raised at the user's line."""
        if self.finished is not None:
            raise ForeignTensorError(
                f"{op}: the builder must still be recording, but its block ended at {self.finished}; "
                "use tensors only inside the block that made them"
            )
        try:
            specs = op.infer(*[value.spec for value in inputs])
        except GraphError as error:
            raise located(error, op, inputs) from None
        outputs = inputs[0].node.outputs if inputs else ()  # shared where the type is the first operand's: less to collect
        if len(outputs) != 1 or outputs[0] is not specs:
            outputs = specs if isinstance(specs, tuple) else (specs,)
        node = Node(op, inputs, outputs, here(), self.serial, self.group)
        self.serial += 1
        return tuple([Value(node, index) for index in range(len(outputs))])


def operand_names(op: Op, count: int) -> list[str]:
    """What the operation's rule calls its operands."""
    names: list[str] = []
    for parameter in inspect.signature(op.infer).parameters.values():
        many = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        names += [f"{parameter.name}[{index}]" for index in range(count - len(names))] if many else [parameter.name]
    return names[:count]


def located(error: GraphError, op: Op, inputs: Sequence[Value], specs: Sequence[TensorSpec] = ()) -> GraphError:
    """The error with its operation, and the operands with the lines that made them."""
    specs = specs or [value.spec for value in inputs]
    names = operand_names(op, len(inputs))
    width = max(map(len, names), default=0)
    kind = max((len(str(spec)) for spec in specs), default=0)
    operands = [
        f"{name:<{width}}  {spec!s:<{kind}}  made at {value.node.origin}"
        for name, spec, value in zip(names, specs, inputs, strict=False)
    ]
    return type(error)(f"{op}: {error.reason}", *operands)


class Graph(Drawn, Emitted, Identified):
    """A finished, immutable program. Compared by value, see :class:`Identified`.

    Attributes:
        arguments: the inputs in declaration order.
        results: the outputs in return order.
        result_names: one name an output.
        updates: for each in-out argument, in declaration order, its value after the run.
        nodes: what the results need, every node after its operands.
        uses_64_bit: whether any value has 64-bit elements, or an axis too long for a 32-bit index.
    """

    __slots__ = ("__weakref__", "arguments", "nodes", "options", "result_names", "results", "updates", "uses_64_bit")

    def __init__(
        self,
        arguments: Sequence[Value],
        results: Sequence[Value],
        result_names: Sequence[str],
        updates: Mapping[Value, Value] | None = None,
        options: CompileOptions | None = None,
    ) -> None:
        super().__init__()
        self.arguments = tuple(arguments)
        self.results = tuple(results)
        self.result_names = tuple(result_names)
        self.updates = dict(updates or {})
        self.options = options or CompileOptions()
        self.nodes = _needed([*arguments, *results, *self.updates.values()])
        self.uses_64_bit = any(_is_wide(spec) for spec in self.specs)

    @property
    def argument_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(argument_of(value).name for value in self.arguments)

    @property
    def specs(self) -> Iterator[TensorSpec]:
        """The spec of every value."""
        return (spec for node in self.nodes for spec in node.outputs)

    @property
    def is_static(self) -> bool:
        """Whether the size of every argument is known."""
        return all(isinstance(size, int) for value in self.arguments for size in value.spec.shape)

    def solve(self, shapes: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The named sizes that the arguments' shapes give.

        Raises:
            ShapeError: a shape contradicts the declaration, or two arguments disagree about a name.
        """
        sizes: dict[str, Any] = {}
        first: dict[str, str] = {}
        delayed: list[tuple[Argument, int, Size, Any]] = []
        for value, shape in zip(self.arguments, shapes, strict=True):
            argument = argument_of(value)
            declared = value.spec.shape
            if len(shape) != len(declared):
                raise ShapeError(
                    f"argument {argument.name!r} must have rank {len(declared)}, {format_shape(declared)}, "
                    f"got rank {len(shape)}, {format_shape(shape)}",
                    f"declared at {value.node.origin}",
                )
            for axis, (size, actual) in enumerate(zip(declared, shape, strict=True)):
                if size is UNKNOWN:
                    continue
                if isinstance(size, Size) and repr(size).isidentifier():
                    name = repr(size)
                    if sizes.setdefault(name, actual) != actual:
                        raise ShapeError(
                            f"argument {argument.name!r}: size {name} must be {sizes[name]}, as in {first[name]!r}, "
                            f"got {actual} on axis {axis}",
                            f"declared at {value.node.origin}",
                        )
                    first.setdefault(name, argument.name)
                elif isinstance(size, Size):
                    delayed.append((argument, axis, size, actual))
                elif size != actual:
                    raise ShapeError(
                        f"argument {argument.name!r} must have shape {format_shape(declared)}, got {format_shape(shape)}",
                        f"declared at {value.node.origin}",
                    )
        for argument, axis, size, actual in delayed:
            missing = size.names() - sizes.keys()
            if missing or size.bind(sizes) != actual:
                wanted = f"needs the size of {', '.join(sorted(missing))}" if missing else f"must be {size.bind(sizes)}"
                raise ShapeError(f"argument {argument.name!r}: size {size} on axis {axis} {wanted}, got {actual}")
        return sizes

    def specialize(self, shapes: Sequence[Shape]) -> tuple[dict[Value, TensorSpec], dict[str, int]]:
        """Run every rule again for the arguments' actual shapes: the spec of each value, and the named sizes.

        Raises:
            ShapeError: the sizes contradict a rule; the message names the operation and its line.
        """
        from bnnsgraph.elements import settled

        sizes = self.solve(shapes)
        specs: dict[tuple[Node, int], TensorSpec] = {}
        for value, shape in zip(self.arguments, shapes, strict=True):
            specs[value.node, 0] = value.spec.with_shape(shape)
        for node in self.nodes:
            if isinstance(node.op, Argument):
                continue
            operands = [specs[value.node, value.index] for value in node.inputs]
            op = node.op
            try:
                op = settled(node, sizes, lambda value: specs[value.node, value.index].shape)
                found = op.infer(*operands)
            except GraphError as error:
                raise _recorded_at(located(error, op, node.inputs, operands), node) from None
            for index, spec in enumerate(found if isinstance(found, tuple) else (found,)):
                _agree(spec, node.outputs[index].bind(sizes), node)
                specs[node, index] = spec
        wanted = [*self.arguments, *self.results, *self.updates.values(), *(v for n in self.nodes for v in n.inputs)]
        return {value: specs[value.node, value.index] for value in wanted}, sizes

    def __str__(self) -> str:
        from bnnsgraph.display.text import listing

        return listing(self)

    def __repr__(self) -> str:
        return f"Graph({', '.join(self.argument_names)} -> {', '.join(self.result_names)}; {len(self.nodes)} nodes)"


def _is_wide(spec: TensorSpec) -> bool:
    return spec.dtype.bits == 64 or any(isinstance(size, int) and size >= 2**31 for size in spec.shape)


def argument_of(value: Value) -> Argument:
    """The argument that ``value`` is."""
    assert isinstance(value.node.op, Argument)
    return value.node.op


def _recorded_at(error: GraphError, node: Node) -> GraphError:
    return type(error)(error.reason, *error.details, f"recorded at {node.origin}:  {node.origin.text}")


def _agree(actual: TensorSpec, promised: TensorSpec, node: Node) -> None:
    """A size that a rule took for granted while building must hold for the sizes of this run."""
    for a, b in zip(actual.shape, promised.shape, strict=True):
        if equal_size(a, b) is None:
            raise ShapeError(
                f"{node.op}: the result must have shape {format_shape(promised.shape)} for these sizes, "
                f"got {format_shape(actual.shape)}",
                f"recorded at {node.origin}:  {node.origin.text}",
            )


def _needed(values: Sequence[Value]) -> tuple[Node, ...]:
    """The nodes that ``values`` depend on, in recorded order, which puts every node after its operands."""
    found: set[Node] = set()
    waiting = [value.node for value in values]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += [value.node for value in node.inputs]
    return tuple(sorted(found, key=lambda node: node.serial))
