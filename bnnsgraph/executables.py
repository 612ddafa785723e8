"""JAX's persistent cache of compiled programs, for one compilation at a time."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Generator
from typing import Any

from bnnsgraph.errors import ParameterError
from bnnsgraph.xla import jax

_SETTINGS: dict[str, Any] = {
    "jax_enable_compilation_cache": True,
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}
_lock = threading.RLock()  # the folder is one setting of the process


class Lookup:
    """What became of one compilation: ``found`` says whether the cache had it."""

    def __init__(self) -> None:
        self.found: bool | None = None
        self._thread = threading.get_ident()

    def hear(self, event: str, **_: Any) -> None:
        """Listen to JAX's events."""
        if self._thread != threading.get_ident():
            return
        if event == "/jax/compilation_cache/cache_hits":
            self.found = True
        elif event == "/jax/compilation_cache/cache_misses":
            self.found = False


@contextlib.contextmanager
def kept_in(folder: str | os.PathLike[str] | None) -> Generator[Lookup]:
    """Programs compiled in the block are looked up in ``folder`` and kept there; nothing happens for None.

    Raises:
        ParameterError: the folder cannot be written to.
    """
    lookup = Lookup()
    if folder is None:
        yield lookup
        return
    require_writable(folder)
    from jax.experimental.compilation_cache import compilation_cache

    wanted = {**_SETTINGS, "jax_compilation_cache_dir": os.fspath(folder)}
    with _lock:
        before = {name: getattr(jax.config, name) for name in wanted}
        _configure(wanted, compilation_cache)
        jax.monitoring.register_event_listener(lookup.hear)
        try:
            yield lookup
        finally:
            jax.monitoring.unregister_event_listener(lookup.hear)
            _configure(before, compilation_cache)


def _configure(settings: dict[str, Any], cache: Any) -> None:
    for name, value in settings.items():
        jax.config.update(name, value)
    cache.reset_cache()  # it looks at the folder's name only once


def require_writable(folder: str | os.PathLike[str]) -> None:
    """Make the folder if need be, and raise unless files can be made in it."""
    import tempfile

    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ParameterError(
            "CompileOptions.compilation_cache must be a folder that can be written to, "
            f"got {os.fspath(folder)!r} ({error.strerror})"
        ) from None
