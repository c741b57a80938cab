"""Conflict functions that are found by trial, beside those under which clusters were recorded."""

import json
from pathlib import Path

import attrs
import pytest

import conflict
from conflict.api.models import simulate
from conflict.api.runs import draft_of
from conflict.cli.refusals import ExitCode
from conflict.config.additions import Additions
from conflict.config.configuration import Configuration
from conflict.config.run_file import load_run_file
from conflict.discovery.draft import draft_run
from conflict.errors import ConfigurationError
from conflict.judge.case import ConflictCase, find_recordings
from conflict.results.doubts import is_contradicted
from conflict.rules.functions import DEFAULT_GCI_BITS, ConflictFunction, parse_conflict_function
from conflict.whatif.in_force.found import find_functions
from conflict.whatif.in_force.log_starts import with_log_starts
from conflict.whatif.in_force.trials import Assignment, Trials
from ndb_formats.binlog_reader import read_events
from tests.conflict.cli.commands import invoke
from tests.conflict.growing import Recording, commits
from tests.corpora import DEMO, RECORDINGS, SHARED

# Recordings in which changes of both tables meet often.
BUSY = [
    *("epoch/hot_3020_type9", "epoch/random_28_type8", "epoch2/random_27_type7", "epoch2_trans/hot_3020_type6"),
    *("epoch_trans/hot_3020_type8", "max/hot_3021_type7", "max_delete_win/random_1028_type8"),
    *("max_ins/random_1023_type3", "old/random_26_type6"),
]
# Functions by table, and primaries, that are one in all recordings.
Recorded = dict[str, ConflictFunction]


def recorded(configuration: Configuration) -> Recorded:
    """Return the functions under which clusters were recorded, by table; those that the server refuses are none."""
    setups = (setup for tables in configuration.setups().values() for setup in tables.items())
    return {name: setup.function for name, setup in setups if setup.function is not None}


def fits(configuration: Configuration) -> bool | None:
    """Whether the recorded function of each table is one that was found; None if none was found."""
    stated, found = recorded(configuration), find_functions(Assignment().set_up(configuration))
    if found is None:
        return None
    told = {table: {function, *found.others.get(table, ())} for table, function in found.functions.items()}
    return all(stated.get(table) in own for table, own in told.items())


def case(path: Path) -> Configuration:
    """Return what a recording says of its clusters."""
    return ConflictCase.load(path).configuration()


@pytest.mark.parametrize("name", BUSY)
def test_the_recorded_function_is_found(name: str) -> None:
    """Where changes meet often, every table that has a function has one that fits, and the recorded one does."""
    assert fits(case(RECORDINGS / "conflict" / name)) is True


def usual(path: Path) -> bool:
    """Whether functions have no extra GCI bits of their own, and roles stay."""
    try:
        functions = recorded(case(path)).values()
    except ConfigurationError:  # a recording of a text that no server takes
        return False
    return all(each.gci_bits == DEFAULT_GCI_BITS for each in functions)


@pytest.mark.slow
@pytest.mark.corpus("conformance")
def test_shared_everyday_recordings() -> None:
    """Whatever is chosen, the recorded function is that, or is named as one that fits as well."""
    found = {}
    for each in find_recordings(SHARED / "conformance" / "everyday"):
        if usual(each.path) and not each.case.startswith("everyday/none") and "mixed" not in each.case:
            found[each.case] = fits(case(each.path))
    assert [name for name, right in found.items() if right is False] == []
    assert any(found.values())


@pytest.mark.slow
@pytest.mark.corpus("conformance")
def test_shared_recordings() -> None:
    """Whatever is found in any recording, the recorded functions fit; and in most of them something is found."""
    found = {
        each.case: fits(case(each.path))
        for each in find_recordings(SHARED / "conformance" / "conflict")
        if usual(each.path)
    }
    assert [name for name, right in found.items() if right is False] == []
    assert sum(right is True for right in found.values()) > len(found) / 2


def bare_schema(folder: Path, target: Path) -> Path:
    """Write the tables of a recording, as a user has them; return the file."""
    scenario = json.loads((folder / "scenario.json").read_text("utf-8"))
    creates = (text for each in scenario["tables"] for text in (each.get("ex"), each["create"]) if text)
    target.write_text(f"USE {scenario['database']};\n" + "".join(f"{text};\n" for text in creates), "utf-8")
    return target


