"""``configure_cpu``: what it sets, in a process of its own, and when it is too late."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import bnnsgraph as bg

PROGRAM = """
import bnnsgraph as bg, jax, numpy as np, resource
settings = bg.configure_cpu()
assert settings == bg.configure_cpu(), "a second call changes nothing"
print(*settings, sep="\\n")
x = jax.numpy.ones(1 << 20)
twice = bg.make_context(lambda b: b.argument("x", bg.Float32, (1 << 20,)) * 2)
for _ in range(5):
    result = twice(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    result = twice(x).block_until_ready()
print("new pages a call:", (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 20)
print("asynchronous:", jax.config.read("jax_cpu_enable_async_dispatch"), "sum:", int(result.sum()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts pages as Linux does")
def test_memory_is_kept_and_calls_run_where_they_are_made() -> None:
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1] == "calls: a program runs on the thread that calls it"
    flags = "--xla_force_host_platform_device_count=1 --xla_backend_extra_options=-unroll-full-max-count=4"
    assert lines[2] == f"loops: XLA_FLAGS={flags}"
    assert lines[4] == "asynchronous: False sum: 2097152"
    if lines[0].startswith("memory: freed blocks of up to"):
        assert int(lines[3].rpartition(":")[2]) < 512, "a result has 1,024 pages; most are those of an earlier one"
    else:
        assert lines[0] == "memory: left alone, as the C library is not glibc"


def test_options_that_the_user_gave_llvm_are_kept() -> None:
    program = "import bnnsgraph as bg; print(bg.configure_cpu()[2])"
    environment = os.environ | {"XLA_FLAGS": "--xla_backend_extra_options=-x=1 --xla_cpu_enable_fast_math=false"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    expected = "--xla_backend_extra_options=-unroll-full-max-count=4,-x=1 --xla_cpu_enable_fast_math=false"
    assert done.stdout.strip() == f"loops: XLA_FLAGS={expected}"


def test_it_is_refused_once_jax_runs() -> None:
    bg.make_context(lambda b: b.argument("x", bg.Float32) + 1)(1.0)
    with pytest.raises(bg.ParameterError, match="configure_cpu must be called before JAX runs anything, got a backend"):
        bg.configure_cpu()
