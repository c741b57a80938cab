"""The programs of NDB Cluster, in the folder of a build or of an installed server."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

__all__ = ["MissingProgramError", "Programs"]

_PLACES = (".", "bin", "sbin", "libexec", "build/runtime_output_directory", "runtime_output_directory")
_MESSAGES = ("share", "build/share", "share/mysql", "share/mysql-*")
_CHARSETS = ("share/charsets", "share/mysql*/charsets", "*/share/charsets")


class MissingProgramError(Exception):
    """A program is not in the folder; the message says which one."""


@attrs.frozen
class Programs:
    """
    Where the programs are.

    Attributes:
        mysqld: The SQL node.
        ndbd: The data node: ndbd, or ndbmtd if there is no ndbd.
        ndb_mgmd: The management node.
        files: Options for mysqld that name its messages and character sets; none where it finds them by itself.
    """

    mysqld: Path
    ndbd: Path
    ndb_mgmd: Path
    files: Sequence[str]

    @classmethod
    def of(cls, folder: Path) -> Programs:
        """
        Find the programs.

        Raises:
            MissingProgramError: One is not there.
        """
        messages = _first(each for place in _MESSAGES for each in folder.glob(f"{place}/english/errmsg.sys"))
        charsets = _first(each for place in _CHARSETS for each in folder.glob(f"{place}/Index.xml"))
        files = [f"--lc-messages-dir={messages.parents[1]}"] if messages else []
        files += [f"--character-sets-dir={charsets.parent}"] if charsets else []
        mysqld, ndbd, ndb_mgmd = (program(folder, *names) for names in (("mysqld",), ("ndbd", "ndbmtd"), ("ndb_mgmd",)))
        return cls(mysqld, ndbd, ndb_mgmd, files)

    def version(self) -> str:
        """Return what the SQL node says of its version, as in ``9.7.2-cluster``."""
        said = subprocess.run([self.mysqld, "--no-defaults", "--version"], capture_output=True, text=True, check=True)
        return said.stdout.split(" Ver ")[-1].split()[0]


def program(folder: Path, *names: str) -> Path:
    """
    Return the first of some programs that is in a folder.

    Raises:
        MissingProgramError: None is there.
    """
    paths = (folder / place / name for name in names for place in _PLACES)
    found = _first(path for path in paths if path.is_file() and os.access(path, os.X_OK))
    if found is None:
        message = f"{folder} has no program {' or '.join(names)}; looked in {', '.join(_PLACES)}"
        raise MissingProgramError(message)
    return found.resolve()


def _first(paths: Iterable[Path]) -> Path | None:
    return next(iter(paths), None)
