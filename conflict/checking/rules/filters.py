"""
Filters of appliers and of binary logs, and databases that appliers rename.

The filters of an applier are those of its channel; ``binlog_do_db`` and ``binlog_ignore_db`` are from an option file.
Rows are filtered by the database of their table, statements by the default database of their session.

Source: MySQL manual, "Known Issues in NDB Cluster Replication" (filtering rules), "Evaluation of Database-Level
Replication and Binary Logging Options".

Choices:
    - Options for databases are asked before those for tables, as the second page says. The first one says that
      ``replicate_do_table`` lets mysql.ndb_apply_status pass ``replicate_ignore_db = mysql``, which it then does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, Fix, TablePlace
from conflict.checking.subject import PlacedTable, Subject
from conflict.config.configuration import ClusterConfiguration
from conflict.config.option_values import words_of
from conflict.rules.replication_filter import FILTER_OPTIONS
from conflict.telling.shown_text import listed
from ndb_formats.constants import APPLY_STATUS

_ISSUES, _DATABASES, _REPLICA = (
    "mysql-cluster-replication-issues",
    "replication-rules-db-options",
    "replication-options-replica",
)
_BY_DATABASE = ("replicate_do_db", "replicate_ignore_db", "binlog_do_db", "binlog_ignore_db")
_RENAMES = "replicate_rewrite_db"


def apply_status(subject: Subject) -> Iterator[Finding]:
    """Yield filters that drop mysql.ndb_apply_status, by which clusters know which epochs were applied."""
    database, table = APPLY_STATUS.split(".")
    for applier, source in subject.links.channels():
        if (by := _dropped_from_log(source, database)) is not None:
            sentence = f"The server does not log mysql.ndb_apply_status ({by}): "
            fix = "add binlog-do-db = mysql to" if by == _BY_DATABASE[2] else f"remove mysql from {by} in"
            yield _of_status(sentence, source, f"{fix} the my.cnf of ")
        if applier.filter_of(source.name).drops(database, table):
            options = listed(_filters(applier, source))
            before = (
                f"let the filters ({options}) pass mysql.ndb_apply_status; replicate_wild_ignore_table can name the "
            )
            sentence = f"The applier drops rows of mysql.ndb_apply_status ({options}): "
            yield _of_status(sentence, applier, f"{before}other tables of mysql. Change them on ")


def _of_status(before: str, cluster: ClusterConfiguration, fix: str) -> Finding:
    sentence = (
        f"{before}no cluster learns which epochs have been applied, so a channel cannot be moved by them, and to "
        "functions by epoch every change of a row that was ever changed here is a conflict."
    )
    place = (TablePlace(cluster.name),)
    return Finding(Code.APPLY_STATUS_FILTERED, sentence, place, Fix(fix, (cluster.name,), "."), page=_ISSUES)


def functions_filtered(subject: Subject) -> Iterator[Finding]:
    """Yield tables with a function that the changes of another cluster do not reach."""
    for arrival in subject.arrivals:
        by = _dropped_by(arrival.source, arrival.here)
        if by is not None and arrival.here.setup.refusal is None:
            sentence = f"Changes of the other cluster do not arrive ({by}), so the function judges nothing."
            fix = Fix(f"remove the table from the filter ({by}), or its function from mysql.ndb_replication.")
            yield Finding(Code.FUNCTION_FILTERED, sentence, (arrival.here.place,), fix, page=_REPLICA)


def one_way(subject: Subject) -> Iterator[Finding]:
    """Yield tables whose changes a filter drops in one direction alone."""
    for applier, source in subject.links.channels():
        if applier not in subject.links.sources(source.name):
            continue
        for here in (each for each in subject.tables if each.cluster is applier):
            there = subject.on(source, here)
            if there is None or not (here.logging.format.logged and there.logging.format.logged):
                continue
            by = _dropped_by(there, here)
            if by is not None and _dropped_by(here, there) is None:
                sentence = (
                    f"Changes of the table go one way: those of the other cluster are dropped here ({by}), and those "
                    "made here arrive there. A row that both change ends different."
                )
                fix = Fix("filter the table on both clusters, or on none.")
                yield Finding(Code.ONE_WAY_FILTER, sentence, (here.place,), fix, page=_REPLICA)


def default_databases(subject: Subject) -> Iterator[Finding]:
    """Yield filters by database, which statements pass, or not, by the default database of their session."""
    for cluster in subject.clusters:
        options = [name for source in subject.links.sources(cluster.name) for name in _filters(cluster, source)]
        if subject.links.replicas(cluster.name):
            options += [name for name in _BY_DATABASE[2:] if _values(cluster, name)]
        for option in dict.fromkeys(name for name in options if name in _BY_DATABASE):
            sentence = (
                f"{option} goes by the default database of a statement (USE), not by the tables that it names: an "
                "ALTER TABLE or DROP TABLE that is given in another database is dropped, or let through, against what "
                "is meant, and then tables differ. Row changes go by the database of their table."
            )
            better = "replicate_wild_do_table or replicate_wild_ignore_table on "
            fix = Fix(f"use {better}", (cluster.name,), f" in place of {option}.")
            yield Finding(Code.CROSS_DATABASE, sentence, (TablePlace(cluster.name),), fix, at=option, page=_DATABASES)


def lists_of_names(subject: Subject) -> Iterator[Finding]:
    """Yield filters of option files with several names, which a server takes for one."""
    for cluster in subject.clusters:
        for name, value in cluster.variables.options if cluster.variables and cluster.variables.complete else ():
            if name in (*FILTER_OPTIONS, *_BY_DATABASE) and "," in value:
                sentence = (
                    f"{name} = {value} is one name with a comma in it to the server, which takes a name from each "
                    "option; the other findings count it as several."
                )
                fix = Fix(f"give {name} once for each name in the my.cnf of ", (cluster.name,), ".")
                yield Finding(Code.FILTER_LIST, sentence, (TablePlace(cluster.name),), fix, at=name, page=_ISSUES)


def renamed_databases(subject: Subject) -> Iterator[Finding]:
    """Yield databases that an applier renames."""
    for applier, source in subject.links.channels():
        for before, after in applier.filter_of(source.name).rewrite_db:
            sentence = (
                f"The applier renames {before} to {after} ({_RENAMES}): its filters and mysql.ndb_replication need the "
                f"name {after}. Statements that name {before} before a table are not renamed."
            )
            yield Finding(Code.RENAMED_DATABASE, sentence, (TablePlace(applier.name),), at=_RENAMES, page=_REPLICA)


def _dropped_by(there: PlacedTable, here: PlacedTable) -> str | None:
    """Return the filters that drop the changes of a table between two clusters; None if they arrive."""
    by = _dropped_from_log(there.cluster, there.table.database)
    if by is None and here.cluster.filter_of(there.cluster.name).drops(here.table.database, here.table.name):
        return listed(_filters(here.cluster, there.cluster))
    return by


def _dropped_from_log(cluster: ClusterConfiguration, database: str) -> str | None:
    """Return the option by which a server does not log the changes of a database; None if it logs them."""
    do_db, ignore_db = _BY_DATABASE[2:]
    if _values(cluster, do_db):
        return None if database in _values(cluster, do_db) else do_db
    return ignore_db if database in _values(cluster, ignore_db) else None


def _filters(applier: ClusterConfiguration, source: ClusterConfiguration) -> list[str]:
    """Return the options that filter what a cluster applies from another one."""
    rules = applier.filter_of(source.name)
    return [name for name, field in FILTER_OPTIONS.items() if name != _RENAMES and getattr(rules, field)]


def _values(cluster: ClusterConfiguration, name: str) -> list[str]:
    return list(words_of(cluster.given_variables.get(name, "")))
