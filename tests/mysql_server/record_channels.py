"""
Record what real MySQL servers say of broken channels, for tests without a server.

    MYSQL_SOCKET=... MYSQL_REPLICA_SOCKET=... python -m tests.mysql_server.record_channels \
        tests/recordings/channels/mysql_9_7.json

By situation, the rows of SHOW REPLICA STATUS and those that the check reads of the workers, as they came; without the
name of the relay log, which has the name of the host.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from conflict.config.servers.addresses import ServerAddress
from conflict.config.servers.connection import connected
from conflict.config.servers.facts import WORKER_ERRORS
from tests.mysql_server.broken_channels import SITUATIONS, broken
from tests.mysql_server.connection import Connection


def main(path: str) -> None:
    """Write the file."""
    sockets = [os.environ[name] for name in ("MYSQL_SOCKET", "MYSQL_REPLICA_SOCKET")]
    user, recorded = os.environ.get("MYSQL_USER") or "root", dict[str, object]()
    with Connection(sockets[0], user) as source, Connection(sockets[1], user) as replica:
        for name, situation in SITUATIONS.items():
            address = ServerAddress(None, user, "localhost", socket=sockets[1], password="")
            with broken(source, replica, sockets[1], situation), connected(address) as asked:
                answers = {"channels": asked.ask("SHOW REPLICA STATUS"), "workers": asked.ask(WORKER_ERRORS)}
                recorded[name] = {what: [_row(each) for each in rows] for what, rows in answers.items()}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(recorded, indent=1) + "\n", "utf-8")


def _row(row: Mapping[str, object]) -> dict[str, object]:
    """Return the values that are there, as text."""
    return {name: value for name, value in row.items() if name != "Relay_Log_File"}


if __name__ == "__main__":
    main(*sys.argv[1:])
