"""Graphs as Swift: the emitted text against Apple's public symbols, and back into the same graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.dtypes import DType
from bnnsgraph.graph import Graph
from bnnsgraph.swift.emit import Writer, ported_graph, to_swift
from bnnsgraph.swift.portability import portability
from bnnsgraph.swift.porting import Ported
from bnnsgraph.swift.text import TYPES
from bnnsgraph.walking import walk
from tests.op_table import OpCase, rows
from tests.swift_subset import Rebuilder, calls, canonical, rebuild
from tests.test_every_op import as_tuple, compare, seed

ROWS = rows()


def graph_of(block: Callable[[bg.Builder], Any], options: bg.CompileOptions | None = None) -> Graph:
    builder = bg.Builder(options)
    return builder.finish(block(builder))


def run(graph: Graph, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results and new states of a graph, compiled without XLA's optimizations, which take longest here."""

    def function(*given: Any) -> Any:
        outcome = walk(graph, given, {}, checked=False)
        return outcome.results, outcome.updates

    compiled = jax.jit(function).lower(*arrays).compile(compiler_options={"xla_backend_optimization_level": "0"})
    results, updates = compiled(*arrays)
    return [np.asarray(value) for value in (*results, *updates)]


# Every operation of the table


def graphs(row: OpCase) -> Iterator[tuple[Graph, DType, bool]]:
    """The row in the types that Apple has: all inputs of the first, the first inputs of the others, and flexible sizes."""
    types = [dtype for dtype in row.dtypes if dtype in TYPES]
    for dtype in types:
        for number, inputs in enumerate(row.inputs):
            flexible = [True, False] if row.flexible is True and number == 0 and dtype is types[0] else [False]
            for each in flexible if number == 0 or dtype is types[0] else []:
                yield record(row, dtype, inputs, each), dtype, each


def record(row: OpCase, dtype: DType, inputs: Any, flexible: bool = False) -> Graph:
    builder = bg.Builder()
    tensors = [
        builder.argument(f"a{i}", operand.dtype or dtype, [f"n{n}" if flexible and n > 1 else n for n in operand.shape])
        for i, operand in enumerate(inputs)
    ]
    return builder.finish(list(as_tuple(row.build(*tensors))))


def rebuilt(ported: Ported) -> Graph:
    """The ported graph written and read again."""
    writer = Writer(ported, {})
    text = writer.source("graph")
    return rebuild(text, writer.weights.data())


NOT_PORTABLE = {
    "floor-divide": "what Apple's / does with",
    "cast-to-bfloat16": "Apple's builder has no element type BFloat16",
    "cast-to-float64": "Apple's builder has no element type Float64",
    "clip-beyond-float": "a bound must fit Float, got (-1e+300, 1e+300)",
    "einsum-ii->i": "a letter that occurs twice in one term",
    "einsum-iij,j->": "a letter that occurs twice in one term",
}
"""Rows that Apple's builder cannot do with fixed sizes; those of integers alone in the case of ``floor-divide``."""

FLEXIBLE = r"must be known, got|needs fixed|must be written where|needs the size of axis \d, which is flexible"


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_every_operation_comes_back_or_is_refused(row: OpCase) -> None:
    """The text holds Apple's calls alone, and read again it is the ported graph; what is refused is named with its line."""
    refused: list[str] = []
    for graph, _, flexible in graphs(row):
        ported = ported_graph(graph)
        if not ported.refused:
            assert canonical(rebuilt(ported)) == canonical(ported.graph)
            continue
        with pytest.raises(bg.UnsupportedOpsError) as caught:
            to_swift(graph)
        node, text = ported.refused[0]
        assert f"\n  {node.op}: {text}; recorded at {node.origin}" in str(caught.value)
        if not (flexible and re.search(FLEXIBLE, text)):
            refused.append(text)
    assert all(NOT_PORTABLE.get(row.name, "Apple's builder has no such operation") in text for text in refused)
    assert bool(refused) or row.name not in NOT_PORTABLE


