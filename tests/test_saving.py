"""Graphs in files: what comes back, what is refused, and what a failure leaves behind."""
# ruff: noqa: E501 - rows of a table are read across

from __future__ import annotations

import enum
import errno
import io
import json
import math
import os
import random
import signal
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import MISSING
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

import bnnsgraph as bg
from bnnsgraph import describing, files, saving
from bnnsgraph.dtypes import ALL, Scalar
from bnnsgraph.graph import Argument, Constant, Op
from bnnsgraph.records import ENUMERATIONS, OPERATIONS, RECORDS, declared, decode, encode
from bnnsgraph.restoring import NOT_SAVED, restore
from bnnsgraph.safetensors_file import layout
from bnnsgraph.sizes import MOST_TERMS, UNKNOWN, Size, as_dimension
from tests.op_table import OpCase, rows
from tests.test_layers import operations, subclasses

ROWS = rows()


def record(row: OpCase, dtype: Any, *, flexible: bool) -> bg.Graph:
    """The row's first operands, without compiling anything."""
    builder = bg.Builder()
    rng = np.random.default_rng(5)
    arrays = [operand.array(rng, dtype) for operand in row.inputs[0]]
    shapes = [[f"n{size}" if flexible and size > 1 else size for size in array.shape] for array in arrays]
    tensors = [builder.argument(f"x{i}", a.dtype, s) for i, (a, s) in enumerate(zip(arrays, shapes, strict=True))]
    results = row.build(*tensors)
    return builder.finish(list(results) if isinstance(results, tuple) else results)


def recorded() -> Iterator[tuple[str, bg.Graph]]:
    """A graph of each row, and one with flexible sizes where it has them."""
    for row in ROWS:
        yield row.name, record(row, row.dtypes[0], flexible=False)
        if row.flexible is True:
            yield f"{row.name}, flexible", record(row, row.dtypes[-1], flexible=True)


def saved(graph: bg.Graph) -> bytes:
    return b"".join(saving.file_parts(graph))


def loaded(data: bytes) -> bg.Graph:
    return saving.read_graph(io.BytesIO(data))


def test_every_row_comes_back() -> None:
    """The listing, the digest and the bytes of the file are the same for each row of the op table, saved and loaded."""
    seen: set[type[Op]] = set()
    for name, graph in recorded():
        data = saved(graph)
        copied = loaded(data)
        assert str(copied) == str(graph), name
        assert copied == graph, name
        assert saved(copied) == data, name
        seen |= {type(node.op) for node in graph.nodes}
    assert seen >= set(OPERATIONS.values())


def mentioned(hint: Any) -> Iterator[type]:
    """The classes that an annotation mentions."""
    parts = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Literal:
        return
    if isinstance(hint, type) and not parts:
        yield hint
    for part in parts:
        yield from mentioned(part)


def test_the_closed_lists_name_everything() -> None:
    """Every operation of the package that no other derives from, and every kind of parameter that their fields declare."""
    concrete = {operation for operation in operations() if not list(subclasses(operation))}
    assert set(OPERATIONS.values()) == concrete
    assert all(operation.__name__ == name for name, operation in OPERATIONS.items())
    found: set[type] = set()
    for kind in [*OPERATIONS.values(), *RECORDS.values()]:
        if kind not in (Argument, Constant):
            for hint, _ in declared(kind).values():
                found |= set(mentioned(hint))
    choices = {kind for kind in found if issubclass(kind, enum.Enum)}
    assert choices | {bg.Intent, bg.OptimizationPreference} == set(ENUMERATIONS.values())
    assert found - choices - {int, float, bool, str, type(None), Size, Scalar} == set(RECORDS.values())


VERSION_1 = Path(__file__).with_name("format_version_1.txt")
"""What it is, its name, and in JSON its fields with their defaults (a list of one) or none (null)."""


