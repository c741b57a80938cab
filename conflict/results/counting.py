"""What the conflicts of a result are counted by."""

from __future__ import annotations

from enum import StrEnum


class By(StrEnum):
    """What conflicts are counted by."""

    TABLE = "table"
    SECOND = "second"
    MINUTE = "minute"
    HOUR = "hour"
    KEY = "key"
    CAUSE = "cause"
    TRANSACTION = "transaction"
