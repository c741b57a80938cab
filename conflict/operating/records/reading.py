"""
Conflicts and lost changes as records, with their images, batch by batch. Computes docs/records.md.

What the result knows of them is in memory; their images are read from the binlogs, one file after the other, and only
those of one block of a file are held.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, dropwhile, groupby, pairwise, takewhile

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.configuration import Configuration
from conflict.history.grid.schemas import PLACE
from conflict.history.scheduling.schedule_columns import among
from conflict.operating.records.facts import read_facts, with_keys
from conflict.operating.records.layout import RECORD
from conflict.operating.repairing.reading_lost import logs_of
from conflict.results.conflicts import Chosen, numbered
from conflict.results.result import Result
from conflict.results.run_document import columns_of_tables
from conflict.runs.run_inputs import run_file_of
from conflict.telling.shown_text import listed
from ndb_formats.columnar.batches import RowBatch
from ndb_formats.columnar.lines import image_objects
from ndb_formats.columnar.records import RECORDS, records_of
from ndb_formats.columnar.selected_changes import Block, ChangeReading, ends_log, selected_changes
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection
from ndb_formats.stored import path_of

Int64 = npt.NDArray[np.int64]
_ROWS = 1 << 15  # of a batch
_LOGGED = pa.schema(
    [*(RECORDS.field(name) for name in (*PLACE, "server_id")), ("before", pa.string()), ("after", pa.string())]
)


@attrs.frozen(eq=False)
class Logs:
    """
    The binlogs of a result.

    Attributes:
        configuration: The run, with the binlogs that can be read; None if no image can be.
        schemas: By cluster, the tables where its binlogs start, if not those of the configuration.
        missing: The files that are missing.
        unread: The binlogs that are there, and are not read, since a missing file may have changed their tables.
    """

    configuration: Configuration | None
    schemas: Mapping[str, Schema] = attrs.field(factory=dict)
    missing: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def remark(self) -> str:
        """Which images cannot be read, as a sentence; empty if all can be."""
        if not self.missing:
            return ""
        among = "all records" if self.configuration is None else "records of changes in them"
        others = f", and in those of {listed(self.unread)}, whose tables may have been others" if self.unread else ""
        return f"{listed(self.missing)}: missing, so server_id, before and after are NULL in {among}{others}."

    @classmethod
    def of(cls, result: Result) -> Logs:
        """
        Return the binlogs of a result.

        If some are missing, the others are read. If statements changed the columns of tables, those that follow a
        missing one are not, since that may hold such a statement.

        Raises:
            HistoryError: One has changed since the result was made.
        """
        inputs = result.run["inputs"]
        missing = tuple(file["path"] for file in inputs["files"] if not path_of(file["path"]).is_file())
        if not missing:
            return cls(*logs_of(result))
        setup = result.run["configuration"]
        logs: list[list[str]] = [own["binlogs"] for own in setup["clusters"].values()]
        if inputs["history"] or not set(chain(*logs)).issuperset(missing):
            return cls(None, missing=missing)
        configuration = run_file_of(result.run, result.folder.uri, missing).configuration.with_database_names({})
        tables = columns_of_tables(configuration.schema)
        if all([*tables.get(name, {}).items()] == [*columns.items()] for name, columns in setup["tables"].items()):
            return cls(configuration, missing=missing)
        later = (dropwhile(lambda file: file not in missing, log) for log in logs)
        return cls(configuration, missing=missing, unread=tuple(each for each in chain(*later) if each not in missing))


def read_records(result: Result, which: Chosen, logs: Logs) -> pa.RecordBatchReader:
    """
    Return the conflicts and lost changes of a result as records, as `RECORD`, in the order of the logs.

    Args:
        result: The result.
        which: Which of them.
        logs: Its binlogs.
    """
    return pa.RecordBatchReader.from_batches(RECORD, _batches(result, which, logs))


def _batches(result: Result, which: Chosen, logs: Logs) -> Iterator[pa.RecordBatch]:
    facts = read_facts(result, which)
    for name in result.clusters:
        for part in _of_cluster(facts.filter(pc.equal(facts["source"], name)), name, logs):
            yield from with_keys(part, result).select(RECORD.names).cast(RECORD).combine_chunks().to_batches(_ROWS)


def _of_cluster(facts: pa.Table, name: str, logs: Logs) -> Iterator[pa.Table]:
    """Yield the facts on changes of a cluster with their images, file by file; those without a file are the last."""
    codes = numbered(facts, ["file"])
    bounds = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(facts)] if len(facts) else []
    by_file = {facts["file"][start].as_py(): facts.slice(start, end - start) for start, end in pairwise(bounds)}
    configuration, without = logs.configuration, {*logs.missing, *logs.unread}
    for own in () if configuration is None else configuration.clusters:
        if own.name == name and configuration is not None:
            schema = logs.schemas.get(name) or configuration.schema_of(own)
            named = {os.fspath(path): str(path) for path in own.files if str(path) not in without}
            wanted = {path for path, file in named.items() if file in by_file}
            reading = ChangeReading(schema, rows=_ROWS, only=wanted, is_end=ends_log)
            blocks = selected_changes(list(named), Selection(), reading)
            for path, found in groupby(blocks, lambda block: block.file):
                for file in [*takewhile(without.__contains__, by_file)]:
                    yield from with_logged(by_file.pop(file), ())
                mine = by_file.pop(named[path])
                yield from with_logged(mine, _logged(mine, named[path], found))
    for mine in by_file.values():
        yield from with_logged(mine, ())


def _logged(facts: pa.Table, file: str, blocks: Iterable[Block[RowBatch]]) -> Iterator[pa.Table]:
    """Yield the images of the changes that facts are of, as `_LOGGED`, by block of their file."""
    positions = np.unique(facts["position"].to_numpy())
    for block in blocks:
        yield logged_images(block.batches, file, positions)


def logged_images(batches: Iterable[RowBatch], file: str, positions: npt.NDArray[np.uint64]) -> pa.Table:
    """Return the images of the changes of a file whose events have these positions; `batches`: some of its changes."""
    parts = [_LOGGED.empty_table()]
    for batch in batches:
        kept = batch.where(among(batch.records.column("position").to_numpy(), positions))
        if len(kept):
            places = records_of([kept], file, pa.schema([RECORDS.field(name) for name in (*PLACE, "server_id")]))
            images = [image_objects(kept, name) for name in ("before", "after")]
            parts.append(pa.table([*places.columns, *images], schema=_LOGGED))
    return pa.concat_tables(parts)


def with_logged(facts: pa.Table, blocks: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """
    Yield the facts on changes of a file with their images, each as soon as it is known.

    Args:
        facts: The facts, in the order of the log.
        blocks: What `logged_images` returned, in the same order.
    """
    done = 0
    for logged in blocks:
        if not len(logged):
            continue
        left = facts.slice(done)
        last = pc.max(logged["position"]).as_py()
        near = left.slice(0, int(np.searchsorted(left["position"].to_numpy(), last, side="right")))
        rows = _matches(near, logged)
        found = np.flatnonzero(rows >= 0)
        if len(found):
            count = int(found[-1]) + 1
            done += count
            yield _with_images(near.slice(0, count), logged, rows[:count])
    left = facts.slice(done)
    if len(left):
        yield _with_images(left, _LOGGED.empty_table(), np.full(len(left), -1))


def _matches(facts: pa.Table, logged: pa.Table) -> Int64:
    """Return the row of `logged` at the place of each fact; -1 if there is none. Shape (facts,)."""
    place = PLACE[1:]
    theirs = logged.select(list(place))
    codes = numbered(pa.concat_tables([facts.select(list(place)).cast(theirs.schema), theirs]), place)
    rows = np.full(int(codes.max(initial=-1)) + 1, -1)
    rows[codes[len(facts) :]] = np.arange(len(logged))
    return rows[codes[: len(facts)]]


def _with_images(facts: pa.Table, logged: pa.Table, rows: Int64) -> pa.Table:
    taken = logged.select(["server_id", "before", "after"]).take(pa.array(rows, mask=rows < 0))
    for name in taken.column_names:
        facts = facts.append_column(name, taken[name])
    return facts