def test_files_of_version_1_stay_readable() -> None:
    """What the first version could write keeps its meaning: names of fields stay, defaults too, and new fields have one."""
    for line in VERSION_1.read_text().splitlines():
        kind, name, text = line.split(" ", 2)
        known = declared((OPERATIONS if kind == "operation" else RECORDS)[name])
        written = {field: [encode(default)] if default is not MISSING else None for field, (_, default) in known.items()}
        old = json.loads(text)
        assert {field: written.get(field, "gone") for field in old} == old, name
        assert all(default is not None for field, default in written.items() if field not in old), name


# What comes back


def everything(b: bg.Builder) -> dict[str, Any]:
    """A small program with constants, flexible sizes, state, groups, a check, and parameters of many kinds."""
    x = b.argument("x", bg.Float32, ["batch", "2*length", -1])
    state = b.argument("state", bg.Float32, [2], bg.Intent.INPUT_OUTPUT)
    index = b.argument("index", bg.Int32)
    mask = b.argument("mask", bg.Bool, ["length"])
    table = b.constant("table", values=np.arange(6, dtype=np.float32).reshape(3, 2))
    with b.group("body/first"):
        row = table.gather(index, axis=0)
        part = x[:, 1::2]
    state[0] = row[1]
    counted = mask.select(b.arange("length"), b.constant("table", values=np.int32(3)))
    padded = x.pad(type=bg.Padding.constant(-0.0), padding=[(0, 1)])
    return {"row": row, "part": part, "flat": x.reshape(["batch", -1]), "counted": counted, "padded": padded}


EVERYTHING = bg.Builder()
GRAPH = EVERYTHING.finish(everything(EVERYTHING))
DATA = saved(GRAPH)


def test_everything_comes_back(tmp_path: Path) -> None:
    options = bg.CompileOptions(generate_debug_info=True, out_of_bounds=bg.fill(0.0), negative_indices="out_of_bounds")
    builder = bg.Builder(options)
    graph = builder.finish(everything(builder))
    path = tmp_path / "everything.bnnsgraph"
    bg.save(graph, path)
    found = bg.load(path)
    assert str(found) == str(graph)
    assert found.options == options
    assert found.argument_names == ("x", "state", "index", "mask")
    assert [value.node.op.name for value in found.updates if isinstance(value.node.op, Argument)] == ["state"]
    assert [node.group for node in found.nodes] == [node.group for node in graph.nodes]
    for one, other in zip(graph.nodes, found.nodes, strict=True):
        assert (one.outputs, other.origin.kept) == (other.outputs, one.origin.text)
        assert str(one.origin) == str(other.origin)
        assert other.origin.file == "test_saving.py"
    assert found.arguments[0].spec.shape[2] is UNKNOWN
    assert b"".join(saving.file_parts(found)) == path.read_bytes()
    assert str(tmp_path).encode() not in path.read_bytes()
    assert str(Path(__file__).parent).encode() not in path.read_bytes()


def test_a_loaded_graph_computes_the_same_and_names_the_same_lines(tmp_path: Path) -> None:
    context = bg.Context(GRAPH)
    bg.save(context, tmp_path / "graph")
    copied = bg.Context(bg.load(tmp_path / "graph"))
    x, state, mask = np.ones((2, 6, 1), np.float32), np.zeros(2, np.float32), np.array([True, False, True])
    for one, other in zip(context(x, state, np.int32(-1), mask), copied(x, state, np.int32(-1), mask), strict=True):
        assert one.dtype == other.dtype
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    messages: list[str] = []
    for each in (context, copied):
        with pytest.raises(bg.IndexOutOfBoundsError) as caught:
            each(x, state, np.int32(3), mask)
        messages.append("\n".join([caught.value.reason, *caught.value.details]))
    assert messages[0] == messages[1]
    assert "row = table.gather(index, axis=0)" in messages[1]


