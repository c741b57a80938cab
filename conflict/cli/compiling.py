"""
Says that kernels are being compiled, which takes a minute when they run for the first time after an installation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from conflict.cli.refusals import messages

__all__ = ["compilation_is_said", "compilation_is_shown"]

_ONCE = "Compiling the kernels, which takes a minute or two and happens once."
_EVERY_TIME = (
    "Compiling the kernels for this command alone, which takes a minute or two: no folder of this user can keep them. "
    "Set NUMBA_CACHE_DIR to a folder that can, and it happens once; or ndb-conflict warm-up, run by the owner of the "
    "installation, compiles them for all users."
)


@contextmanager
def compilation_is_said() -> Iterator[None]:
    """Print a sentence when the first kernel is compiled in the block; one from numba's cache is not."""
    said = False

    def show(_: int) -> None:
        nonlocal said
        if not said:
            said = True
            from ndb_formats.compiled_cache import is_lasting

            messages.print(_ONCE if is_lasting() else _EVERY_TIME, highlight=False, soft_wrap=True)

    with compilation_is_shown(show):
        yield


@contextmanager
def compilation_is_shown(show: Callable[[int], None]) -> Iterator[None]:
    """Call a function whenever the block begins to compile a kernel, with the number of those before it."""
    from ndb_formats.columnar.kernel_mode import before_numba  # numpy takes long

    with ExitStack() as listening:

        def begin() -> None:
            from numba.core.event import Event, Listener, install_listener  # small work does without

            class Counting(Listener):
                begun = open = 0

                def on_start(self, event: Event) -> None:  # noqa: ARG002
                    if self.open == 0:
                        show(self.begun)
                        self.begun += 1
                    self.open += 1

                def on_end(self, event: Event) -> None:  # noqa: ARG002
                    self.open -= 1

            listening.enter_context(install_listener("numba:compile", Counting()))

        with before_numba(begin):
            yield
