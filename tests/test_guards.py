"""Indices that are looked at before a run: the same answers and the same errors as from a program that checks them itself."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import guards, reuse
from bnnsgraph.running import INTO, PLAIN, Entry

RNG = np.random.default_rng(5)
TABLE = RNG.standard_normal((100, 7, 3), dtype=np.float32)
COUNT = guards.MANY + 72
FROM_END = "first run of these sizes with indices from the end"


def entry(context: bg.Context) -> Entry:
    (found,) = [entry for entry in context._runner.entries.values() if entry.variant == PLAIN]
    return found


def gather(x: bg.Tensor, i: bg.Tensor) -> bg.Tensor:
    return x.gather(i, axis=0)


def along(x: bg.Tensor, i: bg.Tensor) -> bg.Tensor:
    return x.gather_along_axis(i, axis=1)


def nd(x: bg.Tensor, i: bg.Tensor) -> bg.Tensor:
    return x.gather_nd(i)


def scatter(x: bg.Tensor, i: bg.Tensor) -> bg.Tensor:
    return x.scatter(x.gather(i, axis=0), i, bg.ScatterMode.UPDATE, axis=0)


CASES: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...], Callable[..., Any]]] = {
    "gather": (gather, (COUNT,), (100,), lambda x, i: x[i]),
    "along an axis": (along, (100, 5, 3), (7,), lambda x, i: np.take_along_axis(x, i.astype(np.int64), 1)),
    "nd": (nd, (COUNT, 2), (100, 7), lambda x, i: x[i[:, 0], i[:, 1]]),
    "nd, all axes": (nd, (COUNT, 3), (100, 7, 3), lambda x, i: x[i[:, 0], i[:, 1], i[:, 2]]),
    "scatter": (scatter, (COUNT,), (100,), lambda x, i: x),
}
"""A program, the shape of its indices, the sizes of the axes that they address, and the answer in NumPy."""


def make(
    build: Callable[..., Any], shape: tuple[int, ...], dtype: Any, *, many: int | None = None, **options: Any
) -> bg.Context:
    def block(b: bg.Builder) -> Any:
        return build(b.argument("x", bg.Float32, TABLE.shape), b.argument("i", dtype, shape))

    with pytest.MonkeyPatch.context() as patch:
        if many is not None:
            patch.setattr(guards, "MANY", many)
        return bg.make_context(block, options=bg.CompileOptions(**options))


def inside(shape: tuple[int, ...], sizes: tuple[int, ...], dtype: Any) -> np.ndarray:
    spread = shape[-1] == len(sizes) > 1
    highs = np.broadcast_to(np.asarray(sizes if spread else sizes[0]), shape)
    return RNG.integers(0, highs).astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int16", "uint16", "int64", "uint64"])
@pytest.mark.parametrize("name", CASES)
def test_the_answers_and_the_errors(name: str, dtype: str) -> None:
    build, shape, sizes, wanted = CASES[name]
    context, plain = make(build, shape, dtype), make(build, shape, dtype, many=1 << 60)
    assert not entry(context).checks
    assert entry(context).guards
    assert entry(plain).checks
    assert not entry(plain).guards
    numbers = inside(shape, sizes, dtype)
    for given in (numbers, jnp.asarray(numbers)) if dtype not in ("int64", "uint64") else (numbers,):
        assert np.array_equal(context(TABLE, given), wanted(TABLE, numbers))
    assert len(context.compilations) == 1

    for axis, size in enumerate(sizes):
        place = (*(np.asarray(shape[:-1]) // 2), axis) if len(sizes) > 1 else tuple(np.asarray(shape) // 2)
        for beyond in (size, np.iinfo(dtype).max, *([-size - 1, np.iinfo(dtype).min] if dtype[0] == "i" else [])):
            bad = numbers.copy()
            bad[place] = beyond
            with pytest.raises(bg.IndexOutOfBoundsError) as error:
                context(TABLE, bad)
            with pytest.raises(bg.IndexOutOfBoundsError) as same:
                plain(TABLE, bad)
            assert (error.value.reason, error.value.details[0]) == (same.value.reason, same.value.details[0])
            assert f"got {beyond} at position {[int(part) for part in place]}" in str(error.value)
    assert len(context.compilations) == 1  # what is refused is refused without a program

    if dtype[0] == "i":
        numbers[tuple(np.asarray(shape) // 3)] = -1
        for _ in range(2):
            assert np.array_equal(context(TABLE, numbers), wanted(TABLE, numbers))
        assert [each.reason for each in context.compilations] == ["every size is known", FROM_END]


def test_the_program_trusts_the_indices() -> None:
    context = make(gather, (COUNT,), bg.Int32)
    structs = [jax.ShapeDtypeStruct(TABLE.shape, np.float32), jax.ShapeDtypeStruct((COUNT,), np.int32)]
    text = entry(context).run.lower(*structs).as_text()  # pyright: ignore[reportFunctionMemberAccess]
    assert "stablehlo.gather" in text
    assert "stablehlo.compare" not in text
    assert "stablehlo.compare" in context.stablehlo()  # which may go elsewhere, and so makes its checks


def test_few_indices_are_left_to_the_program() -> None:
    assert entry(make(gather, (guards.MANY - 1,), bg.Int32)).checks
    assert not entry(make(gather, (guards.MANY,), bg.Int32)).checks


def test_more_indices_are_left_to_a_program_that_runs_on_this_thread() -> None:
    before = jax.config.read("jax_cpu_enable_async_dispatch")
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # read by us alone, as the backend runs already
    try:
        assert entry(make(gather, (guards.MANY_HERE - 1,), bg.Int32)).checks
        assert not entry(make(gather, (guards.MANY_HERE,), bg.Int32)).checks
    finally:
        jax.config.update("jax_cpu_enable_async_dispatch", before)


@pytest.mark.parametrize("count", [COUNT, guards.FEW, guards.FEW + 1])
def test_memory_in_several_places(count: int) -> None:
    context = make(gather, (count,), bg.Int32)
    numbers = inside((2 * count,), (100,), np.int32)
    for view in (numbers[::2], numbers[::-2], np.broadcast_to(np.int32(3), (count,))):
        assert np.array_equal(context(TABLE, view), TABLE[view])
    for bad in (100, -101):
        numbers[:2] = bad
        with pytest.raises(bg.IndexOutOfBoundsError, match=rf"got {bad} at position \[0\]"):
            context(TABLE, numbers[::2])


def test_indices_that_are_still_computed() -> None:
    context = make(gather, (COUNT,), bg.Int32)
    slow = jax.jit(lambda m, n: jnp.full(COUNT, n) + (jax.lax.fori_loop(0, 30, lambda _, m: m @ m, m)[0, 0] * 0).astype(int))
    zeros = jnp.zeros((300, 300))
    assert np.array_equal(context(TABLE, slow(zeros, 99)), TABLE[np.full(COUNT, 99)])
    with pytest.raises(bg.IndexOutOfBoundsError, match="got 100 at position"):
        context(TABLE, slow(zeros, 100))


def test_one_argument_for_several_axes() -> None:
    def block(b: bg.Builder) -> Any:
        x, y = b.argument("x", bg.Float32, [100]), b.argument("y", bg.Float32, [50])
        i = b.argument("i", bg.Int32, [COUNT])
        return x.gather(i, axis=0), y.gather(i, axis=0), i

    context = bg.make_context(block)
    x, y = np.arange(100, dtype=np.float32), np.arange(50, dtype=np.float32)
    i = inside((COUNT,), (50,), np.int32)
    for got, wanted in zip(context(x, y, i), (x[i], y[i], i), strict=True):
        assert np.array_equal(got, wanted)
    i[9] = 50
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[-50, 50\) on axis 0, got 50 at position \[9\]"):
        context(x, y, i)
    i[4] = 100
    with pytest.raises(
        bg.IndexOutOfBoundsError, match=r"indices must be in \[-100, 100\) on axis 0, got 100 at position \[4\]"
    ):
        context(x, y, i)
    i[4], i[9] = -1, 0  # x[-1] and y[-1] are two places
    for got, wanted in zip(context(x, y, i), (x[i], y[i], i), strict=True):
        assert np.array_equal(got, wanted)


def two_checks(b: bg.Builder) -> Any:
    """The first is the program's own, as its indices are computed; the second is made before."""
    x, i, j = b.argument("x", bg.Float32, [100]), b.argument("i", bg.Int32, [COUNT]), b.argument("j", bg.Int32, [COUNT])
    return {"first": x.gather(i * 2, axis=0), "second": x.gather(j, axis=0)}