def constants() -> bg.Graph:
    """Arrays of every element type, with rank 0 and size 0, and the bits of NaN."""
    builder = bg.Builder()
    rng = np.random.default_rng(0)
    results: dict[str, Any] = {}
    for dtype in ALL:
        count = 3 * 5 * dtype.bits // 8
        raw = rng.integers(0, 2 if dtype is bg.Bool else 256, count, np.uint8)
        array = raw.view(dtype.numpy).reshape(3, 5)
        for name, values in (("rows", array), ("scalar", array[0, 0]), ("empty", array[:, :0])):
            results[f"{name}_{dtype.name}"] = builder.constant(f"{name} {dtype.name}", values=np.asarray(values)).tile(1)
    return builder.finish(results)


def test_constants_are_the_same_to_the_bit_and_safetensors_reads_them() -> None:
    graph = constants()
    data = saved(graph)
    wanted = {node.op.name: node.op for node in graph.nodes if isinstance(node.op, Constant)}
    found = {node.op.name: node.op for node in loaded(data).nodes if isinstance(node.op, Constant)}
    assert found.keys() == wanted.keys()
    foreign = dict(safetensors.deserialize(data))
    assert foreign.keys() == wanted.keys()
    for name, constant in found.items():
        array = wanted[name].array
        assert constant.spec == wanted[name].spec
        assert (constant.array.dtype, constant.array.shape) == (array.dtype, array.shape)
        assert constant.array.tobytes() == array.tobytes()
        assert constant.array.ctypes.data % array.itemsize == 0
        assert not constant.array.flags.writeable
        assert (bytes(foreign[str(name)]["data"]), foreign[str(name)]["shape"]) == (array.tobytes(), list(array.shape))
    assert loaded(data) == graph


def test_a_file_that_safetensors_wrote_is_read() -> None:
    text, arrays = describing.pickled(GRAPH)
    metadata = {"format": "bnnsgraph", "version": "1", "graph": text}
    assert loaded(safetensors.numpy.save(arrays, metadata)) == GRAPH


def test_names_of_constants_may_be_anything() -> None:
    builder = bg.Builder()
    names = ["__metadata__", "__metadata__", "constant_5", None, "\n\u20ac\U0001f600", ""]
    parts = [builder.constant(name, values=[number]) for number, name in enumerate(names)]
    graph = loaded(saved(builder.finish(builder.concatenate(parts, 0))))
    found = [node.op for node in graph.nodes if isinstance(node.op, Constant)]
    assert [(op.name, op.array.tolist()) for op in found] == [(name, [number]) for number, name in enumerate(names)]


@pytest.mark.parametrize(
    "value",
    [
        0, -0.0, 0.0, False, True, None, math.inf, -math.inf, 5e-324, 0.1, -(2**70), "\u20ac", (), (1, (2.0,)), bg.BFloat16, bg.Bool,
        bg.fill(1), bg.fill(1.0), bg.fill(True), bg.Padding.REFLECTION, bg.ConvolutionPadding.custom([1, 2]), UNKNOWN,
        bg.PoolingFunction.average(include_padding=True), bg.ScatterMode.ADD, bg.Activation.TANH, bg.SliceRange.fill_all,
    ],
)  # fmt: skip
def test_values_come_back(value: Any) -> None:
    if value is bg.SliceRange.fill_all:  # subscripts are recorded as something else, so no file holds one
        with pytest.raises(bg.FileFormatError, match="a parameter must be of a kind that files can hold"):
            encode(value)
        return
    found = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    assert (found is UNKNOWN) == (value is UNKNOWN)


def test_numbers_of_numpy_become_numbers() -> None:
    assert math.isnan(decode(encode(math.nan)))
    values = (np.float32(0.1), np.int64(-7), np.bool_(True), bg.BFloat16.numpy.type(1.5), np.float64(2))
    assert repr(decode(encode(values))) == repr((float(np.float32(0.1)), -7, True, 1.5, 2.0))


