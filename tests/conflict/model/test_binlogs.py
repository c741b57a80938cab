"""A simulation written as binlogs is, to every reader and engine, what happened in it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conflict.compatibility.deployment import Policy
from conflict.config.run_file import load_run_file
from conflict.errors import ConfigurationError
from conflict.model.binlogs import bytes_by_type, write_binlogs
from conflict.model.configuration import DATABASE, Applier, Latency, Link, Model, ModelTable, Site
from conflict.model.figures import counters_of, decided, final_rows
from conflict.model.kernels.world import Stamp, Wish
from conflict.model.run import Simulated, simulate
from conflict.model.run_folder import run_folder, write_run
from conflict.model.workload import InsertKeys, Mix, Workload
from conflict.pipeline import resolve
from conflict.result import Result, read_result
from conflict.rules.decision import Verdict
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.extra_row_info import ExtraRowInfo
from ndb_formats.events.rows_event import ROWS_EVENTS, decode_rows_event
from ndb_formats.row_reader import read_rows
from ndb_formats.rules.images import Logging
from ndb_formats.rules.update_format import effective_format
from ndb_formats.types.values import ABSENT
from ndb_formats.writing.binlog_writer import APPLY_STATUS_TABLE, BinlogSettings, BinlogWriter, RowChange
from tests.conflict.model.models import random_model

MIXED = Mix({Wish.UPDATE: 2, Wish.PUT: 1, Wish.DELETE: 1, Wish.INSERT: 1}, {1: 1, 3: 1})


def small(binlog_type: int, function: str | None = "NDB$EPOCH()", **table: object) -> Simulated:
    """A simulation of a second in which all operations meet conflicts."""
    functions = {} if function is None else {"A": function}
    made = ModelTable("t", 20, 2, functions, binlog_type, **{"stamp": Stamp.VERSION, **table})  # type: ignore[arg-type]
    work = Workload((60.0,), MIXED, inserts={0: InsertKeys.ANY})
    link = Link(Latency("constant", 60_000))
    first, second = (Site(name, number, work, link=link) for number, name in enumerate("AB", start=1))
    return simulate(Model((first, second), (made,), 1_000_000), 5)


def resolved(run: Simulated, folder: Path, *, schedule: bool, engine: str = "local") -> Result:
    """What an engine makes of the binlogs of a simulation."""
    with run_folder(folder) as work:
        write_run(run, work, schedule=schedule)
    out = folder / "result"
    done = resolve(load_run_file(folder / "run.toml"), str(out), engine=engine, policy=Policy.NEEDS)
    assert not done.contradicted
    return read_result(str(out))


def assert_same(run: Simulated, result: Result) -> None:
    """Every counter, every row, and every operation that was rejected, with its cause."""
    for name, counters in counters_of(run).items():
        found = result.counters[name]
        assert {each: value for each, value in counters.items() if value} == {
            each: found[each] for each in found if found[each] and each in counters
        }
        for table in run.model.schema.tables.values():
            rows = result.rows(name, table.full_name)
            mine = sorted(final_rows(run, name, table.full_name))
            assert sorted(tuple(row.values()) for row in rows.to_pylist()) == mine


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=8)
def test_what_resolve_makes_of_the_binlogs(seed: int) -> None:
    pass
