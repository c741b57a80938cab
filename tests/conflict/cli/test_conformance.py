"""`ndb-conflict conformance`, on bundled recordings."""

import json
from pathlib import Path

from conflict.cli.refusals import ExitCode
from tests.conflict.cli.commands import invoke
from tests.corpora import RECORDINGS


def test_conformance_writes_its_verdicts(tmp_path: Path) -> None:
    """The JSON file has counts, and every case with its verdict."""
    file = tmp_path / "verdicts.json"
    folder = RECORDINGS / "conflict" / "epoch"
    code, output = invoke("conformance", folder, "--engine", "reference", "--json", file)
    assert code == 0, output
    document = json.loads(file.read_text())
    assert document["counts"] == {"pass": 19, "fail": 0, "not yet": 0}
    first = document["cases"][0]
    about = {"function", "binlog_type", "anomaly", "other"}
    assert {"part", "case", "engine", "status", "detail", "undecided", "by_candidates", *about} == set(first)
    found = [first[name] for name in ("part", "case", "engine", "status", "function", "binlog_type", "anomaly")]
    assert found == ["conflict", "before_refresh_type8", "reference", "pass", "NDB$EPOCH", 8, "before refresh"]


def test_conformance_fails_on_a_contradicted_recording(tmp_path: Path) -> None:
    """With exit code 1, and the difference."""
    case = RECORDINGS / "conflict" / "max" / "probe_type9"
    for file in case.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    expected = json.loads((case / "expected.json").read_text())
    expected["A"]["tables"]["t1"]["rows"][0][1] += 1
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    code, output = invoke("conformance", tmp_path, "--engine", "reference")
    assert code == 1
    wrong = expected["A"]["tables"]["t1"]["rows"][0][1]
    assert f"A: t1 row (k=1): x is {wrong - 1}, recorded: {wrong}" in output


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    """Nothing was judged, so nothing passed."""
    (tmp_path / "other").mkdir()
    code, output = invoke("conformance", tmp_path, "--engine", "reference", "--json", tmp_path / "verdicts.json")
    assert code == ExitCode.REFUSED
    assert f"{tmp_path} holds no recording" in output
    assert not (tmp_path / "verdicts.json").exists()