names = st.sampled_from(["a", "b", "length"])
sizes = st.recursive(
    names | st.integers(-3, 9).map(str),
    lambda part: (
        st.builds(lambda a, b, sign: f"({a} {sign} {b})", part, part, st.sampled_from("+-*"))
        | st.builds(lambda a, divisor: f"({a})//{divisor}", part, st.integers(1, 5))
    ),
    max_leaves=8,
)


@given(sizes)
@settings(max_examples=100, deadline=None)
def test_sizes_come_back(text: str) -> None:
    size = as_dimension(text)
    found = decode(json.loads(json.dumps(encode(size))))
    assert (type(found), found) == (type(size), size)
    assert found == as_dimension(repr(size))


def test_every_option_is_saved_or_named_as_not_saved() -> None:
    names = {field.name for field in bg.CompileOptions.__dataclass_fields__.values()}
    text, _ = describing.pickled(GRAPH)
    for name in names - NOT_SAVED:
        description = json.loads(text)
        description["options"] = {name: {"no": "kind"}}
        with pytest.raises(bg.FileFormatError, match="a parameter must be of a kind that this version knows, got 'no'"):
            restore(json.dumps(description), arrays_of(GRAPH))
    description = json.loads(text)
    description["options"] = dict.fromkeys(NOT_SAVED, 1)
    with pytest.raises(bg.FileFormatError, match="options must have the fields that this version knows"):
        restore(json.dumps(description), arrays_of(GRAPH))


# What is refused


def arrays_of(graph: bg.Graph) -> dict[str, np.ndarray]:
    return describing.pickled(graph)[1]


def small() -> bg.Graph:
    builder = bg.Builder()
    x = builder.argument("x", bg.Float32, ["n", 4])
    table = builder.constant("table", values=np.ones((4, 2), np.float32))
    first, second = (x @ table + 0.5).split(2, axis=1)
    mask = builder.constant("mask", values=[True, False])
    return builder.finish({"first": first.leaky_relu(0.1), "second": mask.select(second, 1.0)[:, 0]})


SMALL = small()
SMALL_DATA = saved(SMALL)
SMALL_TEXT, SMALL_ARRAYS = describing.pickled(SMALL)


def test_a_file_that_is_cut_off_is_refused() -> None:
    """At every byte, so at every border of a section too; and one that has a byte too many."""
    for count in range(len(SMALL_DATA)):
        with pytest.raises(bg.FileFormatError):
            loaded(SMALL_DATA[:count])
    with pytest.raises(bg.FileFormatError, match="the arrays must take the 42 bytes behind the header, got 43 bytes"):
        loaded(SMALL_DATA + b"\0")


def require_refused_or_sound(load: Callable[[], bg.Graph]) -> bool:
    """Whether the graph was accepted: then it is one, prints, and is saved and loaded again."""
    try:
        graph = load()
    except bg.FileFormatError:
        return False
    assert str(graph)
    assert loaded(saved(graph)) == graph
    return True


def test_a_file_with_changed_bytes_is_refused_or_a_sound_graph() -> None:
    rng = random.Random(7)
    accepted = 0
    for _ in range(800):
        data = bytearray(SMALL_DATA)
        for _ in range(rng.choice([1, 1, 1, 2, 5])):
            data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), ord(rng.choice('0123456789-[]{}",\\:ef'))])
        accepted += require_refused_or_sound(lambda data=bytes(data): loaded(data))
    assert 0 < accepted < 600  # a changed number in a constant is a graph too


