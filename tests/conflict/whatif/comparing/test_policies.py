"""Policies of other products, formats and lost updates, in cases worked out by hand."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from conflict.config.configuration import ClusterConfiguration, Configuration, LoggingServer
from conflict.engine.columnar.bucket_view import Relogging
from conflict.engine.ledger.layout import ResultOptions
from conflict.history.grid.epoch_files import epochs_table, read_schedule
from conflict.history.grid.folder import Folder
from conflict.history.grid.schemas import log_part
from conflict.history.run import Run
from conflict.history.scheduling.summaries import Summary
from conflict.history.tasks import in_process
from conflict.history.timeline import Transaction
from conflict.judge.case import ConflictCase
from conflict.rules.functions import FUNCTIONS
from conflict.rules.replication_table import ReplicationRow
from conflict.runs.resolving.resolve_job import settle_history
from conflict.runs.rows.task_inputs import LogPart
from conflict.whatif.comparing.compare_job import compare_settled
from conflict.whatif.comparing.figures import Figures
from conflict.whatif.comparing.pairs import Pair, parse_policies
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.histories import TABLES, history
from tests.conflict.whatif.comparing.recorded import compared
from tests.conflict.written_histories import write_history
from tests.corpora import RECORDINGS

RUN = Run(
    Configuration(
        (ClusterConfiguration("A", (LoggingServer(1),)), ClusterConfiguration("B", (LoggingServer(2),))),
        parse_schema(TABLES, database="d"),
        (ReplicationRow("d", "%", 0, 7, None),),
    ),
    kept_columns={"d.t": "x", "d.n": "x"},
)
# Row 1 is on both clusters, and A knows it. Epochs are the moments of their commits.
START = "A:i1=5/0@10 B:<10@11 A:<11@12 "
CROSSING = START + "A:u1=5/0>20/1@20 B:u1=5/0>7/2@21 A:<21@30 B:<20@31"
SEEN = START + "B:u1=5/0>9/1@20 A:<20@21"
DELETED = START + "A:u1=5/0>8/1@20 B:d1=5/0@22 A:<22@30 B:<20@31"


def tried(text: str, policies: str, binlog_type: int | None = None) -> list[Figures | str]:
    """Compare policies on a History of binlog type 7, whose epochs are the moments of their commits."""
    asked = parse_policies(policies, FUNCTIONS, ("A", "B"), "A", {})
    with tempfile.TemporaryDirectory() as folder:
        grid, out = Folder(f"{folder}/history"), Folder(f"{folder}/out")
        made = history(text)
        manifest = write_history(made, RUN.numbers, grid)
        for cluster in made.clusters:
            epochs = sorted({each.epoch for each in cluster.timeline if isinstance(each, Transaction)})
            summaries = [Summary(number, (), (), committed=number) for number in epochs]
            grid.write_table(log_part("epochs", cluster.name, 0), epochs_table(summaries))
        part = LogPart(), read_schedule(grid, list(manifest.clusters)), manifest
        options = ResultOptions(final_rows=False)
        settled = settle_history(in_process, RUN, grid, out, options, use_evidence=False, part=part)
        pairs = [Pair(policy, binlog_type) for policy in asked]
        return compare_settled(in_process, settled.job.run, settled.applied, pairs)


def key_figures(found: Sequence[Figures | str]) -> list[tuple[int, tuple[int, ...], tuple[int, ...], int]]:
    """Return conflicts, what A and B lost (rejected, overwritten, either), and rows that differ."""
    assert all(isinstance(each, Figures) for each in found), found
    return [
        (each.conflicts, each.lost["A"], each.lost["B"], each.differing_rows)
        for each in found
        if isinstance(each, Figures)
    ]


def test_two_updates_that_cross() -> None:
    """A sets x to 20 at 20, B to 7 at 21: who loses is rejected by the other cluster, and overwritten on its own."""
    one, none = (1, 1, 1), (0, 0, 0)
    found = key_figures(tried(CROSSING, "LAST_COMMIT,FIRST_COMMIT,LOWEST(x),NDB$MAX(x),OVERWRITE"))
    assert found == [
        (1, one, none, 0),  # B's is the later one
        (1, none, one, 0),  # A's is the first one
        (1, one, none, 0),  # 7 is the lower value
        (1, none, one, 0),  # 20 is the higher one
        (0, (0, 1, 1), (0, 1, 1), 1),  # each cluster ends with the change of the other
    ]


def test_an_update_that_had_seen_the_row() -> None:
    """B sets x to 9 at 20, after it applied A's insert of 10: first wins is no matter; 9 is not the lower value."""
    none = (0, 0, 0)
    found = key_figures(tried(SEEN, "LAST_COMMIT,FIRST_COMMIT,OVERWRITE,LOWEST(x)"))
    assert found == [(0, none, none, 0)] * 3 + [(1, none, (1, 0, 1), 1)]


