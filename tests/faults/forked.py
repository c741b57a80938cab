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
from typing import Any

import attrs

from tests.corpora import DEMO
from tests.faults.commands import Ended

__all__ = ["MAIN", "Forks", "forks"]

_ROOT = Path(__file__).parents[2]
_WARM = (str(DEMO / "A.binlog.000001"), str(DEMO / "run.toml"))
MAIN = """
import json, os, resource, signal, sys, tempfile, traceback
from contextlib import redirect_stdout, suppress
from pathlib import Path
import conflict.runs.pipeline, conflict.engine.columnar.bucket, conflict.engine.reference.replay
import conflict.cli.commands.decode, conflict.cli.commands.ingest, conflict.cli.commands.resolve
import conflict.decoding.decoding, conflict.decoding.inputs, conflict.decoding.table_files
from conflict.cli import app
from conflict.history.tasks import in_threads
conflict.runs.pipeline.spark_workers = lambda *given: in_threads
POLITE = {signal.SIGINT, signal.SIGTERM}

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

def fork(words, file_bytes):
    said, out = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, POLITE)  # they wait until the command can answer them
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, POLITE)
        os.close(out)
        return pid, said
    os.dup2(out, 1), os.dup2(out, 2)
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    code = 70
    try:
        code = run(words)
        signal.pthread_sigmask(signal.SIG_BLOCK, POLITE)
    except KeyboardInterrupt:  # before the command begins, or after it has ended
        code = 130
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)

def run(words):
    sys.argv = ["ndb-conflict", *words]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, POLITE)
        app.main()
    except SystemExit as end:
        return end.code or 0
    return 0

def ended(pid, said):
    with open(said, errors="replace") as text:
        told = text.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), told

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets what it runs beside itself ignore it
warm(*sys.argv[1:])
for line in sys.stdin:
    forked = [fork(*each) for each in json.loads(line)]
    print(json.dumps([pid for pid, _ in forked]), flush=True)
    sys.stdin.readline()  # until then they keep their process ids, also when they have ended
    print(json.dumps([ended(*each) for each in forked]), flush=True)
"""


@attrs.frozen
class Forks:
    """The process that forks."""

    process: subprocess.Popen[str]

    def run(self, *commands: Sequence[object], file_bytes: int | None = None) -> list[Ended]:
        """
        Run commands that begin at the same time; return how they ended, in order.

        Args:
            commands: Their words.
            file_bytes: A file cannot become longer, as on a disk that is full at that moment; None for any length.
        """
        self._begin(commands, file_bytes)
        return self._ended()

    def stopped(self, words: Sequence[object], how: signal.Signals, after: float) -> Ended:
        """Run a command and send it a signal after some seconds, if it has not ended; return how it ended."""
        (pid,) = self._begin([words])
        time.sleep(after)
        os.kill(pid, how)
        return self._ended()[0]

    def _begin(self, commands: Sequence[Sequence[object]], file_bytes: int | None = None) -> list[int]:
        assert self.process.stdin is not None
        request = [([str(word) for word in words], file_bytes) for words in commands]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        pids: list[int] = self._answer()
        return pids

    def _ended(self) -> list[Ended]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [Ended(code, said) for code, said in self._answer()]

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@contextmanager
def forks() -> Iterator[Forks]:
    """Start the process that forks; it ends with the block."""
    environment = {**os.environ, "COLUMNS": "500", "PYTHONPATH": str(_ROOT)}
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *_WARM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        started = Forks(process)
        try:
            yield started
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
