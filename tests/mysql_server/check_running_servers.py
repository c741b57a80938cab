"""
A running server is asked and not changed: accounts, TLS, missing privileges, and a check of what was saved.

`make test-mysql` runs this; the name keeps it out of other test runs. MySQL is at `MYSQL_SOCKET`, where the account has
no password and may make others; it has no NDB, and listens on 127.0.0.1.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.config.servers.addresses import ServerAddress
from conflict.config.servers.connection import connected
from conflict.config.servers.facts import facts_of
from conflict.errors import ConfigurationError
from tests.conflict.cli.commands import invoke
from tests.mysql_server.connection import Connection

DATABASE, PASSWORD = "ndb_conflict_asked", "pass'wörd #1"  # of accounts that live as long as the test
ROWS = "mysql.ndb_replication"
SETUP = (
    f"CREATE DATABASE {DATABASE}",
    f"CREATE TABLE {DATABASE}.`a``b.c` (k INT NOT NULL AUTO_INCREMENT PRIMARY KEY, v VARCHAR(9) DEFAULT 'x''\\\\')",
    f"INSERT INTO {DATABASE}.`a``b.c` VALUES (NULL, 'v')",
    f"CREATE TABLE {DATABASE}.t (k INT NOT NULL PRIMARY KEY, x INT UNSIGNED NOT NULL COMMENT 'a; b')",
    (
        f"CREATE TABLE IF NOT EXISTS {ROWS} (db VARBINARY(63), table_name VARBINARY(63), server_id INT UNSIGNED, "
        "binlog_type INT UNSIGNED, conflict_fn VARBINARY(128), PRIMARY KEY (db, table_name, server_id))"
    ),
    f"REPLACE INTO {ROWS} VALUES ('{DATABASE}', 't', 0, 7, 'NDB$MAX(x)')",
)


@pytest.fixture(scope="module")
def root() -> Iterator[Connection]:
    """Yield a session that may do everything; end the run if the socket is not given."""
    socket = os.environ.get("MYSQL_SOCKET", "")
    if not socket:
        pytest.exit("MYSQL_SOCKET is not set: make test-mysql MYSQL_SOCKET=... MARIADB_SOCKET=...", returncode=2)
    with Connection(socket, os.environ.get("MYSQL_USER") or "root") as found:
        found.run("SET SESSION sql_log_bin = 0")
        there = found.run("SHOW TABLES FROM mysql LIKE 'ndb_replication'")
        found.run(f"DROP DATABASE IF EXISTS {DATABASE}")
        for statement in SETUP:
            found.run(statement)
        yield found
        found.run(f"DROP DATABASE {DATABASE}")
        found.run(f"DELETE FROM {ROWS} WHERE db = '{DATABASE}'" if there else f"DROP TABLE {ROWS}")


@pytest.fixture
def account(root: Connection, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerAddress]:
    """Yield the address of an account that may read nothing yet."""
    ((port,),) = root.run("SELECT @@port")
    root.run("DROP USER IF EXISTS 'asks'@'%'")
    root.run(f"CREATE USER 'asks'@'%' IDENTIFIED BY '{PASSWORD.replace(chr(39), chr(39) * 2)}'")
    monkeypatch.delenv("MYSQL_PWD", raising=False)
    yield ServerAddress("A", "asks", "127.0.0.1", int(port or b"0"), password=PASSWORD)
    root.run("DROP USER 'asks'@'%'")


def server_option(address: ServerAddress) -> list[str]:
    return ["--server", f"A={address}/"]


def grant_all(root: Connection) -> None:
    for right in ("REPLICATION CLIENT ON *.*", f"SELECT ON {DATABASE}.*", "SELECT ON mysql.ndb_replication"):
        root.run(f"GRANT {right} TO 'asks'@'%'")
    root.run("GRANT SELECT ON performance_schema.* TO 'asks'@'%'")


@pytest.mark.parametrize("tls", ["DISABLED", "PREFERRED", "REQUIRED"])
def test_passwords(account: ServerAddress, root: Connection, tls: str):
    """A new account is let in with and without TLS, by its whole password and by what the server then remembers."""
    address = attrs.evolve(account, tls=tls)
    root.run("FLUSH PRIVILEGES")  # so that the server remembers no password
    for _ in range(2):
        with connected(address) as server:
            assert server.account == "'asks'@'%'"
            assert server.encrypted is (tls != "DISABLED")
            (row,) = server.ask("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
            assert bool(row["Value"]) is (tls != "DISABLED")


def test_certificates(account: ServerAddress, root: Connection):
    """The server's own authority vouches for it, but not for the name by which it is asked."""
    ((folder,),) = root.run("SELECT @@datadir")
    authority = str(Path((folder or b"").decode(), "ca.pem"))
    with connected(attrs.evolve(account, tls="VERIFY_CA", ca=authority)) as server:
        assert server.encrypted
    with (
        pytest.raises(ConfigurationError, match="no TLS connection"),
        connected(attrs.evolve(account, tls="VERIFY_IDENTITY", ca=authority)),
    ):
        pass
    with (
        pytest.raises(ConfigurationError, match="no TLS connection"),
        connected(attrs.evolve(account, tls="VERIFY_CA")),
    ):
        pass


