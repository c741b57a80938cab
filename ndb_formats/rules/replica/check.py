"""
The check of a replica's tables: two schemas and the settings of both sides to findings.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.findings import Finding, Severity
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.codes import rule
from ndb_formats.rules.replica.columns import column_findings
from ndb_formats.rules.replica.conversions import TypeConversion
from ndb_formats.rules.replica.keys import key_findings
from ndb_formats.rules.replica.layout import TablePair
from ndb_formats.rules.replica.structure import structure_findings
from ndb_formats.rules.update_format import is_ndb
from ndb_formats.schema.serving_key import without_serving_key
from ndb_formats.schema.tables import Schema, Table

__all__ = ["ReplicaSettings", "check_replica", "check_table"]


_SEVERITIES = list(Severity)


@attrs.frozen
class ReplicaSettings:
    """
    The settings that decide what a replica needs.

    Attributes:
        logging: How the source logs rows.
        conversions: `replica_type_conversions` of the replica.
        undeclared_is_ndb: Whether a table without ENGINE is an NDB table.
    """

    logging: Logging = attrs.field(factory=Logging)
    conversions: frozenset[TypeConversion] = frozenset()
    undeclared_is_ndb: bool = False

    def is_ndb(self, table: Table) -> bool:
        """Return whether the binlog type rules how a table is logged."""
        return self.undeclared_is_ndb if table.engine is None else is_ndb(table)


def check_replica(source: Schema, replica: Schema, settings: ReplicaSettings) -> tuple[Finding, ...]:
    """
    Return what keeps changes of the source's tables from giving the same rows on the replica.

    Without an error among the findings, every update and delete finds its row, and rows that were equal stay equal.
    Findings come table by table in the order of the source, then for tables of the replica alone.
    """
    found = [finding for table in source.tables for finding in _source_table(table, replica, settings)]
    for table in replica.tables:
        if source.find(table.database, table.name) is None:
            reason = "the source does not have the table, so nothing arrives for it"
            found.append(Finding(rule(2), _name(table), None, reason, "nothing to do"))
    return tuple(found)


def check_table(source: Table, replica: Table, settings: ReplicaSettings) -> tuple[Finding, ...]:
    """Return what is wrong with one table, whatever the names of the two are: errors first, then warnings and notes."""
    tables = [table if settings.is_ndb(table) else without_serving_key(table) for table in (source, replica)]
    pair = TablePair(tables[0], tables[1], settings.logging, settings.is_ndb(source))
    found = [*_engines(pair, settings), *structure_findings(pair)]
    for each in pair.pairs:
        found += column_findings(pair, each, settings.conversions)
    found += key_findings(pair)
    return tuple(sorted(found, key=lambda finding: _SEVERITIES.index(finding.severity)))


def _source_table(table: Table, replica: Schema, settings: ReplicaSettings) -> Iterator[Finding]:
    other = replica.find(table.database, table.name)
    if settings.is_ndb(table) and not settings.logging.update_format.logged:
        yield Finding(rule(3), _name(table), None, "binlog type 1 logs nothing", "choose another binlog type")
    elif other is None:
        alike = [each for each in replica.tables if each.name.lower() == table.name.lower()]
        names = f"; the replica has {', '.join(map(_name, alike))}" if alike else ""
        reason = f"the applier stops with error 1146 at the first change of the table{names}"
        yield Finding(rule(1), _name(table), None, reason, f"create {_name(table)} on the replica")
    else:
        yield from check_table(table, other, settings)


def _engines(pair: TablePair, settings: ReplicaSettings) -> Iterator[Finding]:
    if pair.ndb == settings.is_ndb(pair.replica):
        return
    engines = f"{_engine(pair.source, pair.ndb)} on the source, {_engine(pair.replica, not pair.ndb)} on the replica"
    if pair.ndb and pair.logging.update_format.as_write:
        reason = f"{engines}: an update arrives as a write of a row that is there, which stops the applier (error 1062)"
        fix = "choose a binlog type that logs updates as updates (6 to 9), or set replica_exec_mode=IDEMPOTENT"
        yield Finding(rule(4), pair.name, None, reason, fix)
    else:
        yield Finding(rule(5), pair.name, None, engines, "nothing to do")


def _engine(table: Table, ndb: bool) -> str:
    return table.engine or ("NDB" if ndb else "another engine")


def _name(table: Table) -> str:
    return table.full_name if table.database else table.name
