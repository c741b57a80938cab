"""
Whether a server refuses rows that a source took, in the unique keys of a replica that are other ones.

`make test-mysql` runs this; the name keeps it out of other test runs.
"""

import json
from pathlib import Path

import pytest

from tests.corpora import RECORDINGS
from tests.mysql_server.server import Server, given_server

CASES = json.loads((RECORDINGS / "replica" / "unique_keys.json").read_text("utf-8"))["cases"]
SOURCE, REPLICA = "check_unique_source", "check_unique_replica"


@pytest.fixture(scope="module")
def server() -> Server:
    """The server that is given."""
    return given_server()


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_server_does_what_was_recorded(case: dict[str, str], server: Server, tmp_path: Path) -> None:
    """The rows of the source, as the events of another server, go into the table of the replica, or stop with 1062."""
    own = server.run("SELECT @@GLOBAL.server_id").strip()
    server.run("SET GLOBAL replica_type_conversions = 'ALL_LOSSY,ALL_NON_LOSSY'")
    for database, body in ((SOURCE, case["source"]), (REPLICA, case["replica"])):
        server.run(f"DROP DATABASE IF EXISTS {database}; CREATE DATABASE {database}")
        server.run(f"CREATE TABLE {database}.t ({body})")
    try:
        server.run(f"SET GLOBAL server_id = {int(own) + 1}; FLUSH BINARY LOGS")
        server.run(f"INSERT INTO {SOURCE}.t VALUES {case['rows']}")
    finally:
        server.run(f"SET GLOBAL server_id = {own}")
    text = server.read(server.own_log(tmp_path), "--skip-gtids", f"--rewrite-db={SOURCE}->{REPLICA}")
    if case["outcome"] == "same":
        server.run(text)
        return
    with pytest.raises(AssertionError, match=f"ERROR {case['outcome']} "):
        server.run(text)
