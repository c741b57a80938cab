"""The exit codes of all commands: one table, and how a command ends."""

import errno
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from conflict.checking.findings import Severity
from conflict.cli import app as cli
from conflict.cli.refusals import MEANINGS, ExitCode, code_of_findings, refusing_bad_input
from conflict.errors import ConfigurationError
from ndb_formats.errors import CorruptError
from tests.corpora import DEMO


def test_every_code_has_a_meaning():
    """The numbers are those that users' scripts know."""
    assert [*MEANINGS] == [*ExitCode]
    assert [*map(int, ExitCode)] == [0, 1, 2, 3, 4, 5, 130, 141]


@pytest.mark.parametrize(
    ("severities", "code"),
    [
        ((), ExitCode.DONE),
        ((Severity.NOTE,), ExitCode.DONE),
        ((Severity.NOTE, Severity.WARNING), ExitCode.WARNED),
        ((Severity.ERROR, Severity.WARNING), ExitCode.CONTRADICTED),
        ((Severity.NOTE, Severity.REFUSED, Severity.ERROR), ExitCode.REFUSED),
    ],
)
def test_findings(severities: tuple[Severity, ...], code: ExitCode):
    """The worst finding counts."""
    assert code_of_findings(severities) is code


def fail(error: BaseException) -> Callable[[], None]:
    """Return a command that raises."""

    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigurationError("bad"), ExitCode.REFUSED),
        (CorruptError("bad"), ExitCode.REFUSED),
        (PermissionError(errno.EACCES, "Permission denied", "x.sql"), ExitCode.REFUSED),
        (BrokenPipeError(), ExitCode.PIPE_CLOSED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_how_a_command_ends(error: BaseException, code: ExitCode):
    """Bad input, closed pipes and interruptions have their codes."""
    app = typer.Typer()
    app.command()(refusing_bad_input(fail(error)))
    assert CliRunner().invoke(app, []).exit_code == code


@pytest.mark.parametrize(
    "arguments",
    [
        ["conflicts", "no\udcff"],
        ["decode", "--format", "parquet", "-r", "o\udcff", str(DEMO / "A.binlog.000001")],
        ["resolve", str(DEMO / "run.toml"), "--out", "o\udcff"],
        ["init", "A\udcff.000001", str(DEMO / "B.binlog.000001"), "--schema", str(DEMO / "schema.sql")],
    ],
    ids=lambda arguments: arguments[0],
)
def test_names_that_are_not_utf8_are_refused(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a file that has to be UTF-8 would hold them, in a sentence with the name; nothing is left behind."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DEMO / "A.binlog.000001", "A\udcff.000001")
    done = CliRunner().invoke(cli.app, arguments)
    assert done.exit_code == ExitCode.REFUSED
    assert "\\udcff" in done.output
    assert "is not UTF-8; give it another name" in done.output
    assert [path.name for path in Path().iterdir()] == ["A\udcff.000001"]


def test_what_an_interruption_leaves_is_no_error_of_its_own():
    """A file that was just being closed cannot be closed once more while the interruption is handled."""

    def command() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise OSError(errno.EBADF, "Bad file descriptor")

    app = typer.Typer()
    app.command()(refusing_bad_input(command))
    done = CliRunner().invoke(app, [])
    assert done.exit_code == ExitCode.INTERRUPTED
    assert "descriptor" not in done.output


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_wrong_usage_is_refused(command: str):
    """By every command: an option that does not exist, and arguments that are missing, do not exist or are too many."""
    wrong = ["a/folder", "and/another"] if command == "demo" else ["no/such/file"]  # it makes the folder it is given
    for arguments in ([command, "--no-such-option"], [command, *wrong]):
        assert CliRunner().invoke(cli.app, arguments).exit_code == ExitCode.REFUSED


def test_a_cut_binlog_is_shown_and_said_to_be_cut(tmp_path: Path):
    """`decode` prints what comes before the cut."""
    cut = tmp_path / "cut.000001"
    cut.write_bytes((DEMO / "A.binlog.000001").read_bytes()[:5000])
    done = CliRunner().invoke(cli.app, ["decode", str(cut)])
    assert done.exit_code == ExitCode.CUT_SHORT
    assert "# at 4" in done.output
    assert "warning:" in done.output


def test_a_closed_pipe_leaves_no_traceback():
    """As in ``ndb-conflict decode FILE | head -1``."""
    command = f"{sys.executable} -m conflict decode -vv {DEMO / 'A.binlog.000001'} | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] in ("0", "141")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_an_interruption_while_a_command_is_imported(monkeypatch: pytest.MonkeyPatch):
    """Its modules take a while."""

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conflict.cli.app.import_module", interrupt)
    done = CliRunner().invoke(cli.app, ["decode", "binlog.000001"])
    assert done.exit_code == ExitCode.INTERRUPTED
    assert done.output.strip() == "interrupted"


@pytest.mark.parametrize(
    ("binlog_type", "policy", "code"),
    [
        ("7", "manual", ExitCode.DONE),
        ("8", "manual", ExitCode.REFUSED),
        ("8", "needs", ExitCode.WARNED),
        ("1", "needs", ExitCode.REFUSED),
    ],
)
def test_one_function_with_one_type_ends_as_a_check(binlog_type: str, policy: str, code: ExitCode):
    """A refusal is one, whichever command says it; a table of answers is only shown."""
    asked = ["requirements", "--function", "NDB$MAX(x)", "--policy", policy]
    assert CliRunner().invoke(cli.app, [*asked, "--binlog-type", binlog_type]).exit_code == code
    assert CliRunner().invoke(cli.app, asked).exit_code == ExitCode.DONE


def test_a_difference_of_tables_ends_alike_in_both_checks(tmp_path: Path):
    """An error is 1, and what stops the applier at its first change is 2, for `check` as for `check-replica`."""
    table = "CREATE TABLE d.t (k INT PRIMARY KEY, a INT{}) ENGINE=NDB;"
    source = tmp_path / "source.sql"
    source.write_text(table.format(""))
    (tmp_path / "rows.sql").write_text("INSERT INTO ndb_replication VALUES ('d', 't', 0, 7, NULL);")
    for number, (there, code) in enumerate(
        ((" UNSIGNED", ExitCode.CONTRADICTED), (", b TEXT NOT NULL", ExitCode.REFUSED))
    ):
        replica, run = tmp_path / f"replica{number}.sql", tmp_path / f"run{number}.toml"
        replica.write_text(table.format(there))
        run.write_text(
            'schema = "source.sql"\nndb_replication = "rows.sql"\n'
            f'[clusters.A]\nserver_id = 1\n[clusters.B]\nserver_id = 2\nschema = "replica{number}.sql"\n'
        )
        assert CliRunner().invoke(cli.app, ["check-replica", str(source), str(replica)]).exit_code == code
        assert CliRunner().invoke(cli.app, ["check", str(run)]).exit_code == code
