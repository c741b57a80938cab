"""
ALTER TABLE: derives the new definition of a table from the old one.

All clauses act at once, as in the server: drops, changes and new names are of the old columns, then come new columns
and places, in the order of the statement, among the columns that are left.

Source: MySQL manual, "ALTER TABLE Statement" and "Online Operations with ALTER TABLE in NDB Cluster"; `sql_table.cc`
(`prepare_fields_and_keys`).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ndb_formats.errors import CorruptError, SchemaError
from ndb_formats.schema.alter_clauses import Clauses, NewColumn
from ndb_formats.schema.column_definition import ROW_END, ROW_START, with_implicit_timestamps
from ndb_formats.schema.declared_type import converted_type
from ndb_formats.schema.ndb_copies import NdbChange, copies_rows
from ndb_formats.schema.row_keys import without_serving_key
from ndb_formats.schema.session import Session, Text
from ndb_formats.schema.table_body import with_row_versions
from ndb_formats.schema.table_keys import complete, with_foreign_key, with_key, without_foreign_key, without_key
from ndb_formats.schema.tables import Column, Period, Table
from ndb_formats.types.charsets import decode_text, encode_text


@attrs.frozen
class Alteration:
    """
    What a statement makes of a table.

    Attributes:
        table: The table afterwards, under its new name if it has one.
        sources: Per column, the ordinal of the column that it was before; None for a new one.
        copied: Whether the server makes a new table and copies the rows into it.
        added_only: Whether it only adds columns and keys, or changes nothing that matters here.
    """

    table: Table
    sources: tuple[int | None, ...]
    copied: bool = False
    added_only: bool = True


@attrs.frozen
class _Placed:
    """A column of the new table."""

    column: Column
    source: int | None


def alter_table(table: Table, clauses: Clauses, session: Session) -> Alteration:
    """
    Return what the clauses of a statement make of a table.

    Raises:
        SchemaError: A clause does not fit the table.
    """
    old = without_serving_key(table)
    placed = _columns(old, clauses, session)
    after = _with_keys(old, placed, clauses)
    versioned = any(each.column.expression == ROW_END for each in placed)
    if clauses.versioned and not versioned:
        after = with_row_versions(after)
        placed += [_Placed(column, None) for column in after.columns[len(placed) :]]
    after = complete(after)
    another_key = bool(table.serving) != bool(after.serving)
    change = NdbChange(
        old,
        [each.column for each in placed],
        [each.source for each in placed],
        _redefines(old, placed),
        clauses,
        bool(table.primary_key),
    )
    rebuilds = copies_rows(change) or another_key
    copied = rebuilds if clauses.algorithm in ("", "DEFAULT") else clauses.algorithm == "COPY"
    added_only = _adds_only(clauses) and not another_key
    return Alteration(after, tuple(each.source for each in placed), copied, added_only)


def _columns(table: Table, clauses: Clauses, session: Session) -> list[_Placed]:
    """Return the columns of the new table, in order."""
    dropped = _dropped(table, clauses)
    added = _added(table, clauses, dropped, session)
    redefined = {each.old.lower(): each for each in added if each.old}
    placed = list[_Placed]()
    for ordinal, column in enumerate(table.columns):
        name = column.name.lower()
        if ordinal in dropped:
            continue
        if name not in redefined:
            kept = _changed(column, clauses)
            placed.append(_Placed(_converted(kept, clauses.converted), ordinal))
        else:
            placed.append(_Placed(redefined[name].item.column, ordinal))
    first = 1 if _has_generated_key(table) and 0 not in dropped else 0
    for new in added:
        source = _place(table.columns, new.old, table) if new.old else None
        if new.old and new.after is None:
            continue
        placed = [each for each in placed if source is None or each.source != source]
        place = _place([each.column for each in placed], new.after, table) + 1 if new.after else first
        placed.insert(len(placed) if new.after is None else place, _Placed(new.item.column, source))
    _check_names(table, placed)
    bounds = [each for each in placed if each.column.invisible and each.column.expression in (ROW_START, ROW_END)]
    if bounds and clauses.versioned is False:
        return [each for each in placed if each not in bounds]
    return [each for each in placed if each not in bounds] + bounds


def _has_generated_key(table: Table) -> bool:
    """Whether the first column is the primary key that the server itself made, which stays the first."""
    column = table.columns[0]
    return column.name == "my_row_id" and column.invisible and table.primary_key == (column.name,)


def _dropped(table: Table, clauses: Clauses) -> set[int]:
    """Return the ordinals of the columns that are dropped."""
    names = {column.name.lower() for column in table.columns}
    wanted = [name for name, optional in clauses.dropped.items() if not optional or name.lower() in names]
    return {_place(table.columns, name, table) for name in wanted}


def _added(table: Table, clauses: Clauses, dropped: set[int], session: Session) -> list[NewColumn]:
    """Return new columns and new definitions that are carried out: with IF [NOT] EXISTS, not all are."""
    old = {column.name.lower() for ordinal, column in enumerate(table.columns) if ordinal not in dropped}
    names, added = set(old), list[NewColumn]()
    for new in clauses.columns:
        name = new.item.column.name.lower()
        if new.optional and (new.old.lower() not in old if new.old else name in names):
            continue
        added.append(new)
        names |= set() if new.old else {name}  # of two of one name the first is added
    items = with_implicit_timestamps([new.item for new in added], session)
    return [attrs.evolve(new, item=item) for new, item in zip(added, items, strict=True)]


def _changed(column: Column, clauses: Clauses) -> Column:
    """Return a column that is not defined anew after what clauses say of it."""
    name = column.name.lower()
    for change in clauses.changed.get(name, ()):
        column = change(column)
    return attrs.evolve(column, name=clauses.renamed.get(name, column.name))


def _converted(column: Column, text: Text | None) -> Column:
    """
    Return a column after CONVERT TO CHARACTER SET; None is a statement without it.

    The server keeps the bytes of the members of ENUM and SET: they are read in the new character set.
    """
    if column.charset is None or text is None:
        return column
    charset, collation = text
    if column.members:
        names = (None, None) if charset == "binary" else text
        members = column.members if charset == "binary" else _read_in(charset, column)
        return attrs.evolve(column, charset=names[0], collation=names[1], members=members)
    kind, length = converted_type(column.type, column.length, column.charset, charset)
    if charset == "binary":
        return attrs.evolve(column, type=kind, length=length, charset=None, collation=None)
    return attrs.evolve(column, type=kind, length=length, charset=charset, collation=collation)


def _read_in(charset: str, column: Column) -> tuple[str, ...]:
    """Return the bytes of members as text of another character set; as they are, where they are none."""
    try:
        return tuple(decode_text(encode_text(each, column.charset or charset), charset) for each in column.members)
    except CorruptError:
        return column.members


def _place(columns: Sequence[Column], name: str | None, table: Table) -> int:
    """Return the place of a column, whose name may be in any letter case."""
    for place, column in enumerate(columns):
        if name is not None and column.name.lower() == name.lower():
            return place
    names = ", ".join(column.name for column in columns)
    message = f"the statement names column {name}, but the table has {names}"
    raise SchemaError(message, table=table.full_name, column=name)


def _check_names(table: Table, placed: Sequence[_Placed]) -> None:
    if not placed:
        message = "no column would be left"
        raise SchemaError(message, table=table.full_name)
    seen = set[str]()
    for column in (each.column for each in placed):
        if column.name.lower() in seen:
            message = (
                f"the statement makes column {column.name}, which the table has already; is the definition that of "
                'a later time? Give the one from before the binlogs, or say that it is of their end: schema_at = "end" '
                "in a run file, --schema-at end for decode"
            )
            raise SchemaError(message, table=table.full_name, column=column.name)
        seen.add(column.name.lower())


def _with_keys(table: Table, placed: Sequence[_Placed], clauses: Clauses) -> Table:
    """Return the table with its new columns, keys, options and name."""
    names = _names_in_keys(table, placed)

    def kept(columns: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names[name.lower()] for name in columns if name.lower() in names)

    prefixes = dict(zip(table.primary_key, table.primary_key_prefixes, strict=False))
    gone = {name.lower() for name in clauses.dropped_keys}
    unique = [(name, kept(key)) for name, key in zip(table.unique_names, table.unique_keys, strict=True)]
    unique = [(clauses.key_name(name), key) for name, key in unique if key and name.lower() not in gone]
    parts = [(name, names[column].lower(), cut) for name, column, cut in table.unique_prefixes if column in names]
    indexes = [(name, key) for name, key in table.indexes if (kept(key) or not key) and name.lower() not in gone]
    database, name = clauses.name or (table.database, table.name)
    text = clauses.charset or (None, table.collation)
    found = attrs.evolve(
        table,
        columns=tuple(each.column for each in placed),
        primary_key=kept(table.primary_key),
        primary_key_prefixes=tuple(prefixes[each] for each in table.primary_key if each.lower() in names and prefixes),
        foreign_keys=tuple(attrs.evolve(key, columns=_renamed(key.columns, names)) for key in table.foreign_keys),
        engine=clauses.engine or table.engine,
        period=_period(table, clauses, names),
        collation=text[1],
        unique_keys=tuple(key for _, key in unique),
        unique_names=tuple(name for name, _ in unique),
        unique_prefixes=frozenset(
            (clauses.key_name(key).lower(), name, cut) for key, name, cut in parts if key not in gone
        ),
        functional_keys=tuple(
            (
                clauses.key_name(name),
                tuple(
                    attrs.evolve(part, column=names.get(part.column.lower(), ""))
                    for part in key
                    if part.expression or part.column.lower() in names
                ),
            )
            for name, key in table.functional_keys
            if name.lower() not in gone
        ),
        indexes=tuple((clauses.key_name(name), kept(key)) for name, key in indexes),
    )
    found = without_key(found, "PRIMARY") if _drops_primary(clauses) else found
    for dropped in clauses.dropped_foreign:
        found = without_foreign_key(found, dropped)
    for key in clauses.keys:
        found = with_key(found, key) if key.foreign is None else with_foreign_key(found, key.foreign)
    return attrs.evolve(found, database=database, name=name)


def _names_in_keys(table: Table, placed: Sequence[_Placed]) -> dict[str, str]:
    """
    Return the names afterwards of columns in keys, by old name in lower case.

    A key whose column is dropped has the new column of that name, if there is one; of several the first counts.
    """
    names = dict[str, str]()
    for each in placed:
        old = each.column.name if each.source is None else table.columns[each.source].name
        names.setdefault(old.lower(), each.column.name)
    return names


def _period(table: Table, clauses: Clauses, names: dict[str, str]) -> Period:
    """Return the period afterwards, its columns under their new names."""
    found = table.period if clauses.period is None else clauses.period
    start, end = (names.get(name.lower(), name) for name in (found.start, found.end))
    return Period(found.name, start, end)


def _renamed(columns: tuple[str, ...], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(names.get(name.lower(), name) for name in columns)


def _drops_primary(clauses: Clauses) -> bool:
    return any(name.upper() == "PRIMARY" for name in clauses.dropped_keys)


def _redefines(table: Table, placed: Sequence[_Placed]) -> bool:
    """Whether a column that stays gets another definition than a new name; what no clause changes stays the same."""
    return any(
        attrs.evolve(table.columns[each.source], name=each.column.name) != each.column
        for each in placed
        if each.source is not None
    )


def _adds_only(clauses: Clauses) -> bool:
    primary = any(key.kind == "PRIMARY" for key in clauses.keys)
    redefined = any(new.old for new in clauses.columns)
    others = (
        clauses.dropped,
        clauses.renamed,
        clauses.changed,
        clauses.dropped_keys,
        clauses.dropped_foreign,
        clauses.renamed_keys,
        clauses.name,
        clauses.converted,
        clauses.engine,
    )
    return not (primary or redefined or any(others))
