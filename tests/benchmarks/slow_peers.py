"""Peers that take minutes: ``torch.compile``, which runs a C++ compiler for every program, and Core AI's runtime."""

from __future__ import annotations

import asyncio
import importlib.metadata
import inspect
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from tests.benchmarks import peers

asked = False
"""Whether these peers are to run."""


def versions() -> dict[str, str]:
    """The version of Core AI's package, where it takes part; PyTorch's stands with the others."""
    try:
        return {"coreai-core": importlib.metadata.version("coreai-core")} if asked else {}
    except importlib.metadata.PackageNotFoundError:
        return {}


def compiled(function: Callable[..., Any], tensors: Sequence[Any]) -> Callable[[], Any] | None:
    """A call of ``torch.compile(function)``; None where it is not asked for, or there is no C++ compiler."""
    if not asked:
        return None
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        peers.NOTES["torch.compile"] = "torch.compile is left out: it needs a C++ compiler"
        return None
    import torch

    torch.compiler.reset()  # it gives up on a function that was compiled for eight sets of shapes
    call = torch.compile(function, dynamic=False)
    try:
        call(*tensors)
    except RuntimeError as error:
        reason = " ".join(str(error).split("\n")[:2])
        peers.NOTES[f"torch.compile {function}"] = f"torch.compile is left out once: {reason}"
        return None
    return lambda: call(*tensors)


def core_ai(
    program: Callable[..., Any], arrays: Mapping[str, np.ndarray], answers: Sequence[np.ndarray]
) -> Callable[[], Any] | None:
    """A call of Core AI's runtime that reads arrays given to it once; None where it is not asked for, or not installed.

    Args:
        program: a function of ``coreai.authoring`` and of its values, which returns one.
        arrays: the values, by name.
        answers: what is returned, for its type and shape.
    """
    ca: Any = peers.optional("coreai.authoring") if asked else None
    if ca is None:
        return None
    from coreai.runtime import NDArray  # pyright: ignore[reportMissingImports]

    def spec(array: np.ndarray, **named: str) -> Any:
        return Annotated[ca.Value, ca.TensorSpec(array.shape, array.dtype.type, **named)]

    def main(*values: Any) -> Any:
        return program(ca, *values)

    types, result = {name: spec(array) for name, array in arrays.items()}, spec(answers[0], name="y")
    parameters = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=kind) for name, kind in types.items()
    ]
    described: Any = main
    described.__signature__ = inspect.Signature(parameters, return_annotation=result)
    main.__annotations__ = {**types, "return": result}
    module = ca.Module.create()
    with module:
        ca.graph(main)
    loop = asyncio.new_event_loop()
    with tempfile.TemporaryDirectory() as folder:
        asset = ca.AIProgram(module).save_asset(Path(folder) / "program.aimodel")
        model = loop.run_until_complete(asset.executable().__aenter__())  # which makes a program of it, elsewhere
    function, given = model.load_function("main"), {name: NDArray(array) for name, array in arrays.items()}

    async def run() -> Any:
        return (await function(given))["y"].numpy()

    return lambda: loop.run_until_complete(run())
