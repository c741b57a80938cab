"""The pages say what is so: their commands run, their code runs, their tables are those of the code."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from conflict import records as conflict_records
from conflict import resolve
from conflict.checking.findings import CODES, Severity
from conflict.checking.requirements import MARKS, requirements_table
from conflict.cli import app as cli
from conflict.cli.common import console
from conflict.cli.refusals import MEANINGS
from conflict.config.arguments import DeploymentPolicy
from conflict.config.run_file import load_run_file
from conflict.engine.ledger.arrow_rows import row_schema
from conflict.engine.ledger.contradictions import CONTRADICTIONS
from conflict.engine.ledger.layout import APPLIED_EPOCHS, OUTCOMES, OVERWRITTEN, SKIPPED, UNDECIDED, UNLOGGED
from conflict.errors import ConfigurationError
from conflict.explaining.events import EVENTS
from conflict.history.epochs import EpochReader
from conflict.history.grid import schemas as grid
from conflict.history.grid.epoch_files import EPOCHS
from conflict.operating.alerting.conditions import FIGURES
from conflict.operating.alerting.metrics import Timing
from conflict.operating.alerting.metrics import metrics_text as conflict_metrics
from conflict.operating.records.layout import RECORD
from conflict.operating.repairing.reading_lost import LOST
from conflict.resolvers.user_policies import policies_of_tables
from conflict.results.cause_kinds import CauseKind
from conflict.results.cutovers import REPEATED
from conflict.rules.counters import COUNTERS
from conflict.rules.decision import Decision, IncomingOperation, RowState
from conflict.rules.functions import FUNCTIONS, OF_POLICIES, Cell, judge, parse_conflict_function
from conflict.rules.replication_table import ReplicationRow
from conflict.rules.server_variables import VARIABLES, Effect
from conflict.rules.stops import StopError
from conflict.rules.table_setup import RefusalKind, set_up
from conflict.spark.data_source import NdbBinlogDataSource, register
from conflict.whatif.comparing.figures import COMPARISON
from ndb_formats.binlog_reader import Event
from ndb_formats.columnar.block_reader import METADATA
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError, UnsupportedError
from ndb_formats.events.header import EventHeader
from ndb_formats.events.rows_event import Operation
from ndb_formats.findings import ReplicaEffect
from ndb_formats.rules.replica.codes import RULES
from ndb_formats.schema.create_table import parse_create_table, parse_schema
from ndb_formats.schema.tables import Schema
from ndb_formats.types.collation_names import collation_of
from ndb_formats.types.collations import is_exact
from tests.corpora import DEMO
from tools.generated_parts import (
    LINES,
    PICTURE,
    careful_table,
    copies_table,
    draw,
    findings_tables,
    releases_table,
    servers_table,
    settings_tables,
)

ROOT = Path(__file__).parents[1]
PAGES = {path.name: path for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]}
# What takes half a minute; its commands are those of other pages, on a longer recording.
LONG_PAGES = ("case-study.md",)
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
# What a toml block that shows a part of a run file stands in.
RUN_FILE = """
schema = "schema.sql"
[clusters.A]
server_id = 1
binlogs = ["a.000001"]
[clusters.B]
server_id = 2
binlogs = ["b.000001"]
"""


@attrs.frozen
class Block:
    """A fenced block: its language and what stands in it."""

    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGES[page].read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return [Block(language, text) for language, text in found]


def table(page: str, *headings: str) -> list[list[str]]:
    """Return the rows of the first table on a page with these headings, without marks for code."""
    return tables(page, *headings)[0]


def tables(page: str, *headings: str) -> list[list[list[str]]]:
    """Return the rows of every table on a page whose first headings are these."""
    found = []
    for text in re.findall(r"(?:^\|.*\|\n)+", PAGES[page].read_text("utf-8"), re.MULTILINE):
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()]
        if rows[0][: len(headings)] == list(headings):
            found.append([[_shown(cell) for cell in row] for row in rows[2:]])
    assert found, f"{page} has no table with the headings {headings}"
    return found


def _shown(cell: str) -> str:
    """Return a cell of a table without marks for code, anchors, and links to findings."""
    cell = re.sub(r'<a id="[\w-]+"></a>', "", cell).replace("`", "")
    return re.sub(r"\[(NDB-\w+)\]\(findings\.md#[\w-]+\)", r"\1", cell)


def squeezed(text: str) -> str:
    """Return a text without the blanks and line ends that depend on the width of a terminal."""
    return re.sub(r"\s+", " ", text).strip()


def assert_shown(shown: str, output: str) -> None:
    """Check that what a page shows was printed; ``...`` stands for anything, from its line on."""
    for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE):
        assert squeezed(part) in squeezed(output)


class Shell:
    """Runs what pages tell to run, in a folder like the project's, where the demo has been."""

    def run(self, command: str) -> str:
        """Run one line and return what it printed; a comment ``exits with n`` says that it does not exit with 0."""
        code = re.search(r"# exits with (\d)", command)
        line = command.split("  #", maxsplit=1)[0]
        arguments = shlex.split(line)
        if arguments[0] == "ndb-conflict":
            done = CliRunner().invoke(cli.app, arguments[1:], catch_exceptions=False)
            exit_code, output = done.exit_code, done.output
        else:
            own = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
            process = subprocess.run(line, shell=True, capture_output=True, text=True, env=own, check=False)
            exit_code, output = process.returncode, process.stdout + process.stderr
        assert exit_code == int(code.group(1) if code else 0), output
        return output.replace(f"{Path.cwd()}/", "")

    def console(self, command: str) -> str:
        """Check that a make target exists; of those that show the demo, run the last line."""
        if command.startswith("make "):
            recipe = re.search(rf"^{command.split()[1]}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
            assert recipe, f"the Makefile has no recipe for {command}"
            if command in ("make demo", "make demo-spark"):
                (line,) = [line for line in recipe.group(1).splitlines() if "ndb-conflict" in line]
                return self.run(line.strip().removeprefix("$(BIN)/"))
        return ""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Return a shell with lines so long that no path is broken; ``build/`` is of this test alone."""
    for path in ROOT.iterdir():
        if path.name != "build":
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(DEMO, tmp_path / "build/demo/recording")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_width", 400)
    return Shell()


def of_python(text: str, names: dict[str, object]) -> str:
    """Run a block of Python and return what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, "a python block", "exec"), names)  # that is what is tested
    return printed.getvalue()


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(name, marks=pytest.mark.slow if name in LONG_PAGES else ())
        for name in PAGES
        if any(block.language != "toml" for block in blocks(name))
    ],
)
def test_what_a_page_runs_prints_what_it_shows(page: str, shell: Shell, spark: SparkSession) -> None:
    """Every command and every piece of Python works, and a text after it is what it prints."""
    names: dict[str, object] = {"spark": spark}
    runners: dict[str, Callable[[str], str]] = {
        "sh": lambda text: "".join(shell.run(line) for line in text.splitlines()),
        "console": lambda text: "".join(shell.console(line.removeprefix("$ ")) for line in text.splitlines()),
        "python": lambda text: of_python(text, names),
    }
    output = None
    for block in blocks(page):
        if block.language in runners:
            output = runners[block.language](block.text)
        elif block.language == "text" and output is not None:
            assert_shown(block.text, output)
            output = None
        else:
            assert block.language in ("dockerfile", "sql", "template", "text", "toml")
            output = None


