"""`check --server` and `init --server`: fake servers on loopback, what they are asked, and how each failure is said."""

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import pytest

import conflict
from conflict.cli.refusals import ExitCode
from conflict.config.servers.addresses import addresses_of
from conflict.config.servers.connection import _password
from conflict.errors import ConfigurationError
from tests.conflict.cli.commands import invoke
from tests.conflict.config.servers.clusters import (
    BINLOG,
    CLOCK,
    COUNTERS,
    ROW,
    answers_of,
    channel_of,
    clock,
    pair,
    variables_of,
)
from tests.conflict.config.servers.fake_server import SILENCE, FakeServer

CODES_OF_PAIR = {"NDB-E054"}  # there is no exceptions table


@pytest.fixture(autouse=True)
def no_option_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr("conflict.config.servers.addresses._FILES", ("~/.my.cnf",))
    monkeypatch.setattr("conflict.config.servers.saved.COUNTING_SECONDS", 0.0)
    monkeypatch.delenv("MYSQL_PWD", raising=False)


@contextmanager
def options(*servers: FakeServer, names: str = "london paris") -> Iterator[list[str]]:
    """Yield the options for some servers that listen."""
    with ExitStack() as stack:
        ports = [stack.enter_context(each.listening()) for each in servers]
        given = zip([*names.split()], ports, strict=False)
        yield [word for name, port in given for word in ("--server", f"{name}=mysql://reader@127.0.0.1:{port}/")]


def codes_on(*servers: FakeServer, names: str = "london paris") -> dict[str, set[str]]:
    """Return, by code, where a check of servers finds something."""
    with options(*servers, names=names) as given:
        report = conflict.check(server=given[1::2])
    found: dict[str, set[str]] = {}
    for row in report.rows:
        found.setdefault(row["code"], set()).add(row["cluster"])
    return found


def test_nothing_is_found_that_is_not_there():
    """Two clusters that are as they should be."""
    servers = pair()
    assert codes_on(servers.london, servers.paris).keys() == CODES_OF_PAIR


def test_it_only_reads():
    """The session is made read only before anything is asked, and no statement writes or reads a user's rows."""
    servers = pair()
    codes_on(servers.london, servers.paris)
    first, second, *others = servers.london.asked
    assert first.startswith("SET NAMES")
    assert second == "SET SESSION TRANSACTION READ ONLY"
    assert {each.split()[0] for each in others} == {"SET", "SELECT", "SHOW"}
    assert not [each for each in others if each.startswith("SET ") and not each.startswith("SET SESSION")]
    assert [each for each in others if each.startswith("SELECT") and "FROM mysql.ndb_replication" in each]
    assert not [each for each in others if " FROM `shop`" in each or " FROM shop" in each]


def test_a_saved_check_is_the_same_check(tmp_path: Path):
    """What `init --server` writes gives the findings of `check --server`; filters and large counters come along."""
    servers = pair(**{BINLOG: [{"File": "log.1", "Binlog_Do_DB": "", "Binlog_Ignore_DB": "mysql,stock"}]})
    run = tmp_path / "run.toml"
    with options(servers.london, servers.paris) as given:
        code, said = invoke("check", *given)
        made = invoke("init", *given, "--out", run)
    again, saved = invoke("check", run)
    assert made[0] == ExitCode.DONE, made[1]
    assert (code, said.partition("What each table")[2]) == (again, saved.partition("What each table")[2])
    assert code == ExitCode.WARNED
    assert "NDB-E060" in said
    assert "london has server 1, mysql://reader@127.0.0.1:" in said
    (table,) = conflict.load_run_file(run, binlogs=False).configuration.schema.tables
    assert (table.full_name, table.engine) == ("shop.orders", "NDBCLUSTER")
    assert not (tmp_path / "paris" / "schema.sql").exists()
    assert f"Ndb_conflict_fn_max\t{COUNTERS['Ndb_conflict_fn_max']}\n" in (tmp_path / "london/status.txt").read_text()


