"""
Signals that end a command, so that nothing half is left.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

__all__ = ["stopped_politely"]

_AGAIN = 0.01  # seconds after which an interruption that was swallowed comes again


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def stopped_politely() -> Iterator[None]:
    """
    Treat the signal to terminate as an interruption from the keyboard, so that nothing half is left.

    Python raises an interruption wherever the main thread is. A destructor, a callback and some compiled libraries
    can only print it and go on; then it is raised again, and not printed.
    """
    if signal.getsignal(signal.SIGTERM) is _stop:  # a command is polite already
        yield
        return
    try:
        before = signal.signal(signal.SIGTERM, _stop)
    except ValueError:  # not the main thread
        yield
        return
    try:
        with _never_swallowed():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _never_swallowed() -> Iterator[None]:
    """Raise an interruption again, by an alarm, that could not be raised where it came."""
    hook = sys.unraisablehook
    with ExitStack() as undo:

        def again(swallowed: sys.UnraisableHookArgs) -> None:
            if not issubclass(swallowed.exc_type, KeyboardInterrupt):
                hook(swallowed)
                return
            undo.callback(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, _stop) or signal.SIG_DFL)
            undo.callback(signal.setitimer, signal.ITIMER_REAL, *signal.setitimer(signal.ITIMER_REAL, _AGAIN))

        undo.callback(setattr, sys, "unraisablehook", hook)
        sys.unraisablehook = again
        yield
