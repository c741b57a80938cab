"""
What a binlog holds, and what may not be as it was when it was written.
"""

from __future__ import annotations

from enum import StrEnum

import attrs

from conflict.rules.replication_table import Role


def with_options(shown: str, options: str) -> str:
    """Return what binlogs show, with the causes that fit if there are several."""
    return f"{shown} Cannot tell which of: {options}." if options else shown


class CauseKind(StrEnum):
    """What may not be as it was when the binlogs were written."""

    TRANSACTION_IDS = "ndb_log_transaction_id"
    APPLY_STATUS = "ndb_log_apply_status"
    REPLICA_UPDATES = "log_replica_updates"
    BINLOG_TYPE = "binlog_type"
    FUNCTION = "conflict function"
    ROLE = "role"
    PRIMARY = "primary"
    ROLE_CHANGE = "role change"
    VALUES = "values"
    ROW_SLICE = "row slice"
    UNLOGGED = "unlogged write"
    FILES = "files"
    DEFINITION = "definition"
    FILTER = "filter"
    RENAME = "rename"


# These count as contradictions by themselves.
TELLING = frozenset(
    {
        CauseKind.BINLOG_TYPE,
        CauseKind.TRANSACTION_IDS,
        CauseKind.APPLY_STATUS,
        CauseKind.ROLE,
        CauseKind.FUNCTION,
    }
)


@attrs.frozen
class LikelyCause:
    """
    One likely cause of contradictions, or several for which the binlogs do not tell the right one.

    Attributes:
        cluster: The cluster whose binlog contradicts what was derived.
        kind: What may not be as it was.
        tables: The tables concerned; empty if all may be.
        shown: What the binlog shows, and what follows.
        cannot_tell: Of several causes that fit, all kinds, the likeliest first; empty if only `kind` fits.
        options: These in words, one after the other; empty if only `kind` fits.
    """

    cluster: str
    kind: CauseKind
    tables: tuple[str, ...]
    shown: str
    cannot_tell: tuple[CauseKind, ...] = ()
    options: str = ""

    @property
    def sentence(self) -> str:
        """All of it in words."""
        return with_options(self.shown, self.options)

    @property
    def kinds(self) -> tuple[CauseKind, ...]:
        """All that it may be."""
        return self.cannot_tell or (self.kind,)


@attrs.frozen
class LogFacts:
    """
    What the binlog of one cluster holds.

    Attributes:
        changes: Row changes of its own.
        without_id: How many of these have no transaction id.
        applied: Epochs of other clusters that it shows.
        effects: Row changes of its applier.
        effects_apart: How many of these belong to no epoch of another cluster.
        replicates: Whether the cluster replicates from another one.
        refreshed: Whether its applier is known to have refreshed rows.
        reflected: Whether its applier is known to have marked rows as reflected.
        role: The role that the cluster is given; None if that is not known, or changed.
        changed_tables: The tables of its own row changes.
        applied_tables: The tables of the row changes of its applier.
    """

    changes: int = 0
    without_id: int = 0
    applied: int = 0
    effects: int = 0
    effects_apart: int = 0
    replicates: bool = True
    refreshed: bool = False
    reflected: bool = False
    role: Role | None = None
    changed_tables: frozenset[str] = frozenset()
    applied_tables: frozenset[str] = frozenset()

    @property
    def hides_epochs(self) -> bool:
        """Whether it shows changes of the other cluster, and nowhere the epochs that they came with."""
        return bool(self.effects) and not self.applied

    @property
    def other_role(self) -> bool:
        """Whether it marked rows as reflected, which only a primary does, and is given another role."""
        return self.reflected and self.role not in (None, Role.PRIMARY)
