"""
Finds the row of mysql.ndb_replication that applies to a table on a server; the roles of clusters.

Source: MySQL manual, "ndb_replication Table", and "NDB$EPOCH2()" for roles; the match quality is that of
`Ndb_rep_tab_key` of the server.

Choice: of several rows that match exactly and differ in case alone, the server uses the one that it reads first; here
they are ambiguous.
"""

from __future__ import annotations

import itertools
import operator
import unicodedata
from collections.abc import Iterable
from enum import StrEnum

import attrs

from conflict.errors import ConfigurationError


class Role(StrEnum):
    """``ndb_applier_conflict_role`` of a cluster, which the functions with roles depend on."""

    NONE = "NONE"
    PRIMARY = "PRIMARY"
    SECONDARY = "SECONDARY"
    PASS = "PASS"  # noqa: S105  # a role, not a password


_ANY_SERVER = 0
_LAST_SERVER = 2**32 - 1
_MOST_SLICES = 256
_EXACT_DATABASE, _EXACT_TABLE, _EXACT_SERVER = 4, 2, 1


@attrs.frozen
class ReplicationRow:
    """
    One row.

    Attributes:
        db: Database name, or a LIKE pattern.
        table_name: Table name, or a LIKE pattern.
        server_id: Server that it applies to; 0 is any.
        binlog_type: NDB binlog type 0 to 9; None (NULL) is 0.
        conflict_fn: Text of the conflict function; None if there is none.
        binlog_row_slice_count: Number of slices of the table's rows; None (NULL) is the server's setting, by default 1.
        binlog_row_slice_id: Number of the slice that the server logs, from 0; None (NULL) is the server's setting.

    Raises:
        ConfigurationError: A number is out of range, or a slice id has no slice count.
    """

    db: str
    table_name: str
    server_id: int = _ANY_SERVER
    binlog_type: int | None = None
    conflict_fn: str | None = None
    binlog_row_slice_count: int | None = None
    binlog_row_slice_id: int | None = None

    def __attrs_post_init__(self) -> None:
        if not _ANY_SERVER <= self.server_id <= _LAST_SERVER:
            message = f"server_id is {self.server_id}; it can be 0 (any server) to {_LAST_SERVER}"
            raise ConfigurationError(message)
        count, number = self.binlog_row_slice_count, self.binlog_row_slice_id
        if count is not None and not 1 <= count <= _MOST_SLICES:
            message = (
                f"binlog_row_slice_count is {count}; a server can log every row (1) or one slice of 2 to {_MOST_SLICES}"
            )
            raise ConfigurationError(message)
        if number is not None and count is None:
            message = (
                f"binlog_row_slice_id is {number} without a binlog_row_slice_count; "
                "the server logs that slice of so many, so give both or neither"
            )
            raise ConfigurationError(message)
        if number is not None and count is not None and not 0 <= number < count:
            message = f"binlog_row_slice_id is {number}; of {count} slices a server can log 0 to {count - 1}"
            raise ConfigurationError(message)


@attrs.frozen
class AmbiguousMatch:
    """Several rows match equally well: the server warns (1625) and uses none of them."""

    rows: tuple[ReplicationRow, ...]

    def warning(self, database: str, table: str, server_id: int) -> str:
        """Return the server's warning, which names the candidates; of more than two the server names only two."""
        rows = ", ".join(f"{row.db}.{row.table_name} ({row.server_id})" for row in self.rows)
        wanted = f"mysql.ndb_replication for {database}.{table} ({server_id})"
        return f"Ambiguous matches in {wanted}.Candidates : {rows}."


def best_match(
    rows: Iterable[ReplicationRow], database: str, table: str, server_id: int
) -> ReplicationRow | AmbiguousMatch | None:
    """Return the row that applies to a table on a server; None if none matches."""
    qualities = [(_quality(row, database, table, server_id), row) for row in rows]
    best = max((quality for quality, _ in qualities if quality is not None), default=None)
    if best is None:
        return None
    matches = tuple(row for quality, row in qualities if quality == best)
    return matches[0] if len(matches) == 1 else AmbiguousMatch(matches)


def rows_without_table(rows: Iterable[ReplicationRow], tables: Iterable[tuple[str, str]]) -> list[ReplicationRow]:
    """
    Return the rows that match no table, whatever server they are for.

    Args:
        rows: The rows.
        tables: Database and name of each table.
    """
    known = list(tables)
    return [row for row in rows if all(_quality(row, *table, row.server_id) is None for table in known)]


def _quality(row: ReplicationRow, database: str, table: str, server_id: int) -> int | None:
    """Return the weight of a row's exact parts; None if a part does not match."""
    if row.server_id not in (_ANY_SERVER, server_id):
        return None
    quality = _EXACT_SERVER if row.server_id == server_id else 0
    for pattern, name, weight in (
        (row.db, database, _EXACT_DATABASE),
        (row.table_name, table, _EXACT_TABLE),
    ):
        if _folded(pattern.rstrip(" ")) == _folded(name):
            quality += weight
        elif not _like(pattern, name):
            return None
    return quality


def _like(pattern: str, name: str) -> bool:
    """Whether a name matches a SQL LIKE pattern, ignoring case and accents; a backslash at the end is literal."""
    wanted: list[str | None] = []  # None is any text, "" any character
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            wanted.append(_folded(next(characters, "\\")))
        else:
            wanted.append({"%": None, "_": ""}.get(character, _folded(character)))
    # Which prefixes of the name match the pattern so far. The time is bounded by both lengths multiplied.
    fits = [True] + [False] * len(name)
    for part in wanted:
        if part is None:
            fits = list(itertools.accumulate(fits, operator.or_))
        else:
            fits = [False, *(fit and part in ("", found) for fit, found in zip(fits, _folded(name), strict=False))]
    return fits[-1]


def _folded(text: str) -> str:
    """
    Return the text by which names are compared: the server uses utf8mb3_general_ci, where É and e are equal.

    Choice: its weights are approximated by the upper-case letter without accents, which is right for European scripts.
    """
    return "".join(unicodedata.normalize("NFD", letter)[0].upper()[0] for letter in text)