@pytest.mark.parametrize("text", [block.text for page in PAGES for block in blocks(page) if block.language == "toml"])
def test_every_piece_of_a_run_file_is_one(text: str, tmp_path: Path) -> None:
    """A toml block, or the run file that it is a part of, is read without complaint."""
    whole = text if "[clusters." in text else RUN_FILE + text
    document = tomllib.loads(whole)
    for cluster in document["clusters"].values():
        for pattern in [*cluster["binlogs"], *cluster.get("rows", [])]:
            file = tmp_path / pattern.replace("*", "00001")
            file.parent.mkdir(exist_ok=True)
            file.touch()
    (tmp_path / document["schema"]).write_text("CREATE TABLE t (k INT PRIMARY KEY, version INT UNSIGNED);")
    if isinstance(document.get("ndb_replication"), str):
        (tmp_path / document["ndb_replication"]).write_text("INSERT INTO ndb_replication VALUES ('d', 't', 0, 7, NULL)")
    if "steps" in document.get("schedule", {}):
        (tmp_path / document["schedule"]["steps"]).write_text('{"steps": []}')
    (tmp_path / "run.toml").write_text(whole)
    loaded = load_run_file(tmp_path / "run.toml")
    assert list(document["clusters"]) == [cluster.name for cluster in loaded.configuration.clusters]
    schedule = json.loads(json.dumps(attrs.asdict(loaded.schedule)))
    assert document.get("schedule", {}) == {name: value for name, value in schedule.items() if value}


