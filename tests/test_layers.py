"""The structure that the code keeps: who may import whom, small files, families apart, and no JAX before it is needed."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bnnsgraph as bg
from bnnsgraph.frozen import Frozen
from bnnsgraph.graph import Op
from bnnsgraph.handle import Handle

PACKAGE = Path(bg.__file__).parent
PATHS = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix("__init__").rstrip("."): path
    for path in sorted(PACKAGE.rglob("*.py"))
}
"""Every module, named from the package on: ``spec``, ``ops.reduction``; the package itself is the empty name."""

LAYERS: list[set[str]] = [
    {"origin", "xla", "files", "memory", "identity", "swift.method", "drawn", "frozen"},
    {"errors"},
    {"dtypes", "sizes", "options", "progress"},
    {"spec"},
    {"windows"},
    {"graph"},
    {"elements", "indices", "recurrence", "buffers", "placement", "display.text", "naming", "pieces"},
    {"walking", "executables"},
    {"compile"},
    {"exporting"},
    {"handle"},
    {"ops.indexed", "ops.unary"},
    {"ops.*"},
    {"tensor", "passes.editing"},
    {"builder", "passes.regions", "passes.rowwise"},
    {"passes.costs", "passes.work"},
    {"passes.bags", "passes.folding", "passes.selecting"},
    {"passes.plans"},
    {"passes.moving"},
    {"passes.rewriting"},
    {"guards", "reuse"},
    {"running"},
    {"surface"},
    {"inspecting"},
    {"context"},
]
"""A module imports from the layers above its own line. A module that is not named here is on top: it may import everything,
and nothing named here may import it."""

LAZY = {
    ("graph", "display.text"), ("tensor", "display.text"), ("graph", "elements"), ("identity", "describing"),
    ("drawn", "display.svg"), ("drawn", "display.markup"), ("drawn", "display.html"), ("tensor", "display.html"),
    ("context", "display.html"), ("inspecting", "display.html"),
    ("swift.method", "swift.emit"),
}  # fmt: skip
"""Imports inside a function that go the other way: what prints a graph, or computes with it, knows the graph."""

FIXED = {
    "compile": {"errors", "frozen", "graph", "memory", "options", "placement", "spec", "walking", "xla"},  # no tensor
    "display.text": {"graph"},
    "xla": set[str](),
    "origin": set[str](),
}
"""Modules that see less than their layer would let them."""


class Import(NamedTuple):
    """One import of a module of this package, or of JAX."""

    module: str
    line: int
    typing_only: bool
    inside_function: bool


def imports(path: Path) -> Iterator[Import]:
    """Every import of the file that concerns the rules."""

    def visit(node: ast.AST, typing_only: bool, inside: bool) -> Iterator[Import]:
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=orelse):
                for child in body:
                    yield from visit(child, True, inside)
                for child in orelse:
                    yield from visit(child, typing_only, inside)
                return
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                inside = True
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, node.lineno, typing_only, inside)
            case ast.ImportFrom(module=str(module), names=names, level=level):
                assert level == 0, f"{path.name}:{node.lineno}: imports are absolute"
                if module == "bnnsgraph":
                    for alias in names:
                        yield Import(f"bnnsgraph.{alias.name}", node.lineno, typing_only, inside)
                else:
                    yield Import(module, node.lineno, typing_only, inside)
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            yield from visit(child, typing_only, inside)

    return visit(ast.parse(path.read_text()), False, False)


def own_imports(name: str) -> list[Import]:
    """Imports of modules of this package, without its name."""
    found = [each for each in imports(PATHS[name]) if each.module.startswith("bnnsgraph.")]
    return [each._replace(module=each.module.removeprefix("bnnsgraph.")) for each in found]


def layer(name: str) -> int:
    """The number of a module's layer; the top for modules that have no line."""
    for number, names in enumerate(LAYERS):
        if name in names:
            return number
    return LAYERS.index({"ops.*"}) if name.startswith("ops.") else len(LAYERS)


def test_every_layer_names_modules_that_exist() -> None:
    named = set().union(*LAYERS) - {"ops.*"}
    assert named <= PATHS.keys()


@pytest.mark.parametrize("name", sorted(PATHS.keys() - {"", "__main__"}))
def test_modules_import_downwards(name: str) -> None:
    wrong: list[str] = []
    for found in own_imports(name):
        if found.module in ("tensor", "graph") and found.typing_only:
            continue
        if found.inside_function and (name, found.module) in LAZY:
            continue
        above = layer(found.module) < layer(name) or layer(name) == len(LAYERS)
        if not above or found.module not in FIXED.get(name, {found.module}):
            wrong.append(f"{name}:{found.line} imports {found.module}")
    assert wrong == []


