"""`check --server`, answered as real MySQL servers answered: each state of a channel, and what to do about it."""

import json
from typing import Any

import attrs
import pytest

import conflict
from conflict.checking.findings import Finding
from conflict.checking.thread_errors import StoppedApplier
from conflict.cli.refusals import ExitCode
from conflict.config.replica_status import parse_replica_status
from conflict.config.servers.facts import WORKER_ERRORS
from tests.conflict.cli.commands import invoke
from tests.conflict.config.servers.clusters import answers_of, channel_of, pair, variables_of
from tests.conflict.config.servers.fake_server import Answer, FakeServer
from tests.conflict.config.servers.test_running_servers import options
from tests.corpora import RECORDINGS
from tests.mysql_server.broken_channels import SITUATIONS

RECORDED: dict[str, dict[str, list[dict[str, Any]]]] = json.loads(
    (RECORDINGS / "channels/mysql_9_7.json").read_text("utf-8")
)
COUNTERS = "SHOW GLOBAL STATUS LIKE 'Ndb\\_%'"
MOMENT = {"NDB-E098", "NDB-E102", "NDB-E103", "NDB-E104", "NDB-E105", "NDB-E106", "NDB-E112", "NDB-E113"}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conflict.config.servers.saved.COUNTING_SECONDS", 0.0)
    monkeypatch.setattr("conflict.config.servers.addresses._FILES", ())
    monkeypatch.setenv("MYSQL_PWD", "")


def findings(paris: FakeServer) -> list[Finding]:
    """Return what is wrong now with a replica of london."""
    with options(pair().london, paris) as given:
        report = conflict.check(server=given[1::2])
    return [each for each in report.findings if each.code in MOMENT]


def paris(*channels: dict[str, Any], **others: Answer) -> FakeServer:
    return FakeServer(answers_of(variables_of(2, auto_increment_offset="2"), *channels, **others))


def recorded(name: str, **others: Answer) -> FakeServer:
    """Return a replica that answers as a real one did; its source is the one that is asked."""
    (channel,), workers = RECORDED[name]["channels"], RECORDED[name]["workers"]
    return paris(channel | {"Source_Server_Id": "1"}, **{WORKER_ERRORS: workers, **others})


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_is_wrong_now(name: str) -> None:
    """The thread's own error, in the words of the server, and for whom; of a sound channel nothing."""
    situation = SITUATIONS[name]
    found = findings(recorded(name))
    assert [each.code for each in found] == [situation.code] * bool(situation.code)
    for finding in found:
        assert finding.error == situation.error
        assert finding.server is not None
        assert situation.said in finding.server
        assert [place.cluster for place in finding.places] == ["paris"]
        assert situation.fix in str(finding.fix)
        assert "; on paris." in str(finding.fix)


def test_a_finding_in_full() -> None:
    """An applier at a value that another row has."""
    (finding,) = findings(recorded("duplicate value"))
    table = "ndb_conflict_channel.t"
    assert finding.sentence == (
        "The applier of the channel from london is stopped (Replica_SQL_Running = No, error 1062): another row of "
        f"{table} has the same value of a unique key. No change that is made there arrives, and the clusters differ "
        "more and more."
    )
    assert str(finding.fix) == (
        f"SELECT both rows of {table}; DELETE or UPDATE the one on paris, with sql_log_bin = 0, then START REPLICA; on "
        "paris. Then give each cluster its own range of such values."
    )


def test_host_and_account_are_named() -> None:
    (finding,) = findings(recorded("wrong password"))
    assert " to 127.0.0.1:" in finding.sentence
    assert " as 'ndb_conflict_receiver' (Replica_IO_Running = Connecting, error 1045)" in finding.sentence


def test_the_channel_is_named_in_statements() -> None:
    (channel,), workers = RECORDED["missing row"]["channels"], RECORDED["missing row"]["workers"]
    named = {WORKER_ERRORS: [each | {"CHANNEL_NAME": "it's"} for each in workers]}
    (finding,) = findings(paris(channel | {"Source_Server_Id": "1", "Channel_Name": "it's"}, **named))
    assert "START REPLICA FOR CHANNEL 'it''s'; on paris." in str(finding.fix)
    assert finding.server is not None
    assert "Can't find record in 't'" in finding.server


def test_the_worker_may_not_be_read() -> None:
    """The error is told by what the coordinator says, and the GRANT statement."""
    denied = recorded("duplicate value", **{WORKER_ERRORS: (1142, "SELECT command denied")})
    with options(pair().london, denied) as given:
        code, said = invoke("check", *given)
    words = " ".join(said.split())
    assert code == ExitCode.WARNED
    assert "GRANT SELECT ON performance_schema.replication_applier_status_by_worker TO 'reader'@'%'" in words
    assert "error 1062" in words
    assert "Coordinator stopped because" in words


NDB_ERROR = (
    "Worker 1 failed executing transaction 'ANONYMOUS' at source log binlog.000001, end_log_pos 1214; Could not "
    "execute Update_rows event on table shop.orders; Got error {} 'Unknown error code' from NDBCLUSTER, Error_code: "
    "1296; handler error No Error!; the event's source log binlog.000001, end_log_pos 1214"
)


