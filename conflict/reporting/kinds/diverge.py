"""
What a report says of searches for the shortest schedule that ends badly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.parts import Part
from conflict.shown_text import counted
from conflict.telling.value import Table, Telling

__all__ = ["diverge_part"]

Search = Mapping[str, Any]
# By what was looked for: that there is such a schedule, and that there is none.
_GOALS = {
    "difference": ("the clusters can end different", "the clusters do not end different"),
    "lost": ("an update can be lost", "no update is lost"),
    "stop": ("an applier can stop", "no applier stops"),
}
_TITLES = {
    "difference": "How the clusters end different",
    "lost": "How an update is lost",
    "stop": "How an applier stops",
}
_BOUNDS = {"columns": "data column"}
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
    rows = [
        [
            _function(each),
            each.get("binlog_type"),
            each["goal"],
            each["steps"] if each["found"] else "none found",
            each["states"],
            _ended(each),
        ]
        for each in searches
    ]
    headings = ("function", "type", "looked for", "steps of the shortest", "states seen", "the search ended")
    return Part(
        Telling(
            "Shortest schedules",
            sentences=tuple(_sentences(searches)),
            tables=(Table("What was found", headings, rows), *_timelines(searches)),
        ),
        source,
        _asked(searches),
        [{name: each[name] for name in each if name not in ("timeline", "ending")} for each in searches],
    )


def _function(search: Search) -> str:
    return str(search["function"] or "no function")


def _asked(searches: Sequence[Search]) -> dict[str, str]:
    found = {
        "question": "Is there a schedule of a few transactions that ends badly, and which is the shortest?",
        "searched": "; ".join(dict.fromkeys(f"all schedules of up to {_scope(each)}" for each in searches)),
    }
    values = "; ".join(dict.fromkeys(_VALUES[each["values"]] for each in searches if each.get("values") in _VALUES))
    if values and any("(" in each and "()" not in each for each in map(_function, searches)):
        found["resolve column"] = values
    return found


def _scope(search: Search) -> str:
    """Return the bounds of a search in words; those that are nothing are left out."""
    bounds = {name: value for name, value in search.get("bounds", {}).items() if value}
    return ", ".join(counted(value, _BOUNDS.get(name, name.removesuffix("s"))) for name, value in bounds.items())


def _ended(search: Search) -> str:
    if search["found"]:
        return "at the first schedule found"
    return "with all states" if search.get("complete") else "at the limit of states"


def _sentences(searches: Sequence[Search]) -> Iterator[str]:
    """Yield what each search found; a function is named with its first one."""
    before = ""
    for search in searches:
        under = f"Under {_function(search)} and binlog type {search.get('binlog_type')}, "
        found = _sentence(search)
        yield under + found if under != before else found[0].upper() + found[1:]
        before = under


def _sentence(search: Search) -> str:
    can, cannot = _GOALS.get(search["goal"], (f"{search['goal']} is found", f"{search['goal']} is not found"))
    if search["found"]:
        return f"{can}: the shortest schedule has {counted(search['steps'], 'step')}."
    far = f"of up to {_scope(search)}"
    if not search.get("complete"):
        far = f"of up to {counted(search.get('depth') or 0, 'step')}, where the limit of states ended the search"
    seen = f"{counted(search['states'], 'state')} {'was' if search['states'] == 1 else 'were'} searched"
    return f"{cannot} in any schedule {far}; {seen}."


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
            title = f"{_TITLES.get(search['goal'], search['goal'])}: {_function(search)}"
            left = [f"{count:,} of {name}" for name, count in search.get("unsettled", {}).items() if count]
            note = f"Row operations not applied on the other cluster at the end: {', '.join(left)}." if left else ""
            yield Table(title, ("step", *(f"on {name}" for name in names)), rows, note=note, even=True)
