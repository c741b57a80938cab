"""
How many bytes binlog files would take in every format: in all, by file, and as the document of `sizes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from conflict.config.arguments import StageProgress
from conflict.config.replication_rows import load_replication_rows
from conflict.config.schema_file import what_to_give
from conflict.errors import ConfigurationError
from conflict.history.ingestion.plan import files_document
from conflict.rules.table_setup import set_up
from conflict.whatif.sizing.document import sizes_json
from ndb_formats.binlog_reader import first_event, server_of
from ndb_formats.columnar.event_chunks import EventChunk
from ndb_formats.errors import CutFileError
from ndb_formats.events.rows_event import ROWS_EVENTS
from ndb_formats.rules.formats import FORMATS
from ndb_formats.rules.update_format import is_ndb
from ndb_formats.schema.tables import Schema, split_full_name
from ndb_formats.sizes.compression import CompressionMeter
from ndb_formats.sizes.log_sizes import LogSizer
from ndb_formats.sizes.report import SizeReport, size_report

_MEGABYTE = 1_000_000
_ROWS = np.array(sorted(ROWS_EVENTS), np.int64)


@attrs.define
class ReadFile:
    """
    A binlog file that is read.

    Attributes:
        file: Its path.
        size: Its bytes.
        first: When its first rows event was logged, in seconds since 1970; None before one was read.
        last: When the last one was.
        sizes: Its part of the figures of all files.
    """

    file: Path
    size: int
    first: int | None = None
    last: int | None = None
    sizes: dict[str, Any] = attrs.field(factory=dict)

    def add(self, chunk: EventChunk) -> None:
        """Take the times of a chunk of its events."""
        times = chunk.timestamps[np.isin(chunk.types, _ROWS)]
        if len(times):
            found = int(times.min()), int(times.max())
            self.first = found[0] if self.first is None else min(self.first, found[0])
            self.last = found[1] if self.last is None else max(self.last, found[1])

    def measured(self, before: SizeReport, after: SizeReport) -> None:
        """Take its sizes from those of all files before it, and with it."""
        (frame, logged, formats), (now_frame, now_logged, now_formats) = _totals(before), _totals(after)
        self.sizes = {
            "frame": now_frame - frame,
            "logged": now_logged - logged,
            "formats": {
                form.name: {bound: now[bound] - then[bound] for bound in now}
                for form, then, now in zip(FORMATS, formats, now_formats, strict=True)
            },
        }

    def document(self) -> dict[str, Any]:
        """Return what is known; the server is that of the first event, None in a file without one."""
        event = first_event(self.file, verify=False)
        return {
            "server_id": None if event is None else event.header.server_id,
            **files_document([self.file])[0],
            "first_change": _moment(self.first),
            "last_change": _moment(self.last),
            **self.sizes,
        }


@attrs.frozen
class MeasuredLog:
    """
    The sizes of a log.

    Attributes:
        report: The sizes.
        facts: What is known of each file that was read.
        cuts: Why files could not be read to their end. One that ends inside an event ends the log of its server, but
            not those of others.
        types: By table, the binlog type that rows of ``mysql.ndb_replication`` give it; empty without rows.
    """

    report: SizeReport
    facts: Sequence[ReadFile]
    cuts: Sequence[CutFileError]
    types: Mapping[str, str] = attrs.field(factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the sizes, and what is known of each file, as a document."""
        return sizes_json(self.report, self.types) | {"files": [each.document() for each in self.facts]}


def measured_log(files: Sequence[Path], definitions: Schema, event_size: int, progress: StageProgress) -> MeasuredLog:
    """
    Measure binlog files in every format.

    Args:
        files: The files, in order.
        definitions: Those of their tables that they do not hold.
        event_size: ``binlog_row_event_max_size`` of the server.
        progress: Called with the name of the stage, what is done, and what there is to do.

    Raises:
        ConfigurationError: A file is given twice, or no table's definition is known.
    """
    if len({file.resolve() for file in files}) < len(files):
        message = "a binlog file is given twice, and would count twice; give each once"
        raise ConfigurationError(message)
    lengths = [file.stat().st_size for file in files]
    sizer, meter = LogSizer(definitions, event_size=event_size), CompressionMeter(sum(lengths))
    facts = [ReadFile(file, length) for file, length in zip(files, lengths, strict=True)]
    read: list[ReadFile] = []
    cuts: list[CutFileError] = []
    ended: set[int | None] = set()
    before = size_report(sizer, [])
    for each in facts:
        server, done = server_of(each.file), sum(one.size for one in read)
        if server in ended:
            continue
        read.append(each)

        def seen(chunk: EventChunk, facts: ReadFile = each, done: int = done) -> None:
            meter.add(chunk)
            facts.add(chunk)
            at = int(chunk.stops[-1]) if len(chunk.stops) else 0
            progress("reading MB", (done + at) // _MEGABYTE, sum(lengths) // _MEGABYTE)

        try:
            sizer.add(each.file, seen=seen)
        except CutFileError as error:
            cuts.append(error)
            ended.add(server)
        after = size_report(sizer, [one.size for one in read])
        each.measured(before, after)
        before = after
    report = size_report(sizer, [each.size for each in read], meter.found)
    unknown = [table.name for table in report.tables if not table.known]
    if report.tables and len(unknown) == len(report.tables):
        names, given = ", ".join(unknown), [split_full_name(name)[1] for name in unknown]
        message = f"no definition of {names}, so other formats are not known; {what_to_give(files, given)}"
        raise ConfigurationError(message)
    return MeasuredLog(report, read, cuts)


def configured_types(rows: Path | None, files: Sequence[Path], definitions: Schema) -> dict[str, str]:
    """
    Return, by NDB table, the binlog type of `FORMATS` as which rows of ``mysql.ndb_replication`` have it logged.

    Args:
        rows: The file with the rows; None for none.
        files: The binlogs, whose servers the rows are for. Type 0 follows the defaults of the server options.
        definitions: The tables.

    Raises:
        ConfigurationError: The rows cannot be read, or give a table different types on servers of the files.
    """
    found: dict[str, str] = {}
    known = () if rows is None else load_replication_rows(rows)
    for server in sorted({server for file in files if (server := server_of(file)) is not None}) if known else ():
        for name, setup in set_up(definitions, known, server).items():
            form = next((each.name for each in FORMATS if each.of_ndb and each.rule == setup.format), None)
            if form is None or not is_ndb(setup.table):
                continue
            if found.setdefault(name, form) != form:
                message = (
                    f"{rows} gives {name} types {found[name]} and {form} on the servers of these binlogs; give the "
                    "binlogs of one server"
                )
                raise ConfigurationError(message)
    return found


def _totals(report: SizeReport) -> tuple[int, int, list[dict[str, int]]]:
    """Return the bytes that all formats share, those of the rows events as logged, and their bounds in each format."""
    changes = report.changes
    bounds = [{"least": each.least.bytes, "most": each.most.bytes} for each in changes.formats]
    return report.frame.bytes, changes.logged.bytes, bounds


def _moment(seconds: int | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()
