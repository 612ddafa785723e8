"""``x[...]``, ``x.update[...](y)`` and ``x[...] = y`` against NumPy."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.ops.slicing import normalize_items, sliced

Array = np.ndarray[Any, Any]


class Keys:
    """``keys[1:2, ...]`` is what stands between the brackets."""

    def __getitem__(self, key: Any) -> Any:
        return key


keys = Keys()
X = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)

KEYS: list[Any] = [
    keys[1],
    keys[-1],
    keys[-4],
    keys[np.int64(2)],
    keys[np.int8(-2), np.uint8(1)],
    keys[1, 2, 3],
    keys[-1, -2, -3],
    keys[:],
    keys[...],
    keys[()],
    keys[1:3],
    keys[1:],
    keys[:2],
    keys[:-1],
    keys[-3:-1],
    keys[-2:],
    keys[2:2],
    keys[::2],
    keys[1::2],
    keys[1:4:3],
    keys[::-1],
    keys[::-2],
    keys[3:0:-1],
    keys[-1:-4:-2],
    keys[:1:-1],
    keys[2::-1],
    keys[:, 1],
    keys[:, 1:2],
    keys[..., 1],
    keys[..., ::2],
    keys[..., -1, :],
    keys[0, ...],
    keys[0, ..., 2:],
    keys[1, :, 2],
    keys[2, 1:3, ::2],
    keys[2, 1:3, ..., ::2],
    keys[::2, ::-1, 4:1:-2],
    keys[:, ..., :, :],
    keys[1:2, 0, -1],
    keys[np.int32(1) : np.int64(3)],
]
RANGES: list[tuple[Any, Any]] = [
    (keys[bg.SliceRange.fill_all], keys[:]),
    (keys[bg.SliceRange.fill_all, bg.SliceRange(1, 3)], keys[:, 1:3]),
    (keys[bg.SliceRange(1)], keys[1:]),
    (keys[bg.SliceRange(0, -1), 1], keys[:-1, 1]),
    (keys[bg.SliceRange(-2), ..., bg.SliceRange(start_index=1, end_index=4)], keys[-2:, ..., 1:4]),
    (keys[bg.SliceRange(end_index=2), ::2], keys[:2, ::2]),
]


def assert_equal(actual: Any, expected: Array) -> None:
    found = np.asarray(actual)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


# Reading


@pytest.mark.parametrize(
    "shape", [[4, 3, 5], [-1, -1, -1], ["a", "b", "c"], [4, "b", -1]], ids=["fixed", "unknown", "named", "mixed"]
)
def test_subscripts_read_what_numpy_reads(shape: list[Any]) -> None:
    def block(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        x = builder.argument("x", bg.Float32, shape=shape)
        return [x[key] for key in [*KEYS, *[ours for ours, _ in RANGES]]]

    context = bg.make_context(block)
    for key, result in zip([*KEYS, *[numpys for _, numpys in RANGES]], context(X), strict=True):
        assert_equal(result, X[key])


def slices() -> list[slice]:
    """Every slice with ends and steps around an axis of up to three elements."""
    ends = [None, *range(-5, 6)]
    return [slice(*parts) for parts in itertools.product(ends, ends, [None, 1, 2, 3, -1, -2, -3])]


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_every_slice_of_an_axis_has_numpys_length_or_runs_backwards(size: int) -> None:
    x, refused = np.arange(size), 0
    for part in slices():
        start, stop, step = part.indices(size)
        backwards = (stop < start if step > 0 else stop > start) and None not in (part.start, part.stop)
        if backwards:
            refused += 1
            with pytest.raises(bg.ShapeError, match="a slice must not end before it starts"):
                sliced((size,), normalize_items(part, 1))
        else:
            assert sliced((size,), normalize_items(part, 1)) == x[part].shape
    assert refused or size == 0


def test_slices_of_each_kind_read_numpys_elements() -> None:
    x = np.arange(3, dtype=np.int32)
    chosen = [part for part in slices()[::11] if not isinstance(shape_or_error(part, 3), str)]
    context = bg.make_context(lambda b: [b.argument("x", bg.Int32, shape=[3])[part] for part in chosen[:1]])
    assert_equal(context(x), x[chosen[0]])

    def block(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        data = builder.argument("x", bg.Int32, shape=[3])
        return [data[part] for part in chosen]

    assert len(chosen) > 50
    for part, result in zip(chosen, bg.make_context(block)(x), strict=True):
        assert_equal(result, x[part])


def shape_or_error(part: slice, size: int) -> Any:
    try:
        return sliced((size,), normalize_items(part, 1))
    except bg.ShapeError as error:
        return str(error)


def test_sizes_of_slices_of_a_named_axis_are_told() -> None:
    x = bg.Builder().argument("x", bg.Float32, shape=["n", -1])
    assert repr(x[1:].shape) == "(n - 1, -1)"
    assert repr(x[-2:].shape) == "(2, -1)"
    assert repr(x[:-1, 1:].shape) == "(n - 1, -1)"
    assert repr(x[::2].shape) == "((n + 1)//2, -1)"
    assert repr(x[::-1].shape) == "(n, -1)"
    assert repr(x[0:3, 2:7].shape) == "(3, 5)"
    assert repr(x[:, 0].shape) == "(n,)"


def test_a_size_too_small_for_a_subscript_is_refused_when_the_graph_runs() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=["n"])[2])
    assert context(np.arange(3, dtype=np.float32)) == 2
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"a subscript must be in \[-2, 2\) on axis 0, got 2") as caught:
        context(np.zeros(2, np.float32))
    assert "recorded at test_subscripts.py:" in str(caught.value)
    ranged = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=["n"])[1:3])
    with pytest.raises(bg.ShapeError, match=r"the result must have shape \[2\] for these sizes, got \[1\]"):
        ranged(np.zeros(2, np.float32))


# Rows by tensors, lists and arrays


@pytest.mark.parametrize(
    "rows",
    [[0, 2, 2, -1], [[1, 0], [3, -4]], np.array([1, 2], np.uint8), np.array(2), [], np.zeros((0, 2), np.int64)],
    ids=["list", "nested", "array", "rank 0", "empty", "empty 2d"],
)
def test_lists_and_arrays_gather_rows(rows: Any) -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=[4, 3, 5])[rows])
    assert_equal(context(X), X[np.asarray(rows, np.int64)])


def test_a_tensor_gathers_rows() -> None:
    context = bg.make_context(
        lambda b: b.argument("x", bg.Float32, shape=[4, 3, 5])[b.argument("rows", bg.Int16, shape=[2, 1])]
    )
    assert_equal(context(X, np.array([[3], [-4]], np.int16)), X[[[3], [-4]]])
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"Gather\(axis=0\): indices must be in \[-4, 4\) on axis 0, got 4"):
        context(X, np.array([[3], [4]], np.int16))


# What is refused

REFUSED: list[tuple[Any, type[bg.GraphError], str]] = [
    (keys[0, 0, 0, 0], bg.ShapeError, "a subscript must have at most one item for each of the 3 axes, got 4"),
    (keys[..., 0, 0, 0, 0], bg.ShapeError, "a subscript must have at most one item for each of the 3 axes, got 4"),
    (keys[..., 0, ...], bg.ParameterError, "a subscript must have at most one '...', got 2"),
    (keys[4], bg.IndexOutOfBoundsError, "a subscript must be in [-4, 4) on axis 0, got 4"),
    (keys[-5], bg.IndexOutOfBoundsError, "a subscript must be in [-4, 4) on axis 0, got -5"),
    (keys[0, :, 5], bg.IndexOutOfBoundsError, "a subscript must be in [-5, 5) on axis 2, got 5"),
    (keys[3:1], bg.ShapeError, "a slice must not end before it starts, got 3:1 on an axis of size 4"),
    (keys[1:3:-1], bg.ShapeError, "a slice must not end before it starts, got 1:3:-1 on an axis of size 4"),
    (keys[bg.SliceRange(3, 1)], bg.ShapeError, "a slice must not end before it starts, got 3:1 on an axis of size 4"),
    (keys[::0], bg.ParameterError, "the step of a slice must not be 0"),
    (keys[None], bg.ParameterError, "a subscript must not hold None; write .unsqueeze(axis=...)"),
    (keys[:, None], bg.ParameterError, "a subscript must not hold None; write .unsqueeze(axis=...)"),
    (keys[1.0], bg.ParameterError, "a subscript must be an integer, got 1.0"),
    (keys[0, 1.5], bg.ParameterError, "a subscript must be an integer, got 1.5"),
    (keys[True], bg.ParameterError, "a subscript must be an integer, got True"),
    (keys[np.True_], bg.ParameterError, "a subscript must be an integer, got"),
    (keys["a"], bg.ParameterError, "a subscript must be an integer, got 'a'"),
    (keys[0.5:], bg.ParameterError, "the start of a slice must be an integer, got 0.5"),
    (keys[: np.float32(2)], bg.ParameterError, "the end of a slice must be an integer, got"),
    (keys[::1.0], bg.ParameterError, "the step of a slice must be an integer, got 1.0"),
    (
        keys[0, [1, 2]],
        bg.ParameterError,
        "a subscript must be integers, slices and '...', got list; to choose by",
    ),
    (keys[np.array([1]), 0], bg.ParameterError, "a subscript must be integers, slices and '...', got ndarray;"),
    (keys[[True, False, True, True]], bg.DTypeError, "indices must be of an integer type, got bool; to choose by a mask write"),
    (keys[np.ones((4, 3), bool)], bg.DTypeError, "indices must be of an integer type, got bool; to choose by a mask write"),
    (keys[[0.5]], bg.DTypeError, "indices must be of an integer type, got float64; write .cast(to=Int32) first"),
    (keys[[0, 4]], bg.IndexOutOfBoundsError, "Gather(axis=0): indices must be in [-4, 4) on axis 0, got 4 at position [1]"),
]


@pytest.mark.parametrize(("key", "kind", "words"), REFUSED, ids=[str(key) for key, _, _ in REFUSED])
def test_subscripts_that_are_refused(key: Any, kind: type[bg.GraphError], words: str) -> None:
    x = bg.Builder().argument("x", bg.Float32, shape=[4, 3, 5])
    with pytest.raises(kind) as caught:
        x[key]
    assert words in str(caught.value)
    assert str(caught.value).splitlines()[-1].startswith("  at test_subscripts.py:")
    assert str(caught.value).endswith("x[key]")


@pytest.mark.parametrize("shape", [[-1], ["n"]], ids=str)
def test_a_slice_that_runs_backwards_is_refused_on_a_flexible_axis_too(shape: list[Any]) -> None:
    x = bg.Builder().argument("x", bg.Float32, shape=shape)
    for key in (keys[3:1], keys[1:3:-1]):
        with pytest.raises(bg.ShapeError, match="a slice must not end before it starts"):
            x[key]
    masks: list[Any] = [x > 0, np.ones(2, bool)]
    for mask in masks:
        with pytest.raises(bg.DTypeError, match=r"got bool; to choose by a mask write mask.select\(a, b\)"):
            x[mask]


# Replacing

UPDATES: list[tuple[Any, Any]] = [
    (keys[1], 7),
    (keys[-1], np.arange(15, dtype=np.float32).reshape(3, 5)),
    (keys[1, 2, 3], -1.5),
    (keys[...], 0),
    (keys[:], np.ones((4, 3, 5), np.float32)),
    (keys[1:3], np.arange(5, dtype=np.float32)),
    (keys[2:2], 9),
    (keys[::2], np.arange(30, dtype=np.float32).reshape(2, 3, 5)),
    (keys[::-1], np.arange(60, dtype=np.float32).reshape(4, 3, 5)),
    (keys[3:0:-2, ::-1, 1], np.arange(6, dtype=np.float32).reshape(2, 3)),
    (keys[:, 1], np.arange(20, dtype=np.float32).reshape(4, 5)),
    (keys[..., -2:], [1.0, 2.0]),
    (keys[2, ..., ::2], np.arange(3, dtype=np.float32).reshape(3, 1)),
    (keys[np.int64(1), 0], [1.0, 2.0, 3.0, 4.0, 5.0]),
    (keys[bg.SliceRange(1, 3), bg.SliceRange.fill_all, 0], np.arange(6, dtype=np.float32).reshape(2, 3)),
]


@pytest.mark.parametrize("shape", [[4, 3, 5], [-1, -1, -1], ["a", 3, "c"]], ids=["fixed", "unknown", "named"])
def test_updates_replace_what_numpy_replaces(shape: list[Any]) -> None:
    def block(builder: bg.Builder) -> list[bg.Tensor[Any]]:
        x = builder.argument("x", bg.Float32, shape=shape)
        results = [x.update[key](value) for key, value in UPDATES]
        for key, value in UPDATES:
            y = x * 1
            y[key] = value
            results.append(y)
        return results

    for (key, value), result in zip(UPDATES * 2, bg.make_context(block)(X), strict=True):
        expected = X.copy()
        numpys = (slice(1, 3), slice(None), 0) if isinstance(key, tuple) and bg.SliceRange.fill_all in key else key
        expected[numpys] = value
        assert_equal(result, expected)


def test_an_update_by_a_tensor() -> None:
    context = bg.make_context(
        lambda b: b.argument("x", bg.Float32, shape=[4, 3]).update[::2](b.argument("y", bg.Float32, shape=[3]))
    )
    x, y = np.zeros((4, 3), np.float32), np.array([1, 2, 3], np.float32)
    expected = x.copy()
    expected[::2] = y
    assert_equal(context(x, y), expected)


def test_assignment_rebinds_that_tensor_and_no_other() -> None:
    @bg.make_context
    def context(builder: bg.Builder) -> dict[str, bg.Tensor[Any]]:
        x = builder.argument("x", bg.Float32, shape=[3])
        doubled, other = x * 2, x.named("other")
        before = x + 0
        x[1] = 9.0
        x[0] += 1.0
        return {"x_now": x, "doubled": doubled, "other": other, "before": before, "after": x + 0}

    found = context(np.array([1, 2, 3], np.float32))
    assert found.x_now.tolist() == [2, 9, 3]
    assert found.doubled.tolist() == [2, 4, 6]
    assert found.other.tolist() == [1, 2, 3]
    assert found.before.tolist() == [1, 2, 3]
    assert found.after.tolist() == [2, 9, 3]


def test_assignment_to_an_in_out_argument_is_its_new_value() -> None:
    @bg.make_context
    def context(builder: bg.Builder) -> bg.Tensor[Any]:
        state = builder.argument("state", bg.Float32, shape=[2, 3], intent=bg.Intent.INPUT_OUTPUT)
        state[0, ::2] = builder.argument("row", bg.Float32, shape=[2])
        return state.sum(None)

    total, state = context(np.ones((2, 3), np.float32), np.array([5, 7], np.float32))
    assert state.tolist() == [[5, 1, 7], [1, 1, 1]]
    assert total == 16


BAD_UPDATES: list[tuple[Any, Any, type[bg.GraphError], str]] = [
    (keys[0], np.zeros(2, np.float32), bg.ShapeError, "value must broadcast to the slice, [3], got [2]"),
    (keys[:, 0], np.zeros((1, 4), np.float32), bg.ShapeError, "value must broadcast to the slice, [4], got [1, 4]"),
    (keys[0, 0], [1.0], bg.ShapeError, "value must broadcast to the slice, [], got [1]"),
    (keys[4], 0, bg.IndexOutOfBoundsError, "a subscript must be in [-4, 4) on axis 0, got 4"),
    (keys[0], True, bg.DTypeError, "values must be float32 to be used with a float32 tensor, got bool"),
    (keys[[0, 1]], 0, bg.ParameterError, "to replace .scatter(...)"),
    (keys[None], 0, bg.ParameterError, "a subscript must not hold None"),
]


@pytest.mark.parametrize(("key", "value", "kind", "words"), BAD_UPDATES, ids=[str(case[0]) for case in BAD_UPDATES])
def test_updates_that_are_refused(key: Any, value: Any, kind: type[bg.GraphError], words: str) -> None:
    x = bg.Builder().argument("x", bg.Float32, shape=[4, 3])
    with pytest.raises(kind) as caught:
        x.update[key](value)
    assert words in str(caught.value)
    assert str(caught.value).endswith("x.update[key](value)")
    held = x._value
    with pytest.raises(kind):
        x[key] = value
    assert x._value is held


def test_an_update_of_another_dtype_is_refused_with_the_cast_to_write() -> None:
    builder = bg.Builder()
    whole, real = builder.argument("whole", bg.Int32, shape=[3]), builder.argument("real", bg.Float32, shape=[])
    with pytest.raises(
        bg.DTypeError, match=r"x and value must have one dtype, got int32 and float32; write \.cast\(to=Int32\)"
    ):
        whole[0] = real  # pyright: ignore[reportArgumentType]
    with pytest.raises(bg.DTypeError, match="values must be integers to be used with a int32 tensor, got float64"):
        whole[0] = 1.5
    with pytest.raises(bg.DTypeError, match="values must fit int32"):
        whole[0] = 2**40


# Derivatives


@pytest.mark.parametrize("key", [keys[1:3], keys[1], keys[::2], keys[::-2, 1], keys[2:2]], ids=str)
def test_gradients_of_a_slice_and_of_its_update(key: Any) -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    value = np.ones_like(x[key])
    weight = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    update = bg.make_context(
        lambda b: (
            b.argument("x", bg.Float32, shape=["n", 3]).update[key](b.argument("y", bg.Float32, shape=value.shape)) * weight
        ).sum(None)
    )
    in_x, in_value = jax.grad(update.function, argnums=(0, 1))(x, value)
    kept = weight.copy()
    kept[key] = 0
    assert_equal(in_x, kept)
    assert_equal(in_value, weight[key])
    part = bg.make_context(lambda b: (b.argument("x", bg.Float32, shape=["n", 3])[key] * weight[key]).sum(None))
    assert_equal(jax.grad(part.function)(x), weight - kept)


@pytest.mark.parametrize("key", [keys[1:3], keys[::-2, 1], keys[-1]], ids=str)
def test_vmap_of_a_slice_and_of_its_update_is_a_loop(key: Any) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    part = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=["n", 3])[key])
    update = bg.make_context(lambda b: b.argument("x", bg.Float32, shape=["n", 3]).update[key](7))
    for context in (part, update):
        looped = np.stack([context.function(x[0]), context.function(x[1])])
        assert_equal(jax.vmap(context.function)(x), looped)
        assert_equal(jax.jit(jax.vmap(context.function))(x), looped)
