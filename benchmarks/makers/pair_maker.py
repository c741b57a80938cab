"""
Binlogs of two clusters that replicate to each other, of any size, quickly.

    python -m benchmarks.makers.pair_maker --changes 10000000 --out FOLDER

Both insert rows of one table of integers and a short string, and then update their own. Each applies an epoch of the
other one in the next epoch of its own, and logs what it applied (`log_replica_updates`). Once per epoch both update the
same row: the change of B is newer, so A applies it, and B rejects that of A by `NDB$MAX`. Before images hold the row as
it was: an update changes its version alone. A few epochs are encoded once and repeated with other keys, values,
transaction ids and epochs. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.binlog_reader import read_events
from ndb_formats.columnar.kernel import kernel
from ndb_formats.columnar.kernels.words import crc32
from ndb_formats.constants import BINLOG_MAGIC, EventType
from ndb_formats.events.control_events import encode_rotate
from ndb_formats.events.header import EventHeader, encode_header

__all__ = ["CLUSTERS", "make_pair"]

RECORDING = Path(__file__).parents[2] / "tests/recordings/ndb_formats/types_type8/binlog.000001"
CLUSTERS = ("A", "B")
ROWS = 200  # own changes of an epoch; the last one is of a row that the other cluster changes too
CONTESTED = 1000  # rows that both change, in turns
FIRST_EPOCH = 1 << 32
SHAPES = 8  # epochs that are encoded
BLOCK_ROWS = 1 << 18  # own changes that are made at once
SCHEMA = """
CREATE TABLE account (
  id BIGINT UNSIGNED NOT NULL PRIMARY KEY, version BIGINT UNSIGNED NOT NULL, amount INT NOT NULL,
  kind TINYINT NOT NULL, note VARCHAR(20) NOT NULL
) ENGINE=NDB DEFAULT CHARSET=utf8mb4;
"""
RUN = """\
schema = "schema.sql"
database = "bench"
start = "empty"

[clusters.A]
server_id = 1
binlogs = [{A}]

[clusters.B]
server_id = 2
binlogs = [{B}]

