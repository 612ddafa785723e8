"""Contexts as production uses them: many threads, many sizes, devices, donated state, a folder of compiled programs."""

from __future__ import annotations

import concurrent.futures
import os
import stat
import sys
import types
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph import progress


def rows(b: bg.Builder) -> bg.Tensor:
    table = b.argument("table", bg.Float32, ["rows", 3])
    return table.gather(b.argument("index", bg.Int32, [2]), axis=0)


def lookup(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(3 * n, dtype=np.float32).reshape(n, 3), np.array([0, n - 1], np.int32)


def test_sixteen_threads_share_a_context() -> None:
    context = bg.make_context(rows)
    calls = 10_000

    def call(number: int) -> bool:
        table, index = lookup(2 + number % 4)
        if number % 100 == 0:
            with pytest.raises(bg.IndexOutOfBoundsError):
                context(table, index + 1)
        return np.array_equal(context(table, index), table[index])

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(call, range(calls), chunksize=50))
    assert sorted(compilation.sizes["rows"] for compilation in context.compilations) == [2, 3, 4, 5]


def test_threads_compile_different_sizes_at_once_and_each_once() -> None:
    context = bg.make_context(rows)
    started: list[int] = []

    def call(n: int) -> Any:
        started.append(n)
        table, index = lookup(n)
        return np.array_equal(context(table, index), table[index])

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert all(pool.map(call, [2, 3, 4, 5, 6, 7, 8, 9] * 2))
    assert len(started) == 16
    assert sorted(compilation.sizes["rows"] for compilation in context.compilations) == [2, 3, 4, 5, 6, 7, 8, 9]


def test_a_compilation_that_fails_fails_for_all_who_wait_and_can_be_tried_again() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]).reshape([2, 3]) * 2)
    for _ in range(2):
        with pytest.raises(bg.ShapeError, match=r"reshape|must"):
            context(np.ones(5, np.float32))
    assert context(np.ones(6, np.float32)).shape == (2, 3)


def test_the_oldest_program_is_dropped_first() -> None:
    context = bg.make_context(lambda b: b.argument("x", bg.Float32, ["n"]) * 2, options=bg.CompileOptions(max_executables=2))
    for n in (1, 2, 3, 2, 1):
        assert context(np.ones(n, np.float32)).tolist() == [2] * n
    assert [compilation.sizes["n"] for compilation in context.compilations] == [1, 2, 3, 1]
    assert context.compilations[-1].reason == "first run with these sizes, dropped earlier to keep 2 programs"
    assert len(context._entries) == 2


def counter(b: bg.Builder) -> bg.Tensor:
    state = b.argument("state", bg.Float32, [4], intent=bg.Intent.INPUT_OUTPUT)
    at, x = b.argument("at", bg.Int32, [1]), b.argument("x", bg.Float32, [1])
    state[...] = state.scatter(x, at, bg.ScatterMode.UPDATE, axis=0)
    return state.sum([0])


def test_state_is_updated_in_place_and_kept_when_a_run_fails() -> None:
    context = bg.make_context(counter)
    state = jax.numpy.zeros(4)
    place = state.unsafe_buffer_pointer()
    total, new = context(state, np.array([1], np.int32), np.array([5], np.float32))
    assert total == 5
    assert new.tolist() == [0, 5, 0, 0]
    assert state.is_deleted()
    assert new.unsafe_buffer_pointer() == place
    with pytest.raises(bg.IndexOutOfBoundsError, match="got 4"):
        context(new, np.array([4], np.int32), np.array([7], np.float32))
    assert new.tolist() == [0, 5, 0, 0]
    given = np.zeros(4, np.float32)
    assert context(given, np.array([2], np.int32), np.array([3], np.float32))[1].tolist() == [0, 0, 3, 0]
    assert given.tolist() == [0, 0, 0, 0]


def test_state_can_be_kept() -> None:
    context = bg.make_context(counter, options=bg.CompileOptions(donate=False))
    state = jax.numpy.zeros(4)
    _, new = context(state, np.array([1], np.int32), np.array([5], np.float32))
    assert state.tolist() == [0, 0, 0, 0]
    assert new.tolist() == [0, 5, 0, 0]