def test_a_saved_check_knows_who_has_no_channel(tmp_path: Path):
    """A server that was asked and has none is not one that was not asked."""
    servers = pair(**{"SHOW REPLICA STATUS": []})
    with options(servers.london, servers.paris) as given:
        code, said = invoke("check", *given)
        assert invoke("init", *given, "--out", tmp_path / "run.toml")[0] == ExitCode.DONE
    assert (code, said.partition("What each table")[2]) == (
        ExitCode.WARNED,
        invoke("check", tmp_path / "run.toml")[1].partition("What each table")[2],
    )
    assert "NDB-E106" in said


def test_nothing_is_replaced(tmp_path: Path):
    """Without --force; and a server that fails leaves no file."""
    servers = pair()
    (tmp_path / "paris").mkdir()
    (tmp_path / "paris" / "status.txt").write_text("mine")
    with options(servers.london, servers.paris) as given:
        code, said = invoke("init", *given, "--out", tmp_path / "run.toml")
    assert code == ExitCode.REFUSED
    assert "paris/status.txt" in said
    assert sorted(each.name for each in tmp_path.rglob("*") if each.is_file()) == ["status.txt"]


def test_older_statements():
    """A server before 8.0.22 knows SHOW SLAVE STATUS alone, and one before 8.2 SHOW MASTER STATUS."""
    channel = {"Master_Host": "db", "Replicate_Do_DB": "", "Master_Server_Id": "2", "Channel_Name": ""}
    answers = answers_of(variables_of(1, version="8.0.21-cluster"), channel)
    answers["SHOW SLAVE STATUS"] = answers.pop("SHOW REPLICA STATUS")
    answers["SHOW MASTER STATUS"] = [{"File": "log.1", "Binlog_Do_DB": "", "Binlog_Ignore_DB": "mysql"}]
    del answers[BINLOG]
    assert codes_on(FakeServer(answers), pair().paris)["NDB-E060"] == {"london"}


def test_filters_of_a_channel_that_is_yet_to_be_made():
    """Without a channel, the global filters are those that it will have; two such clusters count as a pair."""
    filters = "SELECT FILTER_NAME, FILTER_RULE FROM performance_schema.replication_applier_global_filters"
    rows = [{"FILTER_NAME": "REPLICATE_IGNORE_DB", "FILTER_RULE": "mysql"}]
    london = FakeServer(answers_of(variables_of(1), **{filters: rows}))
    paris = FakeServer(answers_of(variables_of(2, auto_increment_offset="2")))
    assert codes_on(london, paris)["NDB-E060"] == {"london"}


def test_sql_nodes_that_differ():
    """Servers of one name are the SQL nodes of a cluster; the one with the channel stands first, and gives the role."""
    first = FakeServer(answers_of(variables_of(3, ndb_log_updated_only="ON", log_replica_updates="OFF")))
    second = FakeServer(answers_of(variables_of(1, ndb_log_updated_only="OFF"), channel_of(2)))
    paris = FakeServer(answers_of(variables_of(2, auto_increment_offset="2"), channel_of(3)))
    with options(first, second, paris, names="london london paris") as given:
        report = conflict.check(server=given[1::2])
    differing = {each.at: each.sentence for each in report.findings if each.code == "NDB-E094"}
    assert differing.keys() == {"ndb_log_updated_only", "log_replica_updates"}
    assert "(ndb_log_updated_only: OFF on server 1, ON on server 3)" in differing["ndb_log_updated_only"]
    assert {each.code for each in report.findings} == {*CODES_OF_PAIR, "NDB-E094"}


def test_a_chain():
    """Channels say who replicates from whom: what paris logs matters to nobody if london has no channel."""
    london = FakeServer(answers_of(variables_of(1)))
    paris = FakeServer(answers_of(variables_of(2, ndb_log_bin="OFF"), channel_of(1)))
    assert "NDB-E023" not in codes_on(london, paris)
    both = FakeServer(answers_of(variables_of(1), channel_of(2)))
    assert codes_on(both, paris)["NDB-E023"] == {"paris"}


