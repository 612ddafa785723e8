"""Where a program runs: on one device, or spread over a mesh of devices."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from bnnsgraph.errors import ParameterError
from bnnsgraph.graph import Constant, Graph, Node, argument_of
from bnnsgraph.spec import Shape, TensorSpec, format_shape
from bnnsgraph.xla import jax


@dataclass(frozen=True)
class Placement:
    """One ``jax.sharding.Sharding`` an argument and a constant that is a parameter; None for an output leaves it to XLA."""

    arguments: tuple[Any, ...]
    constants: tuple[Any, ...]
    outputs: tuple[Any, ...]

    def put(self, arrays: Sequence[Any]) -> list[Any]:
        """The arguments' arrays, moved where they are not there already."""
        return [jax.device_put(array, sharding) for array, sharding in zip(arrays, self.arguments, strict=True)]


def placement(graph: Graph, constants: Sequence[Node]) -> Placement | None:
    """What the options say about devices; None leaves everything to JAX.

    Raises:
        ParameterError: the device does not exist, or a sharding does not fit the mesh or the tensor.
    """
    options = graph.options
    if options.device is not None:
        single = jax.sharding.SingleDeviceSharding(_device(options.device))
        return Placement(
            tuple(single for _ in graph.arguments), tuple(single for _ in constants), tuple(None for _ in graph.results)
        )
    if options.mesh is None:
        return None
    # jax.make_mesh makes explicit axes, under which every operation must be told the sharding of its result.
    mesh = jax.sharding.Mesh(options.mesh.devices, options.mesh.axis_names)
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    specs: dict[str, TensorSpec] = {argument_of(value).name: value.spec for value in graph.arguments}
    specs |= {name: node.outputs[0] for node in constants if (name := _name(node))}
    specs |= {name: value.spec for name, value in zip(graph.result_names, graph.results, strict=True)}
    unknown = [name for name in options.shardings if name not in specs]
    if unknown:
        raise ParameterError(
            f"CompileOptions.shardings must name arguments, constants or outputs ({', '.join(specs)}), got {unknown[0]!r}"
        )
    found = {name: _sharding(mesh, name, given, specs[name].shape) for name, given in options.shardings.items()}
    return Placement(
        tuple(found.get(argument_of(value).name, whole) for value in graph.arguments),
        tuple(found.get(_name(node), whole) for node in constants),
        tuple(found.get(name) for name in graph.result_names),
    )


def platform(graph: Graph) -> str:
    """The kind of device that the program runs on: ``"cpu"``, ``"gpu"``, ``"tpu"``."""
    options = graph.options
    if options.device is not None:
        return _device(options.device).platform
    return jax.default_backend() if options.mesh is None else options.mesh.devices.flat[0].platform


def _name(node: Node) -> str:
    assert isinstance(node.op, Constant)
    return node.op.name or ""


def _device(device: Any) -> Any:
    if isinstance(device, jax.Device):
        return device
    kind, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    devices: list[Any] = _devices(kind)
    if not kind or not (number or "0").isdecimal() or int(number or 0) >= len(devices):
        known = ", ".join(f"{found.platform}:{found.id}" for found in _devices(None))
        raise ParameterError(f"CompileOptions.device must be a device of this machine ({known}), got {device!r}")
    return devices[int(number or 0)]


def _devices(kind: str | None) -> list[Any]:
    with contextlib.suppress(RuntimeError):
        return cast("list[Any]", jax.devices(kind))
    return []


def require_divisible(placed: Placement, graph: Graph, shapes: Sequence[Shape]) -> None:
    """Raise unless each argument's axes divide by the number of devices they are spread over."""
    for value, sharding, shape in zip(graph.arguments, placed.arguments, shapes, strict=True):
        if isinstance(sharding, jax.sharding.NamedSharding):
            _require_fit(sharding.mesh, argument_of(value).name, sharding.spec, shape)


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
    _require_fit(mesh, name, given, shape)
    return jax.sharding.NamedSharding(mesh, given)


def _axes(part: Any) -> tuple[Any, ...]:
    if part is None:
        return ()
    return tuple(cast("tuple[Any, ...]", part)) if isinstance(part, tuple) else (part,)


def _require_fit(mesh: Any, name: str, given: Any, shape: Shape) -> None:
    for axis, (part, size) in enumerate(zip(given, shape, strict=False)):
        parts = 1
        for mesh_axis in _axes(part):
            parts *= mesh.shape[mesh_axis]
        if isinstance(size, int) and size % parts:
            raise ParameterError(
                f"the sharding of {name!r} must divide its axes evenly, got {size} elements on axis {axis} of "
                f"{format_shape(shape)} over {parts} devices"
            )