@pytest.mark.parametrize(
    ("number", "why", "fix"),
    [
        (1610, "lacks what its function needs: a column in an image", "log the table with another binlog_type"),
        (1627, "blobs, which cannot be refreshed", "keep such tables out of transactions"),
        (1794, "needs ndb_applier_conflict_role, and it is NONE", "SET GLOBAL ndb_applier_conflict_role ="),
        (4009, "has lost its data nodes", "Ndb_number_of_ready_data_nodes"),
        (173, "error 1296). No change", "perror --ndb 173"),
    ],
)
def test_errors_of_the_engine(number: int, why: str, fix: str) -> None:
    """1296 stands for all; the number within it tells which. The texts are those of recorded appliers."""
    channel = {"Replica_SQL_Running": "No", "Last_SQL_Errno": "1296", "Last_SQL_Error": NDB_ERROR.format(number)}
    (finding,) = findings(paris(channel_of(1, **channel)))
    assert why in finding.sentence
    assert fix in str(finding.fix)
    assert [str(place) for place in finding.places] == ["paris: shop.orders"]


def test_transaction_ids_are_lacking() -> None:
    """The same number, if the function judges transactions."""
    channel = parse_replica_status(f"Replicate_Do_DB:\nLast_SQL_Errno: 1296\nLast_SQL_Error: {NDB_ERROR.format(1610)}")[
        0
    ]
    remedy = StoppedApplier(channel, "paris", "london").remedy(has_key=True, transactional=True)
    assert remedy.why == "the change of shop.orders lacks what its function needs: transaction ids"
    assert remedy.later == "set ndb_log_transaction_id = ON on london"
    assert remedy.fix.startswith("SET GLOBAL sql_replica_skip_counter = 1; START REPLICA ")


@pytest.mark.parametrize(
    ("error", "words", "fix"),
    [
        (13119, "The incident LOST_EVENTS occurred on the source", "SET GLOBAL sql_replica_skip_counter = 1; START"),
        (13121, "Relay log read failure", "SOURCE_LOG_FILE = 'binlog.000003', SOURCE_LOG_POS = 77; START REPLICA"),
        (1451, "Could not execute Delete_rows event on table shop.a; Cannot delete", "rows of shop.a that refer to it"),
        (9999, "Something else", "mend what the server says, then START REPLICA"),
    ],
)
def test_other_errors(error: int, words: str, fix: str) -> None:
    channel = parse_replica_status(
        f"Replicate_Do_DB:\nLast_SQL_Errno: {error}\nLast_SQL_Error: {words}\n"
        "Relay_Source_Log_File: binlog.000003\nExec_Source_Log_Pos: 77"
    )[0]
    assert fix in StoppedApplier(channel, "paris", "london").remedy(has_key=True, transactional=False).fix


@pytest.mark.parametrize(
    ("behind", "delay", "codes"),
    [("59", "0", []), ("60", "0", ["NDB-E112"]), ("100", "90", ["NDB-E105"]), ("150", "90", ["NDB-E105", "NDB-E112"])],
)
def test_a_lag(behind: str, delay: str, codes: list[str]) -> None:
    """From a minute on, beside what the applier waits as it is told to."""
    found = findings(paris(channel_of(1, Seconds_Behind_Source=behind, SQL_Delay=delay)))
    assert [each.code for each in found] == codes


def rising(**rises: int) -> Answer:
    """Return what answers with counters that rise by so much from one read to the next."""
    counts = dict.fromkeys(rises, 10)

    def answer() -> list[dict[str, str]]:
        rows = [{"Variable_name": name, "Value": str(value)} for name, value in counts.items()]
        counts.update({name: value + rises[name] for name, value in counts.items()})
        return rows

    return answer


def test_counters_that_rise() -> None:
    """Those that count conflicts, with what they count since the start; not what an applier receives."""
    counters = rising(Ndb_conflict_fn_max=3, Ndb_conflict_fn_old=0, Ndb_conflict_refresh_op_count=5, Ndb_api_wait=9)
    server = paris(channel_of(1), **{COUNTERS: counters})
    (finding,) = findings(server)
    assert finding.code == "NDB-E113"
    assert "there rose Ndb_conflict_fn_max by 3 to 13." in finding.sentence
    assert server.asked.count(COUNTERS) == 2


def test_counters_that_stand() -> None:
    """What was counted before is said, and is no finding."""
    server = paris(channel_of(1), **{COUNTERS: rising(Ndb_conflict_fn_max=0)})
    assert findings(server) == []
    with options(attrs.evolve(pair().london, asked=[]), server) as given:
        said = " ".join(invoke("check", *given)[1].split())
    assert "Conflicts that paris has counted since its server 2 started: Ndb_conflict_fn_max 10." in said


def test_counters_are_read_once_without_channels() -> None:
    """Nothing is applied there, so nothing is waited for."""
    server = paris()
    with options(server, names="paris") as given:
        conflict.check(server=given[1::2])
    assert server.asked.count(COUNTERS) == 1
