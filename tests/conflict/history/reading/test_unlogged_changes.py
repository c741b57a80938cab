"""Rows that a cluster changed without a log: what shows it, and that both readers find the same."""

import io
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from random import Random

import attrs
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.configuration import LoggingServer
from conflict.engine.columnar.unlogged_rows import UnloggedRows
from conflict.engine.kernels.unlogged import UNTOLD, RowStates, suspected_rows
from conflict.engine.ledger.careful import CareKind
from conflict.explaining.explainer import Explainer
from conflict.history.epochs import BinlogEpoch
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.reading.readings import read_clusters
from conflict.history.reading.unlogged_changes import (
    MISSING,
    LoggedState,
    logged_states,
    unlogged_changes,
    unlogged_of_row,
)
from conflict.history.run import Run
from conflict.history.tasks import in_threads
from conflict.history.timeline import Position
from conflict.history.unlogged import UnloggedChange, UnloggedKind
from conflict.judge.case import ConflictCase, find_recordings
from conflict.results.result import Result
from conflict.results.telling import tell_result
from conflict.runs.ingest_job import ingest
from conflict.runs.pipeline import ENGINES
from conflict.runs.resolving.finding_careful import find_unlogged, followed
from conflict.runs.rows.task_inputs import part_of_log
from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.kernel import each_read_only
from ndb_formats.constants import EventType
from ndb_formats.events.header import decode_format_description
from ndb_formats.writing.event_stream import EventStream
from tests.corpora import RECORDINGS
from tests.examples import examples

HIDDEN = RECORDINGS / "operations/hidden_changes"
FULL, OTHER, KEY_ALONE = 1 << 32 | 5, 1 << 32 | 6, 2 << 32 | 5  # digests: two values of all columns, and the key


def own(epoch: int, group: int, before: int | None, after: int, place: int = 0) -> LoggedState:
    """Return an own change."""
    return LoggedState((epoch, group), True, (place,), before, after)


def applied(epoch: int, group: int, after: int, *, refreshed: bool = False) -> LoggedState:
    """Return what the applier did."""
    return LoggedState((epoch, group), False, (), after if refreshed else None, after)


def kinds(*states: LoggedState, breaks: Collection[int] = ()) -> list[tuple[UnloggedKind, Position, Position]]:
    """Return what is found: the kind, the last position before it, and the one that shows it."""
    return [(kind, after, shown.position) for shown, after, kind in unlogged_of_row(states, sorted(breaks))]


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ([own(1, 0, None, FULL), own(2, 3, FULL, OTHER)], []),
        ([own(1, 0, None, FULL), own(2, 3, OTHER, FULL)], [(UnloggedKind.CHANGED, (1, 0), (2, 3))]),
        ([own(1, 0, None, FULL), own(2, 3, KEY_ALONE, OTHER)], []),
        ([own(1, 0, None, FULL), own(2, 3, MISSING, OTHER)], [(UnloggedKind.DELETED, (1, 0), (2, 3))]),
        ([own(1, 0, FULL, MISSING), own(2, 3, KEY_ALONE, OTHER)], [(UnloggedKind.INSERTED, (1, 0), (2, 3))]),
        ([own(2, 3, OTHER, FULL)], []),  # nothing is known of it before
        ([own(1, 0, None, FULL), applied(2, 1, OTHER), own(3, 0, OTHER, FULL)], []),
        (
            [own(1, 0, None, FULL), applied(2, 1, OTHER), own(3, 0, FULL, OTHER)],
            [(UnloggedKind.CHANGED, (2, 1), (3, 0))],
        ),
        ([own(1, 0, None, FULL), applied(2, 1, FULL, refreshed=True)], []),
        ([own(1, 0, None, FULL), applied(2, 1, MISSING, refreshed=True)], [(UnloggedKind.DELETED, (1, 0), (2, 1))]),
        ([applied(1, 0, MISSING), applied(2, 1, FULL, refreshed=True)], [(UnloggedKind.INSERTED, (1, 0), (2, 1))]),
    ],
)
def test_what_shows_a_change(states: list[LoggedState], found: list[tuple[UnloggedKind, Position, Position]]) -> None:
    """A before image, an insert, an update or a refresh that does not fit what the log gave the row last."""
    assert kinds(*states) == found


def test_within_an_epoch_an_applier_has_no_order() -> None:
    """Its change may have come before the own one or after it."""
    first = own(1, 0, None, FULL)
    assert kinds(first, own(2, 0, FULL, OTHER), applied(2, 1, FULL)) == []
    assert kinds(first, own(2, 0, OTHER, FULL), applied(2, 1, OTHER)) == []
    assert len(kinds(first, own(2, 0, OTHER + 1, FULL), applied(2, 1, OTHER))) == 1


