"""How time and memory grow with the table, the indices, the width, the operations and the threads.

``python -m tests.benchmarks.growth memory CURVE NUMBER`` and ``... threads COUNT`` are the parts that need a process of their
own.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.timing import CLOCK, Row, settle, side_by_side

ROOT = Path(__file__).parents[2]
POINTS = {
    "table rows": (1_000, 10_000, 100_000, 1_000_000),
    "indices": (1_024, 16_384, 262_144, 1_048_576),
    "row width": (1, 4, 16, 64, 256),
    "operations": (1, 10, 100, 1_000),
}


def case(curve: str, number: int) -> Any:
    """One point of a curve; 65,536 random rows of 16 floats of 100,000 where nothing else is said."""
    from tests.benchmarks import gathering
    from tests.benchmarks.calls import chain
    from tests.benchmarks.cases import Case

    match curve:
        case "table rows":
            found = gathering.rows(16, 65_536, number)
        case "indices":
            found = gathering.rows(16, number)
        case "row width":
            found = gathering.rows(number, 65_536)
        case _:
            values = {"x": np.full(1_000_000, 1.0, np.float32)}
            products = chain(number)
            found = Case("", lambda: values, products, products, products, indexed=False)
    return replace(found, name=f"{curve}: {number:,}", quick=True)


def calls(curve: str, number: int) -> dict[str, Callable[[], Any]]:
    """Ours and the bare program."""
    return case(curve, number).functions(only_bare=True)


# In a process of its own


def resident(name: str) -> int:
    """A count of bytes from the process's own account."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {name}")


def peaks(curve: str, number: int) -> dict[str, int]:
    """The most memory during one call, beyond what was held before it."""
    found: dict[str, int] = {}
    for who, call in calls(curve, number).items():
        settle(call())
        gc.collect()
        time.sleep(0.1)  # until JAX has let go of the result
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
        before = resident("VmRSS")
        settle(call())
        found[who] = max(0, resident("VmHWM") - before)
    return found


def threads(count: int) -> list[dict[str, Any]]:
    """A gather, a chain and a product of matrices on the first processors alone."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])  # before JAX counts them
    from tests.benchmarks.cases import Case

    def arrays() -> dict[str, np.ndarray]:
        return {"x": np.ones((512, 512), np.float32), "w": np.ones((512, 512), np.float32)}

    def product(x: Any, w: Any) -> Any:
        return x @ w

    matrices = Case("", arrays, product, product, product, indexed=False)
    programs = {"gather": case("row width", 64), "100 products": case("operations", 100), "512 x 512 matrices": matrices}
    rows: list[Row] = []
    for name, program in programs.items():
        rows += side_by_side(f"threads, {name}: {count}", program.functions(only_bare=True))
    return [row.as_dict() for row in rows]


def child(*arguments: str) -> Any:
    """What a process of its own prints; None where the system does not offer it."""
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"}  # freed memory goes back at once
    command = [sys.executable, "-m", "tests.benchmarks.growth", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    return json.loads(ended.stdout) if ended.returncode == 0 else None


# In the benchmark's process


def with_peaks(rows: list[Row], found: Mapping[str, int] | None) -> list[Row]:
    """The rows with the memory of their calls."""
    return [replace(row, bytes=found.get(row.who)) for row in rows] if found else rows


def run(quick: bool) -> list[Row]:
    """Every curve; the first two points of each, without memory, if ``quick``."""
    rows: list[Row] = []
    for curve, numbers in POINTS.items():
        for number in numbers[:2] if quick else numbers:
            if CLOCK.out(f"{curve}: {number:,}"):
                continue
            found = side_by_side(f"{curve}: {number:,}", calls(curve, number), tolerance=0)
            rows += found if quick else with_peaks(found, child("memory", curve, str(number)))
    if not quick and hasattr(os, "sched_setaffinity"):
        for count in sorted({2**power for power in range(9) if 2**power <= len(os.sched_getaffinity(0))}):
            if not CLOCK.out(f"threads: {count}"):
                rows += [Row.from_dict(row) for row in child("threads", str(count)) or []]
    return rows


def main(kind: str, *arguments: str) -> None:
    """Print what the parent process asks for."""
    print(json.dumps(peaks(arguments[0], int(arguments[1])) if kind == "memory" else threads(int(arguments[0]))))


if __name__ == "__main__":
    main(*sys.argv[1:])
