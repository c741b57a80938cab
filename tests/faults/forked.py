"""
Commands as forks of a process that has loaded all code, so that hundreds can be started, raced and killed.

A request is a line of JSON, a list of commands that begin at the same time; the answers are a line with their process
ids and, to an empty line, a line with how they ended. Tasks run in threads, not on Spark, which takes longer to start
than all the rest.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from tests.corpora import DEMO
from tests.faults.commands import Ended

__all__ = ["Forks", "forks"]

_ROOT = Path(__file__).parents[2]
_WARM = (str(DEMO / "A.binlog.000001"), str(DEMO / "run.toml"))
_MAIN = """
import json, os, sys, tempfile
from contextlib import redirect_stdout, suppress
from pathlib import Path
import conflict.pipeline, conflict.columnar.bucket, conflict.reference.replay
import conflict.cli.decode, conflict.cli.ingest, conflict.cli.resolve, conflict.cli.views.result
import conflict.decoding.decoding, conflict.decoding.inputs, conflict.decoding.outputs, conflict.decoding.table_files
from conflict.cli import app
from conflict.jobs.runner import in_threads
conflict.pipeline.spark_workers = lambda *given: in_threads

def warm(log, run):
    "Load the compiled code of each command."
    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        for place, words in enumerate((
            ["decode", "-vv", log, "-r"], ["decode", "--format", "csv", log, "-r"], ["ingest", run, "--out"],
            ["resolve", run, "--engine", "local", "--out"],
        )):
            sys.argv = ["ndb-conflict", *words, f"{folder}/{place}"]
            with suppress(SystemExit):
                app.main()

def fork(words, said):
    pid = os.fork()
    if pid:
        return pid
    out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1), os.dup2(out, 2)
    sys.argv = ["ndb-conflict", *words]
    code = 70
    try:
        app.main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)

warm(*sys.argv[1:])
for line in sys.stdin:
    pids = [fork(*each) for each in json.loads(line)]
    print(json.dumps(pids), flush=True)
    sys.stdin.readline()  # until then they keep their process ids, also when they have ended
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]), flush=True)
"""


@attrs.frozen
class Forks:
    """The process that forks, and a folder for what its forks say."""

    process: subprocess.Popen[str]
    scratch: Path

    def run(self, *commands: Sequence[object]) -> list[Ended]:
        """Run commands that begin at the same time; return how they ended, in order."""
        self._begin(commands)
        return self._ended(len(commands))

    def stopped(self, words: Sequence[object], how: signal.Signals, after: float) -> Ended:
        """Run a command and send it a signal after some seconds, if it has not ended; return how it ended."""
        (pid,) = self._begin([words])
        time.sleep(after)
        os.kill(pid, how)
        return self._ended(1)[0]

    def _begin(self, commands: Sequence[Sequence[object]]) -> list[int]:
        assert self.process.stdin is not None
        said = [str(self.scratch / f"{number}") for number in range(len(commands))]
        request = [([str(word) for word in words], file) for words, file in zip(commands, said, strict=True)]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        pids: list[int] = self._answer()
        return pids

    def _ended(self, count: int) -> list[Ended]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        codes: list[int] = self._answer()
        said = ((self.scratch / f"{number}").read_text(errors="replace") for number in range(count))
        return [Ended(code, text) for code, text in zip(codes, said, strict=True)]

    def _answer(self) -> list[int]:
        assert self.process.stdout is not None
        answer: list[int] = json.loads(self.process.stdout.readline())
        return answer


@contextmanager
def forks(scratch: Path) -> Iterator[Forks]:
    """Start the process that forks; it ends with the block."""
    environment = {**os.environ, "COLUMNS": "500", "PYTHONPATH": str(_ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", _MAIN, *_WARM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        started = Forks(process, scratch)
        try:
            yield started
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