[[ndb_replication]]
db = "bench"
table_name = "account"
binlog_type = 7
conflict_fn = "NDB$MAX(version)"
"""
STATUS_MAP, ACCOUNT_MAP = (
    number.to_bytes(6, "little") + b"\x01\0" + names + types + bytes(1)
    for number, names, types in (
        (1, b"\x05mysql\0\x10ndb_apply_status\0", b"\x05\x03\x08\x0f\x08\x08\x02\xff\0"),
        (2, b"\x05bench\0\x07account\0", b"\x05\x08\x08\x03\x01\x0f\x02\x50\0"),
    )
)
WRITE, UPDATE = int(EventType.WRITE_ROWS_EVENT), int(EventType.UPDATE_ROWS_EVENT)
ID, VERSION, AMOUNT = 1, 9, 17  # places in an image, after its byte of NULL bits

Int64 = npt.NDArray[np.int64]


@attrs.frozen(eq=False)
class Values:
    """The own changes of a cluster: arrays of shape (epochs, ROWS), uint64; the first `inserts` epochs insert."""

    inserts: int
    id: npt.NDArray[np.uint64]
    version: npt.NDArray[np.uint64]
    before: npt.NDArray[np.uint64]
    amount: npt.NDArray[np.uint64]


@attrs.frozen(eq=False)
class Section:
    """
    Encoded events with places that are filled in.

    Attributes:
        data: The events. Shape (bytes,), uint8.
        events: Where each event starts. Shape (events,), int64.
        before: Where the before image of each row starts; none for inserts. Shape (rows,), int64.
        after: Where its after image starts. Shape (rows,), int64.
        transactions: Where transaction ids stand. Shape (ids,), int64.
        epochs: Where epochs stand. Shape (epochs,), int64.
    """

    data: npt.NDArray[np.uint8]
    events: Int64
    before: Int64
    after: Int64
    transactions: Int64
    epochs: Int64

    def filled(self, values: Values, epochs: Int64, status: Int64) -> npt.NDArray[np.uint8]:
        """
        Return the events with the values of epochs. Shape (epochs, bytes).

        Args:
            values: The values.
            epochs: The epochs.
            status: For each, an epoch for `ndb_apply_status`.
        """
        data, rows = np.tile(self.data, (len(epochs), 1)), len(self.after)
        for places, version in ((self.before, values.before), (self.after, values.version)):
            if len(places):
                _put(data, places + ID, values.id[epochs, :rows], 8)
                _put(data, places + VERSION, version[epochs, :rows], 8)
                _put(data, places + AMOUNT, values.amount[epochs, :rows], 4)
        numbers = self.data[self.transactions[:, None] + np.arange(3)] @ np.array([1, 1 << 8, 1 << 16], np.uint64)
        _put(data, self.transactions, numbers + (epochs[:, None] << 24).astype(np.uint64), 8)
        _put(data, self.epochs, np.repeat(status[:, None], len(self.epochs), axis=1).astype(np.uint64), 8)
        starts = np.arange(len(epochs))[:, None] * len(self.data) + self.events
        _put_checksums(data.ravel(), starts.ravel())
        return data


def _put(data: npt.NDArray[np.uint8], places: Int64, values: npt.NDArray[np.uint64], width: int) -> None:
    filled = np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, 8)
    data[:, places[:, None] + np.arange(width)] = filled[:, :, :width]


@kernel
def _put_checksums(data: npt.NDArray[np.uint8], starts: Int64) -> None:
    for event in range(len(starts)):
        end = starts[event + 1] if event + 1 < len(starts) else len(data)
        value = crc32(data, starts[event], end - 4)
        for byte in range(4):
            data[end - 4 + byte] = value >> np.uint32(8 * byte) & np.uint32(0xFF)


class SectionMaker:
    """Collects the events of a section."""

    def __init__(self) -> None:
        """Begin."""
        self._data = bytearray()
        self._places: dict[str, list[int]] = {name: [] for name in ("events", "before", "after", "ids", "epochs")}

    def put(self, kind: int, server: int, body: bytes) -> int:
        """Add an event; return where its body starts."""
        self._places["events"].append(len(self._data))
        self._data += encode_header(EventHeader(1_700_000_000, kind, server, 19 + len(body) + 4, 0, 0))
        start = len(self._data)
        self._data += body + bytes(4)
        return start

    def put_rows(self, server: int, transaction: int, notes: list[bytes], *, update: bool) -> None:
        """Add a rows event of table `account`, a row for each note."""
        head = _rows_head(2, transaction, update=update)
        images = [b"\0" + bytes(20) + b"\1" + bytes([len(note)]) + note for note in notes]
        body = head + b"".join(image * (1 + update) for image in images)
        start = self.put(UPDATE if update else WRITE, server, body)
        self._places["ids"].append(start + 15)
        place = start + len(head)
        for image in images:
            if update:
                self._places["before"].append(place)
                place += len(image)
            self._places["after"].append(place)
            place += len(image)

    def put_status(self, server: int, author: int, transaction: int | None) -> None:
        """Add a row of `ndb_apply_status` about a server."""
        head = _rows_head(1, transaction, update=False)
        start = self.put(WRITE, author, head + b"\0" + struct.pack("<IQ", server, 0) + b"\0" + bytes(16))
        if transaction is not None:
            self._places["ids"].append(start + 15)
        self._places["epochs"].append(start + len(head) + 5)

    def section(self) -> Section:
        """Return the section."""
        return Section(
            np.frombuffer(self._data, np.uint8), *(np.array(each, np.int64) for each in self._places.values())
        )


def _rows_head(table: int, transaction: int | None, *, update: bool) -> bytes:
    """Return the body of a rows event up to its images; a transaction id stands at byte 15."""
    extra = b"" if transaction is None else b"\0\x0c\0" + struct.pack("<HQ", 1, transaction)
    head = table.to_bytes(6, "little") + b"\x01\0" + struct.pack("<H", len(extra) + 2) + extra
    return head + b"\x05" + b"\x1f" * (1 + update)


def _section(cluster: int, author: int, shape: int, rows: int, *, update: bool) -> Section:
    """Return the changes of an author in the binlog of a cluster, in transactions of 1 to 8 rows."""
    random, made = np.random.default_rng([shape, author, update]), SectionMaker()
    transaction, applied = 0, author != cluster
    servers = [author + 1, cluster + 1]
    while rows:
        count = min(int(random.integers(1, 9)), rows)
        notes = [b"the quick brown"] * count
        # One event per row or all rows in one event, as transactions of one or of several statements.
        for part in [notes] if transaction % 2 else [[note] for note in notes]:
            made.put_rows(servers[0], 0 if applied else transaction, part, update=update)
        rows, transaction = rows - count, transaction + 1
    if not applied or author or not update:  # A does not win
        made.put_rows(servers[0], 0 if applied else transaction, [b"the quick brown"], update=update)
    if applied:
        made.put_status(author + 1, cluster + 1, 0)
    return made.section()


def _head(cluster: int) -> Section:
    made = SectionMaker()
    made.put(int(EventType.ANONYMOUS_GTID_LOG_EVENT), cluster + 1, bytes(42))
    made.put(int(EventType.QUERY_EVENT), cluster + 1, _QUERY + b"BEGIN")
    for body in (STATUS_MAP, ACCOUNT_MAP):
        made.put(int(EventType.TABLE_MAP_EVENT), cluster + 1, body)
    made.put_status(cluster + 1, cluster + 1, None)
    return made.section()


def _tail(cluster: int) -> Section:
    made = SectionMaker()
    made.put(int(EventType.QUERY_EVENT), cluster + 1, _QUERY + b"COMMIT")
    return made.section()


_QUERY = struct.pack("<IIBHH", 5, 0, 0, 0, 0) + b"\0"


def _values(cluster: int, epochs: int, rows: int, seed: int) -> Values:
    """Return the changes of a cluster: a tenth inserts rows, the rest updates them."""
    random, inserts = np.random.default_rng([seed, cluster]), max(epochs // 10, 2)
    keys = inserts * (rows - 1)
    numbers = np.arange(epochs)[:, None]
    own = np.concatenate([np.arange(keys), random.integers(0, keys, (epochs - inserts) * (rows - 1))])
    ids = np.empty((epochs, rows), np.uint64)
    ids[:, :-1] = (2 * own + cluster).reshape(epochs, rows - 1)
    contested = min(CONTESTED, inserts)
    ids[:inserts, -1] = _OTHERS_FROM + 2 * np.arange(inserts) + cluster
    ids[: 0 if cluster else contested, -1] = _CONTESTED_FROM + np.arange(0 if cluster else contested)
    ids[inserts:, -1] = _CONTESTED_FROM + np.arange(epochs - inserts) % contested
    step = max(1000, rows)  # versions grow from epoch to epoch
    version = ((2 * numbers + cluster) * step + np.arange(rows)).astype(np.uint64)
    flat, order = version.ravel(), np.argsort(ids.ravel(), kind="stable")
    before = np.zeros_like(flat)
    same = ids.ravel()[order][1:] == ids.ravel()[order][:-1]
    before[order[1:][same]] = flat[order[:-1][same]]
    before = before.reshape(epochs, rows)
    if cluster == 0:  # A inserted the rows that both change; then it has the change of B, from the epoch after on
        before[inserts:, -1] += np.where(before[inserts:, -1] >= 2 * step * inserts, step, 0).astype(np.uint64)
    else:
        first = inserts + contested
        before[inserts:first, -1] = 2 * step * np.arange(len(before[inserts:first])) + rows - 1
    amount = ids % np.uint64(10**6)
    return Values(inserts, ids, version, before, amount)


_CONTESTED_FROM, _OTHERS_FROM = 1 << 40, 1 << 41


def _events(cluster: int, values: tuple[Values, Values], epochs: int) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield the events of a cluster, in blocks of epochs."""
    head, tail, other, rows = _head(cluster), _tail(cluster), 1 - cluster, values[0].id.shape[1]
    sections = {
        (author, shape, update): _section(cluster, author, shape, rows - 1, update=update)
        for author in (0, 1)
        for shape in range(SHAPES)
        for update in (False, True)
    }
    own, arrived = values[cluster], values[other]

    def filled(numbers: Int64) -> npt.NDArray[np.uint8]:
        """Return the events of epochs of one kind and shape. Shape (epochs, bytes)."""
        first, none = int(numbers[0]), np.zeros(len(numbers), np.int64)
        parts = [
            head.filled(own, numbers, FIRST_EPOCH + numbers),
            sections[cluster, first % SHAPES, first >= own.inserts].filled(own, numbers, none),
        ]
        if first:
            section = sections[other, (first - 1) % SHAPES, first - 1 >= own.inserts]
            parts.append(section.filled(arrived, numbers - 1, FIRST_EPOCH + numbers - 1))
        return np.concatenate([*parts, tail.filled(own, numbers, none)], axis=1)

    for numbers in _blocks(epochs, own.inserts, rows):
        shapes = [filled(numbers[place::SHAPES]) for place in range(min(SHAPES, len(numbers)))]
        whole, rest = divmod(len(numbers), SHAPES)
        yield np.concatenate([each[:whole] for each in shapes], axis=1)
        yield from (each[whole] for each in shapes[:rest])


