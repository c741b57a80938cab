"""
Exceptions tables: malformed, in lower case, without use, or none.

Source: MySQL manual, "Conflict Resolution Exceptions Table"; the server's words as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.codes import code
from conflict.checking.findings import Finding, Fix
from conflict.checking.statements import identifier, statement
from conflict.checking.subject import PlacedTable, Subject, place_of
from conflict.rules.roles import Role
from conflict.rules.table_setup import is_exceptions_table
from ndb_formats.schema.tables import Column

__all__ = ["lower_case_tables", "malformed_tables", "missing_tables", "useless_tables"]

_MALFORMED = "wrong definition"
_FIRST_COLUMNS = (
    "`NDB$server_id` INT UNSIGNED NOT NULL, `NDB$source_server_id` INT UNSIGNED NOT NULL, "
    "`NDB$source_epoch` BIGINT UNSIGNED NOT NULL, `NDB$count` INT UNSIGNED NOT NULL"
)
_KEY = "PRIMARY KEY (`NDB$server_id`, `NDB$source_server_id`, `NDB$source_epoch`, `NDB$count`)"


def malformed_tables(subject: Subject) -> Iterator[Finding]:
    """Yield exceptions tables that the server warns of: it does not use one that is wrong."""
    for placed in subject.tables:
        for warning in placed.setup.warnings if placed.function is not None else ():
            if not warning.startswith("exceptions table "):
                continue
            server = warning.replace(f"{placed.table.name}$", "TABLE$")
            if _MALFORMED in warning:
                sentence = (
                    "The server does not use the exceptions table, because its definition is wrong: conflicts are "
                    "resolved and counted, and none is written down."
                )
                fix = statement(_create(placed), "drop it, then: ")
                yield Finding(code(50), (placed.place,), sentence, fix, server)
            else:
                sentence = (
                    "A column of the exceptions table has the name of no column of the table, so every row has its "
                    "default there."
                )
                yield Finding(code(51), (placed.place,), sentence, Fix("correct the name, or drop the column."), server)


def lower_case_tables(subject: Subject) -> Iterator[Finding]:
    """Yield exceptions tables that are logged, because their names do not end in $EX."""
    for placed in subject.tables:
        found = placed.setup.exceptions
        if found is not None and found.replicated:
            sentence = (
                "The name of the exceptions table ends in $ex: the server uses the table, but logs it like any other, "
                "so the rows of one cluster arrive in that of the other."
            )
            name = found.table.name
            old, new = identifier(found.table, name), identifier(found.table, f"{name[:-3]}$EX")
            fix = statement(f"RENAME TABLE {old} TO {new};")
            yield Finding(code(52), (placed.place,), sentence, fix)


def useless_tables(subject: Subject) -> Iterator[Finding]:
    """Yield exceptions tables whose table is not there, or has a conflict function nowhere."""
    used = {each.table.full_name for each in subject.tables if any(row.conflict_fn for row in each.rows)}
    for cluster in subject.clusters:
        schema = subject.configuration.schema_of(cluster)
        for table in schema.tables:
            if not is_exceptions_table(table):
                continue
            main = f"{table.database}.{table.name[:-3]}"
            place = (place_of(cluster, table),)
            if schema.find(table.database, table.name[:-3]) is None:
                sentence = "There is no table of which this is the exceptions table; letter case counts."
                yield Finding(code(53), place, sentence, Fix("name it after its table, with $EX at the end."))
            elif main not in used:
                sentence = "The table of this exceptions table has no conflict function, so nothing is written to it."
                yield Finding(code(53), place, sentence, Fix("give the table a conflict_fn, or drop this one."))


def missing_tables(subject: Subject) -> Iterator[Finding]:
    """Yield tables with a function and without an exceptions table, on appliers that reject changes."""
    for placed in subject.tables:
        function = placed.function
        if function is None or placed.setup.function is None or placed.setup.exceptions is not None:
            continue
        if not placed.table.primary_key:
            continue  # nothing is a conflict there
        if function.spec.uses_role and placed.cluster.role in (Role.SECONDARY, Role.PASS):
            continue
        if not any(warning.startswith("exceptions table ") for warning in placed.setup.warnings):
            sentence = "Without an exceptions table, rejected changes are counted and not written down."
            yield Finding(code(54), (placed.place,), sentence, statement(_create(placed)))


def _create(placed: PlacedTable) -> str:
    """Return the statement that creates the exceptions table of a table."""
    table = placed.table
    keys = [_declaration(column) for column in map(table.find, table.primary_key) if column is not None]
    name = identifier(table, f"{table.name}$EX")
    return f"CREATE TABLE {name} ({', '.join((_FIRST_COLUMNS, *keys, _KEY))}) ENGINE = NDB;"


def _declaration(column: Column) -> str:
    collation = "" if column.collation is None else f" COLLATE {column.collation}"
    return f"`{column.name}` {column.sql_type}{collation} NOT NULL"
