"""
Compiles kernels beside a process that runs them interpreted, when small work has become long.

One process at a time compiles for each that works: it is told which kernels, for which types of arguments, and ends
when they are kept, or when the one that started it ends, however that happens. Meanwhile that one goes on interpreted;
only when this has taken long does it wait. Of several processes that want the same kernels, as those of a sweep, one
compiles, and the others find them.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from ndb_formats.columnar.kernel_mode import Mode, numba_is_used, pays_to_wait

_COMMAND = "from ndb_formats.columnar.compiling import compile_what_is_wanted as run; run()"
_SECONDS_BETWEEN_LOOKS = 0.1


class _Beside:
    """What is compiled beside this process."""

    lock = threading.Lock()
    wanted: ClassVar[dict[Any, bytes]] = {}  # types of arguments, of kernels that nobody compiles yet
    asked: ClassVar[set[Any]] = set()  # all that were wanted so far
    process: subprocess.Popen[bytes] | None = None


def _begin_anew() -> None:
    """In a process that was forked: what is compiled is its parent's."""
    _Beside.lock, _Beside.process = threading.Lock(), None
    _Beside.wanted.clear()
    _Beside.asked.clear()


os.register_at_fork(after_in_child=_begin_anew)


def compile_beside(kernel: Any, arguments: tuple[Any, ...]) -> bool:
    """
    Have a kernel compiled for such arguments; return whether it runs interpreted this time.

    It does not if it is kept now, or if it cannot be had from another process: this one has to compile it.
    """
    with _Beside.lock:
        if kernel not in _Beside.asked:
            _Beside.asked.add(kernel)
            if _can_be_found(kernel):
                _Beside.wanted[kernel] = _types_of(arguments)
        _start_next()
    if not pays_to_wait(kernel.seconds):
        return True
    _wait_for(kernel)
    return False


def _can_be_found(kernel: Any) -> bool:
    """Return whether another process finds the kernel by its name, and what it compiles is found here."""
    module = sys.modules.get(kernel.__module__)
    at_its_name = kernel.__module__ != "__main__" and getattr(module, kernel.__name__, None) is kernel
    return at_its_name and kernel.files.folder is not None and bool(sys.executable)


def _types_of(arguments: tuple[Any, ...]) -> bytes:
    """Return the types that numba gives arguments, for another process."""
    numba_is_used()
    serialize: Any = import_module("numba.core.serialize")  # numba gives its functions no types
    typing: Any = import_module("numba.core.typing.typeof")
    types: bytes = serialize.dumps(tuple(typing.typeof(each, typing.Purpose.argument) for each in arguments))
    return types


def _start_next() -> None:
    """Start a process for what is wanted, if none is at work."""
    if not _Beside.wanted or _is_at_work():
        return
    wanted = [(each.__module__, each.__name__, types) for each, types in _Beside.wanted.items()]
    _Beside.wanted.clear()
    with suppress(OSError):
        _Beside.process = process = subprocess.Popen(  # noqa: S603  # our own command
            [sys.executable, "-P", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        )
        assert process.stdin is not None
        pickle.dump(wanted, process.stdin)
        process.stdin.flush()  # it stays open: its end is how the other one knows of ours


def _is_at_work() -> bool:
    return _Beside.process is not None and _Beside.process.poll() is None


def _wait_for(kernel: Any) -> None:
    """Wait until a kernel is kept, or nobody compiles it; to whoever shows what is compiled, this is compiling."""
    from numba.core.event import trigger_event  # noqa: PLC0415  # loads numba

    with trigger_event("numba:compile"):
        while not kernel.is_kept():
            with _Beside.lock:
                _start_next()
                if not _is_at_work():
                    return
            time.sleep(_SECONDS_BETWEEN_LOOKS)


@atexit.register
def _end() -> None:
    if _is_at_work():
        assert _Beside.process is not None
        _Beside.process.kill()
        _Beside.process.wait()


def compile_what_is_wanted() -> None:
    """Compile what standard input names, one kernel after the other; the work of the other process."""
    wanted = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with_input, daemon=True).start()
    for module, name, types in wanted:
        kernel = getattr(import_module(module), name)
        with _alone_in(kernel.files.folder):
            kernel.form(Mode.COMPILED).compile(pickle.loads(types))


def _end_with_input() -> None:
    os.read(0, 1)
    os._exit(1)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let one process at a time compile what is kept in a folder: the next one finds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "compiling.lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
