"""
What can be wrong with a table on a replica: one row for each finding.

`RULES` is the table; docs/findings.md is made from it. Conditions are the manual's, in our words, with the page.
"""

from __future__ import annotations

from ndb_formats.findings import ReplicaEffect, ReplicaSeverity, Rule

_DIFFERING = "replication-features-differing-tables"
_ROW_IMAGE = "replication-options-binary-log"
_NDB_ISSUES = "mysql-cluster-replication-issues"
_NDB_TABLES = "mysql-cluster-replication-schema"
_GIPK = "create-table-gipks"
_GENERATED = "create-table-generated-columns"
_INVISIBLE = "invisible-columns"

_NAMES = "Source and replica use the same database and table names."
_ORDER = "Common columns are in the same order."
_BEFORE = "Common columns precede all columns that only one table has."
_DEFAULT = "A column of only one table has a default."
_TYPES = "Columns have the same type, or one that replica_type_conversions allows."
_CHARSET = "Text is not converted between character sets."
_IDENTICAL = "With partial images, both tables have the same columns, order and types."
_INSERTS = "With minimal images, the replica fills in its own defaults."
_KEYS = "With partial images, both tables have the same primary key."
_NO_KEY = "Rows are found by a primary key, a NOT NULL unique key, or all columns."
_OTHER_ENGINE = "Updates are not logged as writes for a replica without NDB."

_ERROR, _WARNING, _NOTE = ReplicaSeverity.ERROR, ReplicaSeverity.WARNING, ReplicaSeverity.NOTE
_STOPS, _DIVERGES, _SLOWS, _NOTHING = (
    ReplicaEffect.STOPS,
    ReplicaEffect.DIVERGES,
    ReplicaEffect.SLOWS,
    ReplicaEffect.NOTHING,
)

