"""A History grows past statements: what several ingests give is what one gives, or they are refused."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer, Span
from conflict.engine.ledger.careful import CareKind
from conflict.errors import ConfigurationError, HistoryError
from conflict.history import run as run_module
from conflict.history.grid.folder import Folder
from conflict.history.grid.kept_outlines import earlier_outlines, known_or_made
from conflict.history.grid.manifest import load_manifest
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.replication_table import ReplicationRow
from conflict.runs.ingest_job import ingest
from conflict.runs.settled import finished_history
from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.file_outline import outlines_of
from ndb_formats.constants import EventType
from ndb_formats.events.query_event import decode_query
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.changing_logs import FIRST, KEY, MORE, SCHEMA, SERVER_IDS, SETTINGS, VALUE, Columns, Maker, Side
from tests.conflict.engine.columnar.both_engines import binlogs_by_kernels, binlogs_by_reference
from tests.conflict.growing import commits, results, rows_by_key, written
from tests.conflict.random_histories import USUAL_ROLES
from tests.examples import examples

# A statement, and the columns of the tables that it changes; None for a table that is gone.
Statement = tuple[str, dict[str, Columns | None]]
WIDER: Columns = (*FIRST, "w INT")
WIDEST: Columns = (*FIRST, *(f"w{number} INT" for number in range(6)))  # nine columns


def created(name: str, columns: Columns = FIRST) -> Statement:
    """Return the creation of a table."""
    return f"CREATE TABLE {name} ({', '.join(columns)})", {name: columns}


DROPPED: Statement = ("DROP TABLE other", {"other": None})
RENAMED: Statement = ("RENAME TABLE other TO third", {"other": None, "third": FIRST})
CONTINUED: dict[str, list[Statement]] = {
    "a table": [created("zz")],
    "two tables, the first by name last": [created("zz"), created("aa")],
    "a table with a function": [created("other_new")],
    "dropped": [DROPPED],
    "dropped and created": [DROPPED, created("other")],
    "dropped and created with another column": [DROPPED, created("other", WIDER)],
    "truncated": [("TRUNCATE TABLE judged", {})],
    "renamed": [RENAMED],
    "renamed and created": [RENAMED, created("other")],
    "exchanged": [
        created("copy", WIDER),
        ("RENAME TABLE other TO old, copy TO other", {"copy": None, "old": FIRST, "other": WIDER}),
        ("DROP TABLE old", {"old": None}),
    ],
    "a column": [("ALTER TABLE judged ADD COLUMN w INT", {"judged": WIDER})],
    "columns of another byte of bitmaps": [
        (f"ALTER TABLE judged {', '.join(f'ADD COLUMN w{number} INT' for number in range(6))}", {"judged": WIDEST})
    ],
    "a column by copying": [("ALTER TABLE other ADD COLUMN w INT, ALGORITHM=COPY", {"other": WIDER})],
    "a column dropped": [("ALTER TABLE other DROP COLUMN v", {"other": (KEY, VALUE)})],
    "an index": [("ALTER TABLE other ADD INDEX (v)", {})],
    "a foreign key": [("ALTER TABLE other ADD FOREIGN KEY (k) REFERENCES judged (k)", {})],
    "another engine": [("ALTER TABLE other ENGINE=InnoDB", {"other": None})],
    "a database": [("DROP DATABASE d", {"judged": None, "other": None}), ("CREATE DATABASE d", {}), created("new")],
}
REFUSED: dict[str, list[Statement]] = {
    "a column between others": [("ALTER TABLE other ADD COLUMN w INT AFTER k", {"other": (KEY, "w INT", VALUE, MORE)})],
    "another type": [("ALTER TABLE other MODIFY v BIGINT", {"other": (KEY, VALUE, "v BIGINT")})],
    "another name": [("ALTER TABLE other CHANGE v w INT", {"other": (KEY, VALUE, "w INT")})],
}


@attrs.define
class Scripted(Maker):
    """Writes logs with given statements."""

    script: list[Statement] = attrs.field(factory=list)

    def _statement(self, tables: dict[str, Columns], _owned: Sequence[str]) -> str:
        text, changed = self.script.pop(0)
        for name, columns in changed.items():
            if columns is None:
                del tables[name]
            else:
                tables[name] = columns
        return text


class SpacedSide(Side):
    """A cluster that leaves a number between the epochs before and after a statement."""

    def define(self, statement: str, tables: dict[str, Columns], server_id: int) -> None:
        """Log a statement."""
        self.close(1)
        super().define(statement, tables, server_id)


@attrs.frozen
class Logs:
    """Two binlogs with statements, which can be as they were at some time."""

    configuration: Configuration
    whole: dict[str, bytes]
    ends: dict[str, list[int]]

    @classmethod
    def write(
        cls,
        folder: Path,
        seed: int,
        setting: int,
        script: Sequence[Statement],
        kind: type[Side] = SpacedSide,
        *,
        under_way: bool = True,
    ) -> Logs:
        """Write the logs; the statements are run on A, at even distances, while changes are under way or not."""
        maker = Scripted(Random(seed), {name: kind(name) for name in SERVER_IDS}, script=list(script))
        for _ in range(len(script) + 1):
            for _ in range(100 // (len(script) + 1)):
                maker.step()
            if maker.script:
                if not under_way:
                    maker.take_all()
                maker.define(maker.sides["A"])
                if not under_way:
                    maker.take_all()
        maker.take_all()
        clusters = []
        for side, role in zip(maker.sides.values(), USUAL_ROLES, strict=True):
            side.close(1)
            path = side.write(folder / f"{side.name}.000001")
            clusters.append(ClusterConfiguration(side.name, (LoggingServer(side.server_id, (path,)),), role))
        rows = tuple(ReplicationRow("d", table, server, 7, function) for table, server, function in SETTINGS[setting])
        schema = parse_schema(SCHEMA, database="d")
        configuration = Configuration(tuple(clusters), schema, rows, span=Span(empty=True))
        files = {each.name: each.log.files[0] for each in clusters}
        whole = {name: file.read_bytes() for name, file in files.items()}
        return cls(configuration, whole, {name: _ends(file) for name, file in files.items()})

    def ingest(self, history: Folder, shares: dict[str, float]) -> None:
        """Ingest what the logs are when they have a share of their transactions and statements."""
        for name, file in self.files.items():
            ends = self.ends[name]
            stop = ends[int(shares[name] * (len(ends) - 1))]
            file.write_bytes(self.whole[name][:stop])
        ingest(in_process, make_run(self.configuration), history, buckets=2, segment_bytes=2000)

    def refused(self, history: Folder, shares: dict[str, float]) -> str:
        """Do as `ingest`; return why that is refused, and nothing if it is not."""
        try:
            self.ingest(history, shares)
        except HistoryError as error:
            return str(error)
        return ""

    @property
    def before(self) -> dict[str, float]:
        """The shares of what stands before the first statement."""
        found = {}
        for name, ends in self.ends.items():
            known = set(commits(self.files[name]))
            place = next(place for place, end in enumerate(ends) if end not in known)
            assert place > 0
            found[name] = (place - 0.5) / (len(ends) - 1)
        return found

    @property
    def files(self) -> dict[str, Path]:
        """The binlog of each cluster."""
        return {cluster.name: cluster.log.files[0] for cluster in self.configuration.clusters}

    def found(self, history: Folder, out: Folder) -> tuple[dict[Any, Any], dict[str, Any]]:
        """Return what a History holds, and what it gives with the whole logs."""
        resolved = results(make_run(self.configuration), history, out)
        return rows_by_key(history), {**resolved, "summary": resolved["summary"].to_json()}


ALL = dict.fromkeys(SERVER_IDS, 1.0)


def _ends(file: Path) -> list[int]:
    """Return where transactions and statements end."""
    events = (event for event in read_events(file) if event.type is EventType.QUERY_EVENT)
    return [event.end for event in events if decode_query(event.body).statement != "BEGIN"]


@pytest.mark.parametrize("name", CONTINUED)
@given(
    seed=st.integers(0, 2**32 - 1),
    setting=st.integers(0, len(SETTINGS) - 1),
    nights=st.lists(st.fixed_dictionaries({name: st.floats(0, 1) for name in SERVER_IDS}), min_size=1, max_size=3),
)
@example(0, 2, [{"A": 1.0, "B": 0.0}])  # the table is created anew where its values are not compared
@examples(2)
def test_several_ingests_give_what_one_gives(name: str, seed: int, setting: int, nights: list[dict[str, float]]):
    """The same rows of each key, and the same result, wherever the logs ended; a refusal if values are missing."""
    with tempfile.TemporaryDirectory() as folder:
        logs = Logs.write(Path(folder), seed, setting, CONTINUED[name])
        once, grown = Folder(f"{folder}/once"), Folder(f"{folder}/grown")
        logs.ingest(once, ALL)
        expected = logs.found(once, Folder(f"{folder}/of-once"))
        seen = dict.fromkeys(SERVER_IDS, 0.0)
        for night in [*nights, ALL]:
            seen = {each: max(share, night[each]) for each, share in seen.items()}
            refusal = logs.refused(grown, seen)
            if "did not hold it yet" in refusal:  # a cluster was read past a statement that the other's log then lacked
                assert CONTINUED[name][0][0].startswith(("TRUNCATE", "ALTER"))
                return
            if refusal:  # rows of the copy were read before it took the place of a table whose values are compared
                held = load_manifest(grown)
                assert held is not None
                assert "d.copy" in held.types.keys() - held.resolve_columns.keys()
                assert "keeps no column of d.copy for a conflict function, not column x" in refusal
                return
        assert logs.found(grown, Folder(f"{folder}/of-grown")) == expected


@pytest.mark.parametrize(("name", "table"), [("renamed and created", "d.other (2)"), ("exchanged", "d.copy")])
def test_a_history_that_lacks_a_column_of_a_table_to_come(
    name: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Values that a cluster will compare once it has the table are asked for when rows are added, not before."""
    logs = Logs.write(tmp_path, 0, 2, CONTINUED[name])
    old, new = Folder(str(tmp_path / "old")), Folder(str(tmp_path / "new"))
    night = {"A": 1.0, "B": 0.0}
    with monkeypatch.context() as earlier:
        earlier.setattr(run_module, "_awaited_columns", lambda *_: {})
        logs.ingest(old, night)
    logs.ingest(new, night)
    held = [load_manifest(history) for history in (old, new)]
    assert [each is not None and table in each.resolve_columns for each in held] == [False, True]
    run = make_run(logs.configuration)
    assert finished_history(old, run) == held[0]
    found, expected = (results(run, each, Folder(f"{each.uri}-result")) for each in (old, new))
    assert found == expected
    assert f"keeps no column of {table} for a conflict function, not column x" in logs.refused(old, ALL)


