"""
What a resolver sees of a row and of an incoming change, and how it answers.

Images and rows are mappings of column names to values. A column that an image does not carry is not in its mapping,
and `ABSENT` if it is asked for; NULL is None.

    row.values["price"], change.new["price"], "price" in change.old
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from conflict.rules.decision import (
    APPLIED,
    IGNORED,
    Cause,
    Decision,
    IncomingOperation,
    RowState,
    Verdict,
    operation_word,
)
from ndb_formats.events.row_image import RowLayout
from ndb_formats.schema.tables import Table
from ndb_formats.types.values import ABSENT, MaybeValue, Value

APPLY = APPLIED
"""The answer that applies a change as it was logged."""
IGNORE = IGNORED
"""The answer that leaves the row as it is, and counts no conflict."""


def reject(
    cause: Cause | str = Cause.ROW_IN_CONFLICT, incoming: int | None = None, stored: int | None = None
) -> Decision:
    """
    Return the answer that rejects a change.

    Args:
        cause: ROW_DOES_NOT_EXIST, ROW_ALREADY_EXISTS or ROW_IN_CONFLICT, as an exceptions table has it.
        incoming: What was compared of the change, for `explain`: a whole number from 0 to 2^64 - 1.
        stored: What it was compared with.
    """
    return Decision(Verdict.REJECTED, Cause[cause] if isinstance(cause, str) else cause, incoming, stored)


def merge(columns: Mapping[str, Value] | None = None, /, **more: Value) -> Decision:
    """
    Return the answer that writes these columns of the row in place of what the change brings.

    An insert of a row that does not exist brings all its other columns, too. A delete that is merged deletes nothing.
    """
    return Decision(Verdict.MERGED, writes=tuple({**(columns or {}), **more}.items()))


class ColumnValues(Mapping[str, MaybeValue]):
    """The columns that an image or a row has, by name; one is decoded when it is asked for."""

    __slots__ = ("_layout", "_payloads", "_table")

    def __init__(self, table: Table, layout: RowLayout, payloads: Mapping[int, bytes | None]) -> None:
        self._table, self._layout, self._payloads = table, layout, payloads

    def __getitem__(self, name: str) -> MaybeValue:
        column = self._table.find(name)
        if column is None:
            names = ", ".join(each.name for each in self._table.columns)
            message = f"table {self._table.full_name} has no column {name}; it has {names}"
            raise KeyError(message)
        ordinal = self._table.ordinal(name)
        if ordinal not in self._payloads:
            return ABSENT
        payload = self._payloads[ordinal]
        return None if payload is None else self._layout.codecs[ordinal].decode(payload)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in set(self)

    def __iter__(self) -> Iterator[str]:
        return (each.name for ordinal, each in enumerate(self._table.columns) if ordinal in self._payloads)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


@attrs.frozen
class FoundRow(RowState):
    """
    A row as a resolver finds it: `RowState`, and what the resolver declares that it reads. The rest is None.

    Attributes:
        values: Its columns, as far as they are known; empty if there is no row.
        site: Server id of the cluster that last wrote it; None if not known.
        committed: When that write committed on its cluster: microseconds since 1970, of its epoch; in a search its
            number among all transactions, from 1. None if not known.
        unseen: Whether it was last changed here, in an epoch that is not known to have come back.
    """

    values: Mapping[str, MaybeValue] = attrs.field(factory=dict)
    site: int | None = None
    committed: int | None = None
    unseen: bool | None = None


@attrs.frozen
class IncomingChange(IncomingOperation):
    """
    A change of another cluster as a resolver sees it: `IncomingOperation`, and what the resolver reads.

    Attributes:
        old: Columns of the before image; empty if there is none.
        new: Columns of the after image; empty for a delete.
        site: Server id of the cluster that made it.
        committed: When it committed there; as of `FoundRow`.
        key: Names of the columns of the primary key.
    """

    old: Mapping[str, MaybeValue] = attrs.field(factory=dict)
    new: Mapping[str, MaybeValue] = attrs.field(factory=dict)
    site: int | None = None
    committed: int | None = None
    key: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Its operation as a word: write (an insert), update or delete."""
        return operation_word(self.operation)