JUNK: list[Any] = [
    None, True, -1, 0, 1, 2, 3, 7, 64, 2**31, 2**62, 2**63, 10**400, 0.5, -0.0, 1e308, "", "x", "first", "float32", "Add", "a/b",
    [], {}, [0, 0], [3, 0], [[1, 0]], [-1], [2**40], ["float32", [2]], [[]], {"Size": []}, {"Size": [[1, ["n"]]]}, {"Size": [[2, []]]},
    {"Size": [[1, [{"Quotient": [[[1, ["n"]]], 0]}]]]}, {"DType": "int8"}, {"DType": []}, {"float": "nan"}, {"Intent": "INPUT_OUTPUT"},
    {"Direction": []}, {"Span": {"start": 0, "stop": 1, "step": 0}}, {"Padding": {"kind": "x"}}, {"Fill": {"value": []}},
]  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every part of a JSON value."""
    if path:
        yield path
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], (*path, key))


def tampered(description: Any, rng: random.Random) -> None:
    """One part taken out, doubled, or replaced: by junk or by another part."""
    ways = list(places(description))
    *way, key = rng.choice(ways)
    owner = description
    for step in way:
        owner = owner[step]
    action = rng.randrange(5)
    if action == 0:
        del owner[key]
    elif action == 1 and isinstance(owner, list):
        owner.insert(key, owner[key])
    elif action == 2:
        other = description
        for step in rng.choice(ways):
            other = other[step]
        owner[key] = json.loads(json.dumps(other))
    elif action == 3 and isinstance(owner, dict):
        owner[rng.choice(["x", "axis", "fields", "group", "inputs"])] = rng.choice(JUNK)
    else:
        owner[key] = rng.choice(JUNK)


def test_a_description_with_changed_parts_is_refused_or_a_sound_graph() -> None:
    rng = random.Random(11)
    accepted = 0
    texts = [describing.pickled(graph) for graph in (SMALL, GRAPH)]
    for number in range(600):
        text, arrays = texts[number % 2]
        description = json.loads(text)
        for _ in range(rng.choice([1, 1, 1, 2])):
            tampered(description, rng)
        changed = json.dumps(description)
        accepted += require_refused_or_sound(lambda changed=changed, arrays=arrays: restore(changed, arrays))
    assert 0 < accepted < 300  # a changed label, line or harmless number


def changed(way: str, value: Any) -> Callable[[], bg.Graph]:
    """Loads the small graph with one part of its description replaced, such as ``nodes.3.op``."""
    description = json.loads(SMALL_TEXT)
    owner = description
    *steps, last = [int(step) if step.isdecimal() else step for step in way.split(".")]
    for step in steps:
        owner = owner[step]
    owner[last] = value
    return lambda: restore(json.dumps(description), SMALL_ARRAYS)


def node(op: str, **fields: Any) -> dict[str, Any]:
    return {"op": op, "fields": fields, "inputs": [[0, 0]], "outputs": [["float32", [2]]], "origin": 0}


SPLIT = next(number for number, each in enumerate(SMALL.nodes) if type(each.op).__name__ == "Split")


@pytest.mark.parametrize(
    ("way", "value", "words"),
    [
        ("nodes.0.op", "Evil", "nodes[0]: the operation must be one that this version knows, got 'Evil'; is it a newer file?"),
        ("nodes.0.op", "Unary", "nodes[0]: the operation must be one that this version knows, got 'Unary'"),
        ("nodes.0.size", 3, "nodes[0] must have the fields that this version knows, got the unknown size"),
        ("nodes.2", node("ReLU", alpha=1.0), "nodes[2]: ReLU must have the fields that this version knows, got the unknown alpha"),
        ("nodes.2", node("LeakyReLU"), "nodes[2]: LeakyReLU must have the fields that this version knows, got nothing for alpha"),
        ("nodes.2", node("LeakyReLU", alpha="1"), "nodes[2]: LeakyReLU.alpha must be of type float, got '1'"),
        ("nodes.2", node("LeakyReLU", alpha=True), "nodes[2]: LeakyReLU.alpha must be of type float, got True"),
        ("nodes.2", node("Softmax", axis=1.0), "nodes[2]: Softmax.axis must be of type int, got 1.0"),
        ("nodes.2", node("Softmax", axis=7), "nodes[2], Softmax(axis=7): axis must be in [-2, 2), got 7"),
        ("nodes.2", node("Cast", to={"DType": "float8"}), "nodes[2]: a DType must be one that this version knows, got 'float8'"),
        ("nodes.2", node("Cast", to="int8"), "nodes[2]: Cast.to must be of type type[bnnsgraph.dtypes.Scalar], got 'int8'"),
        ("nodes.2", node("Softmax", axis={"os": "x"}), "nodes[2]: a parameter must be of a kind that this version knows, got 'os'"),
        ("nodes.2", node("Add"), "nodes[2], Add(): the rule must hold for the operands, got TypeError"),
        ("nodes.2", node("ReLU"), "nodes[2], ReLU(): the results must be float32[n, 4], got float32[2]"),
        ("nodes.2", node("Tile", repetitions=[-1]), "nodes[2], Tile(repetitions=(-1,)): the results must be float32[n, -4]"),
        ("nodes.2", node("Tile", repetitions=[2**62, 2**62]), "the results must be float32["),
        (f"nodes.{SPLIT}.fields.parts", 10**12, "parts must be the number of results, 2, got 1000000000000"),
        ("nodes.2.inputs", [[0, 0], [2, 0]], "a value must belong to an earlier node, [0, 2), got 2"),
        ("nodes.2.inputs", [[0, 0], [-1, 0]], "a value must belong to an earlier node, [0, 2), got -1"),
        ("nodes.2.inputs", [[0, 0], [1, 1]], "nodes[1] must have the result that is used, got 1"),
        ("nodes.2.inputs", [[0, 0], [True, 0]], "a value must belong to an earlier node, [0, 2), got True"),
        ("nodes.2.origin", 99, "nodes[2].origin must be in [0,"),
        ("nodes.2.group", "a//b", "nodes[2].group must be names between slashes, got 'a//b'"),
        ("nodes.1.fields.array", "mask", "nodes[1], Constant('table', [True, False]): the results must be bool[2], got float32[4, 2]"),
        ("nodes.1.fields.array", "none", "a constant must have an array of its own in the file, and a name, got 'none', 'table'"),
        ("nodes.0.fields.name", "not a name", "an argument must have an identifier, an intent and a type"),
        ("nodes.0.outputs.0.1", [-5], "sizes must be in [0, 2**63), and so must the numbers in flexible ones, got -5"),
        ("nodes.0.outputs.0.1", [1] * 65, "a tensor must have at most 64 axes, got 65"),
        ("nodes.0.outputs.0.1.0", {"Size": [[1, ["n"] * 65]]}, "a term of a Size must be a number, 64 factors at most"),
        ("nodes.0.outputs.0.1.0", {"Size": [[1, ["import os"]]]}, "a factor of a Size must be a name or a quotient"),
        ("nodes.0.outputs.0.1.0", {"Size": [[0, []]] * (MOST_TERMS + 1)}, f"a Size must be a list of at most {MOST_TERMS} terms"),
        ("arguments", [], "arguments must be the 1 nodes that are, each once"),
        ("arguments", [0, 0], "arguments must be the 1 nodes that are, each once"),
        ("arguments", [1], "nodes[1] must be an argument, got Constant('table')"),
        ("results", [], "results must have identifiers as names, got []"),
        ("results.0.0", "class", "results must have identifiers as names, got ['class', 'second']"),
        ("results.0.0", "x", "names of arguments and results must differ, got ['x', 'second', 'x']"),
        ("updates", [[0, [0, 0]]], "updates must be those of the in-out arguments"),
        ("options", {"magic": 1}, "options must have the fields that this version knows, got the unknown magic"),
        ("options", {"use_single_thread": 1}, "CompileOptions.use_single_thread must be True or False, got 1"),
        ("origins.0.3", "\x1b[2J", "an origin must be a file, a line, a function and a short text, all printable"),
        ("extra", 1, "the graph must have the fields that this version knows, got the unknown extra"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(way: str, value: Any, words: str) -> None:
    with pytest.raises(bg.FileFormatError) as caught:
        changed(way, value)()
    assert words in caught.value.reason


def test_a_shape_from_an_argument_is_refused() -> None:
    """What the methods of the builder refuse beside the rules: a reshape to the elements of an argument."""
    builder = bg.Builder()
    x, y = builder.argument("x", bg.Int32, [2]), builder.argument("y", bg.Int32, [2])
    text, arrays = describing.pickled(builder.finish(x.reshape((y * 1).tensor_shape() * 2) + 1))
    description = json.loads(text)
    for each in description["nodes"]:
        if each["op"] == "ReshapeTo":
            each["inputs"][1] = [1, 0]
    with pytest.raises(bg.FileFormatError, match="the shape must follow from sizes and constants alone"):
        restore(json.dumps(description), arrays)


def file_with(header: Any, arrays: bytes = b"", *, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + arrays


def entry(dtype: Any, shape: Any, *offsets: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": list(offsets)}


META = {"format": "bnnsgraph", "version": "1", "graph": SMALL_TEXT}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "a safetensors file must be at least 8 bytes long, got 0"),
        (b"PK\3\4 a zip file, say", "the header must fit the file, 20 bytes, got a length of"),
        (file_with({}, length=2**63), "the header must fit the file, 10 bytes, got a length of 9223372036854775808 bytes"),
        (file_with(b"[]"), "the header must be a JSON object, got list"),
        (file_with(b"\xff{}"), "the description must be JSON in UTF-8"),
        (file_with(b"{"), "the description must be JSON in UTF-8"),
        (file_with(b"[" * 100_000), "the description must be JSON in UTF-8"),
        (file_with(b'{"a": NaN}'), "numbers must be finite, got NaN"),
        (file_with(b'{"a": {}, "a": {}}'), "keys must differ, got ['a', 'a']"),
        (file_with(b'{"a": 1' + b"0" * 5000 + b"}"), "the description must be JSON in UTF-8"),
        (file_with({"__metadata__": {"format": 1}}), "metadata must be texts, got int for 'format'"),
        (file_with({"a": {"dtype": "F32", "shape": []}}), "array 'a' must have the fields that this version knows"),
        (file_with({"a": entry("C64", [], 0, 8)}, b"12345678"), "array 'a': the element type must be one of F16, BF16, F32"),
        (file_with({"a": entry("U8", [1.0], 0, 1)}, b"1"), "array 'a': the shape must be at most 64 sizes, got [1.0]"),
        (file_with({"a": entry("U8", [-1, -1], 0, 1)}, b"1"), "array 'a': the shape must be at most 64 sizes, got [-1, -1]"),
        (file_with({"a": entry("U8", [0] * 65, 0, 0)}), "array 'a': the shape must be at most 64 sizes"),
        (file_with({"a": entry("U8", [2**62, 4], 0, 0)}), "array 'a': uint8[4611686018427387904, 4] must take 18446744073709551616"),
        (file_with({"a": entry("U8", [1], 1, 0)}, b"1"), "array 'a': uint8[1] must take 1 bytes, got -1"),
        (file_with({"a": entry("U8", [1], 0, True)}, b"1"), "array 'a': the offsets must be two integers of at least 0, got [0, True]"),
        (file_with({"a": entry("U8", [2], 0, 2), "b": entry("U8", [2], 1, 3)}, b"123"), "without gap or overlap, got 'b' at 1, not 2"),
        (file_with({"a": entry("U8", [1], 1, 2)}, b"12"), "without gap or overlap, got 'a' at 1, not 0"),
        (file_with({"a": entry("U8", [9], 0, 9)}, b"12"), "the arrays must take the 9 bytes behind the header, got 2 bytes"),
        (file_with({"a": entry("BOOL", [2], 0, 2)}, b"\1\2"), "array 'a': the bytes of truth values must be 0 or 1, got 2"),
        (file_with({}), "the format must be 'bnnsgraph', got None"),
        (safetensors.numpy.save({"a": np.zeros(3)}, {"format": "pt"}), "the format must be 'bnnsgraph', got 'pt'"),
        (b"".join(layout(SMALL_ARRAYS, META | {"version": "2"})), "the version must be from 1 to 1, got '2'; is it a newer file?"),
        (b"".join(layout(SMALL_ARRAYS, META | {"version": "9" * 5000})), "the version must be from 1 to 1, got '999"),
        (b"".join(layout(SMALL_ARRAYS, META | {"graph": "[" * 100_000})), "the description must be JSON in UTF-8"),
        (b"".join(layout(SMALL_ARRAYS | {"z": np.zeros(3)}, META)), "every array must be a constant of the graph, got z"),
    ],
    ids=range(29),
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_said(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.bnnsgraph"
    path.write_bytes(data)
    with pytest.raises(bg.FileFormatError) as caught:
        bg.load(path)
    assert words in caught.value.reason
    assert caught.value.reason.startswith(f"{path}: ")
    assert caught.value.origin.file == __file__


@pytest.mark.parametrize("depth", [10, 80, 160, 240, 50_000])
def test_a_deep_description_is_refused_or_sound(depth: int) -> None:
    size = '[[1,[{"Quotient":[' * depth + '[[1,["n"]],[1,[]]]' + ",2]}]],[1,[]]]" * depth
    description = json.loads(SMALL_TEXT)
    description["nodes"][0]["outputs"][0][1][0] = "HERE"
    text = json.dumps(description).replace('"HERE"', '{"Size":' + size + "}")
    assert require_refused_or_sound(lambda: restore(text, SMALL_ARRAYS)) == (depth == 10)


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    builder = bg.Builder()
    graph = builder.finish(builder.argument("x", bg.Float32, [2**63]) + 1)
    with pytest.raises(bg.FileFormatError, match=r"the graph cannot be saved: .*sizes must be in"):
        bg.save(graph, tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []


# What a failure leaves behind


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.bnnsgraph"
    bg.save(SMALL, path)

    class Full(io.FileIO):
        """A file on a disk that has room for 1,000 bytes."""

        def write(self, data: Any, /) -> int:
            if self.tell() + len(data) > 1000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(data)

    monkeypatch.setattr(files, "open", Full, raising=False)
    with pytest.raises(OSError, match="No space left on device") as caught:
        bg.save(GRAPH, path)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert bg.load(path) == SMALL


KILLED = """
import os, signal, sys
import numpy as np
import bnnsgraph as bg