def test_an_update_and_a_later_delete() -> None:
    """A updates at 20, B deletes at 22; on B the update finds no row, which has no time and no value."""
    found = key_figures(tried(DELETED, "LAST_COMMIT,FIRST_COMMIT,LOWEST(x)"))
    assert found == [
        (1, (1, 1, 1), (0, 0, 0), 0),  # the delete is applied on A
        (2, (1, 0, 1), (1, 0, 1), 1),  # the delete is the later change, and rejected
        (2, (1, 0, 1), (1, 0, 1), 1),  # its before value 5 is not that of A's row
    ]


def test_type_7_logged_again_in_type_9() -> None:
    """After images stay whole, and before images hold keys: what compares after values decides as before."""
    policies = "LOWEST(x),LAST_COMMIT,NDB$OLD(x)"
    *same, old = tried(CROSSING, policies, 9)
    assert key_figures(same) == [(1, (1, 1, 1), (0, 0, 0), 0)] * 2  # as in type 7: 7 is the lower value, and the later
    assert isinstance(old, Figures)
    assert {name: stop.error for name, stop in old.stops.items()} == {"A": 1296, "B": 1296}
    # A delete of type 9 has all columns before, so it is compared as in type 7.
    assert key_figures(tried(DELETED, "LOWEST(x)", 9)) == [(2, (1, 0, 1), (1, 0, 1), 1)]


@pytest.mark.parametrize(
    ("logged", "wanted", "before", "fault"),
    [
        (9, 7, (0,), "before images of updates lack column x"),
        (7, 9, (0, 1, 2), None),
        (7, 3, (0, 1, 2), None),
        (7, 8, (0, 1, 2), "images with all columns do not tell which ones a statement set"),
        (3, 7, (0, 1, 2), "updates are logged as writes, like inserts"),
    ],
)
def test_what_follows_from_a_format(logged: int, wanted: int, before: tuple[int, ...], fault: str | None) -> None:
    """An update of a table with key k and columns x and v, with all columns in its after image."""
    table = RUN.schema.tables[0]
    relogging = Relogging(table, *(effective_format(number) for number in (logged, wanted)))
    assert relogging.fault([EventColumns(Operation.UPDATE_ROW, before, (0, 1, 2))]) == fault


@pytest.mark.parametrize(
    ("recording", "expected"),
    [
        (
            # Row 1: 50 on A, 60 on B; row 2: 80, 70; row 3: 90 on both. One of two crossing updates wins but for row 3.
            "max/upd_upd_a_first_type7",
            {
                "NDB$MAX(x)": (4, (2, 1, 2), (2, 1, 2), 1),
                "LOWEST(x)": (4, (2, 1, 2), (2, 1, 2), 1),
                "OVERWRITE": (0, (0, 3, 3), (0, 3, 3), 3),
            },
        ),
        (
            # Row 3: updated on A, deleted on B; row 4: deleted and inserted on A, updated on B; row 5: the other way.
            # NDB$MAX(x) rejects all. Overwriting, an update on B finds no row 3; a change that the same cluster wrote
            # over, as both deletes before inserts, is not lost; rows 4 and 5 are exchanged.
            "max/delete_of_updated_type7",
            {"NDB$MAX(x)": (8, (4, 0, 4), (4, 0, 4), 3), "OVERWRITE": (0, (0, 3, 3), (0, 2, 2), 2)},
        ),
    ],
)
def test_recordings_read_by_hand(recording: str, expected: dict[str, tuple[int, ...]], tmp_path: Path) -> None:
    """The appliers were stopped, so that no change had seen the other side's; from the statements of the recording."""
    case = ConflictCase.load(RECORDINGS / "conflict" / recording)
    found = compared(case, ",".join((*expected, "LAST_COMMIT")), steps=tmp_path / "steps.json")
    rows = {row.function: row.figures for row in found.rows}
    figures = [rows[name] for name in expected]
    assert dict(zip(expected, key_figures([each for each in figures if each]), strict=True)) == expected
    if "upd_upd" in recording:  # whichever was first: of each row one change is lost
        last = rows["LAST_COMMIT"]
        assert last is not None
        assert (last.conflicts, last.lost_updates, last.differing_rows) == (3, 3, 0)


def test_places_that_are_assumed_are_said() -> None:
    """Each side rejected all of an epoch, which leaves no trace; without the steps, its place is not known."""
    case = ConflictCase.load(RECORDINGS / "conflict" / "max/delete_of_updated_type7")
    found = compared(case, "OVERWRITE")
    for side in "AB":
        assert any(
            f"left no trace in the binlog of {side}; the first possible place is taken" in n for n in found.notes
        )
