"""Each row of the op table through all checks; see ``op_table.py``."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.compile import x64
from bnnsgraph.context import Context
from bnnsgraph.dtypes import DType, Floating, as_dtype
from bnnsgraph.elements import settled
from bnnsgraph.graph import Argument, Constant, Op
from bnnsgraph.walking import walk
from tests.op_table import OpCase, rows

ROWS = rows()


def as_tuple(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)


def seed(row: OpCase) -> np.random.Generator:
    return np.random.default_rng([ord(letter) for letter in row.name])


class Recorded:
    """A row recorded once, its input sets side by side in one graph, so that it compiles once.

    The first set is run in every dtype, the others (rank 0, size 0, broadcasting) in two: the first, and float32 or the last.
    """

    def __init__(self, row: OpCase, dtypes: list[DType], flexible: bool = False, sets: int = 99) -> None:
        self.arrays: list[np.ndarray] = []
        self.expected: list[np.ndarray] = []
        self.dtypes: list[DType] = []
        rng = seed(row)
        common = bg.Float32 if bg.Float32 in row.dtypes else row.dtypes[-1]

        def block(builder: bg.Builder) -> list[Any]:
            results: list[Any] = []
            for dtype in dtypes:
                for number, inputs in enumerate(row.inputs[:sets]):
                    if number and len(dtypes) > 1 and dtype not in (row.dtypes[0], common):
                        continue
                    arrays = [operand.array(rng, dtype) for operand in inputs]
                    tensors = [
                        builder.argument(
                            f"{dtype.name}_{number}_{index}",
                            as_dtype(array.dtype),
                            [f"n{size}" if flexible and size > 1 else size for size in array.shape],
                        )
                        for index, array in enumerate(arrays)
                    ]
                    got = as_tuple(row.build(*tensors))
                    wide = [array.astype(np.float64) if array.dtype.kind in "fV" else array for array in arrays]
                    with np.errstate(all="ignore"):
                        wanted = as_tuple(row.reference(*wide))
                    assert len(got) == len(wanted)
                    results += got
                    self.arrays += arrays
                    self.expected += [np.asarray(value) for value in wanted]
                    self.dtypes += [dtype] * len(got)
            return results

        builder = bg.Builder()
        self.graph = builder.finish(block(builder))

    @functools.cached_property
    def context(self) -> Context:
        """The graph, compiled when a test runs it."""
        return Context(self.graph)


@functools.cache
def recorded(name: str, wide: bool, flexible: bool = False) -> Recorded | None:
    """Graphs with and without 64-bit types are kept apart, because they run in different modes of JAX."""
    row = next(row for row in ROWS if row.name == name)
    dtypes = [dtype for dtype in row.dtypes if (dtype.bits == 64) == wide]
    if flexible:
        dtypes = dtypes[-1:]
    return Recorded(row, dtypes, flexible) if dtypes else None


def further() -> set[str]:
    """Rows whose operations all stand in rows before them: another behaviour of the same operations.

    Their values are compared like all others; their 64-bit types, gradients, flexible sizes and runs op by op are part of
    the long suite.
    """
    seen: set[type[Op]] = set()
    names: set[str] = set()
    for row in ROWS:
        operations = {type(node.op) for node in Recorded(row, list(row.dtypes[:1]), sets=1).graph.nodes}
        if operations <= seen:
            names.add(row.name)
        seen |= operations
    return names


FURTHER = further()


def marked(row: OpCase) -> Any:
    """The row as a parameter, in the long suite if it is a further one."""
    return pytest.param(row, marks=[pytest.mark.long] if row.name in FURTHER else [], id=row.name)


each_row = pytest.mark.parametrize("row", [marked(row) for row in ROWS])


def compare(row: OpCase, got: np.ndarray, wanted: np.ndarray, dtype: DType) -> None:
    assert got.shape == wanted.shape
    found = as_dtype(got.dtype)
    if not issubclass(found, Floating):
        np.testing.assert_array_equal(got, wanted.astype(got.dtype))
        return
    with np.errstate(over="ignore"):
        rounded = wanted.astype(found.numpy).astype(np.float64)
    epsilon = float(jax.numpy.finfo(found.numpy).eps)
    bound = (row.ulps16 if found.bits == 16 else row.ulps) * epsilon
    smallest = float(jax.numpy.finfo(found.numpy).smallest_normal)
    wide = got.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(wide), np.isnan(rounded), err_msg=f"NaN in {dtype.name}")
    with np.errstate(invalid="ignore"):
        close = np.abs(wide - rounded) <= bound * np.maximum(np.abs(rounded), row.magnitude) + smallest
    assert np.all(close | (wide == rounded) | np.isnan(wide)), (
        f"{dtype.name}: got {wide[~close].ravel()[:4]}, wanted {rounded[~close].ravel()[:4]} within {bound:.3g}"
    )


@pytest.mark.parametrize(
    ("row", "wide"),
    [
        pytest.param(
            row,
            wide,
            marks=[pytest.mark.long] if wide and row.name in FURTHER else [],
            id=f"{'64bit' if wide else '32bit'}-{row.name}",
        )
        for wide in (False, True)
        for row in ROWS
    ],
)
def test_values_and_specs(row: OpCase, wide: bool) -> None:
    """Values against NumPy in every dtype and on every input set; each operation's rule against ``jax.eval_shape``."""
    case = recorded(row.name, wide)
    if case is None:
        assert all((dtype.bits == 64) != wide for dtype in row.dtypes)
        return
    results = as_tuple(case.context(*case.arrays))
    for value, got, wanted, dtype in zip(case.graph.results, results, case.expected, case.dtypes, strict=True):
        assert as_dtype(got.dtype) is value.spec.dtype
        compare(row, np.asarray(got), wanted, dtype)
    graph = case.graph
    specs, sizes = graph.specialize([array.shape for array in case.arrays])
    with x64(graph):
        for node in graph.nodes:
            if isinstance(node.op, (Argument, Constant)):
                continue
            op = settled(node, sizes, lambda value: specs[value].shape)
            promised = as_tuple(op.infer(*[specs[value] for value in node.inputs]))
            operands = [jax.ShapeDtypeStruct(specs[value].shape, value.spec.dtype.numpy) for value in node.inputs]
            judged = jax.eval_shape(op.lower, *operands)
            judged = as_tuple(judged) if len(node.outputs) > 1 else (judged,)
            assert [(struct.shape, as_dtype(struct.dtype)) for struct in judged] == [
                (spec.shape, spec.dtype) for spec in promised
            ]


