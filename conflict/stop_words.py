"""
The words for why an applier stopped; the same in both engines.
"""

from __future__ import annotations

from conflict.functions import ConflictFunction, Image
from ndb_formats.events.rows_event import Operation

__all__ = ["missing_information", "no_such_table"]


def missing_information(function: ConflictFunction, operation: Operation, image: Image) -> str:
    """Say that an event lacks the value that a function compares."""
    return (
        f"{function} needs column {function.column} in the {image.value} image of every {operation.name}, "
        "and this one does not carry it; log the table with another binlog_type"
    )


def no_such_table(table: str, cluster: str) -> str:
    """Say that a table was refused where its changes arrive."""
    return f"table {table} does not exist on {cluster}; its CREATE TABLE was refused there"
