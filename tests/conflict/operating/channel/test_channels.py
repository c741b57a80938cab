"""Where channels go on from another SQL node, and what their logs lack: judged by recordings of channels that moved."""

import io
import json
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import conflict
from conflict.history.ingestion.epoch_table import scan_epoch_table
from conflict.history.ingestion.logged_epochs import scan_epochs
from conflict.judge.case import ConflictCase
from conflict.operating.channel.channels import channels_to
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.control_events import IncidentEvent, encode_incident
from ndb_formats.events.header import decode_format_description
from ndb_formats.events.rows_event import ROWS_EVENTS
from ndb_formats.writing.event_stream import EventStream
from tests.conflict.cli.commands import invoke
from tests.conflict.spliced_logs import part_of, spliced
from tests.corpora import RECORDINGS, SHARED, schema_file

BUNDLED = RECORDINGS / "operations/channel_failover/channel_failover_epoch_trans_type9"
IDS = {"A1": 1, "A2": 3, "B1": 2, "B2": 4}
STATUS_KINDS = ("channel_failover", "live_no_batching", "live_workers", "ring", "server_restart", "skip_counter")
CASES = sorted((SHARED / "conformance/operations/channel_failover").glob("*"))


def laid_out(case: Path, folder: Path, nodes: Collection[str] = tuple(IDS)) -> dict[str, Path]:
    """Return the binlog of each SQL node of a recording, in folders as servers have them."""
    found = {}
    for node in nodes:
        found[node] = folder / node / "binlog.000001"
        found[node].parent.mkdir()
        shutil.copy(case / f"{node}.binlog.000001", found[node])
    return found


def failovers(case: Path) -> list[dict[str, Any]]:
    """Return the steps at which channels moved."""
    steps = json.loads((case / "scenario.json").read_text())["steps"]
    return [step for step in steps if step.get("action") == "failover"]


def up_to(file: Path, epochs: int, server: int) -> None:
    """Cut a binlog after some of its epochs."""
    file.write_bytes(file.read_bytes()[: int(scan_epochs(server, [file]).stop[epochs - 1])])


def before_the_move(files: dict[str, Path], cluster: str, new: int) -> None:
    """Cut the logs of a cluster before the first epoch that came from the log of another SQL node."""
    for node in (f"{cluster}1", f"{cluster}2"):
        table = scan_epoch_table(IDS[node], [files[node]])
        up_to(files[node], int(table.applied.place[table.applied.server_id == new][0]), IDS[node])


def judged(case: Path, folder: Path) -> list[tuple[dict[str, Any], dict[str, Any], list[int]]]:
    """Return each move of a recording, what `channel` says from the logs before it, and which epochs came again."""
    found = []
    for number, step in enumerate(failovers(case)):
        (folder / str(number)).mkdir()
        files = laid_out(case, folder / str(number))
        cluster, new = step["applier"][0], IDS[step["source"]]
        table = scan_epoch_table(IDS[step["applier"]], [files[step["applier"]]])
        came = table.applied.epoch[table.applied.server_id == new].tolist()
        old = table.applied.epoch[table.applied.server_id == IDS[f"{step['source'][0]}1"]].tolist()
        before_the_move(files, cluster, new)
        answer = conflict.channel(*(file.parent for file in files.values()), to=new)
        (channel,) = answer["channels"]
        found.append((step, channel, sorted({*came} & {*old})))
    return found


@pytest.mark.corpus("conformance/operations/channel_failover")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_recorded_channels(case: Path, tmp_path: Path) -> None:
    """
    They went on after the epoch that the replica's log shows as the last one, at the place that the log tells.

    But for one, at whose move the table did not hold that epoch: it went on at the end of the log up to there, and the
    epoch came twice.
    """
    for step, channel, again in judged(case, tmp_path):
        assert channel["after_epoch"] == step["after_epoch"]
        assert channel["remarks"] == []
        recorded = (step["file"], step["position"])
        if not again:
            assert recorded == (channel["file"], channel["position"])
            continue
        assert again == [step["after_epoch"]]
        begins = channel["begins"]
        assert recorded == (begins["file"], begins["position"])
        (tmp_path / "then").mkdir()
        (file,) = laid_out(case, tmp_path / "then", [step["source"]]).values()
        count = scan_epochs(IDS[step["source"]], [file]).count_up_to(step["after_epoch"])
        up_to(file, count - 1, IDS[step["source"]])
        then = conflict.channel(file, to=IDS[step["source"]], after_epoch=step["after_epoch"])["channels"][0]
        assert recorded == (then["file"], then["position"])
        assert [each["lost"] for each in then["remarks"]] == [False]