@each_row
def test_op_by_op(row: OpCase) -> None:
    """Every operation run by itself, primitive by primitive, gives what the compiled program gives, on the first input set."""
    dtypes = [dtype for dtype in row.dtypes if dtype.bits < 64][-1:] or list(row.dtypes[:1])
    case = Recorded(row, dtypes, sets=1)
    compiled = as_tuple(case.context(*case.arrays))
    with x64(case.graph):
        single = walk(case.graph, [jax.numpy.asarray(array) for array in case.arrays], {}, checked=False).results
    for a, b in zip(compiled, single, strict=True):
        compare(
            row,
            np.asarray(a),
            np.asarray(b).astype(np.float64) if issubclass(as_dtype(b.dtype), Floating) else np.asarray(b),
            dtypes[0],
        )


@each_row
def test_flexible_sizes(row: OpCase) -> None:
    """The same answers when every size above 1 is flexible, and the promised shapes are the real ones."""
    if row.flexible is not True:
        assert isinstance(row.flexible, str), "say why sizes must be fixed"
        return
    wide = all(dtype.bits == 64 for dtype in row.dtypes)
    case = recorded(row.name, wide, flexible=True)
    assert case is not None
    results = as_tuple(case.context(*case.arrays))
    sizes = case.graph.solve([array.shape for array in case.arrays])
    for value, got, wanted, dtype in zip(case.graph.results, results, case.expected, case.dtypes, strict=True):
        compare(row, np.asarray(got), wanted, dtype)
        promised = value.spec.bind(sizes).shape
        assert all(size == actual or not isinstance(size, int) for size, actual in zip(promised, got.shape, strict=True))


