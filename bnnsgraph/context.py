"""Contexts: graphs that run."""

from __future__ import annotations

import itertools
import os
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from numpy import ndarray

from bnnsgraph.builder import Builder
from bnnsgraph.compile import NotPreparedError, is_tracer
from bnnsgraph.errors import ParameterError
from bnnsgraph.files import write_atomically
from bnnsgraph.graph import Graph, argument_of
from bnnsgraph.inspecting import Inspection
from bnnsgraph.options import CompileOptions
from bnnsgraph.reuse import large_enough, memory, require_fits, several
from bnnsgraph.running import INTO, PLAIN, Compilation, Cost, passed
from bnnsgraph.spec import Shape, as_integer, bind_shape, is_static
from bnnsgraph.walking import checks
from bnnsgraph.xla import jnp

if TYPE_CHECKING:
    from jax.export import Exported

    from bnnsgraph.passes.editing import Rewrites
    from bnnsgraph.tensor import Tensor

    Results = Tensor[Any] | Sequence[Tensor[Any]] | Mapping[str, Tensor[Any]]


class Context(Inspection):
    """A graph that runs (Swift ``BNNSGraph.Context``). Made by :func:`make_context`, or of a graph: ``Context(load(path))``.

    Compiled at once when every size is known, unless ``compile_now`` is False; otherwise, and after a context was pickled, when
    it runs. A pickle holds the graph and the sizes that were set, and no compiled program.

    >>> double = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=[-1]) * 2)
    >>> double(x=np.float32([1, 2]))
    Array([2., 4.], dtype=float32)
    >>> double.argument_names()
    ['output_0', 'x']
    """

    def __init__(self, graph: Graph, *, compile_now: bool = True) -> None:
        super().__init__(graph)
        self._entries = self._runner.entries
        self._count = len(self._names)
        updated = [argument_of(value).name for value in graph.updates]
        fields = [*graph.result_names, *updated]
        self._returned = len(fields)
        self._package: Any = None if len(fields) == 1 else namedtuple("Results", fields)  # pyright: ignore[reportUntypedNamedTuple]
        if graph.is_static and compile_now:
            self._runner.prepare([value.spec.shape for value in graph.arguments], "every size is known")

    def __reduce__(self) -> tuple[Any, ...]:
        shapes = self._set_shapes if all(map(is_static, self._set_shapes)) else None
        return _unpickled, (self.graph, shapes, self.check_for_nans_and_infinities)

    # Running

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph: arrays by position (declaration order) or by name.

        Returns:
            One ``jax.Array``, or a named tuple of them: the outputs in return order, then the new values of in-out arguments.

        Raises:
            ArgumentError: an argument is missing, unknown or given twice.
            DTypeError: an array has another dtype than declared. Python numbers and lists are converted.
            ShapeError: a shape contradicts the declaration, or the sizes contradict an operation's rule.
            IndexOutOfBoundsError: an index is outside its axis, where the mode is ``"raise"``.
        """
        direct = self._runner.direct
        if direct is not None and not kwargs:  # a call costs microseconds; what does not fit takes the long way
            run, parameters, looks, kind, guards = direct
            for array in args:
                if type(array) is not kind and (type(array) is not ndarray or array.itemsize == 8):
                    break  # JAX would narrow 64 bits without a word
            else:
                try:
                    for guard in guards:
                        if not guard(args):
                            return self._call(args, kwargs)
                    values = run(*parameters, *args) if parameters else run(*args)
                    if looks is not None:
                        for _ in looks:
                            if values[-1].is_ready():
                                break
                    if looks is None or passed == values[-1]:
                        return values[0] if self._package is None else self._package(*values[: self._returned])
                except (NotPreparedError, TypeError, ValueError, AttributeError):
                    pass  # among others, values that a transformation around the call traces
        return self._call(args, kwargs)

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any], spare: Sequence[Any] = ()) -> Any:
        """The long way of a call, which is right for all; into the arrays ``spare`` if there are any."""
        arrays = args if not kwargs and len(args) == self._count else self._runner.arrange(args, kwargs)
        variant = INTO if spare else PLAIN
        try:
            entry = self._entries.get((variant, *[(array.shape, array.dtype) for array in arrays]))
        except (AttributeError, TypeError):
            entry = None
        if entry is None:
            arrays = [self._runner.convert(index, array) for index, array in enumerate(arrays)]
            if any(is_tracer(array) for array in arrays):
                return self.function(*arrays)
            reason = "first run into arrays of these sizes" if spare else "first run with these sizes"
            entry = self._runner.prepare([array.shape for array in arrays], reason, variant)
        try:
            return self._packed(self._runner.run(entry, arrays, spare))
        except Exception as error:  # looked into here, as it costs time
            if any(map(is_tracer, arrays)) or is_tracer(jnp.zeros(())):  # a trace cannot stop at a check
                return self.function(*arrays)
            if not isinstance(error, NotPreparedError):
                raise
        arrays = [self._runner.convert(index, array) for index, array in enumerate(arrays)]  # without weak types
        return self._packed(self._runner.run(entry, arrays, spare))

    def run_into(self, results: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Run, and write the results into the memory of earlier ones. Not in Apple's builder; see :meth:`execute_function`.

        A call returns new arrays, and a large new array costs more than filling it: the system clears its memory first. In a
        loop that is done with each result before the next, let the next one take its place:

        >>> double = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=[2]) * 2)
        >>> y = None
        >>> for x in np.float32([[1, 2], [3, 4]]):
        ...     y = double.run_into(y, x)
        >>> y
        Array([6., 8.], dtype=float32)

        The arrays in ``results`` cannot be used afterwards, as JAX's donated arrays. What NumPy shows of one stays as it is,
        and its result gets new memory. On the CPU so do results of less than 32 MiB, which the C library keeps for the next by
        itself: this is then a call, after which ``results`` are deleted. Otherwise a program of its own is compiled when it is
        first used. A result that changes a part of a tensor, as ``scatter`` does, is copied once more there: for such state
        declare an in-out argument.

        Args:
            results: what a call, or this, returned earlier, or other ``jax.Array`` of the outputs' shapes and dtypes, in
                return order; None for new memory.
            args: as of a call.
            kwargs: as of a call.

        Returns:
            The same as a call.

        Raises:
            ArgumentError: the number of results is wrong, or one is no ``jax.Array``, was used up before, or is an argument,
                too. Beyond these, the errors of a call.
            DTypeError: a result is of another dtype.
            ShapeError: a result has another shape.
        """
        if results is None:
            return self(*args, **kwargs)
        arrays = (*args, *kwargs.values())
        if any(map(is_tracer, (*several(results), *arrays))):  # a transformation decides about memory by itself
            return self.function(*args, **kwargs)
        given = memory(self.graph, results, arrays)
        large = large_enough(self.graph)
        if any(array.nbytes >= large for array in given):
            return self._call(args, kwargs, given)
        new = self(*args, **kwargs)
        made: Sequence[Any] = (new,) if self._package is None else new
        specs = [value.spec.with_shape(array.shape) for value, array in zip(self.graph.results, made, strict=False)]
        require_fits(self.graph, specs, given)
        for array in given if not any(map(is_tracer, made)) else ():
            array.delete()
        return new

    def _packed(self, values: Sequence[Any]) -> Any:
        return values[0] if self._package is None else self._package(*values[: self._returned])

    @property
    def compilations(self) -> list[Compilation]:
        """Every compilation so far, with its reason, shapes, named sizes and seconds."""
        return self._runner.compilations

    @property
    def rewrites(self) -> Rewrites:
        """What was changed, before it was compiled, so that only what is needed is computed. Not in Apple's builder.

        For the sizes that were compiled last, one record for each change, a line each when printed; the recorded graph stays
        as it is. Off with ``CompileOptions(optimize_graph=False)``. Values that are moved, integers and element-wise
        arithmetic are the same to the bit; functions that XLA approximates, such as ``tanh``, may differ in the last one, and
        sums and products by rounding, as XLA chooses its method by their shape.

        >>> def last(builder):
        ...     tokens = builder.argument("tokens", bg.Float32, shape=[128, 16])
        ...     return (tokens @ np.ones((16, 8))).gelu()[-1]
        >>> len(bg.make_context(last).rewrites[0].through)  # GELU and MatMul
        2
        """
        return self._runner.rewriter.last

    @property
    def function(self) -> Callable[..., Any]:
        """The graph as a pure JAX function of its arguments, for ``jax.grad``, ``jax.vmap`` and ``jax.jit``.

        A pure function cannot raise: where the mode is ``"raise"``, a slice gathered out of bounds is NaN (floats), the
        smallest value (signed), the largest (unsigned) or False, and an update scattered out of bounds is skipped.

        It runs where its caller says; what the options spread over a mesh is constrained to lie so, except in ``shard_map``.

        >>> square = bg.make_context(lambda b: b.argument("x", bg.Float32) ** 2)
        >>> import jax
        >>> jax.grad(square.function)(3.0)
        Array(6., dtype=float32, weak_type=True)
        """
        return self._pure

    def _pure(self, *args: Any, **kwargs: Any) -> Any:
        return self._packed(self._runner.pure(self._runner.arrange(args, kwargs)).values)

    @property
    def checked_function(self) -> Callable[..., Any]:
        """As :attr:`function`, with its checks made by ``jax.experimental.checkify``.

        To be called inside ``checkify.checkify``, which returns the error beside the result; ``jax.grad``, ``jax.vmap``,
        ``jax.jit`` and ``shard_map`` may stand inside or around. The error names the operation and its line. What the
        function returns beside an error is unspecified.

        >>> from jax.experimental import checkify
        >>> rows = bg.make_context(lambda b: b.constant(values=[1, 2, 3])[b.argument("i", bg.Int32)])
        >>> error, row = checkify.checkify(rows.checked_function)(np.int32(3))
        >>> print(error.get())  # doctest: +ELLIPSIS
        Gather(axis=0): an index is outside its axis, recorded at ...
        """
        return self._checked

    def _checked(self, *args: Any, **kwargs: Any) -> Any:
        from jax.experimental import checkify

        outcome = self._runner.pure(self._runner.arrange(args, kwargs), checked=True)
        for place, node in enumerate(checks(self.graph), 1):
            message = f"{node.op}: an index is outside its axis, recorded at {node.origin}:  {node.origin.text}"
            checkify.check(outcome.failure != place, message.replace("{", "{{").replace("}", "}}"))
        return self._packed(outcome.results + outcome.updates)

    # Compiling ahead, and taking the program elsewhere

    def warm_up(self, **sizes: Sequence[int] | int) -> None:
        """Compile ahead for every combination of the named sizes.

        >>> rows = bg.make_context(lambda b: b.argument("x", bg.Float32, ["batch", "length"]).sum([1]))
        >>> rows.warm_up(batch=[1, 8], length=[32, 128])
        >>> [compilation.sizes for compilation in rows.compilations]
        [{'batch': 1, 'length': 32}, {'batch': 1, 'length': 128}, {'batch': 8, 'length': 32}, {'batch': 8, 'length': 128}]

        Raises:
            ParameterError: a name is unknown or missing, or some size has no name.
        """
        from bnnsgraph.progress import tracked

        shapes = [value.spec.shape for value in self.graph.arguments]
        names = {name for shape in shapes for size in shape if not isinstance(size, int) for name in size.names()}
        if names != sizes.keys():
            raise ParameterError(
                f"warm_up must be given sizes for {', '.join(sorted(names)) or 'nothing'}, got {', '.join(sizes)}"
            )
        choices = [
            [as_integer(size, name) for size in (given if isinstance(given, Sequence) else [given])]
            for name, given in sizes.items()
        ]
        for chosen in tracked(list(itertools.product(*choices)), "warm-up"):
            bound = [bind_shape(shape, dict(zip(sizes, chosen, strict=True))) for shape in shapes]
            if not all(map(is_static, bound)):
                raise ParameterError("warm_up must know every size by name, got an argument with a size of -1")
            self._runner.prepare(bound, "warm-up")

    def export(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
        constraints: Sequence[str] = (),
    ) -> Exported:
        """The graph as a ``jax.export`` artifact, which loads and runs without this package.

        The artifact is :attr:`function` of the arguments by position, with flexible sizes still symbolic; it returns a
        dictionary of the outputs by name. It cannot raise for an index out of bounds; see :attr:`function`.

        Args:
            path: where to write the serialized artifact; an existing file is replaced only when that succeeds.
            platforms: some of ``"cpu"``, ``"cuda"``, ``"rocm"``, ``"tpu"``.
            constraints: what holds of the flexible sizes, such as ``["length >= 2"]`` where the graph has ``x[:, 1:-1]``.

        >>> double = bg.make_context(lambda b: {"twice": b.argument("x", bg.Float32, ["n"]) * 2})
        >>> double.export(platforms=["cpu"]).call(np.float32([1, 2]))
        {'twice': Array([2., 4.], dtype=float32)}

        Raises:
            ParameterError: a platform is unknown, or the constraints are not enough.
        """
        from bnnsgraph.exporting import export_program

        exported = export_program(self._runner.placed(), platforms, constraints)
        if path is not None:
            write_atomically(path, bytes(exported.serialize()))
        return exported

    def stablehlo(self, **sizes: int) -> str:
        """The program as StableHLO text, before XLA optimises it; ``sizes`` gives the named sizes.

        >>> text = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) * 2).stablehlo(n=4)
        >>> "stablehlo.multiply" in text
        True
        """
        return self._lowered(sizes).as_text()

    def cost(self, **sizes: int) -> Cost:
        """What XLA says one run costs for the named sizes: see :class:`Cost`.

        >>> bg.make_context(lambda b: b.argument("x", bg.Float32, [64, 64]) @ np.ones((64, 64))).cost().flops >= 2 * 64**3
        True
        """
        return self._runner.cost(self._lowered(sizes))

    def _lowered(self, sizes: Mapping[str, int]) -> Any:
        return self._runner.lowered([bind_shape(value.spec.shape, sizes) for value in self.graph.arguments])

    def __repr__(self) -> str:
        inputs = ", ".join(f"{argument_of(value).name}: {value.spec}" for value in self.graph.arguments)
        outputs = ", ".join(
            f"{name}: {value.spec}" for name, value in zip(self.graph.result_names, self.graph.results, strict=True)
        )
        return f"Context({inputs} -> {outputs}; {len(self.compilations)} compilations)"

    def _repr_html_(self) -> str:
        from bnnsgraph.display.html import graph_page

        return graph_page(self.graph, "Context", f"compilations: {len(self.compilations)}")


