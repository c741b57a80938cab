"""Processes that end with this one, however it ends; and ports that nobody listens on."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Processes", "free_ports"]


class Processes:
    """
    Processes of one group, which are killed at the end of the context.

    A shell leads the group. It reads from this process: when that is gone, even killed, it kills all of them and
    itself. Nothing of what they wrote is needed afterwards, so none is asked to end in order.
    """

    def __enter__(self) -> Self:
        guard = ["sh", "-c", "cat; kill -KILL 0"]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, process_group=0)
        self._started: list[subprocess.Popen[bytes]] = []
        return self

    def start(self, command: Sequence[str | Path], log: Path) -> subprocess.Popen[bytes]:
        """Start a process; what it prints goes to a file."""
        with log.open("ab") as out:
            started = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=self._guard.pid
            )
        self._started.append(started)
        return started

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        for process in (self._guard, *self._started):
            process.wait()


def free_ports(count: int) -> list[int]:
    """Return ports of 127.0.0.1 that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
