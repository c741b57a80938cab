"""
The check of a replica's tables: two schemas and the settings of both sides to findings.

Columns and their order: the applier pairs columns by place, so a column that only one table has shifts all that follow,
unless it is at the end.
Keys: the images must hold what the replica finds a row by, and one row there must be one row here. A row is found by
the primary key, else by a unique key whose columns are all NOT NULL, else by the whole row.
`columns` compares two columns in the same place.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.findings import Finding, ReplicaSeverity
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.codes import rule
from ndb_formats.rules.replica.columns import ColumnPair, TablePair, column_findings
from ndb_formats.rules.replica.conversions import TypeConversion
from ndb_formats.rules.row_image_rules import primary_key_equivalent
from ndb_formats.rules.update_format import is_ndb
from ndb_formats.schema.row_keys import without_serving_key
from ndb_formats.schema.tables import Column, Schema, Table

_SAME_DEFINITION = "define the columns in the same order on both sides"


def _structure_findings(pair: TablePair) -> Iterator[Finding]:
    """Yield what is wrong with the places of the columns of a table."""
    if pair.key_is_left_out:
        reason = "the replica has a generated invisible primary key and the source has none; the applier leaves it out"
        yield Finding(rule(18), pair.name, pair.replica.columns[0].name, reason, "nothing to do from 8.0.32 on")
    source, replica = pair.source_names, pair.replica_names
    renamed = {
        each.place for each in pair.pairs if each.source.name.lower() not in replica
        and each.replica.name.lower() not in source
    }  # fmt: skip
    yield from _renamed(pair, renamed)
    yield from _moved(pair)
    yield from _additional(pair, renamed)
    yield from _missing(pair, renamed)
    if pair.partial and len(source) != len(replica):
        reason = f"the source has {len(source)} columns, the replica {len(replica)}, and images are partial"
        fix = "give both tables the same columns, or log full images"
        yield Finding(rule(17), pair.name, None, reason, fix)


def _renamed(pair: TablePair, renamed: set[int]) -> Iterator[Finding]:
    for each in pair.pairs:
        if each.place in renamed:
            reason = (
                f"column {each.place + 1} is {each.source.name} on the source and {each.replica.name} on the replica; "
                "the applier goes by place, so values of one go into the other"
            )
            fix = f"if it is the same column, rename {each.replica.name} to {each.source.name}; else {_SAME_DEFINITION}"
            yield Finding(rule(13), pair.name, each.source.name, reason, fix)


def _moved(pair: TablePair) -> Iterator[Finding]:
    common = [name for name in pair.source_names if name in pair.replica_names]
    there = [name for name in pair.replica_names if name in common]
    moved = [name for name, other in zip(common, there, strict=True) if name != other]
    if not moved:
        return
    place = pair.source_names.index(moved[0])
    reason = (
        f"the source has {', '.join(common)} and the replica {', '.join(there)} in this order; "
        f"values of {', '.join(moved)} go into other columns"
    )
    yield Finding(rule(10), pair.name, pair.source.columns[place].name, reason, _SAME_DEFINITION)


def _additional(pair: TablePair, renamed: set[int]) -> Iterator[Finding]:
    last = _last_common(pair.replica_names, pair.source_names)
    for place, column in enumerate(pair.replica_columns):
        if column.name.lower() in pair.source_names or place in renamed:
            continue
        if place < last or place < len(pair.source.columns):
            reason = (
                f"{column.name} is column {place + 1} of the replica, and the source has other columns from there on"
            )
            yield Finding(rule(11), pair.name, column.name, reason, f"move {column.name} behind the source's columns")
        else:
            yield _at_the_end(pair, column)


def _at_the_end(pair: TablePair, column: Column) -> Finding:
    """Return what follows for an additional column behind all others, whose default the replica has to know."""
    fix = f"give {column.name} a constant default, or let it be NULL"
    if not column.must_be_given or column.generated:
        reason = f"row events do not have {column.name}; the replica fills in {_logged_default(column)}"
        return Finding(rule(15), pair.name, column.name, reason, "nothing to do if that is meant")
    if pair.ndb:
        reason = (
            f"row events do not have {column.name}, which is NOT NULL without a constant default; NDB refuses the row"
        )
        return Finding(rule(16), pair.name, column.name, reason, fix)
    if column.auto_increment or column.computed_default:
        reason = f"row events do not have {column.name}; the replica fills in {_logged_default(column)}"
        return Finding(rule(15), pair.name, column.name, reason, "nothing to do if that is meant")
    reason = (
        f"row events do not have {column.name}, which is NOT NULL without a default; it gets zero or an empty value"
    )
    return Finding(rule(19), pair.name, column.name, reason, fix)


def _missing(pair: TablePair, renamed: set[int]) -> Iterator[Finding]:
    last = _last_common(pair.source_names, pair.replica_names)
    for place, column in enumerate(pair.source.columns):
        if column.name.lower() in pair.replica_names or place in renamed:
            continue
        if place < last or place < len(pair.replica_columns):
            reason = (
                f"{column.name} is column {place + 1} of the source, and the replica has other columns from there on"
            )
            fix = f"add {column.name} in the same place on the replica"
            yield Finding(rule(12), pair.name, column.name, reason, fix)
        else:
            reason = f"values of {column.name} are dropped on the replica"
            yield Finding(rule(14), pair.name, column.name, reason, f"add {column.name} at the end on the replica")


def _last_common(names: list[str], others: list[str]) -> int:
    """Return the last place of a name that is in both; -1 if there is none."""
    return max((place for place, name in enumerate(names) if name in others), default=-1)


def _logged_default(column: Column) -> str:
    if column.generated is not None:
        return "what it computes"
    if column.auto_increment:
        return "a new number"
    if column.computed_default:
        return f"its default {column.expression or ''}".rstrip()
    return "NULL" if column.default is None or not isinstance(column.default, str | bytes) else repr(column.default)


_SAME_KEY = "define the same primary key on both sides"


def _key_findings(pair: TablePair) -> Iterator[Finding]:
    """Yield what is wrong with the keys of a table."""
    source, replica = _row_key(pair.source, 0), _row_key(pair.replica, int(pair.key_is_left_out))
    if pair.key_is_left_out:
        replica = None
    yield from _row_keys(pair, source, replica)
    yield from _collations(pair, replica)
    yield from _unique_keys(pair)


@attrs.frozen
class _Key:
    """The columns that identify a row: their places in row events, in key order."""

    places: tuple[int, ...]
    text: str


def _row_key(table: Table, left_out: int) -> _Key | None:
    """Return the key that identifies rows; None if only the whole row does."""
    if table.primary_key:
        names, kind = table.primary_key, "primary key"
    else:
        places = primary_key_equivalent(table)
        unique = [key for key in table.unique_keys if {table.find(name) for name in key} <= set(table.columns)]
        found = [key for key in unique if frozenset(table.ordinal(name) for name in key) == places]
        if not found or any(column.nullable for column in map(table.find, found[0]) if column is not None):
            return None
        names, kind = found[0], "unique key"
    return _Key(tuple(table.ordinal(name) - left_out for name in names), f"{kind} ({', '.join(names)})")


def _row_keys(pair: TablePair, source: _Key | None, replica: _Key | None) -> Iterator[Finding]:
    def found(number: int, reason: str, fix: str = _SAME_KEY) -> Finding:
        return Finding(rule(number), pair.name, None, reason, fix)

    if replica is None:
        if source is None:
            reason = (
                "neither side has a primary key or a unique key without NULL; each change scans the replica's table"
            )
            yield found(43, reason, "add a primary key on both sides")
        else:
            reason = f"the source has the {source.text}, the replica none; each change scans the replica's table"
            yield found(42, reason)
            if pair.partial:
                reason = f"images hold the {source.text} alone, which can mean several rows of the replica"
                yield found(40, reason)
        return
    beyond = [place for place in replica.places if place >= len(pair.source.columns)]
    if beyond:
        names = ", ".join(pair.replica_columns[place].name for place in beyond)
        yield found(44, f"the replica's {replica.text} has {names}, which no image holds")
    elif source is None:
        reason = f"the source has no key, so rows can be equal there in the replica's {replica.text}"
        yield found(41, reason)
    elif set(source.places) == set(replica.places):
        if source.text != replica.text:
            yield found(45, f"{source.text} on the source, {replica.text} on the replica")
    elif not set(source.places) <= set(replica.places):
        yield found(41, f"{source.text} on the source, {replica.text} on the replica")
    elif not pair.partial:
        yield found(45, f"{source.text} on the source, {replica.text} on the replica")
    if source is not None and pair.partial and not beyond and not set(replica.places) <= set(source.places):
        yield found(40, f"images hold the {source.text}; the replica's {replica.text} has more or other columns")


def _collations(pair: TablePair, replica: _Key | None) -> Iterator[Finding]:
    if replica is None:
        return
    for each in pair.pairs:
        if each.place in replica.places and each.source.collation != each.replica.collation:
            yield from _collation(pair, each)


def _collation(pair: TablePair, each: ColumnPair) -> Iterator[Finding]:
    if each.source.collation is None or each.replica.collation is None or each.source.members:
        return
    collations = f"{each.source.collation} on the source, {each.replica.collation} on the replica"
    fix = "use the same collation on both sides"
    if each.replica.collation.endswith("_bin") and not each.source.collation.endswith("_bin"):
        reason = f"{collations}: keys that are equal on the source can be different rows on the replica"
        yield Finding(rule(45), pair.name, each.source.name, reason, fix)
    else:
        reason = f"{collations}: different rows of the source can have the same key on the replica"
        yield Finding(rule(32), pair.name, each.source.name, reason, fix)


def _unique_keys(pair: TablePair) -> Iterator[Finding]:
    source, replica = _named_keys(pair.source), _named_keys(pair.replica)
    for key in sorted(replica - source):
        reason = f"the replica refuses rows that are equal in ({', '.join(key)}), with error 1062; the source does not"
        fix = "define the unique key on the source, too, or remove it"
        yield Finding(rule(46), pair.name, None, reason, fix)
    for key in sorted(source - replica):
        reason = f"the source has a unique key ({', '.join(key)})"
        yield Finding(rule(47), pair.name, None, reason, "nothing to do")


def _named_keys(table: Table) -> set[tuple[str, ...]]:
    """Return the unique keys besides the one that identifies rows, each as sorted names in small letters."""
    row_key = {name.lower() for name in table.primary_key}
    keys = {tuple(sorted(name.lower() for name in key)) for key in table.unique_keys}
    if not row_key and (found := _row_key(table, 0)):
        row_key = {table.columns[place].name.lower() for place in found.places}
    return {key for key in keys if set(key) != row_key}


_SEVERITIES = list(ReplicaSeverity)


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
    found = [*_engines(pair, settings), *_structure_findings(pair)]
    for each in pair.pairs:
        found += column_findings(pair, each, settings.conversions)
    found += _key_findings(pair)
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