@pytest.mark.parametrize("row", [marked(row) for row in ROWS if row.gradient])
def test_gradient(row: OpCase) -> None:
    """The gradient against central differences in float64, on the first input set."""
    rng = seed(row)
    inputs = row.inputs[0]
    arrays = [operand.array(rng, bg.Float64) for operand in inputs]
    moving = [index for index, array in enumerate(arrays) if array.dtype == np.float64 and inputs[index].differentiable]
    assert moving, "a row with a gradient needs a float operand"
    context = bg.make_context(
        lambda b: as_tuple(
            row.build(*[b.argument(f"a{i}", as_dtype(array.dtype), array.shape) for i, array in enumerate(arrays)])
        )
    )
    weights: list[np.ndarray | None] = [
        rng.normal(size=np.shape(value)) if np.asarray(value).dtype == np.float64 else None
        for value in as_tuple(context(*arrays))
    ]

    def loss(function: Any, operands: list[Any]) -> Any:
        results = as_tuple(function(*operands))
        return sum((weight * result).sum() for weight, result in zip(weights, results, strict=True) if weight is not None)

    with jax.enable_x64(True):
        exact = jax.jit(jax.grad(lambda *args: loss(context.function, list(args)), argnums=tuple(moving)))(*arrays)
    step = 1e-6
    for index, gradient in zip(moving, exact, strict=True):
        numeric = np.zeros(arrays[index].shape)
        for place in np.ndindex(arrays[index].shape):
            ends = []
            for sign in (1, -1):
                shifted = [array.copy() for array in arrays]
                shifted[index][place] += sign * step
                ends.append(loss(lambda *a: [np.asarray(r) for r in as_tuple(context(*a))], shifted))
            numeric[place] = (ends[0] - ends[1]) / (2 * step)
        scale = max(1.0, float(np.abs(numeric).max(initial=0)))
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6 * scale)


WRONG = [(row.name, wrong) for row in ROWS for wrong in row.wrong]


@pytest.mark.parametrize("wrong", [wrong for _, wrong in WRONG], ids=[f"{name}-{i}" for i, (name, _) in enumerate(WRONG)])
def test_misuse(wrong: Any) -> None:
    """The error names subject, requirement, what it got, and the line of the row's own lambda."""
    with pytest.raises(wrong.error) as caught:
        wrong.build(bg.Builder())
    message = str(caught.value)
    assert wrong.words in message
    assert re.search(r"\bmust\b.*\bgot\b", message, re.S), message
    assert re.search(rf"\n  at {wrong.build.__code__.co_filename.rpartition('/')[2]}:\d+ ", message), message


def concrete(base: type[Op]) -> set[type[Op]]:
    """The operations that can be lowered: subclasses without subclasses of their own."""
    found: set[type[Op]] = set()
    for cls in base.__subclasses__():
        found |= concrete(cls) if cls.__subclasses__() else {cls}
    return {cls for cls in found if cls.__module__.startswith("bnnsgraph.")}


def test_every_op_has_a_row() -> None:
    seen: set[type[Op]] = {Argument, Constant}
    for row in ROWS:
        for wide in (False, True):
            case = recorded(row.name, wide)
            if case is not None:
                seen |= {type(node.op) for node in case.graph.nodes}
    assert concrete(Op) - seen == set()


def test_names_of_rows_differ() -> None:
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    assert isinstance(bg.make_context(lambda b: b.constant(value=1)), Context)
