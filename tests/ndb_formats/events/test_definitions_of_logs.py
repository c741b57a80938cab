"""Definitions that are followed along real logs agree with the Table_map events of these logs."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ndb_formats.binlog_reader import read_events, unpacked
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from ndb_formats.events.agreed_definition import differences
from ndb_formats.events.logged_statement import definitions_without_faults, statement_of
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.table_map import decode_table_map
from ndb_formats.schema.definitions import Definitions
from tests.corpora import SHARED


def contradictions(path: Path) -> Iterator[str]:
    """Yield what cannot be followed in a log, and where definitions and Table_map events differ."""
    known = Definitions.of([])
    for event in (inner for outer in read_events(path) for inner in unpacked(outer)):
        if event.type is EventType.QUERY_EVENT:
            statement = statement_of(decode_query(event.body, event.server))
            if statement is None:
                continue
            try:
                known = known.after(statement)[0]
            except FormatError as error:
                yield f"{path.name}: {error}"
                known = definitions_without_faults(known, statement)
        elif event.type is EventType.TABLE_MAP_EVENT:
            found = decode_table_map(event.body, event.server)
            table = known.find(found.database, found.table)
            if table is not None:
                yield from (f"{path.name}: {each.table} {each.column}: {each}" for each in differences(found, table))


def is_log(path: Path) -> bool:
    """Whether a file starts as a binlog does."""
    return path.is_file() and path.read_bytes()[:4] == b"\xfebin"


@pytest.mark.parametrize("folder", [pytest.param(each, marks=pytest.mark.corpus(each)) for each in ("bugs", "binlogs")])
def test_logs_agree_with_their_own_metadata(folder: str):
    """What the statements of a log make of its tables is what its Table_map events say, as far as it can be read."""
    wrong, read = list[str](), 0
    for path in filter(is_log, sorted((SHARED / folder).rglob("*"))):
        with suppress(FormatError):  # some are damaged, which is not judged here
            for each in contradictions(path):
                wrong.append(each)
            read += 1
    assert wrong == []
    assert read > 10
