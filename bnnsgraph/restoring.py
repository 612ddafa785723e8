"""The way back of :mod:`bnnsgraph.describing`: a graph from its description, which nobody vouches for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bnnsgraph.builder import is_identifier
from bnnsgraph.dtypes import as_dtype
from bnnsgraph.elements import require_known
from bnnsgraph.errors import FileFormatError, GraphError
from bnnsgraph.graph import Argument, Constant, Graph, Intent, Node, Op, ShapedOp, Value, argument_of
from bnnsgraph.ops.rearrangement import Split
from bnnsgraph.options import CompileOptions
from bnnsgraph.origin import Origin
from bnnsgraph.records import OPERATIONS, decode, decode_fields, is_bounded
from bnnsgraph.safetensors_file import MOST_AXES, Array, members, parse
from bnnsgraph.sizes import Size
from bnnsgraph.spec import TensorSpec

NOT_SAVED = frozenset({"device", "mesh", "shardings", "compilation_cache"})
"""Compile options that name a place on one machine; a loaded graph has their defaults."""

MOST_TEXT = 400
"""The longest text of a source line that is kept."""


def restore(text: str, arrays: Mapping[str, Array]) -> Graph:
    """The graph that :func:`describe` described, everything checked.

    Raises:
        FileFormatError: the description contradicts itself, the arrays or the rules.
    """
    keys = {"nodes", "arguments", "results", "updates", "options", "origins"}
    try:
        found = members(parse(text), "the graph", required=keys)
        return _Restorer(found, arrays).graph()
    except FileFormatError:
        raise
    except GraphError as error:
        raise FileFormatError(error.reason, *error.details) from None
    except RecursionError:
        raise FileFormatError("the description must not be nested deeper than Python's stack allows") from None


class _Restorer:
    """Makes a graph from its description, from the first node to the last."""

    def __init__(self, found: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        self.found = found
        self.arrays = dict(arrays)
        self.values: list[tuple[Value, ...]] = []
        self.origins = [_origin(item) for item in _list(found["origins"], "origins")]

    def graph(self) -> Graph:
        """The whole graph."""
        for number, item in enumerate(_list(self.found["nodes"], "nodes")):
            self.add(number, item)
        if self.arrays:
            raise FileFormatError(f"every array must be a constant of the graph, got {', '.join(self.arrays)}")
        arguments = [self.argument(number) for number in _list(self.found["arguments"], "arguments")]
        declared = [values[0] for values in self.values if isinstance(values[0].node.op, Argument)]
        if len(arguments) != len(declared) or set(arguments) != set(declared):
            raise FileFormatError(f"arguments must be the {len(declared)} nodes that are, each once")
        names: list[str] = []
        results: list[Value] = []
        for item in _list(self.found["results"], "results"):
            name, place = _pair(item, "a result")
            names.append(name)
            results.append(self.value(place))
        if not results or any(not is_identifier(name) or name.startswith("_") for name in names):
            raise FileFormatError(f"results must have identifiers as names, got {names}")
        taken = [*names, *[argument_of(value).name for value in arguments]]
        if len(set(taken)) != len(taken):
            raise FileFormatError(f"names of arguments and results must differ, got {taken}")
        return Graph(arguments, results, names, self.updates(arguments), _options(self.found["options"]))

    def add(self, number: int, item: Any) -> None:
        """The next node."""
        subject = f"nodes[{number}]"
        found = members(item, subject, required={"op", "outputs", "origin"}, optional={"fields", "inputs", "group"})
        outputs = tuple(_spec(output) for output in _list(found["outputs"], f"{subject}.outputs"))
        inputs = tuple(self.value(place) for place in _list(found.get("inputs", []), f"{subject}.inputs"))
        group, line = found.get("group", ""), found["origin"]
        if not isinstance(group, str) or (group and not all(group.split("/"))):
            raise FileFormatError(f"{subject}.group must be names between slashes, got {group!r}")
        if type(line) is not int or not 0 <= line < len(self.origins):
            raise FileFormatError(f"{subject}.origin must be in [0, {len(self.origins)}), got {line!r}")
        try:
            op = self.operation(found["op"], found.get("fields", {}), outputs)
        except GraphError as error:
            raise FileFormatError(f"{subject}: {error.reason}") from None
        origin = self.origins[line]
        try:
            outputs = _outputs(op, inputs, outputs)
        except GraphError as error:
            details = f"recorded at {origin}:  {origin.text}"
            raise FileFormatError(f"{subject}, {op}: {error.reason}", *error.details, details) from None
        node = Node(op, inputs, outputs, origin, number, group)
        self.values.append(tuple(Value(node, index) for index in range(len(outputs))))

    def operation(self, name: Any, fields: Any, outputs: Sequence[TensorSpec]) -> Op:
        """The operation, which must be in the closed list."""
        kind = OPERATIONS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise FileFormatError(f"the operation must be one that this version knows, got {name!r}; is it a newer file?")
        if kind is Constant:
            return self.constant(members(fields, name, required={"array", "name"}))
        if kind is not Argument:
            return cast(Op, decode_fields(kind, fields))
        found = members(fields, name, required={"name", "intent"})
        intent = decode(found["intent"])
        if not is_identifier(found["name"]) or not isinstance(intent, Intent) or len(outputs) != 1:
            raise FileFormatError(f"an argument must have an identifier, an intent and a type, got {found}")
        return Argument(found["name"], outputs[0], intent)

    def constant(self, found: Mapping[str, Any]) -> Constant:
        """The constant of an array, which no other constant has."""
        label, name = found["array"], found["name"]
        array = self.arrays.pop(label, None) if isinstance(label, str) else None
        if array is None or not (name is None or isinstance(name, str)):
            raise FileFormatError(f"a constant must have an array of its own in the file, and a name, got {label!r}, {name!r}")
        return Constant(array, TensorSpec(as_dtype(array.dtype), array.shape), name)

    def argument(self, number: Any) -> Value:
        """The argument that is the node of that number."""
        value = self.value([number, 0])
        if not isinstance(value.node.op, Argument):
            raise FileFormatError(f"nodes[{number}] must be an argument, got {value.node.op}")
        return value

    def value(self, place: Any) -> Value:
        """A result of a node that is already there."""
        number, index = _pair(place, "a value")
        if type(number) is not int or not 0 <= number < len(self.values):
            raise FileFormatError(f"a value must belong to an earlier node, [0, {len(self.values)}), got {number!r}")
        if type(index) is not int or not 0 <= index < len(self.values[number]):
            raise FileFormatError(f"nodes[{number}] must have the result that is used, got {index!r}")
        return self.values[number][index]

    def updates(self, arguments: Sequence[Value]) -> dict[Value, Value]:
        """The value of each in-out argument after the run."""
        updates: dict[Value, Value] = {}
        for item in _list(self.found["updates"], "updates"):
            number, place = _pair(item, "an update")
            argument, value = self.argument(number), self.value(place)
            if value.spec != argument.spec:
                name = argument_of(argument).name
                raise FileFormatError(f"in-out argument {name!r} must keep its type, {argument.spec}, got {value.spec}")
            updates[argument] = value
        in_out = [value for value in arguments if argument_of(value).intent is Intent.INPUT_OUTPUT]
        if list(updates) != in_out or len(self.found["updates"]) != len(in_out):
            raise FileFormatError("updates must be those of the in-out arguments, in the order of the arguments")
        return updates


def _outputs(op: Op, inputs: Sequence[Value], written: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
    """What the type rule gives, run again. Types and fixed sizes in the file must agree; flexible sizes may be known better."""
    if isinstance(op, Split) and isinstance(op.parts, int) and op.parts != len(written):
        raise FileFormatError(f"parts must be the number of results, {len(written)}, got {op.parts}")
    if isinstance(op, ShapedOp) and inputs:
        require_known(inputs[-1], "the shape")
    try:
        found = op.infer(*[value.spec for value in inputs])
    except GraphError:
        raise
    except Exception as error:  # a rule need not foresee parameters that no method would give it
        raise FileFormatError(f"the rule must hold for the operands, got {type(error).__name__}: {error}") from None
    specs = found if isinstance(found, tuple) else (found,)
    if len(specs) != len(written) or not all(map(_agree, specs, written)):
        raise FileFormatError(f"the results must be {_listed(specs)}, got {_listed(written)}")
    for spec in specs:
        _require_bounds(spec)
    return specs


def _agree(spec: TensorSpec, written: TensorSpec) -> bool:
    sizes = zip(spec.shape, written.shape, strict=False)
    fixed = all(a == b for a, b in sizes if isinstance(a, int) and isinstance(b, int))
    return spec.dtype is written.dtype and spec.rank == written.rank and fixed


def _require_bounds(spec: TensorSpec) -> None:
    """Refuse sizes that no array has, and expressions that grow without end."""
    if spec.rank > MOST_AXES:
        raise FileFormatError(f"a tensor must have at most {MOST_AXES} axes, got {spec.rank}")
    for size in spec.shape:
        if (isinstance(size, int) and size < 0) or not is_bounded(size):
            raise FileFormatError(f"sizes must be in [0, 2**63), and so must the numbers in flexible ones, got {size}")


def _listed(specs: Sequence[TensorSpec]) -> str:
    return ", ".join(map(str, specs)) or "nothing"


def _list(value: Any, subject: str) -> list[Any]:
    if not isinstance(value, list):
        raise FileFormatError(f"{subject} must be a list, got {type(value).__name__}")
    return cast("list[Any]", value)


def _pair(value: Any, subject: str) -> tuple[Any, Any]:
    items = _list(value, subject)
    if len(items) != 2:
        raise FileFormatError(f"{subject} must be a list of two, got {len(items)}")
    return items[0], items[1]


def _spec(value: Any) -> TensorSpec:
    name, sizes = _pair(value, "a type")
    shape = decode(_list(sizes, "a shape"))
    if not all(isinstance(size, Size) or type(size) is int for size in shape):
        raise FileFormatError(f"sizes must be integers or flexible, got {sizes}")
    return TensorSpec(decode({"DType": name}), shape)


def _origin(value: Any) -> Origin:
    match value:
        case [str(file), int(line), str(function), str(text)] if type(line) is int and 0 <= line < 2**31:
            if len(text) <= MOST_TEXT and all(each.isprintable() for each in (file, function, text)):
                return Origin(file, line, function, text)
        case _:
            pass
    raise FileFormatError("an origin must be a file, a line, a function and a short text, all printable")


def _options(value: Any) -> CompileOptions:
    names = {field.name for field in dataclasses.fields(CompileOptions)} - NOT_SAVED
    given = {name: decode(each) for name, each in members(value, "options", optional=names).items()}
    try:
        return CompileOptions(**given)
    except GraphError:
        raise
    except Exception as error:
        raise FileFormatError(f"options must be those that this version knows, got {type(error).__name__}: {error}") from None
