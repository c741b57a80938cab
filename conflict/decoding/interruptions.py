"""
Signals that end a command, so that nothing half is left.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["stopped_politely"]


@contextmanager
def stopped_politely() -> Iterator[None]:
    """Treat the signal to terminate as an interruption from the keyboard, so that nothing half is left."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