@pytest.mark.corpus("conformance/operations/channel_failover")
def test_one_recorded_channel_applied_an_epoch_twice(tmp_path: Path) -> None:
    """So that the judgement above tells two ends apart."""
    found = []
    for number, case in enumerate(CASES):
        (tmp_path / str(number)).mkdir()
        found += [again for _, _, again in judged(case, tmp_path / str(number))]
    assert [len(each) for each in found if each] == [1]
    assert len(found) == 8


OPERATIONS = SHARED / "conformance/operations"
RECORDED = sorted(file.parent for kind in STATUS_KINDS for file in (OPERATIONS / kind).glob("*/scenario.json"))


@pytest.mark.corpus("conformance/operations")
@pytest.mark.parametrize("case", RECORDED, ids=lambda case: case.name)
def test_recorded_status_of_replicas(case: Path) -> None:
    """
    After the epoch that `mysql.ndb_apply_status` has, a channel goes on at the end that it has, in any log of any kind.

    What the replica's log shows is that epoch, or one before it from which on nothing left a trace.
    """
    loaded = ConflictCase.load(case)
    configuration = loaded.configuration()
    seen = 0
    for source, replica in ((each.name, other.name) for other, each in configuration.links.channels()):
        cluster = next(each for each in configuration.clusters if each.name == source)
        for server in cluster.servers:
            status = loaded.expected["clusters"][replica]["ndb_apply_status"]["rows"]
            row = next((each for each in status if each[0] == server.server_id), None)
            if row is None:
                continue
            _, epoch, _, _, end = row
            (asked,) = [
                each for each in channels_to(configuration, server.server_id, epoch).channels if each.replica == replica
            ]
            assert asked.position == end
            seen += 1
            (found,) = [
                each for each in channels_to(configuration, server.server_id).channels if each.replica == replica
            ]
            if found.through != server.server_id or found.after_epoch is None:
                continue  # the channel moved away from it
            table = scan_epoch_table(server.server_id, server.files)
            between = table.log.count_up_to(epoch) - table.log.count_up_to(found.after_epoch)
            assert 0 <= between <= 3
    assert seen


def test_positions_are_those_that_replicas_saw() -> None:
    """`start_pos` and `end_pos` of mysql.ndb_apply_status, for every epoch that was applied."""
    positions = {
        server: {each["epoch"]: (each["Position"], each["next_position"]) for each in table.to_pylist()}
        for server, table in (
            (server, scan_epoch_table(server, [BUNDLED / f"{node}.binlog.000001"]).to_arrow())
            for node, server in IDS.items()
        )
    }
    seen = 0
    for node in ("A1", "B1"):
        status = conflict.read_binlog(BUNDLED / f"{node}.binlog.000001", "mysql.ndb_apply_status").to_arrow()
        for row in (each["after"] for each in status.to_pylist()):
            server, epoch, name, start, end = row.values()
            if name:
                assert positions[server][epoch] == (start, end)
                seen += 1
    assert seen > 100


def test_rows_of_the_table() -> None:
    """All row changes are counted once, by the server that made them; foreign epochs have their rows."""
    file = BUNDLED / "B1.binlog.000001"
    table = scan_epoch_table(2, [file]).to_arrow()
    rows = [each for each in conflict.read_binlog(file).to_arrow().to_pylist() if each["table"] != "ndb_apply_status"]
    for origin in (1, 2, 3):
        mine = [each for each in table.to_pylist() if each["orig_server_id"] == origin]
        for name, operation in (("inserts", "WRITE"), ("updates", "UPDATE"), ("deletes", "DELETE")):
            logged = [each for each in rows if each["server_id"] == origin and each["operation"].startswith(operation)]
            assert sum(each[name] for each in mine) == len(logged) > 0, (origin, name)
    applied = scan_epoch_table(2, [file]).applied
    foreign = {(each["orig_server_id"], each["orig_epoch"]) for each in table.to_pylist() if each["orig_epoch"]}
    assert foreign == {*zip(applied.server_id.tolist(), applied.epoch.tolist(), strict=True)}
    assert [*dict.fromkeys(table["epoch"].to_pylist())] == scan_epochs(2, [file]).number.tolist()


