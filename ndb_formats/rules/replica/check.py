"""
The check of a replica's tables: two schemas and the settings of both sides to findings.

Columns and their order: the applier pairs columns by place, so a column that only one table has shifts all that follow,
unless it is at the end.
Keys: the images must hold what the replica finds a row by, and one row there must be one row here. A row is found by
the primary key, else by a unique key whose columns are all NOT NULL, else by the whole row.
`columns` compares two columns in the same place, `uniqueness` unique keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import attrs

from ndb_formats.findings import Finding, ReplicaSeverity
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.codes import rule
from ndb_formats.rules.replica.columns import ColumnPair, TablePair, column_findings
from ndb_formats.rules.replica.conversions import TypeConversion
from ndb_formats.rules.replica.expressions import normal_expression
from ndb_formats.rules.replica.uniqueness import (
    Equality,
    UniqueKey,
    equality_of,
    equality_of_columns,
    never_equal,
    unique_keys,
)
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
    if column.auto_increment or column.computed_default or column.type == "enum":
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
    value = column.members[0] if column.must_be_given and column.members else column.default
    return repr(value) if isinstance(value, str | bytes) else "NULL"


_SAME_KEY = "define the same primary key on both sides"
_SAME_COLLATION = "use the same collation on both sides"


def _key_findings(pair: TablePair) -> Iterator[Finding]:
    """Yield what is wrong with the keys of a table."""
    sources, replicas = unique_keys(pair.source), unique_keys(pair.replica, int(pair.key_is_left_out))
    if pair.key_is_left_out:
        replicas = replicas[1:]
    source = next(iter(_row_keys(pair.ndb, sources)), None)
    known = [key for key in replicas if key.primary or max(key.places) < len(pair.source.columns)]
    replica = _found_by(source, _row_keys(pair.replica_ndb, known))
    implied = {key: equality_of(pair, key, sources) for key in replicas}
    yield from _row_key_findings(pair, source, replica, None if replica is None else implied[replica])
    told = () if replica is None else replica.places  # by `_finer_texts`
    yield from _coarser_texts(pair, implied.values(), told)
    for key, equal in implied.items():
        if key is not replica and equal is None and not never_equal(pair, key):
            reason = f"the replica refuses rows that are equal in ({key.names}), with error 1062; the source does not"
            yield Finding(rule(46), pair.name, None, reason, "define the unique key on the source, too, or remove it")
    there = {_identity(key) for key in replicas}
    for key in sources:
        if key is not source and _identity(key) not in there:
            yield Finding(rule(47), pair.name, None, f"the source has a unique key ({key.names})", "nothing to do")


def _row_keys(ndb: bool, keys: Iterable[UniqueKey]) -> tuple[UniqueKey, ...]:
    """Return the keys that identify rows, the first one first; NDB has one, the primary key."""
    found = tuple(key for key in keys if key.primary or (key.finds_rows and not ndb))
    return found[:1] if ndb else found


def _found_by(source: UniqueKey | None, replicas: tuple[UniqueKey, ...]) -> UniqueKey | None:
    """Return the key by which an applier finds rows: the first one, unless the images hold the columns of another."""
    places = set() if source is None else set(source.places)
    return next((key for key in replicas if set(key.places) == places), next(iter(replicas), None))


def _identity(key: UniqueKey) -> frozenset[object]:
    """Return what a unique key has in common with the same one on the other side, whatever its name and order."""
    parts = zip(key.parts, key.places, strict=True)
    return frozenset((place, part.prefix, normal_expression(part.expression)) for part, place in parts)


def _row_key_findings(
    pair: TablePair, source: UniqueKey | None, replica: UniqueKey | None, equal: dict[int, Equality] | None
) -> Iterator[Finding]:
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
    keys = "" if source is None else f"{source.text} on the source, {replica.text} on the replica"
    if beyond:
        names = ", ".join(pair.replica_columns[place].name for place in beyond)
        yield found(44, f"the replica's {replica.text} has {names}, which no image holds")
    elif source is None:
        if equal is None:
            reason = f"the source has no key, so rows can be equal there in the replica's {replica.text}"
            yield found(41, reason)
    elif equal is None:
        yield found(41, keys)
    elif source.text.lower() != replica.text.lower() and (
        not pair.partial or set(source.places) == set(replica.places)
    ):
        yield found(45, keys)
    yield from _finer_texts(pair, replica)
    if source is not None and pair.partial and not beyond and not set(replica.places) <= set(source.places):
        yield found(40, f"images hold the {source.text}; the replica's {replica.text} has more or other columns")


def _finer_texts(pair: TablePair, replica: UniqueKey) -> Iterator[Finding]:
    """Yield columns of the key that finds rows in which the replica tells apart what the source does not."""
    for each in pair.pairs:
        one, other = each.source.collation, each.replica.collation
        if each.place not in replica.places or one == other or None in (one, other) or each.source.members:
            continue
        equal = equality_of_columns(each)
        back = equality_of_columns(attrs.evolve(each, source=each.replica, replica=each.source))
        if equal is Equality.COARSER or (equal, back) == (Equality.EQUAL, Equality.EQUAL):
            continue
        reason = f"{_both(each)}: keys that are equal on the source can be different rows on the replica"
        if equal is Equality.BLANKS:
            reason += ", and of keys that differ in blanks at the end it refuses one with error 1062"
        yield Finding(rule(45), pair.name, each.source.name, reason, _SAME_COLLATION)


def _coarser_texts(
    pair: TablePair, implied: Iterable[Mapping[int, Equality] | None], told: Collection[int]
) -> Iterator[Finding]:
    """Yield columns of unique keys in which texts are equal on the replica that differ on the source."""
    worst: dict[int, Equality] = {}
    for equal in implied:
        for place, found in (equal or {}).items():
            worst[place] = max(found, worst.get(place, found))
    for place, found in sorted(worst.items()):
        if found is Equality.EQUAL or (found is Equality.BLANKS and place in told):
            continue
        each = pair.pairs[place]
        if found is Equality.CHANGED:
            reason = (
                f"values of {each.source.name} change on their way: different rows of the source can have the same key "
                "on the replica, which refuses one with error 1062"
            )
            yield Finding(rule(32), pair.name, each.source.name, reason, "declare the column alike on both sides")
        elif found is Equality.COARSER:
            reason = f"{_both(each)}: different rows of the source can have the same key on the replica"
            yield Finding(rule(32), pair.name, each.source.name, reason, _SAME_COLLATION)
        elif found is Equality.BLANKS:
            reason = f"{_both(each)}: texts that differ in blanks at the end are the same key on the replica"
            yield Finding(rule(48), pair.name, each.source.name, reason, _SAME_COLLATION)
        else:
            reason = (
                f"the replica compares more of the text, and under {each.replica.collation} one character can be equal "
                "to several, so that texts that are equal in the longer prefix can differ in the shorter one"
            )
            yield Finding(rule(48), pair.name, each.source.name, reason, "use the same prefix on both sides")


def _both(pair: ColumnPair) -> str:
    return f"{pair.source.collation} on the source, {pair.replica.collation} on the replica"


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
    engines = settings.is_ndb(source), settings.is_ndb(replica)
    pair = TablePair(tables[0], tables[1], settings.logging, *engines, settings.conversions)
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