def _blocks(epochs: int, inserts: int, rows: int) -> Iterator[Int64]:
    """Yield epochs whose own changes, and those of the epochs before, are all inserts or all updates."""
    size = max(BLOCK_ROWS // rows // SHAPES, 1) * SHAPES
    for first, last in pairwise([0, 1, inserts, inserts + 1, epochs]):
        yield from (np.arange(start, min(start + size, last)) for start in range(first, last, size))


def _write(
    folder: Path, cluster: int, blocks: Iterator[npt.NDArray[np.uint8]], file_bytes: int | None
) -> Iterator[str]:
    """Write the events of a cluster, and yield the name of each file; each but the last one ends with the next name."""
    description, number, rest = next(iter(read_events(RECORDING))).body[:-4], 1, next(blocks, None)
    while rest is not None:
        name = f"{CLUSTERS[cluster]}.{number:06}"
        with (folder / name).open("wb") as file:
            file.write(BINLOG_MAGIC + _event(EventType.FORMAT_DESCRIPTION_EVENT, cluster, description))
            while rest is not None and (file_bytes is None or file.tell() < file_bytes):
                file.write(rest)
                rest = next(blocks, None)
            number += 1
            if rest is not None:
                file.write(_event(EventType.ROTATE_EVENT, cluster, encode_rotate(f"{CLUSTERS[cluster]}.{number:06}")))
        yield name


def _event(kind: EventType, cluster: int, body: bytes) -> bytes:
    made = SectionMaker()
    made.put(int(kind), cluster + 1, body)
    data = made.section().data.copy()
    _put_checksums(data, np.zeros(1, np.int64))
    return data.tobytes()


def make_pair(
    folder: Path, changes: int, *, rows: int = ROWS, seed: int = 1, file_bytes: int | None = None
) -> tuple[int, int]:
    """
    Write ``run.toml``, ``schema.sql`` and the binlogs of both clusters.

    Args:
        folder: Where; it is made.
        changes: About how many row changes the binlogs hold together: half of them are the clusters' own, the other
            half those that the other cluster's applier logged.
        rows: Own changes of an epoch.
        seed: Of the values.
        file_bytes: Bytes after which a binlog goes on in another file; None for one file per cluster.

    Returns:
        How many own changes they hold, and how many row changes in all.
    """
    epochs = max(changes // (4 * rows), 12)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "schema.sql").write_text(SCHEMA, encoding="utf-8")
    values = _values(0, epochs, rows, seed), _values(1, epochs, rows, seed)
    files = {
        name: ", ".join(f'"{file}"' for file in _write(folder, cluster, _events(cluster, values, epochs), file_bytes))
        for cluster, name in enumerate(CLUSTERS)
    }
    (folder / "run.toml").write_text(RUN.format(**files), encoding="utf-8")
    own, arrived = 2 * epochs * rows, 2 * (epochs - 1) * rows
    return own, own + arrived - (epochs - 1 - values[0].inserts)


def main() -> None:
    """Make a pair."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--changes", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=ROWS, help="own changes of an epoch")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    own, logged = make_pair(arguments.out, arguments.changes, rows=arguments.rows, seed=arguments.seed)
    print(f"{logged:,} row changes, {own:,} of them own ones")


if __name__ == "__main__":
    main()