def test_the_entries_of_a_run_file_are_those_that_are_read(tmp_path: Path) -> None:
    """Every entry of the tables is known, and an unknown one makes the reader name the same entries."""
    top, cluster, row = (
        {line[0] for line in lines} for lines in tables("run-file.md", "entry", "type", "needed", "meaning")
    )
    text = tmp_path / "run.toml"
    (tmp_path / "schema.sql").touch()
    (tmp_path / "a.000001").touch()
    (tmp_path / "b.000001").touch()
    for entries, wrong in (
        (top, "nothing = 1" + RUN_FILE),
        (cluster, RUN_FILE + "nothing = 1"),
        (row, RUN_FILE + "[[ndb_replication]]\nnothing = 1"),
    ):
        text.write_text(wrong)
        with pytest.raises(ConfigurationError, match="unknown entries nothing") as caught:
            load_run_file(text)
        assert entries == set(str(caught.value).rsplit("known are ", 1)[1].split(", "))


def test_exit_codes() -> None:
    """The codes are those of the command line."""
    rows = table("exit-codes.md", "code", "meaning")
    assert rows == [[str(int(code)), meaning] for code, meaning in MEANINGS.items()]
    commands = {row[0] for row in table("exit-codes.md", "command", "further reasons")}
    assert commands == set(cli.COMMANDS)


def test_findings() -> None:
    """The tables of codes are `CODES`, as tools/generated_parts.py makes them; every row of `RULES` is in them."""
    for generated in findings_tables():
        assert generated in _text(PAGES["findings.md"])
    configuration = table("findings.md", "code", "severity", "finding")
    replica = table("findings.md", "code", "severity", "effect", "finding")
    assert [[row[0], row[1], row[-1]] for row in configuration + replica] == [
        [each.code, each.severity, f"{each.title} ({int(each.error)})" if each.error else each.title] for each in CODES
    ]
    assert [[row[0], row[2]] for row in replica] == [[each.code, each.effect.name.lower()] for each in RULES]
    conditions = {
        code: (condition, page)
        for condition, codes, page in table("findings.md", "condition", "findings", "page")
        for code in codes.split(", ")
    }
    assert conditions == {each.code: (each.condition, each.page) for each in RULES}
    assert [row[0] for row in table("findings.md", "severity", "meaning")] == list(Severity)
    assert {row[0]: row[1] for row in table("findings.md", "effect", "what happens")} == {
        each.name.lower(): each.value for each in ReplicaEffect
    }


def test_settings() -> None:
    """The tables of variables and of releases are those of the code, and every code that they name is one."""
    page = _text(PAGES["settings.md"])
    for generated in (*settings_tables(), releases_table()):
        assert generated in page
    shown = zip((Effect.JUDGED, Effect.OPEN, Effect.HARMLESS), tables("settings.md", "variables"), strict=True)
    listed = [
        (name, effect, row[-1])
        for effect, rows in shown
        for row in rows
        for name in re.sub(r" \(.*?\)", "", row[0]).split(", ")
    ]
    assert sorted(listed) == [(each.name, each.effect, each.note.replace("`", "")) for each in VARIABLES]
    codes = {each.code for each in CODES}
    assert {code for row in table("settings.md", "variables", "found as") for code in row[1].split(", ")} <= codes
    assert {row[2] for row in table("settings.md", "before", "what is different") if row[2]} <= codes


def test_conflict_functions() -> None:
    """The table of functions is `FUNCTIONS`, cell by cell."""
    assert table("functions.md", "function", "write", "update", "delete") == [
        [
            spec.name,
            *(spec.cell(operation).words for operation in Operation),
            spec.argument.value,
            *("yes" if flag else "no" for flag in (spec.transactional, spec.uses_role)),
        ]
        for spec in FUNCTIONS
    ]


