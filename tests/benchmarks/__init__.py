"""Benchmarks: ``python -m tests.benchmarks``. Every figure is taken beside its peers', in one process, on the same arrays."""
