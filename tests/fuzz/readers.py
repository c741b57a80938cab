"""
Every reader of files from elsewhere, with what it is given and what must hold of it.

A reader makes one input from one `random.Random`, and reads a file that holds it. It returns in a word how that ended:
with a result, or with one of the project's errors. Any other exception is a finding; so is a difference between the
two decoders.
"""

from __future__ import annotations

import io
import json
import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import attrs

from conflict.cli.common import load_definitions
from conflict.config.option_values import DecodedFormat
from conflict.config.printed_rows import printed_rows
from conflict.config.replication_rows import load_replication_rows
from conflict.config.run_file import load_run_file, load_steps
from conflict.config.server_settings import load_server_variables
from conflict.config.servers.addresses import addresses_of
from conflict.config.text_file import read_text
from conflict.decoding.decoding import Decoding, Output
from conflict.decoding.inputs import opened_inputs
from conflict.errors import ConflictError
from ndb_formats.errors import FormatError
from ndb_formats.schema.tables import Schema
from ndb_formats.selection import Selection
from ndb_formats.text.row_printer import TextOptions
from tests.corpora import DEMO, RECORDINGS
from tests.fuzz.binlog_mutator import mutated_log
from tests.fuzz.folders import a_recipe, read_changed_history, read_changed_result
from tests.fuzz.raw_log import RawLog, read_raw
from tests.fuzz.text_mutator import mutated_text
from tests.ndb_formats.columnar.answers import Groups, columnar_answer, scalar_answer

__all__ = ["READERS", "Reader", "outcome_of"]

_WINDOWS = (200, 600, 1500)
_STARTS = (2, 19, 33, 40, 162)  # events that a transaction can start with, or a Table_map event
_BINLOGS = ("binlogs/*", "*.binlog.*", "ndb_formats/*/binlog.*", "formats/*/*binlog*", "everyday/*/*/A.binlog.*")


@attrs.frozen
class Reader:
    """
    A reader.

    Attributes:
        name: Its name.
        suffix: How the name of its file ends.
        make: Makes an input.
        read: Reads a file; returns what it gave in a word.
    """

    name: str
    suffix: str
    make: Callable[[random.Random], bytes]
    read: Callable[[Path], str]


def outcome_of(reader: Reader, path: Path) -> str:
    """Return how reading a file ended; an exception that is none of the project's errors is a finding."""
    try:
        return reader.read(path)
    except (ConflictError, FormatError) as error:
        str(error)
        return f"refused: {type(error).__name__}"


# ---------------------------------------------------------------------------------------------------------
# Binlogs
# ---------------------------------------------------------------------------------------------------------


def _recorded(patterns: Iterable[str]) -> list[Path]:
    """Return the recordings' files, the demo's among them, that patterns name."""
    return sorted(path for pattern in patterns for folder in (RECORDINGS, DEMO) for path in folder.glob(pattern))


@cache
def sound_logs() -> tuple[RawLog, ...]:
    """Return the recordings' binlogs, of every server and layout."""
    files = _recorded(_BINLOGS)
    return tuple(read_raw(path.read_bytes(), 1 << 18) for path in files)


def a_window(chance: random.Random) -> RawLog:
    """Return a part of a recording: its first event, and events of a kilobyte or so from somewhere."""
    log = chance.choice(sound_logs())
    starts = [place for place, event in enumerate(log.events) if place and event.code in _STARTS] or [1]
    start = chance.choice(starts)
    chosen, size, window = log.events[:1], 0, chance.choice(_WINDOWS)
    for event in log.events[start:]:
        size += len(event.body)
        if size > window and len(chosen) > 2:
            break
        chosen.append(event)
    return attrs.evolve(log, events=chosen)


def a_binlog(chance: random.Random) -> bytes:
    """Return a mutated binlog."""
    return mutated_log(a_window(chance), chance)