def test_cells() -> None:
    """The table of cells names what `judge` decides on present and on missing rows, and nothing else."""
    rows = {row[0]: row[1:] for row in table("functions.md", "cell", "the row is present")}
    assert list(rows) == [cell.words for cell in Cell if cell not in OF_POLICIES]
    present = [RowState(True, local, epoch=8, value=5) for local in (True, False)]
    for cell in set(Cell) - OF_POLICIES:
        on_present, on_missing = rows[cell.words]
        writes, others = cells_of("write"), cells_of("update") | cells_of("delete")
        kinds = [kind for kind in Operation if cell in (writes if kind is Operation.WRITE_ROW else others)]
        incoming = [
            IncomingOperation(kind, value, value, max_replicated_epoch=7) for kind in kinds for value in (4, 5, 6)
        ]
        assert named_decisions(on_present) == {name_of(judge(cell, row, each)) for row in present for each in incoming}
        changes = [each for each in incoming if each.operation is not Operation.WRITE_ROW]
        assert named_decisions(on_missing) == {name_of(judge(cell, RowState(False), each)) for each in changes}
        inserts = [each for each in incoming if each.operation is Operation.WRITE_ROW]
        assert {name_of(judge(cell, RowState(False), each)) for each in inserts} <= {"applied"}


def test_cells_of_a_run_file() -> None:
    """The page lists the cells that the reader accepts, and shows the example that the tests use."""
    listed = {row[0]: row[1] for row in table("adding.md", "entry", "what it can be")}
    for operation in ("write", "update", "delete"):
        assert set(listed[operation].split(", ")) == {cell.words for cell in cells_of(operation)}
    example = (ROOT / "docs/examples/at_least.py").read_text("utf-8").split("\n\n", 1)[1]
    assert example in _text(PAGES["adding.md"])


def cells_of(operation: str) -> set[Cell]:
    """Return the cells that a function can have for one kind of operation, as the run file's reader names them."""
    row = {"name": "F", "write": "apply", "update": "apply", "delete": "apply", operation: ""}
    with pytest.raises(ConfigurationError, match="it must be one of") as caught:
        policies_of_tables([row])
    words = str(caught.value).split("it must be one of ")[1].split(", ")
    return {cell for cell in Cell if cell.words in words}


def name_of(decision: Decision) -> str:
    """Return a decision as the pages name it."""
    verdict = decision.verdict.name.lower()
    return f"{verdict}, {decision.cause.name}" if decision.cause else verdict


def named_decisions(text: str) -> set[str]:
    """Return the decisions that a cell of a table names."""
    return set(re.findall(r"applied|ignored|rejected, \w+", text))


def test_functions_and_binlog_types() -> None:
    """The table of what each type leaves to judge is derived, and its marks are those that there are."""
    assert requirements_table(DeploymentPolicy.NEEDS) in _text(PAGES["functions.md"])
    assert table("functions.md", "mark", "meaning") == [[mark, meaning] for mark, meaning in MARKS.items()]
    assert [row[0] for row in table("functions.md", "policy", "used by")] == list(DeploymentPolicy)


def test_complaints_about_conflict_fn() -> None:
    """Every text of the table is refused with the words beside it."""
    for text, message in table("functions.md", "text", "message"):
        with pytest.raises(ConfigurationError, match=re.escape(message)):
            parse_conflict_function(text)


def test_collations_that_keys_cannot_have() -> None:
    """The table lists those that are refused, and no others."""
    refused = {name for row in table("keys.md", "character set", "refused") for name in row[1].split(", ")}
    known = (collation_of(number) for number in range(400))
    assert refused == {each.name for each in known if each is not None and not is_exact(each.name)}


