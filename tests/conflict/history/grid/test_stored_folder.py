"""Folders on object storage: fsspec's memory stands for it, whose files are created only if they are not there."""

import json
import os
import pickle
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.errors import ConfigurationError, HistoryError
from conflict.history.grid import signs_of_life, version_contents
from conflict.history.grid import stored_folder as module
from conflict.history.grid.stored_folder import StoredFolder, folder_of, stored_folder
from conflict.history.grid.whole_files import only_writer
from conflict.results.files import check_target, whole_or_not_at_all
from tests.examples import examples

MEMORY = fsspec.filesystem("memory")
TABLE = pa.table({"a": pa.array([1, 2], pa.int64())})


@pytest.fixture
def uri() -> str:
    """Return a place that nothing is at."""
    return f"memory://{uuid.uuid4().hex}/history"


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read what was published as another process would."""
    monkeypatch.setattr(module, "_published", {})
    for name, seconds in (("_EVERY", 0.02), ("_DEAD_AFTER", 0.3), ("_LOOK_EVERY", 0.01)):
        monkeypatch.setattr(signs_of_life, name, seconds)


def _objects(uri: str) -> list[str]:
    return [each for each in MEMORY.find(uri) if "/versions/" not in each]


def _killed(uri: str, *uploads: dict[str, object]) -> str:
    """Leave what a run leaves that is killed after its tasks have uploaded files, and return where."""
    place = stored_folder(uri).contents.own
    for number, files in enumerate(uploads):
        for path, document in files.items():
            MEMORY.pipe_file(f"{place}/{number}/{path}", json.dumps(document).encode())
    signs_of_life.SignOfLife(place).write()
    return place


def _publish(uri: str, **files: object) -> None:
    with only_writer(folder := stored_folder(uri)):
        for path, document in files.items():
            folder.write_json(path, document)
    module._published.clear()


def test_what_is_written_is_there_when_it_is_published(uri: str):
    """A file, a table and a folder below; before that, nobody sees them, nor what was deleted."""
    folder = folder_of(uri)
    assert isinstance(folder, StoredFolder)
    assert not folder.exists()
    folder.write_json("a.json", {"x": 2**64 - 1})
    folder.write_table("keys/bucket=0/a.parquet", TABLE)
    folder.write_json("staged/b.json", 1)
    folder.delete("staged")
    assert not stored_folder(uri).exists()
    with folder.published():
        pass
    module._published.clear()
    found = stored_folder(uri)
    assert found.read_json("a.json") == {"x": 2**64 - 1}
    assert found.read_table("keys/bucket=0/a.parquet", TABLE.schema) == TABLE
    assert found.below("keys").rows("bucket=0/a.parquet") == 2
    assert [found.exists(each) for each in ("", "keys", "keys/bucket=0/a.parquet", "key", "staged")] == [
        *(True, True, True),
        *(False, False),
    ]
    (here,) = found.here("keys")
    assert found.sizes().keys() == {"a.json", "keys/bucket=0/a.parquet"}
    assert found.sizes()["keys/bucket=0/a.parquet"] == Path(here).stat().st_size
    assert found.sizes(["a.json", "no.json"]) == {"a.json": found.sizes()["a.json"]}


def test_the_next_version_has_what_is_left_of_this_one(uri: str):
    """What is written again is of the new version, for who reads that; who reads the old one goes on."""
    _publish(uri, a=1, b=1, c=1)
    old = stored_folder(uri)
    with only_writer(folder := stored_folder(uri)):
        assert folder.read_json("a") == 1
        folder.write_json("a", 2)
        assert folder.read_json("a") == 2
        folder.delete("b")
    module._published.clear()
    new = stored_folder(uri)
    assert (new.version, new.read_json("a"), new.read_json("c"), new.exists("b")) == (2, 2, 1, False)
    assert (old.version, old.read_json("a"), old.read_json("b")) == (1, 1, 1)


def test_what_no_version_has_any_more_is_removed_one_version_later(uri: str):
    """Who reads the version before the last one goes on; who reads an older one may not."""
    _publish(uri, a=1, b=1, kept=1)
    first = stored_folder(uri)
    _publish(uri, a=2)
    second = stored_folder(uri)
    assert (first.read_json("a"), len(_objects(uri))) == (1, 4)
    with only_writer(folder := stored_folder(uri)):
        folder.write_json("a", 3)
        folder.delete("b")
    assert (second.read_json("a"), second.read_json("b"), len(_objects(uri))) == (2, 1, 4)
    _publish(uri, a=4)
    assert (stored_folder(uri).read_json("kept"), len(_objects(uri))) == (1, 3)


def test_nothing_new_is_no_version(uri: str):
    """Nor does an error publish anything."""
    _publish(uri, a=1)
    with only_writer(stored_folder(uri)):
        pass
    folder = stored_folder(uri)
    folder.write_json("a", 2)
    with pytest.raises(ZeroDivisionError), only_writer(folder):
        raise ZeroDivisionError
    module._published.clear()
    assert (stored_folder(uri).version, stored_folder(uri).read_json("a")) == (1, 1)


@examples(20)
@given(st.integers(2, 5), st.booleans())
def test_one_of_several_writers_publishes(count: int, there: bool):
    """They begin with one version; the others are told, and leave nothing behind."""
    uri, ready = f"memory://{uuid.uuid4().hex}/r", threading.Barrier(count)
    if there:
        _publish(uri, writer=-1)

    def write(number: int) -> str:
        folder = stored_folder(uri)
        folder.write_json("writer", number)
        ready.wait(timeout=60)
        try:
            with folder.published():
                pass
        except ConfigurationError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(count) as threads:
        said = list(threads.map(write, range(count)))
    assert said.count("") == 1
    told = f"{uri} was written by another process meanwhile, and has what that one wrote; nothing of this run is there."
    assert all(each.startswith(told) for each in said if each)
    module._published.clear()
    assert stored_folder(uri).read_json("writer") == said.index("")
    assert stored_folder(uri).version == 1 + there
    assert len(_objects(uri)) == 1 + there


def test_what_a_killed_run_left_is_used_or_removed(uri: str):
    """A task's files are taken together, those of one task for each; all others are gone once a version is there."""
    _publish(uri, kept=1)
    left = _killed(uri, {"plan": 7}, {"rows/a": 1, "done/a": 1}, {"rows/a": 2, "done/a": 2}, {"rows/b": 3})
    with only_writer(folder := stored_folder(uri)):
        folder.take_left(["plan", "done/a", "done/b"])
        assert folder.sizes().keys() == {"kept", "plan", "rows/a", "done/a"}
        assert folder.read_json("rows/a") == folder.read_json("done/a")
        assert folder.read_json("plan") == 7
        folder.delete("plan")
        folder.take_left(["plan"])
        assert not folder.exists("plan")
    module._published.clear()
    assert stored_folder(uri).sizes().keys() == {"kept", "rows/a", "done/a"}
    assert len(MEMORY.find(left)) == 2
    assert MEMORY.find(f"{uri}/writers") == []