def test_an_account_that_needs_tls(account: ServerAddress, root: Connection):
    root.run("ALTER USER 'asks'@'%' REQUIRE SSL")
    with connected(account) as server:
        assert server.encrypted
    with (
        pytest.raises(ConfigurationError, match="refuses the user or the password"),
        connected(attrs.evolve(account, tls="DISABLED")),
    ):
        pass


@pytest.mark.parametrize("tls", ["DISABLED", "PREFERRED"])
def test_the_older_kind_of_account(account: ServerAddress, root: Connection, tls: str):
    root.run(f"ALTER USER 'asks'@'%' IDENTIFIED WITH sha256_password BY '{PASSWORD.replace(chr(39), chr(39) * 2)}'")
    with connected(attrs.evolve(account, tls=tls)) as server:
        assert server.account == "'asks'@'%'"


def test_an_account_that_is_locked_or_whose_password_has_expired(account: ServerAddress, root: Connection):
    """The server's own words say it."""
    for state, words in (("PASSWORD EXPIRE", "Your password has expired"), ("ACCOUNT LOCK", "Account is locked")):
        root.run(f"ALTER USER 'asks'@'%' {state}")
        with pytest.raises(ConfigurationError, match=words), connected(account):
            pass


def test_a_wrong_password(account: ServerAddress, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MYSQL_PWD", "wrong")
    code, said = invoke("check", *server_option(account))
    assert code == ExitCode.REFUSED
    assert f"{account}: the server refuses the user or the password; set MYSQL_PWD" in said


def test_every_privilege_is_named(account: ServerAddress, root: Connection):
    """What a sentence says after GRANT, typed as it is, leads to the next sentence and at last to the facts."""
    typed = list[str]()
    while len(typed) < 9:
        try:
            with connected(account) as server:
                facts = facts_of(server)
            break
        except ConfigurationError as error:
            (grant,) = re.findall(r"GRANT .*? TO 'asks'@'%'", str(error))
            typed.append(grant.replace("DATABASE.*", f"{DATABASE}.*"))
            root.run(typed[-1])
    assert {name for database, name in facts.definitions if database == DATABASE} == {"a`b.c", "t"}
    filters = "SELECT ON performance_schema.replication_applier_global_filters"
    assert [each.split(" TO ")[0] for each in typed] == [
        "GRANT REPLICATION CLIENT ON *.*",
        *([] if facts.channels else [f"GRANT {filters}"]),
        f"GRANT SELECT ON {DATABASE}.*",
        "GRANT SELECT ON mysql.ndb_replication",
    ]


def test_nothing_can_be_written(account: ServerAddress, root: Connection):
    """Also by an account that may write: the session is read only."""
    root.run("GRANT ALL ON *.* TO 'asks'@'%'")
    with connected(account) as server:
        for statement in (f"INSERT INTO {DATABASE}.t VALUES (1, 1)", f"CREATE TABLE {DATABASE}.u (k INT PRIMARY KEY)"):
            with pytest.raises(ConfigurationError, match="READ ONLY transaction"):
                server.ask(statement)


def test_a_server_that_stops(account: ServerAddress, root: Connection):
    with connected(account) as server:
        (row,) = server.ask("SELECT CONNECTION_ID() AS id")
        root.run(f"KILL {row['id']}")
        with pytest.raises(ConfigurationError, match="stopped during SHOW GLOBAL VARIABLES; nothing was written"):
            server.ask("SHOW GLOBAL VARIABLES")


def test_a_saved_check_is_the_same_check(
    account: ServerAddress, root: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """And finds that the server has no NDB; definitions come along with odd names and texts."""
    grant_all(root)
    monkeypatch.setenv("MYSQL_PWD", PASSWORD)
    code, said = invoke("check", *server_option(account))
    assert invoke("init", *server_option(account), "--out", tmp_path / "run.toml")[0] == ExitCode.DONE
    again, saved = invoke("check", tmp_path / "run.toml")
    assert (again, saved) == (code, said[said.index("What each table") :])
    assert code == ExitCode.WARNED
    assert {"NDB-E009", "NDB-E093"} <= set(re.findall(r"NDB-\w\d+", said))
    tables = conflict.load_run_file(tmp_path / "run.toml", binlogs=False).configuration.schema.tables
    odd = next(each for each in tables if each.name == "a`b.c")
    assert (odd.database, odd.columns[1].default) == (DATABASE, "x'\\")