@pytest.mark.parametrize(
    ("kind", "column", "function"),
    [
        ("PARSE", "x INT", "NDB$MAX("),
        ("NO_COLUMN", "x INT", "NDB$MAX(y)"),
        ("WRONG_TYPE", "x INT", "NDB$MAX(x)"),
        ("BLOB", "x TEXT", "NDB$EPOCH()"),
        ("UPDATES_AS_WRITES", "x INT", "NDB$EPOCH2()"),
    ],
)
def test_refusals(kind: str, column: str, function: str) -> None:
    """Every kind of refusal is in the table, with the server's error number."""
    schema = parse_schema(f"CREATE TABLE t (k INT PRIMARY KEY, {column})", database="d")
    refusal = set_up(schema, [ReplicationRow("d", "t", conflict_fn=function)], 1)["d.t"].refusal
    assert refusal is not None
    rows = table("functions.md", "refusal", "server error")
    assert [kind, str(refusal.error)] in [row[:2] for row in rows]
    assert refusal.kind.name == kind
    assert {row[0] for row in rows} == {each.name for each in RefusalKind}


def test_stops() -> None:
    """The table holds the stops that are modelled."""
    rows = table("functions.md", "server error", "why")
    assert [int(row[0]) for row in rows] == sorted(StopError)


def test_counters() -> None:
    """The table holds every counter."""
    assert [row[0] for row in table("functions.md", "counter", "counts")] == list(COUNTERS)


def arrow_columns(schema: pa.Schema) -> list[list[str]]:
    """Return name and type of every column."""
    return [[field.name, str(field.type)] for field in schema]


def test_outcome_columns() -> None:
    """The tables of the files of a result are those of the code."""
    outcomes, others = ([row[:2] for row in rows] for rows in tables("result.md", "column", "type", "meaning"))
    assert outcomes == arrow_columns(OUTCOMES)
    types = dict(outcomes + others)
    assert len(types) == len(outcomes) + len(others)
    schemas = {
        "applied_epochs": APPLIED_EPOCHS,
        "overwritten": OVERWRITTEN,
        "undecided": UNDECIDED,
        "contradictions": CONTRADICTIONS,
        "skipped_epochs": SKIPPED,
        "repeated_epochs": REPEATED,
        "unlogged_changes": UNLOGGED,
    }
    lists = {file: re.sub(r" \(.*?\)|;.*", "", columns) for file, columns in table("result.md", "file", "columns")}
    assert lists.keys() == schemas.keys()
    for file, schema in schemas.items():
        assert [[name, types[name]] for name in lists[file].split(", ")] == arrow_columns(schema)


def test_columns_of_lost_changes() -> None:
    """The table of the columns of lost changes is that of the code, and then come their images."""
    lost = [row[:2] for row in table("lost.md", "column", "type", "meaning")]
    assert lost[: len(LOST)] == arrow_columns(LOST)
    assert [kind for _, kind in lost[len(LOST) :]] == ["int64", "map<string, string>"]


def test_columns_of_records() -> None:
    """The table of the columns of records is that of the code."""
    assert [row[:2] for row in table("records.md", "column", "type", "meaning")] == arrow_columns(RECORD)


def test_metrics() -> None:
    """The page lists the metrics with their labels and help, and the figures of conditions."""
    text = conflict_metrics(resolve(ROOT / "conflict/demo/run.toml", engine="reference"), Timing(0, 0))
    helps = dict(re.findall(r"^# HELP ndb_conflict_(\w+) (.*)$", text, re.MULTILINE))
    rows = table("metrics.md", "metric", "labels", "meaning")
    assert {name: said for name, _, said in rows} == helps
    for name, labels, _ in rows:
        sample = re.search(rf"^ndb_conflict_{name}(?:{{(.*)}})? ", text, re.MULTILINE)
        assert sample or name == "changes_under_way"  # the demo has none
        if sample:
            assert re.findall(r'(\w+)="', sample[1] or "") == (labels.split(", ") if labels else [])
    said = re.search(r"^Figures are (.*); comparisons (.*)\.$", _text(PAGES["metrics.md"]), re.MULTILINE)
    assert said is not None
    assert re.findall("`(.*?)`", said[1]) == list(FIGURES)