def test_own_changes_of_an_epoch_are_in_the_order_of_the_log() -> None:
    """Groups are not: one that begins later can have changed a row sooner."""
    first = own(1, 0, None, FULL)
    assert kinds(first, own(2, 0, OTHER, FULL, place=9), own(2, 1, FULL, OTHER, place=3)) == []
    assert len(kinds(first, own(2, 0, OTHER, FULL, place=3), own(2, 1, FULL, OTHER, place=9))) == 1


def test_a_statement_ends_what_is_known() -> None:
    """It may have emptied the table, or given images other columns."""
    states = own(1, 0, None, FULL), own(3, 0, MISSING, FULL)
    assert kinds(*states, breaks=[2]) == kinds(*states, breaks=[1]) == []
    assert len(kinds(*states, breaks=[3])) == 1


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_a_recording_is_told(engine: str, tmp_path: Path) -> None:
    """Two rows were changed under sql_log_bin=0; both are named, and counters have a range."""
    case = ConflictCase.load(HIDDEN / "hidden_changes_epoch2_trans_type7")
    out = Folder(str(tmp_path))
    document = ENGINES[engine](make_run(case.configuration(), lambda _: {}), out).to_json(engine)
    assert document["unlogged_changes"] == {"A": {"ops.t1": 1, "ops.t2": 1}}
    assert document["contradicted_by_binlogs"] == 0
    assert document["counter_ranges"]["A"]["Ndb_conflict_fn_epoch2_trans"] == (4, 6)
    rows = pq.read_table(tmp_path / "unlogged_changes/cluster=A.parquet").to_pylist()
    told = sorted((each["table"], each["key"], each["change"]) for each in rows)
    assert told == [("ops.t1", "k=1", "changed"), ("ops.t2", "a=2, b=z2", "deleted")]
    document = json.loads(json.dumps(document))
    (said,) = (text for text in tell_result(document).warnings if "A changed 2 rows of" in text)
    assert "without a log" in said
    assert "Others do not show" in said
    differ = any(document["differing_rows"].values())
    assert document["converged"] is (False if differ else None)


def without(binlog: Path, dropped: Collection[int]) -> bytes:
    """Return a binlog without the rows events at some positions."""
    out = io.BytesIO()
    stream = EventStream(out)
    for event in read_events(binlog):
        if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
            stream.start(event.header, decode_format_description(event.body))
        elif event.position not in dropped:
            stream.put(event.header, event.body)
    return out.getvalue()


def positions(epochs: Sequence[BinlogEpoch]) -> list[int]:
    """Return the positions of the events with own changes."""
    changes = (change for epoch in epochs for each in epoch.transactions for change in each.changes)
    return sorted({change.origin.position for change in changes if change.origin is not None})


def columnar(run: Run, folder: Path) -> UnloggedRows:
    """Return what the columnar engine finds."""
    history = Folder(str(folder))
    manifest = ingest(in_threads, run, history, buckets=3, segment_bytes=4000).manifest
    return find_unlogged(in_threads, run, history, part_of_log(run, history, manifest), lambda *_: None)


FULL_IMAGES = [
    each.path
    for kind in ("max", "old", "epoch", "epoch_trans")
    for each in find_recordings(RECORDINGS / "conflict" / kind)
    if each.path.name.endswith("type7")
]