def both_decoders(path: Path) -> str:
    """Read with both decoders, which must agree; refusals too."""
    expected, found = scalar_answer(path), columnar_answer(path, batch_rows=1 << 10)
    assert (found.error, _in_order(found.groups)) == (expected.error, _in_order(expected.groups)), "the decoders differ"
    return "read" if expected.error is None else f"refused: {expected.error[0].__name__}"


def _in_order(groups: Groups) -> Groups:
    """Return rows by position: two Table_map events can give columns alike in name, and in no other way."""
    return {key: sorted(rows, key=lambda row: row[:2]) for key, rows in groups.items()}


def decode_as(form: DecodedFormat, wide: bool, path: Path) -> str:
    """Decode to a format, as the command does."""
    with _scratch() as folder, opened_inputs([path]) as inputs:
        to_file = form in (DecodedFormat.PARQUET, DecodedFormat.CSV)
        output = Output(form, folder / "out" if to_file else None, wide=wide, moments=not wide)
        decoding = Decoding(inputs, Selection(), Schema(), TextOptions(2, True, True), verify=True)
        output.write(decoding, io.BytesIO())
    return "read" if not decoding.cuts else "cut"


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


# ---------------------------------------------------------------------------------------------------------
# Texts
# ---------------------------------------------------------------------------------------------------------


@cache
def _texts(*patterns: str) -> tuple[str, ...]:
    files = _recorded(patterns)
    return tuple({path.read_text("utf-8"): None for path in files})


def a_text(patterns: tuple[str, ...], more: tuple[str, ...], chance: random.Random) -> bytes:
    """Return a mutated text, made from a recording's or from one of `more`."""
    return mutated_text(chance.choice((*_texts(*patterns), *more)), chance)


_SCHEMA = """
CREATE TABLE `a`.`b` (k BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, c VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin
  DEFAULT 'x''y' COMMENT "a, b)", e ENUM('a','b''c') NOT NULL, s SET('x','y'), d DECIMAL(12,3) UNSIGNED ZEROFILL,
  t TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), g INT GENERATED ALWAYS AS (k + 1)
  STORED, j JSON, b BIT(17), x GEOMETRY SRID 4326, v VECTOR(3), y YEAR, tx MEDIUMTEXT, /*!80023 h INT INVISIBLE, */
  PRIMARY KEY (k, c(5)) USING HASH, UNIQUE KEY u (d, e), KEY (g DESC), FULLTEXT KEY (tx), CHECK (k > 0),
  CONSTRAINT f FOREIGN KEY (g) REFERENCES a.p (k) ON DELETE SET NULL ON UPDATE CASCADE) ENGINE=ndbcluster
  DEFAULT CHARSET=utf8mb4 COMMENT='NDB_TABLE=READ_BACKUP=1' PARTITION BY KEY (k) PARTITIONS 4;
ALTER TABLE a.b ADD COLUMN z INT AFTER k, DROP COLUMN s, RENAME COLUMN d TO d2, ALGORITHM=INPLACE;
RENAME TABLE a.b TO a.c; DROP TABLE IF EXISTS a.c;
"""
_ROWS_SQL = (
    "INSERT INTO `mysql`.`ndb_replication` (db, table_name, server_id, binlog_type, conflict_fn) VALUES "
    "('cft', 't_1', 0, 7, 'NDB$MAX(x)'), (_utf8mb4'a' 'b', 0x6162, 1, NULL, DEFAULT);\n"
    "REPLACE INTO ndb_replication VALUES ('d','%',2,9,'NDB$EPOCH2_TRANS(3)');\n"
)
_ROWS_TEXT = 'db,table_name,server_id,binlog_type,conflict_fn\ncft,"t""1",0,7,NDB$MAX(x)\n"a\\nb",%,1,\\N,NULL\n'


def read_schema(path: Path) -> str:
    """Read definitions, as run files and commands do."""
    load_definitions(path, [], inexact_keys=False)
    return "read"


def read_rows_file(path: Path) -> str:
    """Read rows of `ndb_replication`."""
    load_replication_rows(path)
    return "read"


