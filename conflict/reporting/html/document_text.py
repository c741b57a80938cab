"""
A document as text to read: an entry per line, and a list without entries of its own on one line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def document_text(document: Any) -> str:
    """Return a document as JSON; what JSON does not know stands as text."""
    return "\n".join(_lines(document, 0, ""))


def _lines(value: Any, depth: int, before: str) -> Iterator[str]:
    """Yield the lines of a value, `depth` blanks to the right; the first one begins with `before`."""
    blanks = " " * depth
    if isinstance(value, Mapping):
        ends, inside = "{}", [(f"{_text(str(name))}: ", each) for name, each in value.items()]
    elif isinstance(value, list | tuple):
        ends, inside = "[]", [("", each) for each in value]
    else:
        yield f"{blanks}{before}{_text(value)}"
        return
    if not any(isinstance(each, Mapping | list | tuple) for _, each in inside) and (ends == "[]" or not inside):
        yield f"{blanks}{before}{_text(value)}"
        return
    yield f"{blanks}{before}{ends[0]}"
    for number, (name, each) in enumerate(inside, 1):
        lines = list(_lines(each, depth + 1, name))
        yield from lines[:-1]
        yield lines[-1] + ("," if number < len(inside) else "")
    yield f"{blanks}{ends[1]}"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
