"""
Tables: rows of mysql.ndb_replication that count for them, those that the server refuses, engines, keys, exceptions.

Source: MySQL manual, "ndb_replication Table", "NDB Cluster Replication Conflict Resolution", "NDB Cluster Replication
Known Issues", "Conflict Resolution Exceptions Table"; error numbers and words as recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

import attrs

from conflict.checking.deployment import type_name
from conflict.checking.findings import (
    Code,
    Finding,
    Fix,
    TablePlace,
    delete_rows,
    identifier,
    key_of,
    quoted,
    statement,
    update_rows,
)
from conflict.checking.reasons import creation_refused, key_stops
from conflict.checking.subject import PlacedTable, Subject, place_of
from conflict.config.configuration import ClusterConfiguration
from conflict.rules.deployed import Deployed
from conflict.rules.exceptions_table import RoleKind
from conflict.rules.functions import FUNCTIONS, Argument
from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, best_match
from conflict.rules.table_setup import Refusal, RefusalKind, is_exceptions_table
from ndb_formats.rules.update_format import BINLOG_TYPES, is_of_other_engine
from ndb_formats.schema.tables import Column, Schema

_MALFORMED = "wrong definition"
_FULL = 7  # the binlog type that logs all columns of both images
_LIKE_UNKNOWN = 2
_FIRST_COLUMNS = (
    "`NDB$server_id` INT UNSIGNED NOT NULL, `NDB$source_server_id` INT UNSIGNED NOT NULL, "
    "`NDB$source_epoch` BIGINT UNSIGNED NOT NULL, `NDB$count` INT UNSIGNED NOT NULL"
)
_KEY = "PRIMARY KEY (`NDB$server_id`, `NDB$source_server_id`, `NDB$source_epoch`, `NDB$count`)"


def ambiguous_rows(subject: Subject) -> Iterator[Finding]:
    """Yield the tables for which several rows match equally well."""
    for placed in subject.tables:
        if isinstance(placed.match, AmbiguousMatch):
            first, *others = placed.match.rows
            listed = " and ".join(map(key_of, placed.match.rows))
            sentence = (
                f"The rows {listed} of mysql.ndb_replication match equally well: the server warns (1625), uses "
                "neither, and creates the table without a conflict function and with the server's logging options."
            )
            fix = delete_rows(*others).then(f" if {key_of(first)} is the one that is meant.")
            yield Finding(Code.AMBIGUOUS_ROWS, sentence, (placed.place,), fix)


def rows_without_table(subject: Subject) -> Iterator[Finding]:
    """Yield rows whose database or table is not there on any cluster that they are for."""
    for row, clusters in _rows(subject).items():
        ours = [cluster for cluster in clusters if row.server_id in {0, *cluster.server_ids}]
        schemas = [subject.configuration.schema_of(cluster) for cluster in ours]
        if not ours or any(_matches(row, schema) for schema in schemas):
            continue
        tables = [table for schema in schemas for table in schema.tables]
        if any(_matches(attrs.evolve(row, table_name="%"), schema) for schema in schemas):
            what, given, known = "no table", row.table_name, {table.name for table in tables}
        else:
            what, given, known = "no database", row.db, {table.database for table in tables}
        near = get_close_matches(given.lower(), {each.lower(): each for each in known}, n=1)
        sentence = f"Its row of mysql.ndb_replication has no effect: {given} matches {what} of the schema."
        column = "table_name" if what == "no table" else "db"
        meant = [each for each in known if near and each.lower() == near[0] and not _has(subject, row, column, each)]
        if meant:
            fix = update_rows(column, quoted(meant[0]), row)
        else:
            fix = delete_rows(row).then(" or give the definition of the table.")
        places = tuple(TablePlace(cluster.name, f"{row.db}.{row.table_name}") for cluster in ours)
        yield Finding(Code.ROW_WITHOUT_TABLE, sentence, places, fix)


def rows_for_other_servers(subject: Subject) -> Iterator[Finding]:
    """Yield rows whose server id is that of no cluster."""
    known = sorted(server_id for cluster in subject.clusters for server_id in cluster.server_ids)
    for row in _rows(subject):
        if row.server_id not in (0, *known):
            sentence = (
                f"Its row of mysql.ndb_replication has no effect: it is for server {row.server_id}, and the servers "
                f"have the ids {', '.join(map(str, known))}."
            )
            fix = update_rows("server_id", "0", row).then(" for all servers, or give the id of one.")
            yield Finding(Code.ROW_FOR_OTHER_SERVER, sentence, (TablePlace("", f"{row.db}.{row.table_name}"),), fix)


def refused_tables(subject: Subject) -> Iterator[Finding]:
    """Yield every CREATE TABLE that fails."""
    for placed in subject.tables:
        refusal = placed.setup.refusal
        if refusal is not None and refusal.kind is not RefusalKind.DROPPED:
            text = None if placed.row is None else placed.row.conflict_fn
            found = creation_refused(refusal, placed.table, placed.function, placed.logging, text)
            name = "" if placed.function is None else placed.function.spec.name
            words = refusal.kind.words(table="TABLE", column=refusal.column, function=name) or refusal.words
            yield attrs.evolve(found, places=(placed.place,), fix=_creating(placed, refusal), server=words)


def _creating(placed: PlacedTable, refusal: Refusal) -> Fix:
    name, table = refusal.column or "", placed.table
    if refusal.kind is RefusalKind.PARSE:
        return placed.set_in_row("conflict_fn", quoted(_readable(placed.row.conflict_fn or "" if placed.row else "")))
    if refusal.kind is RefusalKind.NO_COLUMN:
        alike = [each.name for each in table.columns if each.name.lower() == name.lower()]
        if alike and placed.function is not None:
            return placed.set_in_row("conflict_fn", quoted(f"{placed.function.spec.name}({alike[0]})"))
        return Fix(f"give the table the column `{name}` BIGINT UNSIGNED NOT NULL.")
    if refusal.kind is RefusalKind.WRONG_TYPE:
        column = table.find(name)
        kind = "INT" if column is not None and column.type == "int" else "BIGINT"
        return Fix(f"declare the column as `{name}` {kind} UNSIGNED NOT NULL.")
    if refusal.kind is RefusalKind.BLOB:
        return Fix("move these columns to a table of their own, or declare them VARCHAR or VARBINARY.")
    return placed.set_in_row("binlog_type", "6")


def _readable(text: str) -> str:
    """Return the text that was probably meant, as the server can read it."""
    name, _, rest = text.strip().partition("(")
    names = {spec.name: spec for spec in FUNCTIONS}
    found = get_close_matches(name.strip().upper(), names, n=1, cutoff=0.5)
    spec = names[found[0]] if found else FUNCTIONS[1]
    argument = rest.split(")", maxsplit=1)[0].split(",", maxsplit=1)[0].strip().split(" ", maxsplit=1)[0]
    if spec.argument is Argument.COLUMN:
        return f"{spec.name}({argument or 'version'})"
    return f"{spec.name}({argument if argument.isdecimal() and int(argument) < 32 else ''})"


def other_engines(subject: Subject) -> Iterator[Finding]:
    """Yield functions on tables that declare another storage engine than NDB."""
    for placed in subject.tables:
        if placed.function is not None and is_of_other_engine(placed.table):
            sentence = (
                f"{placed.function} has no effect: the table declares ENGINE={placed.table.engine}, and conflict "
                "functions are for NDB tables."
            )
            fix = statement(f"ALTER TABLE {identifier(placed.table)} ENGINE = NDB;")
            yield Finding(Code.OTHER_ENGINE, sentence, (placed.place,), fix)


def tables_without_function(subject: Subject) -> Iterator[Finding]:
    """Yield tables that changes arrive at from both sides, and that have a conflict function nowhere."""
    meant = _with_function(subject)
    for placed in subject.tables:
        sources = subject.links.sources(placed.cluster.name)
        both_ways = [
            source
            for source in sources
            if placed.cluster in subject.links.sources(source.name)
            and (there := subject.on(source, placed)) is not None
            and there.logging.format.logged
        ]
        if both_ways and subject.run_table(placed).full_name not in meant and placed.logging.format.logged:
            sentence = (
                "No cluster has a conflict function for the table: of changes that two clusters make to one row, each "
                "overwrites the other where it arrives, and the row can end different."
            )
            fix = Fix("change each row on one cluster alone, or give the table a conflict_fn.")
            yield Finding(Code.NO_FUNCTION, sentence, (placed.place,), fix)


def unlogged_tables(subject: Subject) -> Iterator[Finding]:
    """Yield tables without a function whose changes a server does not log, and that others have."""
    meant = _with_function(subject)
    for placed in subject.tables:
        replicas = subject.links.replicas(placed.cluster.name)
        arrives = any(subject.on(replica, placed) is not None for replica in replicas)
        if arrives and not placed.logging.format.logged and subject.run_table(placed).full_name not in meant:
            sentence = (
                f"The server logs no change of the table ({placed.logging}): none arrives elsewhere, and its rows "
                "differ from those of the other clusters."
            )
            fix = placed.set_in_row("binlog_type", str(_FULL)).then(" if its changes are to arrive.")
            yield Finding(Code.NOT_LOGGED, sentence, (placed.place,), fix, at="binlog_type")


def keys(subject: Subject) -> Iterator[Finding]:
    """Yield keys, or the lack of one, that can stop appliers, of tables that changes of another cluster arrive at."""
    for placed in subject.tables:
        sources = subject.links.sources(placed.cluster.name)
        logged = [there for source in sources if (there := subject.on(source, placed)) is not None]
        if placed.setup.refusal is not None or not any(there.logging.format.logged for there in logged):
            continue
        for found in key_stops(placed.table, placed.function):
            fix, name = found.fix, identifier(placed.table)
            if found.kind is Code.NO_KEY:
                fix = statement(f"ALTER TABLE {name} ADD PRIMARY KEY (...);", "on every cluster: ")
            yield attrs.evolve(found, places=(placed.place,), fix=fix)


def malformed_exceptions(subject: Subject) -> Iterator[Finding]:
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
                yield Finding(Code.MALFORMED_EXCEPTIONS, sentence, (placed.place,), fix, server=server)
            else:
                sentence = (
                    "A column of the exceptions table has the name of no column of the table, so every row has its "
                    "default there."
                )
                fix = Fix("correct the name, or drop the column.")
                yield Finding(Code.UNKNOWN_EXCEPTIONS_COLUMN, sentence, (placed.place,), fix, server=server)


def keyless_exceptions(subject: Subject) -> Iterator[Finding]:
    """Yield exceptions tables without a column for each column of the key."""
    for placed in subject.tables:
        found = placed.setup.exceptions
        held = {role.source for role in found.roles if role.kind is RoleKind.KEY} if found is not None else set()
        lacking = [name for name in placed.table.primary_key if placed.table.ordinal(name) not in held]
        if found is not None and lacking:
            sentence = (
                f"The exceptions table has no column {', '.join(lacking)}, which the key of the table has: its rows do "
                "not say which row was in conflict."
            )
            fix = statement(_create(placed), "drop it, then: ")
            yield Finding(Code.NO_KEY_IN_EXCEPTIONS, sentence, (placed.place,), fix)


def unknown_types(subject: Subject) -> Iterator[Finding]:
    """Yield tables whose row of mysql.ndb_replication has a binlog type that stands for nothing."""
    known = {each.number for each in BINLOG_TYPES if each.names}
    for placed in subject.tables:
        number = placed.logging.binlog_type
        if number not in known:
            sentence = (
                f"Servers do not know binlog_type {number}: they log the table as under {type_name(_LIKE_UNKNOWN)}, "
                "updates as writes of the key and of the columns that were set."
            )
            fix = placed.set_in_row("binlog_type", str(_FULL))
            yield Finding(Code.UNKNOWN_TYPE, sentence, (placed.place,), fix, at="binlog_type")


def lower_case_exceptions(subject: Subject) -> Iterator[Finding]:
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
            yield Finding(Code.LOWER_CASE_EXCEPTIONS, sentence, (placed.place,), fix)


def useless_exceptions(subject: Subject) -> Iterator[Finding]:
    """Yield exceptions tables that NDB does not see, whose table is not there, or has a conflict function nowhere."""
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
                fix = Fix("name it after its table, with $EX at the end.")
                yield Finding(Code.USELESS_EXCEPTIONS, sentence, place, fix)
            elif main not in used:
                sentence = "The table of this exceptions table has no conflict function, so nothing is written to it."
                fix = Fix("give the table a conflict_fn, or drop this one.")
                yield Finding(Code.USELESS_EXCEPTIONS, sentence, place, fix)
            elif is_of_other_engine(table):
                sentence = (
                    f"The server does not use the exceptions table, because it declares ENGINE={table.engine}, and not "
                    "NDB: conflicts are resolved and counted, and none is written down."
                )
                made = subject.by_place.get(TablePlace(cluster.name, main.removeprefix(".")))
                fix = Fix() if made is None else statement(_create(made), "drop it, then: ")
                yield Finding(Code.USELESS_EXCEPTIONS, sentence, place, fix)


def missing_exceptions(subject: Subject) -> Iterator[Finding]:
    """Yield tables with a function and without an exceptions table, on appliers that reject changes."""
    for placed in subject.tables:
        function = placed.function
        if function is None or placed.setup.function is None or placed.setup.exceptions is not None:
            continue
        if not placed.table.primary_key:
            continue  # nothing is a conflict there
        if not Deployed(function, placed.cluster.role).judges:
            continue
        if not any(warning.startswith("exceptions table ") for warning in placed.setup.warnings) and not _has_unused(
            subject, placed
        ):
            sentence = "Without an exceptions table, rejected changes are counted and not written down."
            yield Finding(Code.NO_EXCEPTIONS, sentence, (placed.place,), statement(_create(placed)))


def _with_function(subject: Subject) -> set[str]:
    """Return the tables, as the run names them, that are to have a conflict function on some cluster."""
    return {subject.run_table(each).full_name for each in subject.tables if any(row.conflict_fn for row in each.rows)}


def _has_unused(subject: Subject, placed: PlacedTable) -> bool:
    """Whether there is a table by the name of an exceptions table, which the server does not use."""
    schema = subject.configuration.schema_of(placed.cluster)
    return any(schema.find(placed.table.database, f"{placed.table.name}{end}") is not None for end in ("$EX", "$ex"))


def _create(placed: PlacedTable) -> str:
    """Return the statement that creates the exceptions table of a table."""
    table = placed.table
    keys = [_declaration(column) for column in map(table.find, table.primary_key) if column is not None]
    name = identifier(table, f"{table.name}$EX")
    return f"CREATE TABLE {name} ({', '.join((_FIRST_COLUMNS, *keys, _KEY))}) ENGINE = NDB;"


def _declaration(column: Column) -> str:
    collation = "" if column.collation is None else f" COLLATE {column.collation}"
    return f"`{column.name}` {column.sql_type}{collation} NOT NULL"


def _rows(subject: Subject) -> dict[ReplicationRow, list[ClusterConfiguration]]:
    """Return every row, and the clusters that have it."""
    found: dict[ReplicationRow, list[ClusterConfiguration]] = {}
    for cluster in subject.clusters:
        for row in subject.configuration.replication_of(cluster):
            found.setdefault(row, []).append(cluster)
    return found


def _has(subject: Subject, row: ReplicationRow, column: str, name: str) -> bool:
    """Whether there is a row with the primary key that a row would have with another name."""
    wanted = (name if column == "db" else row.db, name if column == "table_name" else row.table_name, row.server_id)
    return any((each.db, each.table_name, each.server_id) == wanted for each in _rows(subject))


def _matches(row: ReplicationRow, schema: Schema) -> bool:
    return any(best_match([row], table.database, table.name, row.server_id) is not None for table in schema.tables)
