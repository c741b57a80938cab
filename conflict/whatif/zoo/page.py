"""
The zoo as a page in Markdown: a table of all cells, and the schedules that they name, each once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase

from conflict.whatif.zoo.cell import Cell
from conflict.whatif.zoo.pairs import ANOMALIES, NONE
from conflict.whatif.zoo.telling import CONTRADICTED, RECORDED
from conflict.whatif.zoo.zoo import Zoo

_MARKS = {"recorded": RECORDED, "contradicted": CONTRADICTED}
_SHOWN_FIRST = 7  # the format whose cell is shown, if a schedule is one of it
Schedules = Mapping[tuple[str, ...], Sequence[Cell]]


def schedules_of(zoo: Zoo) -> Schedules:
    """Return the schedules of a zoo, each with its cells, the one that is shown first: short schedules first."""
    found: dict[tuple[str, ...], list[Cell]] = {}
    for cell in sorted(zoo, key=lambda cell: cell.length or 0):
        if cell.steps is not None:
            found.setdefault(cell.steps, []).append(cell)
    return {steps: sorted(cells, key=lambda cell: cell.binlog_type != _SHOWN_FIRST) for steps, cells in found.items()}


def page_of(zoo: Zoo, pictures: str) -> str:
    """
    Return the table of all cells and the list of their schedules.

    Args:
        zoo: The zoo.
        pictures: The folder of the pictures, as the page names it.
    """
    schedules = schedules_of(zoo)
    names = {steps: _letter(number) for number, steps in enumerate(schedules)}
    listed = _listed(schedules, names, pictures)
    parts: list[Iterable[str]] = [_summary(zoo), _table(zoo, names), ["## Schedules"], listed]
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _letter(number: int) -> str:
    """Return the name of a schedule: a to z, then aa, ab, ..."""
    rest, place = divmod(number, len(ascii_lowercase))
    return ("" if rest == 0 else _letter(rest - 1)) + ascii_lowercase[place]


def _summary(zoo: Zoo) -> Iterator[str]:
    found = [cell for cell in zoo if cell.answer == "found"]
    refused = sum(cell.answer == "refused" for cell in zoo)
    none = len(zoo) - len(found) - refused
    marks = {mark: sum(cell.mark == mark for cell in found) for mark in ("recorded", "contradicted")}
    yield (
        f"{len(zoo)} cells: {len(found)} have a schedule, {none} have none within {zoo.bounds.words}, {refused} are "
        f"refused. The searches saw {zoo.states:,} states."
    )
    servers = sorted({cell.recorded.server for cell in found if cell.recorded is not None})
    shown = f" ({', '.join(servers)})" if servers else ""
    yield (
        f"{RECORDED} marks the {marks['recorded']} that were *recorded*: carried out on real clusters{shown}, which "
        f"ended as the search says; {CONTRADICTED} the {marks['contradicted']} where they did not. "
        "All others are *searched*."
    )


def _table(zoo: Zoo, names: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    """Yield a table of all cells; formats and values of a function with the same cells share a line."""
    anomalies = list(dict.fromkeys(cell.anomaly for cell in zoo))
    shown: dict[tuple[str, str | None, int], list[str]] = {}
    for cell in zoo:
        shown.setdefault((cell.function, cell.written, cell.binlog_type), []).append(_cell(cell, names))
    formats: dict[tuple[str, str | None, tuple[str, ...]], list[str]] = {}
    for (function, written, binlog_type), cells in shown.items():
        formats.setdefault((function, written, tuple(cells)), []).append(str(binlog_type))
    lines: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (function, written, line), types in formats.items():
        lines.setdefault((function, ",".join(types), line), []).append(written or "")
    yield _line(["function", "types", *(ANOMALIES[anomaly][0] for anomaly in anomalies)])
    yield "|---" * (len(anomalies) + 2) + "|"
    for (function, together, line), values in lines.items():
        name = NONE if function == NONE else f"`{function}`"
        yield _line([", ".join([name, *filter(None, values)]), together, *line])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, names: Mapping[tuple[str, ...], str]) -> str:
    if cell.steps is None:
        return "refused" if cell.refusal is not None else "none"
    return f"{cell.length}{names[cell.steps]}{_MARKS.get(cell.mark, '')}"


def _listed(schedules: Schedules, names: Mapping[tuple[str, ...], str], pictures: str) -> Iterator[str]:
    """Yield a table of the schedules, each with a link to its picture under one function and format."""
    yield _line(["schedule", "steps", "picture"])
    yield "|---|---|---|"
    for steps, cells in schedules.items():
        shown = cells[0]
        title = f"{shown.row}, type {shown.binlog_type}"
        yield _line([names[steps], "; ".join(steps), f"[{title}]({pictures}/{shown.name}.svg)"])
