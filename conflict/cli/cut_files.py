"""
A binlog that is cut while it is read.

Binlogs are mapped into memory. If another program makes one shorter, reading what is gone raises SIGBUS, which would
end this program without a word. No exception can be raised from there, so the program ends with a sentence. A server
never does that: it appends, and it removes whole files, which stay readable as long as they are mapped.
"""

from __future__ import annotations

import ctypes
import os
import signal

from conflict.cli.exit_codes import ExitCode

__all__ = ["say_cut_files"]

_SENTENCE = b"A file was cut short while it was read. Nothing was written; run the command again on a copy of it.\n"
_Handler = ctypes.CFUNCTYPE(None, ctypes.c_int)


def _end(_: int) -> None:
    os.write(2, _SENTENCE)
    os._exit(ExitCode.REFUSED)


_ended = _Handler(_end)  # lives as long as the program


def say_cut_files() -> None:
    """Make SIGBUS end the program with a sentence. The handler of Python's `signal` would never get its turn."""
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = (ctypes.c_int, _Handler)
    libc.signal.restype = ctypes.c_void_p
    libc.signal(signal.SIGBUS, _ended)
