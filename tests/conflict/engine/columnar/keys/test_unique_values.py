"""Unique keys of several columns, of text and over several buckets: the kernels stop where the reference does."""

from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.history.model import Cluster, History
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.rules.replication_table import ReplicationRow
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import RowLayout, layout_of_types
from ndb_formats.schema.create_table import parse_schema
from ndb_formats.types.column_types import WireType
from tests.conflict.engine.columnar.both_engines import by_kernels, by_reference
from tests.conflict.random_histories import USUAL_ROLES, _Maker
from tests.examples import examples

SCHEMA = """
CREATE TABLE both (
    k INT NOT NULL PRIMARY KEY, x BIGINT UNSIGNED NOT NULL, v INT, s VARCHAR(20) CHARACTER SET latin1,
    UNIQUE KEY (s, v), UNIQUE KEY (v, x)
);
CREATE TABLE one (k INT NOT NULL PRIMARY KEY, s VARCHAR(20) CHARACTER SET latin1, UNIQUE KEY (s));
CREATE TABLE none (k INT NOT NULL PRIMARY KEY, v INT);
"""
INT, BIGINT, TEXT = WireType(ColumnCode.LONG), WireType(ColumnCode.LONGLONG), WireType(ColumnCode.VARCHAR, 20)
TYPES = {"db.both": (INT, BIGINT, INT, TEXT), "db.one": (INT, TEXT), "db.none": (INT, INT)}
DUPLICATE = 1022


class _UniqueMaker(_Maker):
    """Makes Histories of tables with unique keys; most of their values are different, some differ in case alone."""

    def __init__(self, seed: int, run: Run) -> None:
        super().__init__(seed, 200, complete=True)
        self.tables = {table.full_name: table for table in run.data_schema.tables}
        self.layouts = {name: layout_of_types(self.tables[name], types) for name, types in TYPES.items()}
        self.names = list(TYPES)

    def row(self, layout: RowLayout, number: int) -> dict[int, bytes | None]:
        """Return a row's bytes."""
        text = self.chance.choice(["a", "A", "b ", "ä", None, *[f"{self.chance.random()}"] * 8])
        values = [number, self.chance.randint(0, 3), self.chance.choice([None, *range(25)]), text]
        if layout.table != "db.both":
            values = [number, text if layout.table == "db.one" else values[2]]
        return {
            place: None if value is None else codec.encode(value)
            for place, (value, codec) in enumerate(zip(values, layout.codecs, strict=True))
        }


def _make(seed: int, steps: int, function: str) -> tuple[History, Run]:
    first, second = USUAL_ROLES
    clusters = (
        ClusterConfiguration("A", (LoggingServer(1),), first),
        ClusterConfiguration("B", (LoggingServer(2),), second),
    )
    rules = (ReplicationRow("db", "both", 0, 7, function),)
    run = Run(Configuration(clusters, parse_schema(SCHEMA, database="db"), rules))
    maker = _UniqueMaker(seed, run)
    for _ in range(steps):
        maker.step()
    sides = tuple(
        Cluster(side, server_id, tuple(maker.timeline[side]), role)
        for server_id, (side, role) in enumerate(zip("AB", USUAL_ROLES, strict=True), start=1)
    )
    return History(sides, maker.layouts), run


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(0, 60),
    function=st.sampled_from(["NDB$MAX(x)", "NDB$EPOCH()", "NDB$EPOCH2()", "NDB$EPOCH_TRANS()"]),
    buckets=st.integers(1, 4),
)
@examples(15, long=60)
def test_appliers_stop_where_the_reference_stops_them(seed: int, steps: int, function: str, buckets: int) -> None:
    """Whatever the key is made of, and whichever buckets its rows are in."""
    history, run = _make(seed, steps, function)
    expected = by_reference(history, run)
    assert expected == by_kernels(history, run, in_process, buckets=buckets, epochs_per_segment=3)


def test_some_of_them_stop() -> None:
    """Of a fixed range of seeds some Histories have two rows with one value, on both tables, and some have none."""
    found = [by_reference(*_make(seed, 40, "NDB$MAX(x)"))["summary"]["stops"] for seed in range(40)]
    stops = [stop for stopped in found for stop in stopped.values() if stop["error"] == DUPLICATE]
    assert {stop["table"] for stop in stops} == {"db.both", "db.one"}
    assert {} in found
