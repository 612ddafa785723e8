"""Where a program runs: on one device, or spread over a mesh of devices."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bnnsgraph.errors import ArgumentError, ParameterError
from bnnsgraph.frozen import Frozen, frozen
from bnnsgraph.graph import Constant, Graph, Node
from bnnsgraph.spec import Shape, format_shape
from bnnsgraph.xla import jax

if TYPE_CHECKING:
    import numpy.typing as npt


@frozen
class Placement(Frozen):
    """One ``jax.sharding.Sharding`` an argument and a constant that is a parameter; None for an output leaves it to XLA.

    Attributes:
        whole: the sharding of what every device has whole, as the flags of the checks.
        argument_names: for errors.
        output_names: for errors.
        arguments: in declaration order.
        constants: those that are parameters of the program.
        outputs: in return order.
    """

    whole: Any
    argument_names: tuple[str, ...]
    output_names: tuple[str, ...]
    arguments: tuple[Any, ...]
    constants: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @property
    def mesh(self) -> Any:
        """The mesh; None on a single device."""
        return getattr(self.whole, "mesh", None)

    def put(self, arrays: Sequence[Any]) -> list[Any]:
        """The arguments' arrays, moved where they are not there already."""
        return [
            array if getattr(array, "sharding", None) == sharding else self._moved(name, array, sharding)
            for name, array, sharding in zip(self.argument_names, arrays, self.arguments, strict=True)
        ]

    def _moved(self, name: str, array: Any, sharding: Any) -> Any:
        _require_even(sharding, name, array.shape)
        try:
            return jax.device_put(array, sharding)
        except AssertionError:
            if sharding.is_fully_addressable:
                raise
            raise ArgumentError(
                f"argument {name!r} must be the same array on every process, got arrays that differ; "
                "jax.make_array_from_process_local_data makes one array of every process's part"
            ) from None

    def put_constants(self, nodes: Sequence[Node]) -> tuple[Any, ...]:
        """The constants' elements on their devices. Each process puts its own part there."""
        return tuple(
            jax.device_put(_elements(node), sharding)
            if sharding.is_fully_addressable
            else _put_by_every_process(node, sharding, self.whole)
            for node, sharding in zip(nodes, self.constants, strict=True)
        )

    def require_even(self, arguments: Iterable[Shape], outputs: Iterable[Shape] | None = None) -> None:
        """Raise unless the sizes divide by the number of devices they are spread over."""
        for name, sharding, shape in zip(self.argument_names, self.arguments, arguments, strict=True):
            _require_even(sharding, name, shape)
        for name, sharding, shape in zip(self.output_names, self.outputs, outputs or (), strict=outputs is not None):
            _require_even(sharding, name, shape)

    def alone(self) -> contextlib.AbstractContextManager[object]:
        """Without the mesh that a caller set by ``jax.set_mesh``: JAX refuses a program for one mesh inside of another."""
        if self.mesh is None or jax.sharding.get_abstract_mesh().empty:
            return contextlib.nullcontext()
        return jax.sharding.use_abstract_mesh(self.mesh.abstract_mesh)

    def constrains(self) -> bool:
        """Whether a function may say where its values lie: not inside of ``shard_map``, nor where types say it."""
        around = jax.sharding.get_abstract_mesh()
        return self.mesh is not None and not (around.manual_axes or around.explicit_axes)

    def constrained(self, arrays: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
        """The arrays, spread as the options say, in whatever transformation of JAX is under way."""
        return [
            array if sharding in (None, self.whole) else jax.lax.with_sharding_constraint(array, sharding)
            for array, sharding in zip(arrays, shardings, strict=True)
        ]


def placed(
    graph: Graph, *, device: Any = None, mesh: jax.sharding.Mesh | None = None, shardings: Mapping[str, Any] | None = None
) -> Graph:
    """The same graph, to run elsewhere, such as one that :func:`load` read. Not in Apple's builder.

    Args:
        graph: the program; it stays as it is.
        device: as in :class:`CompileOptions`.
        mesh: as in :class:`CompileOptions`.
        shardings: as in :class:`CompileOptions`.

    >>> graph = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) * 2).graph
    >>> bg.Context(bg.placed(graph, device="cpu"))([1, 2])
    Array([2., 4.], dtype=float32)

    Raises:
        ParameterError: both a device and a mesh are given, or shardings without a mesh.
    """
    options = replace(graph.options, device=device, mesh=mesh, shardings=dict(shardings or {}))
    return Graph(graph.arguments, graph.results, graph.result_names, graph.updates, options)


def placement(graph: Graph, constants: Sequence[Node]) -> Placement | None:
    """What the options say about devices; None leaves everything to JAX.

    Raises:
        ParameterError: the device does not exist, or a sharding does not fit the mesh or the tensor.
    """
    options = graph.options
    names = graph.argument_names, graph.result_names
    if options.device is not None:
        one = jax.sharding.SingleDeviceSharding(_device(options.device))
        return Placement(one, *names, (one,) * len(graph.arguments), (one,) * len(constants), (None,) * len(graph.results))
    if options.mesh is None:
        return None
    mesh = _mesh(options.mesh)
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    shapes = [(name, value.spec.shape) for name, value in zip(names[0], graph.arguments, strict=True)]
    shapes += [(_name(node), node.outputs[0].shape) for node in graph.nodes if isinstance(node.op, Constant) and node.op.name]
    shapes += [(name, value.spec.shape) for name, value in zip(names[1], graph.results, strict=True)]
    known = list(dict.fromkeys(name for name, _ in shapes))
    unknown = [name for name in options.shardings if name not in known]
    if unknown:
        raise ParameterError(
            f"CompileOptions.shardings must name arguments, constants or outputs ({', '.join(known)}), got {unknown[0]!r}"
        )
    found = {name: _sharding(mesh, name, options.shardings[name], shape) for name, shape in shapes if name in options.shardings}
    return Placement(
        whole,
        *names,
        tuple(found.get(name, whole) for name in names[0]),
        tuple(found.get(_name(node), whole) for node in constants),
        tuple(found.get(name) for name in names[1]),
    )


def whole_beyond(graph: Graph) -> Callable[[Any, int], Any] | None:
    """``f(array, n)`` leaves the first n axes of an array to XLA and has the others whole on every device.

    None where there is nothing to spread over, or one axis alone, or the caller's mesh is manual or explicit.
    """
    if graph.options.mesh is None:
        return None
    mesh, around = _mesh(graph.options.mesh), jax.sharding.get_abstract_mesh()
    if sum(size > 1 for size in mesh.shape.values()) < 2 or around.manual_axes or around.explicit_axes:
        return None

    def kept(array: Any, count: int) -> Any:
        open_axes = [jax.sharding.PartitionSpec.UNCONSTRAINED] * min(count, array.ndim)
        spec = jax.sharding.PartitionSpec(*open_axes, *[None] * (array.ndim - len(open_axes)))
        return jax.lax.with_sharding_constraint(array, jax.sharding.NamedSharding(mesh, spec))

    return kept


def platform(graph: Graph) -> str:
    """The kind of device that the program runs on: ``"cpu"``, ``"gpu"``, ``"tpu"``."""
    options = graph.options
    if options.device is not None:
        return _device(options.device).platform
    return jax.default_backend() if options.mesh is None else _mesh(options.mesh).devices.flat[0].platform


def _elements(node: Node) -> npt.NDArray[Any]:
    assert isinstance(node.op, Constant)
    return node.op.array


def _name(node: Node) -> str:
    assert isinstance(node.op, Constant)
    return node.op.name or ""


def _put_by_every_process(node: Node, sharding: Any, whole: Any) -> Any:
    """The elements of a constant that every process recorded, after a look that all recorded the same."""
    import hashlib

    elements = _elements(node)
    digest = np.frombuffer(hashlib.sha256(elements.tobytes()).digest(), np.int32)
    everywhere = jax.sharding.NamedSharding(whole.mesh, jax.sharding.PartitionSpec(whole.mesh.axis_names))
    rows = jax.make_array_from_callback((whole.mesh.size, digest.size), everywhere, lambda _: digest[None])
    if not jax.jit(_equal_rows, out_shardings=whole)(rows):
        raise ParameterError(
            f"{node.op} must be the same on every process of the mesh, got other elements on some",
            f"recorded at {node.origin}:  {node.origin.text}",
        )
    return jax.make_array_from_callback(elements.shape, sharding, lambda index: elements[index])


def _equal_rows(rows: Any) -> Any:
    return (rows == rows[:1]).all()


def _device(device: Any) -> Any:
    if isinstance(device, jax.Device) and device in _devices(device.platform):
        return device
    kind, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    devices = _devices(kind)
    if not kind or not (number or "0").isdecimal() or int(number or 0) >= len(devices):
        known = ", ".join(f"{found.platform}:{index}" for index, found in enumerate(_devices(None)))
        raise ParameterError(f"CompileOptions.device must be a device of this process ({known}), got {device!r}")
    return devices[int(number or 0)]


def _devices(kind: str | None) -> list[Any]:
    with contextlib.suppress(RuntimeError):
        return cast("list[Any]", jax.local_devices(backend=kind))
    return []


def _mesh(mesh: Any) -> Any:
    """The mesh with automatic axes.

    ``jax.make_mesh`` makes explicit axes, under which every operation must be told the sharding of its result.
    """
    if not isinstance(mesh, jax.sharding.Mesh) or not mesh.size:
        raise ParameterError(f"CompileOptions.mesh must be a jax.sharding.Mesh of devices, got {mesh!r}")
    process = jax.process_index()
    if process not in {device.process_index for device in mesh.devices.flat}:
        raise ParameterError(f"CompileOptions.mesh must have a device of this process, which is number {process}, got {mesh!r}")
    return jax.sharding.Mesh(mesh.devices, mesh.axis_names)


def _sharding(mesh: Any, name: str, given: Any, shape: Shape) -> Any:
    if not isinstance(given, jax.sharding.PartitionSpec):
        raise ParameterError(f"the sharding of {name!r} must be a jax.sharding.PartitionSpec, got {given!r}")
    axes = [axis for part in given for axis in _axes(part)]
    unknown = [axis for axis in axes if axis not in mesh.axis_names]
    if unknown or len(set(axes)) < len(axes):
        got = f"the unknown axis {unknown[0]!r}" if unknown else "an axis twice"
        raise ParameterError(
            f"the sharding of {name!r} must use each axis of the mesh ({', '.join(mesh.axis_names)}) at most once, "
            f"got {got} in {given}"
        )
    if len(given) > len(shape):
        raise ParameterError(f"the sharding of {name!r} must have at most {len(shape)} parts, one an axis, got {given}")
    sharding = jax.sharding.NamedSharding(mesh, given)
    _require_even(sharding, name, shape)
    return sharding


def _axes(part: Any) -> tuple[Any, ...]:
    if part is None:
        return ()
    return tuple(cast("tuple[Any, ...]", part)) if isinstance(part, tuple) else (part,)


def _require_even(sharding: Any, name: str, shape: Shape) -> None:
    if not isinstance(sharding, jax.sharding.NamedSharding):
        return
    for axis, (part, size) in enumerate(zip(cast("Any", sharding.spec), shape, strict=False)):
        parts = 1
        for mesh_axis in _axes(part):
            parts *= sharding.mesh.shape[mesh_axis]
        if isinstance(size, int) and size % parts:
            raise ParameterError(
                f"the sharding of {name!r} must divide its axes evenly, got {size} elements on axis {axis} of "
                f"{format_shape(shape)} over {parts} devices"
            )