def test_the_first_recorded_check_that_fails_is_named() -> None:
    context = bg.make_context(two_checks)
    assert len(entry(context).checks) == 1
    x, good = np.arange(100, dtype=np.float32), np.arange(COUNT, dtype=np.int32) % 50
    assert np.array_equal(context(x, good, good).first, x[good * 2])
    bad, worse = good.copy(), good.copy()
    bad[3], worse[3] = 77, 777
    for first, second, words in ((bad, good, "154"), (good, worse, "777"), (bad, worse, "154")):
        with pytest.raises(bg.IndexOutOfBoundsError, match=rf"got {words} at position \[3\]"):
            context(x, first, second)
    assert np.array_equal(context(x, good, good - 3).second, x[good - 3])


def state(b: bg.Builder) -> Any:
    total = b.argument("total", bg.Float32, [100], bg.Intent.INPUT_OUTPUT)
    items = b.argument("items", bg.Int32, [COUNT])
    total[...] = total.scatter(np.ones(COUNT, np.float32), items, bg.ScatterMode.ADD, axis=0)
    return total.sum(None).named("all")


def test_state_outlives_a_run_that_is_refused() -> None:
    context = bg.make_context(state)
    assert entry(context).check is None  # no program of its own for the check
    before = jnp.zeros(100, jnp.float32)
    items = np.zeros(COUNT, np.int32)
    with pytest.raises(bg.IndexOutOfBoundsError):
        context(before, items + 100)
    assert not before.is_deleted()
    after = context(before, items)
    assert before.is_deleted()
    assert after.total[0] == COUNT
    again = context(after.total, items - 1)
    assert again.total[99] == COUNT
    with pytest.raises(bg.IndexOutOfBoundsError):
        context(again.total, items - 101)
    assert again.total[0] == COUNT