def _unpickled(graph: Graph, shapes: list[Shape] | None, check_for_nans_and_infinities: bool) -> Context:
    context = Context(graph, compile_now=False)
    if shapes is not None:
        context._set_shapes = shapes  # pyright: ignore[reportPrivateUsage]
    context.check_for_nans_and_infinities = check_for_nans_and_infinities
    return context


@overload
def make_context(block: Callable[[Builder], Results], *, options: CompileOptions | None = ...) -> Context: ...
@overload
def make_context(
    block: None = ..., *, options: CompileOptions | None = ...
) -> Callable[[Callable[[Builder], Results]], Context]: ...
def make_context(block: Callable[[Builder], Results] | None = None, *, options: CompileOptions | None = None) -> Any:
    """Record the graph that ``block`` builds, and make it ready to run. Swift: ``BNNSGraph.makeContext(options:_:)``

    ``block`` is called once, with a :class:`Builder`. It returns a tensor, several, or a dictionary of tensors by name. Also a
    decorator, with or without options. The graph is compiled at once when every size is known, and otherwise once for each set
    of sizes.

    >>> @bg.make_context
    ... def product_and_mean(builder):
    ...     x = builder.argument("x", bg.Float32, shape=[8])
    ...     y = builder.argument("y", bg.Float32, shape=[8])
    ...     product = x * y
    ...     return product, product.mean([0], keep_dimensions=True)
    >>> product, mean = product_and_mean(np.arange(1, 9, dtype=np.float32), np.arange(8, 0, -1, dtype=np.float32))
    >>> product.tolist(), mean.tolist()
    ([8.0, 14.0, 18.0, 20.0, 20.0, 18.0, 14.0, 8.0], [15.0])

    Raises:
        UnableToMakeGraphError: the block returned nothing, or something else than tensors.
        GraphError: an operation's rule is broken, at the line in the block.
    """
    if block is None:

        def decorate(block: Callable[[Builder], Results]) -> Context:
            return make_context(block, options=options)

        return decorate
    builder = Builder(options)
    return Context(builder.finish(block(builder)))


__all__ = ["Compilation", "Context", "make_context"]
