"""
Roles of clusters (`ndb_applier_conflict_role`).

Source: MySQL manual, "NDB$EPOCH2()".
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Role"]


class Role(StrEnum):
    """``ndb_applier_conflict_role`` of a cluster, which the functions with roles depend on."""

    NONE = "NONE"
    PRIMARY = "PRIMARY"
    SECONDARY = "SECONDARY"
    PASS = "PASS"  # noqa: S105  # a role, not a password
