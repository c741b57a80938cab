"""
Keys: whether the images hold what the replica finds a row by, and whether one row there is one row here.

A row is found by the primary key, else by a unique key whose columns are all NOT NULL, else by the whole row.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ndb_formats.findings import Finding
from ndb_formats.rules.replica.codes import rule
from ndb_formats.rules.replica.layout import ColumnPair, TablePair
from ndb_formats.rules.row_image_rules import primary_key_equivalent
from ndb_formats.schema.tables import Table

__all__ = ["key_findings"]

_SAME_KEY = "define the same primary key on both sides"


def key_findings(pair: TablePair) -> Iterator[Finding]:
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