def test_a_run_whose_logs_are_longer_resolves_a_history(tmp_path: Path):
    """Their newer tables and columns have no rows in it."""
    logs = Logs.write(tmp_path, 7, 1, [created("aa"), CONTINUED["a column"][0]])
    history = Folder(str(tmp_path / "history"))
    logs.ingest(history, logs.before)
    held = load_manifest(history)
    assert held is not None
    assert list(held.tables) == ["d.judged", "d.other"]
    shorter = make_run(logs.configuration)
    for name, file in logs.files.items():
        file.write_bytes(logs.whole[name])
    run = make_run(logs.configuration)
    assert (len(shorter.numbers.tables), len(run.numbers.tables)) == (2, 3)
    assert finished_history(history, run) == held
    found, expected = (
        results(each, history, Folder(str(tmp_path / f"out-{name}"))) for name, each in (("1", run), ("2", shorter))
    )
    assert {**found, "summary": 0} == {**expected, "summary": 0}


# Statements that change columns: whether older changes fit the table afterwards.
ALTERED: dict[str, tuple[Columns, bool]] = {
    "CHANGE x y BIGINT UNSIGNED NOT NULL": ((KEY, "y BIGINT UNSIGNED NOT NULL", MORE), True),
    "ADD COLUMN w INT": (WIDER, True),
    "DROP COLUMN v": ((KEY, VALUE), True),
    "DROP COLUMN x": ((KEY, MORE), False),
    "ADD COLUMN w INT NOT NULL": ((*FIRST, "w INT NOT NULL"), False),
    "MODIFY v BIGINT": ((KEY, VALUE, "v BIGINT"), False),
    "ADD COLUMN w INT AFTER x": ((KEY, VALUE, "w INT", MORE), False),
}