@pytest.mark.slow
def test_logs_that_start_in_the_middle(tmp_path: Path) -> None:
    """A function that judges transactions is found on them, too: the reference engine tries what the other cannot."""
    recording = RECORDINGS / "lives" / "live_3_epoch2_trans_type7"
    for name in "AB":
        file = recording / f"{name}.binlog.000001"
        data, ends = file.read_bytes(), commits(file)
        head = next(each.position for each in read_events(file) if each.type.name.endswith("GTID_LOG_EVENT"))
        (tmp_path / name).mkdir()
        rest = data[next(each for each in ends if each >= 0.4 * len(data)) :]
        (tmp_path / name / file.name).write_bytes(data[:head] + rest)
    schema = bare_schema(recording, tmp_path / "schema.sql")
    found = draft_of([tmp_path / "A", tmp_path / "B"], Additions(schema=schema), tmp_path / "run.toml").shown
    assert found is not None
    assert {table: each.short for table, each in found.functions.items()} == {
        "lv.t1": "NDB$EPOCH2_TRANS()",
        "lv.t2": "NDB$EPOCH2_TRANS()",
    }
    assert found.primary == "A"
    assert "In the first 128 KiB of each log, 0 of" in found.sentences[1]


def test_what_else_fits_is_said_in_the_result(tmp_path: Path) -> None:
    """Counters may be those of another function: the exit code says that there is something to read."""
    folder = RECORDINGS / "conflict" / "max" / "hot_3021_type7"
    schema = bare_schema(folder, tmp_path / "schema.sql")
    result = conflict.resolve(*sorted(folder.glob("*.binlog.*")), schema=schema, out=tmp_path / "result")
    (note,) = result.run["definition_notes"]
    assert note.startswith(
        "Conflict functions were found by trial, and others fit what the binlogs show as well: NDB$MAX"
    )
    code, _ = invoke("resolve", *sorted(folder.glob("*.binlog.*")), "--schema", schema, "--out", tmp_path / "again")
    assert code == ExitCode.WARNED


def test_a_function_that_was_in_force_is_refused_by_no_policy(tmp_path: Path) -> None:
    """The manual advises against it, but the binlogs show it."""
    model = {"seconds": 4, "seed": 5, "function": "NDB$MAX_DEL_WIN_INS(x)", "recordcount": 20, "binlog_type": 8}
    workload = {"transactions_per_second": 100, "updateproportion": 0.8, "insertproportion": 0.1}
    made = tmp_path / "made"
    simulate(
        {**model, "workload": {**workload, "deleteproportion": 0.1, "columnsperupdate": "all"}}, write_binlogs=made
    )
    result = conflict.resolve(made / "A", made / "B", schema=made / "schema.sql", out=tmp_path / "result")
    assert any("NDB$MAX" in str(own) for own in result.run["configuration"]["functions"].values())
    assert not is_contradicted(result.run)


def test_the_demo(tmp_path: Path) -> None:
    """From its binlogs and schema alone, the draft has the rows of the demo's own run file."""
    draft = draft_of([DEMO], Additions(schema=DEMO / "schema.sql"), tmp_path / "run.toml")
    stated = load_run_file(DEMO / "run.toml").configuration.replication

    def named(configuration: Configuration) -> set[tuple[str, int, str]]:
        rows = configuration.replication
        return {(row.table_name, row.server_id, row.conflict_fn) for row in rows if row.conflict_fn is not None}

    assert named(draft.run.configuration) == {
        (row.table_name, row.server_id, row.conflict_fn) for row in stated if row.conflict_fn is not None
    }
    assert draft.shown is not None
    assert draft.shown.primary == "server1"
    assert draft.shown.sentences[0] in draft.text


def test_one_of_several_columns_is_found(tmp_path: Path) -> None:
    """In a simulation whose table has five columns to compare, and whose schema names no database."""
    workload = {"transactions_per_second": 100, "updateproportion": 0.9, "readproportion": 0.0, "insertproportion": 0.1}
    model = {"seconds": 4, "seed": 5, "function": "NDB$MAX(x)", "recordcount": 20, "binlog_type": 7}
    made = tmp_path / "made"
    simulate({**model, "workload": {**workload, "deleteproportion": 0.0}}, write_binlogs=made)
    draft = draft_of([made / "A", made / "B"], Additions(schema=made / "schema.sql"), tmp_path / "run.toml")
    assert draft.shown is not None
    (function,) = draft.shown.functions.values()
    fitting = {str(function), *map(str, next(iter(draft.shown.others.values()), ()))}
    assert "NDB$MAX(x)" in fitting
    assert all(text.endswith("(x)") for text in fitting)


