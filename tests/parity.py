"""The counterpart of every symbol of Apple's builder, by the naming rule alone; ``python -m tests.parity`` writes the page.

The inventory, ``docs/bnns_builder_api.json``, has one row for each public Swift symbol. A row is carried over when the
mechanical name exists in the package, takes the Swift labels as parameters, and names the selector in its docstring.
"""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bnnsgraph as bg
from tests import onnx_mapping_left_out

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "parity.md"

OPERATORS = {
    "+(_:_:) [Tensor, parameter]": "__add__", "+(_:_:) [parameter, Tensor]": "__radd__",
    "-(_:_:) [Tensor, parameter]": "__sub__", "-(_:_:) [parameter, Tensor]": "__rsub__",
    "*(_:_:) [Tensor, parameter]": "__mul__", "*(_:_:) [parameter, Tensor]": "__rmul__",
    "/(_:_:) [Tensor, parameter]": "__truediv__", "/(_:_:) [parameter, Tensor]": "__rtruediv__",
    "%(_:_:) [Tensor, parameter]": "__mod__",
    ".==(_:_:)": "__eq__", ".!=(_:_:)": "__ne__", ".<(_:_:)": "__lt__", ".<=(_:_:)": "__le__", ".>(_:_:)": "__gt__",
    ".>=(_:_:)": "__ge__", ".&(_:_:)": "__and__", ".|(_:_:)": "__or__", ".^(_:_:)": "__xor__", "!(_:)": "__invert__",
    "subscript(_:) get": "__getitem__", "subscript(_:) set": "__setitem__",
}  # fmt: skip

ARRAYS = "NumPy and JAX arrays are made and read by their own functions; every call takes them"
OPERANDS = "operands that are arrays or numbers become constants by themselves; `builder.constant(...)` makes one by hand"
FILES = "reads a compiled Core ML file; contexts here come from `make_context`"
POINTERS = "pointers to memory are Swift's; NumPy arrays carry their memory, shape and dtype"
SHAPES = "a shape is a sequence of integers and names"

REASONS: dict[str, str] = {
    "Builder.SliceIndex": "what stands between the brackets: integers, slices, `...` and `SliceRange`",
    "Builder.OperationParameter": OPERANDS,
    "Builder.OperationParameter.Element": "the dtype of the operand",
    "BNNSScalar.bnnsDataType": "the dtype class is the value; `.numpy` is its NumPy dtype",
    "BNNSGraph.TensorDescriptor": "blocks return tensors of any dtype",
    "BNNSGraph.TensorDescriptor.tensorData": POINTERS,
    "BNNSGraph.Shape": SHAPES,
    "BNNSGraph.Shape.init(_:)": SHAPES,
    "BNNSGraph.Shape.init(arrayLiteral:)": SHAPES,
    "BNNSGraph.Shape.dimensions": SHAPES,
    "BNNSGraph.Shape.ArrayLiteralElement": SHAPES,
    "BNNSGraph.PointerArgument": POINTERS,
    "BNNSGraph.PointerArgument.baseAddress": POINTERS,
    "BNNSGraph.PointerArgument.count": POINTERS,
    "BNNSGraph.PointerArgument.Element": POINTERS,
    "BNNSGraph.Error.unableToCreateContext": FILES,
    "BNNSGraph.Error.unableToCreateGraph": FILES,
    "BNNSGraph.Error.unableToExecute": "a failed run says what failed: `IndexOutOfBoundsError`, `ShapeError`, `ArgumentError`",
    "Context.streamingAdvanceCount": "concerns streaming models that are read from files",
    "vImage.PixelBuffer.withBNNSTensor(_:)": "an image is an array of shape (height, width, channels)",
}


@dataclass(frozen=True)
class Counterpart:
    """Where a Swift symbol went: a Python name, or a reason why there is none."""

    swift: str
    group: str
    python: str | None
    note: str

    @property
    def missing(self) -> bool:
        """Whether the row has neither a counterpart nor a reason."""
        return self.python is None and not self.note


