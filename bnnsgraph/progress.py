"""Progress bars on long work, where somebody is looking: ``tqdm``'s, when it is installed."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from typing import Any, TypeVar

from bnnsgraph.origin import shell

T = TypeVar("T")
PATIENCE = 2.0
"""Seconds of silence before a bar appears."""


def is_watched() -> bool:
    """Whether there is a terminal or a notebook to draw in, and ``tqdm`` to draw with."""
    import importlib.util

    if importlib.util.find_spec("tqdm") is None:
        return False
    return getattr(shell(), "kernel", None) is not None or sys.stderr.isatty()


def tracked(items: Sequence[T], label: str) -> Iterator[T]:
    """The items, with a bar that counts them when they take long."""
    if not is_watched() or len(items) < 2:
        yield from items
        return
    yield from _bar()(items, desc=label, delay=PATIENCE)


@contextlib.contextmanager
def waiting(label: str) -> Generator[None]:
    """A clock beside ``label`` while the block runs, when it takes long."""
    if not is_watched():
        yield
        return
    done = threading.Event()

    def show() -> None:
        if done.wait(PATIENCE):
            return
        with _bar()(desc=label, bar_format="{desc}: {elapsed}") as bar:
            bar.start_t -= PATIENCE
            while not done.wait(0.2):
                bar.refresh()

    thread = threading.Thread(target=show, name="bnnsgraph-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _bar() -> Any:
    """The class of the bar: a widget where a notebook can show one, otherwise text. ``tqdm.auto`` warns where it cannot."""
    import importlib.util

    if importlib.util.find_spec("ipywidgets") is None:
        from tqdm import tqdm
    else:
        from tqdm.auto import tqdm
    return tqdm
