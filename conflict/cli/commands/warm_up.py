"""
`ndb-conflict warm-up`: compiles the kernels, so that no later command has to.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from decimal import Decimal
from pathlib import Path
from typing import Any

from rich.markup import escape

from conflict.cli.common import console, progress_bars
from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError

_LOG = "binlog.000001"
_MODEL = """
seconds = 20
seed = 1
function = "NDB$EPOCH_TRANS()"
recordcount = 2000
[workload]
transactions_per_second = 500
insertproportion = 0.1
deleteproportion = 0.1
updateproportion = 0.8
[clusters.A.link]
latency_ms = 40
[clusters.B.link]
latency_ms = 40
"""
# The same log, as one that begins with rows.
_MIDDLE = """
schema = "log/schema.sql"
database = "model"
start = "middle"
clusters.A = { server_id = 1, binlogs = ["log/A/binlog.000001"] }
clusters.B = { server_id = 2, binlogs = ["log/B/binlog.000001"] }
[[ndb_replication]]
db = "model"
table_name = "usertable"
server_id = 1
binlog_type = 7
conflict_fn = "NDB$EPOCH()"
"""
_LATER = 1001 << 32  # an epoch of the simulation; rows are older than a log that begins with it
# A column for each kernel that reads or shows values, and its value; the model's tables have integers alone.
_COLUMNS: dict[str, Any] = {
    "INT": 1,
    "TINYINT UNSIGNED": 2,
    "SMALLINT UNSIGNED": 3,
    "MEDIUMINT": 4,
    "BIGINT UNSIGNED": 5,
    "DECIMAL(10,3)": Decimal("1.5"),
    "DECIMAL(30,10)": Decimal("2.5"),
    "DOUBLE": 0.5,
    "CHAR(10) CHARACTER SET latin1": "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "VARCHAR(300)": "\N{LATIN SMALL LETTER E WITH ACUTE}",
    "VARBINARY(40)": b"bytes",
    "BIT(13)": 6,
    "DATE": "2026-01-01",
    "TIME(3)": "00:00:01.005",
    "DATETIME(2)": "2026-01-01 00:00:00.50",
    "TIMESTAMP(3) NULL": "2026-01-01 00:00:00.005",
    "JSON": {"a": [1, "b"]},
}
_KEYS = "PRIMARY KEY (c0, c8), UNIQUE KEY (c1), FOREIGN KEY (c2) REFERENCES types (c1)"


def warm_up() -> None:
    """
    Compile the kernels by running the other commands on a simulated log, so that later commands start at full speed.

    Run by the owner of the installation, it compiles for every user, as in the build of a container.

    Example: ndb-conflict warm-up && ndb-conflict resolve run.toml --out result
    """
    from ndb_formats.columnar.kernel_mode import Mode, set_mode
    from ndb_formats.compiled_cache import is_lasting, kernels_place

    if not is_lasting():
        message = "what is compiled could not be kept: set NUMBA_CACHE_DIR to a folder that can be written"
        raise ConfigurationError(message)
    set_mode(Mode.COMPILED)
    with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as folder, progress_bars() as progress:
        commands = _commands(Path(folder))
        for number, command in enumerate(commands):
            progress("compiling", number, len(commands))
            _run(command)
    place = kernels_place()
    kept = "beside the program, for all its users" if place is None else f"in {place}, for this user"
    console.print(f"The kernels are compiled, {escape(kept)}.", highlight=False, soft_wrap=True)


def _commands(folder: Path) -> list[list[str]]:
    """Return command lines that together call every kernel; each reads what those before it wrote."""
    middle = folder / "middle.toml"
    middle.write_text(_MIDDLE, "utf-8")
    (folder / "model.toml").write_text(_MODEL, "utf-8")
    log, types, types_schema = folder / "log", folder / "types", folder / "types.sql"
    types_schema.write_text(_write_types(types), "utf-8")
    logs, typed = ([f"{each / name}" for name in "AB"] for each in (log, types))
    run, schema = f"{log / 'run.toml'}", f"{log / 'schema.sql'}"
    by_value = "--schema", f"{types_schema}", "--conflict-fn", "warm.types=NDB$MAX(c4)"
    # Without a schedule it is open when rows were judged.
    by_epoch = "--schema", schema, "--conflict-fn", "model.usertable=NDB$EPOCH()", "--primary", "A"
    # The model has more bits, so that the binlogs contradict this.
    contradicted = "--schema", schema, "--conflict-fn", "model.usertable=NDB$EPOCH_TRANS(0)", "--primary", "A"
    return [
        ["simulate", f"{folder / 'model.toml'}", "--write-binlogs", f"{log}"],
        ["resolve", run, "--engine", "local", "--out", f"{folder / 'result'}"],
        ["resolve", run, "--start-epoch", f"A={_LATER}", "--engine", "local", "--out", f"{folder / 'later'}"],
        ["resolve", *logs, *by_epoch, "--engine", "local", "--out", f"{folder / 'open'}"],
        ["resolve", *logs, *contradicted, "--engine", "local", "--out", f"{folder / 'contradicted'}"],
        ["resolve", *typed, *by_value, "--engine", "local", "--out", f"{folder / 'typed'}"],
        ["compare", run, "--engine", "local", "--formats", "3,9"],
        ["compare", f"{middle}", "--engine", "local", "--functions", "NDB$EPOCH()"],
        ["workload", run, "--out", f"{folder / 'learnt.toml'}"],
        ["sizes", *logs, "--schema", schema],
        *(
            ["decode", *each, "-vv", "--schema", known, "--format", form, "-r", f"{folder / form}", "--force"]
            for each, known in ((logs, schema), (typed, f"{types_schema}"))
            for form in ("text", "json", "csv", "parquet")
        ),
    ]


def _write_types(folder: Path) -> str:
    """Write logs of two clusters, of rows with all columns of `_COLUMNS` that are older; return the definitions."""
    from ndb_formats.schema.create_table import parse_create_table
    from ndb_formats.writing.binlog_writer import BinlogSettings, BinlogWriter, WrittenChange

    columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate(_COLUMNS))
    definition = f"CREATE TABLE warm.types ({columns}, {_KEYS}) ENGINE=NDB"
    row, table = dict(enumerate(_COLUMNS.values())), parse_create_table(definition)
    for server, name in enumerate("AB", 1):
        (folder / name).mkdir(parents=True)
        with (folder / name / _LOG).open("wb") as out:
            writer = BinlogWriter(out, BinlogSettings(server_id=server))
            writer.start(0)
            for epoch, (before, after) in enumerate(((row, row | {1: 9}), (row, None), (None, row)), 1):
                own = 10 * server + epoch  # the same changes in the same epochs would be two logs of one cluster
                writer.write_epoch(own << 32, [WrittenChange(table, before, after, written=range(len(row)))], 0)
            writer.finish()
    return definition


def _run(command: Sequence[str]) -> None:
    """Run a command without a word; what it finds in the log is of no interest here."""
    from conflict.cli.app import app

    with open(os.devnull, "w", encoding="utf-8") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        code = app(list(command), standalone_mode=False)
    if code == ExitCode.REFUSED:
        message = f"ndb-conflict {command[0]} could not be run for its kernels"
        raise ConfigurationError(message)
