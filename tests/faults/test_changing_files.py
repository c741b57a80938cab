"""A binlog that another program changes while it is read: a sentence, nothing half, and the next run succeeds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora import DEMO
from tests.faults.commands import run

# The change happens when the file has been mapped, and nothing of it read but its first event.
CHANGING = """
import os, sys
from pathlib import Path
from conflict.cli import app
from ndb_formats.columnar import event_index
log, original = Path(sys.argv.pop(1)), event_index.first_event
change = sys.argv.pop(1)
def changed(*arguments, **options):
    event = original(*arguments, **options)
    exec(change, {"os": os, "log": log})
    return event
event_index.first_event = changed
app.main()
"""
REFUSED = 2
WHOLE = (DEMO / "A.binlog.000001").read_bytes()
LINES = 66  # that say INSERT INTO in the text of the whole recording
CHANGES = {
    "cut": ("os.truncate(log, 4096)", REFUSED, "was cut short while it was read"),
    "appended": ("log.open('ab').write(log.read_bytes()[200:300])", 0, ""),
    "rotated away": ("log.unlink()", 0, ""),
    "replaced": ("log.unlink(); log.write_bytes(b'')", 0, ""),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_binlog_that_changes(name: str, tmp_path: Path) -> None:
    """What was there when reading began is read, or a sentence says why not."""
    change, code, sentence = CHANGES[name]
    log, out = tmp_path / "in" / "binlog.000001", tmp_path / "out" / "text"
    log.parent.mkdir()
    out.parent.mkdir()
    log.write_bytes(WHOLE)
    words = [str(log), change, "decode", "-vv", str(log), "-r", str(out)]
    ended = subprocess.run([sys.executable, "-c", CHANGING, *words], capture_output=True, text=True, check=False)
    said = ended.stdout + ended.stderr
    assert ended.returncode == code, said
    assert "Traceback" not in said
    assert sentence in said
    if code == 0:
        assert out.read_bytes().count(b"### INSERT INTO") == LINES
        return
    assert not out.exists()
    log.write_bytes(WHOLE)
    assert run("decode", "-vv", log, "-r", out).code == 0
    assert out.read_bytes().count(b"### INSERT INTO") == LINES