def test_programs_that_apple_can_write_stay_as_they_are() -> None:
    """An operation that Apple has is not rewritten: it comes back with the parameters that it had."""
    kept = {
        "add", "fma", "select", "softmax", "conv-groups", "pooling-average", "lstm", "gru-after", "batch-norm-affine", "top-k",
        "scatter-add", "gather-nd", "prelu-numbers", "pooling-max", "concatenate", "matmul-bias", "cast-to-int32",
        "log-epsilon",
    }  # fmt: skip
    for row in ROWS:
        if row.name in kept:
            graph = record(row, bg.Float32 if bg.Float32 in row.dtypes else row.dtypes[0], row.inputs[0])
            kept.remove(row.name)
            assert canonical(rebuilt(ported_graph(graph))) == canonical(graph), row.name
    assert kept == set()


def test_rewritten_operations_give_the_values_of_the_table() -> None:
    """Each way of rewriting in floats, integers and truth values, against the rows' NumPy definitions, in one program."""
    builder = bg.Builder()
    arrays: list[np.ndarray] = []
    results: list[Any] = []
    wanted: list[tuple[OpCase, DType, np.ndarray]] = []
    seen: set[Any] = set()
    for row in ROWS:
        for dtype in (bg.Float32, bg.Int32, bg.Bool):
            if dtype not in row.dtypes:
                continue
            ported = ported_graph(record(row, dtype, row.inputs[0]))
            key = (dtype, *[(type(node.op), text) for node, text in ported.rewritten])
            if ported.refused or not ported.rewritten or (key in seen and not row.name.startswith("einsum")):
                continue
            seen.add(key)
            rng = seed(row)
            operands = [operand.array(rng, dtype) for operand in row.inputs[0]]
            tensors = [builder.argument(f"a{len(arrays) + i}", array.dtype, array.shape) for i, array in enumerate(operands)]
            results += as_tuple(row.build(*tensors))
            arrays += operands
            wide = [array.astype(np.float64) if array.dtype.kind == "f" else array for array in operands]
            wanted += [(row, dtype, np.asarray(value)) for value in as_tuple(row.reference(*wide))]
    assert len(seen) > 40
    found = run(ported_graph(builder.finish(results)).graph, *arrays)
    for (row, dtype, value), got in zip(wanted, found, strict=True):
        compare(row, got, value, dtype)


def test_the_rule_of_indices_is_kept_where_it_was_asked_for() -> None:
    """``clip`` and ``fill`` become arithmetic on the indices, negative ones included."""
    table = np.arange(24, dtype=np.float32).reshape(4, 3, 2)
    places = np.array([[0, -1, 9], [-9, 3, -4]], np.int32)
    vectors = np.array([[0, -1], [4, 0], [-4, -3], [1, 7]], np.int32)

    def block(b: bg.Builder) -> list[Any]:
        x, i, v = b.argument("x", bg.Float32, [4, 3, 2]), b.argument("i", bg.Int32, [2, 3]), b.argument("v", bg.Int32, [4, 2])
        return [
            x.gather(i, 0, out_of_bounds="clip"), x.gather(i, 1, out_of_bounds=bg.fill(-1)),
            x.gather_nd(v, out_of_bounds="clip"), x.gather_nd(v, out_of_bounds=bg.fill(-1)),
            x[:2].gather(i, 2, 1, out_of_bounds=bg.fill(5)), x[:2, :, 0].gather_along_axis(i, 1, out_of_bounds=bg.fill(-2)),
            x.scatter(x.gather(i, 0, out_of_bounds="clip"), i, bg.ScatterMode.ADD, 0, out_of_bounds="clip"),
        ]  # fmt: skip

    graph = graph_of(block)
    ported = ported_graph(graph)
    assert canonical(rebuilt(ported)) == canonical(ported.graph)
    arrays = table, places, vectors
    for got, value in zip(run(ported.graph, *arrays), run(graph, *arrays), strict=True):
        np.testing.assert_array_equal(got, value)
    with pytest.raises(bg.UnsupportedOpsError, match=r"updates cannot be skipped by their index; recorded at test_swift\.py"):
        to_swift(graph_of(lambda b: b.argument("x", bg.Float32, [4]).scatter(
            [1.0], b.argument("i", bg.Int32, [1]), bg.ScatterMode.ADD, 0, out_of_bounds="drop")))  # fmt: skip