@pytest.mark.parametrize("statement", ALTERED)
@pytest.mark.parametrize("setting", range(len(SETTINGS)))
def test_changes_that_meet_another_form(statement: str, setting: int, tmp_path: Path):
    """Kernels agree with the reference engine, which decides alone where changes under way do not fit."""
    columns, fits = ALTERED[statement]
    script: list[Statement] = [(f"ALTER TABLE judged {statement}", {"judged": columns})]
    for under_way in (False, True):
        logs = Logs.write(tmp_path, 7, setting, script, under_way=under_way)
        run = make_run(logs.configuration)
        if fits or not under_way:
            assert binlogs_by_kernels(run, buckets=2, segment_bytes=2000) == binlogs_by_reference(run)
        else:
            with pytest.raises(ConfigurationError, match=CareKind.OTHER_FORM.value.what):
                binlogs_by_kernels(run, buckets=2, segment_bytes=2000)


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_cannot_be_continued(name: str, tmp_path: Path):
    """The refusal says what has changed and what to do, and the History stays as it was."""
    logs = Logs.write(tmp_path, 7, 1, REFUSED[name])
    history = Folder(str(tmp_path / "history"))
    logs.ingest(history, logs.before)
    before = written(history), load_manifest(history)
    words = r"its table d\.other is \(k int, x bigint unsigned, v int, primary key k\), not .*into another folder"
    with pytest.raises(HistoryError, match=words):
        logs.ingest(history, ALL)
    assert (written(history), load_manifest(history)) == before
    again = Folder(str(tmp_path / "again"))
    logs.ingest(again, ALL)
    assert load_manifest(again) is not None


