"""Foreign keys over several buckets: the kernels notice every one that counts, and agree where none does."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import pack
from typing import Any
from unittest.mock import patch

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.config.run_file import load_run_file
from conflict.engine.kernels.key_values import mark_linked
from conflict.engine.ledger.careful import CareKind
from conflict.history.grid.folder import Folder
from conflict.history.model import Cluster, History
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.judge.case import ConflictCase
from conflict.rules.replication_table import ReplicationRow
from conflict.runs.pipeline import run_by
from conflict.runs.resolving import resolve_stages
from conflict.runs.resolving.careful_rows import careful_parts
from conflict.runs.rows.task_inputs import TaskInputs
from conflict.runs.rows.touched_rows import TouchedRows
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import ColumnCode, EventType
from ndb_formats.events.header import decode_format_description
from ndb_formats.events.row_image import RowLayout, layout_of_types
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.types.column_types import WireType
from ndb_formats.writing.event_stream import EventStream
from tests.conflict.engine.columnar.both_engines import by_reference, cut_anywhere, with_care
from tests.conflict.judge.test_options import write_run_file
from tests.conflict.keyless_histories import with_loose_rows, with_loose_table
from tests.conflict.random_histories import SCHEMA as KEYED_SCHEMA
from tests.conflict.random_histories import SETTINGS, USUAL_ROLES, _Maker, configuration, make_history
from tests.corpora import RECORDINGS
from tests.examples import examples

SCHEMA = """
CREATE TABLE parent (
    k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, s VARCHAR(20) CHARACTER SET latin1, UNIQUE KEY (s, k)
);
CREATE TABLE child (
    k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED, s VARCHAR(20) CHARACTER SET latin1, p INT, q INT, r INT,
    FOREIGN KEY (p) REFERENCES parent (k) ON DELETE CASCADE,
    FOREIGN KEY (s, q) REFERENCES parent (s, k) ON UPDATE SET NULL ON DELETE RESTRICT,
    FOREIGN KEY (r) REFERENCES child (k)
);
CREATE TABLE apart (k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED);
"""
# Without other unique keys, so that rows have to do with few others.
WITHOUT_UNIQUE_KEYS = SCHEMA.replace(", UNIQUE KEY (s, k)", "").replace(
    "(s, q) REFERENCES parent (s, k) ON UPDATE SET NULL ON DELETE RESTRICT", "(q) REFERENCES parent (k)"
)
INT, BIGINT, TEXT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG), WireType(ColumnCode.VARCHAR, 20)
TYPES = {"db.parent": (INT, BIGINT, TEXT), "db.child": (INT, BIGINT, TEXT, INT, INT, INT), "db.apart": (INT, BIGINT)}
FUNCTIONS = ["NDB$MAX(x)", "NDB$EPOCH()", "NDB$EPOCH2()", "NDB$EPOCH_TRANS()", "NDB$EPOCH2_TRANS()"]


class _LinkedMaker(_Maker):
    """Makes Histories of parents and children; few of the children refer to a row."""

    def __init__(self, seed: int, run: Run) -> None:
        super().__init__(seed, 200, complete=True)
        self.tables = {table.full_name: table for table in run.data_schema.tables}
        self.layouts = {name: layout_of_types(self.tables[name], types) for name, types in TYPES.items()}
        self.names = [*TYPES, "db.parent"]
        self.linked = self.chance.choice([0.05, 0.3])

    def row(self, layout: RowLayout, number: int) -> dict[int, bytes | None]:
        """Return a row's bytes."""
        values: list[Any] = [number, self.chance.randint(0, 2)]
        if layout.table == "db.parent":
            values.append(self.chance.choice(["a", "A", "b "]))
        elif layout.table == "db.child":
            linked = [self.chance.random() < self.linked for _ in range(3)]
            numbers = [self.chance.randint(1, self.keys) if on else None for on in linked]
            values += [self.chance.choice(["a", "b"]), *numbers]
        return {
            place: None if value is None else codec.encode(value)
            for place, (value, codec) in enumerate(zip(values, layout.codecs, strict=True))
        }