def snake(name: str) -> str:
    """The Python name of a Swift one; an acronym is one word.

    >>> snake("bidirectionalLSTM"), snake("leakyReLU"), snake("checkForNaNsAndInfinities"), snake("l2Norm")
    ('bidirectional_lstm', 'leaky_relu', 'check_for_nans_and_infinities', 'l2_norm')
    """
    for acronym in ("ReLU", "LSTM", "ND", "NaNs"):
        name = name.replace(acronym, acronym.capitalize())
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def labels_of(selector: str) -> list[str]:
    """The named labels of a selector such as ``gather(indices:axis:)``."""
    inside = re.search(r"\((.*?)\)", selector)
    return [label for label in inside.group(1).split(":") if label and label != "_"] if inside else []


def selectors(member: Any) -> set[str]:
    """The Swift names that a docstring gives."""
    return set(re.findall(r"``([^`]+)``", " ".join(re.findall(r"Swift:? (.*(?:\n.*)?)", inspect.getdoc(member) or ""))))


def method(owner: Any, swift: str, name: str, selector: str) -> Counterpart | None:
    """The counterpart of a method or property, if its labels and its selector are there."""
    member = inspect.getattr_static(owner, name, None)
    if member is None:
        return None
    function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
    base = selector.partition("(")[0]
    named = any(found.partition("(")[0].lstrip(".").endswith(base.lstrip(".")) for found in selectors(function))
    if callable(function) and not isinstance(member, property) and "(" in selector:
        parameters = set(inspect.signature(function).parameters)
        if not {snake(label) for label in labels_of(selector)} <= parameters:
            return None
        shown = [p for p in inspect.signature(function).parameters if p != "self"]
        text = f"{owner.__name__}.{name}({', '.join(shown)})"
    else:
        text = f"{owner.__name__}.{name}"
    return Counterpart(swift, "", text, "") if named else None


def enum_member(path: list[str]) -> str | None:
    """A case of an enum or value type: an upper-case member, a factory, or a field."""
    owner = getattr(bg, path[0], None)
    if owner is None:
        return None
    if len(path) == 1:
        return path[0]
    base, _, rest = path[1].partition("(")
    if base == "init":
        return path[0]
    for name in (snake(base).upper(), snake(base)):
        if hasattr(owner, name) or name in getattr(owner, "__dataclass_fields__", {}):
            return f"{path[0]}.{name}" + (f"({', '.join(map(snake, labels_of('(' + rest)))})" if rest else "")
    return None


def find(swift: str) -> Counterpart | None:
    """The counterpart of one symbol by the naming rule."""
    bare = re.sub(r" \[.*\]$| {2}\(.*\)$", "", swift)
    for prefix, owner in (("Tensor.", bg.Tensor), ("OperationParameter.", bg.Tensor), ("Builder.Tensor.", bg.Tensor)):
        if swift.startswith(prefix):
            rest = re.sub(r" {2}\(.*\)$", "", swift.removeprefix(prefix))
            name = OPERATORS.get(rest) or OPERATORS.get(rest.removeprefix("."))
            if name:
                return Counterpart(swift, "", f"Tensor.{name}", "") if selectors(getattr(bg.Tensor, name)) else None
            if rest == "description":
                return Counterpart(swift, "", "Tensor.__str__", "")
            selector = bare.removeprefix(prefix)
            return method(owner, swift, snake(selector.partition("(")[0]), selector)
    if bare in ("BNNSGraph", "Builder", "BNNSGraph.Context", "Builder.Tensor", "BNNSScalar"):
        names = {"BNNSGraph": "bnnsgraph", "BNNSScalar": "Scalar (Float32, Int8, ...)"}
        return Counterpart(swift, "", names.get(bare, bare.rpartition(".")[2]), "")
    if bare.startswith("BNNSGraph.makeContext"):
        return Counterpart(swift, "", "make_context(block, options)", "")
    for prefix, owner in (("Context.", bg.Context), ("BNNSTensor.", bg.BNNSTensor)):
        if bare.startswith(prefix):
            selector = bare.removeprefix(prefix)
            if prefix == "BNNSTensor." and "(" not in selector:
                known = hasattr(bg.BNNSTensor, selector)
                return Counterpart(swift, "", f"BNNSTensor.{selector}", "") if known else None
            return method(owner, swift, snake(selector.partition("(")[0]), selector)
    if re.match(r"Builder\.[a-z]", bare):
        selector = bare.removeprefix("Builder.")
        return method(bg.Builder, swift, snake(selector.partition("(")[0]), selector)
    path = bare.removeprefix("Builder.").removeprefix("BNNSGraph.").removeprefix("CompileOptions.OptimizationPreference")
    if "CompileOptions.OptimizationPreference" in bare:
        path = "OptimizationPreference" + path
    if bare.startswith("BNNSGraph.Error"):
        case = bare.removeprefix("BNNSGraph.Error").lstrip(".").partition("(")[0]
        name = case[:1].upper() + case[1:] + "Error" if case else "GraphError"
        return Counterpart(swift, "", name, "") if hasattr(bg, name) else None
    head, dot, tail = path.partition(".")
    found = enum_member([head, tail] if dot else [head])
    return Counterpart(swift, "", found, "") if found else None


