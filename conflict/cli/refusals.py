"""
How commands end: the table of exit codes, and refused input, interruptions and closed pipes, reported in a sentence.

There is no traceback, and nothing that was read reaches the terminal but as text. docs/exit-codes.md shows the table.
"""

from __future__ import annotations

import errno
import functools
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment

from conflict.decoding.staging import stopped_politely
from conflict.errors import ConflictError
from conflict.telling.shown_text import not_utf8, printable
from ndb_formats.errors import FormatError
from ndb_formats.stored import path_of

if TYPE_CHECKING:
    from conflict.checking.findings import Severity


class PlainConsole(Console):
    """A console that escapes control characters in whatever it prints, and makes no pictures of ``:names:``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def on_broken_pipe(self) -> None:
        """
        Leave it to the command how it ends: rich would end the program with 1.

        Raises:
            BrokenPipeError: Always.
        """
        raise BrokenPipeError

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of something, without control characters in their texts."""
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else printable(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)


class ExitCode(IntEnum):
    """The exit codes; `MEANINGS` says what each means, and docs/exit-codes.md when each command uses it."""

    DONE = 0
    CONTRADICTED = 1
    REFUSED = 2
    CUT_SHORT = 3
    WARNED = 4
    CONDITION_HOLDS = 5
    INTERRUPTED = 130
    PIPE_CLOSED = 141


MEANINGS = {
    ExitCode.DONE: "done, without warnings",
    ExitCode.CONTRADICTED: "done, but contradicted: by the binlogs, a finding, a recording or a schedule",
    ExitCode.REFUSED: (
        "the input is refused: usage, a file, a setting, a definition, a function; only findings of a check are written"
    ),
    ExitCode.CUT_SHORT: "input ends too early: a binlog that cannot be read to its end, or may lack changes",
    ExitCode.WARNED: "done, with warnings and nothing worse",
    ExitCode.CONDITION_HOLDS: "done, and a condition that was given with --fail-if holds",
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
    ExitCode.PIPE_CLOSED: "the reader of the output closed it, as head does",
}


_OF_SEVERITY = {"refused": ExitCode.REFUSED, "error": ExitCode.CONTRADICTED, "warning": ExitCode.WARNED}


def code_of_findings(severities: Iterable[Severity]) -> ExitCode:
    """Return the exit code of a check, whichever command makes it: that of its worst finding; notes are fine."""
    found = set[str](severities)
    return next((code for severity, code in _OF_SEVERITY.items() if severity in found), ExitCode.DONE)


def exit_with(code: ExitCode) -> None:
    """
    End the command with a code; return if it is 0.

    Raises:
        typer.Exit: The code is not 0.
    """
    if code is not ExitCode.DONE:
        raise typer.Exit(code)


_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
messages = PlainConsole(stderr=True)
Parameters = ParamSpec("Parameters")


def refusing_bad_input(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """
    Return the command with input errors, interruptions and closed pipes turned into the codes of `ExitCode`.

    It gets addresses as such; typer would make paths of them.
    """

    @functools.wraps(command)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        try:
            with stopped_politely():
                try:
                    command(*args, **{name: with_addresses(each) for name, each in kwargs.items()})  # type: ignore[arg-type]
                finally:
                    sys.stdout.flush()  # a pipe that is closed by now is noticed here, and not after the end
        except (ConflictError, FormatError) as error:
            raise refused(error) from error
        except UnicodeEncodeError as error:  # a name of the command line or of a file that is no text
            _report(not_utf8(error))
            raise typer.Exit(ExitCode.REFUSED) from error
        except BrokenPipeError as error:
            raise closed_pipe() from error
        except OSError as error:
            if _came_of_interruption(error):
                raise interrupted() from error
            _report(_told(error))
            raise typer.Exit(ExitCode.REFUSED) from error
        except KeyboardInterrupt as error:
            raise interrupted() from error

    return run


def with_addresses(value: object) -> object:
    """Return an argument as typed: typer makes paths of addresses."""
    if isinstance(value, list | tuple):
        return type(value)(map(with_addresses, value))
    return path_of(value) if isinstance(value, Path) else value


def _came_of_interruption(error: BaseException) -> bool:
    """Whether an error was raised while an interruption was handled: what is half closed cannot be closed again."""
    before = error.__context__
    return before is not None and (isinstance(before, KeyboardInterrupt) or _came_of_interruption(before))


def refused(error: Exception) -> typer.Exit:
    """Say why input is refused, and return how the command ends."""
    _report(str(error))
    return typer.Exit(ExitCode.REFUSED)


def closed_pipe() -> typer.Exit:
    """Return how a command ends whose output nobody reads any more."""
    _forget_output()
    return typer.Exit(ExitCode.PIPE_CLOSED)


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
