"""
Which rows of mysql.ndb_replication count for which tables, and which count for none.

Source: MySQL manual, "ndb_replication Table".
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

import attrs

from conflict.checking.codes import code
from conflict.checking.findings import Finding, Fix, Place
from conflict.checking.statements import delete_rows, identifier, key_of, quoted, statement, update_rows
from conflict.checking.subject import Subject
from conflict.config.configuration import ClusterConfiguration
from conflict.rules.replication_table import AmbiguousMatch, ReplicationRow, best_match
from ndb_formats.rules.update_format import is_ndb
from ndb_formats.schema.tables import Schema

__all__ = ["ambiguous_rows", "other_engines", "rows_for_other_servers", "rows_without_table", "tables_without_function"]


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
            fix = delete_rows(*others)
            fix = attrs.evolve(fix, after=f"{fix.after} if {key_of(first)} is the one that is meant.")
            yield Finding(code(6), (placed.place,), sentence, fix)


def rows_without_table(subject: Subject) -> Iterator[Finding]:
    """Yield rows whose database or table is not there on any cluster that they are for."""
    for row, clusters in _rows(subject).items():
        ours = [cluster for cluster in clusters if row.server_id in (0, cluster.server_id)]
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
            fix = delete_rows(row)
            fix = attrs.evolve(fix, after=f"{fix.after} or give the definition of the table.")
        places = tuple(Place(cluster.name, f"{row.db}.{row.table_name}") for cluster in ours)
        yield Finding(code(7), places, sentence, fix)


def rows_for_other_servers(subject: Subject) -> Iterator[Finding]:
    """Yield rows whose server id is that of no cluster."""
    known = sorted(cluster.server_id for cluster in subject.clusters)
    for row in _rows(subject):
        if row.server_id not in (0, *known):
            sentence = (
                f"Its row of mysql.ndb_replication has no effect: it is for server {row.server_id}, and the servers "
                f"have the ids {', '.join(map(str, known))}."
            )
            fix = update_rows("server_id", "0", row)
            fix = attrs.evolve(fix, after=f"{fix.after} for all servers, or give the id of one.")
            yield Finding(code(8), (Place("", f"{row.db}.{row.table_name}"),), sentence, fix)


def other_engines(subject: Subject) -> Iterator[Finding]:
    """Yield functions on tables that declare another storage engine than NDB."""
    for placed in subject.tables:
        if placed.function is not None and placed.table.engine is not None and not is_ndb(placed.table):
            sentence = (
                f"{placed.function} has no effect: the table declares ENGINE={placed.table.engine}, and conflict "
                "functions are for NDB tables."
            )
            fix = statement(f"ALTER TABLE {identifier(placed.table)} ENGINE = NDB;")
            yield Finding(code(9), (placed.place,), sentence, fix)


def tables_without_function(subject: Subject) -> Iterator[Finding]:
    """Yield tables that changes arrive at from both sides, and that have a conflict function nowhere."""
    meant = {each.place.table for each in subject.tables if any(row.conflict_fn for row in each.rows)}
    for placed in subject.tables:
        sources = subject.links.sources(placed.cluster.name)
        both_ways = [
            source
            for source in sources
            if placed.cluster in subject.links.sources(source.name)
            and (there := subject.on(source, placed.table)) is not None
            and there.logging.format.logged
        ]
        if both_ways and placed.place.table not in meant and placed.logging.format.logged:
            sentence = (
                "No cluster has a conflict function for the table: of changes that two clusters make to one row, each "
                "overwrites the other where it arrives, and the row can end different."
            )
            fix = Fix("change each row on one cluster alone, or give the table a conflict_fn.")
            yield Finding(code(10), (placed.place,), sentence, fix)


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
