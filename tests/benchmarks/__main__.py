"""Run the benchmarks and print, or keep, their figures."""

from __future__ import annotations

import argparse
import datetime
import json
import platform
from pathlib import Path

import jax
import numpy as np

from tests.benchmarks import calls, gathering, recording
from tests.benchmarks.timing import Row, table

SUITES = {"recording": recording.run, "calls": calls.run, "gathering": gathering.run}


def main() -> None:
    """Parse the command line and run the suites."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="which to run; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the figures")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.suites or SUITES:
        found = SUITES[name](options.quick)
        print(table(found), end="\n\n", flush=True)
        rows += found
    if options.json:
        machine = {"processor": platform.processor() or platform.machine(), "python": platform.python_version()}
        machine |= {"jax": jax.__version__, "numpy": np.__version__, "devices": str(jax.devices())}
        document = {"date": datetime.date.today().isoformat(), "machine": machine, "rows": [row.as_dict() for row in rows]}
        options.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
