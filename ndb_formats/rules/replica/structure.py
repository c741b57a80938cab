"""
Which columns both tables have, and where: order, additional and missing columns.

The applier pairs columns by place. So a column that only one table has shifts all that follow, unless it is at the end.
"""

from __future__ import annotations

from collections.abc import Iterator

from ndb_formats.findings import Finding
from ndb_formats.rules.replica.codes import rule
from ndb_formats.rules.replica.layout import TablePair
from ndb_formats.schema.tables import Column

__all__ = ["structure_findings"]

_SAME_DEFINITION = "define the columns in the same order on both sides"


def structure_findings(pair: TablePair) -> Iterator[Finding]:
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
        reason = f"row events do not have {column.name}; the replica fills in {_default_text(column)}"
        return Finding(rule(15), pair.name, column.name, reason, "nothing to do if that is meant")
    if pair.ndb:
        reason = (
            f"row events do not have {column.name}, which is NOT NULL without a constant default; NDB refuses the row"
        )
        return Finding(rule(16), pair.name, column.name, reason, fix)
    if column.auto_increment or column.computed_default:
        reason = f"row events do not have {column.name}; the replica fills in {_default_text(column)}"
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


def _default_text(column: Column) -> str:
    if column.generated is not None:
        return "what it computes"
    if column.auto_increment:
        return "a new number"
    if column.computed_default:
        return f"its default {column.expression or ''}".rstrip()
    return "NULL" if column.default is None or not isinstance(column.default, str | bytes) else repr(column.default)