# Apple's programs


def two_outputs(builder: bg.Builder) -> Any:
    x = builder.argument("x", bg.Float32, shape=[8])
    y = builder.argument("y", bg.Float32, shape=[8])
    product = x * y
    mean = product.mean(axes=[0], keep_dimensions=True)
    return [product, mean]


def flexible_sum(builder: bg.Builder) -> Any:
    x = builder.argument("x", bg.Float32, shape=[-1])
    y = builder.argument("y", bg.Float32, shape=[-1])
    z = x + y
    return [z]


def strong_typing(builder: bg.Builder) -> Any:
    low = builder.argument("low", bg.Float16, shape=[4])
    high = builder.argument("high", bg.Float16, shape=[4])
    bases = builder.argument("bases", bg.Float16, shape=[4])
    exponents = builder.argument("exponents", bg.Int32, shape=[4])
    mask = low < high
    result = bases.pow(y=exponents.cast(to=bg.Float16)) * mask.cast(to=bg.Float16)
    return [result]


def centre_crop(builder: bg.Builder) -> Any:
    source = builder.argument("source", bg.Float32, shape=[-1, -1, 3])
    crop = bg.SliceRange(start_index=16, end_index=-16)
    result = source[crop, crop, bg.SliceRange.fill_all]
    return [result]


def threshold(builder: bg.Builder) -> Any:
    source = builder.argument("source", bg.Float16, shape=[-1, -1, 1])
    mean = source.mean(axes=[0, 1], keep_dimensions=False)
    result = (source > mean).cast(to=bg.Float16)
    return [result]


def post_processing(builder: bg.Builder) -> Any:
    scores = builder.argument("scores", bg.Float32, shape=[-1])
    values, indices = scores.softmax(axis=0).top_k(3, axis=0, find_largest=True)
    return [values, indices]


def bit_crusher(builder: bg.Builder) -> Any:
    source = builder.argument("source", bg.Float16, shape=["n", 1, 1])
    resolution = builder.argument("resolution", bg.Float16, shape=[1, 1, 1])
    saturation_gain = builder.argument("saturationGain", bg.Float16, shape=[1, 1, 1])
    dry_wet = builder.argument("dryWet", bg.Float16, shape=[1, 1, 1])
    destination = (source * saturation_gain).tanh()
    destination = (destination * resolution).round() / resolution
    destination = destination * dry_wet + source * (1 - dry_wet)
    return [destination]


def masking(builder: bg.Builder) -> Any:
    mask = builder.argument("mask", bg.Bool, shape=[4])
    x = builder.argument("x", bg.Float32, shape=[4])
    result = mask.select(x, float("inf"))
    return [result]