def test_flexible_sizes() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]).gather(b.argument("i", bg.Int32, ["k"]), axis=0))
    for n, k in ((5, 3), (5, COUNT), (900, COUNT), (1, 2)):
        x = np.arange(n, dtype=np.float32)
        i = np.arange(k, dtype=np.int32) % n
        assert np.array_equal(context(x, i), x[i])
        with pytest.raises(bg.IndexOutOfBoundsError, match=rf"indices must be in \[-{n}, {n}\) on axis 0, got {n}"):
            context(x, i + n - i[-1])
    assert [bool(found.guards) for found in context._runner.entries.values()] == [False, True, True, False]


def test_an_axis_without_elements() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, [0]).gather(b.argument("i", bg.Int32, [COUNT]), axis=0))
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[0, 0\) on axis 0, got 0 at position \[0\]"):
        context(np.zeros(0, np.float32), np.zeros(COUNT, np.int32))


def test_negative_indices_that_are_out_of_bounds() -> None:
    context = make(gather, (COUNT,), bg.Int32, negative_indices="out_of_bounds")
    numbers = inside((COUNT,), (100,), np.int32)
    assert np.array_equal(context(TABLE, numbers), TABLE[numbers])
    numbers[8] = -1
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"indices must be in \[0, 100\) on axis 0, got -1 at position \[8\]"):
        context(TABLE, numbers)
    assert len(context.compilations) == 1


@pytest.mark.parametrize("numbers", [np.arange(COUNT) % 100, -1 - np.arange(COUNT) % 100], ids=["front", "end"])
def test_transformations(numbers: np.ndarray) -> None:
    context = make(gather, (COUNT,), bg.Int32)
    i = numbers.astype(np.int32)
    wanted = TABLE[i]
    assert np.array_equal(jax.jit(context)(TABLE, i), wanted)
    assert np.array_equal(jax.jit(lambda y: context(TABLE, i) * y)(np.float32(2)), wanted * 2)
    assert np.array_equal(jax.vmap(context, (0, None))(TABLE[None], i)[0], wanted)
    slopes = jax.grad(lambda x: context(x, i).sum())(TABLE)
    assert np.array_equal(slopes[:, 0, 0], np.bincount(i % 100, minlength=100))


