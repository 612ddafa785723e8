"""Run the benchmarks; print, keep, compare or render their figures."""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import bnnsgraph as bg
from tests.benchmarks import comparing, peers, rendering, slow_peers
from tests.benchmarks.timing import BARE, CLOCK, Row, table

ROOT = Path(__file__).parents[2]
SUITES = ("gathering", "programs", "rewrites", "starting", "recording", "calls", "growth")
"""Modules of this folder, each with ``run(quick) -> list[Row]``."""


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    described = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in described.splitlines() if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "versions": peers.versions() | slow_peers.versions(),
    }


def taken(suites: Sequence[str], quick: bool, keep: Path | None, settings: Sequence[str] = ()) -> dict[str, Any]:
    """The figures of the suites, printed and kept as they come, as a document for a JSON file.

    Args:
        suites: by name.
        quick: few cases, beside ``jax.jit`` alone.
        keep: the file.
        settings: what ``configure_cpu`` set, if it was called.
    """
    named = () if tuple(suites) == SUITES else suites
    flags = {"--quick": quick, "--configured": settings, "--slow-peers": slow_peers.asked}
    document: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["python -m tests.benchmarks", *named, *[flag for flag, given in flags.items() if given]]),
        "machine": machine(),
        "settings": list(settings),
        "notes": [],
        "rows": [],
    }
    for name in suites:
        start = time.monotonic()
        found = importlib.import_module(f"tests.benchmarks.{name}").run(quick)
        print(f"{table(found)}\n{name} took {time.monotonic() - start:.0f} s\n", flush=True)
        document["rows"] += [{"suite": name, **row.as_dict()} for row in found]
        document["notes"] = [*peers.NOTES.values(), *CLOCK.left_out]
        if keep is not None:
            keep.write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(document["notes"]))
    return document


def rows_of(document: Mapping[str, Any]) -> list[Row]:
    """The figures in a document."""
    return [Row.from_dict(row) for row in document["rows"]]


def report(base: Path, document: Mapping[str, Any]) -> int:
    """Print what changed against the figures in a file; 1 if something became slower."""
    before, now = rows_of(json.loads(base.read_text())), rows_of(document)
    found = comparing.changes(before, now)
    missing = comparing.not_taken(before, now)
    print(f"{len(found)} ratios outside their spread, of {len({row.case for row in now})} cases; {len(missing)} not taken now")
    print("\n".join(map(str, found)))
    return int(any(change.worse for change in found))


def too_slow(document: Mapping[str, Any], most: float) -> int:
    """Print where we take more than ``most`` times as long as ``jax.jit``, in three rounds of four; 1 if anywhere."""
    found = [row for row in rows_of(document) if row.who == BARE and row.ratio is not None and row.ratio[0] > most]
    print(
        "\n".join(f"{row.case}: {row.ratio[0]:.2f} times {BARE}, of {most} allowed" for row in found if row.ratio is not None)
    )
    return int(bool(found))


def render(kept: Sequence[Path], folder: Path) -> None:
    """Write the page of the figures in files."""
    for name, text in rendering.page(*[json.loads(path.read_text()) for path in kept]).items():
        place = folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
        print(place)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"which to run, of {', '.join(SUITES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="two minutes: few cases, beside jax.jit alone")
    parser.add_argument("--minutes", type=float, default=8.0, help="cases that do not fit are left out and named (default: 8)")
    parser.add_argument(
        "--slow-peers",
        action="store_true",
        help="torch.compile (with a C++ compiler) and Core AI (pip install coreai-core) too",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    parser.add_argument("--compare", type=Path, metavar="BASE.json", help="report changes; exit code 1 if something is slower")
    parser.add_argument("--taken", type=Path, metavar="FILE.json", help="compare these figures instead of running")
    parser.add_argument("--configured", action="store_true", help="after bnnsgraph.configure_cpu()")
    parser.add_argument("--most", type=float, metavar="RATIO", help="exit code 1 if a case takes so many times jax.jit's time")
    parser.add_argument(
        "--render", type=Path, nargs="+", metavar="FILE.json", help="write docs/performance.md from kept figures, in this order"
    )
    options = parser.parse_args(arguments)
    unknown = [name for name in options.suites if name not in SUITES]
    if unknown:
        parser.error(f"a suite must be one of {', '.join(SUITES)}, got {unknown[0]}")
    if options.render:
        render(options.render, ROOT / "docs")
        return 0
    if options.taken:
        document = json.loads(options.taken.read_text())
    else:
        CLOCK.start(options.minutes)
        slow_peers.asked = options.slow_peers
        settings = bg.configure_cpu() if options.configured else ()
        document = taken(options.suites or SUITES, options.quick, options.json, settings)
    slow = too_slow(document, options.most) if options.most else 0
    return max(slow, report(options.compare, document) if options.compare else 0)


if __name__ == "__main__":
    sys.exit(main())