_PRINTED = (
    (
        "+---------------+------+-------+\n| NDB$server_id | k    | x$OLD |\n+---------------+------+-------+\n"
        "|             1 | a|b  | NULL  |\n+---------------+------+-------+\n1 row in set (0.00 sec)\n"
    ),
    (
        "*************************** 1. row ***************************\nNDB$server_id: 1\n            k: 0x61FF\n"
        "        x$OLD: one\ntwo: 3\n*************************** 2. row ***************************\nNDB$server_id: 2\n"
    ),
    "NDB$server_id\tk\tx$OLD\n1\ta\\tb\\\\\tNULL\n2\t0x00\t18446744073709551615\n",
    "Variable_name\tValue\nNdb_conflict_fn_max\t1\nserver_id\t1\nReplicate_Do_DB\tshop\n",
)
_OPTION_FILE = "[mysqld]\nserver-id = 1\nskip-log-bin\n[client]\npassword = 'a # b'\nssl-mode=REQUIRED\n"


def read_printed(path: Path) -> str:
    """Read rows as the client prints them, and what of them a server's variables or channels are."""
    rows = [*printed_rows(read_text(path))]
    return "read" if rows else "no rows"


def read_variables(path: Path) -> str:
    """Read a server's variables, from an option file or as they are printed."""
    load_server_variables(path)
    return "read"


def read_client_options(path: Path) -> str:
    """Read what an option file adds to the address of a server."""
    addresses_of(["mysql://db"], path)
    return "read"


def read_run_file(path: Path) -> str:
    """Read a run file beside the demo's files."""
    with _scratch() as folder:
        for name in ("schema.sql", "ndb_replication.csv", "steps.json", "A.binlog.000001", "B.binlog.000001"):
            (folder / name).symlink_to(DEMO / name)
        run = folder / "run.toml"
        run.write_bytes(path.read_bytes())
        load_run_file(run).configuration.setups()
    return "read"


def some_steps(chance: random.Random) -> bytes:
    """Return mutated steps: a few that follow each other in a recording."""
    steps = json.loads(chance.choice(_texts("**/steps.json")))["steps"]
    start = chance.randrange(len(steps))
    return mutated_text(json.dumps({"steps": steps[start : start + 8]}), chance)


def read_steps(path: Path) -> str:
    """Read the steps of a recording."""
    load_steps(path, ["A", "B"])
    return "read"


_READERS = [
    Reader("decoders", ".000001", a_binlog, both_decoders),
    *(Reader(f"decode-{form}", ".000001", a_binlog, partial(decode_as, form, False)) for form in DecodedFormat),
    *(
        Reader(f"decode-wide-{form}", ".000001", a_binlog, partial(decode_as, form, True))
        for form in (DecodedFormat.CSV, DecodedFormat.PARQUET)
    ),
    Reader("schema", ".sql", partial(a_text, ("**/schema.sql",), (_SCHEMA,)), read_schema),
    Reader("rows-sql", ".sql", partial(a_text, ("**/ndb_replication.sql",), (_ROWS_SQL,)), read_rows_file),
    Reader("rows-csv", ".csv", partial(a_text, ("**/ndb_replication.csv",), (_ROWS_TEXT,)), read_rows_file),
    Reader("rows-tsv", ".tsv", partial(a_text, (), (_ROWS_TEXT.replace(",", "\t"),)), read_rows_file),
    Reader("printed-rows", ".txt", partial(a_text, (), _PRINTED), read_printed),
    Reader("variables", ".txt", partial(a_text, (), (*_PRINTED[-1:], _OPTION_FILE)), read_variables),
    Reader("client-options", ".cnf", partial(a_text, (), (_OPTION_FILE,)), read_client_options),
    Reader("run-file", ".toml", partial(a_text, ("**/run.toml",), ()), read_run_file),
    Reader("steps", ".json", some_steps, read_steps),
    Reader("history", ".json", partial(a_recipe, "history"), read_changed_history),
    Reader("result", ".json", partial(a_recipe, "result"), read_changed_result),
]
READERS = {reader.name: reader for reader in _READERS}
