"""How often XLA compiles while something is done."""

from __future__ import annotations

from typing import Any, Self

import jax


class Compilations:
    """Counts what XLA compiles in a block."""

    def __enter__(self) -> Self:
        self.count = 0
        jax.monitoring.register_event_duration_secs_listener(self.hear)
        return self

    def hear(self, event: str, *_: Any, **__: Any) -> None:
        self.count += event == "/jax/core/compile/backend_compile_duration"

    def __exit__(self, *_: object) -> None:
        jax.monitoring.unregister_event_duration_listener(self.hear)
