"""Files that commands write."""

from pathlib import Path

from conflict.cli.common import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO


def test_json_never_overwrites_an_input(max_run: Path) -> None:
    """`--json` refuses the run file, the files that it names, a schema, and files of recordings."""
    folder = max_run.parent
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for target in ("run.toml", "schema.sql", "A.binlog.000001"):
        code, output = invoke("check", max_run, "--json", folder / target)
        assert (code, "would be overwritten" in output) == (ExitCode.REFUSED, True)
    schema = folder / "schema.sql"
    asked = ("--function", "NDB$OLD(x)", "--schema", schema, "--table", "t2", "--json", schema)
    assert invoke("requirements", *asked)[0] == ExitCode.REFUSED
    code, output = invoke("conformance", folder, "--engine", "reference", "--json", folder / "steps.json")
    assert (code, "would be overwritten" in output) == (ExitCode.REFUSED, True)
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


def test_decode_never_overwrites_its_input(tmp_path: Path) -> None:
    """A binlog, another link to it and the schema are refused as result files, in every format."""
    binlog, link, schema = tmp_path / "binlog.000001", tmp_path / "link", tmp_path / "schema.sql"
    binlog.write_bytes((DEMO / "A.binlog.000001").read_bytes())
    link.hardlink_to(binlog)
    schema.write_bytes((DEMO / "schema.sql").read_bytes())
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for form in ("text", "json", "csv", "parquet"):
        for target in (binlog, link, schema):
            asked = ("--format", form, "--schema", schema, "-r", target)
            assert invoke("decode", *asked, binlog)[0] == ExitCode.REFUSED
    assert before == {path: path.read_bytes() for path in tmp_path.iterdir()}
