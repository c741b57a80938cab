"""Paths are local: an address of another filesystem is refused by name, and no folder is made of it."""

from pathlib import Path

import pytest

import conflict
from conflict.cli.exit_codes import ExitCode
from conflict.errors import ConfigurationError
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

RUN = DEMO / "run.toml"
ADDRESSES = ["s3://bucket/run", "s3a://bucket/run", "hdfs:/run", "dbfs:/run", "file:///run", "gs://bucket/run"]


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
        assert address in said
        assert "is not read or written here" in said
    assert [*empty_folder.iterdir()] == []


@pytest.mark.parametrize("command", ["decode", "resolve", "check", "sizes"])
def test_what_to_read(command: str):
    """As an argument."""
    code, said = invoke(command, "s3://bucket/A.000001")
    assert code == ExitCode.REFUSED
    assert "s3://bucket/A.000001" in said
    assert "is not read or written here" in said


def test_in_a_run_file(empty_folder: Path):
    """A pattern of files in a run file is a path as well."""
    text = RUN.read_text().replace('binlogs = ["', 'binlogs = ["s3://bucket/', 1)
    assert "s3://bucket/" in text
    file = empty_folder / "run.toml"
    file.write_text(text)
    code, said = invoke("check", file)
    assert code == ExitCode.REFUSED
    assert "s3://bucket/" in said


def test_colons_in_local_names(empty_folder: Path):
    """They are no addresses."""
    binlogs, schema = sorted(DEMO.resolve().glob("?.binlog.000001")), DEMO.resolve() / "schema.sql"
    code, said = invoke("init", *binlogs, "--schema", schema, "--out", "run:1.toml")
    assert code == ExitCode.DONE, said
    assert (empty_folder / "run:1.toml").exists()


def test_a_result_in_python_is_refused_before_the_work():
    """Its last step renames a folder, which object stores cannot."""
    with pytest.raises(ConfigurationError, match="a result is written beside its place"):
        conflict.resolve(RUN.resolve(), out="s3://bucket/run")
