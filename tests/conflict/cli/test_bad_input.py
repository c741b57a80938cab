"""
Bad input and bad situations: what a command says, how it ends, and that nothing is left of it.

Every case ends as a refusal with a sentence that says what is wrong, and where.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from tests.corpora import DEMO

Preparation = Callable[[Path], object]
RESOLVE = "resolve {run} --engine reference --out {out}"
LOCAL = "resolve {run} --engine local --out {out}"
BINLOG = "A.binlog.000001"
NUMBER = "it must be a whole number from 0 to 4294967295"


@attrs.frozen
class Case:
    """
    One situation.

    Attributes:
        name: In a few words.
        command: The command; {run} is the run file of a copy of the demo, {d} its folder, {out} a folder to be.
        said: What it says at least.
        prepare: Brings the situation about.
        code: How it ends.
        unsaid: What it does not say.
    """

    name: str
    command: str
    said: str
    prepare: Preparation = lambda folder: None
    code: ExitCode = ExitCode.REFUSED
    unsaid: str = "Traceback"


def put(name: str, content: str | bytes) -> Preparation:
    """Write a file."""
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def edit(old: str, new: str, name: str = "run.toml") -> Preparation:
    """Change the first place of a text."""

    def prepare(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return prepare


def remove(name: str) -> Preparation:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def as_folder(name: str) -> Preparation:
    """Put a folder in place of a file."""
    return lambda folder: ((folder / name).unlink(missing_ok=True), (folder / name).mkdir())


def as_pipe(name: str) -> Preparation:
    """Put a named pipe in place of a file."""
    return lambda folder: ((folder / name).unlink(missing_ok=True), os.mkfifo(folder / name))


def swapped(folder: Path) -> None:
    """Give each cluster the binlog of the other one."""
    content = [(folder / f"{name}.binlog.000001").read_bytes() for name in "AB"]
    for name, data in zip("BA", content, strict=True):
        (folder / f"{name}.binlog.000001").write_bytes(data)


STEPS = 'steps = "steps.json"'
NESTED = "[" * 3000
RUN_FILES = [
    Case("missing", "resolve {d}/none.toml --out {out}", "none.toml: No such file or directory"),
    Case(
        "a folder",
        "resolve {d}/x.toml --out {out}",
        "x.toml is a folder, not a run file",
        as_folder("x.toml"),
    ),
    Case("not UTF-8", RESOLVE, "run.toml: not UTF-8 text", put("run.toml", b"\xff\xfe")),
    Case("not TOML", RESOLVE, "run.toml: Expected ']'", put("run.toml", "[clusters")),
    Case("empty", RESOLVE, "two or more tables [clusters.NAME] are needed", put("run.toml", "")),
    Case("nested", RESOLVE, "nested too deeply", put("run.toml", f"schema = {NESTED}")),
    Case("long number", RESOLVE, "run.toml: ", edit("server_id = 1", f"server_id = {'9' * 5000}")),
    Case(
        "binlogs of numbers",
        RESOLVE,
        "clusters.A.binlogs#1 is 1; it must be a file name",
        edit('["A.binlog.*"]', "[1]"),
    ),
    Case("binlogs as text", RESOLVE, "clusters.A.binlogs is 'A.", edit('["A.binlog.*"]', '"A.binlog.*"')),
    Case("empty pattern", RESOLVE, "clusters.A.binlogs#1 is ''; it must be", edit('["A.binlog.*"]', '[""]')),
    Case(
        "NUL in a pattern",
        RESOLVE,
        "binlogs#1 is 'a\\x00'; it must be",
        edit('["A.binlog.*"]', '["a\\u0000"]'),
    ),
    Case("server id as text", RESOLVE, f"clusters.A.server_id is '1'; {NUMBER}", edit("_id = 1", '_id = "1"')),
    Case("server id too high", RESOLVE, NUMBER, edit("server_id = 1", "server_id = 99999999999999999999")),
    Case("negative server id", RESOLVE, f"is -1; {NUMBER}", edit("server_id = 1", "server_id = -1")),
    Case("server id true", RESOLVE, f"is True; {NUMBER}", edit("server_id = 1", "server_id = true")),
    Case("another server's id", RESOLVE, "was written by server 1; server_id of A is 7", edit("id = 1", "id = 7")),
    Case(
        "clusters as list",
        RESOLVE,
        "clusters is [1]; it must be a table",
        put("run.toml", "clusters=[1]"),
    ),
    Case(
        "clusters as numbers", RESOLVE, "clusters.A is 1; it must be a table", put("run.toml", "[clusters]\nA=1\nB=2")
    ),
    Case("cluster name as path", RESOLVE, "is no name for a cluster", edit("clusters.A", 'clusters."../../x"')),
    Case("empty cluster name", RESOLVE, "'' is no name for a cluster", edit("clusters.A", 'clusters.""')),
    Case("hidden cluster name", RESOLVE, "'_A' is no name for a cluster", edit("clusters.A", "clusters._A")),
    Case("alike cluster names", RESOLVE, "clusters b and B have names that some", edit("clusters.A", "clusters.b")),
    Case("unknown entry", RESOLVE, "unknown entries colour", edit("schema =", 'colour = "red"\nschema =')),
    Case("role", RESOLVE, "clusters.A.role is ['x']; it must be one of", edit("_id = 1", "_id = 1\nrole = ['x']")),
    Case("rows epoch", RESOLVE, "clusters.A.rows_epoch is 'x'", edit("id = 1", 'id = 1\nrows_epoch = "x"')),
    Case("rows missing", RESOLVE, "no file matches none.sql, rows of", edit("id = 1", 'id = 1\nrows = "none.sql"')),
    Case(
        "other rows",
        RESOLVE,
        "clusters.A.ignore_server_ids.B is 1; it must be a list",
        edit("id = 1", "id = 1\nignore_server_ids = {B=1}"),
    ),
    Case("conversions", RESOLVE, "replica_type_conversions", edit("id = 1", 'id = 1\nreplica_type_conversions = "X"')),
    Case("schedule as text", RESOLVE, "schedule is 'x'", put("run.toml", 'schedule = "x"')),
    Case("a binlog type", RESOLVE, "row 1 of [[ndb_replication]]: binlog_type 'X'", edit("type = 9", 'type = "X"')),
    Case("a function's cell", RESOLVE, "conflict_function", edit(STEPS, f"{STEPS}\n[[conflict_function]]\nname = 1")),
]
OTHER_FILES = [
    Case("schema missing", RESOLVE, "schema.sql: No such file or directory", remove("schema.sql")),
    Case("schema a folder", RESOLVE, "schema.sql: it is no regular file", as_folder("schema.sql")),
    Case(
        "schema cut", RESOLVE, "the definition ends too early", put("schema.sql", "CREATE TABLE t (a INT PRIMARY KEY")
    ),
    Case(
        "schema number",
        RESOLVE,
        "a number of 5,000 digits",
        put("schema.sql", f"CREATE TABLE t (a CHAR({'9' * 5000}))"),
    ),
    Case(
        "schema of others",
        RESOLVE,
        "the schema defines shop.plain, shop.t1, shop.t1$EX, shop.t2, shop.t2$EX, but the binlogs change cft.plain, "
        "cft.t1, cft.t2; give the CREATE TABLE statements of these",
        edit("USE cft", "USE shop", "schema.sql"),
    ),
    Case("schema without tables", RESOLVE, "schema.sql: no CREATE TABLE statement", put("schema.sql", "SELECT 1;")),
    Case("steps missing", RESOLVE, "steps.json: No such file or directory", remove("steps.json")),
    Case("steps as number", RESOLVE, "schedule.steps is 5; it must be a file name", edit(STEPS, "steps = 5")),
    Case("steps no JSON", RESOLVE, "a JSON object with a list of steps is needed", put("steps.json", "{")),
    Case("steps nested", RESOLVE, "a JSON object with a list of steps", put("steps.json", "[" * 100_000)),
    Case("steps as table", RESOLVE, "steps is {'a': 1}; it must be a list", put("steps.json", '{"steps": {"a": 1}}')),
    Case(
        "a step as text",
        RESOLVE,
        "steps#1 is 'x'; it must be a table",
        put("steps.json", '{"steps": ["x"]}'),
    ),
    Case(
        "a step's epoch", RESOLVE, "steps#1.epoch is 'x'", put("steps.json", '{"steps": [{"on": "A", "epoch": "x"}]}')
    ),
    Case("a step's role", RESOLVE, "needs an applier and a role", put("steps.json", '{"steps": [{"action": "role"}]}')),
    Case(
        "cluster renamed",
        RESOLVE,
        "steps#1: the run file has no cluster A",
        edit("clusters.A", "clusters.london"),
    ),
    Case("binlog missing", RESOLVE, "no file matches A.binlog.*, binlogs of cluster A", remove(BINLOG)),
    Case("binlog a pipe", RESOLVE, "is no regular file; give copies of the binlogs", as_pipe(BINLOG)),
    Case("binlog a folder", RESOLVE, "is no regular file; give copies of the binlogs", as_folder(BINLOG)),
    Case("sides swapped", RESOLVE, "are the two sides swapped?", swapped),
]
SITUATIONS = [
    Case("out under a file", "resolve {run} --out {d}/schema.sql/x", "schema.sql; choose another place"),
    Case("out exists", "resolve {run} --out {d}", "exists already; give another folder"),
    Case("out is input", "resolve {run} --out {d} --force", "is no result, which is all that --force replaces"),
    Case("epoch as text", f"{RESOLVE} --start-epoch A=x", "--start-epoch A=x is not understood"),
    Case("epoch too high", f"{RESOLVE} --start-epoch A=18446744073709551616", "is not understood"),
    Case("long epoch", f"{RESOLVE} --stop-epoch A={'9' * 5000}", "is not understood"),
    Case("epoch of nobody", f"{RESOLVE} --start-epoch Z=1", "the run has no cluster Z; it has A and B"),
    Case("epoch beyond", f"{RESOLVE} --start-epoch A=18446744073709551615", "cluster A has no epoch between the start"),
    Case("no History", f"{LOCAL} --history {{d}}/none", "there is no History in"),
    Case("another folder", f"{LOCAL} --history {{d}}", "there is no History in"),
    Case("History no JSON", f"{LOCAL} --history {{d}}", "history.json is damaged", put("history.json", "{")),
    Case("History and reference", f"{RESOLVE} --history {{d}}", "the reference engine reads the binlogs itself"),
    Case("unknown engine", "resolve {run} --engine foo --out {out}", "Invalid value for '--engine'"),
    Case("no such rule", f"{RESOLVE} --function nope:x", "function nope:x: module nope cannot be imported"),
    Case("one side only", f"resolve {{d}}/{BINLOG} --out {{out}}", "binlogs of two clusters are needed"),
    Case("ingest into a file", "ingest {run} --out {d}/schema.sql", "exists already and is no History"),
    Case("no folder for JSON", "check {run} --json {d}/no/x.json", "there is no folder"),
    Case("unknown function", "requirements --function NDB$FOO(x)", "unknown conflict resolution function"),
    Case("unknown type", "requirements --function NDB$OLD(x) --binlog-type 99", "binlog_type '99' is not known"),
    Case("replica no SQL", f"check-replica {{d}}/schema.sql {{d}}/{BINLOG}", "not UTF-8 text"),
    Case("no such statements", "logging {d}/none.sql", "none.sql"),
    Case("statements a pipe", "logging {d}/p.sql", "p.sql: it is no regular file", as_pipe("p.sql")),
    Case(
        "created by half a statement",
        "logging DELETE --schema {d}/cut.sql",
        "cut.sql: CREATE TABLE t (id INT PRIMARY KEY,: the definition ends too early",
        put("cut.sql", "CREATE TABLE u (a INT);\nCREATE TABLE t (id INT PRIMARY KEY,"),
    ),
    Case("no such engine", "logging DELETE --engine INNODBB", "--engine INNODBB is no storage engine of MySQL"),
    Case(
        "no such charset",
        "check-replica {d}/schema.sql {d}/schema.sql --charset utf9",
        "the charset utf9 is no character set of MySQL",
    ),
    Case("run with no such charset", RESOLVE, "the charset utf9 is no", edit("schema =", 'charset = "utf9"\nschema =')),
    Case(
        "options that differ",
        "requirements --binlog-type 0 --option ndb_log_update_minimal=ON --option ndb_log_update_minimal=OFF",
        "--option ndb_log_update_minimal is given as ON and as OFF",
    ),
    Case("created by no text", f"logging DELETE --schema {{d}}/{BINLOG}", f"{BINLOG}: not UTF-8 text"),
    Case("created by a pipe", "logging DELETE --schema {d}/p.sql", "p.sql: it is no regular file", as_pipe("p.sql")),
    Case(
        "requirements of no table",
        "requirements --schema {d}/schema.sql --function NDB$MAX(x)",
        "schema.sql: no CREATE TABLE statement",
        put("schema.sql", ""),
    ),
    Case(
        "check of no table",
        "check --schema {d}/schema.sql",
        "schema.sql: no CREATE TABLE statement",
        put("schema.sql", ""),
    ),
    Case(
        "config.ini of an option",
        "check --schema {d}/schema.sql --config-ini A={d}/a.ini",
        "a.ini, line 2: TimeBetweenEpochs is 'abc'; give a number of milliseconds",
        put("a.ini", "[ndbd default]\nTimeBetweenEpochs=abc\n"),
        unsaid="check.toml",  # the run file that options amount to, which nobody wrote
    ),
    Case(
        "model of an option",
        "sweep {d}/sweep.toml --model {d}/model.toml --out {out}",
        "model.toml: [clusters] has A alone",
        lambda folder: (
            put("sweep.toml", "[grid]\nlatency_ms = [10]\n")(folder),
            put("model.toml", "[clusters.A]\n")(folder),
        ),
    ),
    Case("report of a device", "report /dev/null --out {out}", "it is no regular file", unsaid="JSON"),
    Case(
        "variables twice",
        "check --schema {d}/schema.sql --variables A={d}/a --variables A={d}/b",
        "--variables is given twice for A",
    ),
    Case("a binlog twice", f"sizes {{d}}/{BINLOG} {{d}}/./{BINLOG} --schema {{d}}/schema.sql", "is given twice"),
    Case("scale without end", "workload {run} --scale inf --out {out}", "Invalid value for '--scale'"),
    Case("seed too high", "simulate {run} --seed 2147483648", "Invalid value for '--seed'"),
    Case("simulated into this folder", "simulate {run} --out .", "exists already"),
    Case("sizes without schema", f"sizes {{d}}/{BINLOG}", "no definition of cft.plain, cft.t1, cft.t2"),
    Case(
        "sizes without the schema beside",
        f"sizes {{d}}/{BINLOG}",
        "schema.sql has CREATE TABLE statements: give --schema ",
    ),
    Case(
        "resolve without the schema beside",
        "resolve {d} --out {out}",
        "schema.sql has CREATE TABLE statements: give --schema ",
    ),
    Case(
        "resolve without a schema",
        "resolve {d} --out {out}",
        "give CREATE TABLE statements (--schema FILE, or schema in the run file)",
        remove("schema.sql"),
        unsaid=".sql has",  # ndb_replication.sql has another table
    ),
    Case("sizes of text", "sizes {d}/schema.sql", "position 0: not a binlog"),
    Case(
        "chart as jpg", f"sizes {{d}}/{BINLOG} --schema {{d}}/schema.sql --plot {{d}}/x.jpg", "a chart is a file *.png"
    ),
    Case("rewrite over input", f"rewrite {{d}}/{BINLOG} --binlog-type 7 --out {{d}}", "would be overwritten"),
    Case("rewrite under a file", f"rewrite {{d}}/{BINLOG} --binlog-type 7 --out {{d}}/schema.sql/x", "Not a directory"),
    Case("decode a folder without binlogs", "decode {d}/empty", "holds no binlog", as_folder("empty")),
    Case("decode text", "decode {d}/schema.sql", "not a binlog"),
    Case("decode into nowhere", f"decode {{d}}/{BINLOG} --format parquet", "--result-file"),
    Case("decode over input", f"decode {{d}}/{BINLOG} -r {{d}}/{BINLOG}", "would be overwritten"),
    Case("conformance of nothing", "conformance {d}/none", "none"),
]
CASES = [*RUN_FILES, *OTHER_FILES, *SITUATIONS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_bad_input_is_refused(case: Case, tmp_path: Path):
    """With its sentence, and nothing is left on disk but what was there."""
    folder = tmp_path / "run"
    shutil.copytree(DEMO, folder)
    case.prepare(folder)
    before = sorted(tmp_path.rglob("*"))
    words = [each.format(d=folder, run=folder / "run.toml", out=tmp_path / "out") for each in case.command.split()]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, SystemExit), done.exception
    said = " ".join(done.output.split())
    assert case.said in said
    assert case.unsaid not in said
    assert (done.exit_code, sorted(tmp_path.rglob("*"))) == (case.code, before)
