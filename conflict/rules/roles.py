"""
Roles of clusters, `ndb_applier_conflict_role`.

Source: MySQL manual, "NDB$EPOCH2()".
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Role"]


class Role(StrEnum):
    """``ndb_applier_conflict_role``: what a cluster is for the functions that have roles."""

    NONE = "NONE"
    PRIMARY = "PRIMARY"
    SECONDARY = "SECONDARY"
    PASS = "PASS"  # noqa: S105  # a role, not a password
