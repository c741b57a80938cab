"""Appliers: which SQL node replicates from which, how far they are, and waiting for them."""

from __future__ import annotations

import time
from collections.abc import Mapping

import attrs

from tests.recorder.clusters import PASSWORD, USER
from tests.recorder.sql_node import Position, SqlNode, until

__all__ = ["Appliers"]

STOPPED, NOT_RUNNING = "applier stopped with an error", "applier is not running"
SETTLE_SECONDS, WAIT_SECONDS = 20, 60
STILL_CHANGING = f"still changing after {SETTLE_SECONDS} s"


@attrs.define(eq=False)
class Appliers:
    """
    The appliers of a scenario.

    Attributes:
        nodes: The SQL nodes by their names.
        links: The source of each SQL node that has an applier.
        ignored: By SQL node, the server ids that it ignores, as text.
        starts: By SQL node, where its log began when the tables were made.
    """

    nodes: Mapping[str, SqlNode]
    links: dict[str, str]
    ignored: Mapping[str, str] = attrs.field(factory=dict)
    starts: Mapping[str, Position] = attrs.field(factory=dict)

    def source_of(self, replica: str) -> SqlNode:
        """Return the SQL node from which one replicates."""
        return self.nodes[self.links[replica]]

    def link(self, replica: str, source: str, position: Position) -> None:
        """Let an SQL node replicate from another one, from a place in its log on; the applier is stopped."""
        self.links[replica] = source
        options = {
            "HOST": "'127.0.0.1'",
            "PORT": self.nodes[source].port,
            "USER": f"'{USER}'",
            "PASSWORD": f"'{PASSWORD}'",
            "CONNECT_RETRY": 1,
            "RETRY_COUNT": 600,
            "LOG_FILE": f"'{position[0]}'",
            "LOG_POS": position[1],
        }
        parts = [f"SOURCE_{name}={value}" for name, value in options.items()]
        parts.append(f"GET_SOURCE_PUBLIC_KEY=1, IGNORE_SERVER_IDS=({self.ignored.get(replica, '')})")
        self.nodes[replica].rows(f"CHANGE REPLICATION SOURCE TO {', '.join(parts)}")

    def start(self, replica: str) -> None:
        """Start an applier."""
        self.nodes[replica].rows("START REPLICA")

    def stop(self, replica: str) -> None:
        """Stop an applier, if it runs."""
        self.nodes[replica].rows("STOP REPLICA")

    def run_until(self, replica: str, position: Position) -> None:
        """Let an applier that has fetched what it needs go on up to a place in the source's log, and no further."""
        node = self.nodes[replica]
        node.rows(
            f"START REPLICA SQL_THREAD UNTIL SOURCE_LOG_FILE='{position[0]}', SOURCE_LOG_POS={position[1]}",
        )
        until("the applier's stop", lambda: not self.runs(replica), WAIT_SECONDS)

    def fetch(self, replica: str, position: Position) -> None:
        """Wait until the SQL node has the source's log up to a place, whether it applies or not."""
        node = self.nodes[replica]
        node.rows("START REPLICA IO_THREAD")

        def has_read() -> bool:
            state = node.row("SHOW REPLICA STATUS")
            return (state["Source_Log_File"], int(state["Read_Source_Log_Pos"])) >= position

        until(f"fetching the log up to {position}", has_read, WAIT_SECONDS)

    def rewind(self, replica: str) -> None:
        """Stop an applier, and set it back to the start of the source's log."""
        self.stop(replica)
        file, offset = self.starts[self.links[replica]]
        self.nodes[replica].rows(f"CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={offset}")

    def runs(self, replica: str) -> bool:
        """Whether an applier runs."""
        return self.nodes[replica].row("SHOW REPLICA STATUS").get("Replica_SQL_Running") == "Yes"

    def error(self, replica: str) -> tuple[int, str]:
        """Return the error with which an applier stopped, of its coordinator; 0 if it did not."""
        state = self.nodes[replica].row("SHOW REPLICA STATUS")
        return int(state.get("Last_SQL_Errno") or 0), state.get("Last_SQL_Error") or ""

    def applied_epoch(self, replica: str) -> int:
        """Return the last epoch of its source that an applier applied; 0 for none."""
        source = self.source_of(replica).server_id
        found = self.nodes[replica].rows(f"SELECT epoch FROM mysql.ndb_apply_status WHERE server_id = {source}")
        return int(found[0][0]) if found else 0

    def wait(self, replica: str, position: Position | None = None) -> str:
        """Wait until an applier applied its source's log up to a place, by default its end; return why it did not."""
        position = position or self.source_of(replica).position()
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            state = self.nodes[replica].row("SHOW REPLICA STATUS")
            if (state["Relay_Source_Log_File"], int(state["Exec_Source_Log_Pos"])) >= position:
                return ""
            if state["Replica_SQL_Running"] != "Yes":
                return STOPPED if int(state["Last_SQL_Errno"]) else NOT_RUNNING
            time.sleep(0.02)
        return f"not reached in {WAIT_SECONDS} s"

    def quiesce(self) -> str:
        """Wait until no running applier has anything more to apply; return why that was not reached."""
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            before = self._positions()
            for replica, source in self.links.items():
                if self.runs(replica):
                    self.wait(replica, before[source])
            if self._positions() == before:
                return ""
            if time.monotonic() > end:
                return STILL_CHANGING

    def _positions(self) -> dict[str, Position]:
        for node in self.nodes.values():
            node.close_epoch()
        return {name: node.position() for name, node in self.nodes.items()}
