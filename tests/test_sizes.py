"""The arithmetic of flexible sizes against integers, and the shared rules of shapes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bnnsgraph as bg
from bnnsgraph.sizes import UNKNOWN, Size, as_dimension
from bnnsgraph.spec import broadcast_shapes, element_count, equal_size, normalize_axes, row_major_stride

NAMES = ["a", "b"]


def expressions() -> st.SearchStrategy[str]:
    leaves = st.sampled_from(NAMES) | st.integers(0, 5).map(str)
    return st.recursive(
        leaves,
        lambda inner: (
            st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
            | st.tuples(inner, st.integers(1, 4)).map(lambda t: f"({t[0]} // {t[1]})")
        ),
        max_leaves=6,
    )


@settings(max_examples=300, deadline=None, derandomize=True)
@given(expressions(), st.integers(0, 9), st.integers(0, 9))
def test_arithmetic_is_that_of_integers(text: str, a: int, b: int) -> None:
    size = as_dimension(text)
    value = size.bind({"a": a, "b": b}) if isinstance(size, Size) else size
    assert value == eval(text, {"a": a, "b": b})


@settings(max_examples=200, deadline=None, derandomize=True)
@given(expressions())
def test_text_is_a_normal_form(text: str) -> None:
    size = as_dimension(text)
    again = as_dimension(str(size)) if isinstance(size, Size) else size
    assert again == size
    assert hash(again) == hash(size)


def test_equal_sizes_have_one_form() -> None:
    a, b = Size.named("a"), Size.named("b")
    assert (a + b) * 2 == 2 * b + 2 * a
    assert a - a == 0
    assert 1 + a - 1 == a
    assert str((a * b + 1) // 2) == "(a*b + 1)//2"
    assert (6 * a) // 3 == 2 * a  # pyright: ignore[reportOperatorIssue]
    assert a == "a"
    assert a != "b"
    assert (a + 1) // 2 - 1 == (a - 1) // 2
    assert -a // 2 == a // 2 - a
    assert (2 * a + 1) // 4 == a // 2
    assert (a // 2 + 1) // 3 == (a + 2) // 6


def test_unknown_absorbs() -> None:
    assert UNKNOWN + 1 is UNKNOWN
    assert UNKNOWN - UNKNOWN is UNKNOWN
    assert 3 * UNKNOWN is UNKNOWN
    assert UNKNOWN // 2 is UNKNOWN
    assert repr(UNKNOWN) == "-1"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("2 batch", "a named dimension must be a Python identifier such as 'batch', got '2 batch'"),
        ("f(x)", "a named dimension must be a Python identifier"),
        (-2, "a dimension must be at least 0, or -1 for a flexible one, got -2"),
        (1.5, "a dimension must be an integer or a name, got 1.5"),
        (True, "a dimension must be an integer or a name, got True"),
    ],
)
def test_bad_dimensions(value: Any, words: str) -> None:
    with pytest.raises(bg.GraphError, match=None) as caught:
        as_dimension(value)
    assert words in str(caught.value)


def test_broadcasting_is_that_of_numpy() -> None:
    import numpy as np

    sizes = [(), (1,), (3,), (2, 3), (2, 1), (0, 3), (4, 1, 3), (0,), (2,)]
    for a, b in itertools.product(sizes, sizes):
        try:
            wanted = np.broadcast_shapes(a, b)
        except ValueError:
            with pytest.raises(bg.ShapeError):
                broadcast_shapes(a, b)
        else:
            assert broadcast_shapes(a, b) == wanted


def test_broadcasting_of_flexible_sizes() -> None:
    n, m = Size.named("n"), Size.named("m")
    assert broadcast_shapes((n, 3), (1, 3)) == (n, 3)
    assert broadcast_shapes((n,), (n,)) == (n,)
    assert broadcast_shapes((n,), (5,)) == (5,)
    assert broadcast_shapes((n,), (UNKNOWN,)) == (UNKNOWN,)
    assert broadcast_shapes((UNKNOWN, 1), (UNKNOWN, 4)) == (UNKNOWN, 4)
    with pytest.raises(bg.ShapeError, match="n and m are not known to be equal"):
        broadcast_shapes((n,), (m,))
    assert equal_size(n, 4) == 4
    assert equal_size(n, m) is None
    assert equal_size(UNKNOWN, n) == n


def test_counts_and_strides() -> None:
    n = Size.named("n")
    assert element_count(()) == 1
    assert element_count((2, n, 3)) == 6 * n
    assert row_major_stride((2, n, 3)) == (3 * n, 3, 1)
    assert row_major_stride(()) == ()


def test_axes() -> None:
    assert normalize_axes([-1, 0], 3) == (2, 0)
    with pytest.raises(bg.ShapeError, match=r"axes must be in \[-3, 3\), got 3"):
        normalize_axes([3], 3)
    with pytest.raises(bg.ShapeError, match="axes must be different from each other"):
        normalize_axes([0, -3], 3)
    with pytest.raises(bg.ShapeError, match="the tensor has rank 0"):
        normalize_axes([0], 0)
    with pytest.raises(bg.ParameterError, match=r"axes must be an integer, got 1.0"):
        normalize_axes([1.0], 3)  # pyright: ignore[reportArgumentType]
