"""Binlogs to a History on disk: at once, in pieces, and by an ingest that is killed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conflict.config.configuration import LoggingServer
from conflict.errors import HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.grid.manifest import Manifest, load_manifest
from conflict.history.grid.schemas import batch_of
from conflict.history.ingestion.plan import default_buckets
from conflict.history.ingestion.segment_task import read_segment
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.tasks import Progress, in_process
from conflict.runs.settled import finished_history
from ndb_formats.errors import WrongKeyError
from tests.conflict.faults import with_files
from tests.conflict.growing import DEMO, RECORDINGS, Recording, commits, ingested, results, rows_of, written

WHOLE = {name: (DEMO / f"{name}.binlog.000001").stat().st_size for name in "AB"}
SPLIT = [
    "max/one_key_many_ops_type7",
    "epoch/hot_3020_type9",
    "epoch/table_with_text_type7",
    "epoch2/role_none_type7",
    "epoch_trans/hot_3020_type8",
    "epoch2_trans/spanning_text_table_type7",
]


@pytest.fixture
def demo(tmp_path: Path) -> Recording:
    """Return a copy of the demo."""
    return Recording.copy(DEMO, tmp_path / "demo")


@pytest.fixture
def history(tmp_path: Path) -> Folder:
    """Return a folder that does not exist yet."""
    return Folder(str(tmp_path / "history"))


class TestAtOnce:
    """A new History."""

    def test_nothing_is_left_over(self, demo: Recording, history: Folder):
        """What was staged is gone, and so is the plan."""
        done = ingested(demo, history)
        assert (done.read, done.there) == (sum(map(len, done.manifest.segments.values())), 0)
        assert done.read > 4
        names = {path.name for path in Path(history.uri).iterdir()}
        files = {"history.json", "schedule.parquet"}
        assert names == {*files, "catalogue", "changes", "images", "consequences", "keys", "epochs"}

    def test_again(self, demo: Recording, history: Folder):
        """A second ingest of the same files changes nothing."""
        first = ingested(demo, history)
        before = written(history)
        again = ingested(demo, history)
        assert (again.read, again.there, again.manifest) == (0, first.read, first.manifest)
        assert written(history) == before

    @pytest.mark.parametrize(
        ("size", "cores", "buckets"),
        [
            *((0, 1, 4), (512 << 20, 1, 4), ((512 << 20) + 2, 1, 8), (12800 << 20, 1, 128), (1 << 40, 1, 1 << 13)),
            *((512 << 20, 6, 8), (512 << 20, 32, 32), (512 << 20, 4096, 32), (64 << 20, 64, 4), (1 << 40, 64, 1 << 13)),
        ],
    )
    def test_default_buckets(self, demo: Recording, size: int, cores: int, buckets: int):
        """The power of two that gives each at most 128 MiB of binlog, at least 4; one for each core if it has 16."""
        for file in demo.files.values():
            os.truncate(file, size // 2)
        assert default_buckets(make_run(demo.configuration), cores) == buckets


class TestAppending:
    """Binlogs that have grown."""

    @pytest.mark.parametrize("name", ["", *SPLIT])
    def test_split_at_transactions(self, name: str, tmp_path: Path, history: Folder):
        """What is there is never written again, only merged, and the whole is what one ingest gives."""
        original = RECORDINGS / "conflict" / name if name else DEMO
        recording = Recording.copy(original, tmp_path / "recording")
        ends = {cluster: commits(file) or [file.stat().st_size] for cluster, file in recording.files.items()}
        whole = Folder(str(tmp_path / "whole"))
        expected = ingested(recording, whole)
        before, merged = dict[str, Any](), tuple[int, ...]()
        for share in (0, 1, 2, 3, 4):
            recording.cut({cluster: places[(len(places) - 1) * share // 4] for cluster, places in ends.items()})
            if share == 4:
                shutil.copytree(original, recording.folder, dirs_exist_ok=True)
            manifest = ingested(recording, history).manifest
            after = written(history)
            left = {path: each for path, each in before.items() if batch_of(path) not in merged}
            assert left.items() <= after.items()
            before, merged = after, manifest.merged
            assert {batch_of(path) for path in after} == {*manifest.batches, *merged}
        assert (manifest.changes, manifest.last_epochs) == (expected.manifest.changes, expected.manifest.last_epochs)
        assert rows_of(history) == rows_of(whole)
        outs = (Folder(str(tmp_path / name)) for name in ("out", "o"))
        one, other = (results(recording.run(), each, out) for each, out in zip((history, whole), outs, strict=True))
        assert one == other

    @given(sizes=st.lists(st.tuples(st.integers(0, WHOLE["A"]), st.integers(0, WHOLE["B"])), max_size=4))
    @settings(max_examples=5)
    @example(sizes=[(0, 851), (1359, 0), (1005, 0)])  # the second part of a log ends as it should, and has no epoch
    def test_cut_anywhere(self, sizes: list[tuple[int, int]]):
        """Files that end inside an event, an epoch or nothing at all: each time the epochs that are whole are there."""
        with tempfile.TemporaryDirectory() as folder:
            demo = Recording.copy(DEMO, Path(folder) / "demo")
            history = Folder(folder + "/history")
            cuts = [
                dict(zip("AB", pair, strict=True)) for pair in zip(*map(sorted, zip(*sizes, strict=True)), strict=True)
            ]
            for number, cut in enumerate([*cuts, WHOLE]):
                demo.cut(cut)
                grown = ingested(demo, history).manifest
                once = ingested(demo, Folder(f"{folder}/once{number}")).manifest
                assert rows_of(history) == rows_of(Folder(f"{folder}/once{number}"))
                names = ("errors", "left_out", "assumed", "last_epochs", "epochs_left_out", "changes")
                assert [getattr(grown, name) for name in names] == [getattr(once, name) for name in names]
                read = sum(segment.changes for own in grown.segments.values() for segment in own)
                assert 1 << (len(grown.batches) - 1) <= max(read, 1)

    def test_more_files(self, demo: Recording, history: Folder):
        """The next file is read, and the first need not be there any more."""
        first = ingested(demo, history, segment_bytes=1 << 30).manifest
        (cluster, other) = demo.configuration.clusters
        more = cluster.log.files[0].with_name("A.binlog.000002")
        head = commits(cluster.log.files[0])[0]
        content = cluster.log.files[0].read_bytes()
        more.write_bytes(content[:158] + content[158:head])
        longer = attrs.evolve(
            demo,
            configuration=attrs.evolve(
                demo.configuration, clusters=(with_files(cluster, *cluster.log.files, more), other)
            ),
        )
        with pytest.raises(
            HistoryError, match=r"000002: epoch \d+ follows \d+ of .*000001, so the files are not one log"
        ):
            ingested(longer, history)
        assert load_manifest(history) == first
        assert not history.exists("ingest.json")
        more.write_bytes(content[:158])
        after = ingested(longer, history)
        assert (after.read, after.there) == (1, 2)
        assert after.manifest.files["A"] == (str(cluster.log.files[0]), str(more))
        cluster.log.files[0].unlink()
        assert ingested(longer, history).read == 0

    def test_unfinished_files_are_read_again(self, demo: Recording, history: Folder):
        """Files that end inside an epoch, one after the other, add nothing however often they are looked at."""
        cluster, other = demo.configuration.clusters
        more = cluster.log.files[0].with_name("A.binlog.000002")
        content, ends = cluster.log.files[0].read_bytes(), commits(cluster.log.files[0])
        begun = ends[2] + 150  # a GTID event of 79 bytes and BEGIN of 71
        demo.cut({"A": begun})
        more.write_bytes(content[:158] + content[ends[2] : begun])
        clusters = (with_files(cluster, *cluster.log.files, more), other)
        both = attrs.evolve(demo, configuration=attrs.evolve(demo.configuration, clusters=clusters))
        first = ingested(both, history).manifest
        assert ingested(both, history).manifest == first
        assert first.batches == (0,)
        assert [segment.stop for segment in first.segments["A"]] == [begun - 150]
        more.write_bytes(content[:158] + content[ends[2] :])
        whole = ingested(both, history).manifest
        assert (whole.errors, whole.changes, whole.batches) == ({}, 90, (1,))

    def test_a_repaired_file(self, demo: Recording, history: Folder):
        """After a damaged byte nothing is kept; when the file is whole again, reading continues there."""
        content = bytearray(demo.files["B"].read_bytes())
        content[commits(demo.files["B"])[3] + 200] ^= 0x10
        demo.files["B"].write_bytes(content)
        damaged = ingested(demo, history).manifest
        assert "CRC32" in damaged.errors["B"]
        assert ingested(demo, history).manifest == damaged
        demo.cut(WHOLE)
        repaired = ingested(demo, history).manifest
        assert (repaired.errors, repaired.left_out, repaired.changes) == ({}, {}, 90)


class TestRefusals:
    """What does not go together."""

    def refused(self, recording: Recording, history: Folder, **options: Any) -> str:
        """Return why an ingest is refused; the History stays as it was."""
        before = written(history), load_manifest(history)
        with pytest.raises(HistoryError) as refusal:
            ingested(recording, history, **options)
        assert (written(history), load_manifest(history)) == before
        return str(refusal.value)

    @pytest.fixture
    def made(self, demo: Recording, history: Folder) -> Manifest:
        """Make a History of the demo."""
        return ingested(demo, history).manifest

    def test_server_ids(self, demo: Recording, history: Folder, made: Manifest):
        """Another server's binlogs are another History."""
        assert made.changes == 90
        first, second = demo.configuration.clusters
        clusters = (attrs.evolve(first, servers=(LoggingServer(7, first.log.files),)), second)
        other = attrs.evolve(demo, configuration=attrs.evolve(demo.configuration, clusters=clusters))
        words = "it is of cluster A with server id 1 and cluster B with server id 2, not of cluster A with server id 7"
        assert words in self.refused(other, history)
        with pytest.raises(HistoryError, match="server id 7"):
            finished_history(history, make_run(other.configuration))

    def test_tables(self, demo: Recording, history: Folder, made: Manifest):
        """Tables that are not the same, or not in the same order."""
        assert made.changes == 90
        tables = demo.configuration.schema.tables
        schema = attrs.evolve(demo.configuration.schema, tables=tables[1:])
        fewer = attrs.evolve(demo, configuration=attrs.evolve(demo.configuration, schema=schema))
        assert "its tables are cft.t1, cft.t2, cft.plain, not" in self.refused(fewer, history)
        columns = (*tables[0].columns[:-1], attrs.evolve(tables[0].columns[-1], name="renamed"))
        schema = attrs.evolve(schema, tables=(attrs.evolve(tables[0], columns=columns), *tables[1:]))
        renamed = attrs.evolve(demo, configuration=attrs.evolve(demo.configuration, schema=schema))
        assert "renamed" in self.refused(renamed, history)

    def test_resolve_columns(self, tmp_path: Path, history: Folder):
        """A column that was kept then, and is not compared now: such rows can be resolved, but not added."""
        recording = Recording.copy(RECORDINGS / "conflict/max/one_key_many_ops_type7", tmp_path / "recording")
        kept = ingested(recording, history).manifest
        assert kept.resolve_columns["cft.t1"] == "x"
        without = attrs.evolve(recording, configuration=attrs.evolve(recording.configuration, replication=()))
        assert "it keeps column x of cft.t1 for a conflict function, not no column" in self.refused(without, history)
        assert finished_history(history, make_run(without.configuration)) == kept
        none = Folder(str(tmp_path / "none"))
        ingested(without, none)
        assert "it keeps no column of cft.t1 for a conflict function, not column x" in self.refused(recording, none)
        with pytest.raises(HistoryError, match="not column x"):
            finished_history(none, make_run(recording.configuration))

    def test_buckets(self, demo: Recording, history: Folder, made: Manifest):
        """Their number cannot be chosen again."""
        assert made.changes == 90
        assert "2 buckets and cannot be continued with 5" in self.refused(demo, history, buckets=5)

    def test_a_shorter_file(self, demo: Recording, history: Folder, made: Manifest):
        """A file that lost its end."""
        demo.cut({"A": made.segments["A"][-1].stop - 1})
        assert "bytes, but 14370 of it were read before" in self.refused(demo, history)

    @pytest.mark.parametrize("position", [30, 14000])
    def test_another_file(self, position: int, demo: Recording, history: Folder, made: Manifest):
        """A file of the same name with other content at its beginning, or where reading ended."""
        assert made.changes == 90
        content = bytearray(demo.files["A"].read_bytes())
        content[position] ^= 1
        demo.files["A"].write_bytes(content)
        assert "does not begin with what was read of it before" in self.refused(demo, history)

    def test_the_flag_of_a_file_in_use(self, demo: Recording, history: Folder, made: Manifest):
        """A server clears it when it closes the file."""
        content = bytearray(demo.files["A"].read_bytes())
        content[21] ^= 1
        demo.files["A"].write_bytes(content)
        assert ingested(demo, history).manifest == made

    def test_files_that_do_not_continue_the_history(self, demo: Recording, history: Folder, made: Manifest):
        """The last file of the History must be given."""
        assert made.changes == 90
        first, second = demo.configuration.clusters
        renamed = first.log.files[0].rename(first.log.files[0].with_name("A.binlog.000007"))
        clusters = (with_files(first, renamed), second)
        other = attrs.evolve(demo, configuration=attrs.evolve(demo.configuration, clusters=clusters))
        assert "do not continue the History" in self.refused(other, history)

    def test_nothing_is_left_of_a_refused_ingest(self, demo: Recording, history: Folder):
        """A table with another key leaves an empty folder, which the next ingest fills."""
        tables = [
            attrs.evolve(table, primary_key=(table.columns[-1].name,)) for table in demo.configuration.schema.tables
        ]
        schema = attrs.evolve(demo.configuration.schema, tables=tuple(tables))
        without = attrs.evolve(demo, configuration=attrs.evolve(demo.configuration, schema=schema))
        with pytest.raises(WrongKeyError):
            ingested(without, history)
        assert [path for path in Path(history.uri).rglob("*") if path.is_file()] == []
        assert ingested(demo, history).manifest.changes == 90

    def test_no_history(self, demo: Recording, history: Folder):
        """There is nothing to resolve."""
        with pytest.raises(HistoryError, match="make one with ndb-conflict ingest"):
            finished_history(history, make_run(demo.configuration))