ARGUMENT = "argument(name:dataType:shape:)"
PROGRAMS: dict[Callable[[bg.Builder], Any], tuple[list[str], str]] = {
    two_outputs: (
        [ARGUMENT] * 2 + ["*", "mean(axes:keepDimensions:)"],
        "let mean = product.mean(axes: [0], keepDimensions: true)",
    ),
    flexible_sum: ([ARGUMENT] * 2 + ["+"], 'let x = builder.argument(name: "x", dataType: Float.self, shape: [-1])'),
    strong_typing: (
        [ARGUMENT] * 4 + [".<", "cast(to:)", "pow(y:)", "cast(to:)", "*"],
        "let result = bases.pow(y: exponents.cast(to: Float16.self)) * mask.cast(to: Float16.self)",
    ),
    centre_crop: (
        [ARGUMENT, "SliceRange(startIndex:endIndex:)", "SliceRange(startIndex:endIndex:)", "subscript"],
        "source[SliceRange(startIndex: 16, endIndex: -16), SliceRange(startIndex: 16, endIndex: -16), SliceRange.fillAll]",
    ),
    threshold: (
        [ARGUMENT, "mean(axes:keepDimensions:)", ".>", "cast(to:)"], "let result = (source .> mean).cast(to: Float16.self)"
    ),
    post_processing: (
        [ARGUMENT, "softmax(axis:)", "topK(_:axis:findLargest:)"],
        "let (values, indices) = scores.softmax(axis: 0).topK(3, axis: 0, findLargest: true)",
    ),
    bit_crusher: (
        [ARGUMENT] * 4 + ["*", "tanh()", "*", "round()", "/", "*", "-", "*", "+"],
        "let destination2 = (destination * resolution).round() / resolution",
    ),
    masking: ([ARGUMENT] * 2 + ["select(_:_:)"], "let result = mask.select(x, Float.infinity)"),
}  # fmt: skip
"""The calls of Apple's listings in their order, an operator after its operands, and one line as it must read."""


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_apples_programs_are_written_with_apples_calls(program: Callable[[bg.Builder], Any]) -> None:
    graph = graph_of(program)
    text = graph.to_swift()
    wanted, line = PROGRAMS[program]
    assert calls(text) == wanted
    assert line in text
    assert canonical(rebuild(text)) == canonical(ported_graph(graph).graph)
    place = re.search(r"// (?:.*, )?test_swift.py:(\d+)\n", text)
    assert place
    assert int(place[1]) == program.__code__.co_firstlineno + 1


