"""Two small binlogs, step by step: users' changes, what appliers log of them, statements; each in two files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.conflict.changing_logs import SCHEMA, Columns, Sent, Side, image_of, table_id
from tests.conflict.raw_events import DELETE, UPDATE, WRITE, Raw, extra, status
from tests.ndb_formats.building import rows_body

__all__ = ["DELETE", "UPDATE", "WRITE", "SmallLogs"]

Values = Sequence[int | None]
# Code of an event, a table, and the images of one row.
Change = tuple[int, str, *tuple[Values, ...]]
RUN = """
schema = "schema.sql"
database = "d"
start = "empty"

[clusters.A]
server_id = 1
binlogs = ["A.0*"]

[clusters.B]
server_id = 2
binlogs = ["B.0*"]

[[ndb_replication]]
db = "d"
table_name = "judged"
server_id = 0
binlog_type = 7
conflict_fn = "NDB$MAX(x)"

[[ndb_replication]]
db = "d"
table_name = "other"
server_id = 0
binlog_type = 7
"""


@attrs.define
class SmallLogs:
    """
    The binlogs of A and B while they are written; epochs are 1, 3, 5, ... on each.

    Attributes:
        sides: The clusters.
        transactions: How many there were: the id of the last one.
        cuts: How many events stand in the first file of each.
    """

    sides: dict[str, Side] = attrs.field(factory=lambda: {name: Side(name) for name in "AB"})
    transactions: int = 0
    cuts: dict[str, int] = attrs.field(factory=dict)

    def commit(self, name: str, *changes: Change) -> None:
        """Let a user change rows, in one transaction and epoch."""
        side = self.sides[name]
        self.transactions += 1
        side.groups.append([self._event(side, side.server_id, change) for change in changes])
        side.close(2)

    def take(self, name: str, *logged: Change) -> None:
        """Let the applier of a cluster take the next epoch of the other one, and log changes."""
        side, other = self.sides[name], self._other(name)
        epoch = other.sent[other.taken]
        assert isinstance(epoch, int)
        other.taken += 1
        self.transactions += 1
        traced = (WRITE, side.server_id, status(other.server_id, epoch, self.transactions, b"log")[2])
        side.groups.append([traced, *(self._event(side, other.server_id, change) for change in logged)])
        side.close(2)

    def settle(self) -> None:
        """Let both appliers take all that changed rows, if that is taken already, and log nothing but epochs."""
        for name in "AB":
            while self._other(name).taken < len(self._other(name).sent):
                self.take(name)

    def define(self, statement: str, tables: dict[str, Columns]) -> None:
        """Let a user run a statement on A, and B's applier take it; nothing else is under way."""
        self.settle()
        self.sides["A"].sent.append(Sent(statement, None, tables, 0))
        for name in "AB":
            self.sides[name].define(statement, {**self.sides[name].tables, **tables}, 1)
            self.sides[name].close(2)
        self.sides["A"].taken += 1

    def rotate(self) -> None:
        """Let both clusters go on in another file."""
        self.cuts = {name: len(side.log) for name, side in self.sides.items()}

    def write(self, folder: Path) -> Path:
        """Write the binlogs and a run file, and return that."""
        for name, side in self.sides.items():
            side.write(folder / f"{name}.000001", stop=self.cuts[name])
            side.write(folder / f"{name}.000002", self.cuts[name])
        (folder / "schema.sql").write_text(SCHEMA)
        (folder / "run.toml").write_text(RUN)
        return folder / "run.toml"

    def _other(self, name: str) -> Side:
        return self.sides["B" if name == "A" else "A"]

    def _event(self, side: Side, author: int, change: Change) -> Raw:
        code, table, *images = change
        columns = side.tables[table]
        every = [range(len(columns))] * len(images)
        content = b"".join(image_of(columns, each) for each in images)
        body = rows_body(content, len(columns), every, table_id=table_id(table), extra=extra(self.transactions))
        return code, author, body
