"""
Which engine resolves a run when the user leaves it open.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from conflict.config.configuration import Configuration

__all__ = ["LOCAL_BYTES", "EngineChoice", "choose_engine", "spark_asked_for"]

LOCAL_BYTES = 256 << 20  # of binlogs: what one machine resolves in less time than Spark takes to start twice
# Both show that the user asked for Spark: spark-submit started this process, or a Spark Connect server is named.
_SPARK_ASKED_FOR = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")


@attrs.frozen
class EngineChoice:
    """
    An engine, and why it was chosen.

    Attributes:
        engine: One of `conflict.pipeline.ENGINES`.
        reason: Why, as the end of a sentence.
    """

    engine: str
    reason: str


def spark_asked_for() -> str | None:
    """Return which variable of the environment shows that the user asked for Spark; None if none does."""
    return next((name for name in _SPARK_ASKED_FOR if name in os.environ), None)


def choose_engine(configuration: Configuration) -> EngineChoice:
    """Return the engine for a run: the reference engine for what it alone does, else by the size of the binlogs."""
    if any(spec.python is not None for spec in configuration.functions):
        return EngineChoice("reference", "it alone runs rules in Python")
    if not configuration.links.is_pair:
        return EngineChoice("reference", "it alone resolves other than two clusters that replicate to each other")
    asked = spark_asked_for()
    if asked is not None:
        return EngineChoice("spark", f"{asked} is set")
    size = sum(file.stat().st_size for file in configuration.files if file.exists())
    read, limit = _shown(size), LOCAL_BYTES >> 20
    if size <= LOCAL_BYTES:
        return EngineChoice("local", f"the binlogs have {read}, and Spark pays off above {limit} MiB")
    return EngineChoice("spark", f"the binlogs have {read}, more than {limit} MiB")


def _shown(size: int) -> str:
    return f"{size >> 20:,} MiB" if size >> 20 else f"{-(-size >> 10)} KiB"
