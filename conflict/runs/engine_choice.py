"""
Which engine resolves a run when the user leaves it open.

On one machine the local engine is always faster than Spark (docs/scaling.md). So Spark is chosen only where the user
has configured it, or where this machine has not the memory that the local engine would take.
"""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

import attrs

from conflict.history.grid.memory_folder import memory_limit
from conflict.surroundings import free_memory

if TYPE_CHECKING:
    from conflict.config.configuration import Configuration


# Each shows where the user wants Spark to run: spark-submit started this process, a Spark Connect server is named, or
# arguments or a folder of configuration are given.
_SPARK_ASKED_FOR = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR")
# What the local engine was seen to take (docs/scaling.md): in bytes at all, and for each byte of binlogs besides the
# tables of the History, which are as large as the binlogs and go to files where they do not fit.
_AT_ALL = 512 << 20
_BY_BYTE = 0.75


@attrs.frozen
class EngineChoice:
    """
    An engine, and why it was chosen.

    Attributes:
        engine: One of `conflict.runs.pipeline.ENGINES`.
        reason: Why, as the end of a sentence.
    """

    engine: str
    reason: str


def spark_asked_for() -> str | None:
    """Return which variable of the environment shows that the user asked for Spark; None if none does."""
    return next((name for name in _SPARK_ASKED_FOR if name in os.environ), None)


def choose_engine(configuration: Configuration) -> EngineChoice:
    """Return the engine for a run: the reference engine for what it alone does, else the local one or Spark."""
    if any(spec.own is not None for spec in configuration.functions):
        return EngineChoice("reference", "it alone runs rules in Python")
    if not configuration.links.is_pair:
        return EngineChoice("reference", "it alone resolves other than two clusters that replicate to each other")
    return choose_workers(configuration)


def choose_workers(configuration: Configuration) -> EngineChoice:
    """Return who reads binlogs into a History: this process, or Spark."""
    asked = spark_asked_for()
    if asked is not None:
        return EngineChoice("spark", f"{asked} is set")
    size = sum(file.stat().st_size for file in configuration.files if file.exists())
    return _by_memory(size, free_memory())


def local_memory(size: int) -> int:
    """Return the bytes of memory that the local engine takes for binlogs of a size in bytes, as an estimate."""
    return _AT_ALL + min(size, memory_limit()) + int(_BY_BYTE * size)


def _by_memory(size: int, free: int | None) -> EngineChoice:
    """Choose by the memory that the local engine would take for binlogs of `size` bytes, and what there is of it."""
    needed = local_memory(size)
    of_binlogs = f"about {_shown(needed)} of memory for {_shown(size)} of binlogs"
    if free is None or needed <= free:
        return EngineChoice("local", f"it takes {of_binlogs}")
    lacking = f"the local engine would take {of_binlogs}, and {_shown(free)} are free"
    if find_spec("pyspark") is None:
        return EngineChoice("local", f"pyspark is not installed, though {lacking}")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return EngineChoice("local", f"there is no Java for Spark, though {lacking}")
    return EngineChoice("spark", lacking)


def _shown(size: int) -> str:
    """Return a number of bytes for people."""
    if size >> 30:
        return f"{size / (1 << 30):,.1f} GiB"
    return f"{size >> 20:,} MiB" if size >> 20 else f"{-(-size >> 10)} KiB"