def test_sql_on_records() -> None:
    """The statement for DuckDB counts the conflicts of the demo; run by SQLite, with the records in a table."""
    records = conflict_records(resolve(ROOT / "conflict/demo/run.toml", engine="reference")).read_all()
    statement = next(block.text for block in blocks("records.md") if block.language == "sql")
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        names = ", ".join(f'"{name}"' for name in records.column_names)
        database.execute(f"CREATE TABLE records ({names})")
        rows = zip(*(records[name].cast(pa.string()).to_pylist() for name in records.column_names), strict=True)
        database.executemany(f"INSERT INTO records VALUES ({', '.join('?' * records.num_columns)})", rows)
        database.execute("UPDATE records SET lost = (lost = 'true')")
        found = database.execute(statement.replace("'build/records.parquet'", "records")).fetchall()
    assert found == [
        ("cft.t2", "ROW_IN_CONFLICT", 10, 10),
        ("cft.t1", "ROW_IN_CONFLICT", 8, 8),
        ("cft.t2", "ROW_ALREADY_EXISTS", 3, 3),
        ("cft.t2", "ROW_DOES_NOT_EXIST", 2, 1),
        ("cft.t1", "ROW_ALREADY_EXISTS", 1, 1),
        ("cft.t1", "ROW_DOES_NOT_EXIST", 1, 0),
    ]


def test_entries_of_run_json(tmp_path: Path) -> None:
    """The page describes every entry of a result's `run.json`, and no others."""
    result = resolve(ROOT / "conflict/demo/run.toml", engine="reference", out=tmp_path / "result")
    assert {row[0] for rows in tables("result.md", "entry", "meaning") for row in rows} == set(result.run)


def test_columns_of_comparisons_and_stories() -> None:
    """The tables of `comparison.parquet` and of the events of `explain` are those of the code."""
    for page, schema in (("compare.md", COMPARISON), ("explain.md", EVENTS)):
        assert [row[:2] for row in table(page, "column", "type", "meaning")] == arrow_columns(schema)


def test_likely_causes() -> None:
    """The page lists every kind."""
    assert [row[0] for row in table("result.md", "kind", "what points to it")] == [kind.value for kind in CauseKind]


def test_batch_columns() -> None:
    """The table of what every batch has is the schema of its metadata."""
    assert [row[:2] for row in table("formats.md", "batch column", "Arrow", "meaning")] == arrow_columns(METADATA)


def test_history_columns() -> None:
    """The tables of the History are the schemas of the grid and of the epochs."""
    schemas = (grid.SCHEDULE, grid.KEYS, grid.CHANGES, grid.IMAGES, grid.CONSEQUENCES, EPOCHS)
    found = tables("jobs.md", "column", "type", "meaning")
    for schema, rows in zip(schemas, found, strict=True):
        assert [row[:2] for row in rows] == arrow_columns(schema)


def test_data_source_columns_and_options(spark: SparkSession) -> None:
    """The table of columns is the data source's schema, and the options are those that it names."""
    schema = NdbBinlogDataSource({}).schema()
    (rows,) = tables("spark.md", "column", "type", "meaning")
    assert [row[:2] for row in rows] == [[field.name, field.dataType.simpleString()] for field in schema]
    register(spark)
    with pytest.raises(Exception, match="options are ") as caught:
        spark.read.format("ndb_binlog").option("nothing", "1").load(str(ROOT)).collect()
    (options,) = set(re.findall(r"options are (.*)", str(caught.value)))
    assert options.strip() == ", ".join(row[0] for row in table("spark.md", "option", "default"))


@pytest.mark.parametrize("row", table("formats.md", "SQL type", "value", "Parquet"), ids=lambda row: row[0])
def test_column_types(row: list[str]) -> None:
    """Each type has the Parquet type that the table gives."""
    (field,) = row_schema(parse_create_table(f"CREATE TABLE t (c {row[0]})"))
    assert str(field.type) == row[2]


def is_refused(kind: EventType) -> bool:
    """Whether an event is refused for its type alone."""
    try:
        EpochReader(1, Schema()).feed(Event("binlog.000001", 4, EventHeader(0, kind, 1, 19, 23, 0), b""))
    except UnsupportedError:
        return True
    except FormatError:
        return False  # it is read, and has no body here
    return False


def test_what_is_not_read() -> None:
    """The events that are refused are those of the table."""
    events = {name for row in table("formats.md", "event", "what it is") for name in row[0].split(", ")}
    assert events == {kind.name for kind in EventType if is_refused(kind)}


