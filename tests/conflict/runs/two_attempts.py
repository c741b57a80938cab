"""
Two live attempts of each task, in processes of their own, paused at moments that a seed tells.

An attempt stops at one of its requests to the storage, and goes on at once, when the task has a result, or when all the
work is done; or it meets an error of the storage there. The outcome of the attempt that ends first is taken.

    python -m tests.conflict.runs.two_attempts [SEED [TASKS]]
"""

from __future__ import annotations

import os
import pickle
import random
import secrets
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import Any

import attrs

from conflict.history.grid.attempts import Stage, publish
from conflict.history.grid.folder import Folder
from conflict.history.tasks import Progress, in_process
from conflict.runs.resolving.resolve_job import resolve_history
from conflict.spark.spark_runner import _outcome
from tests.conflict.growing import DEMO, Recording, ingested

__all__ = ["TwoAttempts", "check"]

_REQUESTS = 60  # the demo's tasks have ten to a few hundred


class Moment(Enum):
    """What happens to an attempt at a request to the storage."""

    STOPS = auto()
    FAILS = auto()


@attrs.frozen
class Attempted:
    """A process that makes an attempt, and the pipe of its outcome."""

    pid: int
    answers: int

    @classmethod
    def start(cls, work: Callable[[], Any], moment: Moment, request: int) -> Attempted:
        """Fork it."""
        answers, answer = os.pipe()
        pid = os.fork()
        if pid:
            os.close(answer)
            return cls(pid, answers)
        code = 1
        with suppress(BaseException):
            _stop_at(moment, request)
            found = pickle.dumps(work())
            with suppress(BrokenPipeError), os.fdopen(answer, "wb") as stream:
                stream.write(found)
            code = 0
        os._exit(code)

    def outcome(self) -> Any:
        """Return what it found; None if it failed, so that Spark tries again."""
        with os.fdopen(os.dup(self.answers), "rb") as stream:
            found = stream.read()
        return pickle.loads(found) if found else None

    def go_on(self) -> None:
        """Wake it up."""
        os.kill(self.pid, signal.SIGCONT)

    def end(self) -> None:
        """Let it go on to its end, wherever it stops."""
        os.close(self.answers)
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            self.go_on()
            time.sleep(0.001)


def _stop_at(moment: Moment, request: int) -> None:
    usual, left = Folder.place, iter(range(request, -1, -1))

    def place(folder: Folder, path: str = "") -> Any:
        if next(left, None) == 0:
            if moment is Moment.FAILS:
                message = "503 SlowDown"
                raise OSError(message)
            os.kill(os.getpid(), signal.SIGSTOP)
        return usual(folder, path)

    Folder.place = place  # type: ignore[method-assign]


@attrs.define
class TwoAttempts:
    """
    A runner of two attempts of each task.

    Attributes:
        chosen: What is left to chance.
        folders: Where tasks write.
        tasks: How many tasks there were.
        late: Attempts whose results nobody took, and that still live.
    """

    chosen: random.Random
    folders: Sequence[Folder]
    tasks: int = 0
    late: list[Attempted] = attrs.field(factory=list)

    def __call__(self, function: Callable[[Any], Any], tasks: Sequence[Any], _: Progress) -> list[Any]:
        """Run a stage as Spark does, but with two attempts of each task."""
        stage = Stage(self.folders)
        stage.open()
        outcomes = [self._outcome(stage, function, task) for task in tasks]
        publish(each for _, _, written in outcomes for each in written)
        self._wake_some()
        stage.close()
        for error, _, _ in outcomes:
            if error is not None:
                raise error
        self._wake_some()
        return [result for _, result, _ in outcomes]

    def _outcome(self, stage: Stage, function: Callable[[Any], Any], task: Any) -> Any:
        """Return the outcome of the attempt that ends first."""
        self.tasks += 1
        self._wake_some()

        def begun(moment: Moment) -> Attempted:
            request = self.chosen.randrange(_REQUESTS)
            return Attempted.start(lambda: _outcome(stage, lambda: function(task), apart=False), moment, request)

        live = [begun(self.chosen.choice(list(Moment))), begun(self.chosen.choice(list(Moment)))]
        held = self.chosen.random() < 0.7
        while True:
            live = live or [begun(Moment.STOPS)]  # both failed: Spark tries again
            for each in live[-1:] if held else live:
                each.go_on()
            ready, _, _ = select.select([each.answers for each in live], [], [], 0.001)
            for each in [each for each in live if each.answers in ready]:
                live.remove(each)
                outcome = each.outcome()
                each.end()
                if outcome is not None:
                    self.late += live
                    return outcome

    def _wake_some(self) -> None:
        """Wake late attempts up, some of them."""
        for each in [each for each in self.late if self.chosen.random() < 0.3]:
            self.late.remove(each)
            each.end()

    def end(self) -> None:
        """Let all late attempts go on to their ends."""
        while self.late:
            self.late.pop().end()


def check(seed: int, folder: Path) -> int:
    """
    Ingest and resolve the demo with two attempts of each task; return how many tasks there were.

    Raises:
        AssertionError: A byte is not as it is with one attempt of each.
    """
    demo, chosen = Recording.load(DEMO, DEMO), random.Random(seed)
    once, twice = folder / "once", folder / "twice"
    runner = TwoAttempts(chosen, [Folder(str(twice / name)) for name in ("history", "out")])
    for place, run in ((once, in_process), (twice, runner)):
        if place.exists():
            continue
        ingested(demo, Folder(str(place / "history")), run)
        resolve_history(run, demo.run(), Folder(str(place / "history")), Folder(str(place / "out")))
    expected = _files(once)
    assert _files(twice) == expected
    runner.end()
    assert _files(twice) == expected  # those who came late wrote nothing
    shutil.rmtree(twice)
    return runner.tasks


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def main() -> None:
    """Check until so many tasks were right."""
    seed, wanted = int(sys.argv[1]) if sys.argv[1:] else secrets.randbits(32), int((sys.argv[2:] or ["200"])[0])
    right = 0
    with tempfile.TemporaryDirectory() as folder:
        while right < wanted:
            sys.stdout.write(f"seed {seed}: ")
            sys.stdout.flush()
            right += check(seed, Path(folder))
            sys.stdout.write(f"{right} of {right} tasks right\n")
            seed += 1


if __name__ == "__main__":
    main()
