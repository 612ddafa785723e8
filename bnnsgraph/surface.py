"""Apple's argument surface: outputs in return order, then inputs in declaration order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from bnnsgraph.buffers import BNNSTensor
from bnnsgraph.errors import ArgumentError, ShapeError, UnableToSetDynamicShapesError
from bnnsgraph.graph import Graph, argument_of
from bnnsgraph.reuse import require_fit
from bnnsgraph.running import Runner
from bnnsgraph.sizes import UNKNOWN, Size
from bnnsgraph.spec import Shape, TensorSpec, as_integer, as_shape, format_shape, is_static


class ArgumentSurface:
    """What :class:`bnnsgraph.Context` has in common with Apple's ``BNNSGraph.Context``."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._runner = Runner(graph)
        self._names = graph.argument_names
        self._set_shapes: list[Shape] = [value.spec.shape for value in graph.arguments]

    @property
    def function_count(self) -> int:
        """The number of functions (Swift ``functionCount``): always one."""
        return 1

    @property
    def function_names(self) -> list[str]:
        """Names of the functions (Swift ``functionNames``)."""
        return ["main"]

    def argument_count(self, for_function: str | None = None) -> int:
        """The number of outputs and inputs (Swift ``argumentCount(forFunction:)``)."""
        return len(self.argument_names(for_function))

    def argument_names(self, for_function: str | None = None) -> list[str]:
        """Names of the outputs, then of the inputs (Swift ``argumentNames(forFunction:)``)."""
        self._require_function(for_function)
        return [*self.graph.result_names, *self._names]

    def argument_position(self, argument: str, for_function: str | None = None) -> int:
        """The place of an argument in :meth:`argument_names` (Swift ``argumentPosition(forFunction:argument:)``)."""
        names = self.argument_names(for_function)
        if argument not in names:
            raise ArgumentError(f"the name of an argument must be one of {', '.join(names)}, got {argument!r}")
        return names.index(argument)

    def _require_function(self, name: str | None) -> None:
        if name is not None and name not in self.function_names:
            raise ArgumentError(f"the name of a function must be 'main', got {name!r}")

    def tensor(self, argument: str, fill_known_dynamic_shapes: bool = True, *, for_function: str | None = None) -> BNNSTensor:
        """What an argument looks like, without memory; unknown sizes are -1.

        Swift: ``tensor(forFunction:argument:fillKnownDynamicShapes:)``

        Args:
            argument: the name of an output or input.
            fill_known_dynamic_shapes: put in the sizes set by :meth:`set_batch_size` or :meth:`set_dynamic_shapes`.
            for_function: ``"main"`` or None.
        """
        position = self.argument_position(argument, for_function)
        spec = self._argument_specs(fill_known_dynamic_shapes)[position]
        shape = tuple(size if isinstance(size, int) else -1 for size in spec.shape)
        return BNNSTensor.described(argument, spec.dtype, shape)

    def allocate_tensor(
        self, argument: str, fill_known_dynamic_shapes: bool = True, *, for_function: str | None = None
    ) -> BNNSTensor:
        """An argument with memory of its own, filled with zeros.

        Swift: ``allocateTensor(forFunction:argument:fillKnownDynamicShapes:)``, which knows four element types; this knows all.

        Raises:
            ShapeError: a size is not known yet; set it first.
        """
        found = self.tensor(argument, fill_known_dynamic_shapes, for_function=for_function)
        if -1 in found.shape:
            raise ShapeError(
                f"the sizes of {argument!r} must be known to allocate it, got {format_shape(found.shape)}; "
                "call set_batch_size or set_dynamic_shapes first"
            )
        return BNNSTensor(np.zeros(found.shape, found.data_type.numpy), argument)

    def _argument_specs(self, fill: bool) -> list[TensorSpec]:
        """Specs of the outputs and inputs, with the sizes set so far."""
        inputs = [value.spec for value in self.graph.arguments]
        outputs = [value.spec for value in self.graph.results]
        if fill and all(is_static(shape) for shape in self._set_shapes):
            specs, _ = self.graph.specialize(self._set_shapes)
            inputs = [specs[value] for value in self.graph.arguments]
            outputs = [specs[value] for value in self.graph.results]
        elif fill:
            inputs = [spec.with_shape(shape) for spec, shape in zip(inputs, self._set_shapes, strict=True)]
        return [*outputs, *inputs]

    @property
    def check_for_nans_and_infinities(self) -> bool:
        """Whether every run looks for NaN and infinity in its values. Swift: ``checkForNaNsAndInfinities``

        A run that finds one raises :class:`NotFiniteError`, which names the first operation that made it out of finite
        operands, or the argument that held it, and writes nothing. Infinities among the constants are allowed. Each run is
        made twice.

        >>> root = bg.make_context(lambda b: b.argument("x", bg.Float32) ** 0.5)
        >>> root.check_for_nans_and_infinities = True
        >>> root(4.0)
        Array(2., dtype=float32)
        """
        return self._runner.check_finite

    @check_for_nans_and_infinities.setter
    def check_for_nans_and_infinities(self, value: bool) -> None:
        self._runner.check_finite = bool(value)

    def set_batch_size(self, batch_size: int, for_function: str | None = None) -> None:
        """Fix the flexible sizes, which must all be first axes, to one number. Swift: ``setBatchSize(_:forFunction:)``

        A negative number changes nothing.

        Raises:
            UnableToSetDynamicShapesError: a flexible size is on another axis.
        """
        self._require_function(for_function)
        size = as_integer(batch_size, "batch_size")
        if size < 0:
            return
        shapes: list[Shape] = []
        for value in self.graph.arguments:
            shape = value.spec.shape
            if not is_static(shape[1:]):
                raise UnableToSetDynamicShapesError(
                    f"set_batch_size: flexible sizes must be first axes, got {format_shape(shape)} "
                    f"for {argument_of(value).name!r}; "
                    "call set_dynamic_shapes",
                    f"declared at {value.node.origin}",
                )
            shapes.append((size, *shape[1:]) if shape and not isinstance(shape[0], int) else shape)
        self._adopt(shapes)

    def set_dynamic_shapes(self, shapes: Iterable[Sequence[int]], for_function: str | None = None) -> list[tuple[int, ...]]:
        """Fix the flexible sizes by one shape an argument, in the order of :meth:`argument_names`.

        Swift: ``setDynamicShapes(_:forFunction:)``

        Args:
            shapes: for outputs and inputs; an empty shape is worked out where that is possible.
            for_function: ``"main"`` or None.

        Returns:
            All the shapes, outputs included.

        Raises:
            UnableToSetDynamicShapesError: a shape contradicts the graph.
        """
        self._require_function(for_function)
        given = [as_shape(shape, "shapes") for shape in shapes]
        if len(given) != self.argument_count():
            raise UnableToSetDynamicShapesError(
                f"set_dynamic_shapes must be given {self.argument_count()} shapes "
                f"({', '.join(self.argument_names())}), got {len(given)}"
            )
        outputs, inputs = given[: len(self.graph.results)], given[len(self.graph.results) :]
        try:
            self._adopt(self._inferred(inputs))
            found = self._argument_specs(fill=True)
        except UnableToSetDynamicShapesError:
            raise
        except ShapeError as error:
            raise UnableToSetDynamicShapesError(error.reason, *error.details) from None
        for name, spec, shape in zip(self.graph.result_names, found, outputs, strict=False):
            if shape and shape != spec.shape:
                raise UnableToSetDynamicShapesError(
                    f"output {name!r} must have shape {format_shape(spec.shape)} for these inputs, got {format_shape(shape)}"
                )
        return [tuple(size if isinstance(size, int) else 0 for size in spec.shape) for spec in found]

    def _inferred(self, shapes: Sequence[Shape]) -> list[Shape]:
        """Shapes with the empty ones worked out from the named sizes of the others."""
        known: dict[str, int] = {}
        for value, shape in zip(self.graph.arguments, shapes, strict=True):
            for declared, actual in zip(value.spec.shape, shape, strict=False):
                if isinstance(declared, Size) and isinstance(actual, int) and repr(declared).isidentifier():
                    known[repr(declared)] = actual
        result: list[Shape] = []
        for value, shape in zip(self.graph.arguments, shapes, strict=True):
            if not shape:
                shape = tuple(
                    size.bind(known)
                    if isinstance(size, Size) and size is not UNKNOWN and size.names() <= known.keys()
                    else size
                    for size in value.spec.shape
                )
            if not is_static(shape):
                raise UnableToSetDynamicShapesError(
                    f"the sizes of {argument_of(value).name!r} must be given, got {format_shape(shape)}",
                    f"declared at {value.node.origin}",
                )
            result.append(shape)
        return result

    def _adopt(self, shapes: list[Shape]) -> None:
        if all(is_static(shape) for shape in shapes):
            self._runner.prepare(shapes, "sizes were set")
        self._set_shapes = shapes

    def execute_function(self, arguments: Sequence[Any] | Mapping[str, Any], function: str | None = None) -> None:
        """Run, and write the results into the arrays given. Swift: ``executeFunction(_:arguments:)``

        Args:
            arguments: NumPy arrays or :class:`BNNSTensor`: outputs in return order, then inputs in declaration order; or all
                by name. In-out arguments are written too. When the run fails, nothing is written.
            function: ``"main"`` or None.

        >>> double = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=[3]) * 2)
        >>> result = np.zeros(3, np.float32)
        >>> double.execute_function([result, np.float32([1, 2, 3])])
        >>> result
        array([2., 4., 6.], dtype=float32)

        Raises:
            ArgumentError: the number of arrays is wrong, or an output cannot be written to.
            ShapeError: an array has the wrong shape.
            DTypeError: an array has the wrong dtype.
        """
        self._require_function(function)
        names = self.argument_names()
        if isinstance(arguments, Mapping):
            unknown = [name for name in arguments if name not in names]
            missing = [name for name in names if name not in arguments]
            if unknown or missing:
                raise ArgumentError(f"arguments must be named {', '.join(names)}, got {', '.join(map(str, arguments))}")
            arguments = [arguments[name] for name in names]
        if len(arguments) != len(names):
            raise ArgumentError(f"arguments must be {len(names)} arrays ({', '.join(names)}), got {len(arguments)}")
        arrays = [argument.data if isinstance(argument, BNNSTensor) else argument for argument in arguments]
        count = len(self.graph.results)
        inputs = [self._runner.convert(index, array) for index, array in enumerate(arrays[count:])]
        entry = self._runner.prepare([array.shape for array in inputs], "first run with these sizes")
        targets = list(zip(names, arrays[:count], entry.outputs, strict=False))
        for value in self.graph.updates:
            index = self.graph.arguments.index(value)
            targets.append((self._names[index], arrays[count + index], value.spec.with_shape(inputs[index].shape)))
        writable = [_writable(name, target, spec) for name, target, spec in targets]
        for target, result in zip(writable, self._runner.run(entry, inputs), strict=False):
            np.copyto(target, np.asarray(result))


def _writable(name: str, target: Any, spec: TensorSpec) -> np.ndarray[Any, Any]:
    """The array that a result is to be written to."""
    if not isinstance(target, np.ndarray) or not target.flags.writeable:
        kind = "a read-only array" if isinstance(target, np.ndarray) else type(target).__name__
        raise ArgumentError(f"output {name!r} must be a NumPy array that can be written to, got {kind}")
    found = cast("np.ndarray[Any, Any]", target)
    require_fit(name, found, spec)
    return found