def test_servers() -> None:
    """The table of servers is made from the events, the readers and the recordings; each event stands in one line."""
    assert servers_table() in _text(PAGES["servers.md"])
    events = [kind for line in LINES for kind in line.events]
    assert sorted(events) == [kind for kind in EventType if kind >= EventType.PRE_GA_WRITE_ROWS_EVENT]


def test_careful_rows() -> None:
    """The tables of what the reference engine resolves are made from the kinds that the engine knows."""
    page = _text(PAGES["jobs.md"])
    assert all(careful_table(whole=whole) in page for whole in (False, True))


def test_statements_that_copy() -> None:
    """The table of what NDB does by copy is made from the rules."""
    assert copies_table() in _text(PAGES["definitions.md"])


def test_picture(tmp_path: Path) -> None:
    """The picture of the README is that of the demo; `python -m tools.generated_parts` draws it anew."""
    draw(tmp_path / "row.svg")
    assert texts_of(tmp_path / "row.svg") == texts_of(PICTURE)
    # B's update met the write of A, of an epoch that B had not shown to have.
    rejected = "8  16:00:16.973  update of 3: rejected, 5 won", "the row is of epoch 5321464479756, and only"
    assert {*rejected, "epochs up to 5321464479747 had come back"} <= set(texts_of(PICTURE))
    assert PICTURE.relative_to(ROOT).as_posix() in _text(PAGES["README.md"])


def texts_of(picture: Path) -> list[str]:
    """Return the texts of an SVG file; its curves differ between versions of Matplotlib."""
    return re.findall(r"<text[^>]*>(.*?)</text>", picture.read_text("utf-8"), re.DOTALL)


def test_number_of_recordings() -> None:
    """The README says how many recordings of clusters judge the conflict functions."""
    folders = (ROOT / "tests/recordings" / name for name in ("conflict", "everyday", "lives"))
    number = sum(len(list(folder.rglob("scenario.json"))) for folder in folders)
    assert f"| {number} recordings of clusters" in _text(PAGES["README.md"])
    assert f"| {number} recordings of clusters" in _text(PAGES["trust.md"])


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: those of its headings, as GitHub makes them, and those that it sets itself."""
    text = page.read_text("utf-8")
    headings = {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in re.findall(r"(?m)^#+ (.*)$", text)}
    return headings | set(re.findall(r'<a id="([^"]+)"></a>', text))


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    """Every relative link points to a file that exists, and to a heading in it."""
    for link in re.findall(r"\]\(([^)\s]+)\)", PAGES[page].read_text("utf-8")):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = PAGES[page].parent / name if name else PAGES[page]
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_headings_that_the_code_names() -> None:
    """A docstring that names a page and a heading in it names one that exists."""
    for path in modules():
        for page, heading in re.findall(r"\b(docs/[\w-]+\.md)`?,\s+\"(.*?)\"", (ROOT / path).read_text("utf-8")):
            assert f"## {heading}\n" in (ROOT / page).read_text("utf-8")


def modules() -> Iterator[str]:
    """Yield the modules of both packages; in a git checkout only those that are under version control."""
    git = shutil.which("git")
    listed = None
    if git is not None and (ROOT / ".git").exists():
        command = [git, "ls-files", "conflict", "ndb_formats"]
        listed = set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines())
    for package in ("conflict", "ndb_formats"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if path.name != "__init__.py" and (listed is None or name in listed):
                yield name


def test_folders() -> None:
    """The architecture names every folder of both packages, and every path on a page exists."""
    shown = _text(PAGES["architecture.md"])
    for module in modules():
        folder = module.rsplit("/", 1)[0]
        assert f"`{folder}/`" in shown, folder
    for path in re.findall(r"`((?:conflict|ndb_formats|tests)/[\w/]+\.py)`", "".join(map(_text, PAGES.values()))):
        assert (ROOT / path).exists(), path


def _text(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_no_page_names_a_place_of_one_machine(page: str) -> None:
    """Paths are relative to the project, or placeholders."""
    assert re.findall(r"(?<![\w.:/*])/(?:home|opt|root|tmp|usr|var|work)\b", _text(PAGES[page])) == []
