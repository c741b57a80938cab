"""The first pass: the same events and the same errors as the scalar reader."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ndb_formats.binlog_reader import read_events, read_headers
from ndb_formats.columnar.event_index import EventIndex, index_events, index_parts
from ndb_formats.constants import EventType
from ndb_formats.errors import FormatError
from tests.ndb_formats.building import MAGIC, description_event, event_bytes, query_body
from tests.ndb_formats.recordings import BINLOGS, CORPUS, TYPES, name_of

ROWS = {
    *(EventType.WRITE_ROWS_EVENT_V1, EventType.UPDATE_ROWS_EVENT_V1, EventType.DELETE_ROWS_EVENT_V1),
    *(EventType.WRITE_ROWS_EVENT, EventType.UPDATE_ROWS_EVENT, EventType.DELETE_ROWS_EVENT),
}
Answer = tuple[list[Any], tuple[type, str] | None]


def answer(make: Callable[[], Iterable[Any]]) -> Answer:
    """Return what comes out before an error, one by one."""
    found: list[Any] = []
    try:
        for item in make():
            found.append(item)  # noqa: PERF402 - what came before an error stays
    except FormatError as error:
        return found, (type(error), str(error))
    return found, None


def facts(index: EventIndex) -> Iterable[tuple[int, ...]]:
    """Yield position, type, size, server and time of every event, then raise the index's error."""
    arrays = (index.positions, index.types, index.sizes, index.server_ids, index.timestamps)
    yield from zip(*(array.tolist() for array in arrays), strict=True)
    if index.error is not None:
        raise index.error


def scalar_headers(path: Path) -> Answer:
    """Return what `read_headers` says of other than rows events."""
    return answer(
        lambda: (
            (place, header.type_code, header.size, header.server_id, header.timestamp)
            for place, header in read_headers(path)
            if header.type_code not in ROWS
        )
    )


def scalar_events(path: Path, *, verify: bool = True, start: int = 4, stop: int | None = None) -> Answer:
    """Return what `read_events` says."""
    return answer(
        lambda: (
            (event.position, event.header.type_code, event.header.size, event.header.server_id, event.header.timestamp)
            for event in read_events(path, verify=verify, start=start, stop=stop)
        )
    )


def parts(path: Path, **options: Any) -> Answer:
    """Return what `index_parts` says."""
    return answer(lambda: (fact for part in index_parts(path, **options) for fact in facts(part)))


def assert_same(path: Path) -> None:
    """The index, whole and in parts, agrees with the scalar reader."""
    assert answer(lambda: facts(index_events(path))) == scalar_headers(path)
    assert parts(path) == scalar_events(path)
    assert parts(path, events=3, span=1000, verify=False) == scalar_events(path, verify=False)


@pytest.mark.parametrize("path", BINLOGS, ids=name_of)
def test_recordings(path: Path) -> None:
    """Every bundled file."""
    assert_same(path)


@pytest.mark.slow
@pytest.mark.corpus(".")
def test_every_file_of_the_corpus() -> None:
    """Every file of the corpus, broken ones with their error."""
    for path in CORPUS:
        assert_same(path)


def test_the_end() -> None:
    """An index says where the last event ends, also if that is a rows event, which it leaves out."""
    for path in BINLOGS:
        headers, error = answer(lambda path=path: read_headers(path))
        if error is None:
            place, header = headers[-1]
            assert index_events(path).end == place + header.size


def test_start_and_stop() -> None:
    """Start and stop mean the same."""
    path = TYPES / "binlog.000001"
    places = [place for place, *_ in scalar_events(path)[0]]
    for start, stop in [(places[3], places[9]), (4, places[1]), (4, 4), (5, None), (places[-1], None)]:
        assert parts(path, start=start, stop=stop) == scalar_events(path, start=start, stop=stop)


def sealed_file() -> bytes:
    """Return a small file with checksums, a second Format_description inside."""
    queries = [event_bytes(2, query_body(b"db", b"x" * count)) for count in (0, 1, 15, 16, 17, 40, 300)]
    plain = event_bytes(2, query_body(b"", b"without"), checksum=False)
    return MAGIC + description_event() + b"".join(queries) + description_event(algorithm=0) + plain


FILE = sealed_file()


def test_a_file_cut_anywhere(tmp_path: Path) -> None:
    """Everything before the cut is there, and the error is the same."""
    for length in range(len(FILE) + 1):
        path = tmp_path / f"binlog.{length:06d}"
        path.write_bytes(FILE[:length])
        assert_same(path)


@given(st.integers(0, len(FILE) - 1), st.integers(0, 255))
def test_a_changed_byte(tmp_path_factory: pytest.TempPathFactory, place: int, byte: int) -> None:
    """Damage is found at the same event, with the same words."""
    path = tmp_path_factory.mktemp("damaged") / "binlog.000001"
    data = bytearray(FILE)
    data[place] = byte
    path.write_bytes(data)
    assert_same(path)


@pytest.mark.parametrize("checksum", [False, True])
def test_encrypted_events_end_the_index(checksum: bool, tmp_path: Path) -> None:
    """What follows a Start_encryption event is not taken for events, whatever its bytes look like."""
    path = tmp_path / "binlog.000001"
    encrypted = event_bytes(EventType.MARIADB_START_ENCRYPTION_EVENT, bytes(17), checksum=checksum)
    follows = event_bytes(EventType.QUERY_EVENT, query_body(b"d", b"DELETE FROM t"), checksum=checksum)
    path.write_bytes(MAGIC + description_event(algorithm=int(checksum)) + encrypted + follows)
    assert_same(path)
    for parts_of_it in ([index_events(path)], list(index_parts(path))):
        assert [kind for part in parts_of_it for kind in part.types.tolist()] == [EventType.FORMAT_DESCRIPTION_EVENT]
        assert "the events after it are encrypted" in str(parts_of_it[-1].error)
