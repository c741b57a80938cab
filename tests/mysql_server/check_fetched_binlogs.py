"""
Binlogs that `mysqlbinlog --raw --stop-never` fetches from a running server are decoded while they grow.

`make test-mysql` runs this; the name keeps it out of other test runs. MySQL is at `MYSQL_SOCKET`, where the account has
no password, or the one of `MYSQL_PWD`; `MYSQLBINLOG` is the client, as in the sentence of the help.
"""

import json
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.mysql_server.server import Server, given_server

DATABASE, ROWS, SEED = "ndb_conflict_fetched", 60, 42


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Yield the server, or end the run with what is missing."""
    found = given_server()
    found.run(f"DROP DATABASE IF EXISTS {DATABASE}; FLUSH BINARY LOGS")
    yield found
    found.run(f"DROP DATABASE {DATABASE}")


@contextmanager
def fetching(server: Server, folder: Path) -> Iterator[None]:
    """Fetch what the server logs from now on, as the help says it."""
    setup, first = server.setup, server.run("SHOW BINARY LOG STATUS").split("\t")[0]
    account = [f"--user={setup.user}", f"--socket={setup.socket}"]
    options = ["--no-defaults", "--raw", "--read-from-remote-server", "--stop-never", f"--result-file={folder}/"]
    with subprocess.Popen([setup.reader, *options, *account, first], stderr=subprocess.PIPE) as client:
        try:
            yield
            assert client.poll() is None, client.stderr.read()
        finally:
            client.terminate()


def decoded(folder: Path) -> list[int]:
    """Return the keys of the rows that the folder holds by now."""
    file = folder.parent / "decoded.jsonl"
    code, said = invoke("decode", folder, "--format", "json", "--table", f"{DATABASE}.t", "-r", file, "--force")
    assert code in (ExitCode.DONE, ExitCode.CUT_SHORT, ExitCode.WARNED), said
    assert code is not ExitCode.CUT_SHORT or "ends" in said
    return [json.loads(line)["after"]["k"] for line in file.read_text().splitlines()] if file.exists() else []


def test_decode_reads_while_the_client_fetches(server: Server, tmp_path: Path):
    """At every moment it finds the first rows, each once and in order; at the end it finds all, in several files."""
    folder, choice, found = tmp_path / "fetched", random.Random(SEED), 0
    folder.mkdir()
    with fetching(server, folder):
        server.run(f"CREATE DATABASE {DATABASE}; CREATE TABLE {DATABASE}.t (k INT PRIMARY KEY, v LONGTEXT)")
        for key in range(ROWS):
            size = choice.choice((1, 5_000, 200_000))
            server.run(f"INSERT INTO {DATABASE}.t VALUES ({key}, REPEAT('x', {size}))")
            if key % 25 == 24:
                server.run("FLUSH BINARY LOGS")
            if any(folder.iterdir()):
                keys = decoded(folder)
                assert keys == [*range(len(keys))]
                assert found <= len(keys) <= key + 1
                found = len(keys)
        until = time.monotonic() + 20
        while (keys := decoded(folder)) != [*range(ROWS)] and time.monotonic() < until:
            time.sleep(0.2)
    assert keys == [*range(ROWS)]
    assert len([*folder.iterdir()]) == 1 + ROWS // 25
