"""
The exit codes of all commands: one table, which docs/exit-codes.md shows.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum

import typer

from ndb_formats.findings import Finding, Severity

__all__ = ["MEANINGS", "ExitCode", "code_of_findings", "exit_with"]


class ExitCode(IntEnum):
    """The exit codes; `MEANINGS` says what each means, and docs/exit-codes.md when each command uses it."""

    DONE = 0
    CONTRADICTED = 1
    REFUSED = 2
    CUT_SHORT = 3
    WARNED = 4
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.DONE: "done, without warnings",
    ExitCode.CONTRADICTED: "done, but contradicted: by the binlogs, a finding, a recording or a schedule",
    ExitCode.REFUSED: "the input is refused: usage, a file, a setting, a definition, a function; nothing was written",
    ExitCode.CUT_SHORT: "input or output ends too early: a binlog that cannot be read to its end, a closed pipe",
    ExitCode.WARNED: "done, with warnings and nothing worse",
    ExitCode.INTERRUPTED: "interrupted from the keyboard",
}


def code_of_findings(findings: Collection[Finding]) -> ExitCode:
    """Return the exit code of a check: that of its worst finding; notes are fine."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return ExitCode.CONTRADICTED
    return ExitCode.WARNED if Severity.WARNING in severities else ExitCode.DONE


def exit_with(code: ExitCode) -> None:
    """
    End the command with a code; return if it is 0.

    Raises:
        typer.Exit: The code is not 0.
    """
    if code is not ExitCode.DONE:
        raise typer.Exit(code)
