"""
What searches of small scopes found: as a document, and what is told of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.telling.shown_text import counted
from conflict.telling.value import Table, Telling
from conflict.whatif.diverging.retelling import ending, retell, timeline, unsettled
from conflict.whatif.diverging.search import Found

Search = Mapping[str, Any]
# By what was looked for: that there is such a schedule, and that there is none.
_GOALS = {
    "difference": ("The clusters end different", "No schedule lets the clusters end different"),
    "lost": ("An update is lost", "No schedule loses an update"),
    "stop": ("An applier stops", "No schedule stops an applier"),
    "returns": ("A deleted row comes back", "No schedule brings a deleted row back"),
    "counters": ("Counters lie", "No schedule makes counters lie"),
}
_BOUNDS = {"columns": "data column", "epochs": "epoch with transactions on each cluster"}


def found_json(found: Found) -> dict[str, Any]:
    """Return what was found as a document."""
    scope = found.scope
    bounds = {name: getattr(scope, name) for name in ("transactions", "rows", "columns", "epochs", "outages")}
    document: dict[str, Any] = {
        "goal": found.goal.value,
        "function": scope.function,
        "binlog_type": scope.binlog_type,
        "values": scope.values.value,
        "bounds": bounds,
        "found": found.steps is not None,
        "complete": found.complete,
        "states": found.states,
        "depth": found.depth,
        "seconds": round(found.seconds, 3),
    }
    if found.steps is not None:
        told = retell(scope, found.steps)
        lines = [{"step": line.number, "cluster": line.cluster, "text": line.text} for line in timeline(scope, told)]
        document |= {"steps": len(found.steps) - 1, "timeline": lines, "ending": ending(scope, told)}
        document["unsettled"] = unsettled(told)
    return document


def tell_searches(searches: Sequence[Search]) -> Telling:
    """Return what is told of searches: the schedules, or how far none was found; of several, a table of all."""
    none = [f"{_GOALS[each['goal']][1]}{_under(each)}: {_far(each)}." for each in searches if not each["found"]]
    tables = [_timeline(each) for each in searches if each["found"]]
    if len(searches) > 1:
        tables.insert(0, _overview(searches))
    return Telling("Shortest schedules", sentences=tuple(none), tables=tuple(tables))


def scope_words(search: Search) -> str:
    """Return the bounds of a search in words; those that are nothing are left out."""
    bounds = {name: value for name, value in search["bounds"].items() if value}
    return ", ".join(_bound(value, _BOUNDS.get(name, name.removesuffix("s"))) for name, value in bounds.items())


def _bound(value: int, noun: str) -> str:
    first, blank, rest = noun.partition(" with")
    return f"{counted(value, first)}{blank}{rest}"


def _under(search: Search) -> str:
    return f" under {search['function'] or 'no function'}, binlog type {search['binlog_type']}"


def _far(search: Search) -> str:
    states = counted(search["states"], "state")
    if search["complete"]:
        return f"none up to {scope_words(search)} ({states})"
    return f"none up to {counted(search['depth'], 'step')}; the limit of states ended the search ({states})"


def _overview(searches: Sequence[Search]) -> Table:
    rows = [
        [
            each["function"] or "no function",
            each["binlog_type"],
            each["goal"],
            each["steps"] if each["found"] else "none found",
            each["states"],
            _ended(each),
        ]
        for each in searches
    ]
    headings = ("function", "type", "looked for", "steps of the shortest", "states seen", "the search ended")
    return Table("What was found", headings, rows, texts=3)


def _ended(search: Search) -> str:
    if search["found"]:
        return "at the first schedule found"
    return "with all states" if search["complete"] else "at the limit of states"


def _timeline(search: Search) -> Table:
    """Return a schedule with a column for each cluster, what they held at first, and how their rows end."""
    names = list(search["ending"])
    rows = [
        [line["step"] or "start", *(line["text"] if line["cluster"] in (name, None) else "" for name in names)]
        for line in search["timeline"]
    ]
    rows.append(["end", *search["ending"].values()])
    steps, states = counted(search["steps"], "step"), counted(search["states"], "state")
    title = f"{_GOALS[search['goal']][0]} after {steps} ({states}){_under(search)}"
    return Table(title, ("step", *names), rows, note="".join(_unsettled(search)), even=True, texts=3)


def _unsettled(search: Search) -> Iterator[str]:
    """Yield what was not applied where a schedule ends, if anything."""
    left = [
        f"{counted(count, 'row operation')} of {name}" for name, count in search.get("unsettled", {}).items() if count
    ]
    if left:
        yield (
            f"Not settled at the end: {' and '.join(left)}, not applied on the other cluster; rows can still change."
        )
