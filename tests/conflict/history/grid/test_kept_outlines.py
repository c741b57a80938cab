"""Outlines that a History keeps: the same as those that are made, and used for files that are as they were alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

import conflict
from conflict.documents import read
from conflict.errors import HistoryError
from conflict.history.grid.documents import to_json
from conflict.history.grid.folder import Folder
from conflict.history.grid.kept_outlines import KeptOutline, known_or_made, outlines_to_keep
from conflict.history.grid.manifest import read_manifest
from conflict.history.ingestion.plan import plan_ingest
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.runs.ingest_job import ingest
from ndb_formats.columnar.file_outline import FileOutline, outline_of, outlines_of
from tests.conflict.faults import with_files
from tests.conflict.growing import DEMO, RECORDINGS, SEGMENT_BYTES, Recording, commits, ingested, results, rows_of
from tests.ndb_formats.recordings import BINLOGS

CASES = [
    "",
    "conflict/max/one_key_many_ops_type7",
    "everyday/epoch2/ddl_add_column_type8",
    "everyday/max/ddl_drop_and_create_type7",
]


def test_every_recording():
    """What a file says comes back from its events as JSON, and so does where it can be divided."""
    kept = 0
    for path in BINLOGS:
        made = outline_of(path)
        for stop in (0, made.size // 2, made.size):
            for each in outlines_to_keep({made.file: made}, {made.file: stop}):
                found = read(KeptOutline, json.loads(json.dumps(to_json(each)))).outline()
                assert (found.file, found.size, found.items, found.whole) == (made.file, made.size, made.items, True)
                assert (found.end, found.error, found.digest) == (made.end, None, made.digest)
                assert (found.events, found.divided_from) == (made.events, stop)
                assert found.starts.tolist() == [place for place in made.starts.tolist() if place >= stop]
                assert [*outlines_to_keep({made.file: found}, {made.file: stop})] == [each]
                kept += 1
    assert kept > len(BINLOGS)


def test_what_cannot_be_read_to_its_end_is_not_kept(tmp_path: Path):
    """Such a file may be repaired; it is looked at again."""
    broken = tmp_path / "A.000001"
    broken.write_bytes((DEMO / "A.binlog.000001").read_bytes()[:-3])
    made = outline_of(broken)
    assert not [*outlines_to_keep({made.file: made}, {made.file: 0})]


@pytest.fixture
def history(tmp_path: Path) -> Folder:
    """Return a folder that does not exist yet."""
    return Folder(str(tmp_path / "history"))


@attrs.frozen
class Maker:
    """Makes outlines, and knows of which files."""

    made: list[str] = attrs.field(factory=list)

    def __call__(self, files: Sequence[Path]) -> list[FileOutline]:
        """Return them."""
        self.made.extend(file.name for file in files)
        return outlines_of(files)


def planned(recording: Recording, history: Folder) -> tuple[Run, list[str]]:
    """Return a run that knows what a History keeps, like one that does not, and of which files outlines were made."""
    maker, held = Maker(), read_manifest(history)
    run = make_run(recording.configuration, recording.hints, known_or_made(held.outlines, maker))
    other = recording.run()
    facts = ("configuration", "history_tables", "notes", "remarks", "restarts", "compressed", "renames")
    assert all(getattr(run, name) == getattr(other, name) for name in facts)
    assert repr(run.definitions) == repr(other.definitions)  # which are compared by identity
    assert plan_ingest(run, held, None, SEGMENT_BYTES) == plan_ingest(other, held, None, SEGMENT_BYTES)
    if all(file.exists() for file in recording.configuration.files):
        assert plan_ingest(run, None, None, SEGMENT_BYTES) == plan_ingest(other, None, None, SEGMENT_BYTES)
    return run, sorted(maker.made)


@pytest.mark.parametrize("name", CASES)
def test_a_log_that_grows(name: str, tmp_path: Path, history: Folder):
    """Only the file that grew is looked at; History and result are those of one ingest that knew nothing."""
    recording = Recording.copy(RECORDINGS / name if name else DEMO, tmp_path / "recording")
    first, second = recording.files.values()
    sizes = {each: file.stat().st_size for each, file in recording.files.items()}
    whole = Folder(str(tmp_path / "whole"))
    ingested(recording, whole)
    grown = next(iter(recording.files))
    ends = commits(first) or [sizes[grown]]
    for size in (ends[len(ends) // 2], ends[len(ends) // 2] + 30, sizes[grown]):
        recording.cut({grown: size})
        if history.exists("history.json"):
            run, made = planned(recording, history)
            assert made == [first.name]
        else:
            run = recording.run()
        ingest(in_process, run, history, buckets=2, segment_bytes=SEGMENT_BYTES)
        again, made = planned(recording, history)
        assert made == ([] if size in ends or size == sizes[grown] else [first.name])
    assert second.name not in made
    assert rows_of(history) == rows_of(whole)
    outs = (Folder(str(tmp_path / name)) for name in ("out", "o"))
    pairs = ((again, history), (recording.run(), whole))
    one, other = (results(*pair, out) for pair, out in zip(pairs, outs, strict=True))
    assert one == other


def test_files_that_come_and_go(tmp_path: Path, history: Folder):
    """A new file is looked at, an old one is not, and one that is gone says nothing, whatever is kept of it."""
    demo = Recording.copy(DEMO, tmp_path / "demo")
    ingested(demo, history)
    cluster, other = demo.configuration.clusters
    more = cluster.log.files[0].with_name("A.binlog.000002")
    more.write_bytes(cluster.log.files[0].read_bytes()[:158])
    clusters = (with_files(cluster, *cluster.log.files, more), other)
    longer = attrs.evolve(demo, configuration=attrs.evolve(demo.configuration, clusters=clusters))
    run, made = planned(longer, history)
    assert made == [more.name]
    ingest(in_process, run, history, buckets=2, segment_bytes=SEGMENT_BYTES)
    assert planned(longer, history)[1] == []
    cluster.log.files[0].unlink()
    gone, made = planned(longer, history)
    assert (made, gone.outlines.keys()) == ([], {str(more), str(other.log.files[0])})


@pytest.mark.parametrize("position", [30, -30])
def test_a_file_that_was_replaced(position: int, tmp_path: Path, history: Folder):
    """It is looked at, and refused."""
    demo = Recording.copy(DEMO, tmp_path / "demo")
    ingested(demo, history)
    content = bytearray(demo.files["A"].read_bytes())
    content[position] ^= 1
    demo.files["A"].write_bytes(content)
    maker = Maker()
    run = make_run(demo.configuration, demo.hints, known_or_made(read_manifest(history).outlines, maker))
    assert maker.made == [demo.files["A"].name]
    with pytest.raises(HistoryError, match="does not begin with what was read of it before"):
        ingest(in_process, run, history, segment_bytes=SEGMENT_BYTES)


def test_resolve_looks_at_no_binlog_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From the History that it kept, and into it again."""
    demo, made = Recording.copy(DEMO, tmp_path / "demo"), list[str]()

    def counted(file: Path) -> FileOutline:
        made.append(file.name)
        return outline_of(file)

    monkeypatch.setattr("ndb_formats.columnar.file_outline.outline_of", counted)
    run, kept = demo.folder / "run.toml", tmp_path / "kept"
    first = conflict.resolve(run, keep_history=kept, out=tmp_path / "first", engine="local")
    assert sorted(made) == sorted(file.name for file in demo.files.values())
    again = conflict.resolve(run, history=kept, out=tmp_path / "again", engine="local")
    more = conflict.resolve(run, keep_history=kept, out=tmp_path / "more", engine="local")
    assert len(made) == 2
    assert first.run["log_remarks"] == again.run["log_remarks"] == more.run["log_remarks"]
    assert first.counters == again.counters == more.counters
