"""A graph as a JAX program, with its constants where the options want them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from bnnsgraph.errors import ParameterError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import CheckedOp, Constant, Graph, Node
from bnnsgraph.memory import LARGE
from bnnsgraph.options import OptimizationPreference
from bnnsgraph.placement import Placement, placement, platform
from bnnsgraph.spec import Shape, TensorSpec
from bnnsgraph.walking import Outcome, checks, walk
from bnnsgraph.xla import jax, jnp


def is_tracer(array: object) -> bool:
    """Whether the array is being traced by a transformation of JAX."""
    from jax.core import Tracer

    return isinstance(array, Tracer)


LEVEL = "xla_backend_optimization_level"
"""XLA's own is 3, at which LLVM unrolls the loop that copies a row of 40 to 80 numbers before it can vectorise it: such
gathers take two to three times as long as at 2, and an LSTM 1.4 times. Scatters of rows take twice as long at 2, and padding
1.6 times. No other operation was faster at one than at the other (jaxlib 0.10.2)."""


class NotPreparedError(Exception):
    """A program was called with arrays of other shapes or types than it was compiled for; it refuses to compile again."""


Rewriting: TypeAlias = Callable[[Sequence[Any], bool, bool, frozenset[Node]], Graph]


def large_constants(graph: Graph) -> tuple[Node, ...]:
    """The constants that are passed to the program as parameters."""
    spread = graph.options.shardings
    small = graph.options.optimization_preference is OptimizationPreference.INTERNAL_REPRESENTATION_SIZE
    limit = 9 if small else LARGE  # no single number is that long
    return tuple(
        node
        for node in graph.nodes
        if isinstance(node.op, Constant) and (node.op.array.nbytes >= limit or node.op.name in spread)
    )


def x64(graph: Graph) -> contextlib.AbstractContextManager[object]:
    """JAX's 64-bit mode for graphs that have 64-bit types; nothing for others."""
    return jax.enable_x64(True) if graph.uses_64_bit else contextlib.nullcontext()


def compiler_options(graph: Graph) -> dict[str, Any]:
    """What we, and the graph's options, ask of XLA."""
    if (kind := platform(graph)) != "cpu":
        if graph.options.use_single_thread:
            raise ParameterError(
                f"CompileOptions.use_single_thread must be False except on the CPU, got True with the {kind} backend"
            )
        return {}
    options: dict[str, Any] = {"xla_cpu_multi_thread_eigen": False} if graph.options.use_single_thread else {}
    levels = {node.op.cpu_level for node in graph.nodes} - {None}
    if levels == {2} and LEVEL not in os.environ.get("XLA_FLAGS", ""):
        options[LEVEL] = 2
    return options


class FiniteCheck:
    """Collects, while a graph is walked, which nodes made a NaN or an infinity out of finite operands."""

    def __init__(self, graph: Graph, arrays: Sequence[Any]) -> None:
        self._finite: dict[Node, Any] = {}
        self.nodes: list[Node] = []
        self.flags: list[Any] = []
        for value, array in zip(graph.arguments, arrays, strict=True):
            self.visit(value.node, (array,))

    def visit(self, node: Node, values: tuple[Any, ...]) -> None:
        """Look at the values of one node."""
        floats = [value for value in values if jnp.issubdtype(value.dtype, jnp.floating)]
        if not floats:
            return
        finite = jnp.stack([jnp.all(jnp.isfinite(value)) for value in floats]).all()
        self._finite[node] = finite
        if isinstance(node.op, Constant):
            return
        made = ~finite
        for operand in node.inputs:
            if operand.node in self._finite:
                made = made & self._finite[operand.node]
        self.nodes.append(node)
        self.flags.append(made)


