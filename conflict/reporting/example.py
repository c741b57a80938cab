"""
The example of a report: the story of a row that lost an update, or else of one with a conflict, as a picture.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from conflict.config.case import SCENARIO
from conflict.errors import ConflictError
from conflict.explaining.explainer import Explainer
from conflict.explaining.picture import story_svg
from conflict.explaining.row_changes import WantedRow
from conflict.operating.repairing.reading_lost import read_lost
from conflict.results.conflicts import ALL
from conflict.results.result import Result
from conflict.telling.part import Example
from ndb_formats.errors import FormatError
from ndb_formats.events.rows_event import Operation

_TRIED = 8  # rows, of which the one with the shortest story is shown
_MOST_BYTES = 1 << 30  # of binlogs, which are read for it


def example_of(result: Result, conflicts: pa.Table, source: str) -> Example | None:
    """
    Return the example of a result; None if it has no conflict and lost no update, or if it cannot be told.

    It cannot be told if the binlogs are not as they were, or are larger than 1 GiB in all; nor if the result has
    conflict functions of a user's own: a report runs no program that a result names.

    Args:
        result: The result, whose binlogs are read.
        conflicts: Its conflicts.
        source: The result, as it was given, for a command.
    """
    what, rows = _rows(result, conflicts)
    if not rows or not reads_binlogs(result):
        return None
    try:
        stories = Explainer.of_result(result).rows(rows[:_TRIED])
    except (ConflictError, FormatError, OSError):
        return None
    story = min(stories, key=lambda each: len(each.events))
    wide, narrow = (story_svg(story, narrow=each) for each in (False, True))
    return Example(f"An example: {what} of {story.title}", wide, narrow, story.command(source))


def _rows(result: Result, conflicts: pa.Table) -> tuple[str, list[WantedRow]]:
    """Return what the example shows, and rows that show it: rejected updates, or other lost changes, or conflicts."""
    lost = read_lost(result, ALL)
    rejected = pc.and_(pc.equal(lost["operation"], Operation.UPDATE_ROW.name), pc.is_valid(lost["cause"]))
    keys = result.run["configuration"]["primary_keys"]
    found = (("a lost update", lost.filter(rejected)), ("a lost change", lost), ("a conflict", conflicts))
    for what, changes in found:
        places = zip(changes["table"].to_pylist(), changes["identity"].to_pylist(), strict=True)
        rows = [place for place in dict.fromkeys(places) if keys.get(place[0])]
        if rows:
            return what, rows
    return "", []


def reads_binlogs(result: Result) -> bool:
    """Whether a report reads the binlogs of a result: if they are small, and all functions those of servers."""
    inputs = result.run.get("inputs") or {}
    text = inputs.get("text") or ""
    is_case = Path(inputs.get("run_file", "")).name == SCENARIO
    own = inputs.get("resolvers") or (not is_case and "conflict_function" in tomllib.loads(text))
    return not own and sum(file["bytes"] for file in inputs.get("files", ())) <= _MOST_BYTES
