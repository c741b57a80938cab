"""Numbers as digits in texts from elsewhere, which can be of any length."""

from __future__ import annotations

import re

__all__ = ["whole_number"]

# More digits than any number has that means something, and fewer than Python's int() refuses.
_DIGITS = re.compile("[0-9]{1,1000}")


def whole_number(text: str) -> int | None:
    """Return the number that a text of digits stands for; None if it is anything else, or longer than 1000 digits."""
    return int(text) if _DIGITS.fullmatch(text) else None
