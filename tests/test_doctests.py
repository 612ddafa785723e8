"""Every example in a docstring of the package runs, and every public function and method has one where it promises one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import bnnsgraph as bg

MODULES = ["bnnsgraph", *(m.name for m in pkgutil.walk_packages(bg.__path__, "bnnsgraph.") if "__main__" not in m.name)]


def names() -> dict[str, object]:
    """What the examples may use without introducing it."""
    builder = bg.Builder()
    return {
        "bg": bg,
        "np": np,
        "builder": builder,
        "x": builder.argument("x", bg.Float32, shape=[2, 3]),
        "mask": builder.argument("mask", bg.Bool, shape=[2, 3]),
        "count": builder.argument("count", bg.Int32, shape=[3]),
    }


def examples() -> list[doctest.DocTest]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests: list[doctest.DocTest] = []
    for name in MODULES:
        module = importlib.import_module(name)
        tests += [test for test in finder.find(module, name, globs={}) if test.examples]
    return tests


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_example(example: doctest.DocTest) -> None:
    module = importlib.import_module(next(m for m in sorted(MODULES, key=len, reverse=True) if example.name.startswith(m)))
    example.globs = {**vars(module), **names()}
    failures: list[str] = []
    doctest.DocTestRunner().run(example, out=failures.append)
    assert not failures, "".join(failures)