def test_a_selection_that_is_moved_ahead() -> None:
    """Ahead of a product, behind both checks."""
    weights = RNG.standard_normal((3, 64), dtype=np.float32)

    def block(b: bg.Builder) -> bg.Tensor:
        x, i, j = b.argument("x", bg.Float32, [700, 3]), b.argument("i", bg.Int32, [COUNT]), b.argument("j", bg.Int32, [COUNT])
        return (x @ weights).gather(i, axis=0).gather(j, axis=0)

    context, plain = bg.make_context(block), bg.make_context(block, options=bg.CompileOptions(optimize_graph=False))
    assert context.rewrites
    x, i, j = TABLE.reshape(700, 3), inside((COUNT,), (700,), np.int32), inside((COUNT,), (COUNT,), np.int32)
    assert np.allclose(context(x, i, j), (x @ weights)[i][j], atol=1e-5)
    for change in ((700, 0), (0, COUNT), (-701, 0), (0, -COUNT - 1), (700, COUNT)):
        bad = i.copy(), j.copy()
        for part, value in zip(bad, change, strict=True):
            part[11] = value
        messages: list[str] = []
        for each in (context, plain):
            with pytest.raises(bg.IndexOutOfBoundsError) as error:
                each(x, *bad)
            messages.append(error.value.reason)
        assert messages[0] == messages[1]
    i[5], j[6] = -7, -8
    assert np.allclose(context(x, i, j), (x @ weights)[i][j], atol=1e-5)


def test_many_threads() -> None:
    context = make(gather, (COUNT,), bg.Int32)
    numbers = inside((COUNT,), (100,), np.int32)

    def run(number: int) -> bool:
        if number % 3 == 2:
            with pytest.raises(bg.IndexOutOfBoundsError):
                context(TABLE, numbers + 100)
            return True
        given = numbers - 100 * (number % 3)
        return np.array_equal(context(TABLE, given), TABLE[given])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(48)))
    assert len(context.compilations) == 2


@pytest.mark.parametrize("option", [{}, {"device": "cpu"}, {"use_single_thread": True}, {"optimize_graph": False}])
def test_options_and_copies(option: dict[str, Any]) -> None:
    context = make(gather, (COUNT,), bg.Int32, **option)
    numbers = inside((COUNT,), (100,), np.int32)
    for each in (context, pickle.loads(pickle.dumps(context))):
        each.check_for_nans_and_infinities = True
        assert np.array_equal(each(TABLE, numbers), TABLE[numbers])
        each.check_for_nans_and_infinities = False
        assert np.array_equal(each(TABLE, numbers), TABLE[numbers])
        assert np.array_equal(each(TABLE, numbers - 100), TABLE[numbers])
        with pytest.raises(bg.IndexOutOfBoundsError):
            each(TABLE, numbers + 100)
        result = np.zeros((COUNT, 7, 3), np.float32)
        with pytest.raises(bg.IndexOutOfBoundsError):
            each.execute_function([result, TABLE, numbers + 100])
        assert not result.any()
        each.execute_function([result, TABLE, numbers])
        assert np.array_equal(result, TABLE[numbers])


def test_results_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "CLEARED", 0)
    context = make(gather, (COUNT,), bg.Int32)
    numbers = inside((COUNT,), (100,), np.int32)
    y = context(TABLE, numbers)
    for given in (numbers, numbers - 100, numbers):
        y = context.run_into(y, TABLE, given)
        assert np.array_equal(np.array(y), TABLE[numbers])
    with pytest.raises(bg.IndexOutOfBoundsError):
        context.run_into(y, TABLE, numbers + 100)
    assert not y.is_deleted()  # nothing was begun
    variants = [found.variant for found in context._runner.entries.values()]
    assert variants == [PLAIN, INTO, INTO._replace(guarded=False)]