def test_a_part_of_a_log_has_the_positions_of_the_whole(tmp_path: Path) -> None:
    """As its events carry them."""
    whole = scan_epoch_table(4, [BUNDLED / "B2.binlog.000001"])
    part = part_of(BUNDLED / "B2.binlog.000001", range(10, 20), 4, tmp_path / "binlog.000007")
    assert [scan_epoch_table(4, [part]).start(each) for each in range(10)] == [
        ("binlog.000007", whole.start(each)[1]) for each in range(10, 20)
    ]


def test_the_files_of_the_table(tmp_path: Path) -> None:
    """Both say the same; a file that is there is left."""
    sql, parquet = tmp_path / "index.sql", tmp_path / "index.parquet"
    given = ("channel", BUNDLED, "--to", 4, "--after-epoch", 3620657430541, "--sql", sql, "--parquet", parquet)
    assert invoke(*given)[0] == 0
    rows = pq.read_table(parquet).to_pylist()
    lines = [line.rstrip(",;") for line in sql.read_text().splitlines() if line.startswith("(")]
    assert lines == ["(" + ", ".join(repr(value or 0) for value in row.values()) + ")" for row in rows]
    code, said = invoke(*given)
    assert code == 2
    assert "exists already" in said


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """The binlogs of the bundled recording, those of cluster A up to the move of its channel."""
    found = laid_out(BUNDLED, tmp_path)
    before_the_move(found, "A", 4)
    return found


AFTER = 3620657430541  # where the bundled channel moved


def asked(*given: Path, **options: Any) -> tuple[dict[str, Any], str, bool]:
    """Return where a channel goes on in the log of server 4, what is said of it, and whether changes may be missing."""
    (channel,) = conflict.channel(*given, to=4, **options)["channels"]
    remarks = channel["remarks"]
    return channel, "; ".join(each["sentence"] for each in remarks), any(each["lost"] for each in remarks)


def lacking(file: Path, epochs: Collection[int]) -> None:
    """Take epochs out of the log of server 4."""
    count = len(scan_epochs(4, [file]))
    part_of(file, set(range(count)) - set(epochs), 4, file.with_name("part"))
    file.with_name("part").replace(file)


def test_first_epochs_that_were_purged(files: dict[str, Path]) -> None:
    """The log of the other SQL node tells whether anything is missing; without it, nothing does."""
    number = scan_epochs(4, [files["B2"]]).number.tolist()
    place = number.index(AFTER) + 1
    lacking(files["B2"], range(place))
    channel, said, lost = asked(*files.values())
    assert "begins with epoch" in said
    assert "the log of server 2 has it" in said
    assert not lost
    assert channel["following_epochs"] == len(number) - place
    assert asked(files["B2"], after_epoch=AFTER)[2]
    lacking(files["B2"], range(3))
    channel, said, lost = asked(*files.values())
    assert f"3 of the epochs that follow (epochs {number[place]} to {number[place + 2]}) are in the log of" in said
    assert lost


def test_an_epoch_that_the_other_node_alone_logged(files: dict[str, Path]) -> None:
    """It goes on after the one before; later gaps are named."""
    log = scan_epoch_table(4, [files["B2"]])
    place = log.log.number.tolist().index(AFTER)
    expected = log.stop(place - 1)
    lacking(files["B2"], [place, place + 4])
    channel, said, lost = asked(*files.values())
    assert (channel["file"], channel["position"]) == expected
    assert f"lacks epoch {AFTER}" in said
    assert f"1 of the epochs that follow (epoch {log.log.number[place + 4]}) are in the log of server 2 alone" in said
    assert lost


def test_a_log_that_ends_early(files: dict[str, Path]) -> None:
    """Before the last epoch, after it, and torn."""
    number = scan_epochs(4, [files["B2"]]).number.tolist()
    whole = files["B2"].read_bytes()
    up_to(files["B2"], number.index(AFTER), 4)
    channel, said, lost = asked(*files.values())
    assert "before epoch" in said
    assert channel["position"] == files["B2"].stat().st_size
    assert lost  # of what the other SQL node logged
    files["B2"].write_bytes(whole[:-100])
    assert "cannot be read beyond epoch" in asked(*files.values())[1]
    assert "cannot be read beyond epoch" in asked(files["B2"], after_epoch=AFTER)[1]