def test_what_a_killed_run_left_stays_until_a_version_is_there(uri: str):
    """The next writer fails, or has nothing new; who writes after it takes what is left."""
    left = _killed(uri, {"plan": 7})
    failing = stored_folder(uri)
    with pytest.raises(ZeroDivisionError), only_writer(failing):
        raise ZeroDivisionError(failing.take_left(["plan"]))
    with only_writer(stored_folder(uri)):
        pass
    assert len(MEMORY.find(left)) == 1
    with only_writer(folder := stored_folder(uri)):
        folder.take_left(["plan"])
        assert folder.read_json("plan") == 7


def test_what_a_failed_run_left_is_used_at_once(uri: str, monkeypatch: pytest.MonkeyPatch):
    """Tasks elsewhere had uploaded it; without such tasks, or of a run that refused its input, nothing is left."""
    monkeypatch.setattr(signs_of_life, "_DEAD_AFTER", 100)

    def fail(error: Exception, *, is_apart: bool) -> None:
        with only_writer(folder := stored_folder(uri)):
            if is_apart:
                folder.spread()
            folder.write_json("plan", 7)
            folder.contents.upload()
            raise error

    for error, is_apart in ((OSError(), True), (OSError(), False), (HistoryError(), True)):
        with pytest.raises(type(error)):
            fail(error, is_apart=is_apart)
    assert len(_objects(uri)) == 2  # the plan, and the sign
    with only_writer(folder := stored_folder(uri)):
        folder.take_left(["plan"])
        assert folder.read_json("plan") == 7
    assert MEMORY.find(f"{uri}/writers") == []


