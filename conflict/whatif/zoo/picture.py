"""
A schedule as a picture of two lanes, as SVG.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.history.timeline import EpochApply, Transaction
from conflict.rules.decision import Verdict
from conflict.telling.lanes import Lane, LaneEvent, lanes_svg
from conflict.telling.value import Tone
from conflict.whatif.diverging.retelling import TakenStep, ending, timeline
from conflict.whatif.diverging.scope import NAMES
from conflict.whatif.diverging.steps import Commit, Load, SetBack
from conflict.whatif.zoo.cell import Cell


def picture_of(cell: Cell) -> str:
    """Return the picture: arrows go from the commits of an epoch to where it is applied."""
    scope, walk = cell.scope, cell.walk
    texts = {line.number: line.text for line in timeline(scope, walk)}
    start, ends = texts.pop(0), ending(scope, walk)
    lanes = [Lane(name, tuple(start.split("\n")), tuple(ends[name].split("\n"))) for name in NAMES]
    return lanes_svg(lanes, list(_events(walk, texts)), f"{cell.row}, binlog type {cell.binlog_type}") + "\n"


def _events(walk: list[TakenStep], texts: dict[int, str]) -> Iterator[LaneEvent]:
    rows: dict[tuple[int, int], list[int]] = {}  # by cluster and epoch, the steps that logged in it
    for row, each in enumerate(walk):
        if isinstance(each.step, Load):
            continue
        side = each.step.side
        causes: list[tuple[int, int]] = []
        for event in each.events:
            if isinstance(event.item, EpochApply):
                causes += [(1 - side, cause) for cause in rows.get((1 - side, event.item.foreign_epoch), ())]
            if isinstance(event.item, Transaction) or event.effects:
                rows.setdefault((side, event.item.epoch), []).append(row)
        yield LaneEvent(side, row, tuple(texts[row].split("; ")), tuple(dict.fromkeys(causes)), _tone(each))


def _tone(taken: TakenStep) -> Tone | None:
    """Return how good it is what happened in a step; None for what users do."""
    if isinstance(taken.step, Commit):
        return None
    if isinstance(taken.step, SetBack):
        return Tone.QUIET
    outcomes = [outcome for event in taken.events for outcome in event.outcomes]
    stops = any(event.stop is not None for event in taken.events)
    if stops or any(each.verdict is not Verdict.APPLIED for each in outcomes):
        return Tone.BAD
    return Tone.GOOD if outcomes else Tone.QUIET
