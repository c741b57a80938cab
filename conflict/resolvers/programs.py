"""
A program as a rule: it reads a line of JSON for each change, and answers with a line of JSON.

    {"operation": "update", "row": {"exists": true, "values": {"v": 7}, ...}, "change": {"new": {"v": 9}, ...}}
    "apply"    "ignore"    {"reject": "ROW_IN_CONFLICT"}    {"merge": {"v": 16}}

Names are those of `conflict.rules.seen`. Bytes are {"hex": "00ff"}, a column that an image does not carry is left out,
and a value that JSON has no type for is text. One process serves all calls of this process, one at a time.
"""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import IO, Any

import attrs

from conflict.errors import ConfigurationError
from conflict.rules.decision import Cause, Decision, IncomingOperation, RowState, operation_word
from conflict.rules.seen import APPLY, IGNORE, merge, reject

PATIENCE = 30  # seconds for an answer
_PLAIN = {"apply": APPLY, "ignore": IGNORE}
_ANSWERS = '"apply", "ignore", {"reject": CAUSE} or {"merge": {COLUMN: VALUE}}'
_TOLD = 300  # characters of what a program says on its way out


@attrs.define(eq=False)
class _Running:
    """A process, what it wrote beyond the last line, and its complaints."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]
    owner: int = attrs.field(factory=os.getpid)
    rest: bytes = b""


@attrs.define(eq=False)
class RuleCommand:
    """
    A program that decides.

    Attributes:
        command: The program and its arguments.
    """

    command: tuple[str, ...]
    _running: _Running | None = attrs.field(default=None, init=False)
    _lock: Any = attrs.field(factory=threading.Lock, init=False)

    @classmethod
    def of(cls, command: str | Sequence[str]) -> RuleCommand:
        """
        Return a program, given with its arguments as one text or several.

        Raises:
            ConfigurationError: Nothing is given.
        """
        words = tuple(shlex.split(command) if isinstance(command, str) else command)
        if not words:
            message = "the command of a resolver is empty; give a program that reads and writes lines of JSON"
            raise ConfigurationError(message)
        return cls(words)

    def __reduce__(self) -> tuple[type[RuleCommand], tuple[tuple[str, ...]]]:
        """Pickle the command; another process runs one of its own."""
        return RuleCommand, (self.command,)

    def __str__(self) -> str:
        return shlex.join(self.command)

    def __call__(self, row: RowState, change: IncomingOperation) -> Decision:
        """
        Ask the program.

        Raises:
            ConfigurationError: It cannot be started, died, took too long, or answered something else.
        """
        with self._lock:
            return self._decision(self._answer(request_of(row, change)))

    def _answer(self, request: Mapping[str, Any]) -> str:
        running = self._started()
        assert running.process.stdin is not None
        assert running.process.stdout is not None
        try:
            running.process.stdin.write(json.dumps(request).encode() + b"\n")
            running.process.stdin.flush()
        except OSError:
            raise self._ended(running) from None
        until, out = time.monotonic() + PATIENCE, running.process.stdout.fileno()
        while b"\n" not in running.rest:
            if not select.select([out], [], [], max(0, until - time.monotonic()))[0]:
                message = f"{self} has not answered for {PATIENCE} s; it must flush a line for each line that it reads"
                raise ConfigurationError(message)
            read = os.read(out, 1 << 16)
            if not read:
                raise self._ended(running)
            running.rest += read
        line, _, running.rest = running.rest.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _started(self) -> _Running:
        """Return the process, started if this process has none yet."""
        if self._running is not None and self._running.owner == os.getpid():
            return self._running
        errors = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        try:
            process = subprocess.Popen(  # noqa: S603  # the user's own program
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
            )
        except OSError as error:
            message = f"{self} cannot be started ({error.strerror or error})"
            raise ConfigurationError(message) from error
        weakref.finalize(self, _end, process)
        self._running = _Running(process, errors)
        return self._running

    def _ended(self, running: _Running) -> ConfigurationError:
        """Return what to say of a program that ended."""
        code = running.process.wait(PATIENCE)
        running.errors.seek(0)
        said = running.errors.read().decode("utf-8", "replace").strip()[-_TOLD:]
        self._running = None
        return ConfigurationError(f"{self} ended with {code} before it answered{f': {said}' if said else ''}")

    def _decision(self, line: str) -> Decision:
        try:
            answer = json.loads(line)
            if isinstance(answer, str):
                return _PLAIN[answer]
            ((kind, said),) = ((key, answer[key]) for key in ("reject", "merge") if key in answer)
            if kind == "merge":
                return merge({name: _from_json(value) for name, value in said.items()})
            return reject(Cause[said], answer.get("incoming"), answer.get("stored"))
        except (ValueError, KeyError, TypeError, AttributeError):
            message = f"{self} answered {line[:_TOLD]!r}; it must be {_ANSWERS}"
            raise ConfigurationError(message) from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program by the end of its input; one that goes on is killed."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def request_of(row: RowState, change: IncomingOperation) -> dict[str, Any]:
    """Return a row and a change as a program reads them."""
    said = {name: _to_json(value) for name, value in attrs.asdict(change, recurse=False).items() if name != "operation"}
    return {
        "operation": operation_word(change.operation),
        "row": {name: _to_json(value) for name, value in attrs.asdict(row, recurse=False).items()},
        "change": said,
    }


def _to_json(value: object) -> Any:
    if isinstance(value, Mapping):
        return {name: _to_json(value[name]) for name in value}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _from_json(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