def test_what_a_run_left_that_began_with_an_earlier_version_is_not_used(uri: str):
    """Another run published meanwhile: what was left may tell of what is there now."""
    left = _killed(uri, {"plan": 7})
    sign, (moved,) = left.replace(uri, f"{uri}/writers"), MEMORY.find(f"{uri}/writers")
    MEMORY.mv(moved, f"{uri}/elsewhere")
    _publish(uri, a=1)
    MEMORY.mv(f"{uri}/elsewhere", sign)
    with only_writer(folder := stored_folder(uri)):
        folder.take_left(["plan"])
        assert not folder.exists("plan")
        folder.write_json("b", 1)
    assert MEMORY.find(left) == []


def test_what_a_living_run_uploads_stays(uri: str):
    """Another writer sees its sign change, and leaves it alone; one that only slept cannot publish afterwards."""
    with only_writer(slow := stored_folder(uri)):
        slow.spread()
        slow.write_json("a", 1)
        slow.contents.upload()
        (place,) = {each.object for each in slow.files.values()}
        with only_writer(quick := stored_folder(uri)):
            quick.take_left(["a"])
            assert not quick.exists("a")
    assert MEMORY.exists(place)


def test_a_run_that_slept_does_not_publish(uri: str, monkeypatch: pytest.MonkeyPatch):
    """Another one took it for dead, and published."""
    monkeypatch.setattr(signs_of_life, "_EVERY", 100)

    def write_slowly() -> None:
        with only_writer(folder := stored_folder(uri)):
            folder.spread()
            folder.write_json("a", 1)
            folder.contents.upload()
            _publish(uri, b=1)
            assert not MEMORY.exists(folder.files["a"].object)

    with pytest.raises(ConfigurationError, match="was written by another process meanwhile"):
        write_slowly()
    module._published.clear()
    assert stored_folder(uri).sizes().keys() == {"b"}


def test_an_answer_that_is_lost(uri: str, monkeypatch: pytest.MonkeyPatch):
    """The version was created; the second try finds it there, and that it is its own."""
    pipe, tries, kind = MEMORY.pipe_file, list[str](), type(MEMORY)

    def answerless(_: object, path: str, value: bytes, mode: str = "overwrite") -> None:
        pipe(path, value, mode=mode)
        if mode == "create" and not tries:
            tries.append(path)
            raise TimeoutError

    monkeypatch.setattr(version_contents, "_PAUSE", 0)
    monkeypatch.setattr(kind, "pipe_file", answerless)
    _publish(uri, a=1)
    assert len(tries) == 1
    assert stored_folder(uri).read_json("a") == 1


def test_storage_that_fails(uri: str, monkeypatch: pytest.MonkeyPatch):
    """It is an error of the storage, of which each has its own: trying again may help, and it is no damage."""
    _publish(uri, a=1)
    folder = stored_folder(uri)

    def fail(*_: object, **__: object) -> None:
        message = "slow down"
        raise RuntimeError(message)

    monkeypatch.setattr(type(MEMORY), "get_file", fail)
    with pytest.raises(OSError, match="does not answer as it should: RuntimeError: slow down"):
        folder.read_json("a")


def test_files_that_were_removed(uri: str):
    """Who reads an old version is told what happened."""
    _publish(uri, a=1)
    old = stored_folder(uri)
    old.remove_objects()
    with pytest.raises(HistoryError, match="a was removed while it was read, or is lost"):
        old.read_json("a")


