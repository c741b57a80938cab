"""
What libraries want of the surroundings, and this program does without; and how much memory there is.

Libraries want `ssl`, and a home that can be written.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

from conflict.extras import imported
from ndb_formats.compiled_cache import can_be_written, private_folders

_MATPLOTLIB = "MPLCONFIGDIR"
_MEMORY = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")  # of a container: its own, so that its limit and what it takes are below it


def allow_missing_ssl() -> None:
    """
    Load pyarrow's file systems with a stand-in for `ssl`, if that cannot be loaded; nobody else sees the stand-in.

    As it is loaded, pyarrow asks `ssl` where certificates are. They concern no local file.
    """
    try:
        import_module("_ssl")
    except ImportError:
        import_module("pyarrow")
        stand_in = ModuleType("ssl")
        vars(stand_in)["get_default_verify_paths"] = lambda: SimpleNamespace(cafile=None, capath=None)
        sys.modules["ssl"] = stand_in
        try:
            import_module("pyarrow._fs")
        finally:
            del sys.modules["ssl"]


def load_matplotlib() -> None:
    """
    Load matplotlib, which finds a folder for its list of fonts.

    The list takes seconds to make; without a folder matplotlib warns, and makes it every time.

    Raises:
        ConfigurationError: It is not installed.
    """
    if not os.environ.get(_MATPLOTLIB):
        _provide_matplotlib_folder()
    imported("matplotlib")


def _provide_matplotlib_folder() -> None:
    config = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))  # noqa: PTH111  # raises nothing
    if config.is_absolute() and can_be_written(config / "matplotlib"):
        return
    folder = next(private_folders("ndb-conflict-matplotlib"), None)
    if folder is not None:
        os.environ[_MATPLOTLIB] = str(folder)


def free_memory(meminfo: Path = _MEMORY, group: Path = _GROUP) -> int | None:
    """
    Return the bytes of memory that a process can take without swapping; None where the system does not say.

    Args:
        meminfo: What Linux says of the machine (proc_meminfo(5)).
        group: What it says of this container (cgroups(7), version 2), which may have a lower limit.
    """
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text("ascii").splitlines() if ":" in line)
        free = int(lines["MemAvailable"].split()[0]) << 10
    except (OSError, ValueError, KeyError, IndexError):
        return None
    try:
        limit = int((group / "memory.max").read_text("ascii"))
        taken = dict(line.split() for line in (group / "memory.stat").read_text("ascii").splitlines())
        return min(free, max(limit - int(taken["anon"]), 0))  # pages of files make room
    except (OSError, ValueError, KeyError):  # there is no limit: "max" is no number
        return free
