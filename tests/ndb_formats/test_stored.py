"""Files on object storage as paths; fsspec's memory stands for it."""

import pickle
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.binlog_reader import FIRST_POSITION, Event, read_events
from ndb_formats.columnar.event_index import index_parts
from ndb_formats.errors import FormatError
from ndb_formats.stored import Stored, beside, is_address, matches, path_of, reading
from tests.examples import examples
from tests.ndb_formats.recordings import EPOCH

MEMORY = fsspec.filesystem("memory")
RECORDED = EPOCH / "A.binlog.000001"
_FIRST = next(read_events(RECORDED)).end
LONG = RECORDED.read_bytes() + 6 * RECORDED.read_bytes()[_FIRST:]  # longer than what is read at its start
NAMES = st.text("ab.0*[ é", min_size=1).filter(lambda name: name.strip(".") == name)


def _put(data: bytes) -> str:
    address = f"memory://{uuid.uuid4().hex}/A.000001"
    MEMORY.pipe_file(address, data)
    return address


EVENTS = list(read_events(_put(LONG)))


@pytest.fixture
def folder() -> str:
    """Return a folder of two binlogs and a file of another kind."""
    uri = f"memory://{uuid.uuid4().hex}"
    for name in ("A.000002", "A.000001", "deep/B.000001"):
        MEMORY.pipe_file(f"{uri}/{name}", RECORDED.read_bytes())
    MEMORY.pipe_file(f"{uri}/run.toml", b"\xef\xbb\xbfdatabase = 'x'")
    return uri


@examples(100)
@given(st.sampled_from(["s3", "S3", "s3a", "s3n"]), st.lists(NAMES, min_size=2, max_size=4))
def test_an_address_stays_one(scheme: str, names: list[str]):
    """As text, as what `Path` makes of it, in another process, and of its folder."""
    address = f"s3://{'/'.join(names)}"
    given_as = f"{scheme}://{'/'.join(names)}"
    path = path_of(given_as)
    assert isinstance(path, Stored)
    assert str(path) == address
    assert str(path_of(Path(given_as))) == address
    assert [str(each) for each in (pickle.loads(pickle.dumps(path)), path.absolute(), path.resolve())] == [address] * 3
    assert str(path.parent / path.name) == address
    assert str(beside(path.parent, path.name)) == address
    assert str(beside(path.parent, f"x/../{path.name}")) == address
    assert path == path_of(address)
    assert is_address(address)


@pytest.mark.parametrize("name", ["/a/b", "b", "../b", "a:b", "run:1.toml"])
def test_paths_that_are_none(name: str):
    """They stay what they are, beside an address too."""
    assert type(path_of(name)) is type(Path(name))
    assert beside(Path("/x"), name) == Path("/x", name)
    assert str(beside(path_of("s3://b/x/"), name)) in {"/a/b", "s3://b/x/b", "s3://b/b", f"s3://b/x/{name}"}


def test_what_is_there(folder: str):
    """Files, folders, their sizes, patterns, and what is not there."""
    file = path_of(f"{folder}/A.000001")
    assert (file.is_file(), file.is_dir(), file.stat().st_size) == (True, False, RECORDED.stat().st_size)
    assert path_of(f"{folder}/deep").is_dir()
    assert not path_of(f"{folder}/none").exists()
    with pytest.raises(FileNotFoundError, match=f"{folder}/none"):
        path_of(f"{folder}/none").stat()
    assert [each.name for each in matches(path_of(folder), "A.*")] == ["A.000001", "A.000002"]
    assert [each.name for each in matches(Path(), f"{folder}/d*/B.*")] == ["B.000001"]
    assert matches(path_of(folder), "Z*") == []
    assert {str(each) for each in path_of(folder).iterdir()} == {
        f"{folder}/{name}" for name in ("A.000001", "A.000002", "deep/B.000001", "run.toml")
    }
    assert path_of(f"{folder}/run.toml").read_text("utf-8-sig") == "database = 'x'"
    assert file.read_bytes() == RECORDED.read_bytes()


def _seen(events: list[Event]) -> list[tuple[int, bytes]]:
    return [(event.position, event.body) for event in events]


