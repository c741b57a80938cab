"""
The options of the Spark data source `ndb_binlog`.

    path         a file, a folder, an index file or a pattern; every binlog in it and below it is read, compressed ones
                 (gzip, Zstandard) among them; ``load`` also takes a list of paths
    table        one ``database.table``: images are structs of its columns
    columns      with table: the columns to decode, separated by commas
    temporals    with table: ``typed`` (dates and timestamps, which hold no zero dates) or ``text``
    envelope     with table: ``debezium``, for rows as Debezium gives them
    tables       ``database.table`` names, separated by commas; by default all user tables
    servers      ids of servers, separated by commas, that first made the changes; by default all
    startEpoch   first NDB epoch, inclusive
    endEpoch     last NDB epoch, inclusive; errors after it are ignored
    startTime    first moment, as 2026-01-31T08:00:00+01:00; UTC without an offset
    endTime      moment to stop before
    schema       file of CREATE TABLE statements, for column names that are not in the binlog
    remarks      ``fail`` where `read_binlog` warns of a log (the default), or ``ignore`` that
    mode         ``FAILFAST`` (the default): what cannot be read fails the query; ``PERMISSIVE`` leaves it out
    badRecordsPath   with PERMISSIVE: folder for a line of JSON about each part of a file that was left out
    maxFilesPerTrigger, maxBytesPerTrigger   of a stream: most files, and about the most bytes, of one batch
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import attrs

from conflict.config.option_values import seconds_of
from conflict.config.schema_file import load_schema
from conflict.config.text_file import plain_path
from conflict.discovery.logs import files_of, readable_files
from conflict.errors import ConfigurationError
from conflict.spark.left_out import LeftOut
from ndb_formats.constants import APPLY_STATUS
from ndb_formats.schema.tables import Schema
from ndb_formats.stored import path_of

_NAMES = (
    *("path", "table", "columns", "temporals", "envelope", "tables", "servers"),
    *("startEpoch", "endEpoch", "startTime", "endTime", "schema", "remarks", "mode", "badRecordsPath"),
    *("maxFilesPerTrigger", "maxBytesPerTrigger"),
)
_SEVERAL = "paths"  # as Spark gives a list of paths: JSON
KNOWN = frozenset(name.lower() for name in (*_NAMES, _SEVERAL))


@attrs.frozen
class BinlogOptions:
    """
    The checked options.

    Attributes:
        files: Binlog files.
        tables: ``database.table`` names; None for all user tables.
        start_epoch: First NDB epoch.
        end_epoch: Last NDB epoch.
        start_time: First second since 1970.
        end_time: Second since 1970 to stop before.
        schema: Definitions, for names and types that are not in the binlog.
        table: The one table whose columns are wanted.
        columns: Its columns to decode; None for all.
        moments: Whether its dates and timestamps have types of their own.
        fails: Whether a remark on a log is an error.
        left_out: Folder for what is told of parts of files that cannot be read, and are left out; None if they are
            errors.
        paths: What the files were found at.
        envelope: Whether rows have the shape of `conflict.spark.envelope`.
        most_files: Most files that a batch of a stream reads; None for no limit.
        most_bytes: Bytes after which such a batch ends, with the first transaction at least; None for no limit.
        servers: Ids of servers that first made the changes; None for all.
        unreadable: Files at the paths that are no binlogs, if these are left out.
    """

    files: tuple[str, ...]
    tables: frozenset[str] | None
    start_epoch: int
    end_epoch: int | None
    start_time: int
    end_time: int | None
    schema: Schema
    table: str | None = None
    columns: frozenset[str] | None = None
    moments: bool = True
    fails: bool = True
    left_out: Path | None = None
    paths: tuple[str, ...] = ()
    envelope: bool = False
    most_files: int | None = None
    most_bytes: int | None = None
    servers: frozenset[int] | None = None
    unreadable: tuple[LeftOut, ...] = ()

    def wants(self, table: str) -> bool:
        """Whether the changes of a table are read."""
        return table in self.tables if self.tables is not None else table != APPLY_STATUS


def read_options(options: Mapping[str, str]) -> BinlogOptions:
    """
    Return the options, checked.

    Args:
        options: By name, in lower-case letters.

    Raises:
        ConfigurationError: An option is unknown or cannot be used, or there is no binlog at the path.
        SchemaError: The file of statements cannot be read.
    """
    unknown = sorted(set(options) - KNOWN)
    paths = _paths(options)
    if unknown or not paths:
        problem = f"unknown options {', '.join(unknown)}" if unknown else "no path given"
        message = f"ndb_binlog: {problem}; options are {', '.join(_NAMES)}"
        raise ConfigurationError(message)
    table, tables, columns = (options.get(name) for name in ("table", "tables", "columns"))
    temporals = options.get("temporals", "typed")
    if (table and tables) or (columns and not table) or temporals not in ("typed", "text"):
        message = "ndb_binlog: give table or tables; columns needs table; temporals is typed or text"
        raise ConfigurationError(message)
    envelope = options.get("envelope")
    if envelope is not None and (not table or envelope.lower() != "debezium"):
        message = "ndb_binlog: envelope is debezium, and needs table"
        raise ConfigurationError(message)
    remarks = options.get("remarks", "fail")
    if remarks not in ("fail", "ignore"):
        message = f"ndb_binlog: remarks is {remarks}; give fail or ignore"
        raise ConfigurationError(message)
    folder = _left_out(options)
    found = [_files(path, leaves_out=folder is not None) for path in paths]
    files = tuple(dict.fromkeys(file for own, _ in found for file in own))
    names = table or tables
    return BinlogOptions(
        files,
        None if names is None else frozenset(name.strip() for name in names.split(",")),
        _number(options, "startEpoch", "NDB epoch") or 0,
        _number(options, "endEpoch", "NDB epoch"),
        seconds_of(options.get("starttime"), "ndb_binlog: startTime is") or 0,
        seconds_of(options.get("endtime"), "ndb_binlog: endTime is"),
        load_schema(options.get("schema"), binlogs=files),
        table,
        None if columns is None else frozenset(name.strip() for name in columns.split(",")),
        temporals == "typed",
        remarks == "fail",
        folder,
        tuple(paths),
        envelope is not None,
        _number(options, "maxFilesPerTrigger", "number of files"),
        _number(options, "maxBytesPerTrigger", "number of bytes"),
        _servers(options),
        tuple(left for _, own in found for left in own),
    )


def _paths(options: Mapping[str, str]) -> list[str]:
    """Return the paths; `load` gives several as JSON."""
    several: list[str] = json.loads(options.get(_SEVERAL, "[]"))
    return [*([options["path"]] if "path" in options else []), *several]


def _left_out(options: Mapping[str, str]) -> Path | None:
    mode, folder = options.get("mode", "FAILFAST").upper(), options.get("badrecordspath")
    if mode not in ("FAILFAST", "PERMISSIVE") or (folder is None) == (mode == "PERMISSIVE"):
        message = (
            "ndb_binlog: mode is FAILFAST, or PERMISSIVE with badRecordsPath, a folder for what is told of the parts "
            "of files that cannot be read and are left out"
        )
        raise ConfigurationError(message)
    return None if folder is None else Path(folder.removeprefix("file:"))


def _number(options: Mapping[str, str], name: str, what: str) -> int | None:
    text = options.get(name.lower())
    return None if text is None else _number_of(text, name, what)


def _servers(options: Mapping[str, str]) -> frozenset[int] | None:
    text = options.get("servers")
    return None if text is None else frozenset(_number_of(each, "servers", "server id") for each in text.split(","))


def _number_of(text: str, name: str, what: str) -> int:
    if not text.strip().isdecimal():
        message = f"ndb_binlog: {name} is {text}, which is no {what}; give a number"
        raise ConfigurationError(message)
    return int(text)


def _files(pattern: str, *, leaves_out: bool) -> tuple[list[str], list[LeftOut]]:
    """Return the binlogs at a path, and, if they are left out, the files that are none."""
    path = path_of(pattern.removeprefix("file:"))
    try:
        logs, others = readable_files(path) if leaves_out else ([*files_of([path], unpacks=True)], {})
        return [str(plain_path(file)) for file in logs], [LeftOut(str(file), why) for file, why in others.items()]
    except ConfigurationError as error:
        message = f"ndb_binlog: no binlog found at {pattern}: {error}"
        raise ConfigurationError(message) from error
