"""
When clusters began to differ: the first change after which a row that ends different was different.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from conflict.explaining.events import EventKind, StoryEvent
from conflict.explaining.explainer import Explainer
from conflict.explaining.story import Story, StoryEnd

_MOST_ROWS = 1000  # whose stories are told: each is followed change by change
_MOST_FINAL_ROWS = 1_000_000  # of a cluster, in tables with rows that differ


@attrs.frozen
class Beginning:
    """
    When rows that end different began to differ.

    Attributes:
        differing: How many rows end different; None if that is not known.
        looked_at: How many of them were followed: of tables with a primary key, up to a thousand.
        story: The story of the row that was different first; None if nothing shows it.
        event: The event after which it was; None likewise.
        certain: Whether the row is known to have been the same before. Else it may have differed already.
    """

    differing: int | None
    looked_at: int = 0
    story: Story | None = None
    event: StoryEvent | None = None
    certain: bool = True

    def document(self) -> dict[str, Any]:
        """Return the same as a document. The time is by the clock of the cluster that is named."""
        found: dict[str, Any] = {"differing_rows": self.differing, "looked_at": self.looked_at, "first": None}
        story, event = self.story, self.event
        if story is not None and event is not None:
            place = event.place
            found["first"] = {
                "time": None if event.time is None else event.time.isoformat(),
                "cluster": event.cluster,
                "epoch": event.epoch,
                "table": story.table,
                "key": story.key,
                "sentence": event.sentence,
                "file": None if place is None else place.file,
                "position": None if place is None else place.position,
                "certain": self.certain,
            }
        return found


def beginning_of(explainer: Explainer) -> Beginning:
    """
    Return when the rows of a result that end different began to differ.

    Raises:
        HistoryError: A binlog has changed since the result was made.
    """
    result = explainer.result
    counts = result.run["differing_rows"]
    total = None if None in counts.values() else sum(counts.values())
    differing = {table for table, count in counts.items() if count}
    final = [sum(count for table, count in own.items() if table in differing) for own in result.run["rows"].values()]
    if not differing or not result.run["final_rows"] or max(final, default=0) > _MOST_FINAL_ROWS:
        return Beginning(total)
    stories = explainer.differences(most=_MOST_ROWS)
    empty = not explainer.starts
    found = [(story, *begun) for story in stories if (begun := _begun(story, empty=empty)) is not None]
    timed = [each for each in found if each[1].time is not None]
    if not timed:
        return Beginning(total, len(stories))
    story, event, certain = min(timed, key=lambda each: each[1].time or 0)
    return Beginning(total, len(stories), story, event, certain)


def _begun(story: Story, *, empty: bool) -> tuple[StoryEvent, bool] | None:
    """
    Return the event after which a row stayed different, and whether it was the same before.

    Args:
        story: Its story.
        empty: Whether no cluster had the row before.
    """
    ends: dict[str, StoryEnd] = {name: StoryEnd(None, known=empty) for name in story.ends}
    begun, certain = None, empty
    for event in story.events:
        if event.kind in (EventKind.HEARD, EventKind.DEFINED):
            continue
        ends[event.cluster] = StoryEnd(event.row, known=event.row_known)
        if _are_same(list(ends.values())):
            begun, certain = None, True
        elif begun is None:
            begun = event
    return None if begun is None else (begun, certain)


def _are_same(ends: Sequence[StoryEnd]) -> bool:
    return all(end.known for end in ends) and not any(end.differs_from(ends[0]) for end in ends)
