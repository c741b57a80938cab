"""Keys under collations of which equality is not known: refused by name, or allowed by option and run file."""

import shutil
from pathlib import Path

import pytest

from conflict.cli.refusals import ExitCode
from conflict.config.run_file import load_run_file
from ndb_formats.errors import UnsupportedError
from ndb_formats.schema.row_keys import refuse_inexact_keys
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    """Return the run file of the demo, where a key column has such a collation."""
    for file in DEMO.iterdir():
        shutil.copy(file, tmp_path)
    schema = tmp_path / "schema.sql"
    text = schema.read_text().replace("CHARACTER SET latin1 COLLATE latin1_swedish_ci", "CHARACTER SET gbk")
    schema.write_text(text)
    return tmp_path / "run.toml"


@pytest.mark.parametrize(
    "command", [("resolve", "--engine", "reference"), ("resolve", "--engine", "local"), ("ingest",)]
)
def test_refused_by_name(command: tuple[str, ...], run_file: Path, tmp_path: Path):
    """Table, column and collation are named, and what to do; nothing is written."""
    code, output = invoke(command[0], run_file, "--out", tmp_path / "out", *command[1:])
    assert code == ExitCode.REFUSED
    for part in ("cft.t2", "column b", "gbk_chinese_ci", "--inexact-keys"):
        assert part in output
    assert not (tmp_path / "out").exists()


def test_allowed(run_file: Path):
    """By the option and by the run file alike."""
    with pytest.raises(UnsupportedError, match="gbk_chinese_ci"):
        refuse_inexact_keys(load_run_file(run_file).configuration.data_schema.tables)
    refuse_inexact_keys(load_run_file(run_file).configuration.with_inexact_keys().data_schema.tables)
    run_file.write_text("inexact_keys = true\n" + run_file.read_text())
    refuse_inexact_keys(load_run_file(run_file).configuration.data_schema.tables)