@pytest.mark.parametrize("path", FULL_IMAGES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_both_readers_find_the_same(path: Path, tmp_path: Path) -> None:
    """Nothing in recordings without such changes; with rows events taken out of a log, the same rows and positions."""
    configuration = ConflictCase.load(path).configuration()
    whole = read_clusters(make_run(configuration, lambda _: {}))
    for number in range(3):
        random, clusters = Random(f"{path.name} {number}"), []
        for cluster in configuration.clusters:
            (file,) = cluster.files
            places = positions(whole[cluster.name].epochs)
            dropped = random.sample(places, min(len(places), 3 * number))
            copy = tmp_path / f"{number}{cluster.name}"
            copy.write_bytes(without(file, dropped))
            clusters.append(attrs.evolve(cluster, servers=(LoggingServer(cluster.server_id, (copy,)),)))
        run = make_run(attrs.evolve(configuration, clusters=tuple(clusters)), lambda _: {})
        readings = read_clusters(run)
        scalar: dict[str, set[UnloggedChange]] = {}
        for name, reading in readings.items():
            others = [other.epochs for peer, other in readings.items() if peer != name]
            changes = set(unlogged_changes(logged_states(reading.epochs, others), reading.changes))
            if changes:
                scalar[name] = changes
        changes = columnar(run, tmp_path / f"h{number}").changes
        assert {name: set(own) for name, own in changes.items()} == scalar
        assert number or not scalar


def test_explain_names_the_change(tmp_path: Path) -> None:
    """The story of the row says who changed it, and when."""
    case = ConflictCase.load(HIDDEN / "hidden_changes_epoch2_trans_type7")
    run, out = make_run(case.configuration(), lambda _: {}), Folder(str(tmp_path))
    explainer = Explainer(Result(out, ENGINES["local"](run, out).to_json("local"), {}), run)
    (first,), (other,) = (explainer.row(*each).notes for each in (("ops.t2", "a=2, b=z2"), ("ops.t1", "k=1")))
    assert first.startswith("A deleted the row without a log, between its epochs 4458176053258 and 4462471020546")
    assert other.startswith("A changed the row without a log")


def test_large_logs_are_not_followed_for_a_few_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where only the reference engine could follow, the kernels resolve them without, and that is said."""
    run = make_run(ConflictCase.load(HIDDEN / "hidden_changes_epoch2_trans_type7").configuration(), lambda _: {})
    history = Folder(str(tmp_path / "history"))
    part = part_of_log(run, history, ingest(in_threads, run, history).manifest)
    found = find_unlogged(in_threads, run, history, part, lambda *_: None)
    assert followed(found, run, part) is CareKind.UNLOGGED_DOUBTS
    monkeypatch.setattr("conflict.runs.resolving.finding_careful.MOST_CHANGES", 10)
    left = followed(found, run, part)
    assert isinstance(left, UnloggedRows)
    assert (left.changes, left.are_followed) == (found.changes, False)
    document = json.loads(json.dumps(ENGINES["local"](run, Folder(str(tmp_path / "out"))).to_json("local")))
    assert not any("not followed" in text for text in tell_result(document).warnings)
    told = tell_result({**document, "unlogged_followed": False})
    assert any("not followed" in text for text in told.warnings)


def test_in_large_logs_the_rows_alone_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernels resolve all other rows, and the result is that of the reference engine."""
    monkeypatch.setattr("conflict.runs.resolving.finding_careful.MOST_CHANGES", 10)
    run = make_run(ConflictCase.load(HIDDEN / "hidden_changes_epoch_type8").configuration(), lambda _: {})
    local = ENGINES["local"](run, Folder(str(tmp_path / "local")))
    reference = ENGINES["reference"](run, Folder(str(tmp_path / "reference")))
    assert (local.engine, local.unlogged_followed, local.summary.careful) == ("", True, {"unlogged": 1})
    for figure in ("counters", "counter_ranges", "differing_rows", "contradicted", "rows"):
        assert getattr(local.summary, figure) == getattr(reference.summary, figure)


Event = tuple[int, int, bool, int, int]  # epoch, row, whether it is an own change, and digests before and after
_DIGESTS = st.sampled_from([int(MISSING), FULL, OTHER, KEY_ALONE])
_EVENTS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(0, 1), st.booleans(), st.one_of(st.just(int(UNTOLD)), _DIGESTS), _DIGESTS),
    max_size=12,
)


def row_states(events: Sequence[Event]) -> RowStates:
    """Return events as the kernel takes them; what an applier did tells of the row before if it refreshed it."""
    columns = [(key, epoch, before, after) for epoch, key, _, before, after in events]
    key, epoch, before, after = np.array(columns, np.uint64).reshape(-1, 4).T.copy()
    return RowStates(*each_read_only(key.astype(np.int32), epoch, before, after))


@examples(300)
@given(_EVENTS)
def test_every_row_that_shows_a_change_is_suspected(given_events: list[Event]) -> None:
    """The kernel leaves out no row of which the log shows a change without a log."""
    events = sorted(given_events, key=lambda event: event[0])
    ours, theirs = ([each for each in events if each[2] is mine] for mine in (True, False))
    theirs = [(*each[:3], each[4] if each[3] != UNTOLD else int(UNTOLD), each[4]) for each in theirs]
    suspects = suspected_rows(row_states(ours), row_states(theirs), 2)
    for row in (0, 1):
        states = [
            LoggedState((epoch, 0), mine, (place,), None if before == UNTOLD else before, after)
            for place, (epoch, key, mine, before, after) in enumerate(
                sorted([*ours, *theirs], key=lambda each: each[0])
            )
            if key == row
        ]
        assert suspects[row] or not [*unlogged_of_row(states)]
