"""The graph that a command is about, and the files that it writes."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import bnnsgraph as bg
from bnnsgraph.files import write_atomically
from bnnsgraph.graph import argument_of
from bnnsgraph.progress import waiting
from bnnsgraph.sizes import UNKNOWN, Size
from bnnsgraph.spec import Shape, bind_shape


def graph_from(text: str) -> bg.Graph:
    """The graph that FILE names; see :data:`bnnsgraph.commands.parsing.FILE`.

    Raises:
        FileFormatError: the file holds no graph.
        OSError: the file cannot be read.
        ParameterError: the code cannot be run, or has no graph of that name.
    """
    place, _, name = text.rpartition(":")
    is_code = place.endswith(".py") or all(part.isidentifier() for part in place.split("."))
    if is_code and name.isidentifier() and not os.path.exists(text):
        return _graph_of(text, name, place)
    if text.endswith(".py"):
        raise bg.ParameterError(f"{text} must be followed by the name of a block or context, as in {text}:model, got none")
    try:
        with waiting(f"reading {text}"):
            return bg.load(text)
    except bg.FileFormatError as error:
        raise bg.FileFormatError(error.reason, *error.details, "FILE must be what bnnsgraph.save wrote, whole") from None


def _graph_of(text: str, name: str, place: str) -> bg.Graph:
    """Run Python code and take what it calls ``name``; a block is recorded, not compiled."""
    try:
        module = _run_file(place) if place.endswith(".py") else _run_module(place)
        found = cast("Any", vars(module).get(name))
        if isinstance(found, bg.Context):
            return found.graph
        if isinstance(found, bg.Graph):
            return found
        if callable(found):
            builder = bg.Builder()
            return builder.finish(found(builder))
    except bg.GraphError as error:
        line = f"at {error.origin}:  {error.origin.text}"
        raise bg.ParameterError(f"{text}: {error.reason}", *error.details, line) from None
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and error.filename == place:
            raise
        ours = (__file__, importlib.__file__)
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.line and frame.filename not in ours]
        lines = [f"at {os.path.basename(frame.filename)}:{frame.lineno}:  {frame.line}" for frame in frames[-1:]]
        raise bg.ParameterError(f"{text}: the code must run, got {type(error).__name__}: {error}", *lines) from None
    got = f"no {name!r}" if found is None else type(found).__name__
    raise bg.ParameterError(f"{text} must name a block, a context or a graph, got {got}")


def _run_file(path: str) -> Any:
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with open(path, "rb"):  # one error for a file that is not there
        pass
    spec = importlib.util.spec_from_file_location(f"bnnsgraph_run_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their module; no name that something else may have
    spec.loader.exec_module(module)
    return module


def _run_module(name: str) -> Any:
    sys.path.insert(0, os.getcwd())
    return importlib.import_module(name)


def on_device(graph: bg.Graph, device: str | None) -> bg.Graph:
    """The graph, to be run on a device of that name.

    Raises:
        ParameterError: there is no such device.
    """
    if device is None:
        return graph
    options = dataclasses.replace(graph.options, device=device)
    placed = bg.Graph(graph.arguments, graph.results, graph.result_names, graph.updates, options)
    from bnnsgraph.placement import platform

    try:
        platform(placed)
    except bg.ParameterError as error:
        raise bg.ParameterError(error.reason.replace("CompileOptions.device", "--device")) from None
    return placed


def shapes_for(
    graph: bg.Graph, sizes: Sequence[tuple[str, int]], shapes: Sequence[tuple[str, Shape]], arrays: Mapping[str, Any]
) -> list[tuple[int, ...]]:
    """The shape of each argument: that of its array, else the one given, else with the named sizes put in.

    Raises:
        ParameterError: a size is not given, or a name is unknown.
        ShapeError: the sizes contradict each other, or a rule of the graph.
    """
    known: dict[str, Shape] = {**dict(shapes), **{name: array.shape for name, array in arrays.items()}}
    chosen: dict[str, Any] = {}
    declared = {argument_of(value).name: value.spec for value in graph.arguments}
    _require_known("--shape", [name for name, _ in shapes], declared, "arguments")
    for name, spec in declared.items():
        for size, actual in zip(spec.shape, known.get(name, ()), strict=False):
            if isinstance(size, Size) and repr(size).isidentifier():
                chosen.setdefault(repr(size), actual)
    chosen |= dict(sizes)
    names = {part for spec in declared.values() for size in spec.shape if isinstance(size, Size) for part in size.names()}
    _require_known("--size", [name for name, _ in sizes], sorted(names), "named sizes")
    found: list[tuple[int, ...]] = []
    for name, spec in declared.items():
        if name not in known and UNKNOWN in [size for size in spec.shape if isinstance(size, Size)]:
            example = ",".join(str(size) if isinstance(size, int) else "8" for size in spec.shape)
            raise bg.ParameterError(f"every size must be given, got none for {name}: {spec}; add --shape {name}={example}")
        missing = sorted({part for size in spec.shape if isinstance(size, Size) for part in size.names()} - chosen.keys())
        if name not in known and missing:
            example = ",".join(f"{part}=8" for part in missing)
            raise bg.ParameterError(f"every size must be given, got none for {name}: {spec}; add --size {example}")
        found.append(cast("tuple[int, ...]", known[name]) if name in known else bind_shape(spec.shape, chosen))
    graph.specialize(found)
    return found


def _require_known(option: str, names: Sequence[str], known: Sequence[str] | Mapping[str, Any], what: str) -> None:
    for name in names:
        if name not in known:
            raise bg.ParameterError(f"{option} must name {what} of the graph ({', '.join(known) or 'none'}), got {name!r}")


# Files to write


def output_path(given: str | None, file: str, suffix: str) -> Path:
    """Where to write: the path given, else a file in this folder that is called after FILE.

    Raises:
        ParameterError: the path has another suffix, is FILE itself, or is in no folder.
    """
    place, _, name = file.rpartition(":")
    path = Path(given) if given else Path((Path(file).stem if os.path.exists(file) or not place else name) + suffix)
    if path.suffix != suffix:
        raise bg.ParameterError(f"the file to write must end with {suffix}, got {str(path)!r}")
    with contextlib.suppress(OSError):
        if os.path.samefile(path, file):
            raise bg.ParameterError(f"the file to write must be another than the graph, got {str(path)!r} for both")
    if not path.parent.is_dir():
        raise bg.ParameterError(f"the file to write must be in a folder that exists, got {str(path)!r}")
    return path


def write(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file, and say so."""
    write_atomically(path, *parts)
    print(wrote(path))


def wrote(path: Path) -> str:
    """The line that tells of a file."""
    return f"wrote {path} ({path.stat().st_size:,} bytes)"


__all__ = ["graph_from", "on_device", "output_path", "shapes_for", "write", "wrote"]
