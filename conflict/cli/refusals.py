"""
How refused input, interruptions and closed pipes are reported: a sentence and an exit code, no traceback.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import ParamSpec

import typer
from rich.markup import escape

from conflict.cli.exit_codes import ExitCode
from conflict.cli.terminal import PlainConsole
from conflict.decoding.interruptions import stopped_politely
from conflict.errors import ConflictError
from ndb_formats.errors import FormatError

__all__ = ["closed_pipe", "interrupted", "messages", "refused", "refusing_bad_input"]

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
messages = PlainConsole(stderr=True)
Parameters = ParamSpec("Parameters")


def refusing_bad_input(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Return the command with input errors, interruptions and closed pipes turned into the codes of `ExitCode`."""

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            with stopped_politely():
                try:
                    command(*args, **kwargs)
                finally:
                    sys.stdout.flush()  # a pipe that is closed by now is noticed here, and not after the end
        except (ConflictError, FormatError) as error:
            raise refused(error) from error
        except BrokenPipeError as error:
            raise closed_pipe() from error
        except OSError as error:
            _report(_told(error))
            raise typer.Exit(ExitCode.REFUSED) from error
        except KeyboardInterrupt as error:
            raise interrupted() from error

    return run


def refused(error: Exception) -> typer.Exit:
    """Say why input is refused, and return how the command ends."""
    _report(str(error))
    return typer.Exit(ExitCode.REFUSED)


def closed_pipe() -> typer.Exit:
    """Return how a command ends whose output nobody reads any more."""
    _forget_output()
    return typer.Exit(ExitCode.CUT_SHORT)


def interrupted() -> typer.Exit:
    """Say that the command was interrupted, and return how it ends."""
    _report("interrupted")
    return typer.Exit(ExitCode.INTERRUPTED)


def _told(error: OSError) -> str:
    """Return an error of the operating system as a sentence."""
    if error.errno in _NO_SPACE:
        place = "the output" if error.filename is None else error.filename
        cause = os.strerror(error.errno)
        return f"{place} cannot be written: {cause}. Make space, or give another place, and run the command again"
    # pyarrow says in its text which file it is, and not in `filename`.
    return str(error) if error.filename is None else f"{error.filename}: {error.strerror}"


def _report(text: str) -> None:
    messages.print(f"[red]{escape(text)}[/red]", soft_wrap=True)


def _forget_output() -> None:
    """Send what is still buffered for a closed pipe nowhere, so that its flush at the end does not fail."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
