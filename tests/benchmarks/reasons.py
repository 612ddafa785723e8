"""Why the curves of ``docs/performance.md`` bend where they do, each found by a count or by leaving a part out."""

from __future__ import annotations

LARGE = (
    "Up to 32 MiB the C library keeps the memory of a freed result for the next one. A larger result is mapped anew at "
    "each call, and the system clears it page by page as it is written: a call that returns 64 MiB meets 16,385 page "
    "faults (`resource.getrusage`), smaller ones meet none or few, and `configure_cpu()` takes them away."
)
REASONS = {
    "record products": "Straight lines: every operation is checked and kept by itself, whatever came before.",
    "record and lower products": (
        "Some 15 ms are JAX's own for a program of any length, in both. They bend the curve up to 100 operations; then "
        "it is straight but for Python's garbage collector, which looks through all that the process holds, these "
        "peers too: in a process of their own, 10,000 operations take 0.7 s, and 0.6 s without the collector."
    ),
    "record, compile and run products once": (
        "Some 80 ms are LLVM's for a program of any length. Then XLA makes one loop of the whole chain, and LLVM's time "
        "for a loop grows faster than the loop: `jax.jit` bends up from 1,000 operations on. Ours are compiled in "
        "pieces of fifty steps, and the line is straight."
    ),
    "call of a chain of products": (
        "Up to ten operations the call itself is all there is. A thousand operations of arithmetic, here 125 products, "
        "send the program to another thread, which has to be woken; `configure_cpu()` keeps it on the thread that "
        "calls. From there on the products count, each of which waits for the one before: a nanosecond or two, 10,000 "
        "of them some 20 µs."
    ),
    "table rows": (
        "A row is 64 bytes, one line of a cache. 1,000 rows are in the cache of a core (512 KiB); 10,000 begin to leave "
        "it, 100,000 are 6 MiB, in the cache that the cores share (32 MiB); 1,000,000 are 61 MiB, in main memory."
    ),
    "indices": f"1,024 indices take little longer than the call and its check. {LARGE}",
    "row width": (
        "Up to 4 numbers a row, time goes by rows: each is a miss of the cache. From 16 on, which fill a line of it, "
        f"time goes by bytes. {LARGE} "
        "XLA's copy of 64 numbers, as `jax.jit` has it, is unrolled into single moves, which takes three times as long "
        "as the loop that we ask for."
    ),
    "operations": (
        "A million numbers are read and written in the time of ten products, which cost nothing beside. From there on "
        "the products count. A program of more than fifty steps is cut, and each cut is a pass over memory more."
    ),
    "threads, gather": "Two threads take little more than half of the time of one: each waits for memory by itself.",
    "threads, 100 products": (
        "Two threads take two thirds of the time of one: what the call and the cuts between the pieces take stays as it was."
    ),
    "threads, 512 x 512 matrices": (
        "Two threads take two thirds of the time of one, in both: the product is XLA's, and ends with the slower of the two."
    ),
}
"""By the curve's name."""
