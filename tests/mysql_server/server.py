"""
A MySQL server that is given by its socket, and the tools that talk to it.

`MYSQL_SOCKET` is the server's socket; `MYSQL_USER`, `MYSQL_PWD`, `MYSQL` and `MYSQLBINLOG` are optional.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

__all__ = ["MissingServerError", "Server", "Setup", "given_server"]


class MissingServerError(Exception):
    """There is no server to test with; the message says what is missing."""


@attrs.frozen
class Setup:
    """
    Where the server and the tools are.

    Attributes:
        socket: Socket of the server.
        user: Who connects; ``MYSQL_PWD`` is the password.
        client: The program mysql.
        reader: The program mysqlbinlog.
    """

    socket: str
    user: str
    client: str
    reader: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Setup:
        """
        Read it from environment variables.

        Raises:
            MissingServerError: One is missing, or is no program.
        """
        socket = environment.get("MYSQL_SOCKET", "")
        if not socket or not Path(socket).exists():
            what = f"MYSQL_SOCKET is {socket!r}, where nothing is" if socket else "MYSQL_SOCKET is not set"
            message = f"{what}; give the socket of a MySQL 9 server: make test-mysql MYSQL_SOCKET=/path/mysqld.sock"
            raise MissingServerError(message)
        programs = {name: environment.get(name) or default for name, default in _PROGRAMS.items()}
        for name, program in programs.items():
            if shutil.which(program) is None:
                message = f"there is no program {program}; install MySQL's client tools, or set {name}"
                raise MissingServerError(message)
        return cls(socket, environment.get("MYSQL_USER") or "root", programs["MYSQL"], programs["MYSQLBINLOG"])


_PROGRAMS = {"MYSQL": "mysql", "MYSQLBINLOG": "mysqlbinlog"}


@attrs.frozen
class Server:
    """The server of a setup."""

    setup: Setup

    @classmethod
    def from_environment(cls) -> Server:
        """Return the server that the environment names, if it answers."""
        server = cls(Setup.of(os.environ))
        version = server.run("SELECT VERSION()").strip()
        if int(version.split(".")[0]) < 8:
            message = f"the server is {version}; a MySQL 8 or 9 is needed"
            raise MissingServerError(message)
        return server

    @property
    def _account(self) -> list[str]:
        return [f"--user={self.setup.user}", f"--socket={self.setup.socket}"]

    def run(self, sql: str | bytes) -> str:
        """Run statements; return the rows, tab-separated, bytes as hexadecimal."""
        options = ["--no-defaults", *self._account, "--batch", "--skip-column-names", "--binary-as-hex"]
        text = sql.encode() if isinstance(sql, str) else sql
        options += ["--default-character-set=utf8mb4", "--binary-mode"]
        done = subprocess.run([self.setup.client, *options], input=text, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout.decode("utf-8", "replace")

    def read(self, path: Path, *options: str) -> bytes:
        """Return what mysqlbinlog prints of a file, after it has checked all checksums."""
        command = [self.setup.reader, "--no-defaults", "--verify-binlog-checksum", *options, str(path)]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
        return done.stdout

    def own_log(self, folder: Path) -> Path:
        """Return a copy of the binlog that the server writes now."""
        name = self.run("SHOW BINARY LOG STATUS").split("\t")[0]
        command = [self.setup.reader, "--no-defaults", *self._account, "--read-from-remote-server", "--raw"]
        subprocess.run([*command, f"--result-file={folder}/", name], capture_output=True, check=True)
        return folder / name


def given_server() -> Server:
    """Return the server that the environment names, or end the run with what is missing."""
    try:
        return Server.from_environment()
    except MissingServerError as error:
        pytest.exit(str(error), returncode=2)
