"""Addresses: where paths are local, or one cannot be opened, it is refused by name, and no folder is made of it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from typer.main import get_command

import conflict
from conflict.cli.app import AT_ADDRESSES, COMMANDS, app
from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

RUN = DEMO / "run.toml"
ADDRESSES = ["DBFS:/run", "file:///run", "nosuch://bucket/run", "gs://bucket/run", "memory://lake/run"]


def _paths() -> Iterator[tuple[str, str, str, str]]:
    """Yield every parameter of every command that is a path: command, option or nothing, what messages call it; what it
    refuses."""
    commands = {parameter.name: parameter for parameter in get_command(app).commands.values()}
    for name, command in commands.items():
        context = command.make_context(name, [], resilient_parsing=True)
        for parameter in context.command.params:
            if "Path" in str(get_type_hints(context.command.callback).get(parameter.name)):
                option = next((each for each in parameter.opts if each.startswith("--")), "")
                stored = parameter.name in AT_ADDRESSES.get(name, ())
                yield name, option, option or "argument ", "dbfs:/x" if stored else "s3://bucket/x"


PATHS = [*_paths()]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work where a folder that is made by mistake is seen."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("address", ADDRESSES)
def test_where_to_write(address: str, empty_folder: Path):
    """As an option, with and without an equals sign."""
    run = RUN.resolve()
    for arguments in (["ingest", run, "--out", address], ["resolve", run, f"--out={address}"]):
        code, said = invoke(*arguments)
        assert code == ExitCode.REFUSED
        assert f"--out is {address}" in said
        assert "is not read or written here" in said or "give a path, or an address that" in said or "a package" in said
    assert [*empty_folder.iterdir()] == []


@pytest.mark.parametrize(("command", "option", "called", "address"), PATHS)
def test_every_path_of_every_command(command: str, option: str, called: str, address: str):
    """The message names it, by the long name of an option."""
    code, said = invoke(command, *([option] if option else []), address)
    assert code == ExitCode.REFUSED
    assert said.startswith(f"{called}")
    assert f"is {address}, an address of" in said


def test_what_can_be_at_an_address():
    """Only paths of commands."""
    known = {(name, parameter.replace("-", "_")) for name, parameter in _names()}
    assert known >= {(command, name) for command, names in AT_ADDRESSES.items() for name in names}


def _names() -> Iterator[tuple[str, str]]:
    for command in get_command(app).commands.values():
        context = command.make_context(command.name, [], resilient_parsing=True)
        yield from ((command.name, parameter.name) for parameter in context.command.params)


def test_the_paths_are_those_of_all_commands():
    """Only a few read no file that is an argument, or text in its place."""
    assert {command for command, option, *_ in PATHS if not option} == {
        *COMMANDS.keys() - {"diverge", "requirements", "logging", "warm-up", "zoo"}
    }


@pytest.mark.parametrize(
    ("arguments", "said_of"),
    [
        (["resolve", "--force", "dbfs:/x"], "argument RUN_FILE"),
        (["decode", "-rs3://bucket/x"], "--result-file is s3://bucket/x,"),
        (["decode", "-cr", "s3://bucket/x"], "--result-file is s3://bucket/x,"),
        (["decode", "local", "dbfs:/x"], "argument FILES"),
        (["check", "--variables", "london=s3://bucket/x"], "--variables is s3://bucket/x,"),
        (["logging", "s3://bucket/x.sql"], "argument SQL|FILE.sql|- is s3://bucket/x.sql,"),
    ],
)
def test_forms_of_the_command_line(arguments: list[str], said_of: str):
    """After a switch, attached to a short option, among short options, in a list, behind the name of a cluster."""
    code, said = invoke(*arguments)
    assert code == ExitCode.REFUSED
    assert said.startswith(said_of)


@pytest.mark.parametrize("command", ["check", "sizes"])
def test_what_to_read(command: str):
    """As an argument."""
    code, said = invoke(command, "s3://bucket/A.000001")
    assert code == ExitCode.REFUSED
    assert "s3://bucket/A.000001" in said
    assert "is not read or written here" in said


def test_in_a_run_file(empty_folder: Path):
    """A pattern of files in a run file is a path as well."""
    text = RUN.read_text().replace('binlogs = ["', 'binlogs = ["dbfs:/', 1)
    assert "dbfs:/" in text
    file = empty_folder / "run.toml"
    file.write_text(text)
    code, said = invoke("check", file)
    assert code == ExitCode.REFUSED
    assert "clusters.A.binlogs#1: the path is dbfs:/" in said
    assert "give what Databricks mounts, as /dbfs/..." in said


def test_in_a_sweep_file(empty_folder: Path):
    """The model that it names."""
    file = empty_folder / "sweep.toml"
    file.write_text('model = "s3://bucket/model.toml"\n[grid]\nlatency_ms = [1]\n')
    code, said = invoke("sweep", file, "--out", "x")
    assert code == ExitCode.REFUSED
    assert "model is s3://bucket/model.toml, an address" in said


def test_colons_in_local_names(empty_folder: Path):
    """They are no addresses."""
    binlogs, schema = sorted(DEMO.resolve().glob("?.binlog.000001")), DEMO.resolve() / "schema.sql"
    code, said = invoke("init", *binlogs, "--schema", schema, "--out", "run:1.toml")
    assert code == ExitCode.DONE, said
    assert (empty_folder / "run:1.toml").exists()


@pytest.mark.parametrize("address", [Path("dbfs:/run"), "dbfs:/run"])
def test_what_python_makes_of_an_address(address: Path | str, empty_folder: Path):
    """No folder is made of it."""
    with pytest.raises(ConfigurationError, match="an address of a filesystem"):
        conflict.resolve(RUN.resolve(), out=address)
    with pytest.raises(ConfigurationError, match="an address of a filesystem"):
        conflict.resolve(RUN.resolve(), keep_history=address)
    assert [*empty_folder.iterdir()] == []


@pytest.mark.parametrize(
    "read", [conflict.read_binlog, conflict.load_run_file, conflict.resolve, conflict.simulate, conflict.sizes]
)
def test_what_python_reads(read: Callable[[str], object]):
    """It is refused by name, and is not a folder that is missing."""
    with pytest.raises(ConfigurationError, match="is dbfs:/x, an address of a filesystem"):
        read("dbfs:/x")


def test_a_result_in_python_is_not_read_from_a_short_address():
    """Nor is a folder of that name looked for."""
    with pytest.raises(ConfigurationError, match="the folder is dbfs:/x, an address"):
        conflict.read_result("dbfs:/x")
