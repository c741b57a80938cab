"""
What a figure depends on besides the program: the commit, the machine, how busy it was, and the versions of the peers.

`start` is called before the work. It waits a while for a machine that is busy, since a benchmark before this one may
still be ending.
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parents[1]
_GIB = 1 << 30


@attrs.frozen
class Start:
    """
    The machine before the work.

    Attributes:
        busy_cores: How many cores others kept busy, just before the work.
        load_average: The system's load averages over 1, 5 and 15 minutes.
    """

    busy_cores: float
    load_average: tuple[float, float, float]


def start(tries: int = 30, seconds: float = 2.0) -> Start:
    """Look at how busy the machine is, until less than half of it is, or `tries` times; each look takes `seconds`."""
    busy = 0.0
    for _ in range(tries):
        before = _busy_seconds()
        time.sleep(seconds)
        busy = (_busy_seconds() - before) / seconds
        if busy < cores() / 2:
            break
    return Start(round(busy, 2), os.getloadavg())


def cores() -> int:
    """Return how many processors the system has."""
    return os.cpu_count() or 1


def _busy_seconds() -> float:
    """Return the processor time that all processes have had, the host's share of it included; 0 if not known."""
    try:
        user, nice, system, _, _, irq, soft, stolen = map(int, Path("/proc/stat").read_text("ascii").split()[1:9])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + soft + stolen) / os.sysconf("SC_CLK_TCK")


def environment(began: Start, *packages: str, peers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """
    Return what the figures of a run depend on.

    Args:
        began: The machine before the work.
        packages: Libraries whose versions matter.
        peers: The programs that it is compared with, each with its version and whose it is (see `program_version`).
    """
    return {
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GIB, 1),
        "busy_cores_at_start": began.busy_cores,
        "load_average_at_start": began.load_average,
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
        "peers": dict(peers or {}),
    }


def _commit() -> str | None:
    """Return the commit that is measured, with a + if files differ from it; None outside a checkout."""
    try:
        commit = _said(["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"])
        return commit + ("+" if _said(["git", "-C", str(ROOT), "status", "--porcelain", "-uno"]) else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def program_version(program: str) -> str:
    """Return what a program says of its version, without its path: MySQL's mysqlbinlog and MariaDB's differ."""
    return without_path(_said([program, "--version"]))


def without_path(said: str) -> str:
    """Return what a program says, without its own path at the start, which can be another than it was called by."""
    program, _, rest = said.partition(" ")
    return rest.strip() if os.sep in program else said


def package_version(python: str, package: str) -> str:
    """Return the version of a package in the environment of another interpreter."""
    command = [python, "-c", f"from importlib.metadata import version; print(version({package!r}))"]
    return f"{package} {_said(command)}"


def _said(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603 - the caller's programs
    return done.stdout.strip()
