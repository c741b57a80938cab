"""Windows: an earlier result and what came after it are the result of the whole."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import conflict
from conflict.config.run_file import load_run_file
from conflict.engine.columnar.beyond_kernels import compares_reflected
from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.run import Run
from conflict.history.tasks import in_process
from conflict.results.result import Result
from conflict.rules.counters import add_counters
from conflict.rules.replication_table import Role
from conflict.runs.ingest_job import ingest
from conflict.runs.rows import window as rows_window
from conflict.runs.rows.window import State
from ndb_formats.schema.create_table import parse_schema
from tests.conflict.growing import DEMO, RECORDINGS, Recording, commits, ingested
from tests.conflict.random_histories import (
    BINLOG_TYPES,
    ROLES,
    SCHEMA,
    SETTINGS,
    USUAL_ROLES,
    configuration,
    make_history,
)
from tests.conflict.windows import Part, assert_parts_are_the_whole, decided, finished
from tests.conflict.world_binlogs import write_world
from tests.conflict.worlds import random_steps, world
from tests.conflict.written_histories import write_history
from tests.examples import examples

# A recording of each function.
FUNCTIONS = (
    "max/concurrent_5020_type7",
    "max_delete_win/concurrent_5021_type7",
    "max_ins/concurrent_5021_type7",
    "max_del_win_ins/random_22_type2",
    "old/concurrent_5020_type7",
    "epoch/concurrent_5021_type8",
    "epoch_trans/dependent_chain_type8",
    "epoch2/concurrent_5021_type8",
    "epoch2_trans/hot_3020_type6",
)
# Why some recordings cannot be decided in windows.
NOT_IN_WINDOWS = {
    "a channel was set back",
    "an exceptions table is logged, so that the other cluster receives its rows",
    "clusters changed rows without a log",
    "it reads a part of the logs, or these start in the middle",
    "an applier stops",
    "its tables have further unique keys or foreign keys",
    "roles of its clusters change",
    "statements change its tables",
    "the binlogs contradict it",
    "the reference engine decides some of its rows",
}
# Without the further unique key, and without an exceptions table that is logged.
PLAIN_SCHEMA = SCHEMA.replace(", UNIQUE KEY (v)", "").replace("other$ex", "other$EX")


def plain_run(setting: int, roles: tuple[Role, Role], binlog_type: int, *, skip_missing: bool = False) -> Run:
    """Return a run of random Histories whose tables let it be decided in windows."""
    run = configuration(setting, roles, binlog_type, skip_missing=skip_missing)
    return Run(attrs.evolve(run.configuration, schema=parse_schema(PLAIN_SCHEMA, database="db")))


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(20, 120),
    complete=st.booleans(),
    setting=st.integers(0, len(SETTINGS) - 1),
    roles=st.sampled_from([*[USUAL_ROLES] * 4, *ROLES]),
    binlog_type=st.sampled_from(BINLOG_TYPES),
    buckets=st.integers(1, 3),
    windows=st.integers(1, 3),
)
@example(seed=179, steps=97, complete=False, setting=1, roles=USUAL_ROLES, binlog_type=7, buckets=1, windows=1)
@example(  # own changes had come to the other cluster before, and are open to an epoch that came back later
    seed=305,
    steps=70,
    complete=False,
    setting=11,
    roles=(Role.PASS, Role.SECONDARY),
    binlog_type=1,
    buckets=1,
    windows=1,
)
@example(seed=5, steps=90, complete=True, setting=11, roles=USUAL_ROLES, binlog_type=8, buckets=2, windows=3)
@examples(12, long=400)
def test_parts_are_the_whole(
    seed: int,
    steps: int,
    complete: bool,
    setting: int,
    roles: tuple[Role, Role],
    binlog_type: int,
    buckets: int,
    windows: int,
) -> None:
    """Outcomes, overwritten changes, exceptions rows with their numbers, open decisions, final rows and counters."""
    history = make_history(seed, steps, complete=complete, roles=roles)
    run = plain_run(setting, roles, binlog_type)
    assume(not compares_reflected(run))
    with tempfile.TemporaryDirectory() as folder:
        grid = Folder(f"{folder}/history")
        how: dict[str, Any] = {"use_evidence": False}
        write_history(history, run.numbers, grid, buckets=buckets, epochs_per_segment=3)
        whole = decided(run, grid, Folder(f"{folder}/whole"), **how)
        assume(whole.not_kept is None)
        places = tuple(sorted(Random(seed).randint(0, whole.applies) for _ in range(windows)))
        assert_parts_are_the_whole(run, grid, Path(folder), places, whole, **how)


def windows_of(run: Run, history: Folder, folder: Path, draw: Random) -> Part | str:
    """Decide a History in windows that begin at seeded places; return the whole, or why it cannot be decided so."""
    whole = decided(run, history, Folder(str(folder / "whole")))
    why = whole.settled.state_not_kept
    if why is not None:
        return why
    places = tuple(sorted(draw.randint(0, whole.applies) for _ in range(3)))
    assert_parts_are_the_whole(run, history, folder, places, whole)
    return whole


def windows_of_recording(path: Path, folder: Path) -> Part | str:
    """Do as `windows_of` with a recording."""
    recording, history = Recording.copy(path, folder / "copy"), Folder(str(folder / "history"))
    ingested(recording, history)
    return windows_of(recording.run(), history, folder, Random(path.name))


JUDGING = ("NDB$EPOCH()", "NDB$MAX(x)", "NDB$OLD(x)", "NDB$MAX_DELETE_WIN(x)", "NDB$MAX_INS(x)", "NDB$EPOCH_TRANS()")


def windows_of_world(function: str, seed: int, steps: int, early: Sequence[int] = ()) -> Part | str:
    """Do as `windows_of` with binlogs that show what appliers did; `early`: see `World`."""
    made = world(function, shows_applied=True)
    made.early = early
    made.run(random_steps(seed, steps, "tn"))
    for cluster in (0, 1):
        made.close(cluster)
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(load_run_file(write_world(made, function, Path(folder))).configuration)
        history = Folder(f"{folder}/history")
        ingest(in_process, run, history, buckets=2)
        return windows_of(run, history, Path(folder), Random(seed))


@given(
    function=st.sampled_from(JUDGING),
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(20, 100),
    early=st.lists(st.integers(0, 2), max_size=4),
)
@examples(5, long=200)
def test_worlds_in_windows(function: str, seed: int, steps: int, early: list[int]) -> None:
    """The parts are the whole where binlogs place untraced epochs, and tell or leave open when rows were judged."""
    why = windows_of_world(function, seed, steps, early)
    assert isinstance(why, Part) or (early and why == "the binlogs contradict it")


def test_open_rows_in_windows() -> None:
    """There are worlds with rows that are open, and with epochs that were placed."""
    wholes = [windows_of_world("NDB$OLD(x)", seed, 100) for seed in (46, 51, 93)]
    for whole in wholes:
        assert isinstance(whole, Part)
        assert whole.settled.summary().open_epochs
        assert any(len(own.windowed) for own in whole.settled.schedule.values())


@pytest.mark.parametrize("case", FUNCTIONS)
def test_recordings_in_windows(case: str, tmp_path: Path) -> None:
    """A recording of each function, cut at seeded places."""
    assert isinstance(windows_of_recording(RECORDINGS / "conflict" / case, tmp_path), Part)


@pytest.mark.slow
def test_every_recording_in_windows(tmp_path: Path) -> None:
    """Every recording with the binlogs of both clusters is decided in windows, or it is said why not."""
    found = Counter[str]()
    for path in sorted(each.parent for each in RECORDINGS.rglob("scenario.json")):
        if all(list(path.glob(f"{name}.binlog.*")) for name in "AB"):
            whole = windows_of_recording(path, tmp_path / path.relative_to(RECORDINGS))
            found[whole if isinstance(whole, str) else "in windows"] += 1
    assert found["in windows"] > 60
    assert found.keys() <= {"in windows", *NOT_IN_WINDOWS}


def test_a_history_that_grew(tmp_path: Path) -> None:
    """What was new since the last result is decided from that, also once more."""
    recording = Recording.copy(RECORDINGS / "conflict" / "old" / "concurrent_5020_type7", tmp_path / "copy")
    ends = {name: commits(file) for name, file in recording.files.items()}
    history, parts, states = Folder(str(tmp_path / "history")), list[Part](), list[State]()
    for share in (4, 7, 10):
        recording.cut({name: each[len(each) * share // 10 - 1] for name, each in ends.items()})
        ingested(recording, history)
        earlier = parts[-1].out if parts else None
        parts.append(decided(recording.run(), history, Folder(str(tmp_path / f"part{share}")), earlier))
        if share < 10:
            assert parts[-1].settled.state_not_kept is None
            states.append(parts[-1].keep(parts[-1].applies))
        finished(parts[-1])
    whole = finished(decided(recording.run(), history, Folder(str(tmp_path / "whole"))))
    since = {name: own.source_epoch for name, own in states[-1].clusters.items()}
    assert parts[-1].contents() == whole.contents(since)
    assert parts[-1].counters(states[-1]) == whole.counters()
    first, second = (sum(own.applied for own in state.clusters.values()) for state in states)
    assert 0 < first < second


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a History, and a result with a state."""
    folder = tmp_path_factory.mktemp("kept")
    shutil.copytree(DEMO, folder, dirs_exist_ok=True)
    conflict.ingest(folder / "run.toml", out=folder / "history", engine="local")
    for name, state in (("with", True), ("without", False)):
        conflict.resolve(
            folder / "run.toml", out=folder / name, history=folder / "history", engine="local", keep_state=state
        )
    return folder


