"""
Which ALTER TABLE statements NDB carries out by copying the rows into a new table, unless ALGORITHM says it.

The copy has no author and epoch of the rows. Computes the table in docs/definitions.md, "In place or by copy".

Source: MySQL 9.7 `ha_ndbcluster.cc` (`check_inplace_alter_supported`) and `NdbDictionaryImpl.cpp` (`compChangeMask`);
recorded statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from ndb_formats.schema.alter_clauses import Clauses, Said
from ndb_formats.schema.tables import Column, Table
from ndb_formats.types.values import ABSENT

_SMALL_BLOBS = frozenset({"tinytext", "tinyblob", "vector"})  # NDB stores them in the row


@attrs.frozen
class NdbChange:
    """
    What a statement does to a table of NDB.

    Attributes:
        old: The table before.
        columns: The columns afterwards.
        sources: Per column, the ordinal of the column that it was; None for a new one.
        redefined: Whether a column that stays gets another definition than a new name.
        clauses: What the statement says.
        has_key: Whether a primary key identifies its rows, or a unique key that serves as one.
    """

    old: Table
    columns: Sequence[Column]
    sources: Sequence[int | None]
    redefined: bool
    clauses: Clauses
    has_key: bool

    @property
    def added(self) -> list[Column]:
        """The new columns."""
        return [column for column, source in zip(self.columns, self.sources, strict=True) if source is None]

    @property
    def stored(self) -> list[Column]:
        """The new columns that are stored."""
        return [column for column in self.added if column.generated != "virtual"]

    @property
    def renamed(self) -> list[str]:
        """The old names of columns that get a new one."""
        names = ((column.name, source) for column, source in zip(self.columns, self.sources, strict=True))
        return [
            self.old.columns[source].name
            for name, source in names
            if source is not None and self.old.columns[source].name != name
        ]

    @property
    def new_keys(self) -> int:
        """How many indexes are added; a foreign key brings one if none starts with its columns."""
        indexes = [[name.lower() for name in key] for key in self._indexed]
        count = sum(key.kind in ("UNIQUE", "INDEX") for key in self.clauses.keys)
        indexes += [[name.lower() for name in key.columns] for key in self.clauses.keys]
        wanted = [[name.lower() for name in key.foreign.columns] for key in self.clauses.keys if key.foreign]
        return count + sum(not any(index[: len(each)] == each for index in indexes) for each in wanted)

    @property
    def _indexed(self) -> list[tuple[str, ...]]:
        indexes = (columns for _, columns in self.old.indexes)
        return [self.old.primary_key, *self.old.unique_keys, *indexes]

    @property
    def renames_in_key(self) -> bool:
        """Whether a column of a key gets a new name."""
        names = {name.lower() for key in self._indexed for name in key}
        return any(name.lower() in names for name in self.renamed)

    @property
    def old_keys(self) -> list[str]:
        """The names of keys that are dropped; what is neither key nor foreign key is a check."""
        return [name for name in self.clauses.dropped_keys if name != "PRIMARY" and self.old.has_key(name)]

    @property
    def drops_check(self) -> bool:
        """Whether a constraint is dropped that is neither key nor foreign key."""
        foreign = {key.name.lower() for key in self.old.foreign_keys}
        return any(
            not self.old.has_key(name) and name.lower() not in foreign
            for name in self.clauses.dropped_foreign
            if name in self.clauses.dropped_keys
        )

    @property
    def moves(self) -> bool:
        """Whether a column goes, or does not stand where it stood; new ones stand at the end."""
        kept = [source for source in self.sources if source is not None]
        return kept != list(range(len(self.old.columns))) or list(self.sources[: len(kept)]) != kept

    @property
    def alters_more(self) -> bool:
        """Whether it does more than one kind of thing: new columns, new names of columns, anything else."""
        clauses = self.clauses
        others = (clauses.keys, clauses.dropped_keys, clauses.dropped_foreign, clauses.charset, clauses.said)
        return bool(self.stored or self.renamed) and (bool(self.stored and self.renamed) or any(map(bool, others)))


_COPYING = frozenset(
    {Said.FORCE, Said.ORDER, Said.AUTO_INCREMENT, Said.MAX_ROWS, Said.ROW_FORMAT, Said.TABLESPACE}
    | {Said.FORMAT, Said.PARTITIONS}
)


def _not_addable(change: NdbChange) -> bool:
    """Whether a new column is one that NDB cannot add to rows that are there."""
    return any(
        not column.nullable
        or column.default not in (ABSENT, None)
        or column.is_computed
        or column.on_update
        or (column.is_blob and column.type not in _SMALL_BLOBS)
        for column in change.stored
    )


# Each with what docs/definitions.md says of it.
RULES: tuple[tuple[str, Callable[[NdbChange], bool]], ...] = (
    ("a column is dropped, moved, or added elsewhere than at the end", lambda change: change.moves),
    ("a column gets another type, default, `NULL`, collation or visibility", lambda change: change.redefined),
    (
        "a new column has a default, may not be `NULL`, is counted, computed and stored, or a blob",
        _not_addable,
    ),
    (
        "a column is added to a table without a primary key",
        lambda change: bool(change.stored) and not change.has_key,
    ),
    (
        "columns are added or renamed, and something else is done: the other of the two, a key, an option",
        lambda change: change.alters_more,
    ),
    ("a column of a key is renamed", lambda change: change.renames_in_key),
    (
        "two keys are added or dropped, or one is added and one dropped",
        lambda change: change.new_keys + len(change.old_keys) > 1,
    ),
    ("a key is renamed", lambda change: bool(change.clauses.renamed_keys)),
    ("a `CHECK` is added, dropped or switched", lambda change: change.drops_check or Said.CHECK in change.clauses.said),
    (
        "the primary key changes",
        lambda change: (
            "PRIMARY" in map(str.upper, change.clauses.dropped_keys)
            or any(key.kind == "PRIMARY" for key in change.clauses.keys)
        ),
    ),
    (
        (
            "it says `CONVERT TO CHARACTER SET`, `ENGINE`, `FORCE`, `ORDER BY`, `AUTO_INCREMENT`, `MAX_ROWS`, "
            "`ROW_FORMAT`, `TABLESPACE`, `COLUMN_FORMAT FIXED`, `STORAGE DISK` or `PARTITION BY`, or renames the table "
            "along with something else"
        ),
        lambda change: (
            change.clauses.converted is not None
            or change.clauses.engine is not None
            or bool(_COPYING & change.clauses.said)
            or _renames_table_too(change)
        ),
    ),
)


def _renames_table_too(change: NdbChange) -> bool:
    """Whether the table gets a new name by a statement that does something else too."""
    clauses = change.clauses
    others = (change.added, change.renamed, clauses.keys, clauses.dropped_keys, clauses.dropped_foreign, clauses.said)
    return clauses.name is not None and any(map(bool, others))


def copies_rows(change: NdbChange) -> bool:
    """Whether NDB makes a new table and copies the rows into it, if the statement does not say ALGORITHM."""
    return any(rule(change) for _, rule in RULES)