def test_one_server_alone():
    """The other cluster is known by the channel; its variables are not."""
    found = codes_on(pair().london)
    assert found["NDB-E025"] == {"server2"}


def test_a_source_that_was_not_asked():
    london, paris = FakeServer(answers_of(variables_of(1), channel_of(2), channel_of(9))), pair().paris
    with options(london, paris) as given:
        assert "london replicates from server 9, which is not asked." in invoke("check", *given)[1]


def test_a_server_without_ndb():
    """Said once; none of its variables counts as one that was forgotten."""
    plain = {name: value for name, value in variables_of(1).items() if not name.startswith("ndb_")}
    found = codes_on(FakeServer(answers_of(plain, channel_of(2))), pair().paris)
    assert found["NDB-E093"] == {"london"}
    assert "NDB-E025" not in found


@pytest.mark.parametrize(("ahead", "found"), [(90, {"london", "paris"}), (-90, {"london", "paris"}), (0.9, set())])
def test_clocks_that_differ(ahead: float, found: set[str]):
    """By a second at least, whatever an answer takes."""
    servers = pair(**{CLOCK: clock(ahead)})
    assert codes_on(servers.london, servers.paris).get("NDB-E101", set()) == found


def test_what_a_clock_is_behind():
    """As much as is certain."""
    servers = pair(**{CLOCK: clock(-90)})
    with options(servers.london, servers.paris) as given:
        (row,) = {row["sentence"] for row in conflict.check(server=given[1::2]).rows if row["code"] == "NDB-E101"}
    seconds = re.match(r"The clock of server 1 is at least ([\d.]+) seconds behind that of server 2", row)
    assert 80 < float(seconds[1]) <= 90


@pytest.mark.parametrize(
    ("channel", "found"),
    [
        ({"Seconds_Behind_Source": "3599"}, {}),
        ({"Seconds_Behind_Source": "3600"}, {"NDB-E098": {"london"}}),
        ({"Seconds_Behind_Source": None}, {}),
        ({"Last_IO_Errno": "13114", "Last_IO_Error": "Got fatal error 1236 from source"}, {"NDB-E102": {"paris"}}),
        ({"Last_IO_Errno": "2003", "Last_IO_Error": "Error connecting to source"}, {}),
    ],
)
def test_what_channels_say_of_themselves(channel: dict[str, str | None], found: dict[str, set[str]]):
    """How far one is behind, against the source's logs; and an error of a source that cannot send on."""
    hour = {"binlog_expire_logs_seconds": "3600"}
    london = FakeServer(answers_of(variables_of(1, **hour), channel_of(2)))
    paris = FakeServer(answers_of(variables_of(2, auto_increment_offset="2"), channel_of(1, **channel)))
    codes = codes_on(london, paris)
    assert {code: where for code, where in codes.items() if code in ("NDB-E098", "NDB-E102")} == found


STOPPED = {"Replica_SQL_Running": "No", "Last_SQL_Errno": "1296", "Last_SQL_Error": "Got error 1296"}
RUNNING = {"Replica_IO_Running": "Yes", "Replica_SQL_Running": "Yes", "Last_SQL_Errno": "0", "SQL_Delay": "0"}


@pytest.mark.parametrize(
    ("channel", "found"),
    [
        (RUNNING, set()),
        (RUNNING | STOPPED, {"NDB-E103"}),
        (RUNNING | {"Replica_SQL_Running": "No"}, {"NDB-E103"}),
        (RUNNING | {"Replica_IO_Running": "No", "Replica_SQL_Running": "No"}, {"NDB-E103", "NDB-E104"}),
        (RUNNING | {"Replica_IO_Running": "Connecting", "Last_IO_Errno": "2003"}, {"NDB-E104"}),
        (RUNNING | {"Replica_IO_Running": "No", "Last_IO_Errno": "13114"}, {"NDB-E102"}),
        (RUNNING | {"SQL_Delay": "3600"}, {"NDB-E105"}),
        ({"Slave_IO_Running": "No", "Slave_SQL_Running": "No"}, {"NDB-E103", "NDB-E104"}),
    ],
)
def test_a_channel_that_stands_still_or_waits(channel: dict[str, str], found: set[str]):
    """Each thread by itself, and as older servers call them."""
    servers = pair(**{"SHOW REPLICA STATUS": [channel_of(2, **channel)]})
    of_pair = codes_on(servers.london, pair().paris)
    moment = {"NDB-E102", "NDB-E103", "NDB-E104", "NDB-E105", "NDB-E106"}
    assert {code: where for code, where in of_pair.items() if code in moment} == {code: {"london"} for code in found}


