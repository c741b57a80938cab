"""A simulation written as binlogs is, to every reader and engine, what happened in it."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import load_run_file
from conflict.errors import ConfigurationError
from conflict.results.result import Result, read_result
from conflict.rules.decision import Cause
from conflict.runs.pipeline import ResolveOptions, resolve
from conflict.whatif.simulating.binlogs import bytes_by_type, write_binlogs
from conflict.whatif.simulating.configuration import (
    CLOCK_START,
    ApplierSettings,
    Latency,
    Link,
    Model,
    ModelTable,
    Site,
)
from conflict.whatif.simulating.figures import counters_of, decisions_in_order, final_rows
from conflict.whatif.simulating.kernels.world import Stamp, Wish
from conflict.whatif.simulating.logged_rows import logged_epochs
from conflict.whatif.simulating.run import Simulated, simulate
from conflict.whatif.simulating.run_folder import RUN_FILE, run_folder, write_run
from conflict.whatif.simulating.workload import InsertKeys, Mix, Workload
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.rows_event import ROWS_EVENTS
from ndb_formats.row_reader import LoggedRow, read_rows
from ndb_formats.rules.images import Logging
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.tables import Schema
from ndb_formats.types.values import Value
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, WrittenChange
from tests.conflict.whatif.simulating.models import random_model
from tests.examples import examples

TYPES = (2, 3, 6, 7, 8, 9)
WISHES = {Wish.UPDATE: 2.0, Wish.PUT: 1.0, Wish.INSERT: 1.0}


def small(binlog_type: int, function: str | None, *, drain: int = 60_000_000, deletes: bool = True) -> Simulated:
    """
    A simulation of a second in which all operations occur, and conflicts if there is a function.

    Without function and deletes, the binlog type decides on the images and on their values alone.
    """
    functions = {} if function is None else {"A": function}
    made = ModelTable("t", 20, 9, functions, binlog_type, Stamp.VERSION)
    mix = Mix({**WISHES, Wish.DELETE: 1.0} if deletes else WISHES, {1: 1, 3: 1})
    work = Workload((60.0,), mix, inserts={0: InsertKeys.ANY}, columns=2)
    link, applier = Link(Latency("constant", 60_000)), ApplierSettings(per_row=3000)
    first, second = (Site(name, number, work, link=link, applier=applier) for number, name in enumerate("AB", start=1))
    return simulate(Model((first, second), (made,), 1_000_000, drain), 5)


def resolved(run: Simulated, folder: Path, *, schedule: bool, engine: str = "local") -> Result:
    """What an engine makes of the binlogs of a simulation."""
    with run_folder(folder, replace=folder.exists()) as work:
        write_run(run, work, schedule=schedule)
    made, out = load_run_file(folder / RUN_FILE), str(folder / "result")
    done = resolve(made, out, engine=engine, policy=DeploymentPolicy.NEEDS, options=ResolveOptions(all_outcomes=True))
    assert not done.contradicted
    return read_result(out)


def assert_same(run: Simulated, result: Result) -> None:
    """Every decision with the values compared, every counter, every row."""
    tables = run.model.schema.tables
    decisions: dict[str, list[object]] = {site.name: [] for site in run.model.sites}
    for each in decisions_in_order(run):
        place = (each.epoch, each.group, tables[each.table].full_name, f"k={each.key}")
        decision = (each.operation.name, each.refresh, each.verdict.name, each.cause.name)
        decisions[each.applier].append((*place, *decision, each.incoming, each.stored))
    for name, counters in counters_of(run).items():
        found = result.counters[name]
        assert {each: found.get(each, 0) for each in counters} == counters
        for table in tables:
            rows = [tuple(row.values()) for row in result.rows(name, table.full_name).to_pylist()]
            assert sorted(rows, key=str) == sorted(final_rows(run, name, table.full_name), key=str)
        theirs = []
        for row in result.outcomes(name).to_pylist():
            place = (row["source_epoch"], row["group"], row["table"], row["key"])
            compared = (row["incoming"], row["stored"]) if row["cause"] == Cause.ROW_IN_CONFLICT.name else (None, None)
            decision = (row["operation"], row["refresh"], row["verdict"], row["cause"] or Cause.NONE.name)
            theirs.append((*place, *decision, *compared))
        assert sorted(theirs, key=str) == sorted(decisions[name], key=str)


@given(seed=st.integers(0, 2**32 - 1))
@examples(5, long=6)
def test_resolve_finds_the_simulation_in_its_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """With the schedule: every decision, counter and row."""
    run = simulate(random_model(seed, 1_000_000), seed)
    assert_same(run, resolved(run, tmp_path_factory.mktemp("run") / "run", schedule=True))


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_resolve_finds_many_simulations_in_their_binlogs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same, longer and more often."""
    run = simulate(random_model(seed), seed)
    assert_same(run, resolved(run, tmp_path_factory.mktemp("run") / "run", schedule=True))


def test_without_the_schedule_the_simulation_is_among_the_candidates(tmp_path: Path) -> None:
    """Each counter lies in the range that the result gives for it."""
    for seed in range(3):
        run = simulate(random_model(seed, 1_000_000), seed)
        result = resolved(run, tmp_path / str(seed), schedule=False)
        ranges = result.run.get("counter_ranges", {})
        for name, counters in counters_of(run).items():
            for counter, value in counters.items():
                found = result.counters[name].get(counter, 0)
                low, high = ranges.get(name, {}).get(counter, (found, found))
                assert low <= value <= high, (seed, name, counter)


