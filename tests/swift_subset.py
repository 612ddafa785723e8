"""The part of Swift that ``Graph.to_swift`` writes: read, checked against Apple's public symbols, and recorded again.

``read`` turns the text into statements, ``Inventory`` says whether a call with its labels exists, and ``rebuild`` records the
same graph through the public API by the naming rule alone.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph.graph import Argument, Constant, Graph, Node
from bnnsgraph.ops.slicing import Span
from bnnsgraph.sizes import Size
from tests.parity import DOCS, snake

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)|(?P<word>\w+)
    |(?P<sign>\.\.\.|\.\.<|\.==|\.!=|\.<=|\.>=|\.<|\.>|\.&|\.\||\.\^|\.!|->|[-+*/%=(){}\[\],:.<>!])""",
    re.VERBOSE,
)
SIGNS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod, ".==": operator.eq,
    ".!=": operator.ne, ".<": operator.lt, ".<=": operator.le, ".>": operator.gt, ".>=": operator.ge, ".&": operator.and_,
    ".|": operator.or_, ".^": operator.xor,
}  # fmt: skip
TYPES = {"Float": bg.Float32, **{name: getattr(bg, name) for name in (
    "Float16", "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")}}  # fmt: skip
ENUMS = {
    "padding": "ConvolutionPadding", "ceilingMode": "CeilingMode", "direction": "Direction", "activation": "Activation",
    "recurrentActivation": "Activation", "cellActivation": "Activation", "mode": "ScatterMode", "sortOrder": "SortOrder",
    "intent": "Intent", "pad": "Padding", "pooling": "PoolingFunction", "optimizationPreference": "OptimizationPreference",
}  # fmt: skip
"""The type of a case, by the label before it, or by the method of which it is the first argument."""


@dataclass(frozen=True)
class Term:
    """One expression: its kind, its name, and its parts (for a call, labels and values)."""

    kind: str
    name: str = ""
    parts: tuple[Any, ...] = ()


class Reader:
    """A recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        place = 0
        while place < len(text):
            found = TOKEN.match(text, place)
            assert found, f"no Swift of the subset: {text[place : place + 40]!r}"
            if found.lastgroup != "space":
                self.tokens.append(found[0])
            place = found.end()
        self.place = 0

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[self.place + ahead] if self.place + ahead < len(self.tokens) else ""

    def take(self, wanted: str = "") -> str:
        token = self.tokens[self.place]
        assert not wanted or token == wanted, f"wanted {wanted}, got {' '.join(self.tokens[self.place : self.place + 9])}"
        self.place += 1
        return token

    def block(self) -> tuple[Term | None, list[tuple[str, Any, Term]]]:
        """The options and the statements of the closure given to ``makeContext``, ``return`` last."""
        while self.peek() != "makeContext":
            self.take()
        self.take()
        options = None
        if self.peek() == "(":
            for token in ("(", "options", ":"):
                self.take(token)
            options = self.expression()
            self.take(")")
        for token in ("{", "builder", "in"):
            self.take(token)
        statements: list[tuple[str, Any, Term]] = []
        while not statements or statements[-1][0] != "return":
            statements.append(self.statement())
        for _ in range(2):
            self.take("}")
        assert self.place == len(self.tokens)
        return options, statements

    def statement(self) -> tuple[str, Any, Term]:
        if self.peek() == "return":
            self.take()
            return "return", None, self.expression()
        if self.peek() in ("let", "var"):
            keyword = self.take()
            if self.peek() == "(":
                names = [name for name, _ in self.separated("(", ")", lambda: (self.take(), None))]
            else:
                names = self.take()
            self.take("=")
            return keyword, names, self.expression()
        target = self.postfix()
        self.take("=")
        return "assign", target, self.expression()

    def separated(self, opening: str, closing: str, item: Any) -> list[Any]:
        self.take(opening)
        found: list[Any] = []
        while self.peek() != closing:
            found.append(item())
            if self.peek() != closing:
                self.take(",")
        self.take(closing)
        return found

    def expression(self) -> Term:
        """At most one operator: the text has parentheses around every other."""
        left = self.prefix()
        token = self.peek()
        if token in SIGNS or token == "..<":
            self.take()
            return Term("binary", token, (left, self.prefix()))
        if token == "...":
            self.take()
            return Term("binary", token, (left, None if self.peek() in "],)" else self.prefix()))
        if token == "as":
            self.take()
            return Term("as", self.separated("[", "]", self.take)[0], (left,))
        return left

    def prefix(self) -> Term:
        if self.peek() in ("-", ".!"):
            return Term("prefix", self.take(), (self.prefix(),))
        return self.postfix()

    def postfix(self) -> Term:
        term = self.primary()
        while self.peek() in (".", "[", "("):
            if self.peek() == ".":
                self.take()
                term = Term("member", self.take(), (term,))
            elif self.peek() == "[":
                term = Term("subscript", "", (term, *self.separated("[", "]", self.expression)))
            else:
                term = Term("call", "", (term, *self.separated("(", ")", self.argument)))
        return term

    def argument(self) -> tuple[str, Term]:
        label = ""
        if self.peek(1) == ":":
            label = self.take()
            self.take(":")
        return label, self.expression()

    def primary(self) -> Term:
        token = self.peek()
        if token == "(":
            self.take()
            term = self.expression()
            self.take(")")
            return term
        if token == "[":
            return Term("array", "", tuple(self.separated("[", "]", self.expression)))
        if token == ".":
            self.take()
            return Term("member", self.take(), (None,))
        self.take()
        return Term("string" if token[0] == '"' else "number" if token[0].isdigit() else "name", token)


class Inventory:
    """Apple's public symbols: which calls exist, with which labels in which order."""

    def __init__(self) -> None:
        self.calls: dict[str, list[list[tuple[str, bool]]]] = {}
        self.signs: set[str] = set()
        self.symbols: set[str] = set()
        for row in json.loads((DOCS / "bnns_builder_api.json").read_text()):
            swift = re.sub(r" \[.*\]$| {2}\(.*\)$", "", row["swift"])
            self.symbols.add(swift.partition("(")[0])
            labels = [("" if each["label"] == "_" else each["label"], each["default"] is not None) for each in row["params"]]
            if row["kind"] == "operator":
                self.signs.add("." + "!" if "!(" in swift else re.sub(r"^(OperationParameter|Tensor)\.|\(.*", "", swift))
            self.calls.setdefault(swift.partition("(")[0], []).append(labels)

    def require(self, name: str, labels: list[str]) -> None:
        """The call exists; what it leaves out has a default."""
        for variant in self.calls.get(name, []):
            rest = list(labels)
            omissible = True
            for label, has_default in variant:
                if rest[:1] == [label]:
                    rest.pop(0)
                else:
                    omissible = omissible and has_default
            if not rest and omissible:
                return
        raise AssertionError(f"Apple has no {selector(name, labels)}")