def _make(seed: int, steps: int, function: str, schema: str = SCHEMA) -> tuple[History, Run]:
    first, second = USUAL_ROLES
    clusters = (
        ClusterConfiguration("A", (LoggingServer(1),), first),
        ClusterConfiguration("B", (LoggingServer(2),), second),
    )
    rules = tuple(ReplicationRow("db", name, 0, 7, function) for name in ("parent", "child"))
    run = Run(Configuration(clusters, parse_schema(schema, database="db"), rules))
    maker = _LinkedMaker(seed, run)
    for _ in range(steps):
        maker.step()
    sides = tuple(
        Cluster(side, server_id, tuple(maker.timeline[side]), role)
        for server_id, (side, role) in enumerate(zip("AB", USUAL_ROLES, strict=True), start=1)
    )
    return History(sides, maker.layouts), run


def _kernels(history: History, run: Run, buckets: int) -> tuple[dict[str, Any], int]:
    """Return what the kernels find, and how many rows they left to the reference engine."""
    found, careful = with_care(history, run, in_process, buckets=buckets, epochs_per_segment=3)
    return found, careful.get("foreign_key", 0)


def _without_keys(run: Run) -> Run:
    tables = tuple(attrs.evolve(table, foreign_keys=()) for table in run.schema.tables)
    return Run(attrs.evolve(run.configuration, schema=Schema(tables)))


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 60),
    function=st.sampled_from(FUNCTIONS),
    buckets=st.integers(1, 4),
)
@examples(10, long=800)
def test_what_the_kernels_resolve_is_what_the_reference_engine_finds(
    seed: int, steps: int, function: str, buckets: int
) -> None:
    """A foreign key that refuses a change or makes one never goes unnoticed, in whichever buckets the rows are."""
    history, run = _make(seed, steps, function)
    found, _ = _kernels(history, run, buckets)
    assert found == by_reference(history, run)


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(20, 90),
    function=st.sampled_from(FUNCTIONS),
    buckets=st.integers(2, 4),
)
@examples(10, long=800)
def test_careful_rows_in_as_many_parts_as_there_can_be(seed: int, steps: int, function: str, buckets: int) -> None:
    """Rows that foreign keys do not bind to each other are resolved apart, and nothing changes."""
    history, run = _make(seed, steps, function, WITHOUT_UNIQUE_KEYS)

    def divided(common: TaskInputs, read: Sequence[Mapping[int, TouchedRows]], epochs: int | None) -> Any:
        return careful_parts(common, read, epochs and 0)

    with patch.object(resolve_stages, "careful_parts", divided):
        found, _ = _kernels(history, run, buckets)
    assert found == by_reference(history, run)


def test_rows_are_bound_by_what_they_refer_to() -> None:
    """Two parents with a child each are two components, in any buckets; what is not broken is not among them."""
    rows = [(0, 0, [7, 8]), (0, 1, [7, -1]), (1, 0, [9, -1]), (1, 1, [9, 9]), (1, 2, [5, -1])]
    values = np.array([each for _, _, each in rows])
    marked = np.array([True, False, False, True, False])
    component = mark_linked(np.arange(len(rows)), values, 10, marked)
    assert marked.tolist() == [True, True, True, True, False]
    assert component[0] == component[1] != component[2] == component[3] != component[4]


@pytest.mark.parametrize(
    ("seeds", "fewest", "most"), [(range(8), 1, 7), pytest.param(range(40), 5, 30, marks=pytest.mark.slow)]
)
def test_rows_on_which_no_foreign_key_acts_are_left_to_the_kernels(seeds: range, fewest: int, most: int) -> None:
    """Of a fixed range of seeds: where a foreign key counts, some rows are resolved with care, and hardly elsewhere."""
    counts, careful = [], []
    for seed in seeds:
        history, run = _make(seed, 30, "NDB$MAX(x)")
        counts.append(by_reference(history, run) != by_reference(history, _without_keys(run)))
        careful.append(_kernels(history, run, 2)[1])
    assert all(rows or not acts for rows, acts in zip(careful, counts, strict=True))
    assert fewest <= sum(counts) <= sum(map(bool, careful)) <= most


