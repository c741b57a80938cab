"""
`check --server` of a pair of real servers: whatever is wrong with a channel now is told, and nothing of a sound one.

`make test-mysql` runs this; the name keeps it out of other test runs. The source is at `MYSQL_SOCKET`, the replica at
`MYSQL_REPLICA_SOCKET`: MySQL servers with different server ids that listen on 127.0.0.1, without channels and without
GTIDs; the account has no password. They have no NDB, so nothing is seen here of errors 1296 and counters of conflicts.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conflict.cli.commands import invoke
from tests.mysql_server.broken_channels import ACCOUNT, DATABASE, SITUATIONS, broken, clean
from tests.mysql_server.connection import Connection

MOMENT = {"NDB-E098", "NDB-E102", "NDB-E103", "NDB-E104", "NDB-E105", "NDB-E106", "NDB-E112", "NDB-E113"}
READER = "ndb_conflict_reader"
RIGHTS = ("REPLICATION CLIENT ON *.*", "SELECT ON *.*")
Pair = tuple[Connection, Connection, str]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Yield sessions on the source and the replica, and the replica's socket; end the run if one is not given."""
    sockets = [os.environ.get(name, "") for name in ("MYSQL_SOCKET", "MYSQL_REPLICA_SOCKET")]
    if not all(sockets):
        what = "make test-mysql MYSQL_SOCKET=... MYSQL_REPLICA_SOCKET=... MARIADB_SOCKET=..."
        pytest.exit(f"MYSQL_SOCKET or MYSQL_REPLICA_SOCKET is not set: {what}", returncode=2)
    user = os.environ.get("MYSQL_USER") or "root"
    with Connection(sockets[0], user) as source, Connection(sockets[1], user) as replica:
        clean(source, replica)
        yield source, replica, sockets[1]
        clean(source, replica)


@pytest.fixture
def reader(pair: Pair, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """Yield the options for both servers, with an account that may read what `check` reads."""
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    options = list[str]()
    for name, server in zip(("london", "paris"), pair[:2], strict=True):
        server.run(f"CREATE USER {READER}@'%' IDENTIFIED BY ''")
        for right in RIGHTS:
            server.run(f"GRANT {right} TO {READER}@'%'")
        ((port,),) = server.run("SELECT @@port")
        options += ["--server", f"{name}=mysql://{READER}@127.0.0.1:{(port or b'').decode()}/"]
    yield options
    for server in pair[:2]:
        server.run(f"DROP USER {READER}@'%'")


def found(options: list[str], folder: Path) -> tuple[list[dict[str, Any]], str]:
    """Return the findings of the moment, and what is printed."""
    _, said = invoke("check", *options, "--json", folder / "check.json")
    findings = json.loads((folder / "check.json").read_text("utf-8"))["findings"]
    return [each for each in findings if each["code"] in MOMENT], said


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_is_wrong_now(pair: Pair, reader: list[str], tmp_path: Path, name: str) -> None:
    """The thread's own error, in the words of the server, and for whom; of a sound channel nothing."""
    source, replica, socket = pair
    situation = SITUATIONS[name]
    with broken(source, replica, socket, situation):
        findings, said = found(reader, tmp_path)
    assert [each["code"] for each in findings] == [situation.code] * bool(situation.code)
    for finding in findings:
        assert finding["error"] == situation.error
        assert situation.said in finding["server"]
        assert [place["cluster"] for place in finding["places"]] == ["paris"]
        assert situation.fix in finding["fix"]
        assert "; on paris." in finding["fix"]
        assert "right" not in said.split("The server says")[-1].split("Manual")[0]  # the password of the account


def test_a_delay(pair: Pair, reader: list[str], tmp_path: Path) -> None:
    """It is told as such, and not as a lag."""
    source, replica, socket = pair
    with broken(source, replica, socket, SITUATIONS["healthy"]):
        replica.run("STOP REPLICA SQL_THREAD")
        replica.run("CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 90")
        replica.run("START REPLICA")
        findings, _ = found(reader, tmp_path)
    assert [each["code"] for each in findings] == ["NDB-E105"]


def test_a_privilege_for_the_workers_errors(pair: Pair, reader: list[str], tmp_path: Path) -> None:
    """Without it the applier is told all the same, and the statement that gives it."""
    source, replica, socket = pair
    replica.run(f"REVOKE SELECT ON *.* FROM {READER}@'%'")
    for right in (f"{DATABASE}.*", "mysql.*", "performance_schema.replication_applier_global_filters"):
        replica.run(f"GRANT SELECT ON {right} TO {READER}@'%'")
    with broken(source, replica, socket, SITUATIONS["duplicate value"]):
        findings, said = found(reader, tmp_path)
    assert [(each["code"], each["error"]) for each in findings] == [("NDB-E103", 1062)]
    table = "performance_schema.replication_applier_status_by_worker"
    assert f"GRANT SELECT ON {table} TO '{READER}'@'%'" in " ".join(said.split())


def test_nothing_is_changed(pair: Pair, reader: list[str], tmp_path: Path) -> None:
    """The channel is after the check as it was before."""
    source, replica, socket = pair
    with broken(source, replica, socket, SITUATIONS["duplicate value"]):
        before = replica.run("SHOW REPLICA STATUS")
        found(reader, tmp_path)
        assert replica.run("SHOW REPLICA STATUS") == before
        assert source.run(f"SELECT User FROM mysql.user WHERE User = '{ACCOUNT}'")