def selector(name: str, labels: list[str]) -> str:
    """A call as Apple's pages name it."""
    return f"{name}({''.join((label or '_') + ':' for label in labels)})"


@functools.cache
def inventory() -> Inventory:
    return Inventory()


class Rebuilder:
    """Records statements again, and notes every call in the order of the text."""

    def __init__(self, weights: bytes = b"") -> None:
        self.builder = bg.Builder()
        self.names: dict[str, Any] = {}
        self.weights = weights
        self.calls: list[str] = []

    def run(self, text: str) -> Graph:
        options, statements = Reader(text).block()
        if options is not None:
            self.builder = bg.Builder(self.value(options))
        for kind, target, term in statements:
            if kind == "return":
                return self.builder.finish([self.value(part) for part in term.parts])
            value = self.value(term)
            if kind == "assign" and target.kind == "subscript":
                self.names[target.parts[0].name][tuple(self.item(item) for item in target.parts[1:])] = value
                self.calls.append("subscript =")
            elif isinstance(target, list):
                for name, part in zip(target, value, strict=True):
                    self.names[name] = part
            else:
                self.names[target if isinstance(target, str) else target.name] = copied(value) if term.kind == "name" else value
        raise AssertionError("no return")

    def value(self, term: Term, place: str = "") -> Any:
        match term:
            case Term("name", ("true" | "false") as name):
                return name == "true"
            case Term("name", name):
                return self.names[name]
            case Term("string", text):
                return json.loads(text)
            case Term("number", text):
                return int(text) if text.isdigit() else float(text)
            case Term("array", _, parts):
                return [self.value(part) for part in parts]
            case Term("as", name, (part,)):
                return np.array(self.value(part), TYPES[name].numpy)
            case Term("prefix", "-", (part,)):
                return -self.value(part)
            case Term("prefix", sign, (part,)):
                self.calls.append(sign)
                assert sign in inventory().signs
                return ~self.value(part)
            case Term("binary", "...", (low, high)):
                return self.value(low), None if high is None else self.value(high)
            case Term("binary", "..<", (low, high)):
                return slice(self.value(low), self.value(high))
            case Term("binary", sign, (left, right)):
                one, other = self.value(left), self.value(right)
                self.calls.append(sign)
                assert sign in inventory().signs
                return SIGNS[sign](one, other)
            case Term("subscript", _, (part, *items)):
                tensor, places = self.value(part), tuple(self.item(item) for item in items)
                self.calls.append("subscript")
                return tensor[places]
            case Term("member", "infinity" | "nan", (owner,)):
                number = float("inf" if term.name == "infinity" else "nan")
                return number if owner is None else TYPES[owner.name].numpy.type(number)
            case Term("member", "fillAll", (Term("name", "SliceRange"),)):
                return bg.SliceRange.fill_all
            case Term("member", "self", (owner,)):
                return TYPES[owner.name]
            case Term("member", name, (None,)):
                return self.case(name, place)
            case Term("call", _, (head, *arguments)):
                return self.call(head, arguments, place)
            case _:
                raise AssertionError(f"no Swift of the subset: {term}")

    def item(self, term: Term) -> Any:
        """One item of a subscript."""
        value = self.value(term)
        return slice(value[0], None) if isinstance(value, tuple) else value

    def case(self, name: str, place: str) -> Any:
        enum = ENUMS[place]
        qualified = {"OptimizationPreference": "BNNSGraph.CompileOptions.OptimizationPreference"}.get(enum, f"Builder.{enum}")
        assert f"{qualified}.{name}" in inventory().symbols, f"Apple has no {enum}.{name}"
        return getattr(getattr(bg, enum), snake(name).upper())

    def call(self, head: Term, arguments: list[tuple[str, Term]], place: str) -> Any:
        labels = [label for label, _ in arguments]
        owner = head.parts[0] if head.kind == "member" else None
        if head.kind == "name" and head.name in TYPES:
            (value,) = (self.value(term) for _, term in arguments)
            return TYPES[head.name].numpy.type(value)
        if head.kind == "array":  # [Float](repeating:count:)
            value, count = (self.value(term) for _, term in arguments)
            return np.full(count, value, TYPES[head.parts[0].name].numpy)
        if head.name == "stored":
            dtype, count, offset = (self.value(term) for _, term in arguments)
            return np.frombuffer(self.weights, dtype.numpy, count, offset)
        if head.name in ("SliceRange", "CompileOptions"):
            inventory().require(f"{'Builder' if head.name == 'SliceRange' else 'BNNSGraph'}.{head.name}.init", labels)
            self.calls.append(selector(head.name, labels))
            return getattr(bg, head.name)(**{snake(label): self.value(term, label) for label, term in arguments})
        if owner is None:  # a case with a payload
            enum = ENUMS[place]
            inventory().require(f"Builder.{enum}.{head.name}", labels)
            return getattr(getattr(bg, enum), snake(head.name))(*[self.value(term) for _, term in arguments])
        builder = owner == Term("name", "builder")
        subject = self.builder if builder else self.value(owner)
        positional = [self.value(term, head.name) for label, term in arguments if not label]
        named = {snake(label): self.value(term, label) for label, term in arguments if label}
        inventory().require(f"{'Builder' if builder else 'Tensor'}.{head.name}", labels)
        self.calls.append(selector(head.name, labels))
        return getattr(subject, snake(head.name))(*positional, **named)