def test_swift_in_the_documents_has_apples_calls() -> None:
    root = Path(__file__).parent.parent
    texts = [path.read_text(encoding="utf-8") for path in (root / "docs").rglob("*.md")]
    blocks = [block for text in texts for block in re.findall(r"^```swift\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    assert [calls(f"func f() {{ {block} }}") for block in blocks] == [[ARGUMENT] * 2 + ["*", "mean(axes:keepDimensions:)"]]


def test_the_checks_notice_a_call_that_apple_does_not_have() -> None:
    text = graph_of(two_outputs).to_swift()
    for right, wrong in [
        ("axes: [0], keepDimensions: true", "keepDimensions: true, axes: [0]"),
        (".mean(", ".average("),
        ("keepDimensions: true", "keepDims: true"),
        (", keepDimensions: true", ""),
    ]:
        with pytest.raises(AssertionError, match="Apple has no Tensor"):
            rebuild(text.replace(right, wrong))
    assert canonical(rebuild(text.replace("x * y", "x + y"))) != canonical(graph_of(two_outputs))


# Files


def model(b: bg.Builder) -> Any:
    table = b.constant("table", values=np.arange(64, dtype=np.float32).reshape(16, 4) / 7)
    mask = np.arange(40) % 3 == 0
    i = b.argument("i", bg.Int32, ["batch", "length"])
    with b.group("encoder"):
        rows = table.gather(i, axis=0).reshape(["batch", "length", 2, 2])
        rows = rows.prelu(np.linspace(0, 1, 40)[:1])
    return rows, b.constant(values=mask).select(1, b.constant(values=np.linspace(0, 1, 40).astype(np.float16)))


def test_constants_are_read_from_the_file_beside_the_source(tmp_path: Path) -> None:
    graph = graph_of(model)
    text = graph.to_swift(tmp_path / "sentence_encoder.swift")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["sentence_encoder.swift", "sentence_encoder.weights"]
    assert (tmp_path / "sentence_encoder.swift").read_text() == text
    data = (tmp_path / "sentence_encoder.weights").read_bytes()
    assert canonical(rebuild(text, data)) == canonical(ported_graph(graph).graph)
    assert "// sentence_encoder.weights, 400 bytes, little endian, row-major:" in text
    rows = re.findall(r"^//   (\d+) +(\d+) +(\w+) +(\[.*?\])(?:  (\w+))?$", text, re.MULTILINE)
    assert rows == [
        ("0", "64", "Float", "[16, 4]", "table"),
        ("256", "40", "Bool", "[40]", ""),
        ("320", "40", "Float16", "[40]", ""),
    ]
    assert np.frombuffer(data, np.float32, 64).tolist() == (np.arange(64, dtype=np.float32) / 7).tolist()
    assert "func makeSentenceEncoder(weights url: URL) throws -> BNNSGraph.Context {" in text
    assert "        // encoder\n" in text
    assert (
        graph.to_swift().replace("graph.weights", "sentence_encoder.weights").replace("makeGraph", "makeSentenceEncoder")
        == text
    )


def test_a_path_that_is_no_swift_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(bg.ParameterError, match=r"path must end with .swift, got '.*model.txt'"):
        graph_of(two_outputs).to_swift(str(tmp_path / "model.txt"))
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_of_a_graph_that_is_refused(tmp_path: Path) -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [3, 3])
        wide = x.cast(to=bg.Float64)
        return wide, b.einsum("ii->i", x)

    with pytest.raises(bg.UnsupportedOpsError) as caught:
        graph_of(block).to_swift(tmp_path / "model.swift")
    line = block.__code__.co_firstlineno
    reason, first, second, last = str(caught.value).splitlines()
    assert reason == "to_swift: every operation must exist in Apple's builder, got 2 without a counterpart"
    assert first == (
        f"  Cast(to=Float64): Apple's builder has no element type Float64; "
        f"recorded at test_swift.py:{line + 2} (block):  wide = x.cast(to=bg.Float64)"
    )
    assert second.startswith("  Einsum(equation='ii->i'): a letter that occurs twice")
    assert "test_swift.py" in last
    assert list(tmp_path.iterdir()) == []


# Details of the text


def test_state_is_assigned_in_place() -> None:
    def block(b: bg.Builder) -> Any:
        state = b.argument("state", bg.Float32, [4, 2], intent=bg.Intent.INPUT_OUTPUT)
        before = state + 1
        state[1:3] = before[:2] * 2
        state[0] = 5
        state[::2, 1] = [7, 8]
        return before

    graph = graph_of(block)
    text = graph.to_swift()
    assert "var state = builder.argument(" in text
    assert "intent: .inputOutput)" in text
    assert "state[1..<3, SliceRange.fillAll] = before[0..<2, SliceRange.fillAll] * Float(2)" in text
    ported = ported_graph(graph).graph
    assert canonical(rebuild(text)) == canonical(ported)
    x = np.ones((4, 2), np.float32)
    changed = np.array([[5, 7], [4, 4], [4, 8], [1, 1]], np.float32)
    for got, wanted in zip(run(ported, x), (x + 1, changed), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_old_state_keeps_a_name() -> None:
    def block(b: bg.Builder) -> Any:
        state = b.argument("state", bg.Float32, [4], intent=bg.Intent.INPUT_OUTPUT)
        old = state[:]
        copy = state.update[0:1]([9])
        state[1:2] = [3]
        return old, copy

    graph = graph_of(block)
    assert canonical(rebuild(graph.to_swift())) == canonical(ported_graph(graph).graph)


def test_arrays_of_one_number_are_short() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, [2, 40])
        zeros = np.zeros(40, np.float32)
        signed = np.where(np.arange(40) % 2, zeros, -zeros)
        return x.layer_norm(np.ones(40), zeros, axes=[1]) + signed + b.constant(values=np.full((2, 40), 7, np.float32))

    graph = graph_of(block)
    text = graph.to_swift()
    assert "weight: [Float](repeating: 1, count: 40)," in text
    assert "builder.constant(values: [Float](repeating: 7, count: 80), shape: [2, 40])" in text
    assert "// graph.weights, 160 bytes" in text
    data = np.where(np.arange(40) % 2, np.float32(0), np.float32(-0.0)).tobytes()
    assert canonical(rebuild(text, data)) == canonical(ported_graph(graph).graph)


def test_sizes_are_read_from_the_arguments_once() -> None:
    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, ["batch", "length", 6])
        y = x.reshape(["batch", "length", 2, 3]) * 2
        return x.reshape(["batch", "length", 2, 3]), y.reshape(["2*batch", "length", 3]), y.reshape([-1, "length"])

    graph = graph_of(block)
    text = graph.to_swift()
    assert text.count("let shape = builder.concatenate(") == text.count("let shape2 = ") == text.count("let shape3 = ") == 1
    assert text.count(".reshape(to: shape)") == 2
    ported = ported_graph(graph).graph
    assert canonical(rebuild(text)) == canonical(ported)
    x = np.arange(48, dtype=np.float32).reshape(2, 4, 6)
    shapes = (2, 4, 2, 3), (4, 4, 3), (12, 4)
    for got, shape, factor in zip(run(ported, x), shapes, (1, 2, 2), strict=True):
        np.testing.assert_array_equal(got, (x * factor).reshape(shape))
    quotient = graph_of(lambda b: b.argument("x", bg.Float32, ["2*n", "2*m"]).reshape(["n", 2, 2, "m"]))
    with pytest.raises(bg.UnsupportedOpsError, match="no argument has an axis of size m, to read it from while the graph runs"):
        quotient.to_swift()


