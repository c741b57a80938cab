"""
The codes of `check`: one row for each kind of finding.

docs/check.md has the same table. A code keeps its meaning for ever; new findings get new numbers.
"""

from __future__ import annotations

from conflict.checking.findings import Code, Severity

__all__ = ["CODES", "code"]

_REFUSED, _WARNING, _NOTE = Severity

CODES = tuple(
    Code(f"NDB-E{number:03d}", severity, title, error)
    for number, severity, title, error in (
        # What CREATE TABLE says, and which row of mysql.ndb_replication counts.
        (1, _REFUSED, "conflict_fn cannot be read", 1626),
        (2, _REFUSED, "the resolve column does not exist", 1005),
        (3, _REFUSED, "the resolve column has a type that cannot be compared", 1005),
        (4, _REFUSED, "a function by epoch on a table with blobs", 1005),
        (5, _REFUSED, "a function with roles on a table that logs updates as writes", 1005),
        (6, _WARNING, "rows of ndb_replication that match equally well", 1625),
        (7, _WARNING, "a row of ndb_replication that matches no table", None),
        (8, _WARNING, "a row of ndb_replication for another server", None),
        (9, _WARNING, "a function on a table of another storage engine", None),
        (10, _NOTE, "no conflict function", None),
        # What the function gets to compare.
        (11, _REFUSED, "no update has the value to compare", 1296),
        (12, _WARNING, "changes that lack the value to compare", 1296),
        (13, _WARNING, "deletes without before values", 1296),
        (14, _WARNING, "updates logged as writes", None),
        (15, _WARNING, "a function and a binlog type that the manual advises against", None),
        (16, _WARNING, "changes that are not logged", None),
        (17, _NOTE, "a resolve column that can be NULL", None),
        (18, _WARNING, "a resolve column in the primary key", None),
        (19, _WARNING, "a function by column on one cluster alone", None),
        # Server variables and epochs.
        (20, _REFUSED, "transaction ids are not logged", 1296),
        (21, _WARNING, "applied epochs are not logged", None),
        (22, _WARNING, "the applier's changes are not logged", None),
        (23, _WARNING, "the server writes no binlog of its NDB tables", None),
        (24, _WARNING, "too few extra GCI bits", None),
        (25, _NOTE, "variables that are not known", None),
        (26, _NOTE, "reads that have no effect", None),
        # Roles and clusters.
        (30, _REFUSED, "no role", 1296),
        (31, _WARNING, "role PASS", None),
        (32, _WARNING, "the same role on both clusters", None),
        (33, _WARNING, "a primary on both sides", None),
        (34, _REFUSED, "a function by epoch with more than two clusters", None),
        (35, _WARNING, "refreshes that are not logged", None),
        (36, _WARNING, "a function with roles on one cluster alone", None),
        (37, _NOTE, "hidden columns", None),
        (38, _NOTE, "delete-delete is not refreshed", None),
        (39, _WARNING, "refreshes that a function by column cannot judge", 1296),
        # What stops an applier, whatever the function.
        (40, _WARNING, "no primary key", 1032),
        (41, _WARNING, "a further unique key", 1022),
        (42, _WARNING, "a foreign key", 1452),
        (43, _WARNING, "blobs in reach of a rejected transaction", 1296),
        (44, _WARNING, "a slice of the rows", None),
        # Exceptions tables.
        (50, _WARNING, "a malformed exceptions table", None),
        (51, _NOTE, "a column of an exceptions table that stays at its default", None),
        (52, _WARNING, "an exceptions table in lower case", None),
        (53, _WARNING, "an exceptions table without use", None),
        (54, _NOTE, "no exceptions table", None),
    )
)
_BY_NUMBER = {int(each.code[-3:]): each for each in CODES}


def code(number: int) -> Code:
    """Return the code of a number, such as 13 for NDB-E013."""
    return _BY_NUMBER[number]
