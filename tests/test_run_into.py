"""Results that take the place of earlier ones in memory: the same answers, and nothing that is still needed is lost."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import reuse
from tests.compilations import Compilations


@pytest.fixture(params=[0, reuse.CLEARED], ids=["any size", "small"], autouse=True)
def bytes_worth_keeping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Once as if all results were large, and once as they are."""
    monkeypatch.setattr(reuse, "CLEARED", request.param)
    return request.param


X = np.arange(12, dtype=np.float32).reshape(3, 4)


def double(b: bg.Builder) -> bg.Tensor:
    return b.argument("x", bg.Float32, [3, 4]) * 2


def several(b: bg.Builder) -> dict[str, bg.Tensor]:
    """One that is an argument, one twice, a constant, a number, nothing, and other types."""
    x = b.argument("x", bg.Float32, [3, 4])
    y = x + 1
    return {
        "sum": y, "same": y, "given": x, "constant": b.constant(values=X), "total": x.sum(None), "none": x[:0],
        "mask": x > 5, "half": x.cast(bg.Float16), "long": x.cast(bg.Int64),
    }  # fmt: skip


def place(array: jax.Array) -> int:
    return array.unsafe_buffer_pointer()


def test_the_result_is_in_the_memory_given(bytes_worth_keeping: int) -> None:
    context = bg.make_context(double)
    for x in (X, jnp.asarray(X)):
        first = context(x)
        where = place(first)
        second = context.run_into(first, x + 1)
        assert first.is_deleted()
        assert bytes_worth_keeping or place(second) == where
        assert np.array_equal(np.array(second), (X + 1) * 2)
    reasons = (
        ["every size is known"] if bytes_worth_keeping else ["every size is known", "first run into arrays of these sizes"]
    )
    assert [each.reason for each in context.compilations] == reasons
    result = context.run_into(jnp.zeros((3, 4), jnp.float32), X)
    with Compilations() as seen:
        for number in range(3):
            result = context.run_into(result, X + number)
            assert np.array_equal(np.array(result), (X + number) * 2)
    assert seen.count == 0


def test_none_is_new_memory() -> None:
    context = bg.make_context(double)
    assert np.array_equal(context.run_into(None, X), X * 2)
    assert np.array_equal(context.run_into(None, x=X), X * 2)
    assert len(context.compilations) == 1


def test_several_results(bytes_worth_keeping: int) -> None:
    context = bg.make_context(several)
    wanted = context(X)
    kept = [np.array(part) for part in wanted]
    for given in (wanted, list(context(X)), tuple(context(X))):
        got = context.run_into(given, x=X)
        assert got._fields == wanted._fields
        assert all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(got, kept, strict=True))
        assert all(part.is_deleted() for part in given)
    assert len(context.compilations) == (1 if bytes_worth_keeping else 2)


def test_a_view_in_numpy_stays_as_it_is() -> None:
    context = bg.make_context(double)
    first = context(X)
    view = np.asarray(first)
    second = context.run_into(first, X + 1)
    assert np.array_equal(view, X * 2)
    assert np.array_equal(second, (X + 1) * 2)


def test_state_and_results() -> None:
    def block(b: bg.Builder) -> Any:
        state = b.argument("state", bg.Float32, [4], bg.Intent.INPUT_OUTPUT)
        state[...] = state + b.argument("x", bg.Float32, [4])
        return (state * 2).named("doubled")

    context = bg.make_context(block)
    x = np.ones(4, np.float32)
    results = context(jnp.zeros(4, jnp.float32), x)
    for step in range(2, 5):
        results = context.run_into(results, results.state, x)
        assert np.array_equal(np.array(results.doubled), np.full(4, 2.0 * step))
        assert np.array_equal(np.array(results.state), np.full(4, step))
    doubled = context.run_into(results.doubled, results.state, x).doubled  # without the state
    assert np.array_equal(doubled, np.full(4, 10))


def test_flexible_sizes() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) * 2)
    result: Any = None
    for size in (3, 5):
        result = None
        for _ in range(3):
            result = context.run_into(result, np.ones(size, np.float32))
        assert np.array_equal(result, np.full(size, 2))
    with pytest.raises(bg.ShapeError, match=r"output 'output_0' must have shape \[4\], got \[5\]"):
        context.run_into(result, np.ones(4, np.float32))


def test_weak_memory(bytes_worth_keeping: int) -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, [2]) * 2)
    weak = jnp.full(2, 3.0)
    assert weak.weak_type
    result = context.run_into(weak, np.ones(2, np.float32))
    assert not result.weak_type
    assert len(context.compilations) == (1 if bytes_worth_keeping else 2)


def used() -> jax.Array:
    array = jnp.zeros((3, 4), jnp.float32)
    array.delete()
    return array