def test_a_stopped_applier_is_said_at_once():
    """Beside what else is known of the server, and with its own words in the finding."""
    servers = pair(**{"SHOW REPLICA STATUS": [channel_of(2, **RUNNING | STOPPED)]})
    with options(servers.london, servers.paris) as given:
        code, output = invoke("check", *given)
    assert code == 4
    assert "london, channel '' from server 2: its applier is stopped (error 1296)." in " ".join(output.split())
    assert 'The server says: "Got error 1296"' in output


def test_a_channel_for_a_failover_may_stand_still():
    """Of two channels from one cluster, the one that runs counts."""
    waiting = channel_of(2, **RUNNING | {"Replica_IO_Running": "No", "Replica_SQL_Running": "No"})
    channels = [waiting, channel_of(2, **RUNNING, Channel_Name="second")]
    servers = pair(**{"SHOW REPLICA STATUS": channels})
    assert codes_on(servers.london, servers.paris).keys() == set(CODES_OF_PAIR)


def test_a_channel_that_is_missing():
    """Of a server whose functions then judge nothing; of both, if none has one; not of a source without functions."""
    none = {"SHOW REPLICA STATUS": []}
    assert codes_on(pair(**none).london, pair().paris)["NDB-E106"] == {"london"}
    paris = FakeServer(answers_of(variables_of(2, auto_increment_offset="2")))
    assert codes_on(pair(**none).london, paris)["NDB-E106"] == {"london", "paris"}
    source = pair(**none, **{"SELECT * FROM mysql.ndb_replication": [ROW | {"server_id": "2"}]}).london
    assert "NDB-E106" not in codes_on(source, pair().paris)


def test_a_server_that_takes_no_changes():
    """As its variables say; the one that turns on the other is named."""
    london = FakeServer(answers_of(variables_of(1, super_read_only="ON", read_only="ON"), channel_of(2)))
    assert codes_on(london, pair().paris)["NDB-E107"] == {"london"}


def test_the_progress_of_many_tables():
    """Each server's own, by the tables whose definitions are read."""
    servers, seen = pair(), list[tuple[str, int, int]]()
    with options(servers.london, servers.paris) as given:
        conflict.check(server=given[1::2], progress=lambda *stage: seen.append(stage))
        conflict.check(server=[given[1].partition("=")[2]], progress=lambda *stage: seen.append(stage))
    alone = given[1].partition("=")[2].removesuffix("/")
    assert seen == [("tables of london", 1, 1), ("tables of paris", 1, 1), (f"tables of {alone}", 1, 1)]


def test_the_release_that_servers_say():
    """It counts as `--server-version`: workers before 8.0.33 are found, and names of a server are its names."""
    own = {
        "version": "8.0.31-cluster",
        "replica_parallel_workers": "4",
        "innodb_version": "8.0.31",
        "ndb_conflict": "1",
    }
    servers = [
        FakeServer(answers_of(variables_of(number, auto_increment_offset=str(number), **own), channel_of(3 - number)))
        for number in (1, 2)
    ]
    found = codes_on(*servers)
    assert found["NDB-E090"] == {"london", "paris"}
    assert "NDB-E086" not in found


def _said(server: FakeServer, *more: object) -> str:
    with options(server) as given:
        code, said = invoke("check", *given, *more)
    assert code == ExitCode.REFUSED, said
    assert said.count("127.0.0.1:") == 1, said
    return said