RULES = tuple(
    Rule(f"NDB-R{number:03d}", severity, effect, title, condition, page)
    for number, severity, effect, title, condition, page in (
        # Tables and how they are logged.
        (1, _ERROR, _STOPS, "the replica does not have the table", _NAMES, _DIFFERING),
        (2, _NOTE, _NOTHING, "only the replica has the table", _NAMES, _DIFFERING),
        (3, _ERROR, _DIVERGES, "changes of the table are not logged",
         "A table with binlog type 1 is not logged.", _NDB_TABLES),
        (4, _ERROR, _STOPS, "updates logged as writes for another engine", _OTHER_ENGINE, _NDB_ISSUES),
        (5, _NOTE, _NOTHING, "the engines differ", "Replication does not depend on the storage engine.", _NDB_ISSUES),
        # Which columns there are, and where.
        (10, _ERROR, _DIVERGES, "columns in another order", _ORDER, _DIFFERING),
        (11, _ERROR, _DIVERGES, "an additional column before a common one", _BEFORE, _DIFFERING),
        (12, _ERROR, _DIVERGES, "a missing column before a common one", _BEFORE, _DIFFERING),
        (13, _WARNING, _DIVERGES, "columns with different names in the same place", _ORDER, _DIFFERING),
        (14, _WARNING, _DIVERGES, "the replica lacks a column", _DEFAULT, _DIFFERING),
        (15, _NOTE, _NOTHING, "the replica has an additional column", _DEFAULT, _DIFFERING),
        (16, _ERROR, _STOPS, "NDB does not know an additional column's default", _DEFAULT, _DIFFERING),
        (17, _WARNING, _DIVERGES, "partial images, and not the same columns", _IDENTICAL, _ROW_IMAGE),
        (18, _NOTE, _NOTHING, "a generated invisible primary key on the replica only",
         "The replica's generated invisible primary key is not compared.", _GIPK),
        (19, _WARNING, _DIVERGES, "an additional column without a default", _DEFAULT, _DIFFERING),
        # Types.
        (20, _ERROR, _STOPS, "a conversion of types that is not allowed", _TYPES, _DIFFERING),
        (21, _ERROR, _STOPS, "types that are never converted", _TYPES, _DIFFERING),
        (22, _NOTE, _NOTHING, "a non-lossy conversion that is allowed", _TYPES, _DIFFERING),
        (23, _WARNING, _DIVERGES, "a lossy conversion that is allowed", _TYPES, _DIFFERING),
        (24, _ERROR, _DIVERGES, "signed on one side, unsigned on the other", _TYPES, _DIFFERING),
        (25, _ERROR, _DIVERGES, "converted values are read with the wrong sign",
         "A converted integer counts as signed, or as unsigned with ALL_UNSIGNED.", _DIFFERING),
        (26, _ERROR, _DIVERGES, "what counts as non-lossy changes values", _TYPES, _DIFFERING),
        (27, _ERROR, _DIVERGES, "members of ENUM or SET differ",
         "ENUM and SET values are logged as numbers.", _DIFFERING),
        (28, _NOTE, _NOTHING, "additional members of ENUM or SET",
         "ENUM and SET values are logged as numbers.", _DIFFERING),
        (29, _WARNING, _DIVERGES, "FLOAT in a DOUBLE shows more digits", _TYPES, _DIFFERING),
        # Text.
        (30, _ERROR, _DIVERGES, "character sets with different bytes", _CHARSET, _DIFFERING),
        (31, _NOTE, _NOTHING, "another character set with the same bytes", _CHARSET,
         _DIFFERING),
        (32, _ERROR, _STOPS, "different keys are equal on the replica", _KEYS, _ROW_IMAGE),
        (33, _NOTE, _NOTHING, "collations differ outside keys", _CHARSET, _DIFFERING),
        (34, _WARNING, _DIVERGES, "text on one side, bytes on the other", _CHARSET, _DIFFERING),
        # Keys.
        (40, _ERROR, _DIVERGES, "images lack columns of the replica's key", _KEYS, _ROW_IMAGE),
        (41, _ERROR, _STOPS, "different rows have the same key on the replica", _NO_KEY, _ROW_IMAGE),
        (42, _WARNING, _SLOWS, "the replica has no key to find rows by", _NO_KEY, _ROW_IMAGE),
        (43, _WARNING, _SLOWS, "no key on either side", _NO_KEY, _ROW_IMAGE),
        (44, _ERROR, _STOPS, "a key column that the source lacks", _KEYS, _ROW_IMAGE),
        (45, _WARNING, _DIVERGES, "key definitions differ", _KEYS, _ROW_IMAGE),
        (46, _ERROR, _STOPS, "a unique key on the replica only", _KEYS, _ROW_IMAGE),
        (47, _NOTE, _NOTHING, "a unique key on the source only", _KEYS, _ROW_IMAGE),
        (48, _WARNING, _STOPS, "unique texts can be equal on the replica", _KEYS, _ROW_IMAGE),
        # Values.
        (50, _ERROR, _DIVERGES, "NULL arrives in a NOT NULL column", _TYPES, _DIFFERING),
        (51, _NOTE, _NOTHING, "only the replica allows NULL", _TYPES, _DIFFERING),
        (52, _ERROR, _DIVERGES, "another default for a column that inserts leave out", _INSERTS, _ROW_IMAGE),
        (53, _NOTE, _NOTHING, "another default, but every image has the column", _INSERTS, _ROW_IMAGE),
        (54, _NOTE, _NOTHING, "AUTO_INCREMENT on one side", "Row events carry the value.", _DIFFERING),
        (55, _NOTE, _NOTHING, "visible on one side, invisible on the other",
         "Row events carry invisible columns like others.", _INVISIBLE),
        (56, _ERROR, _STOPS, "a geometry that the replica's column refuses", _TYPES, _DIFFERING),
        (60, _ERROR, _DIVERGES, "generated on the replica only",
         "The replica computes generated columns itself.", _GENERATED),
        (61, _ERROR, _DIVERGES, "generated from different expressions",
         "The replica computes generated columns itself.", _GENERATED),
        (62, _ERROR, _DIVERGES, "values of a virtual column are not logged", "NDB does not log virtual columns.",
         _NDB_ISSUES),
        (63, _NOTE, _NOTHING, "generated on the source only", "Row events carry the computed value.", _GENERATED),
        (64, _NOTE, _NOTHING, "virtual on one side, stored on the other",
         "The replica computes generated columns itself.", _GENERATED),
    )
)  # fmt: skip
_BY_NUMBER = {int(each.code[-3:]): each for each in RULES}


def rule(number: int) -> Rule:
    """Return the rule of a number, such as 1 for NDB-R001."""
    return _BY_NUMBER[number]