def test_what_the_user_says_is_not_looked_for(tmp_path: Path) -> None:
    """Functions, rows of mysql.ndb_replication, or a primary."""
    for said in ({"functions": {"cft.t1": "NDB$MAX(x)"}}, {"ndb_replication": DEMO / "ndb_replication.csv"}):
        additions = Additions(schema=DEMO / "schema.sql", **said)  # type: ignore[arg-type]
        assert draft_of([DEMO], additions, tmp_path / "run.toml").shown is None
    given = Additions(schema=DEMO / "schema.sql", primary="server2")
    assert draft_of([DEMO], given, tmp_path / "run.toml").shown is None


def test_others_that_fit_are_named(tmp_path: Path) -> None:
    """Which of several functions was in force, the binlogs leave open."""
    names = ("NDB$MAX(x)", "NDB$MAX_INS(x)", "NDB$MAX_DEL_WIN_INS(x)")
    first, *others = map(parse_conflict_function, names)
    bare = draft_run([DEMO], Additions(schema=DEMO / "schema.sql"), tmp_path / "run.toml")

    def find(configuration: Configuration) -> object:
        assert configuration.replication == bare.run.configuration.replication
        found = find_functions(configuration)
        assert found is not None
        return attrs.evolve(found, functions={"cft.t1": first}, primary=None, others={"cft.t1": others})

    draft = draft_run([DEMO], Additions(schema=DEMO / "schema.sql"), tmp_path / "run.toml", find)  # type: ignore[arg-type]
    assert 'conflict_fn = "NDB$MAX(x)"    # or NDB$MAX_INS(x) or NDB$MAX_DEL_WIN_INS(x)' in draft.text


class TestLogStarts:
    """The first bytes of logs, from the first second that all of them hold."""

    def test_logs_that_begin_together(self, tmp_path: Path) -> None:
        """The events that are read are the first ones of each log; what is cut off is the last one."""
        whole = load_run_file(DEMO / "run.toml").configuration
        for mine, theirs in zip(with_log_starts(whole, 3000, tmp_path).clusters, whole.clusters, strict=True):
            data, full = (each.log.files[0].read_bytes() for each in (mine, theirs))
            assert full.startswith(data)
            assert 3000 < len(data) < 4000  # with what stands before the first transaction

    def test_a_log_that_begins_earlier(self, tmp_path: Path) -> None:
        """It is read from the second on in which the other one begins."""
        case = RECORDINGS / "conflict" / "epoch" / "random_28_type8"
        whole = ConflictCase.load(case).configuration()
        first, second = whole.clusters
        data, ends = second.log.files[0].read_bytes(), commits(second.log.files[0])
        head = next(
            each.position for each in read_events(second.log.files[0]) if each.type.name.endswith("GTID_LOG_EVENT")
        )
        later = tmp_path / "later.000001"
        later.write_bytes(data[:head] + data[ends[len(ends) // 2] :])
        cut = attrs.evolve(second, servers=(attrs.evolve(second.servers[0], files=(later,)),))
        (tmp_path / "starts").mkdir()
        found = with_log_starts(attrs.evolve(whole, clusters=(first, cut)), 1 << 20, tmp_path / "starts")
        begin = min(each.header.timestamp for each in read_events(later) if each.type.name == "QUERY_EVENT")
        seconds = [
            [each.header.timestamp for each in read_events(log.log.files[0]) if each.type.name == "QUERY_EVENT"]
            for log in found.clusters
        ]
        assert min(seconds[0]) >= begin
        assert min(seconds[1]) == begin
        assert len(seconds[0]) < sum(each.type.name == "QUERY_EVENT" for each in read_events(first.log.files[0]))


def test_why_functions_are_not_tried(tmp_path: Path) -> None:
    """Logs that cannot be read leave the reason."""
    recording = Recording.copy(DEMO, tmp_path / "demo")
    (tmp_path / "trials").mkdir()
    trials = Trials(recording.configuration, str(tmp_path / "trials"))
    assert trials.run(Assignment()) is not None
    assert trials.untried == []
    for file in recording.files.values():
        file.write_bytes(b"no binlog")
    again = Trials(recording.configuration, str(tmp_path / "trials"))
    assert again.run(Assignment()) is None
    (why,) = again.untried
    assert "binlog" in str(why)
