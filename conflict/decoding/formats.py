"""
The forms of decoded changes; a module of its own, so that the help of `decode` loads nothing else.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["DecodedFormat"]


class DecodedFormat(StrEnum):
    """The output format."""

    TEXT = "text"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
