"""
Written files, given to a real MySQL server: mysqlbinlog verifies them, the server applies them, the tables are equal.

`make test-mysql` runs this; the name keeps it out of other test runs. See docs/writing-binlogs.md.
"""

import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from ndb_formats.events.table_map_of_table import RowMetadata
from ndb_formats.rules.images import Logging
from ndb_formats.rules.row_image_rules import parse_row_image
from ndb_formats.rules.update_format import effective_format
from ndb_formats.schema.tables import Table
from ndb_formats.writing.binlog_writer import BinlogSettings, BinlogWriter, WrittenChange
from tests.mysql_server.recorded_run import COPY, DEFINITIONS, SOURCE, RecordedRun, Step, contents, create, record
from tests.mysql_server.server import Server, given_server
from tests.ndb_formats.recordings import row_events
from tests.ndb_formats.writing.relogged_files import masked, rewritten, transaction_starts

APPLY_STATUS = (
    "CREATE TABLE ndb_apply_status (server_id INT UNSIGNED NOT NULL PRIMARY KEY, epoch BIGINT UNSIGNED NOT NULL,"
    " log_name VARCHAR(255) NOT NULL, start_pos BIGINT UNSIGNED NOT NULL, end_pos BIGINT UNSIGNED NOT NULL)"
    " ENGINE=InnoDB DEFAULT CHARSET=latin1;"
)
IMAGES = ("full", "minimal", "noblob")
MOMENT = 1_700_000_000_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Return the server, or end the run with what is missing."""
    found = given_server()
    yield found
    for database in (SOURCE, COPY):
        found.run(f"SET sql_log_bin = OFF; DROP DATABASE IF EXISTS {database}")


@pytest.fixture(scope="module")
def full(server: Server, tmp_path_factory: pytest.TempPathFactory) -> RecordedRun:
    """All statements, logged with all columns."""
    return record(server, "full", tmp_path_factory.mktemp("run") / "full")


def changes(run: RecordedRun, step: Step, engine: str | None = None) -> list[WrittenChange]:
    """Return the row changes of a statement, on the tables as they are or with another engine."""
    return [
        WrittenChange(table_of(run, row.table, engine), row.before, row.after, run.written(step))
        for row in run.rows(step)
    ]


def table_of(run: RecordedRun, name: str, engine: str | None) -> Table:
    table = run.schema.find(SOURCE, name)
    assert table is not None
    return table if engine is None else attrs.evolve(table, engine=engine)


def write(path: Path, run: RecordedRun, how: BinlogSettings, engine: str | None = None) -> list[tuple[int, int]]:
    """Write the changes of all statements; return the stretch of the file that each made."""
    stretches = []
    with path.open("wb") as out:
        writer = BinlogWriter(out, how)
        writer.start(MOMENT)
        for number, step in enumerate(run.steps):
            start, moment = writer.position, MOMENT + number * 1_000_000
            if engine is None:
                writer.write_transaction([changes(run, step)], moment, transaction_id=number)
            else:
                writer.write_epoch(number << 32, changes(run, step, engine), moment)
            stretches.append((start, writer.position))
        writer.finish()
    return stretches


def check_applied(
    server: Server, path: Path, run: RecordedRun, stretches: list[tuple[int, int]], *options: str
) -> None:
    """Apply a file statement by statement, and compare all tables after each."""
    server.read(path)
    create(server, COPY, DEFINITIONS + APPLY_STATUS)
    for step, (start, stop) in zip(run.steps, stretches, strict=True):
        if start < stop:
            names = [f"--rewrite-db={name}->{COPY}" for name in (SOURCE, "mysql")]
            server.run(server.read(path, f"--start-position={start}", f"--stop-position={stop}", *names, *options))
        assert contents(server, COPY, run.schema) == step.contents, step.sql


VARIANTS = {
    "plain": BinlogSettings(),
    "GTIDs, compressed": BinlogSettings(gtid_source=uuid.uuid4().bytes, compression=True),
    "no checksums, all metadata": BinlogSettings(checksums=False, metadata=RowMetadata.FULL),
    "small events": BinlogSettings(row_event_max_size=256),
}


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize("variant", VARIANTS)
def test_files_of_each_row_image(server: Server, full: RecordedRun, image: str, variant: str, tmp_path: Path):
    """Written from the row changes of the statements."""
    how = attrs.evolve(VARIANTS[variant], logging=Logging(row_image=parse_row_image(image)))
    if how.gtid_source is not None:
        how = attrs.evolve(how, gtid_source=uuid.uuid4().bytes)
    path = tmp_path / "binlog.000001"
    stretches = write(path, full, how)
    gtids = how.gtid_source is not None and server.run("SELECT @@gtid_mode").strip() == "ON"
    check_applied(server, path, full, stretches, *(() if gtids else ("--skip-gtids",)))


@pytest.mark.parametrize("image", IMAGES)
def test_row_events_are_those_of_the_server(server: Server, full: RecordedRun, image: str, tmp_path: Path):
    """
    Byte for byte what the server logs of the same statements under that setting.

    Table ids differ, and the unused bits of column bitmaps, which depend on how the server came to its bitmap.
    """
    own = record(server, image, tmp_path / image)
    path = tmp_path / "binlog.000001"
    write(path, full, BinlogSettings(Logging(row_image=parse_row_image(image))))
    mine, theirs = (
        [masked(event, attrs.evolve(rows, spare_columns=(0, 0))) for event, _, rows in row_events(each)]
        for each in (path, own.log)
    )
    assert mine == theirs
    assert len(mine) > 40


@pytest.mark.parametrize("number", [2, 3, 6, 7, 8, 9])
def test_files_of_each_binlog_type(server: Server, full: RecordedRun, number: int, tmp_path: Path):
    """Epochs, with rows of ndb_apply_status; updates as writes need an applier that replaces rows, as NDB's does."""
    path = tmp_path / "binlog.000001"
    stretches = write(path, full, BinlogSettings(Logging(effective_format(number))), "NDB")
    check_applied(server, path, full, stretches, "--skip-gtids", "--idempotent")


@pytest.mark.parametrize("image", IMAGES)
def test_the_server_log_in_another_row_image(server: Server, full: RecordedRun, image: str, tmp_path: Path):
    """Rewritten without the statements' texts."""
    path = tmp_path / "binlog.000001"
    path.write_bytes(rewritten(full.log, full.schema, image)[0])
    starts = [*transaction_starts(path), path.stat().st_size]
    places = {start: place for place, start in enumerate(transaction_starts(full.log))}
    stretches = []
    for step in full.steps:
        here = [place for start, place in places.items() if step.start <= start < step.stop]
        stretches.append((starts[here[0]], starts[here[-1] + 1]) if here else (0, 0))
    check_applied(server, path, full, stretches, "--skip-gtids")
    if image == "full":
        assert path.read_bytes() == full.log.read_bytes()


def test_mysqlbinlog_prints_the_same_rows(server: Server, full: RecordedRun, tmp_path: Path):
    """Its ### lines of a file written with all columns are those of the server's own log."""
    path = tmp_path / "binlog.000001"
    write(path, full, BinlogSettings(Logging()))
    options = ("--base64-output=decode-rows", "-vv")
    mine, theirs = (re.findall(rb"^###.*$", server.read(each, *options), re.MULTILINE) for each in (path, full.log))
    assert mine == theirs
    assert len(mine) > 300