builder = bg.Builder()
graph = builder.finish(builder.argument("x", bg.Float32, [2]) + np.zeros(2, np.float32))
assert bg.load(sys.argv[1]) != graph
assert "jax" not in sys.modules  # neither saving nor loading needs it
os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
bg.save(graph, sys.argv[1])
"""


def test_a_process_that_is_killed_while_saving_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.bnnsgraph"
    bg.save(SMALL, path)
    run = subprocess.run([sys.executable, "-c", KILLED, path], capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert (run.returncode, run.stderr) == (-signal.SIGKILL, "")
    assert path.read_bytes() == SMALL_DATA
    assert len(list(tmp_path.iterdir())) == 2  # and what was written so far, under a name of its own


def test_where_a_file_is_written(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.touch()
    link.symlink_to(target)
    bg.save(SMALL, link)
    assert link.is_symlink()
    assert bg.load(target) == bg.load(str(link)) == SMALL
    plain = tmp_path / "plain"
    plain.touch()
    assert target.stat().st_mode == plain.stat().st_mode
    with pytest.raises(FileNotFoundError) as caught:
        bg.save(SMALL, tmp_path / "none" / "model")
    assert caught.value.filename == str(tmp_path / "none" / "model")
    with pytest.raises(FileNotFoundError):
        bg.load(tmp_path / "none")
