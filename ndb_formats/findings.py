"""
What checks find: one type for every check, with a stable code.

A check is a pure function that returns findings; a `Rule` says what all findings of one code have in common.
Codes are ``NDB-``, a letter for the check (R: a replica; E: a configuration), and three digits. A code keeps its
meaning for ever. docs/findings.md lists all.
"""

from __future__ import annotations

from enum import StrEnum

import attrs


class ReplicaSeverity(StrEnum):
    """
    How much a finding matters.

    An error contradicts what was asked, a warning says on what the answer depends, a note is a difference without harm.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class ReplicaEffect(StrEnum):
    """What happens where a rule is broken."""

    STOPS = "the applier stops"
    DIVERGES = "rows can differ without an error"
    SLOWS = "rows are found, but slowly"
    NOTHING = "nothing"


@attrs.frozen
class Rule:
    """
    What all findings of one code have in common.

    Attributes:
        code: The stable code, such as ``NDB-R001``.
        severity: How much it matters.
        effect: What happens.
        title: The finding in a few words.
        condition: The condition of the manual behind it, in our words.
        page: The manual's page with that condition, as the last part of its address, without ``.html``.
    """

    code: str
    severity: ReplicaSeverity
    effect: ReplicaEffect
    title: str
    condition: str
    page: str


@attrs.frozen
class Finding:
    """
    One thing that a check found.

    Attributes:
        rule: Its code, severity, effect and condition.
        table: ``database.table``, or the table alone if no database is known.
        column: The column concerned; None for the whole table.
        reason: What is so in this case, and what follows.
        fix: What to change.
    """

    rule: Rule
    table: str
    column: str | None
    reason: str
    fix: str

    @property
    def code(self) -> str:
        """The stable code."""
        return self.rule.code

    @property
    def severity(self) -> ReplicaSeverity:
        """How much it matters."""
        return self.rule.severity

    @property
    def place(self) -> str:
        """Table and column, as ``database.table.column``."""
        return self.table if self.column is None else f"{self.table}.{self.column}"


@attrs.frozen
class LogRemark:
    """
    What is to be said of a log besides its rows.

    Attributes:
        sentence: What it says, without a full stop.
        contradicts: Whether a result cannot be right because of it.
        lost: Whether changes may be missing from the log, or never have arrived at the other cluster.
    """

    sentence: str
    contradicts: bool = False
    lost: bool = False
