"""Arrays from the command line and from NumPy's files, and back into them."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import bnnsgraph as bg
from bnnsgraph.graph import argument_of
from bnnsgraph.handle import convert
from bnnsgraph.spec import TensorSpec

Array = np.ndarray[Any, Any]
SPELLINGS = {"nan": "NaN", "inf": "Infinity", "True": "true", "False": "false"}
WHAT = "a .npy or .npz file, a number or a list"


def inputs_from(graph: bg.Graph, given: Sequence[str], *, all_of_them: bool = True) -> dict[str, Array]:
    """An array for each argument that is given, of the argument's element type.

    Args:
        graph: the graph.
        given: ``NAME=FILE.npy``, ``NAME=FILE.npz``, ``NAME=NUMBER``, ``NAME=[LIST]``, ``FILE.npz`` or, where the graph has one
            argument, ``FILE.npy``.
        all_of_them: whether every argument must be given.

    Raises:
        ParameterError, DTypeError, ArgumentError: the value cannot be read, or is not for this graph.
        OSError: the file cannot be read.
    """
    specs = {argument_of(value).name: value.spec for value in graph.arguments}
    found: dict[str, Array] = {}
    for text in given:
        for name, array in _named(text, specs).items():
            if name in found:
                raise bg.ArgumentError(f"--input must give each argument once, got {name!r} twice")
            found[name] = array
    missing = [name for name in specs if name not in found]
    if missing and all_of_them:
        kind = "NUMBER" if specs[missing[0]].rank == 0 else "FILE.npy"
        raise bg.ArgumentError(
            f"every argument must be given ({_listed(specs)}), got none for {', '.join(missing)}; "
            f"add --input {missing[0]}={kind}"
        )
    return {name: found[name] for name in specs if name in found}


def _named(text: str, specs: Mapping[str, TensorSpec]) -> dict[str, Array]:
    """The arrays that one ``--input`` gives."""
    name, equals, value = text.partition("=")
    if os.path.exists(text) or not equals:
        read = read_arrays(text)
        if not isinstance(read, dict):
            if len(specs) != 1:
                raise bg.ParameterError(f"--input must be NAME={text} where the graph has several arguments, got {text!r}")
            read = dict.fromkeys(specs, read)
        return {each: typed(f"{text}: {each}", array, _spec(each, text, specs)) for each, array in read.items()}
    spec = _spec(name, text, specs)
    literal = _literal(value)
    if literal is not None:
        try:
            return {name: convert(literal, spec.dtype)}
        except bg.GraphError as error:
            reason = error.reason.partition("; ")[0]  # not what to write in Python
            raise type(error)(f"--input {name}: {reason}") from None
    if not os.path.exists(value):
        raise bg.ParameterError(f"--input {name} must be {WHAT}, got {value!r}, and no such file")
    read = read_arrays(value)
    if isinstance(read, dict):
        if name not in read and len(read) != 1:
            raise bg.ParameterError(f"{value} must hold one array or {name!r}, got {', '.join(read) or 'none'}")
        read = read[name] if name in read else next(iter(read.values()))
    return {name: typed(value, read, spec)}


def _spec(name: str, text: str, specs: Mapping[str, TensorSpec]) -> TensorSpec:
    if name not in specs:
        raise bg.ArgumentError(f"--input must name arguments of the graph ({_listed(specs)}), got {name!r} in {text!r}")
    return specs[name]


def _listed(specs: Mapping[str, TensorSpec]) -> str:
    return ", ".join(f"{name}: {spec}" for name, spec in specs.items()) or "none"


def _literal(text: str) -> Any:
    """The number, truth value or list that the text is, in Python's spelling or JSON's; None if it is something else."""
    try:
        value = json.loads(re.sub(r"\b(nan|inf|True|False)\b", lambda word: SPELLINGS[word[0]], text))
    except (ValueError, RecursionError):
        return None
    return None if value is None or isinstance(value, (str, dict)) else value


def typed(place: str, array: Array, spec: TensorSpec) -> Array:
    """The array of a file in this machine's byte order, which must have the element type of ``spec``."""
    if spec.dtype is bg.BFloat16 and array.dtype.kind == "V" and array.dtype.itemsize == 2:
        array = array.view(bg.BFloat16.numpy)  # a .npy file has no name for it
    if array.dtype.newbyteorder("=") != spec.dtype.numpy:
        got = array.dtype.newbyteorder("=")
        wanted = "bg.BFloat16.numpy" if spec.dtype is bg.BFloat16 else repr(spec.dtype.name)
        raise bg.DTypeError(f"{place} must hold {spec.dtype.name}, got {got}; save array.astype({wanted})")
    return array.astype(spec.dtype.numpy, copy=False)


def read_arrays(path: str) -> Array | dict[str, Array]:
    """The array in a ``.npy`` file, or those in a ``.npz`` file by name. Nothing in a file is run.

    Raises:
        ParameterError: the file is neither, or is damaged.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        start = file.read(4)
        if start not in (b"\x93NUM", b"PK\x03\x04", b"PK\x05\x06"):
            raise bg.ParameterError(f"{path} must be a .npy or .npz file, got other bytes")
        file.seek(0)
        try:
            read: Any = np.load(file, allow_pickle=False)
            return {name: read[name] for name in read.files} if start.startswith(b"PK") else read
        except Exception as error:  # of many kinds: the header is parsed as Python, and a .npz file is a zip file
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise bg.ParameterError(f"{path} must be a whole .npy or .npz file of numbers, got: {reason}") from None


def npz(arrays: Mapping[str, Array]) -> memoryview:
    """A ``.npz`` file; the same arrays always give the same bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)
    return content.getbuffer()


__all__ = ["inputs_from", "npz", "read_arrays", "typed"]