def window(kept: Path, out: Path, **how: Any) -> Result:
    """Decide what came after the result with a state."""
    options: dict[str, Any] = {"history": kept / "history", "engine": "local", "after": kept / "with", **how}
    return conflict.resolve(kept / "run.toml", out=out, **options)


def test_the_same_end(kept: Path, tmp_path: Path) -> None:
    """A window of the same logs ends with the same rows and counters."""
    found, before = window(kept, tmp_path / "out"), conflict.read_result(str(kept / "with"))
    assert found.run["rows"] == before.run["rows"]
    assert found.run["differing_rows"] == before.run["differing_rows"]
    for name, counters in before.counters.items():
        assert add_counters([found.run["after"]["counters"][name], found.counters[name]]) == counters


def test_no_state(kept: Path, tmp_path: Path) -> None:
    """A result without a state."""
    with pytest.raises(HistoryError, match="has no state to go on from"):
        window(kept, tmp_path / "out", after=kept / "without")


def test_other_function(kept: Path, tmp_path: Path) -> None:
    """A result under another conflict function."""
    text = (kept / "run.toml").read_text("utf-8")
    (kept / "other.toml").write_text(text.replace("NDB$EPOCH(", "NDB$EPOCH_TRANS("), "utf-8")
    options: dict[str, Any] = {"history": kept / "history", "engine": "local", "after": kept / "with"}
    with pytest.raises(HistoryError, match="with other tables, functions or servers"):
        conflict.resolve(kept / "other.toml", out=tmp_path / "out", **options)


def test_no_history(kept: Path, tmp_path: Path) -> None:
    """No History that stays."""
    with pytest.raises(ConfigurationError, match="--after needs a History that stays"):
        window(kept, tmp_path / "out", history=None)
    with pytest.raises(ConfigurationError, match="--keep-state needs a History that stays"):
        window(kept, tmp_path / "out", history=None, after=None, keep_state=True)


def test_not_into_the_earlier_result(kept: Path) -> None:
    """The earlier result is not replaced by what came after it."""
    with pytest.raises(ConfigurationError, match="which the run reads, is inside"):
        window(kept, kept / "with", force=True)
    assert conflict.read_result(str(kept / "with")).run["rows"]


def test_another_program(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state is of the rules by which it was decided."""
    monkeypatch.setattr(rows_window, "program", lambda: "another")
    with pytest.raises(HistoryError, match="by another version of this program; resolve all with --keep-state again"):
        window(kept, tmp_path / "out")


def test_stories_need_the_whole(kept: Path, tmp_path: Path) -> None:
    """A window cannot be explained or repaired."""
    found = window(kept, tmp_path / "out")
    with pytest.raises(HistoryError, match="tells only of what came after"):
        conflict.explain(found, table="plain", key=1)
