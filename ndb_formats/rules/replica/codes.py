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

_NAMES = "The database and table names are the same on source and replica."
_ORDER = "Columns that both tables have stand in the same order."
_BEFORE = "Columns that both tables have stand before all columns that only one of them has."
_DEFAULT = "Each column that only one of the tables has has a default value."
_TYPES = "Corresponding columns have the same type, unless replica_type_conversions allows to convert it."
_CHARSET = "Values of text columns are not converted from one character set to another."
_IDENTICAL = "With minimal or noblob images, both tables have all columns, in the same order and of the same types."
_INSERTS = "With minimal images, an insert logs the columns that it gives; the replica fills in its own defaults."
_KEYS = "With minimal or noblob images, both tables have the same primary key definition."
_NO_KEY = "Tables have a primary key, or a unique key without NULL; else the whole row identifies a row."
_OTHER_ENGINE = "Updates are not logged as writes if the replica uses another storage engine than NDB."

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
        (11, _ERROR, _DIVERGES, "an additional column of the replica stands before a common one", _BEFORE, _DIFFERING),
        (12, _ERROR, _DIVERGES, "a column that the replica lacks stands before a common one", _BEFORE, _DIFFERING),
        (13, _WARNING, _DIVERGES, "columns with different names in the same place", _ORDER, _DIFFERING),
        (14, _WARNING, _DIVERGES, "the replica lacks a column", _DEFAULT, _DIFFERING),
        (15, _NOTE, _NOTHING, "the replica has an additional column", _DEFAULT, _DIFFERING),
        (16, _ERROR, _STOPS, "NDB does not know a default of an additional column", _DEFAULT, _DIFFERING),
        (17, _WARNING, _DIVERGES, "partial images, and not the same columns", _IDENTICAL, _ROW_IMAGE),
        (18, _NOTE, _NOTHING, "a generated invisible primary key on the replica alone",
         "The replica's generated invisible primary key is left out when columns are compared.", _GIPK),
        (19, _WARNING, _DIVERGES, "an additional column of the replica has no default", _DEFAULT, _DIFFERING),
        # Types.
        (20, _ERROR, _STOPS, "a conversion of types that is not allowed", _TYPES, _DIFFERING),
        (21, _ERROR, _STOPS, "types that are never converted", _TYPES, _DIFFERING),
        (22, _NOTE, _NOTHING, "a non-lossy conversion that is allowed", _TYPES, _DIFFERING),
        (23, _WARNING, _DIVERGES, "a lossy conversion that is allowed", _TYPES, _DIFFERING),
        (24, _ERROR, _DIVERGES, "signed on one side and unsigned on the other", _TYPES, _DIFFERING),
        (25, _ERROR, _DIVERGES, "converted values are read with the wrong sign",
         "A converted integer counts as signed, or as unsigned with ALL_UNSIGNED.", _DIFFERING),
        (26, _ERROR, _DIVERGES, "what counts as non-lossy changes values", _TYPES, _DIFFERING),
        (27, _ERROR, _DIVERGES, "members of ENUM or SET differ",
         "ENUM and SET values are logged as numbers, so members have the same numbers.", _DIFFERING),
        (28, _NOTE, _NOTHING, "the replica has additional members of ENUM or SET",
         "ENUM and SET values are logged as numbers, so members have the same numbers.", _DIFFERING),
        (29, _WARNING, _DIVERGES, "FLOAT in a DOUBLE shows more digits", _TYPES, _DIFFERING),
        # Text.
        (30, _ERROR, _DIVERGES, "character sets with different bytes", _CHARSET, _DIFFERING),
        (31, _NOTE, _NOTHING, "a character set that has the source's characters in the same bytes", _CHARSET,
         _DIFFERING),
        (32, _ERROR, _STOPS, "different keys of the source are equal on the replica", _KEYS, _ROW_IMAGE),
        (33, _NOTE, _NOTHING, "collations differ outside keys", _CHARSET, _DIFFERING),
        (34, _WARNING, _DIVERGES, "text on one side and bytes on the other", _CHARSET, _DIFFERING),
        # Keys.
        (40, _ERROR, _DIVERGES, "images lack columns of the replica's key", _KEYS, _ROW_IMAGE),
        (41, _ERROR, _STOPS, "different rows of the source have the same key on the replica", _NO_KEY, _ROW_IMAGE),
        (42, _WARNING, _SLOWS, "the replica has no key to find rows by", _NO_KEY, _ROW_IMAGE),
        (43, _WARNING, _SLOWS, "no key on either side", _NO_KEY, _ROW_IMAGE),
        (44, _ERROR, _STOPS, "a key column of the replica that the source lacks", _KEYS, _ROW_IMAGE),
        (45, _WARNING, _DIVERGES, "key definitions differ", _KEYS, _ROW_IMAGE),
        (46, _ERROR, _STOPS, "a unique key on the replica alone", _KEYS, _ROW_IMAGE),
        (47, _NOTE, _NOTHING, "a unique key on the source alone", _KEYS, _ROW_IMAGE),
        (48, _WARNING, _STOPS, "texts of a unique key that can be equal on the replica", _KEYS, _ROW_IMAGE),
        # Values.
        (50, _ERROR, _DIVERGES, "NULL arrives in a NOT NULL column", _TYPES, _DIFFERING),
        (51, _NOTE, _NOTHING, "only the replica allows NULL", _TYPES, _DIFFERING),
        (52, _ERROR, _DIVERGES, "another default for a column that inserts leave out", _INSERTS, _ROW_IMAGE),
        (53, _NOTE, _NOTHING, "another default, but every image has the column", _INSERTS, _ROW_IMAGE),
        (54, _NOTE, _NOTHING, "AUTO_INCREMENT on one side", "Row events carry the value.", _DIFFERING),
        (55, _NOTE, _NOTHING, "visible on one side and invisible on the other",
         "Row events carry invisible columns like others.", _INVISIBLE),
        (56, _ERROR, _STOPS, "a kind of geometry that the replica's column does not take", _TYPES, _DIFFERING),
        (60, _ERROR, _DIVERGES, "generated on the replica alone",
         "The replica computes generated columns itself.", _GENERATED),
        (61, _ERROR, _DIVERGES, "generated from different expressions",
         "The replica computes generated columns itself.", _GENERATED),
        (62, _ERROR, _DIVERGES, "values of a virtual column are not logged", "NDB does not log virtual columns.",
         _NDB_ISSUES),
        (63, _NOTE, _NOTHING, "generated on the source alone", "Row events carry the computed value.", _GENERATED),
        (64, _NOTE, _NOTHING, "virtual on one side and stored on the other",
         "The replica computes generated columns itself.", _GENERATED),
    )
)  # fmt: skip
_BY_NUMBER = {int(each.code[-3:]): each for each in RULES}


def rule(number: int) -> Rule:
    """Return the rule of a number, such as 1 for NDB-R001."""
    return _BY_NUMBER[number]