def test_the_statements_of_a_history_must_be_known(tmp_path: Path):
    """A run without them would lack what they do to later rows."""
    logs = Logs.write(tmp_path, 7, 1, CONTINUED["truncated"])
    first, second = logs.configuration.clusters
    files, whole, ends = (tmp_path / "A.000001", tmp_path / "A.000002"), logs.whole["A"], logs.ends["A"]
    head, cut = whole[: next(read_events(files[0])).end], ends[len(ends) * 3 // 4]
    files[0].write_bytes(whole[:cut])
    files[1].write_bytes(head + whole[cut:])

    def run_of(*given: Path) -> Run:
        clusters = (attrs.evolve(first, servers=(LoggingServer(SERVER_IDS["A"], given),)), second)
        return make_run(attrs.evolve(logs.configuration, clusters=clusters))

    history = Folder(str(tmp_path / "history"))
    held = ingest(in_process, run_of(*files), history, buckets=2).manifest
    assert held.steps == {"A": 1, "B": 1}
    words = "holds 1 changes of definitions of cluster A, and the binlogs that are given have 0 of them"
    with pytest.raises(HistoryError, match=words):
        ingest(in_process, run_of(files[1]), history)
    with pytest.raises(HistoryError, match=words):
        finished_history(history, run_of(files[1]))


@pytest.mark.parametrize("name", ["truncated", "renamed", "dropped and created", "a column", "a table with a function"])
def test_purged_binlogs_need_not_be_given(name: str, tmp_path: Path):
    """What their statements did is in the History: later nights have the same rows and results as with all files."""
    logs = Logs.write(tmp_path, 7, 1, CONTINUED[name])
    first, second = logs.configuration.clusters
    whole, ends = logs.whole["A"], logs.ends["A"]
    old, new = tmp_path / "A.000001", tmp_path / "A.000002"
    head, cut, end = whole[: next(read_events(old)).end], ends[len(ends) * 3 // 4], ends[len(ends) * 7 // 8]
    once, history = Folder(str(tmp_path / "once")), Folder(str(tmp_path / "history"))

    def run_of(*given: Path) -> Run:
        clusters = (attrs.evolve(first, servers=(LoggingServer(SERVER_IDS["A"], given),)), second)
        configuration, held = attrs.evolve(logs.configuration, clusters=clusters), load_manifest(history)
        if held is None:
            return make_run(configuration)
        earlier = {"A": earlier_outlines(held.outlines, held.files["A"], given)}
        return make_run(configuration, None, known_or_made(held.outlines, outlines_of), earlier)

    old.write_bytes(whole[:cut])
    new.write_bytes(head + whole[cut:])
    whole_run = run_of(old, new)
    ingest(in_process, whole_run, once, buckets=2)
    expected = rows_by_key(once), results(whole_run, once, Folder(str(tmp_path / "of-once")))
    new.write_bytes(head + whole[cut:end])
    ingest(in_process, run_of(old, new), history, buckets=2)
    old.unlink()
    for stop in (ends[len(ends) * 15 // 16], len(whole)):
        new.write_bytes(head + whole[cut:stop])
        ingest(in_process, run_of(new), history)
    found = rows_by_key(history), results(run_of(new), history, Folder(str(tmp_path / "of-history")))
    assert found == expected


def test_epochs_that_leave_no_place_for_a_statement(tmp_path: Path):
    """A History that ends with it has it under the number that the next epoch has: that is refused."""
    logs = Logs.write(tmp_path, 7, 1, CONTINUED["truncated"], Side)
    history = Folder(str(tmp_path / "history"))
    ends = logs.ends["A"]
    place = next(place for place, end in enumerate(ends) if end not in commits(logs.files["A"]))
    logs.ingest(history, {"A": (place + 0.5) / (len(ends) - 1), "B": 1.0})
    with pytest.raises(HistoryError, match="leaves no place for it between the epochs; ingest all files into another"):
        logs.ingest(history, ALL)