@frozen
class Program(Frozen):
    """A graph with its large constants on the device, or spread over the devices."""

    graph: Graph
    constants: tuple[Node, ...]
    parameters: tuple[Any, ...]
    placement: Placement | None
    rewrite: Rewriting | None = None
    """Gives the graph to lower for the arguments' shapes, with or without its checks, to be run or differentiated; the
    constants are the same nodes."""

    @staticmethod
    def place(graph: Graph, rewrite: Rewriting | None = None) -> Program:
        """Put the large constants where the options say."""
        constants = large_constants(graph)
        placed = placement(graph, constants)
        with x64(graph), jax.ensure_compile_time_eval():  # also when the first use is inside of jit
            if placed is not None:
                return Program(graph, constants, placed.put_constants(constants), placed, rewrite)
            parameters = tuple(jax.device_put(cast(Constant, node.op).array) for node in constants)
            return Program(graph, constants, parameters, None, rewrite)

    def modes(self) -> contextlib.AbstractContextManager[object]:
        """The modes of JAX under which the program is compiled and run, outside of any transformation."""
        if self.placement is None or self.placement.mesh is None:
            return x64(self.graph)
        stack = contextlib.ExitStack()
        stack.enter_context(x64(self.graph))
        stack.enter_context(self.placement.alone())
        return stack

    def checks(self, guarded: frozenset[Node]) -> tuple[Node, ...]:
        """The checks that a run makes where those of ``guarded`` were made before."""
        return tuple(node for node in checks(self.graph) if node not in guarded)

    def checks_first(self, guarded: frozenset[Node]) -> bool:
        """Whether the checks are a program of their own, run first, so that a run that fails leaves donated arrays alone."""
        return self.graph.options.donate and bool(self.graph.updates) and bool(self.checks(guarded))

    def checks_last(self, guarded: frozenset[Node]) -> bool:
        """Whether the last value of a run is the place of the first failed check."""
        return bool(self.checks(guarded)) and not self.checks_first(guarded)

    def compiled(
        self, shapes: Sequence[Shape], guarded: frozenset[Node] = frozenset(), into: Sequence[TensorSpec] = ()
    ) -> Callable[..., tuple[Any, ...]]:
        """A jitted function of parameters and arguments, in one row, of these shapes, with :attr:`Outcome.values`.

        Args:
            shapes: of the arguments.
            guarded: the checks that were made before, see :mod:`bnnsgraph.guards`.
            into: of arrays that stand before the parameters, one for each result, and give it their memory.

        Raises:
            NotPreparedError: an array has another shape, or dtype, or a weak type. JAX looks at them faster than we can.
        """
        checks_first = self.checks_first(guarded)
        prepared = [(spec.shape, spec.dtype.numpy, False) for spec in into]
        prepared += [
            (tuple(shape), value.spec.dtype.numpy, False) for shape, value in zip(shapes, self.graph.arguments, strict=True)
        ]

        def run(parameters: Sequence[Any], *arrays: Any) -> tuple[Any, ...]:
            if [(array.shape, array.dtype, array.weak_type) for array in arrays] != prepared:
                raise NotPreparedError
            arrays = arrays[len(into) :]
            outcome = self._checked(parameters, arrays, guarded)
            return (outcome._replace(failure=None) if checks_first else outcome).values

        spare = len(into)
        updated = [self.graph.arguments.index(value) for value in self.graph.updates]
        donated = [spare + len(self.parameters) + index for index in updated] if self.graph.options.donate else []
        settings: dict[str, Any] = {"donate_argnums": (*range(spare), *donated), "keep_unused": spare > 0}
        if self.placement is None:
            return self._jit(run, spare=spare, **settings)
        placed = self.placement
        flag = [placed.whole] if self.checks_last(guarded) else []
        outputs = (*placed.outputs, *(placed.arguments[index] for index in updated), *flag)
        return self._jit(run, outputs, spare=spare, **settings)

    def checker(self, guarded: frozenset[Node]) -> Callable[..., Any]:
        """A jitted function of parameters and arguments, in one row: the place of the first failed check."""

        def check(parameters: Sequence[Any], *arrays: Any) -> Any:
            return self._checked(parameters, arrays, guarded).failure

        return self._jit(check, self._whole)

    def _checked(self, parameters: Sequence[Any], arrays: Sequence[Any], guarded: frozenset[Node]) -> Outcome:
        return self._pure(parameters, arrays, checked=True, run=True, guarded=guarded)

    @property
    def _whole(self) -> Any:
        return None if self.placement is None else self.placement.whole

    def _jit(self, run: Callable[..., Any], outputs: Any = None, spare: int = 0, **settings: Any) -> Callable[..., Any]:
        """A jitted function of parameters and arguments, in one row, which JAX takes faster than a tree.

        ``run`` has the parameters as its first argument; ``outputs`` says where its results lie; ``spare`` arrays stand before
        the parameters, and for ``run`` before the arguments.
        """

        def bnnsgraph(*given: Any) -> Any:
            parameters, arrays = self.parted(given[spare:])
            return run(parameters, *given[:spare], *arrays)

        if self.placement is not None:
            memory = self.placement.outputs[:spare]
            settings["in_shardings"] = (*memory, *self.placement.constants, *self.placement.arguments)
            settings["out_shardings"] = outputs
        return jax.jit(bnnsgraph, compiler_options=compiler_options(self.graph), **settings)

    def parted(self, given: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
        """Parameters and arguments that stood in one row."""
        count = len(self.parameters)
        return given[:count], given[count:]

    def finite_checker(self) -> Callable[[Sequence[Any]], Node | None]:
        """A function of the arguments: the first node that makes a NaN or an infinity out of finite operands.

        An argument that holds one counts as a node that made it; a constant does not.
        """
        nodes: list[Node] = []

        def flags(parameters: Sequence[Any], *arrays: Any) -> Any:
            check = FiniteCheck(self.graph, arrays)
            walk(self.graph, arrays, dict(zip(self.constants, parameters, strict=True)), checked=True, visit=check.visit)
            nodes[:] = check.nodes
            return jnp.stack(check.flags) if check.flags else jnp.zeros(0, bool)

        compiled = self._jit(flags, self._whole)

        def first(arrays: Sequence[Any]) -> Node | None:
            with self.modes():
                found: np.ndarray[Any, Any] = np.asarray(compiled(*self.parameters, *arrays))
            return nodes[int(found.argmax())] if found.any() else None

        return first

    def pure(self, *arrays: Any, checked: bool = False) -> Outcome:
        """The values; without checks, what does not exist is filled.

        Inside of a transformation the caller says where the arrays lie. What the options spread over a mesh is constrained to
        lie so, unless the caller's mesh is manual or explicit.
        """
        placed, parameters = self.placement, self.parameters
        if placed is not None and placed.mesh is not None:
            constrains = placed.constrains()
            if not constrains or not placed.whole.is_fully_addressable:
                parameters = tuple(jnp.asarray(cast(Constant, node.op).array) for node in self.constants)
            if constrains:
                placed.require_even([array.shape for array in arrays])
                arrays = tuple(placed.constrained(arrays, placed.arguments))
                parameters = tuple(placed.constrained(parameters, placed.constants))
                outcome = self._pure(parameters, arrays, checked)
                return outcome._replace(results=tuple(placed.constrained(outcome.results, placed.outputs)))
        return self._pure(parameters, arrays, checked)

    def _pure(
        self,
        parameters: Sequence[Any],
        arrays: Sequence[Any],
        checked: bool,
        run: bool = False,
        guarded: frozenset[Node] = frozenset(),
    ) -> Outcome:
        graph = self.graph
        if self.rewrite is not None:
            graph = self.rewrite([array.shape for array in arrays], checked, run, guarded)
        cut = run and self.placement is None and platform(graph) == "cpu"
        return walk(graph, arrays, dict(zip(self.constants, parameters, strict=True)), checked=checked, cut=cut)

    def explain_failure(self, arrays: Sequence[Any], node: Node) -> str:
        """Why the check of an operation failed. Computes again what its last operand, the indices, follow from."""
        part = Graph(self.graph.arguments, [node.inputs[-1]], ["indices"], options=self.graph.options)

        def indices(parameters: Sequence[Any], *arrays: Any) -> Any:
            return walk(part, arrays, dict(zip(self.constants, parameters, strict=True)), checked=False).results[0]

        specs, _ = self.graph.specialize([array.shape for array in arrays])
        with self.modes():
            given = [jnp.asarray(array) for array in arrays]
            spread = self.placement is not None
            elements: Any = (
                self._jit(indices, self._whole)(*self.parameters, *given) if spread else indices(self.parameters, *given)
            )
        assert isinstance(node.op, CheckedOp)
        return node.op.explain(*[specs[value] for value in node.inputs[:-1]], np.asarray(elements))
