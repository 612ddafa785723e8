"""Every gather and scatter against the loops of ``index_definition``: drawn shapes, dtypes, modes and indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import bnnsgraph as bg
from bnnsgraph.dtypes import ALL, DType
from bnnsgraph.graph import CheckedOp
from bnnsgraph.spec import TensorSpec
from tests import index_definition as definition

Array = np.ndarray[Any, Any]

INDEX_DTYPES: tuple[DType, ...] = (
    bg.Int8, bg.Int16, bg.Int32, bg.Int64, bg.UInt8, bg.UInt16, bg.UInt32, bg.UInt64,
)  # fmt: skip
FLOATS = (bg.Float16, bg.BFloat16, bg.Float32, bg.Float64)
DRAWN = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much),
    phases=(Phase.generate, Phase.shrink),
)
GATHERS = ("gather", "gather_along_axis", "gather_nd")
SCATTERS = ("scatter", "scatter_along_axis", "scatter_nd")


@dataclass(frozen=True)
class Case:
    """One call: which operation, on what shapes and types, under which rule."""

    method: str
    x: tuple[int, ...]
    indices: tuple[int, ...]
    axis: int
    batch: int
    dtype: DType
    index_dtype: DType
    out_of_bounds: Any
    negative: Any = "from_end"
    mode: bg.ScatterMode = bg.ScatterMode.UPDATE

    @property
    def updates(self) -> tuple[int, ...]:
        """The shape of a scatter's updates."""
        if self.method == "scatter":
            axis = self.axis % len(self.x)
            return (*self.x[:axis], *self.indices, *self.x[axis + 1 :])
        return self.indices if self.method == "scatter_along_axis" else (*self.indices[:-1], *self.x[self.indices[-1] :])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the axes that the indices address."""
        if not self.method.endswith("nd"):
            return (self.x[self.axis],)
        return self.x[self.batch : self.batch + self.indices[-1]]

    def record(self, x: bg.Tensor[Any], indices: Any, updates: bg.Tensor[Any] | None) -> bg.Tensor[Any]:
        """The call of the public method."""
        rule = self.out_of_bounds
        if self.method == "gather":
            return x.gather(indices, self.axis, self.batch, out_of_bounds=rule)
        if self.method == "gather_along_axis":
            return x.gather_along_axis(indices, self.axis, out_of_bounds=rule)
        if self.method == "gather_nd":
            return x.gather_nd(indices, self.batch, out_of_bounds=rule)
        assert updates is not None
        if self.method == "scatter":
            return x.scatter(updates, indices, self.mode, self.axis, out_of_bounds=rule)
        if self.method == "scatter_along_axis":
            return x.scatter_along_axis(updates, indices, self.mode, self.axis, out_of_bounds=rule)
        return x.scatter_nd(updates, indices, self.mode, out_of_bounds=rule)

    def expected(self, x: Array, indices: Array, updates: Array | None, rule: Any) -> Array:
        """The same by the definition."""
        if self.method == "gather":
            return definition.gather(x, indices, self.axis, self.batch, rule, self.negative)
        if self.method == "gather_along_axis":
            return definition.gather_along_axis(x, indices, self.axis, rule, self.negative)
        if self.method == "gather_nd":
            return definition.gather_nd(x, indices, self.batch, rule, self.negative)
        assert updates is not None
        mode = self.mode.name
        if self.method == "scatter":
            return definition.scatter(x, updates, indices, mode, self.axis, rule, self.negative)
        if self.method == "scatter_along_axis":
            return definition.scatter_along_axis(x, updates, indices, mode, self.axis, rule, self.negative)
        return definition.scatter_nd(x, updates, indices, mode, rule, self.negative)


# Values


def payload(dtype: DType, shape: tuple[int, ...], seed: int, mode: bg.ScatterMode | None = None) -> Array:
    """Elements whose sums and products are exact in the arithmetic of ``mode``, so that no tolerance is needed."""
    random = np.random.default_rng(seed)
    if dtype is bg.Bool:
        return random.integers(0, 2, shape).astype(bool)
    if dtype not in FLOATS:
        bounds = np.iinfo(dtype.numpy)
        return random.integers(bounds.min, bounds.max, shape, dtype=dtype.numpy, endpoint=True)
    if mode in (bg.ScatterMode.ADD, bg.ScatterMode.SUBTRACT):
        return random.integers(-8, 8, shape).astype(dtype.numpy)
    if mode in (bg.ScatterMode.MULTIPLY, bg.ScatterMode.DIVIDE):
        return random.choice([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0], shape).astype(dtype.numpy)
    special = [np.nan, np.inf, -np.inf] + ([-0.0] if mode is None else [])
    return random.choice([*special, 1.0, -1.5, 2.25, 3.0, -4.0, 1e-3], shape).astype(dtype.numpy)


def assert_same(actual: Any, expected: Array) -> None:
    """Equal in dtype, shape and every element; NaN equals NaN, and the sign of a zero counts."""
    found = np.asarray(actual)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    if expected.dtype.kind == "V":
        found, expected = found.astype(np.float32), expected.astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        zero = expected == 0
        np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))


# Drawing cases

small = st.sampled_from([0, 1, 2, 3, 3])


@st.composite
def rules(draw: st.DrawFn, dtype: DType, scatter: bool) -> Any:
    """An out-of-bounds mode that the dtype allows."""
    if scatter:
        return draw(st.sampled_from(["raise", "clip", "drop", "unchecked"]))
    filled = bg.fill(True if dtype is bg.Bool else 7)
    return draw(st.sampled_from(["raise", "clip", filled, "unchecked"]))


@st.composite
def cases(draw: st.DrawFn, method: str) -> Case:
    """Shapes, types and a rule for one method."""
    scatter = method in SCATTERS
    mode = draw(st.sampled_from(list(bg.ScatterMode))) if scatter else bg.ScatterMode.UPDATE
    dtypes = {bg.ScatterMode.UPDATE: ALL, bg.ScatterMode.DIVIDE: FLOATS}.get(mode, ALL[:-1]) if scatter else ALL
    dtype = draw(st.sampled_from(dtypes))
    x = tuple(draw(st.lists(small, min_size=0 if method.endswith("nd") else 1, max_size=4)))
    axis, batch = 0, 0
    if method.endswith("nd"):
        if method == "gather_nd" and x:
            batch = draw(st.integers(0, min(2, len(x) - 1)))
        depth = draw(st.integers(0, len(x) - batch))
        indices = (*x[:batch], *draw(st.lists(small, max_size=2)), depth)
    else:
        axis = draw(st.integers(-len(x), len(x) - 1))
        front = axis % len(x)
        if method.endswith("along_axis"):
            indices = (*x[:front], draw(small), *x[front + 1 :])
        else:
            batch = draw(st.integers(0, front)) if method == "gather" else 0
            indices = (*x[:batch], *draw(st.lists(small, max_size=2)))
            if batch and draw(st.booleans()) and batch < len(indices):
                batch -= len(indices)  # a negative count means + rank(indices)
    return Case(
        method,
        x,
        indices,
        axis,
        batch,
        dtype,
        draw(st.sampled_from(INDEX_DTYPES)),
        draw(rules(dtype, scatter)),
        draw(st.sampled_from(["from_end", "from_end", "out_of_bounds"])),
        mode,
    )


@st.composite
def index_values(draw: st.DrawFn, case: Case, count: int) -> list[Array]:
    """Arrays of indices: all valid, or some outside, as far as their dtype reaches."""
    bounds = np.iinfo(case.index_dtype.numpy)
    found: list[Array] = []
    for _ in range(count):
        outside = draw(st.booleans()) and case.out_of_bounds != "unchecked"
        sizes = case.sizes * (math.prod(case.indices) // max(1, len(case.sizes)))
        flat: list[int] = []
        for size in sizes:
            low = -size if case.negative == "from_end" else 0
            choice = st.integers(low, size - 1) if size else st.just(0)
            if outside:
                far = st.sampled_from([bounds.min, bounds.max, -size - 1, size])
                choice = st.integers(-size - 2, size + 2) | far
            value = draw(choice)
            flat.append(value if bounds.min <= value <= bounds.max else abs(value) % max(1, size))
        found.append(np.array(flat, case.index_dtype.numpy).reshape(case.indices))
    return found


# The checks


def refused(case: Case) -> bool:
    """Whether the rule itself refuses the shapes: there is nothing to clip to, and something to read or write."""
    return case.out_of_bounds == "clip" and 0 in case.sizes and 0 not in case.indices


def values(case: Case, seed: int) -> tuple[Array, Array | None]:
    """Data and, for a scatter, updates."""
    mode = case.mode if case.method in SCATTERS else None
    x = payload(case.dtype, case.x, seed, mode)
    return x, None if mode is None else payload(case.dtype, case.updates, seed + 1, mode)


def build(case: Case, constant: Array | None = None) -> bg.Context:
    """A context of the call with its indices as an argument, or as the constant given."""

    @bg.make_context(options=bg.CompileOptions(negative_indices=case.negative))
    def context(builder: bg.Builder) -> bg.Tensor[Any]:
        x = builder.argument("x", case.dtype, shape=case.x)
        updates = builder.argument("updates", case.dtype, shape=case.updates) if case.method in SCATTERS else None
        if constant is None:
            return case.record(x, builder.argument("indices", case.index_dtype, shape=case.indices), updates)
        return case.record(x, builder.constant(values=constant), updates)

    return context


def assert_described(error: bg.IndexOutOfBoundsError, outside: definition.OutsideError, case: Case) -> None:
    """The message names the operation, the range, the first offending index, its position and the line of the call."""
    text = str(error)
    name = type(recorded_op(case)).__name__
    low = 0 if case.negative == "out_of_bounds" or case.index_dtype.name.startswith("u") else -outside.size
    where = f" at position {list(outside.position)}" if outside.position else ""
    assert text.startswith(f"{name}(")
    assert f"indices must be in [{low}, {outside.size}) on axis {outside.axis}, got {outside.index}{where}" in text
    assert "test_index_properties.py:" in text
    assert "out_of_bounds=rule)" in text  # the source of the line


def recorded_op(case: Case) -> CheckedOp:
    """The operation that a call records for indices that are an argument."""
    builder = bg.Builder(bg.CompileOptions(negative_indices=case.negative))
    x = builder.argument("x", case.dtype, shape=case.x)
    updates = builder.argument("u", case.dtype, shape=case.updates) if case.method in SCATTERS else None
    op = case.record(x, builder.argument("i", case.index_dtype, shape=case.indices), updates)._value.node.op
    assert isinstance(op, CheckedOp)
    return op


def check(case: Case, arrays: list[Array], seed: int) -> None:
    """Compiled, op by op, as constant and as a pure function: all as the definition says."""
    if refused(case):
        with pytest.raises(bg.ShapeError, match="must have an element to clip indices to, got size 0"):
            build(case)
        return
    x, updates = values(case, seed)
    pure_rule = "missing" if case.out_of_bounds == "raise" else case.out_of_bounds
    context = build(case)
    op = recorded_op(case)
    for indices in arrays:
        operands = {"x": x, "indices": indices} | ({} if updates is None else {"updates": updates})
        pure = case.expected(x, indices, updates, pure_rule)
        with jax.enable_x64(True):
            lowered = op.lower(*[jax.numpy.asarray(operands[n]) for n in ("x", "updates", "indices") if n in operands])
        assert_same(lowered, pure)
        assert_same(context.function(**operands), pure)
        try:
            expected = case.expected(x, indices, updates, case.out_of_bounds)
        except definition.OutsideError as outside:
            with pytest.raises(bg.IndexOutOfBoundsError) as caught:
                context(**operands)
            assert_described(caught.value, outside, case)
        else:
            assert_same(context(**operands), expected)
    check_constant(case, arrays[0], x, updates)


def check_constant(case: Case, indices: Array, x: Array, updates: Array | None) -> None:
    """Constant indices give what the same indices give as an argument, or the error at the line that records them."""
    operands = {"x": x} | ({} if updates is None else {"updates": updates})
    try:
        expected = case.expected(x, indices, updates, case.out_of_bounds)
    except definition.OutsideError as outside:
        with pytest.raises(bg.IndexOutOfBoundsError) as caught:
            build(case, indices)
        assert_described(caught.value, outside, case)
    else:
        assert_same(build(case, indices)(**operands), expected)


def property_test(method: str, examples: int) -> Callable[[], None]:
    """The check on drawn cases."""

    @settings(DRAWN, max_examples=examples)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        case = data.draw(cases(method))
        check(case, data.draw(index_values(case, 3)), data.draw(st.integers(0, 99)))

    return run


@pytest.mark.parametrize("method", GATHERS + SCATTERS)
def test_calls_follow_the_definition(method: str) -> None:
    property_test(method, 20)()


@pytest.mark.long
@pytest.mark.parametrize("method", GATHERS + SCATTERS)
def test_many_calls_follow_the_definition(method: str) -> None:
    property_test(method, 150)()


@pytest.mark.parametrize("method", GATHERS + SCATTERS)
@settings(DRAWN, max_examples=100)
@given(st.data())
def test_infer_is_what_jax_makes_of_lower(method: str, data: st.DataObject) -> None:
    case = data.draw(cases(method))
    if refused(case):
        with pytest.raises(bg.ShapeError):
            recorded_op(case)
        return
    specs = [(case.dtype, case.x), (case.index_dtype, case.indices)]
    if method in SCATTERS:
        specs.insert(1, (case.dtype, case.updates))
    op = recorded_op(case)
    inferred = op.infer(*[TensorSpec(dtype, shape) for dtype, shape in specs])
    with jax.enable_x64(True):
        made = jax.eval_shape(op.lower, *[jax.ShapeDtypeStruct(shape, dtype.numpy) for dtype, shape in specs])
    assert not isinstance(inferred, tuple)
    assert (inferred.dtype.numpy, inferred.shape) == (made.dtype, made.shape)


# Every payload dtype with every index dtype, every mode with every payload dtype


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_gathers_of_every_payload_by_every_index_dtype(dtype: DType) -> None:
    x = payload(dtype, (3, 4), 5)
    calls = [
        (method, index, [[0, -1, 1, 2], [2, 0, -3, 1]] if definition_signed(index) else [[0, 2, 1, 2], [2, 0, 0, 1]])
        for number, index in enumerate(INDEX_DTYPES)
        for method in (GATHERS[(number + ALL.index(dtype)) % 3],)
    ]

    @bg.make_context
    def context(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        data = builder.argument("x", dtype, shape=[3, 4])
        results: list[bg.Tensor[Any]] = []
        for method, index, _ in calls:
            shape = [4, 2] if method == "gather_nd" else [2, 4]
            indices = builder.argument(f"{index.name}_indices", index, shape=shape)
            results.append(Case(method, (3, 4), tuple(shape), 0, 0, dtype, index, None).record(data, indices, None))
        return results

    arrays = [
        np.array(values, index.numpy).reshape((4, 2) if method == "gather_nd" else (2, 4)) for method, index, values in calls
    ]
    for (method, index, _), array, result in zip(calls, arrays, context(x, *arrays), strict=True):
        case = Case(method, (3, 4), array.shape, 0, 0, dtype, index, None)
        assert_same(result, case.expected(x, array, None, "raise"))


def definition_signed(dtype: DType) -> bool:
    return dtype.name.startswith("i")


def allowed(mode: bg.ScatterMode, dtype: DType) -> bool:
    """Whether elements of the dtype can be combined so."""
    if mode is bg.ScatterMode.DIVIDE:
        return dtype in FLOATS
    return mode is bg.ScatterMode.UPDATE or dtype is not bg.Bool


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_scatters_of_every_payload_in_every_mode(dtype: DType) -> None:
    table = np.array([[0, 2], [2, -1]], np.int8)  # a repeated place, for rows and for single elements
    vectors = np.array([[0, 1], [2, 1], [-1, -1]], np.int8)
    found: list[tuple[Case, Array]] = []
    for number, mode in enumerate(mode for mode in bg.ScatterMode if allowed(mode, dtype)):
        method = SCATTERS[(number + ALL.index(dtype)) % 3]
        where = vectors if method == "scatter_nd" else table
        found.append((Case(method, (3, 2), where.shape, 0, 0, dtype, bg.Int8, None, mode=mode), where))

    def block(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        results: list[bg.Tensor[Any]] = []
        for number, (case, _) in enumerate(found):
            x = builder.argument(f"x{number}", dtype, shape=case.x)
            updates = builder.argument(f"u{number}", dtype, shape=case.updates)
            results.append(case.record(x, builder.argument(f"i{number}", bg.Int8, shape=case.indices), updates))
        return [*results, results[0]]

    operands: list[Array] = []
    expected: list[Array] = []
    for number, (case, where) in enumerate(found):
        x, updates = values(case, number)
        assert updates is not None
        operands += [x, updates, where]
        expected.append(case.expected(x, where, updates, "raise"))
    for result, wanted in zip(bg.make_context(block)(*operands), [*expected, expected[0]], strict=True):
        assert_same(result, wanted)


@pytest.mark.parametrize("dtype", ALL, ids=lambda dtype: dtype.name)
def test_dtypes_that_a_mode_does_not_suit_are_refused(dtype: DType) -> None:
    for mode in bg.ScatterMode:
        if not allowed(mode, dtype):
            builder = bg.Builder()
            x = builder.argument("x", dtype, shape=[3])
            with pytest.raises(bg.DTypeError, match=f"x must be of a (float|number) type .*got {dtype.name}"):
                x.scatter(x, [0, 1, 2], mode, axis=0)


# Failed runs


def rows(builder: bg.Builder) -> tuple[bg.Tensor[Any], bg.Tensor[Any]]:
    table = builder.argument("table", bg.Float32, shape=[3, 2])
    return table.gather(builder.argument("where", bg.Int32, shape=[2]), axis=0), table * 2


def test_a_failed_run_hands_out_nothing_and_the_next_one_is_unharmed() -> None:
    context = bg.make_context(rows)
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    with pytest.raises(bg.IndexOutOfBoundsError) as caught:
        context(table, np.array([1, 3], np.int32))
    assert str(caught.value).splitlines()[0] == ("Gather(axis=0): indices must be in [-3, 3) on axis 0, got 3 at position [1]")
    recorded, mine = str(caught.value).splitlines()[1:]
    assert recorded.startswith("  recorded at test_index_properties.py:")
    assert recorded.endswith('return table.gather(builder.argument("where", bg.Int32, shape=[2]), axis=0), table * 2')
    assert mine.startswith("  at test_index_properties.py:")
    assert mine.endswith("context(table, np.array([1, 3], np.int32))")
    assert_same(context(table, np.array([1, -3], np.int32))[0], table[[1, 0]])


def test_arrays_given_to_execute_function_keep_their_values_when_the_run_fails() -> None:
    context = bg.make_context(rows)
    table = np.arange(6, dtype=np.float32).reshape(3, 2)
    outputs = [np.full((2, 2), 7, np.float32), np.full((3, 2), 8, np.float32)]
    kept = table.copy()
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"got -4 at position \[0\] \(the first of 2\)"):
        context.execute_function([*outputs, table, np.array([-4, 3], np.int32)])
    assert (outputs[0] == 7).all()
    assert (outputs[1] == 8).all()
    assert_same(table, kept)
    context.execute_function([*outputs, table, np.array([2, 0], np.int32)])
    assert_same(outputs[0], table[[2, 0]])
    assert_same(outputs[1], table * 2)


@pytest.mark.parametrize("updated_before", [True, False])
def test_in_out_arguments_keep_their_values_when_the_run_fails(updated_before: bool) -> None:
    @bg.make_context
    def context(builder: bg.Builder) -> bg.Tensor[Any]:
        state = builder.argument("state", bg.Float32, shape=[3], intent=bg.Intent.INPUT_OUTPUT)
        where = builder.argument("where", bg.Int32, shape=[1])
        if updated_before:
            state[...] = state + 1
        picked = state.gather(where, axis=0)
        if not updated_before:
            state[...] = state + 1
        return picked

    state, result = np.array([1, 2, 3], np.float32), np.zeros(1, np.float32)
    with pytest.raises(bg.IndexOutOfBoundsError):
        context.execute_function([result, state, np.array([3], np.int32)])
    assert_same(state, np.array([1, 2, 3], np.float32))
    assert_same(result, np.array([0], np.float32))
    context.execute_function([result, state, np.array([2], np.int32)])
    assert_same(state, np.array([2, 3, 4], np.float32))
    assert_same(result, np.array([4 if updated_before else 3], np.float32))


def test_the_first_failed_operation_is_named() -> None:
    @bg.make_context
    def context(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        x = builder.argument("x", bg.Float32, shape=[3, 4])
        i = builder.argument("i", bg.Int32, shape=[3, 1])
        picked = x.gather_along_axis(i, axis=1)
        return [picked, x.scatter_along_axis(picked, i, bg.ScatterMode.ADD, axis=1), x.gather_nd(i)]

    x = np.ones((3, 4), np.float32)
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"^GatherAlongAxis\(axis=1\): .* axis 1, got 4 at position \[2, 0\]"):
        context(x, [[0], [3], [4]])
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"^GatherND\(\): .* axis 0, got 3 at position \[1, 0\]"):
        context(x, [[0], [3], [2]])


@pytest.mark.parametrize("method", GATHERS)
def test_a_read_from_an_axis_of_size_0_is_out_of_bounds(method: str) -> None:
    case = Case(method, (0, 2), (1, 2) if method == "gather_along_axis" else (1,), 0, 0, bg.Float32, bg.Int32, None)
    x, indices = np.zeros((0, 2), np.float32), np.zeros(case.indices, np.int32)
    context = build(case)
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[0, 0\) on axis 0, got 0 at position"):
        context(x, indices)
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[0, 0\) on axis 0, got 0 at position"):
        build(case, indices)
    assert np.isnan(np.asarray(context.function(x, indices))).all()
    assert_same(
        build(replace(case, indices=(0, *case.indices[1:])))(x, indices[:0]), case.expected(x, indices[:0], None, "raise")
    )