def test_families_share_bases_and_never_import_each_other() -> None:
    bases = {"ops.indexed", "ops.unary"}
    for name in PATHS:
        if name.startswith("ops.") and name not in bases:
            assert {each.module for each in own_imports(name) if each.module.startswith("ops.")} <= bases


RUNNING = {"compile", "executables", "exporting", "running", "surface", "walking", "context"}


def test_jax_comes_through_one_module_while_a_graph_is_recorded() -> None:
    """Only what runs graphs names JAX itself, and only inside functions."""
    for name, path in PATHS.items():
        for found in imports(path):
            if found.module.split(".")[0] in ("jax", "jaxlib") and not found.typing_only:
                assert found.inside_function, f"{name}:{found.line} imports JAX when it is imported"
                assert name in RUNNING or layer(name) == len(LAYERS), f"{name}:{found.line} imports JAX"


RECORDING = """
import sys
import numpy as np
import bnnsgraph as bg

builder = bg.Builder()
x = builder.argument("x", bg.Float32, shape=["batch", 3])
i = builder.argument("i", bg.UInt8, shape=[2])
table = builder.constant("table", values=np.arange(12, dtype=np.float32).reshape(4, 3))
rows = table.gather([0, -1, 2], axis=0).gather(np.array([1, 0], np.uint8), axis=0).gather(i, axis=0, out_of_bounds="clip")
rows = rows.gather_nd([[0, 1], [-1, -1]], out_of_bounds=bg.fill(0)).unsqueeze(axis=1) + 1
rows = rows.scatter([[1.0], [2.0]], [0, 0], bg.ScatterMode.ADD, axis=0)
y = (x[..., ::-1] @ table.transpose(axes=[1, 0])).mean([0], keep_dimensions=True).cast(to=bg.BFloat16)
y[..., 0] = 1
mask = (y > 0) & ~(y == 2)
z = mask.select(y, 0).sum(None)
texts = [repr(tensor) for tensor in (x, i, table, rows, y, mask, z)] + [str(x)]
for wrong in (lambda: table.gather([9], axis=0), lambda: x + i, lambda: bool(x)):
    try:
        wrong()
    except bg.GraphError as error:
        texts.append(str(error))
graph = builder.finish([rows, z])
texts += [str(graph), repr(graph)]
assert all(texts)
assert len(texts) == 13
print(sorted(name for name in sys.modules if name.split(".")[0] in ("jax", "jaxlib")))
"""


def test_importing_and_recording_import_no_jax() -> None:
    run = subprocess.run([sys.executable, "-c", RECORDING], capture_output=True, text=True, cwd=PACKAGE.parent, timeout=120)
    assert (run.stdout, run.stderr) == ("[]\n", "")


START = """
import sys
import dataclasses, numpy  # old versions of NumPy come without what dataclasses needs
before = set(sys.modules)
import bnnsgraph
print(sorted(name for name in set(sys.modules) - before if name.split(".")[0] not in ("bnnsgraph", *sys.argv[1:])))
"""
CHEAP = ["__future__", "copy"]


def test_the_package_starts_with_little_more_than_numpy() -> None:
    """What takes long to import, such as ``logging`` and ``hashlib``, is imported by the functions that need it."""
    command = [sys.executable, "-c", START, *CHEAP]
    run = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent, timeout=120)
    assert (run.stdout, run.stderr) == ("[]\n", "")


def test_importing_every_module_imports_no_jax() -> None:
    names = [f"bnnsgraph.{name}".rstrip(".") for name in PATHS if name != "__main__"]
    program = f"import importlib, sys\nfor name in {names!r}: importlib.import_module(name)\nprint('jax' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=PACKAGE.parent, timeout=120)
    assert (run.stdout, run.stderr) == ("False\n", "")


# Shape of the code


@pytest.mark.parametrize("name", sorted(PATHS))
def test_modules_are_small(name: str) -> None:
    assert len(PATHS[name].read_text().splitlines()) <= 400


def test_nothing_is_attached_or_looked_up_by_name() -> None:
    """Completion and type checkers see every method: no ``setattr``, no ``__getattr__``, but for the lazy modules of JAX."""
    for name, path in PATHS.items():
        if name == "xla":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.Name) and node.id == "setattr"), f"{name}:{node.lineno}"
            assert not (isinstance(node, ast.FunctionDef) and node.name == "__getattr__"), f"{name}:{node.lineno}"


