"""The record and the state of a watch: a kill at any byte loses and repeats nothing."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.config.run_file import load_run_file
from conflict.errors import HistoryError
from conflict.operating.watching import saved
from conflict.operating.watching.saved import STATE_FILE, RecordFile, StateOf
from conflict.runs.run_inputs import run_of
from tests.corpora import DEMO

LINES = st.lists(st.sampled_from([b"a\n", b"bb\n", b"ccc\n"]), max_size=6)


@given(LINES, LINES, st.data())
def test_lines_are_written_once(before: list[bytes], after: list[bytes], data: st.DataObject) -> None:
    """Those after the state are decided again in any order; one that a kill cut is written anew."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "records.jsonl"
        record = RecordFile.opened(path, 0)
        record.append(before)
        length = record.length
        record.append(after)
        whole = path.read_bytes()
        cut = data.draw(st.integers(length, len(whole)))
        path.write_bytes(whole[:cut])
        again = RecordFile.opened(path, length)
        new = again.append(data.draw(st.permutations(after)))
        assert sorted(path.read_bytes().splitlines(True)) == sorted([*before, *after])
        assert len(new) == len(after) - whole[length:cut].count(b"\n")
        again.refuse_left()


def test_lines_that_are_decided_no_more(tmp_path: Path) -> None:
    """A file was changed behind the watch: it does not go on."""
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"a\nb\n")
    record = RecordFile.opened(path, 0)
    record.append([b"a\n"])
    with pytest.raises(HistoryError, match="holds 1 records that the logs do not show any more"):
        record.refuse_left()


def test_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes back with the length of the record; of another run file or program it is refused."""
    run = run_of(load_run_file(DEMO / "run.toml"))
    setup = run.setups.at_start["A"]["cft.t1"]
    record = RecordFile.opened(tmp_path / "records.jsonl", 0)
    record.append([b"a\n"])
    assert StateOf("run", run).load(tmp_path) is None
    StateOf("run", run).save(tmp_path, {"epoch": 2**64 - 1, "of": (run, setup)}, record)
    found, length = StateOf("run", run).load(tmp_path) or ({}, 0)
    assert length == 2
    assert found["epoch"] == 2**64 - 1
    assert found["of"][0] is run
    assert found["of"][1] is setup
    with pytest.raises(HistoryError, match="another run file"):
        StateOf("other", run).load(tmp_path)
    with monkeypatch.context() as upgraded:
        upgraded.setattr(saved, "program", lambda: "another")
        with pytest.raises(HistoryError, match="no state of this version"):
            StateOf("run", run).load(tmp_path)
    (tmp_path / STATE_FILE).write_bytes(b"nothing")
    with pytest.raises(HistoryError, match="no state of this version"):
        StateOf("run", run).load(tmp_path)


def test_a_record_that_is_too_short(tmp_path: Path) -> None:
    """It is not the one that belongs to the state."""
    (tmp_path / "records.jsonl").write_bytes(b"a\n")
    with pytest.raises(HistoryError, match="is shorter"):
        RecordFile.opened(tmp_path / "records.jsonl", 3)