def test_numbers_and_words_of_swift() -> None:
    def block(b: bg.Builder) -> Any:
        repeat = b.argument("in_", bg.Float32, [3])
        self = repeat.clip(to=(-2, -1)) + repeat.clip(to=(-np.inf, 3)) + repeat.max(-0.0).min(np.nan)
        return (self + 1e-5).log(1e-12) - 16777217, repeat.log(), repeat.cast(bg.Int64) * 2**40, repeat.cast(bg.Bool) ^ True

    graph = graph_of(block)
    text = graph.to_swift()
    for part in ("clip(to: -2 ... -1)", "clip(to: -Float.infinity...3)", "Float(-0.0)", "Float.nan", "log(epsilon: 1e-12)",
                 ".log()", "Float(1e-05)", "Float(16777216)", "Int64(1099511627776)",
                 "builder.constant(value: true)"):  # fmt: skip
        assert part in text
    assert "let self_ = (in_.clip" in text
    assert canonical(rebuild(text)) == canonical(ported_graph(graph).graph)


def test_constants_alone_are_tensors() -> None:
    """Two numbers would be added by Swift itself."""

    def block(b: bg.Builder) -> Any:
        one, mask = b.constant(value=1.0), b.constant(value=True)
        return one + 2, mask.select(one * 3, 4.0), mask.select(b.constant(value=5), 6), b.constant(values=[1.0, 2.0]) - 1

    graph = graph_of(block)
    text = graph.to_swift()
    assert "= builder.constant(values: [1, 2] as [Float]) - Float(1)" in text
    assert ".select(builder.constant(value: Int32(5)), builder.constant(value: Int32(6)))" in text
    assert canonical(rebuild(text)) == canonical(ported_graph(graph).graph)
    alone = graph_of(lambda b: b.constant(value=1.0) + 2).to_swift()
    assert "let output0 = builder.constant(value: Float(1)) + Float(2)" in alone


def test_comments_hold_one_line() -> None:
    def block(b: bg.Builder) -> Any:
        with b.group("first\nreturn []"):
            return b.argument("x", bg.Float32, [40]) + b.constant("a\nb", values=np.arange(40, dtype=np.float32))

    text = graph_of(block).to_swift()
    assert "        // first return []\n" in text
    assert "[40]  a b\n" in text
    assert 'name: "a\\u{a}b"' in text