def test_an_incident_that_follows(files: dict[str, Path]) -> None:
    """It is said; one that is passed is not."""
    body = encode_incident(IncidentEvent(1, "mysqld startup"))
    place = scan_epochs(4, [files["B2"]]).number.tolist().index(AFTER)
    whole = files["B2"].read_bytes()
    for after, follows in ((place - 3, False), (place + 3, True)):
        files["B2"].write_bytes(whole)
        files["B2"].write_bytes(spliced(files["B2"], [(EventType.INCIDENT_EVENT, 4, body)], after=after))
        _, said, lost = asked(*files.values())
        assert ("13119" in said) is lost is follows


def without_last_change(file: Path, start: int, stop: int) -> None:
    """Take the last rows event before a position out of a binlog, of those after another one."""
    events = list(read_events(file))
    inside = [each for each in events if start <= each.position < stop and each.type in ROWS_EVENTS]
    out = io.BytesIO()
    stream = EventStream(out)
    for event in events:
        if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
            stream.start(event.header, decode_format_description(event.body))
        elif event is not inside[-1]:
            stream.put(event.header, event.body)
    file.write_bytes(out.getvalue())


def test_logs_that_differ(files: dict[str, Path]) -> None:
    """An epoch that follows has a change less than in the other log; of one before, nothing is said."""
    log = scan_epochs(4, [files["B2"]])
    place = log.number.tolist().index(AFTER)
    whole = files["B2"].read_bytes()
    for epoch, follows in ((place - 2, False), (place + 2, True)):
        files["B2"].write_bytes(whole)
        without_last_change(files["B2"], int(log.start[epoch]), int(log.stop[epoch]))
        code, said = invoke("channel", *(file.parent for file in files.values()), "--to", 4)
        assert code == (3 if follows else 0), said
        assert (
            f"hold other changes in the log of server 4 than in that of server 2; the first is {log.number[epoch]}"
            in said
        ) is follows


def test_what_is_refused(files: dict[str, Path]) -> None:
    """A server without a log, and logs of one cluster alone without the last epoch."""
    with pytest.raises(conflict.ConfigurationError, match=r"no log of server 9 .* 1, 3; .* 2, 4"):
        conflict.channel(*files.values(), to=9)
    with pytest.raises(conflict.ConfigurationError, match="two clusters"):
        conflict.channel(files["B1"], files["B2"], to=4)
    with pytest.raises(conflict.ConfigurationError, match="give a result"):
        conflict.channel(to=4)
    with pytest.raises(conflict.ConfigurationError, match="stands alone"):
        conflict.channel("run.toml", files["B2"], to=4)


def test_a_replica_whose_log_names_no_epoch(files: dict[str, Path]) -> None:
    """Nothing tells where its channel goes on, unless the last epoch is given."""
    for node in ("A1", "A2"):
        table = scan_epoch_table(IDS[node], [files[node]])
        up_to(files[node], int(table.applied.place[0]), IDS[node])
    code, said = invoke("channel", *files.values(), "--to", 4)
    assert code == 3
    assert "names no epoch of this cluster" in said
    assert "CHANGE REPLICATION SOURCE" not in said
    channel, _, _ = asked(*files.values(), after_epoch=AFTER)
    assert channel["position"] == 71313  # recorded


def test_a_result_and_its_end(tmp_path: Path) -> None:
    """The same from a result, up to the epoch at which it stops; and from its run."""
    case = ConflictCase.load(BUNDLED)
    cluster = case.configuration().clusters[0]
    table = scan_epoch_table(1, cluster.servers[0].files)
    last = int(table.log.number[int(table.applied.place[table.applied.server_id == 4][0]) - 1])
    schema, database = schema_file(BUNDLED, tmp_path), case.scenario["database"]
    options = {"schema": schema, "conflict_fn": {f"{database}.*": "NDB$EPOCH_TRANS()"}, "primary": "server1"}
    result = conflict.resolve(BUNDLED, stop_epoch={"server1": last}, **options)
    for given in (result, result.folder.uri):
        (channel,) = conflict.channel(given, to=4)["channels"]
        assert (channel["after_epoch"], channel["position"], channel["through"]) == (AFTER, 71313, 2)