@examples(60)
@given(st.data())
def test_a_piece_of_a_file(data: st.DataObject):
    """Events of a segment are those of the whole file; nothing but its bytes and the first ones is asked for."""
    first = data.draw(st.integers(1, len(EVENTS) - 1))
    last = data.draw(st.integers(first, len(EVENTS) - 1))
    start, stop = EVENTS[first].position, EVENTS[last].end
    address, cat = _put(LONG), type(MEMORY).cat_file
    asked = list[tuple[int, int]]()

    def noted(self: object, path: str, start: int | None = None, end: int | None = None) -> bytes:
        asked.append((start or 0, end or 0))
        return bytes(cat(self, path, start=start, end=end))

    with pytest.MonkeyPatch.context() as patch, patch.context() as own:
        own.setattr(type(MEMORY), "cat_file", noted)
        own.setattr(type(MEMORY), "get_file", None)
        with reading(path_of(address), start, stop):
            found = list(read_events(address, start=start, stop=stop))
            (part,) = index_parts(address, start=start, stop=stop)
            seen = path_of(address).read_bytes()
    assert _seen(found) == _seen([event for event in EVENTS if start <= event.position < stop])
    assert part.positions.tolist() == [event.position for event in found]
    assert part.error is None
    assert (seen[:4096], seen[max(start - 4096, 0) : stop], len(seen)) == (
        LONG[: min(4096, stop)],
        LONG[max(start - 4096, 0) : stop],
        stop,
    )
    assert sum(end - begin for begin, end in asked) <= 4096 + stop - max(start - 4096, 0)


def test_threads_read_pieces_of_their_own():
    """What another thread reads of the same file, or all of it, does not matter."""
    address, together = _put(LONG), Barrier(3, timeout=30)
    middle = EVENTS[len(EVENTS) // 2].position

    def piece(start: int, stop: int) -> list[tuple[int, bytes]]:
        with reading(path_of(address), start, stop):
            together.wait()
            found = _seen(list(read_events(address, start=start, stop=stop)))
            together.wait()
        return found

    def whole() -> list[tuple[int, bytes]]:
        together.wait()
        found = _seen(list(read_events(address)))
        together.wait()
        return found

    with ThreadPoolExecutor(3) as threads:
        first, last = (threads.submit(piece, *each) for each in ((FIRST_POSITION, middle), (middle, len(LONG))))
        every = threads.submit(whole)
    expected = _seen(EVENTS)
    assert every.result() == expected
    assert first.result() == [each for each in expected if each[0] < middle]
    assert last.result() == [each for each in expected if each[0] >= middle]


def test_a_reader_that_strays():
    """What was not fetched is no event."""
    address = _put(LONG)
    late = next(event.position for event in EVENTS if event.position > 3 * 4096)
    strays = next(event.position for event in EVENTS if 4096 < event.position < late - 4096)
    with reading(path_of(address), late, late + 100), pytest.raises(FormatError, match="less than the header itself"):
        list(read_events(address, start=strays))
    assert len(list(read_events(address, start=FIRST_POSITION))) == len(EVENTS)


def test_a_file_that_grows(folder: str):
    """It is what it was when it was listed first, until it is listed again."""
    file = next(iter(matches(path_of(folder), "A.000001")))
    before = file.read_bytes()
    MEMORY.pipe_file(str(file), before + b"more")
    assert (file.read_bytes(), file.stat().st_size) == (before, len(before))
    matches(path_of(folder), "A.000001")
    assert (file.read_bytes(), file.stat().st_size) == (before + b"more", len(before) + 4)


def test_storage_that_fails(folder: str, monkeypatch: pytest.MonkeyPatch):
    """Each has errors of its own; all are those of a file."""

    def fail(*_: object, **__: object) -> None:
        raise LookupError(folder)

    monkeypatch.setattr(type(MEMORY), "get_file", fail)
    with pytest.raises(OSError, match="the storage does not answer as it should: LookupError") as caught:
        path_of(f"{folder}/A.000001").read_bytes()
    assert caught.value.filename == f"{folder}/A.000001"