class Killed(BaseException):
    """The process is gone."""


def killed_at(number: int, monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> bool:
    """Do work that is killed before so many files are written or deleted; return whether it was."""
    left = [number]

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return method(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in ("write_table", "write_json", "delete"):
            patch.setattr(Folder, name, counted(getattr(Folder, name)))
        try:
            work()
        except Killed:
            return True
    return False


class TestKilled:
    """An ingest that is killed, at any place, and started again."""

    def check(self, demo: Recording, history: Folder, whole: Folder, number: int, patch: pytest.MonkeyPatch) -> bool:
        """Kill one, start it again, and return whether it got so far."""
        killed = killed_at(number, patch, lambda: ingested(demo, history))
        records = len(list(Path(history.uri).glob("staged/segments/*/*.json")))
        if killed and not history.exists("history.json") and history.exists("ingest.json"):
            with pytest.raises(HistoryError, match="was cut off; run ndb-conflict ingest again"):
                finished_history(history, make_run(demo.configuration))
        done = ingested(demo, history)
        assert done.there >= records
        assert rows_of(history) == rows_of(whole)
        expected = load_manifest(whole)
        assert expected is not None
        nothing = dict[str, Any](segments={}, batches=(), listed=(), merged=())
        one, other = (attrs.evolve(each, **nothing) for each in (done.manifest, expected))
        assert one == other
        assert finished_history(history, make_run(demo.configuration)) == done.manifest
        assert not history.exists("staged")
        assert not history.exists("ingest.json")
        return killed

    def test_a_new_history(self, demo: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """Before every file that it writes or deletes."""
        whole = Folder(str(tmp_path / "whole"))
        ingested(demo, whole)
        number = 0
        while self.check(demo, Folder(str(tmp_path / f"history{number}")), whole, number, monkeypatch):
            number += 1 if number < 4 else 5
        assert number > 25

    def test_a_history_that_grows(self, demo: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        """The same where something is there: it stays as it is, but for what the ingest before has merged already."""
        whole, begun = Folder(str(tmp_path / "whole")), Folder(str(tmp_path / "begun"))
        ingested(demo, whole)
        for share in (1, 2):
            demo.cut({name: size * share // 4 for name, size in WHOLE.items()})
            started = ingested(demo, begun).manifest
        assert (started.batches, started.merged) == ((1,), (0,))
        demo.cut(WHOLE)
        number, killed = 0, True
        while killed:
            history = Folder(str(tmp_path / f"history{number}"))
            shutil.copytree(begun.uri, history.uri)
            before = {path: each for path, each in written(history).items() if batch_of(path) in started.batches}
            killed = self.check(demo, history, whole, number, monkeypatch)
            after = written(history)
            assert before.items() <= after.items()
            assert 0 not in map(batch_of, after)
            number += 4
        assert number > 15

    def test_segments_that_are_done_are_not_read_again(self, demo: Recording, history: Folder, tmp_path: Path):
        """Their binlog may be gone by then."""
        expected = ingested(demo, Folder(str(tmp_path / "whole"))).manifest

        def until_b(function: Callable[[Any], Any], tasks: Any, progress: Progress) -> list[Any]:
            if function is read_segment:
                in_process(function, [task for task in tasks if task.cluster == "A"], progress)
            raise Killed

        with pytest.raises(Killed):
            ingested(demo, history, until_b)
        demo.files["A"].unlink()
        done = ingested(demo, history)
        assert (done.there, done.read) == (len(expected.segments["A"]), len(expected.segments["B"]))
        assert rows_of(history) == rows_of(Folder(str(tmp_path / "whole")))

    def test_a_process_that_dies(self, demo: Recording, history: Folder, tmp_path: Path):
        """A real process that dies in the middle of a task."""
        code = """
import os, sys
from pathlib import Path
from conflict.history.grid.folder import Folder
from tests.conflict.growing import DEMO, Recording, ingested

write, count = Folder.write_json, [0]

def dying(folder, path, document):
    count[0] += "segments" in path
    if count[0] == 4:
        os._exit(9)
    write(folder, path, document)

Folder.write_json = dying
ingested(Recording.load(DEMO, Path(sys.argv[1])), Folder(sys.argv[2]))
"""
        arguments = [sys.executable, "-c", code, str(demo.folder), history.uri]
        assert subprocess.run(arguments, cwd=RECORDINGS.parents[1], check=False).returncode == 9
        assert ingested(demo, history).there == 3
        whole = Folder(str(tmp_path / "whole"))
        ingested(demo, whole)
        assert rows_of(history) == rows_of(whole)


def test_a_task_can_run_twice(demo: Recording, history: Folder, tmp_path: Path):
    """Each task of the job, as Spark may run it."""
    whole = Folder(str(tmp_path / "whole"))
    ingested(demo, whole)

    def twice(function: Callable[[Any], Any], tasks: Any, progress: Progress) -> list[Any]:
        in_process(function, tasks, progress)
        return in_process(function, tasks, progress)

    ingested(demo, history, twice)
    assert rows_of(history) == rows_of(whole)