def test_a_version_that_is_damaged(uri: str):
    """It is named."""
    _publish(uri, a=1)
    MEMORY.pipe_file(f"{uri}/versions/000001.json", b"{}")
    with pytest.raises(HistoryError, match=r"versions/000001\.json is damaged"):
        stored_folder(uri)


def test_who_asks_for_rows_fetches_the_end_alone(uri: str, monkeypatch: pytest.MonkeyPatch):
    """Of a file that tasks elsewhere read; also where the end is longer than what is asked for first."""
    table = pa.table({"a": pa.array([os.urandom(9) for _ in range(10_000)]), "b": pa.nulls(10_000, pa.int64())})
    with only_writer(folder := stored_folder(uri)):
        folder.write_table("a.parquet", table, 1000)
    module._published.clear()
    monkeypatch.setattr(module, "_FOOTER", 100)
    found = stored_folder(uri)
    found.spread()
    assert found.rows("a.parquet") == 10_000
    assert [found.may_be_null("a.parquet", name) for name in "ab"] == [True, True]
    assert not Path(found.contents.scratch, "fetched").exists()


def test_what_all_tasks_map_is_fetched_once(uri: str, monkeypatch: pytest.MonkeyPatch):
    """All processes of a machine map one copy of it."""
    with only_writer(folder := stored_folder(uri)):
        folder.spread()
        folder.write_bytes("value", b"mapped")
        sent = pickle.dumps(folder)
        monkeypatch.setattr(version_contents, "live", {})
        first, second = (pickle.loads(sent) for _ in range(2))
        assert bytes(first.mapped("value")) == b"mapped"
        MEMORY.rm_file(folder.files["value"].object)
        assert bytes(second.mapped("value")) == b"mapped"
        assert not second.contents.copy_of(second.files["value"]).exists()


def test_a_result_is_replaced(uri: str):
    """The new one is there before the old one goes; nothing else is replaced."""

    def write(*, replace: bool, name: str = "run.json") -> None:
        target = stored_folder(uri)
        check_target(target, [], replace=replace)
        with whole_or_not_at_all(target, replace=replace) as work:
            work.write_json(name, replace)
        module._published.clear()

    write(replace=False)
    with pytest.raises(ConfigurationError, match="exists already; give another folder, or replace"):
        write(replace=False)
    write(replace=True)
    assert stored_folder(uri).read_json("run.json") is True
    assert len(_objects(uri)) == 1
    write(replace=True, name="history.json")
    with pytest.raises(ConfigurationError, match="is no result, which is all that --force replaces"):
        write(replace=True)


def test_an_input_inside_the_result(uri: str):
    """It would be replaced."""
    _publish(uri, **{"run.json": 1})
    with pytest.raises(ConfigurationError, match="which the run reads, is inside"):
        check_target(stored_folder(uri), [module.place_of(f"{uri}/a/run.toml")], replace=True)


def test_a_result_of_tasks_elsewhere_is_at_one_place(uri: str, tmp_path: Path):
    """Each attempt uploads to a place of its own; an attempt that was given up changes nothing later."""
    target = stored_folder(uri).emptied()
    target.spread()
    contents = ["given up", "taken"]
    for each in contents:
        (tmp_path / each).write_text(each)

    def attempt(content: str) -> None:
        for path, file in target.uploaded([(str(tmp_path / content), "outcomes/applier=A/part")]):
            target.take(path, file)

    with target.published():
        target.write_json("run.json", {})
        for each in contents:
            attempt(each)
    target.uploaded([(str(tmp_path / "given up"), "outcomes/applier=A/part")])
    module._published.clear()
    found = stored_folder(uri)
    assert found.read_bytes("outcomes/applier=A/part") == b"taken"
    place = found.address("outcomes")
    assert place == f"{found.address('run.json').removesuffix('run.json')}outcomes"
    assert [each.rpartition("/")[2] for each in MEMORY.find(place)] == ["part"]
    found.forget()
    assert found.read_bytes("outcomes/applier=A/part") == b"taken"
