"""
The part of a report on searches for the shortest schedule that ends badly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conflict.telling.part import Part
from conflict.whatif.diverging.telling import scope_words, tell_searches

Search = Mapping[str, Any]
_VALUES = {
    "version": "an update sets it to one more than it finds",
    "clock": "an update sets it to more than all before",
    "unset": "no update sets it",
}


def diverge_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `diverge`, read from `source`."""
    searches: Sequence[Search] = document["searches"]
    if not searches:
        message = "it has no search"
        raise ValueError(message)
    return Part(
        tell_searches(searches),
        source,
        _asked(searches),
        [{name: each[name] for name in each if name not in ("timeline", "ending")} for each in searches],
    )


def _asked(searches: Sequence[Search]) -> dict[str, str]:
    found = {
        "question": "Is there a schedule of a few transactions that ends badly, and which is the shortest?",
        "searched": "; ".join(dict.fromkeys(f"all schedules of up to {scope_words(each)}" for each in searches)),
    }
    values = "; ".join(dict.fromkeys(_VALUES[each["values"]] for each in searches if each.get("values") in _VALUES))
    by_column = (name for each in searches if "(" in (name := each["function"] or "") and "()" not in name)
    if values and any(by_column):
        found["resolve column"] = values
    return found
