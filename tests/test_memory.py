"""A large constant is in memory once, and not in the compiled program."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bnnsgraph as bg
from bnnsgraph.graph import Constant
from bnnsgraph.memory import ALIGNMENT, LARGE, empty, is_frozen

PROGRAM = """
import resource, sys
import numpy as np
import bnnsgraph as bg
from bnnsgraph.memory import empty

def gathered(b, table):
    return b.constant("table", values=table).gather(b.argument("i", bg.Int32, ["n"]), axis=0)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

size, frozen = int(sys.argv[1]), sys.argv[2] == "frozen"
bg.make_context(lambda b: gathered(b, np.ones((2**14, 4), np.float32)))(np.zeros(4, np.int32))  # JAX has started
table = empty((size // 1024, 256), np.dtype(np.float32))
table[...] = 1
table.base.flags.writeable = not frozen
table.flags.writeable = not frozen
before = peak()
context = bg.make_context(lambda b: gathered(b, table))
assert context(np.zeros(16, np.int32)).shape == (16, 256)
print(peak() - before)
"""


def growth(size: int, kind: str) -> float:
    """By how many times the size of the table the peak grows."""
    command = [sys.executable, "-c", PROGRAM, str(size), kind]
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    return int(run.stdout) / size


@pytest.mark.skipif(sys.platform == "win32", reason="the peak is asked of a POSIX system")
@pytest.mark.parametrize("size", [2**27, pytest.param(2**30, marks=pytest.mark.long)])
@pytest.mark.parametrize(("kind", "most"), [("writeable", 1.1), ("frozen", 0.1)])
def test_a_table_is_copied_once_or_not_at_all(size: int, kind: str, most: float) -> None:
    assert growth(size, kind) <= most


def test_the_program_does_not_grow_with_the_table() -> None:
    def lines(rows: int) -> int:
        table = np.ones((rows, 4), np.float32)
        context = bg.make_context(lambda b: b.constant(values=table).gather(b.argument("i", bg.Int32, [3]), axis=0))
        return len(context.stablehlo())

    assert abs(lines(2**20) - lines(2**14)) <= 50  # digits of the sizes


def test_the_device_uses_the_memory_of_a_constant() -> None:
    context = bg.make_context(lambda b: b.constant(values=np.ones(LARGE, np.float32)) * b.argument("x", bg.Float32))
    (parameter,), (constant,) = context._runner.placed().parameters, context._runner.placed().constants
    assert isinstance(constant.op, Constant)
    assert parameter.unsafe_buffer_pointer() == constant.op.array.ctypes.data


def test_arrays_that_nobody_can_write_to_are_taken_as_they_are() -> None:
    frozen = np.ones((100, 300), np.float32)
    view = frozen[2:]
    frozen.flags.writeable = False
    assert is_frozen(frozen)
    assert not is_frozen(view)  # made while the memory could be written to
    still = frozen[2:]
    assert is_frozen(still)
    for array, taken in ((frozen, True), (still, True), (view, False)):
        context = bg.make_context(lambda b, array=array: b.constant(values=array) + 0)
        constant = next(node.op for node in context.graph.nodes if isinstance(node.op, Constant))
        assert np.shares_memory(constant.array, array) is taken


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int8, bg.BFloat16.numpy, np.int64])
def test_large_arrays_are_aligned(dtype: type) -> None:
    array = empty((300, 301), np.dtype(dtype))
    assert array.shape == (300, 301)
    assert array.dtype == dtype
    assert array.ctypes.data % ALIGNMENT == 0
    assert empty((0, 5), np.dtype(dtype)).shape == (0, 5)
