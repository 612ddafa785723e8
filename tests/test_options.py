"""Compile options do what they say, and what they cannot do is an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import bnnsgraph as bg
import bnnsgraph.compile


def text_of(context: bg.Context, *shapes: tuple[int, ...]) -> str:
    program = context._runner.placed()
    structs = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    return program.compiled([struct.shape for struct in structs]).lower(*program.parameters, *structs).as_text(debug_info=True)  # pyright: ignore[reportFunctionMemberAccess]


def scaled(b: bg.Builder) -> Any:
    return b.argument("x", bg.Float32, [300]) * b.constant("scale", values=np.arange(300, dtype=np.float32))


def test_debug_info_names_operations_and_lines() -> None:
    plain, named = bg.make_context(scaled), bg.make_context(scaled, options=bg.CompileOptions(generate_debug_info=True))
    assert "Multiply@test_options.py:" in text_of(named, (300,))
    assert "Multiply@" not in text_of(plain, (300,))


def test_the_internal_representation_keeps_constants_out() -> None:
    small = bg.CompileOptions(optimization_preference=bg.OptimizationPreference.INTERNAL_REPRESENTATION_SIZE)
    plain, compact = bg.make_context(scaled), bg.make_context(scaled, options=small)
    assert len(text_of(compact, (300,))) < len(text_of(plain, (300,))) - 2_000
    x = np.ones(300, np.float32)
    assert plain(x).tolist() == compact(x).tolist() == list(range(300))


def test_one_thread() -> None:
    context = bg.make_context(scaled, options=bg.CompileOptions(use_single_thread=True))
    assert context(np.ones(300, np.float32))[7] == 7
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bnnsgraph.compile.jax, "default_backend", lambda: "gpu")
        with pytest.raises(
            bg.ParameterError, match="use_single_thread must be False except on the CPU, got True with the gpu backend"
        ):
            bg.make_context(scaled, options=bg.CompileOptions(use_single_thread=True))


@pytest.mark.parametrize(
    "field", ["use_single_thread", "generate_debug_info", "optimization_preference", "out_of_bounds", "negative_indices"]
)
def test_bad_options(field: str) -> None:
    arguments: dict[str, Any] = {field: "no"}
    with pytest.raises(bg.ParameterError, match=rf"CompileOptions.{field} must be .*, got 'no'"):
        bg.CompileOptions(**arguments)


def divided(b: bg.Builder) -> Any:
    x = b.argument("x", bg.Float32, [2])
    mask = b.constant(values=[True, False])
    hidden = mask.select(x / 2, float("inf"))
    return (1 / x) * 2, hidden


def test_the_first_operation_that_makes_an_infinity_is_named() -> None:
    context = bg.make_context(divided)
    context(np.zeros(2, np.float32))
    context.check_for_nans_and_infinities = True
    assert context.check_for_nans_and_infinities
    context(np.ones(2, np.float32))
    output, hidden = np.full(2, 7, np.float32), np.full(2, 7, np.float32)
    with pytest.raises(bg.NotFiniteError) as caught:
        context.execute_function([output, hidden, np.zeros(2, np.float32)])
    message = str(caught.value)
    assert "Divide(): the result must be finite while check_for_nans_and_infinities is on" in message
    assert "return (1 / x) * 2, hidden" in message
    assert output.tolist() == hidden.tolist() == [7, 7]
    with pytest.raises(bg.NotFiniteError, match="argument 'x' must be finite"):
        context(np.array([np.nan, 1], np.float32))
    context.check_for_nans_and_infinities = False
    context(np.zeros(2, np.float32))


def test_rows_are_copied_at_the_level_that_is_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(block: Callable[[bg.Builder], Any]) -> Any:
        return bnnsgraph.compile.compiler_options(bg.make_context(block).graph).get("xla_backend_optimization_level")

    def rows(b: bg.Builder) -> bg.Tensor[Any]:
        return b.argument("x", bg.Float32, [8, 64]).gather(b.argument("i", bg.Int32, [4]), axis=0)

    def put_back(b: bg.Builder) -> bg.Tensor[Any]:
        return b.argument("y", bg.Float32, [8, 64]).scatter(
            rows(b), b.argument("j", bg.Int32, [4]), axis=0, mode=bg.ScatterMode.UPDATE
        )

    assert asked(rows) == 2
    assert asked(put_back) is None
    assert asked(lambda b: b.argument("x", bg.Float32, [8, 64]) + 1) is None
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=1")
    assert asked(rows) is None