def test_the_reference_engine_reads_the_same(tmp_path: Path) -> None:
    """Of a run that ends before everything is applied."""
    run = small(7, "NDB$EPOCH()", drain=0)
    assert not run.quiet
    assert_same(run, resolved(run, tmp_path / "run", schedule=True, engine="reference"))


Values = dict[int, Value]


def whole_rows(log: list[LoggedRow]) -> Iterator[tuple[Values | None, Values | None]]:
    """The whole row before and after each change of a log, from the images of the changes before it."""
    held: dict[tuple[str, Value], Values] = {}
    for row in log:
        image = row.after if row.before is None else row.before
        assert image is not None
        key = (row.table, next(iter(image.by_name().values())))
        before, after = held.get(key), None
        if row.after is not None:
            names = row.after.layout.names
            after = {**(before or {}), **{names.index(name): value for name, value in row.after.by_name().items()}}
            held[key] = after
        else:
            held.pop(key)
        yield (None if row.table == APPLY_STATUS_TABLE.name else before), after


def written_row_by_row(run: Simulated, side: int, log: list[LoggedRow], number: int) -> bytes:
    """The log of a cluster as `BinlogWriter` writes it, change by change."""
    site, out = run.model.sites[side], BytesIO()
    writer = BinlogWriter(out, BinlogSettings(Logging(effective_format(number)), server_id=site.server_id))
    tables = {each.full_name: each for each in (*run.model.schema.tables, APPLY_STATUS_TABLE)}
    for table in tables.values():
        writer.table_map(table)
    clock = CLOCK_START - run.start
    moments = {int(each["number"]): clock + int(each["closed"]) for each in logged_epochs(run, side)}
    writer.start(next(iter(moments.values())))
    for epoch, rows in groupby(zip(log, whole_rows(log), strict=True), key=lambda pair: pair[0].epoch):
        assert epoch is not None
        changes = [
            WrittenChange(
                tables[f"{row.database}.{row.table}"],
                before,
                after,
                row.after.present if row.after is not None else (),
                row.extra,
                row.server_id,
            )
            for row, (before, after) in rows
            if row.extra is not None  # the server's own row of ndb_apply_status has none
        ]
        writer.write_epoch(epoch, changes, moments[epoch])
    writer.finish()
    return out.getvalue()


@pytest.mark.parametrize("number", TYPES)
def test_the_bytes_are_those_of_the_writer_of_single_changes(number: int, tmp_path: Path) -> None:
    """In every format: same events, same images, positions and checksums."""
    run = small(number, None)
    files = write_binlogs(run, tmp_path)
    schema = Schema((*run.model.schema.tables, APPLY_STATUS_TABLE))
    for side, name in enumerate("AB"):
        (file,) = files[name]
        log = list(read_rows(tmp_path / file, schema=schema, wanted=lambda table: True))
        assert len(log) > 100
        assert written_row_by_row(run, side, log, number) == (tmp_path / file).read_bytes()


def test_bytes_by_type_are_those_of_the_row_events(tmp_path: Path) -> None:
    """Of the files that a simulation in each type writes, where the type decides on nothing else."""
    found = bytes_by_type(small(7, None, deletes=False))
    for number in TYPES:
        folder = tmp_path / str(number)
        folder.mkdir()
        for name, files in write_binlogs(small(number, None, deletes=False), folder).items():
            events = [each for file in files for each in read_events(folder / file)]
            # The server's own row of ndb_apply_status is not counted: it has an event of its own, the first one.
            sizes = [each.header.size for each in events if each.header.type_code in ROWS_EVENTS]
            epochs = sum(each.header.type_code == EventType.ANONYMOUS_GTID_LOG_EVENT for each in events)
            own = next(each.header.size for each in events if each.header.type_code in ROWS_EVENTS)
            assert sum(sizes) - epochs * own == found[name][number]


def test_a_long_log_has_several_files(tmp_path: Path) -> None:
    """A file names the next one, and each ends with a whole epoch."""
    run = small(7, None)
    files = write_binlogs(run, tmp_path, file_bytes=5_000)
    assert len(files["A"]) > 2
    schema = run.model.schema
    whole = tmp_path / "whole"
    whole.mkdir()
    (one,) = write_binlogs(run, whole)["A"]
    parts = [
        (row.epoch, row.before, row.after) for file in files["A"] for row in read_rows(tmp_path / file, schema=schema)
    ]
    assert parts == [(row.epoch, row.before, row.after) for row in read_rows(whole / one, schema=schema)]


def test_only_binlogs_of_a_simulation_are_replaced(tmp_path: Path) -> None:
    """And nothing is left of a folder that could not be finished."""
    target = tmp_path / "run"
    with run_folder(target) as folder:
        write_run(small(7, None), folder)
    with pytest.raises(ConfigurationError, match="exists already; give another folder"), run_folder(target):
        pass
    with pytest.raises(ZeroDivisionError), run_folder(target, replace=True) as folder:
        raise ZeroDivisionError
    assert load_run_file(target / RUN_FILE).configuration.links.is_pair
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ConfigurationError, match="holds no binlogs of a simulation"), run_folder(other, replace=True):
        pass