@pytest.mark.parametrize(
    ("results", "error", "words"),
    [
        (np.zeros((3, 4), np.float32), bg.ArgumentError, "must be a jax.Array, such as an earlier result, got ndarray; exec"),
        (jnp.zeros((3, 4), jnp.int32), bg.DTypeError, "must be of dtype float32, got int32"),
        (jnp.zeros((4, 3), jnp.float32), bg.ShapeError, r"must have shape \[3, 4\], got \[4, 3\]"),
        (used(), bg.ArgumentError, "must be an array with memory, got one that an earlier run used up"),
        ((), bg.ArgumentError, r"results must be 1 arrays \(output_0\), got 0"),
        ([jnp.zeros((3, 4), jnp.float32)] * 2, bg.ArgumentError, r"results must be 1 arrays \(output_0\), got 2"),
    ],
)  # fmt: skip
def test_what_does_not_fit(results: Any, error: type[Exception], words: str) -> None:
    context = bg.make_context(double)
    with pytest.raises(error, match=words) as found:
        context.run_into(results, X)
    assert "context.run_into(results, X)" in str(found.value)


def test_memory_that_is_read_or_given_twice() -> None:
    context = bg.make_context(double)
    x = jnp.asarray(X)
    with pytest.raises(bg.ArgumentError, match="output 'output_0' must be an array of its own, got one that is an argument"):
        context.run_into(x, x)
    assert np.array_equal(x, X)
    two = bg.make_context(lambda b: {"a": (y := b.argument("x", bg.Float32, [3, 4])) + 1, "b": y + 2})
    with pytest.raises(bg.ArgumentError, match="output 'b' must be an array of its own"):
        two.run_into((x, x), X)


def test_a_run_that_fails() -> None:
    """What a run needs stays, whether or not the memory of its results does."""
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, [4]).gather(b.argument("i", bg.Int32, [4]), axis=0))
    x, i = jnp.arange(4, dtype=jnp.float32), jnp.asarray([3, 2, 1, 0], jnp.int32)
    result = context(x, i)
    with pytest.raises(bg.IndexOutOfBoundsError, match=r"got 4 at position \[0\]"):
        context.run_into(result, x, i + 1)
    assert context.run_into(context(x, i), x, i).tolist() == [3, 2, 1, 0]
    context.check_for_nans_and_infinities = True
    with pytest.raises(bg.NotFiniteError):
        context.run_into(context(x, i), x.at[0].set(np.nan), i)


def test_inside_of_transformations() -> None:
    context = bg.make_context(double)
    memory = jnp.zeros((3, 4), jnp.float32)
    assert np.array_equal(jax.jit(context.run_into)(memory, X), X * 2)
    assert np.array_equal(jax.jit(lambda x: context.run_into(memory, x))(X), X * 2)
    assert np.array_equal(jax.vmap(lambda x: context.run_into(memory, x))(X[None])[0], X * 2)
    assert np.array_equal(jax.jit(lambda y: context.run_into(memory, X) * y)(np.float32(3)), X * 6)
    assert not memory.is_deleted()


def test_a_device_that_is_named(bytes_worth_keeping: int) -> None:
    context = bg.make_context(double, options=bg.CompileOptions(device="cpu"))
    first = context(X)
    where = place(first)
    second = context.run_into(first, X)
    assert first.is_deleted()
    assert bytes_worth_keeping or place(second) == where


def test_pieces() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        x = b.argument("x", bg.Float32, [3, 4])
        for _ in range(120):
            x = x * 0.5 + 1
        return x

    context = bg.make_context(block)
    wanted = np.array(context(X))
    assert np.array_equal(context.run_into(context(X), X), wanted)


def test_constants_and_arguments_among_the_results_stay() -> None:
    constant = np.arange(1 << 15, dtype=np.float32)  # a parameter of the program

    def block(b: bg.Builder) -> Any:
        x = b.argument("x", bg.Float32, constant.shape)
        k = b.constant("k", values=constant)
        return {"given": x, "k": k, "sum": x + k}

    context = bg.make_context(block)
    x = jnp.ones(constant.shape, jnp.float32)
    results = context(x)
    for _ in range(3):
        results = context.run_into(results, x)
        for got, wanted in zip(context(x), (np.ones_like(constant), constant, constant + 1), strict=True):
            assert np.array_equal(got, wanted)
    assert not x.is_deleted()


def test_a_large_result() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, [reuse.CLEARED // 4 or 8]) * 2)
    x = np.ones(reuse.CLEARED // 4 or 8, np.float32)
    first = context(x)
    where = place(first)
    second = context.run_into(first, x)
    assert place(second) == where
    assert (np.asarray(second) == 2).all()
