"""Settings of the whole process that make programs on the CPU faster; opt-in, since they reach beyond this package."""

from __future__ import annotations

import ctypes
import os
import sys

from bnnsgraph.errors import ParameterError
from bnnsgraph.xla import UNROLLING, jax

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # names of the parameters in glibc's <malloc.h>
LARGEST_BLOCK = (1 << 30, 32 << 20)
"""Bytes from which on a freed block is returned to the system: what we ask for, and the most that older glibc take."""
OPTIONS = "--xla_backend_extra_options="


def configure_cpu() -> tuple[str, ...]:
    r"""Set the process up for programs on the CPU. Call it first: before JAX starts its backend. Not in Apple's builder.

    Three things change, for everything in the process, and are returned in words:

    - **Memory** (glibc only): a block of up to 1 GiB that is freed is kept for the next result, and not returned to the
      system, which would have to clear new pages for each result. The process keeps the most memory that it ever needed.
    - **Calls**: a program runs on the thread that calls it, and the call returns when the result is there (JAX's
      ``jax_cpu_enable_async_dispatch`` is off). A call no longer hands its work to another thread and waits for it; nor does
      Python go on meanwhile.
    - **Loops**: LLVM unrolls no loop of more than four rounds whole, so that it vectorises the copies of rows of 17 to 32
      numbers (``-unroll-full-max-count=4`` in the environment variable ``XLA_FLAGS``, which child processes inherit).

    No value that a program computes changes.

    >>> import subprocess, sys
    >>> program = "import bnnsgraph; print(len(bnnsgraph.configure_cpu()), 'settings')"
    >>> subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    '3 settings\n'

    Returns:
        One sentence a setting: what it is now, or why it was left alone.

    Raises:
        ParameterError: JAX has started its backend, which reads these settings once.
    """
    _require_no_backend()
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return (_keep_memory(), "calls: a program runs on the thread that calls it", _unroll_less())


def _require_no_backend() -> None:
    bridge = sys.modules.get("jax._src.xla_bridge")  # JAX has no public name that asks without starting one
    if bridge is not None and bridge.backends_are_initialized():
        raise ParameterError(
            "configure_cpu must be called before JAX runs anything, got a backend that has started; "
            "call it at the top of the program or notebook"
        )


def _keep_memory() -> str:
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    mallopt = getattr(library, "mallopt", None)
    if mallopt is None:
        return "memory: left alone, as the C library is not glibc"
    for size in LARGEST_BLOCK:
        if mallopt(MMAP_THRESHOLD, size) and mallopt(TRIM_THRESHOLD, 2**31 - 1):
            return f"memory: freed blocks of up to {size >> 20} MiB are kept for the next result"
    return "memory: left alone, as the C library refused"


def _unroll_less() -> str:
    flags = os.environ.get("XLA_FLAGS", "")
    if UNROLLING not in flags:
        before, found, after = flags.partition(OPTIONS)
        flags = f"{before}{OPTIONS}{UNROLLING},{after}" if found else f"{flags} {OPTIONS}{UNROLLING}".strip()
        os.environ["XLA_FLAGS"] = flags
    return f"loops: XLA_FLAGS={flags}"
