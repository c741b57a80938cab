"""Files that commands write."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from conflict.cli.app import app
from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO, RECORDINGS


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


def test_a_file_that_exists_is_replaced_with_force_alone(tmp_path: Path) -> None:
    """`--json` leaves the file of another run as it is."""
    target = tmp_path / "answers.json"
    target.write_text("mine")
    code, output = invoke("check", DEMO / "run.toml", "--json", target)
    assert (code, "--force replaces it" in output) == (ExitCode.REFUSED, True)
    assert target.read_text() == "mine"
    assert invoke("check", DEMO / "run.toml", "--json", target, "--force")[0] != ExitCode.REFUSED
    assert json.loads(target.read_text())["policy"] == "manual"


@pytest.mark.parametrize(
    ("target", "what"), [("missing/answers.json", "there is no folder"), ("", "is a folder; give a file")]
)
def test_a_file_that_cannot_be_written_is_refused_before_the_work(target: str, what: str, tmp_path: Path) -> None:
    """A folder that is missing, and a folder in place of a file."""
    code, output = invoke("conformance", RECORDINGS / "conflict/max", "--json", tmp_path / target)
    assert (code, what in output) == (ExitCode.REFUSED, True)


def test_force_replaces_a_result_and_nothing_else(tmp_path: Path) -> None:
    """Neither another folder, nor one that holds an input; the old result stays until the new one is there."""
    run = tmp_path / "run"
    shutil.copytree(DEMO, run)
    asked = ("resolve", run / "run.toml", "--engine", "reference", "--force", "--out")
    code, output = invoke(*asked, run)
    assert (code, "is no result, which is all that --force replaces" in output) == (ExitCode.REFUSED, True)
    out = tmp_path / "out"
    assert invoke(*asked, out)[0] == ExitCode.DONE
    (out / "stale").write_text("of the old result")
    (run / "schema.sql").write_text("CREATE TABLE t (")
    assert invoke(*asked, out)[0] == ExitCode.REFUSED
    assert (out / "stale").exists()
    shutil.copy(DEMO / "schema.sql", run)
    assert invoke(*asked, out)[0] == ExitCode.DONE
    assert not (out / "stale").exists()
    shutil.copytree(run, out / "run")
    code, output = invoke("resolve", out / "run/run.toml", "--force", "--out", out)
    assert (code, "is inside" in output) == (ExitCode.REFUSED, True)
    assert (out / "run/run.toml").exists()


@pytest.mark.parametrize(
    "asked",
    [
        ("simulate", "{d}/model.toml", "--out", "{out}", "--json", "{out}"),
        ("simulate", "{d}/model.toml", "--out", "{out}", "--json", "{out}-binlogs"),
        ("compare", "{d}/run.toml", "--functions", "OVERWRITE", "--out", "{out}", "--json", "{out}"),
        ("explain", "{d}/run.toml", "--differences", "--json", "{out}", "--parquet", "{out}"),
        ("sizes", "{d}/A.binlog.000001", "--schema", "{d}/schema.sql", "--json", "{out}", "--plot", "{out}"),
        ("diverge", "--transactions", "1", "--json", "{out}", "--recording", "{out}"),
        ("rewrite", "{d}/A.binlog.000001", "--binlog-type", "8", "--out", "{d}/x", "--json", "{d}/x/A.binlog.000001"),
    ],
)
def test_two_outputs_have_two_places(asked: tuple[str, ...], tmp_path: Path) -> None:
    """Else one would take the place of the other; nothing is written."""
    folder = tmp_path / "run"
    shutil.copytree(DEMO, folder)
    (folder / "model.toml").touch()
    before = sorted(tmp_path.rglob("*"))
    code, output = invoke(*(word.format(d=folder, out=tmp_path / "out.png") for word in asked))
    assert code == ExitCode.REFUSED
    assert "is given for two outputs" in output or "there is no folder" in output
    assert sorted(tmp_path.rglob("*")) == before


def test_files_of_a_folder_that_is_read_are_never_overwritten(tmp_path: Path) -> None:
    """A binlog by `init`, and a file of a result by what reads the result."""
    demo, out = tmp_path / "demo", tmp_path / "out"
    shutil.copytree(DEMO, demo)
    assert invoke("resolve", demo / "run.toml", "--engine", "reference", "--out", out)[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    part = out / "counters.json"
    for words in (
        ("init", demo, "--schema", demo / "schema.sql", "--out", demo / "A.binlog.000001"),
        ("report", out, "--out", part),
        ("conflicts", out, "--json", part),
        ("explain", out, "--differences", "--json", part),
    ):
        code, output = invoke(*words, "--force")
        assert (code, "would be overwritten" in output) == (ExitCode.REFUSED, True)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_json_to_standard_output_stands_there_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is for people goes to standard error, and no file with that name is made; other outputs take no ``-``."""
    monkeypatch.chdir(tmp_path)
    asked = ["requirements", "--function", "NDB$MAX(x)", "--json"]
    done = CliRunner().invoke(app, [*asked, "-"])
    assert done.exit_code == 0
    CliRunner().invoke(app, [*asked, "file.json"])
    assert json.loads(done.stdout) == json.loads(Path("file.json").read_text())
    assert "NDB$MAX" in done.stderr
    assert "NDB$MAX" in CliRunner().invoke(app, asked[:-1]).stdout
    binlog = str(DEMO / "A.binlog.000001")
    for other in (["decode", binlog, "-r", "-"], ["explain", ".", "--parquet", "-"], ["sizes", binlog, "--plot", "-"]):
        assert CliRunner().invoke(app, other).exit_code == ExitCode.REFUSED
    assert not Path("-").exists()
