"""
What a report says of searches for the shortest schedule that ends badly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.parts import Part, Table

__all__ = ["diverge_part"]

Search = Mapping[str, Any]


def diverge_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `diverge`, read from `source`."""
    searches: Sequence[Search] = document["searches"]
    rows = [
        [
            _function(each),
            each.get("binlog_type"),
            each["goal"],
            each["steps"] if each["found"] else "none found",
            each["states"],
            "yes" if each["found"] or each.get("complete") else "no, the limit of states ended it",
        ]
        for each in searches
    ]
    headings = ("function", "type", "looked for", "steps of the shortest", "states", "searched whole")
    return Part(
        "Shortest schedules",
        source,
        _asked(searches),
        tuple(map(_sentence, searches)),
        (),
        Table("What was found", headings, rows),
        (),
        tuple(_timelines(searches)),
        [{name: each[name] for name in each if name not in ("timeline", "ending")} for each in searches],
    )


def _function(search: Search) -> str:
    return str(search["function"] or "no function")


def _asked(searches: Sequence[Search]) -> dict[str, str]:
    bounds = dict.fromkeys(
        ", ".join(f"{value} {name}" for name, value in each.get("bounds", {}).items() if value is not None)
        for each in searches
    )
    return {
        "question": "Is there a schedule of a few transactions that ends badly, and which is the shortest?",
        "searched": "; ".join(bounds),
    }


def _sentence(search: Search) -> str:
    what = f"{_function(search)}, binlog type {search.get('binlog_type')}, {search['goal']}"
    if search["found"]:
        return f"{what}: the shortest schedule has {search['steps']} steps."
    far = "in the whole scope" if search.get("complete") else f"up to {search.get('depth')} steps"
    return f"{what}: none {far}, {search['states']:,} states."


def _timelines(searches: Sequence[Search]) -> Iterator[Table]:
    for search in searches:
        lines = search.get("timeline", ())
        if lines:
            names = [name for name in dict.fromkeys(line["cluster"] for line in lines) if name is not None]
            names = sorted({*names, *search.get("ending", {})})
            rows = [
                [line["step"] or "start", *(line["text"] if line["cluster"] in (name, None) else "" for name in names)]
                for line in lines
            ]
            rows.append(["end", *(search.get("ending", {}).get(name, "") for name in names)])
            yield Table(f"{_function(search)}, {search['goal']}: the schedule", ("step", *names), rows)
