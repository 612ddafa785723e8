"""What an import costs beyond NumPy, each in a fresh process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.benchmarks.timing import CLOCK, OURS, Row, quartiles

ROOT = Path(__file__).parents[2]
SCRIPT = "import time, numpy; start = time.perf_counter(); import {0}; print(time.perf_counter() - start)"


def seconds(module: str) -> float:
    """One import."""
    command = [sys.executable, "-c", SCRIPT.format(module)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return float(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=environment).stdout)


def run(quick: bool) -> list[Row]:
    """A row a library; the first import of each, which may compile its files, is not counted."""
    case, rounds = "import, beyond NumPy", 3 if quick else 5
    if CLOCK.out(case):
        return []
    modules = {OURS: "bnnsgraph", "JAX": "jax"}
    if not quick:
        modules |= {"ONNX Runtime": "onnxruntime", "OpenVINO": "openvino", "PyTorch": "torch"}
    modules = {who: module for who, module in modules.items() if importlib.util.find_spec(module) is not None}
    for module in modules.values():
        seconds(module)
    samples: dict[str, list[float]] = {who: [] for who in modules}
    for _ in range(rounds):
        for who, module in modules.items():
            samples[who].append(seconds(module))
    rows: list[Row] = []
    for who, times in samples.items():
        low, middle, high = quartiles(times)
        rows.append(Row(case, who, middle, low, high, rounds, quartiles(np.divide(samples[OURS], times))))
    return rows
