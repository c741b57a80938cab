"""
Runs of the resolve job in a Spark session of their own, measured from outside: time, processor time, memory.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from benchmarks.process_tree import MemoryPeak, processor_seconds
from benchmarks.timing import Run, spread

__all__ = ["Job", "Measured", "Session", "session"]

GIBIBYTE = 2**30


@attrs.frozen
class Measured:
    """
    Several runs of the job over one History.

    Attributes:
        changes: Row changes of the History.
        wall: Seconds on the wall, run by run, of the job alone.
        processor: Seconds of processor time of all processes, run by run.
        stolen: Part of the processors that others had meanwhile, run by run.
        memory: Peak of the memory of all processes in bytes, of a run before those that are timed: looking at it takes
            processor time.
        stages: Seconds until each stage had ended, of the last run.
        answer: What the last run said of its result.
        read: Bytes of the History, by kind.
        written: Bytes of the result.
    """

    changes: int
    wall: tuple[float, ...]
    processor: tuple[float, ...]
    stolen: tuple[float, ...]
    memory: int
    stages: list[tuple[str, float]]
    answer: dict[str, Any]
    read: dict[str, int]
    written: int

    @property
    def seconds(self) -> float:
        """Median of the seconds on the wall."""
        return statistics.median(self.wall)

    @property
    def rate(self) -> float:
        """Row changes per second on the wall."""
        return self.changes / self.seconds

    @property
    def noise(self) -> float:
        """How far the runs lie apart; see `spread`."""
        return spread(self.wall)

    @property
    def gibibytes(self) -> float:
        """Peak of the memory of all processes."""
        return self.memory / GIBIBYTE

    def document(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "changes": self.changes,
            "changes_per_second": self.rate,
            "median_wall_seconds": self.seconds,
            "median_processor_seconds": statistics.median(self.processor),
            "noise": self.noise,
            "wall_seconds": self.wall,
            "processor_seconds": self.processor,
            "stolen": self.stolen,
            "peak_gibibytes": self.gibibytes,
            "stages_end_at": self.stages,
            "bytes_of_history": self.read,
            "bytes_of_result": self.written,
            "counters": self.answer["counters"],
            "tables": self.answer["summary"]["tables"],
        }


def bytes_below(folder: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@attrs.frozen
class Session:
    """
    A Spark session in a process of its own.

    Attributes:
        cores: On how many cores.
        start: Seconds that it took to start.
    """

    cores: int
    start: float
    _process: subprocess.Popen[str]

    def prepare(self, history: Path, function: str, binlog_type: int, scratch: Path, *, final_rows: bool = True) -> Job:
        """
        Resolve a History once, which is not counted, and return what resolves it again.

        Args:
            history: Where it is.
            function: The conflict function.
            binlog_type: Of its table.
            scratch: A folder for results, which are removed.
            final_rows: Whether the final rows are wanted.
        """
        request = {"history": str(history), "function": function, "binlog_type": binlog_type, "final_rows": final_rows}
        with MemoryPeak(self._process.pid) as peak, tempfile.TemporaryDirectory(dir=scratch) as folder:
            answer = _ask(self._process, {**request, "out": f"{folder}/out"})
            written = bytes_below(Path(folder))
        return Job(request, scratch, peak.size, written, self._process, answer)


@attrs.define
class Job:
    """One History that is resolved again and again in a session."""

    _request: dict[str, Any]
    _scratch: Path
    _memory: int
    _written: int
    _process: subprocess.Popen[str]
    _answer: dict[str, Any]

    def run(self) -> Run:
        """Resolve it once."""
        with tempfile.TemporaryDirectory(dir=self._scratch) as folder:
            used = processor_seconds(self._process.pid)
            self._answer = _ask(self._process, {**self._request, "out": f"{folder}/out"})
            return Run(self._answer["seconds"], processor_seconds(self._process.pid) - used)

    def measured(self, runs: Sequence[Run]) -> Measured:
        """Return what was measured in some runs, the last one among them."""
        history = Path(self._request["history"])
        changes = json.loads((history / "history.json").read_text(encoding="utf-8"))["changes"]
        read = {kind: bytes_below(history / kind) for kind in ("changes", "images", "consequences", "keys")}
        times = ([run.wall for run in runs], [run.processor for run in runs], [run.stolen for run in runs])
        return Measured(
            changes, *map(tuple, times), self._memory, self._answer["stages"], self._answer, read, self._written
        )


def _ask(process: subprocess.Popen[str], request: dict[str, Any] | None) -> dict[str, Any]:
    """Send a request, if there is one, and return the next answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    if request is not None:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
    for line in process.stdout:
        if line.startswith("{"):
            return dict(json.loads(line))
    message = "the Spark session ended early"
    raise RuntimeError(message)


@contextmanager
def session(cores: int) -> Iterator[Session]:
    """Start a session, which ends after the block with its input."""
    command = [sys.executable, "-m", "benchmarks.spark_worker", str(cores)]
    root = Path(__file__).parents[1]
    with subprocess.Popen(  # noqa: S603 - this project's own module
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        yield Session(cores, _ask(process, None)["seconds"], process)
