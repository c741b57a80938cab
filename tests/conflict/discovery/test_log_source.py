"""What `decode`, `sizes` and `read_binlog` take: files, folders and run files."""

import gzip
import json
import re
from pathlib import Path

import pytest
import zstandard
from typer.testing import CliRunner

import conflict
from conflict.cli.app import app
from conflict.config.text_file import plain_path
from conflict.discovery.logs import log_source
from conflict.errors import ConfigurationError
from tests.corpora import DEMO

FILES = [DEMO / "A.binlog.000001", DEMO / "B.binlog.000001"]


def test_a_run_file_stands_for_its_binlogs_and_schema() -> None:
    """A folder has no schema; one that is given counts."""
    for given in (DEMO, DEMO / "run.toml", DEMO / "*.binlog.*"):
        assert [*log_source([given]).files] == [plain_path(file) for file in FILES]
    assert {table.full_name for table in log_source([DEMO / "run.toml"]).definitions([]).tables} >= {"cft.t1"}
    assert log_source([DEMO]).definitions([]).tables == ()
    assert log_source([DEMO / "run.toml"], DEMO / "schema.sql").known is None


def test_decode_and_read_binlog_read_them_alike() -> None:
    """The rows of a run file are those of its files with its schema."""
    schema = str(DEMO / "schema.sql")
    wanted = CliRunner().invoke(app, ["decode", "--format", "json", "--schema", schema, *map(str, FILES)]).stdout
    assert len(wanted.splitlines()) == 171
    assert CliRunner().invoke(app, ["decode", "--format", "json", str(DEMO / "run.toml")]).stdout == wanted
    assert CliRunner().invoke(app, ["decode", "--format", "json", "--schema", schema, str(DEMO)]).stdout == wanted
    found = conflict.read_binlog(DEMO / "run.toml", "cft.t1").to_arrow()
    assert found.equals(conflict.read_binlog(FILES, "cft.t1", schema=schema).to_arrow())
    shown = CliRunner().invoke(app, ["decode", "-v", str(DEMO / "run.toml")]).stdout
    assert re.search(r"^###   id=1 ?$|^###   k=1", shown, re.MULTILINE)


def test_sizes_takes_them() -> None:
    """The same bytes, whether named by a run file or one by one; each file has its server."""
    documents = []
    for given in ([DEMO / "run.toml"], [*FILES, "--schema", DEMO / "schema.sql"]):
        done = CliRunner().invoke(app, ["sizes", "--json", "-", *map(str, given)])
        assert done.exit_code == 0, done.output
        documents.append(json.loads(done.stdout))
    assert documents[0] == documents[1]
    assert [each["server_id"] for each in documents[0]["files"]] == [1, 2]


def test_each_cluster_has_its_own_schema(tmp_path: Path) -> None:
    """The log of a server is read with the definitions of its cluster, by every command, at either end."""
    for file in DEMO.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    text = (DEMO / "run.toml").read_text().replace("[clusters.B]", '[clusters.B]\nschema = "b.sql"')
    (tmp_path / "b.sql").write_text((DEMO / "schema.sql").read_text().replace("n VARCHAR", "other VARCHAR"))
    (tmp_path / "run.toml").write_text(text)
    for end in ("", 'schema_at = "end"\n'):
        (tmp_path / "run.toml").write_text(end + text)
        shown = CliRunner().invoke(app, ["decode", "--format", "json", "--table", "plain", str(tmp_path / "run.toml")])
        rows = [json.loads(line) for line in shown.stdout.splitlines()]
        names = {(Path(each["file"]).name[0], name) for each in rows for name in each.get("after", ())}
        assert names == {(cluster, name) for cluster in "AB" for name in ("id", "x")} | {("A", "n"), ("B", "other")}
        table = conflict.read_binlog(tmp_path / "run.toml", "cft.plain").to_arrow()
        assert [field.name for field in table.schema.field("after").type] == ["id", "x", "other", "n"]
    whole = [
        json.loads(CliRunner().invoke(app, ["sizes", "--json", "-", str(folder / "run.toml")]).stdout)
        for folder in (DEMO, tmp_path)
    ]
    assert whole[0]["formats"] == whole[1]["formats"]


def test_compressed_files_in_a_folder(tmp_path: Path) -> None:
    """Are read in their places by who unpacks them, and refused by name by all others."""
    plain = (DEMO / "A.binlog.000001").read_bytes()
    (tmp_path / "binlog.000009").write_bytes(plain)
    (tmp_path / "binlog.000002.gz").write_bytes(gzip.compress(plain))
    (tmp_path / "binlog.000010.zst").write_bytes(zstandard.compress(plain))
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"no binlog"))
    files = conflict.read_binlog(tmp_path).to_arrow()["file"].unique().to_pylist()
    names = ["binlog.000002.gz", "binlog.000009", "binlog.000010.zst"]
    assert files == [str(tmp_path / name) for name in names]
    for command in (["sizes"], ["resolve", "--out", str(tmp_path / "out")]):
        done = CliRunner().invoke(app, [*command, str(tmp_path)])
        assert done.exit_code == 2
        assert "is compressed, and is read where it is here; unpack it first" in " ".join(done.output.split())
    (tmp_path / "binlog.000002").write_bytes(plain)
    with pytest.raises(
        ConfigurationError, match=r"binlog\.000002 and .*\.gz are both given as binlog\.000002 of server 1"
    ):
        log_source([tmp_path], unpacks=True)


def test_tables_may_be_named_without_their_database() -> None:
    """With `decode`, and in Python."""
    lines = [
        CliRunner().invoke(app, ["decode", "--format", "json", "--table", name, str(DEMO)]) for name in ("t2", "cft.t2")
    ]
    assert lines[0].stdout == lines[1].stdout != ""
    changes = conflict.read_binlog(DEMO)
    assert changes["t2"].table == conflict.read_binlog(DEMO, "t2").table == "cft.t2"
    assert changes["t2"].to_arrow().num_rows == len(lines[0].stdout.splitlines())
    nothing = CliRunner().invoke(app, ["decode", "--table", "t3", str(DEMO)])
    assert (nothing.exit_code, "--table t3 matches nothing" in nothing.stderr) == (4, True)


def test_sizes_of_a_log_that_is_cut_short_leave_no_other_log_out(tmp_path: Path) -> None:
    """The bytes of both are those of each, and the exit code says that one was cut."""
    cut = tmp_path / "binlog.000001"
    cut.write_bytes(FILES[0].read_bytes()[:9000])
    asked = ["sizes", "--schema", str(DEMO / "schema.sql"), "--json", "-"]
    done = [
        CliRunner().invoke(app, [*asked, *map(str, given)])
        for given in ([cut], FILES[1:], [cut, cut.parent, *FILES[1:]])
    ]
    assert [each.exit_code for each in done] == [3, 0, 2]  # the same file twice is refused
    done[2] = CliRunner().invoke(app, [*asked, str(cut), str(FILES[1])])
    assert (done[2].exit_code, "binlog.000001, position " in done[2].stderr) == (3, True)
    one, other, both = (json.loads(each.stdout)["files"] for each in (done[0], done[1], done[2]))
    assert both == [*one, *other]
