"""`rewrite`: files, counts, exit codes, and what is refused."""

import json
from pathlib import Path

from conflict.cli.refusals import ExitCode
from ndb_formats.binlog_reader import read_events
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS

CASE = RECORDINGS / "ndb_formats" / "composite_type7"
BINLOG, SCHEMA = CASE / "binlog.000001", CASE / "schema.sql"


def test_an_exact_rewrite(tmp_path: Path) -> None:
    """Type 9 needs nothing that type 7 lacks: exit code 0, and a file of the same name that can be read."""
    code, output = invoke("rewrite", BINLOG, "--binlog-type", 9, "--schema", SCHEMA, "--out", tmp_path)
    assert (code, "kept as logged: 0." in output) == (ExitCode.DONE, True)
    assert [path.name for path in tmp_path.iterdir()] == ["binlog.000001"]
    assert len(list(read_events(tmp_path / "binlog.000001"))) == len(list(read_events(BINLOG)))


def test_what_is_not_exact_is_said(tmp_path: Path) -> None:
    """Columns taken from values, and a change that is kept: exit code 4, on the terminal and as JSON."""
    answer = tmp_path / "answer.json"
    code, output = invoke(
        *("rewrite", BINLOG, "--binlog-type", "UPDATED_ONLY_MINIMAL", "--schema", SCHEMA, "--out", tmp_path / "out"),
        *("--json", answer),
    )
    assert code == ExitCode.WARNED
    assert "an update has the columns that changed value; the statement may have set more" in output
    assert "Rewritten: 17 row changes; kept as logged: 1." in output
    found = json.loads(answer.read_text("utf-8"))["changes"]
    assert {
        "table": "fmt.composite",
        "operation": "UPDATE_ROW",
        "rewritten": False,
        "result": "no column changed value, and which columns were set is hidden",
        "lacking": [],
        "rows": 1,
    } in found


def test_no_input_is_overwritten(tmp_path: Path) -> None:
    """Neither a binlog in the output folder, nor one of another name there, nor the schema."""
    binlog, link, schema = tmp_path / "binlog.000001", tmp_path / "other" / "binlog.000001", tmp_path / "schema.sql"
    binlog.write_bytes(BINLOG.read_bytes())
    schema.write_bytes(SCHEMA.read_bytes())
    link.parent.mkdir()
    link.hardlink_to(binlog)
    for out in (tmp_path, link.parent):
        code, output = invoke("rewrite", binlog, "--binlog-type", 8, "--schema", schema, "--out", out)
        assert (code, "would be overwritten" in output) == (ExitCode.REFUSED, True)
    asked = ("--binlog-type", 8, "--schema", schema, "--out", tmp_path / "out", "--json", schema)
    assert invoke("rewrite", binlog, *asked)[0] == ExitCode.REFUSED
    assert (binlog.read_bytes(), schema.read_bytes()) == (BINLOG.read_bytes(), SCHEMA.read_bytes())


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    """They would overwrite each other; nothing is written."""
    twin = tmp_path / "binlog.000001"
    twin.write_bytes(BINLOG.read_bytes())
    code, output = invoke("rewrite", BINLOG, twin, "--binlog-type", 8, "--out", tmp_path / "out")
    assert (code, "have the same name" in output) == (ExitCode.REFUSED, True)
    assert not (tmp_path / "out").exists()


def test_a_schema_that_is_wrong_leaves_no_folder(tmp_path: Path) -> None:
    """The folder is made when all that was asked is understood."""
    schema = tmp_path / "schema.sql"
    schema.write_text("CREATE TABLE")
    asked = ("--binlog-type", 8, "--schema", schema, "--out", tmp_path / "out")
    assert invoke("rewrite", BINLOG, *asked)[0] == ExitCode.REFUSED
    asked = ("--binlog-type", "x", "--schema", SCHEMA, "--out", tmp_path / "out")
    assert invoke("rewrite", BINLOG, *asked)[0] == ExitCode.REFUSED
    assert invoke("rewrite", schema, "--binlog-type", 8, "--out", tmp_path / "out")[0] == ExitCode.REFUSED
    assert list(tmp_path.iterdir()) == [schema]


def test_a_format_is_needed(tmp_path: Path) -> None:
    """The message names both options; an unknown value is refused with the known ones."""
    code, output = invoke("rewrite", BINLOG, "--out", tmp_path)
    assert (code, "--binlog-type" in output, "--row-image" in output) == (ExitCode.REFUSED, True, True)
    code, output = invoke("rewrite", BINLOG, "--row-image", "tiny", "--out", tmp_path)
    assert (code, "full, minimal, noblob" in output) == (ExitCode.REFUSED, True)


def test_a_damaged_file_leaves_nothing(tmp_path: Path) -> None:
    """The error names the position, and no file is there."""
    damaged = tmp_path / "binlog.000001"
    data = bytearray(BINLOG.read_bytes())
    data[900] ^= 1
    damaged.write_bytes(data)
    code, output = invoke("rewrite", damaged, "--binlog-type", 8, "--schema", SCHEMA, "--out", tmp_path / "out")
    assert (code, "the file was damaged" in output) == (ExitCode.REFUSED, True)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_cut_short(tmp_path: Path) -> None:
    """Its complete transactions are written, and the exit code is 3."""
    cut = tmp_path / "binlog.000001"
    cut.write_bytes(BINLOG.read_bytes()[:3000])
    code, output = invoke("rewrite", cut, "--binlog-type", 7, "--schema", SCHEMA, "--out", tmp_path / "out")
    assert (code, "complete transactions were written" in output) == (ExitCode.CUT_SHORT, True)
    written = (tmp_path / "out" / "binlog.000001").read_bytes()
    assert 1000 < len(written) < 3000
    assert BINLOG.read_bytes().startswith(written)


def test_a_log_of_a_known_format(tmp_path: Path) -> None:
    """What type 8 hides without its name is known with it."""
    case = RECORDINGS / "ndb_formats" / "charkey_type8"
    asked = ("rewrite", case / "binlog.000001", "--binlog-type", 2, "--schema", case / "schema.sql", "--out", tmp_path)
    assert invoke(*asked)[0] == ExitCode.WARNED
    assert invoke(*asked, "--from-binlog-type", 8, "--force")[0] == ExitCode.DONE