def rows() -> list[Counterpart]:
    """Every symbol of the inventory with where it went."""
    result: list[Counterpart] = []
    for row in json.loads((DOCS / "bnns_builder_api.json").read_text()):
        swift, group = row["swift"], row["group"]
        found = find(swift)
        reason = "" if found else REASONS.get(swift, "")
        if not found and not reason:
            if "graphBuilderTensor" in swift:
                reason = OPERANDS
            elif swift.startswith("BNNSTensor") and group == "buffers":
                reason = ARRAYS
            elif "compileFromPath" in swift:
                reason = FILES
        note = reason
        if found and "[pointers]" in swift:
            note = POINTERS
        elif found and "async" in swift.partition("[")[2]:
            note = "Python's call waits for the result"
        result.append(Counterpart(swift, group, found.python if found else None, note))
    return result


def extensions() -> list[tuple[str, str]]:
    """Public methods that Apple's builder does not have, with their first line."""
    found: list[tuple[str, str]] = []
    for owner in (bg.Tensor, bg.Builder, bg.Context):
        for name, member in inspect.getmembers(owner):
            doc = inspect.getdoc(member) or ""
            if not name.startswith("_") and "Swift" not in doc and callable(member) and doc:
                found.append((f"{owner.__name__}.{name}", summary(doc)))
    return found


def summary(docstring: str) -> str:
    """The first line of a docstring, as Markdown.

    >>> summary("What a run costs: see :class:`Cost`, and ``sizes``. Not in Apple's builder.")
    'What a run costs: see `Cost`, and `sizes`.'
    """
    line = docstring.partition("\n")[0].replace(" Not in Apple's builder.", "")
    return re.sub(r":\w+:`([^`]+)`|``(.+?)``", lambda found: f"`{found[1] or found[2]}`", line)


def render() -> str:
    """The page."""
    table = rows()
    carried = sum(row.python is not None for row in table)
    lines = [
        "# Swift to Python",
        "",
        "Written by `python -m tests.parity` from the docstrings' Swift selectors and Apple's public symbols",
        "([the inventory](bnns_builder_api.json)); a test fails when it is out of date or a symbol is missing.",
        "",
        "The rule: camelCase becomes snake_case, labels stay, an acronym is one word, cases of enums are upper-case, and",
        "overloads that differ by optional arguments are one method.",
        "",
        f"{carried} of {len(table)} symbols have a counterpart; the others say why not.",
    ]
    for group in dict.fromkeys(row.group for row in table):
        lines += ["", f"## {group.replace('-', ' ').capitalize()}", "", "| Swift | Python | note |", "|---|---|---|"]
        for row in table:
            if row.group == group:
                swift = row.swift.replace("|", "\\|")
                lines.append(f"| `{swift}` | {f'`{row.python}`' if row.python else '-'} | {row.note} |")
    lines += ["", "## Not in Apple's builder", "", "| Python | what it is |", "|---|---|"]
    lines += [f"| `{name}` | {summary} |" for name, summary in extensions()]
    passed, left_out = onnx_mapping_left_out.summary()
    lines += [
        "",
        "## The node tests of ONNX",
        "",
        f"{passed} of the {onnx_mapping_left_out.CASES} plain node cases of the onnx package pass through the public API; "
        "`tests/test_onnx_nodes.py` runs them.",
        "",
        "| left out | reason |",
        "|---|---|",
    ]
    lines += [f"| {count} | {reason} |" for reason, count in left_out]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render())
