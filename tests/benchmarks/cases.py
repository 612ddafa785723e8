"""A case: one program on the same arrays, written for us and for each peer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph import reuse
from tests.benchmarks import peers, slow_peers
from tests.benchmarks.timing import BARE, CLOCK, INTO, LIMIT, OURS, UNCHECKED, Row, parts, side_by_side

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """One program. Every function takes the arrays, then the weights, in the order in which they are given.

    Attributes:
        name: what is done, on what.
        arrays: makes the arguments of a call, by name.
        block: the program with tensors; ``numpy``, ``bare`` (of JAX, jitted) and ``torch`` are the same with arrays. Who has
            None is left out.
        onnx: the same as operations of ONNX in its text form, from the arguments' names to ``y`` (and ``z``).
        weights: makes what does not change from call to call.
        tolerance: of the answers; 0 where nothing is rounded.
        long: whether PyTorch and ONNX take indices ``i`` of 64 bits only.
        indexed: whether the program has run-time indices, which we check.
        quick: whether the case is in the quick run.
        ours: how we run it where that is not a context's call.
        core_ai: the same as a function of ``coreai.authoring`` and of its values, where it has the operation.
        openvino: whether OpenVINO runs the program of ONNX.
    """

    name: str
    arrays: Callable[[], Arrays]
    block: Callable[..., Any]
    numpy: Callable[..., Any] | None
    bare: Callable[..., Any] | None
    torch: Callable[..., Any] | None = None
    onnx: str | None = None
    weights: Callable[[], Arrays] = field(default=dict[str, Any])
    tolerance: float = 0.0
    long: bool = False
    indexed: bool = True
    quick: bool = False
    ours: Callable[[bg.Context], Callable[..., Any]] | None = None
    core_ai: Callable[..., Any] | None = None
    openvino: bool = True

    def context(self, arrays: Arrays, weights: Arrays, *, unchecked: bool = False) -> bg.Context:
        """The case's program as a context."""

        def block(builder: bg.Builder) -> Any:
            arguments = [builder.argument(name, array.dtype, array.shape) for name, array in arrays.items()]
            constants = [builder.constant(name, data_type=w.dtype, values=w) for name, w in weights.items()]
            return self.block(*arguments, *constants)

        return bg.make_context(block, options=bg.CompileOptions(out_of_bounds="unchecked" if unchecked else "raise"))

    def functions(self, *, only_bare: bool) -> dict[str, Callable[[], Any]]:
        """Who runs it, and how; ``only_bare`` leaves out every peer but ``jax.jit``."""
        arrays, weights = self.arrays(), self.weights()
        calls = self._xla(arrays, weights)
        again = calls.pop(INTO)
        if only_bare:
            return calls
        answers = [part.copy() for part in parts(calls[OURS]())]
        if self.ours is None and any(answer.nbytes >= reuse.CLEARED for answer in answers):
            calls[INTO] = again
        if self.numpy is not None:
            given = (*arrays.values(), *weights.values())
            calls["NumPy"] = lambda: self.numpy(*given)  # pyright: ignore[reportOptionalCall]
        long = {name: a.astype(np.int64) if self.long and name == "i" else a for name, a in arrays.items()}
        torch = peers.optional("torch") if self.torch is not None else None
        if torch is not None:
            tensors = [torch.from_numpy(array) for array in (*long.values(), *weights.values())]
            calls["PyTorch"] = lambda: self.torch(*tensors)  # pyright: ignore[reportOptionalCall]
            compiled = slow_peers.compiled(self.torch, tensors)  # pyright: ignore[reportArgumentType]
            if compiled is not None:
                calls["torch.compile"] = compiled
        model = peers.onnx_model(self.onnx, long, weights, answers) if self.onnx is not None else None
        if model is not None:
            for who, call in (
                ("ONNX Runtime", peers.onnx_runtime(model, long, answers)),
                ("OpenVINO", peers.openvino(model, long) if self.openvino else None),
            ):
                if call is not None:
                    calls[who] = call
        core_ai = slow_peers.core_ai(self.core_ai, arrays, answers) if self.core_ai is not None else None
        if core_ai is not None:
            calls["Core AI"] = core_ai
        copies = [np.empty_like(answer) for answer in answers]

        def copy() -> Any:
            for place, answer in zip(copies, answers, strict=True):
                np.copyto(place, answer)
            return copies

        calls[LIMIT] = copy
        return calls

    def _xla(self, arrays: Arrays, weights: Arrays) -> dict[str, Callable[[], Any]]:
        import jax
        import jax.numpy as jnp

        wide = any(array.dtype.itemsize == 8 for array in (*arrays.values(), *weights.values()))
        bare = jax.jit(self.bare) if self.bare is not None else None
        with jax.enable_x64(wide):
            given = [jnp.asarray(array) for array in arrays.values()]
            held = [jnp.asarray(array) for array in weights.values()]

        def run_bare(bare: Callable[..., Any]) -> Any:
            if not wide:
                return bare(*given, *held)
            with jax.enable_x64(True):
                return bare(*given, *held)

        def run_ours(context: bg.Context) -> Callable[[], Any]:
            call = context if self.ours is None else self.ours(context)
            return lambda: call(*given)

        context = self.context(arrays, weights)
        last: list[Any] = [None]

        def run_again() -> Any:
            last[0] = context.run_into(last[0], *given)
            return last[0]

        calls = {OURS: run_ours(context), INTO: run_again}
        if self.indexed:
            calls[UNCHECKED] = run_ours(self.context(arrays, weights, unchecked=True))
        return calls if bare is None else calls | {BARE: functools.partial(run_bare, bare)}


def run_cases(cases: Iterable[Case], quick: bool) -> list[Row]:
    """The rows of the cases; of the quick ones alone, beside ``jax.jit`` alone, if ``quick``."""
    rows: list[Row] = []
    for case in cases:
        if (quick and not case.quick) or CLOCK.out(case.name):
            continue
        rows += side_by_side(case.name, case.functions(only_bare=quick), tolerance=case.tolerance)
    return rows