FAILURES = {
    "a wrong password": (FakeServer(login=(1045, "Access denied")), "refuses the user or the password; set MYSQL_PWD"),
    "too many connections": (FakeServer(login=(1040, "Too many connections")), "says: Too many connections (1040)"),
    "no right to see channels": (
        pair(**{"SHOW REPLICA STATUS": (1227, "Access denied")}).london,
        "'reader'@'%' may not run SHOW REPLICA STATUS; GRANT REPLICATION CLIENT ON *.* TO 'reader'@'%'",
    ),
    "no right to see rows": (
        pair(**{"SELECT * FROM mysql.ndb_replication": (1142, "SELECT command denied")}).london,
        "GRANT SELECT ON mysql.ndb_replication TO 'reader'@'%'",
    ),
    "no right to see a table": (
        pair(**{"SHOW CREATE TABLE `shop`.`orders`": (1142, "SELECT command denied")}).london,
        "GRANT SELECT ON `shop`.* TO 'reader'@'%'",
    ),
    "a server that stops": (pair(**{BINLOG: None}).london, f"stopped during {BINLOG}; nothing was written"),
    "a server that shuts down": (pair(**{BINLOG: (1053, "Server shutdown")}).london, f"stopped during {BINLOG}"),
    "another program": (FakeServer(welcome=b"SSH-2.0-OpenSSH_9.2p1\r\n"), "what answers there is no MySQL server"),
    "one that says nothing": (FakeServer(welcome=b""), "what answers there is no MySQL server"),
    "MariaDB": (
        FakeServer(answers_of({**variables_of(1), "version": "11.4.2-MariaDB-log"}), version="5.5.5-11.4.2-MariaDB"),
        "is MariaDB 11.4.2-MariaDB-log, which has no NDB",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str):
    """One sentence each, that names the server and what to do."""
    server, words = FAILURES[name]
    assert words in _said(server)


def test_no_table_is_visible():
    answers = answers_of(variables_of(1), channel_of(2))
    (tables,) = [each for each in answers if "information_schema.TABLES" in each]
    said = _said(FakeServer({**answers, tables: []}))
    assert "there is no table, or 'reader'@'%' sees none; GRANT SELECT ON DATABASE.* TO 'reader'@'%'" in said


def test_no_tls(tmp_path: Path):
    """PREFERRED goes on without it; REQUIRED does not."""
    option_file = tmp_path / "client.cnf"
    option_file.write_text("[client]\nssl-mode = REQUIRED\n")
    said = _said(pair().london, "--defaults-file", option_file)
    assert "has no TLS, and ssl-mode is REQUIRED; turn TLS on there" in said


def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("conflict.config.servers.connection.ANSWER_SECONDS", 0.1)
    assert f"did not answer in time during {BINLOG}" in _said(pair(**{BINLOG: SILENCE}).london)


def test_a_password_is_asked_for_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    """Unless it is given; it is never printed."""
    asked = list[str]()

    def getpass(prompt: str) -> str:
        asked.append(prompt)
        return "secret"

    monkeypatch.setattr("getpass.getpass", getpass)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    address = attrs.evolve(addresses_of(["mysql://reader@db1"])[0], password=None)
    assert _password(address) == "secret"
    assert asked == ["Password of mysql://reader@db1:3306: "]
    assert _password(attrs.evolve(address, password="")) == ""
    monkeypatch.setenv("MYSQL_PWD", "of the environment")
    assert _password(attrs.evolve(address, password="of a file")) == "of the environment"
    assert len(asked) == 1


def test_passwords_are_asked_for_before_anything_else(monkeypatch: pytest.MonkeyPatch):
    """Of all servers, so that no prompt stands among what is said of progress."""
    servers, asked = pair(), list[int]()

    def getpass(_: str) -> str:
        asked.append(len(servers.london.asked) + len(servers.paris.asked))
        return "secret"

    monkeypatch.setattr("getpass.getpass", getpass)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    codes_on(servers.london, servers.paris)
    assert asked == [0, 0]


def test_files_of_tls_that_are_not_there(tmp_path: Path):
    option_file = tmp_path / "client.cnf"
    option_file.write_text("[client]\nssl-ca = nowhere.pem\n")
    said = _said(pair().london, "--defaults-file", option_file)
    assert "the files for TLS (nowhere.pem) cannot be used: No such file or directory" in said


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    code, said = invoke("check", "--server", f"mysql://reader@127.0.0.1:{port}/")
    assert code == ExitCode.REFUSED
    assert f"mysql://reader@127.0.0.1:{port} cannot be reached (Connection refused)" in said


def test_servers_that_do_not_fit():
    """The same server twice; two with one server id; a cluster's servers that replicate from nobody asked."""
    servers = pair()
    with options(servers.london, names="london") as given, pytest.raises(ConfigurationError, match="the same server"):
        conflict.check(server=[given[1], given[1].replace("london", "paris")])
    other = FakeServer(answers_of(variables_of(1, server_uuid="another"), channel_of(2)))
    with options(servers.london, other) as given, pytest.raises(ConfigurationError, match=r"^clusters london and"):
        conflict.check(server=given[1::2])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("london=mysql://reader:secret@db/", "has a password, which everyone sees"),
        ("london=postgres://db/", "is not understood; give CLUSTER=mysql://USER@HOST:PORT/"),
        ("london=mysql://db:port/", "is not understood"),
        ("london=mysql://db/shop", "is not understood"),
        ("db", "is not understood"),
        ("..=mysql://db", "'..' is no name for a cluster"),
    ],
)
def test_addresses_that_are_none(given: str, words: str):
    with pytest.raises(ConfigurationError) as refused:
        addresses_of([given])
    assert words in str(refused.value)
    assert "secret" not in str(refused.value)


