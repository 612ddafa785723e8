"""Checks on several virtual devices of the CPU, in processes of their own: they must have them before they start JAX."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent


def environment(count: int) -> dict[str, str]:
    """That of a process which is to have ``count`` devices."""
    return {
        **os.environ,
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={count}",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
    }


def run_together(commands: Sequence[Sequence[str]], count: int) -> list[str]:
    """Run modules of this repository at the same time, each with ``count`` devices: the last line that each prints."""
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", *command], stdout=pipe, stderr=pipe, text=True, cwd=ROOT, env=environment(count)
        )
        for command in commands
    ]
    try:
        written = [process.communicate(timeout=300) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for process, (_, errors) in zip(processes, written, strict=True):
        assert process.returncode == 0, errors
    return [output.splitlines()[-1] for output, _ in written]


def meeting(processes: int) -> list[list[str]]:
    """Arguments with which processes find each other on this machine's loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return [["--process", str(process), "--port", str(port)] for process in range(processes)]


def meet(process: int | None, port: int) -> None:
    """Join the other process of :func:`meeting`, if there is one."""
    if process is not None:
        import jax

        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=process)


def failures(*modules: str, prefix: str = "check_", processes: int = 1) -> Mapping[str, str]:
    """Run the modules' functions whose names begin so on 8 devices: what failed, with its traceback.

    Two processes have 4 of the devices each, and run the functions together.
    """
    command = ["tests.devices", *modules, "--prefix", prefix]
    commands = [command] if processes == 1 else [[*command, *arguments] for arguments in meeting(processes)]
    return _failed(run_together(commands, 8 // processes))


def _failed(lines: Sequence[str]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        found |= {f"{name}, process {number}": text for name, text in json.loads(line).items() if text}
    return found


def main() -> None:
    """Run the checks; tracebacks as JSON in the last line, seconds on the standard error."""
    parser = argparse.ArgumentParser(prog="python -m tests.devices", description=__doc__)
    parser.add_argument("modules", nargs="+")
    parser.add_argument("--prefix", default="check_")
    parser.add_argument("--process", type=int)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    if "XLA_FLAGS" not in os.environ:
        os.environ.update(environment(8))
    meet(options.process, options.port)
    importlib.import_module("tests.conftest")  # as strict as the tests
    warnings.simplefilter("error")
    found: dict[str, str] = {}
    for module in options.modules:
        namespace = vars(importlib.import_module(module))
        checks = {name: check for name, check in namespace.items() if name.startswith(options.prefix)}
        assert checks, f"{module} has no {options.prefix}"
        for name, check in checks.items():
            start = time.perf_counter()
            try:
                check()
            except Exception:
                found[f"{module}.{name}"] = traceback.format_exc()
            else:
                found[f"{module}.{name}"] = ""
            print(f"{time.perf_counter() - start:6.2f} s  {module}.{name}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
