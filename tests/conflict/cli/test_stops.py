"""Stops in logs of two servers: each log stops for itself, whatever is read, and a moment is the same everywhere."""

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import conflict
from conflict.cli.app import app
from ndb_formats.selection import Selection, select_events
from tests.conflict.cli.commands import invoke
from tests.corpora import DEMO

A, B = DEMO / "A.binlog.000001", DEMO / "B.binlog.000001"
TIME = "2026-11-20 16:00:16"
# Counted by hand among the lines of each file without a stop: the rows up to its first event of that second, and those
# of epochs up to this one.
EPOCH = "5317169512464"
ROWS = {"--stop-datetime": {A: 30, B: 34}, "--stop-epoch": {A: 8, B: 77}}
STOPS = {"--stop-datetime": TIME, "--stop-epoch": EPOCH}


def rows_of(lines: str) -> list[tuple[str, int, int]]:
    """Return file, position and row of JSON lines."""
    return [(Path(row["file"]).name, row["position"], row["row"]) for row in map(json.loads, lines.splitlines())]


def decoded(files: Sequence[Path], *options: str) -> str:
    """Return what `decode` prints."""
    done = CliRunner().invoke(app, ["decode", *options, *map(str, files)])
    assert done.exit_code in (0, 4), done.output
    return done.stdout


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("files", [(A, B), (B, A), (A, B, A)])
def test_each_server_stops_for_itself(stop: str, files: tuple[Path, ...], tmp_path: Path) -> None:
    """JSON lines, Parquet and text; a later file of a server that has stopped is not read."""
    wanted = sum(ROWS[stop].values())
    lines = decoded(files, "--format", "json", stop, STOPS[stop])
    assert len(rows_of(lines)) == wanted
    apart = [rows_of(decoded([file], "--format", "json", stop, STOPS[stop])) for file in dict.fromkeys(files)]
    assert rows_of(lines) == list(itertools.chain(*apart))
    decoded(files, "--format", "parquet", "--wide", "--result-file", str(tmp_path / "rows"), stop, STOPS[stop])
    assert len(pq.read_table(tmp_path / "rows")) == wanted
    text = decoded(files, "-v", stop, STOPS[stop])
    alone = [decoded([file], "-v", stop, STOPS[stop]) for file in dict.fromkeys(files)]
    assert re.findall("^### .*", text, re.MULTILINE) == re.findall("^### .*", "".join(alone), re.MULTILINE)


@pytest.mark.parametrize("stop", STOPS)
def test_python_stops_where_decode_does(stop: str) -> None:
    """Also with the moment as text, with an offset."""
    given = {"stop_time": "2026-11-20T21:00:16+05:00"} if stop == "--stop-datetime" else {"stop_epoch": int(EPOCH)}
    found = conflict.read_binlog([A, B], **given).to_arrow()
    assert found.num_rows == sum(ROWS[stop].values())


@pytest.mark.parametrize("selection", [Selection(stop_time=1795190416), Selection(stop_epoch=int(EPOCH))])
def test_the_scalar_reader_stops_each_server_for_itself(selection: Selection) -> None:
    """Events of both files are those of each file alone."""
    both, first, second = (
        [(each.event.file, each.event.position) for each in select_events(files, selection, verify=True)]
        for files in ([str(A), str(B)], [str(A)], [str(B)])
    )
    assert both == first + second
    assert first
    assert second


def test_positions_are_those_of_the_first_and_the_last_file_as_mysqlbinlog_takes_them() -> None:
    """The start leaves rows out of the first file alone, the stop of the last one alone."""
    every = rows_of(decoded([A, B], "--format", "json"))
    start = max(position for file, position, _ in every if file == A.name)
    stop = min(position for file, position, _ in every if file == B.name)
    found = rows_of(decoded([A, B], "--format", "json", "--start-position", str(start)))
    assert found == [row for row in every if row[0] == B.name or row[1] >= start]
    found = rows_of(decoded([A, B], "--format", "json", "--stop-position", str(stop)))
    assert found == [row for row in every if row[0] == A.name]


def test_resolve_takes_offsets(tmp_path: Path) -> None:
    """A moment with an offset is the moment that it names, and without one it is in UTC."""
    known = ("resolve", DEMO / "run.toml", "--engine", "reference", "--out")
    stops = {}
    for name, moment in (("utc", TIME), ("east", "2026-11-20 21:00:16+05:00")):
        assert invoke(*known, tmp_path / name, "--stop-datetime", moment)[0] == 0
        stops[name] = json.loads((tmp_path / name / "run.json").read_text())["inputs"]["stop_time"]
    assert stops == dict.fromkeys(("utc", "east"), 1795190416)
    code, output = invoke(*known, tmp_path / "none", "--stop-datetime", f"{TIME}+05:00")
    assert (code, "has no epoch between" in output) == (2, True)


def test_a_log_that_is_cut_short_keeps_no_other_server_from_being_read(tmp_path: Path) -> None:
    """What comes before the cut and the other log are there, and the warning names file and position."""
    cut = tmp_path / "binlog.000001"
    cut.write_bytes(A.read_bytes()[:9000])
    done = CliRunner().invoke(app, ["decode", "--format", "json", str(cut), str(B)])
    assert (done.exit_code, "binlog.000001, position " in done.stderr) == (3, True)
    alone = CliRunner().invoke(app, ["decode", "--format", "json", str(cut)])
    assert done.stdout == alone.stdout + decoded([B], "--format", "json")
    text = CliRunner().invoke(app, ["decode", "-v", str(cut), str(B)])
    assert (text.exit_code, decoded([B], "-v") in text.stdout) == (3, True)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["resolve", DEMO / "run.toml", "--engine", "reference"], 2),
        (["resolve", DEMO / "run.toml"], 2),
        (["decode", A], 4),
    ],
)
def test_a_time_that_no_event_has_is_answered_in_times(command: list[str | Path], code: int, tmp_path: Path) -> None:
    """With those that the log has, as options take them: from the first one on there is something."""
    out = [] if command[0] == "decode" else ["--out", tmp_path / "result"]
    ended, output = invoke(*command, *out, "--start-datetime", "2020-01-01", "--stop-datetime", "2020-01-02")
    assert ended == code
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    found = re.search(rf"from ({moment}) to ({moment}) UTC", output)
    assert found is not None, output
    assert found[1] < TIME < found[2]
    assert invoke(*command, *out, "--start-datetime", found[1], "--stop-datetime", found[2])[0] in (0, 4)