def test_stops_of_all_kinds() -> None:
    """The random Histories violate foreign keys in both ways."""
    found = [by_reference(*_make(seed, 40, FUNCTIONS[seed % 4]))["summary"]["stops"] for seed in range(60)]
    assert {1451, 1452} <= {stop["error"] for stops in found for stop in stops.values()}


@pytest.mark.parametrize("folder", ["max/foreign_key_cascade_type7", "epoch2_trans/foreign_key_restrict_type8"])
def test_a_recording(folder: str, tmp_path: Path) -> None:
    """The kernels resolve all other rows; the result says how many rows took care, and no whole run is left."""
    case = ConflictCase.load(RECORDINGS / "everyday" / folder)
    run, out = make_run(case.configuration()), Folder(str(tmp_path / "out"))
    resolved = run_by("local", run, out)
    assert resolved.engine == ""
    assert 0 < resolved.to_json("local")["careful_rows"]["foreign_key"] <= 20
    assert not out.exists("shared")
    alone = run_by("reference", run, Folder(str(tmp_path / "alone")))
    assert (resolved.summary.to_json(), resolved.summary.counters) == (alone.summary.to_json(), alone.summary.counters)


@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(5, 60), setting=st.integers(0, len(SETTINGS) - 1))
@examples(5, long=300)
def test_rows_without_a_key_that_refer_to_others(seed: int, steps: int, setting: int) -> None:
    """A table without a primary key can refer to one that has one; both are in exceptions tables and in rounds."""
    link = "FOREIGN KEY (w) REFERENCES judged (k) ON DELETE CASCADE"
    schema = parse_schema(f"{KEYED_SCHEMA} CREATE TABLE loose (v INT UNSIGNED, w INT, {link});", database="db")
    run = Run(attrs.evolve(with_loose_table(configuration(setting)).configuration, schema=schema))
    history = with_loose_rows(make_history(seed, steps, complete=True), seed, foreign=0)
    found, _ = _kernels(history, run, 2)
    assert found == by_reference(history, run)


def test_a_recording_from_the_middle(tmp_path: Path) -> None:
    """All rows that are linked are resolved with care, unless transactions can be rejected."""
    assert set(cut_anywhere(RECORDINGS / "everyday" / "max" / "foreign_key_cascade_type7", tmp_path / "max")) == {""}
    left = cut_anywhere(RECORDINGS / "everyday" / "epoch2_trans" / "foreign_key_restrict_type8", tmp_path / "trans")
    assert CareKind.MIDDLE_LINKS.value.what in left


def test_values_of_careful_rows_are_compared(tmp_path: Path) -> None:
    """B's log shows that its applier gave row 5, on which the foreign key acts later, 273 where A wrote 272."""
    case = write_run_file("max/foreign_key_cascade_type7", tmp_path)
    binlog, written = tmp_path / "B.binlog.000001", io.BytesIO()
    binlog.write_bytes((RECORDINGS / "everyday/max/foreign_key_cascade_type7/B.binlog.000001").read_bytes())
    stream = EventStream(written)
    for event in read_events(binlog):
        if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
            stream.start(event.header, decode_format_description(event.body))
        else:
            stream.put(event.header, event.body.replace(pack("<III", 5, 5, 272), pack("<III", 5, 5, 273)))
    binlog.write_bytes(written.getvalue())
    configuration = load_run_file(case).configuration
    log = LoggingServer(configuration.clusters[1].server_id, (binlog,))
    clusters = configuration.clusters[0], attrs.evolve(configuration.clusters[1], servers=(log,))
    run = make_run(attrs.evolve(configuration, clusters=clusters))
    found, expected = (
        run_by("local", run, Folder(str(tmp_path / "out"))),
        run_by("reference", run, Folder(str(tmp_path / "alone"))),
    )
    assert found.engine == ""
    assert found.summary.contradictions == {"B": {"day.t1": {"derived CHANGED, shown CHANGED to other values": 1}}}
    assert found.summary.contradictions == expected.summary.contradictions