def test_options_of_apple_are_written() -> None:
    options = bg.CompileOptions(use_single_thread=True, out_of_bounds="clip")
    text = graph_of(two_outputs, options).to_swift()
    flags = "useSingleThread: true, generateDebugInfo: false, optimizationPreference: .performance"
    assert f"makeContext(options: BNNSGraph.CompileOptions({flags})) {{ builder in" in text
    assert rebuild(text).options == bg.CompileOptions(use_single_thread=True)


# What differs


def test_portability_tells_operation_line_and_difference() -> None:
    def block(b: bg.Builder) -> Any:
        table = b.argument("table", bg.Float32, [100, 8])
        i = b.argument("i", bg.Int64, ["batch"])
        rows = table.gather(i, axis=0)
        best = -rows.max(0)
        return best.cast(to=bg.Float64), table.gather([-1], axis=0)

    found = portability(graph_of(block))
    first = block.__code__.co_firstlineno
    listed = [(each.kind, each.operation, each.origin.line - first, each.what) for each in found]
    assert listed == [
        ("differs", "Argument i", 2, "axes of one name (batch) have one size here; there -1 ties none together"),
        ("differs", "Argument i", 2, "allocateTensor gives no memory for int64; give the tensor memory of its own"),
        ("differs", "Gather(axis=0)", 3, "indices are cast from int64 to Int32 and those that it does not hold wrap"),
        ("differs", "Gather(axis=0)", 3,
         "negative indices count from the end here; Core ML has them out of bounds from iOS 17"),
        ("differs", "Gather(axis=0)", 3, "an index outside its axis is an error here; in Core ML the result is undefined"),
        ("differs", "Maximum()", 4,
         "NaN of either operand is the result here; Core ML compares, and a NaN on the left gives the right"),
        ("rewritten", "Negate()", 4, "x * -1, or 0 - x of unsigned integers"),
        ("refused", "Cast(to=Float64)", 5, "Apple's builder has no element type Float64"),
    ]  # fmt: skip
    assert not found.is_portable
    lines = str(found).splitlines()
    assert len(lines) == len(found)
    assert re.fullmatch(rf"rewritten  Negate\(\) +test_swift.py:{first + 4} +x \* -1, or .*", lines[6])


def test_a_program_without_differences() -> None:
    found = portability(graph_of(two_outputs))
    assert found == ()
    assert found.is_portable
    assert str(found) == "nothing differs on Apple's side"


def test_every_open_point_has_its_words() -> None:
    """The rows of the table through ``portability``: each rule of differences says something about one of them."""
    words: set[str] = set()
    for row in ROWS:
        dtype = next(dtype for dtype in row.dtypes if dtype in TYPES) if set(row.dtypes) & TYPES.keys() else None
        if dtype is not None:
            words |= {each.what for each in portability(record(row, dtype, row.inputs[0])) if each.kind == "differs"}
    for part in ("NaN", "sign is that of the divisor", "Apple gives no formula", "reversed sequence", "reset gate",
                 "i, f, o, g", "hardSigmoid", "last axis", "last three axes", "axis 1", "output_padding", "negative indices",
                 "old / update", "the last stays", "of equal elements", "equal bounds", "become its ends"):  # fmt: skip
        assert any(part in each for each in words), part


def test_rebuilding_follows_assignments_of_variables() -> None:
    """The reader keeps values apart that share a name for a while."""
    rebuilder = Rebuilder()
    graph = rebuilder.run(
        'makeContext { builder in let x = builder.argument(name: "x", dataType: Float.self, shape: [2]) var y = x '
        "y[0..<1] = x[1..<2] return [x, y] } }"
    )
    assert [type(value.node.op).__name__ for value in graph.results] == ["Argument", "SliceUpdate"]