def test_state_is_kept_when_it_is_not_finite() -> None:
    @bg.make_context
    def context(b: bg.Builder) -> bg.Tensor:
        state = b.argument("state", bg.Float32, [2], intent=bg.Intent.INPUT_OUTPUT)
        state[:] = 1 / state
        return state * 1

    context.check_for_nans_and_infinities = True
    state = jax.numpy.array([1.0, 0.0])
    with pytest.raises(bg.NotFiniteError):
        context(state)
    assert state.tolist() == [1, 0]


def test_a_folder_keeps_compiled_programs(tmp_path: Path) -> None:
    options = bg.CompileOptions(compilation_cache=tmp_path / "new" / "cache")
    before = jax.config.values["jax_compilation_cache_dir"]
    found: list[bool | None] = []
    for _ in range(2):
        jax.clear_caches()
        context = bg.make_context(lambda b: b.argument("x", bg.Float32, [5]) * 3, options=options)
        assert context(np.ones(5, np.float32)).tolist() == [3] * 5
        found.append(context.compilations[0].cached)
    assert found == [False, True]
    assert jax.config.values["jax_compilation_cache_dir"] == before
    assert bg.make_context(lambda b: b.argument("x", bg.Float32, [5]) * 3).compilations[0].cached is None


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(bg.ParameterError, match=r"compilation_cache must be a folder that can be written to, got '.*file"):
            bg.make_context(lambda b: b.argument("x", bg.Float32) * 3, options=bg.CompileOptions(compilation_cache=folder))
    if os.geteuid() != 0:
        tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
        with pytest.raises(bg.ParameterError, match="Permission denied"):
            bg.make_context(lambda b: b.argument("x", bg.Float32) * 3, options=bg.CompileOptions(compilation_cache=tmp_path))


def test_device() -> None:
    def block(b: bg.Builder) -> bg.Tensor:
        return b.argument("x", bg.Float32, [2]) + b.constant(values=np.zeros((20_000, 1)), data_type=bg.Float32).sum([0])

    for device in ("cpu", "cpu:0", jax.devices("cpu")[0]):
        context = bg.make_context(block, options=bg.CompileOptions(device=device, use_single_thread=True))
        assert context(np.ones(2, np.float32)).devices() == {jax.devices("cpu")[0]}
    for wrong in ("cpu:9", "abacus", "cpu:x", 3, ""):
        with pytest.raises(bg.ParameterError, match=r"device must be a device of this process \(cpu:0.*\), got"):
            bg.make_context(block, options=bg.CompileOptions(device=wrong))


def test_precision_is_that_of_the_products() -> None:
    def text(precision: Any) -> str:
        context = bg.make_context(
            lambda b: b.argument("x", bg.Float32, [2, 2]) @ b.argument("y", bg.Float32, [2, 2]),
            options=bg.CompileOptions(precision=precision),
        )
        return context.stablehlo()

    assert "precision = [HIGHEST, HIGHEST]" in text("highest")
    assert "precision = [HIGH, HIGH]" in text("high")
    assert "HIGH" not in text("default")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": "double"}, "precision must be 'highest', 'high' or 'default', got 'double'"),
        ({"donate": 1}, "donate must be True or False, got 1"),
        ({"max_executables": 0}, "max_executables must be an integer of at least 1, got 0"),
        ({"max_executables": True}, "max_executables must be an integer of at least 1, got True"),
        ({"compilation_cache": 3}, "compilation_cache must be a path, got 3"),
        ({"shardings": ["x"]}, r"shardings must be a mapping of names, got \['x'\]"),
        ({"shardings": {"x": jax.sharding.PartitionSpec("i")}}, "mesh must be given with shardings, got none for x"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_options_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(bg.ParameterError, match=rf"CompileOptions\.{words}"):
        bg.CompileOptions(**options)


def test_bars_are_drawn_only_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    assert not progress.is_watched()
    with monkeypatch.context() as notebook:
        shell = types.SimpleNamespace(kernel=object())
        notebook.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # pyright: ignore[reportArgumentType]
        assert progress.is_watched()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert progress.is_watched()
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    assert list(progress.tracked([1, 2], "two")) == [1, 2]
    with progress.waiting("a moment"):
        pass
