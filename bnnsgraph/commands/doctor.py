"""``bnnsgraph doctor``: what is installed, where graphs run, and which known faults of compilers are there."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import platform
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import bnnsgraph as bg
from bnnsgraph.commands.parsing import FailedError, add_command

if TYPE_CHECKING:
    from bnnsgraph.commands.parsing import Commands

EXAMPLES = """\
  %(prog)s
  JAX_PLATFORMS=cpu %(prog)s   # for the CPU of a machine that has a GPU
"""
SETTINGS = ("JAX_PLATFORMS", "JAX_ENABLE_X64", "JAX_COMPILATION_CACHE_DIR", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


def add_doctor(commands: Commands) -> None:
    """``doctor``: what is installed, where graphs run, and which known faults of compilers are there."""
    parser = add_command(
        commands,
        "doctor",
        "show versions, devices, extras and known compiler faults",
        "Show versions, devices and which extras are installed, and try known faults of the compiler on the default device. "
        "Graphs are guarded against all of them, and that is tried too: the exit code is 1 where a guard fails or no device is "
        "found.",
        EXAMPLES,
    )
    parser.set_defaults(run=run_doctor)


def run_doctor(options: argparse.Namespace) -> None:
    """Run ``doctor``."""
    del options
    print(f"bnnsgraph {bg.__version__} in {Path(bg.__file__).parent}")
    print(f"Python {platform.python_version()}, {platform.platform()}, {os.cpu_count()} processors")
    print(", ".join(f"{name} {_version(name) or 'missing'}" for name in ("numpy", "jax", "jaxlib", "ml_dtypes", "tqdm")))
    print("\nextras")
    for name, missing in extras().items():
        print(f"  {name:<10}  " + (f'lacks {", ".join(missing)}: pip install "bnnsgraph[{name}]"' if missing else "installed"))
    given = [f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ]
    print("\nsettings\n  " + ("\n  ".join(given) or "none of " + ", ".join(SETTINGS)))
    print("\ndevices, the default first")
    print("\n".join(f"  {line}" for line in _devices()), flush=True)
    print("\nknown faults of compilers, tried now on the default device; bnnsgraph is written around each of them")
    print("  JAX    bnnsgraph  what may go wrong", flush=True)
    _try_faults()


def _try_faults() -> None:
    from bnnsgraph.commands.probes import findings

    wrong = 0
    for fault, jax_is_right, package_is_right in findings():
        wrong += not package_is_right
        words = ["right" if right else "wrong" for right in (jax_is_right, package_is_right)]
        print(f"  {words[0]}  {words[1]}      {fault}", flush=True)
    if wrong:
        raise FailedError(f"every answer of bnnsgraph must be right, got {wrong} wrong; please report it with these lines")


def _devices() -> Iterator[str]:
    try:
        import jax

        devices = cast("list[Any]", jax.devices())
        if devices[0].platform != "cpu":
            with contextlib.suppress(RuntimeError):  # where JAX_PLATFORMS leaves it out
                devices = [*devices, *cast("list[Any]", jax.devices("cpu"))]
        for device in devices:
            yield f"{device.platform}:{device.id}  {device.device_kind}"
    except (ImportError, RuntimeError) as error:
        raise FailedError(f"JAX must find a device, got: {str(error).strip()}") from None


def extras() -> Mapping[str, Sequence[str]]:
    """For each extra of this package the packages that it needs and that are missing or too old."""
    needed = _needed()
    return {name: [text for each in _with_others(name, needed) if (text := _lacking(each))] for name in needed}


def _with_others(name: str, needed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The requirements of an extra and of the extras that it names."""
    for requirement in needed[name]:
        others = re.match(r"bnnsgraph\[([^]]*)\]", requirement)
        if others is None:
            yield requirement
        else:
            for other in others[1].split(","):
                yield from _with_others(other.strip(), needed)


def _needed() -> dict[str, list[str]]:
    """The requirements of each extra, as in ``pyproject.toml``."""
    project = Path(bg.__file__).parent.parent / "pyproject.toml"
    if project.is_file():  # a clone
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    found: dict[str, list[str]] = {}
    for line in importlib.metadata.requires("bnnsgraph") or []:
        requirement, _, marker = line.partition(";")
        if extra := re.search(r"extra == ['\"](\w+)", marker):
            found.setdefault(extra[1], []).append(requirement)
    return found


def _lacking(requirement: str) -> str | None:
    """The requirement, where it is not met; minimum versions are looked at, others are pip's business."""
    parts = re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*(?:>=\s*([\d.]+))?", requirement)
    assert parts is not None
    name, least = parts[1], parts[2]
    version = _version(name)
    if version is None:
        return name
    return f"{name}>={least} (not {version})" if least and _numbers(version) < _numbers(least) else None


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


__all__ = ["add_doctor", "extras", "run_doctor"]