def test_option_files(tmp_path: Path):
    """What an address leaves out is from [client], of the file and those that it includes, but for other groups."""
    main, more = tmp_path / "main.cnf", tmp_path / "more"
    more.mkdir()
    main.write_text(
        f"!includedir {more}\n[mysqld]\nuser = mysql\n[client]\nuser = reader  # of all\npassword = 'a#b \"c'\n"
        "port=3307\nsocket=/tmp/s\n"
    )
    (more / "a.cnf").write_text("[client]\nssl-mode = verify_ca\nssl-ca=/ca.pem\nuser=nobody\n")
    near, far = addresses_of(["mysql://", "a=mysql://root@db2:3310"], main)
    assert attrs.evolve(near, password=None, cluster="") == attrs.evolve(
        near, cluster="", user="reader", port=3307, socket="/tmp/s", tls="VERIFY_CA", ca="/ca.pem", password=None
    )
    assert near.password == 'a#b "c'
    assert (far.cluster, far.user, far.host, far.port, far.socket) == ("a", "root", "db2", 3310, None)
    assert "a#b" not in repr(near)
    assert str(far) == "mysql://root@db2:3310"
    assert str(addresses_of(["mysql://u%40x@[::1]:3307/"], main)[0]) == "mysql://u@x@[::1]:3307"
    main.write_text("[client]\nssl_mode=REQIURED\n")
    with pytest.raises(ConfigurationError, match="did you mean REQUIRED"):
        addresses_of(["mysql://db"], main)


def test_what_servers_say_stands_alone(tmp_path: Path):
    """Nothing is added to it but config.ini, which no SQL node knows."""
    with options(*attrs.astuple(pair(), recurse=False)) as given:
        code, said = invoke("check", *given, "--conflict-fn", "shop.*=NDB$OLD(version)")
        assert (code, "--server asks for all that is checked" in said) == (ExitCode.REFUSED, True)
        (tmp_path / "config.ini").write_text("[ndbd default]\nTimeBetweenEpochs=1\n")
        assert invoke("check", *given, "--config-ini", f"london={tmp_path / 'config.ini'}")[0] < ExitCode.REFUSED
        code, said = invoke("check", *given, "--config-ini", f"londno={tmp_path / 'config.ini'}")
        assert (code, "did you mean london" in said) == (ExitCode.REFUSED, True)
    assert invoke("init", "--out", tmp_path / "run.toml")[0] == ExitCode.REFUSED
