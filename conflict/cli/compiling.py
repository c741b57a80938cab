"""
Says that kernels are being compiled, which takes a minute when they run for the first time after an installation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from numba.core.event import Event, Listener, install_listener

from conflict.cli.refusals import messages
from ndb_formats.compiled_cache import is_lasting

__all__ = ["compilation_is_said"]


_ONCE = "Compiling the kernels, which takes a minute or two and happens once."
_EVERY_TIME = (
    "Compiling the kernels for this command alone, which takes a minute or two: no folder of this user can keep them. "
    "Set NUMBA_CACHE_DIR to a folder that can, and it happens once; or ndb-conflict warm-up, run by the owner of the "
    "installation, compiles them for all users."
)


@contextmanager
def compilation_is_said() -> Iterator[None]:
    """Print a sentence when the first kernel is compiled in the block; one from numba's cache is not."""
    with install_listener("numba:compile", _Sentence()):
        yield


class _Sentence(Listener):
    """Prints once."""

    said = False

    def on_start(self, event: Event) -> None:  # noqa: ARG002
        if not self.said:
            self.said = True
            messages.print(_ONCE if is_lasting() else _EVERY_TIME, highlight=False, soft_wrap=True)

    def on_end(self, event: Event) -> None:
        """Nothing is said at the end."""