def subclasses(base: type) -> Iterator[type]:
    for found in base.__subclasses__():
        yield found
        yield from subclasses(found)


def loaded() -> None:
    """Import everything, so that all classes exist."""
    for name in PATHS:
        if name != "__main__":
            importlib.import_module(f"bnnsgraph.{name}".rstrip("."))


def operations() -> list[type[Op]]:
    loaded()
    return sorted({found for found in subclasses(Op) if found.__module__.startswith("bnnsgraph.")}, key=lambda op: op.__name__)


def test_operations_are_frozen_dataclasses() -> None:
    found = [operation for operation in operations() if "lower" in vars(operation)]
    assert len(found) > 40
    for operation in found:
        assert dataclasses.is_dataclass(operation)
        assert operation.__setattr__ is Frozen.__setattr__
        declared = {
            name: None
            for base in reversed(operation.__mro__)
            for name, annotation in vars(base).get("__annotations__", {}).items()
            if not str(annotation).startswith("ClassVar")
        }
        assert [field.name for field in dataclasses.fields(operation)] == [*declared], f"{operation.__name__} is not @frozen"
    names = [operation.__name__ for operation in operations()]
    assert len(set(names)) == len(names)


def families() -> list[type]:
    loaded()
    return [found for found in bg.Tensor.__mro__ if issubclass(found, Handle) and found not in (bg.Tensor, Handle)]


CLASS_ATTRIBUTES = {
    "__module__", "__doc__", "__slots__", "__hash__", "__orig_bases__", "__parameters__", "__annotations__",
    "__firstlineno__", "__static_attributes__", "__annotate_func__", "__annotations_cache__", "__conditional_annotations__",
}  # fmt: skip


def test_no_two_families_define_one_name() -> None:
    defined = {family: vars(family).keys() - CLASS_ATTRIBUTES for family in [*families(), Handle]}
    assert len(defined) > 9
    for (one, names), (other, others) in itertools.combinations(defined.items(), 2):
        assert names & others == set(), f"{one.__name__} and {other.__name__}"


def test_a_family_adds_methods_and_no_state() -> None:
    for family in families():
        assert family.__name__.endswith("Methods")
        assert vars(family)["__slots__"] == ()
        assert family.__doc__


# Public functions and methods


def public(owner: Any, module: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions of a module or class, those behind properties and static methods among them."""
    for name, value in vars(owner).items():
        function = value.fget if isinstance(value, property) else value.__func__ if isinstance(value, staticmethod) else value
        if not name.startswith("_") and inspect.isfunction(function) and function.__module__ == module:
            yield name, function


def everything_public() -> Iterator[tuple[str, Callable[..., Any], bool]]:
    """Name, function, and whether it is a method of an operation, which its base class and the fluent method explain."""
    loaded()
    for name in PATHS.keys() - {"__main__"}:
        full = f"bnnsgraph.{name}".rstrip(".")
        module = sys.modules[full]
        for found, function in public(module, full):
            yield f"{full}.{found}", function, False
        for cls in vars(module).values():
            if inspect.isclass(cls) and cls.__module__ == full:
                for found, function in public(cls, full):
                    yield f"{full}.{cls.__name__}.{found}", function, issubclass(cls, Op)


def test_public_functions_are_annotated_and_documented() -> None:
    wrong: list[str] = []
    for name, function, of_operation in everything_public():
        signature = inspect.signature(function)
        unknown = [
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.annotation is parameter.empty and parameter.name not in ("self", "cls")
        ]
        if signature.return_annotation is signature.empty:
            unknown.append("return")
        if unknown:
            wrong.append(f"{name}: no annotation of {', '.join(unknown)}")
        if not of_operation and not function.__doc__:
            wrong.append(f"{name}: no docstring")
    assert wrong == []


def test_fluent_methods_tell_their_swift_name_or_that_there_is_none() -> None:
    wrong: list[str] = []
    for family in families():
        for name, function in public(family, family.__module__):
            summary = (function.__doc__ or "").strip().splitlines()[0]
            if "Swift: ``" not in (function.__doc__ or "") and "Not in Apple's builder" not in (function.__doc__ or ""):
                wrong.append(f"{family.__name__}.{name}: {summary}")
    assert wrong == []