def copied(tensor: Any) -> Any:
    """Another variable with the same tensor; assigning to a part of one leaves the other as it is."""
    return tensor._wrap(tensor._value)


def rebuild(text: str, weights: bytes = b"") -> Graph:
    """The graph that the Swift text describes."""
    return Rebuilder(weights).run(text)


def calls(text: str, weights: bytes = b"") -> list[str]:
    """Every call of the text in its order: methods with labels, operators, subscripts."""
    rebuilder = Rebuilder(weights)
    rebuilder.run(text)
    return rebuilder.calls


# What two graphs have in common: everything but names of sizes and of outputs, lines, and the rule of indices

RULE = {"out_of_bounds", "negative_indices", "unique_indices"}


def shown(value: Any) -> Any:
    if isinstance(value, Size):
        return -1
    if isinstance(value, Span):
        return (value.start or 0, value.stop, value.step) if value.step > 0 else tuple(value)
    if isinstance(value, tuple):
        return tuple(shown(part) for part in value)
    return value


def meaning(node: Node) -> tuple[Any, ...]:
    op = node.op
    if isinstance(op, Argument):
        return "Argument", op.name, op.spec.dtype, shown(op.spec.shape), op.intent
    if isinstance(op, Constant):
        array = (
            np.where(op.array != op.array, np.array(np.nan, op.array.dtype), op.array)
            if op.array.dtype.kind == "f"
            else op.array
        )
        return "Constant", op.name, op.spec.dtype, op.array.shape, array.tobytes()
    return (
        type(op).__name__,
        *[(field.name, shown(getattr(op, field.name))) for field in fields(op) if field.name not in RULE],
    )


def canonical(graph: Graph) -> list[Any]:
    """The graph as a list that is equal for graphs of equal meaning, whatever the order in which they were recorded."""
    numbers: dict[Node, int] = {}
    lines: list[Any] = []
    wanted = [*graph.arguments, *graph.results, *graph.updates.values()]
    stack = [value.node for value in reversed(wanted)]
    while stack:
        node = stack[-1]
        waiting = [value.node for value in node.inputs if value.node not in numbers]
        if waiting:
            stack += reversed(waiting)
            continue
        stack.pop()
        if node not in numbers:
            numbers[node] = len(lines)
            lines.append((meaning(node), [(numbers[value.node], value.index) for value in node.inputs]))
    return [*lines, [(numbers[value.node], value.index) for value in (*graph.results, *graph.updates.values())]]
