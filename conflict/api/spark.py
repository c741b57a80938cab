"""
Spark for users of `conflict`; without pyspark, these names are there, too, and calling them says what to type.
"""

from __future__ import annotations

from typing import Any


def spark_session(cores: str = "*") -> Any:
    """
    Return the active session of Spark, or start one: where the user chose, or else on `cores` cores of this machine.

    docs/spark.md says how users choose.

    Raises:
        ConfigurationError: Spark cannot be started or reached, or pyspark is not installed.
    """
    from conflict.spark import session

    return session.spark_session(cores)


def register(spark: Any) -> None:
    """
    Register the formats ``ndb_binlog`` and ``ndb_result`` with a session of Spark.

    Relative paths begin where this process is now.
    """
    from conflict.spark import data_source

    data_source.register(spark)
