"""
What a search of small scopes found, on the terminal and as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conflict.shown_text import counted
from conflict.whatif.diverging.retelling import TakenStep, ending, retell, timeline, unsettled
from conflict.whatif.diverging.scope import NAMES, Goal, Scope
from conflict.whatif.diverging.search import Found

__all__ = ["found_json", "print_found"]

_REACHED = {
    Goal.DIFFERENCE: "The clusters end different",
    Goal.LOST: "An update is lost",
    Goal.STOP: "An applier stops",
}
_NONE = {
    Goal.DIFFERENCE: "No schedule lets the clusters end different",
    Goal.LOST: "No schedule loses an update",
    Goal.STOP: "No schedule stops an applier",
}


def print_found(console: Console, found: Found) -> None:
    """Print the shortest schedule as a timeline with a column for each cluster, or how far the search went."""
    searched = f"{counted(found.states, 'state')}, {found.states / max(found.seconds, 0.001):,.0f} per second"
    if found.steps is None:
        far = f"none up to {scope_words(found.scope)}"
        if not found.complete:
            far = f"none up to {counted(found.depth, 'step')}; the limit of states ended the search"
        console.print(Text(f"{_NONE[found.goal]}: {far} ({searched}).", style="bold"))
        return
    steps = counted(len(found.steps) - 1, "step")
    console.print(Text(f"{_REACHED[found.goal]} after {steps} ({searched}):", style="bold"))
    told = retell(found.scope, found.steps)
    console.print(_timeline(found.scope, told))
    if said := unsettled_words(unsettled(told)):
        console.print(Text(said, style="yellow"))


def unsettled_words(left: Mapping[str, int]) -> str:
    """Return what was not applied where a schedule ends; nothing if all was."""
    parts = [f"{counted(count, 'row operation')} of {name}" for name, count in left.items() if count]
    return (
        f"Not settled at the end: {' and '.join(parts)}, not applied on the other cluster; rows can still change."
        if parts
        else ""
    )


def scope_words(scope: Scope) -> str:
    """Return the bounds of a scope in words."""
    parts = [counted(scope.transactions, "transaction"), counted(scope.rows, "row")]
    parts += [counted(scope.columns, "data column")]
    if scope.epochs is not None:
        parts.append(f"{counted(scope.epochs, 'epoch')} with transactions on each cluster")
    if scope.outages:
        parts.append(counted(scope.outages, "outage"))
    return ", ".join(parts)


def _timeline(scope: Scope, told: Sequence[TakenStep]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), expand=True)
    table.add_column("step", justify="right", min_width=5)
    for name in NAMES:
        table.add_column(name, ratio=1, overflow="fold")
    for line in timeline(scope, told):
        texts = [Text(line.text if line.cluster in (name, None) else "") for name in NAMES]
        table.add_row(Text(str(line.number) if line.number else "start"), *texts)
    table.add_section()
    ends = ending(scope, told)
    table.add_row(Text("end"), *(Text(ends[name], style="bold") for name in NAMES))
    return table


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
