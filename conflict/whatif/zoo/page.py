"""
The zoo as a page in Markdown: a table for every anomaly, and the schedules that its cells name, each once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_lowercase

from conflict.whatif.zoo.cell import Cell
from conflict.whatif.zoo.pairs import ANOMALIES, NONE
from conflict.whatif.zoo.picture import text_of
from conflict.whatif.zoo.telling import CONTRADICTED, RECORDED
from conflict.whatif.zoo.zoo import Zoo

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
    Return the tables and schedules of a page.

    Args:
        zoo: The zoo.
        pictures: The folder of the pictures, as the page names it.
    """
    schedules = schedules_of(zoo)
    names = {steps: _letter(number) for number, steps in enumerate(schedules)}
    parts = ["\n".join(_summary(zoo)), *_tables(zoo, names), "## Schedules"]
    for steps, cells in schedules.items():
        parts += _schedule(names[steps], cells, pictures)
    return "".join(f"{part}\n\n" for part in parts).rstrip("\n") + "\n"


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


def _tables(zoo: Zoo, names: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    formats = list(dict.fromkeys(cell.binlog_type for cell in zoo))
    rows = list(dict.fromkeys(cell.row for cell in zoo))
    cells = {(cell.row, cell.anomaly, cell.binlog_type): cell for cell in zoo}
    for anomaly in dict.fromkeys(cell.anomaly for cell in zoo):
        name, what = ANOMALIES[anomaly]
        yield f"## {name[0].upper()}{name[1:]}"
        yield what
        lines = [_line(["function", *(f"type {number}" for number in formats)]), "|---" * (len(formats) + 1) + "|"]
        for row in rows:
            shown = [_cell(cells[row, anomaly, number], names) for number in formats]
            function, comma, values = row.partition(", ")
            lines.append(_line([row if function == NONE else f"`{function}`{comma}{values}", *shown]))
        yield "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell, names: Mapping[tuple[str, ...], str]) -> str:
    if cell.steps is None:
        return "refused" if cell.refusal is not None else "none"
    mark = {"recorded": f" {RECORDED}", "contradicted": f" {CONTRADICTED}"}.get(cell.mark, "")
    return f"**{cell.length}** [{names[cell.steps]}](#{_anchor(names[cell.steps])}){mark}"


def _anchor(name: str) -> str:
    return f"schedule-{name}"


def _schedule(name: str, cells: Sequence[Cell], pictures: str) -> Iterator[str]:
    """Yield what is shown of a schedule: its steps, what it shows where, its picture and the same as text."""
    shown = cells[0]
    yield f"### Schedule {name}"
    load, *steps = shown.steps or ()
    yield f"{load[0].upper()}{load[1:]}. {'; '.join(steps)}."
    for anomaly in dict.fromkeys(cell.anomaly for cell in cells):
        rows: dict[str, list[str]] = {}
        for cell in sorted(cells, key=lambda cell: cell.binlog_type):
            if cell.anomaly is anomaly:
                rows.setdefault(cell.row, []).append(str(cell.binlog_type))
        yield f"*{ANOMALIES[anomaly][0]}*: {_together(rows)}."
    title = f"{shown.row}, binlog type {shown.binlog_type}"
    yield f"![{title}: {'; '.join(steps)}]({pictures}/{shown.name}.svg)"
    yield f"{title}:\n\n```text\n{text_of(shown)}```"


def _together(rows: Mapping[str, Sequence[str]]) -> str:
    """Return rows with their formats; those with the same formats stand together."""
    found: dict[tuple[str, ...], list[str]] = {}
    for row, formats in rows.items():
        found.setdefault(tuple(formats), []).append(row)
    return "; ".join(f"{', '.join(names)} (type {', '.join(formats)})" for formats, names in found.items())
