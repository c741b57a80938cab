"""
What is told of all rows that end different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.explaining.events import row_words
from conflict.explaining.story import Story
from conflict.results.doubts import Doubt, alarms_of, warnings_of
from conflict.telling.shown_text import counted
from conflict.telling.value import Entry, Listing, Telling


def tell_differences(
    stories: Sequence[Story],
    doubts: Sequence[Doubt],
    without_key: Mapping[str, int],
    not_known: Sequence[str],
    *,
    table: str | None,
    top: int,
    run: str,
) -> Telling:
    """
    Return what parted the rows that end different.

    Args:
        stories: Their stories.
        doubts: What makes the result doubtful.
        without_key: How many rows differ of each table without a primary key.
        not_known: The tables of which more rows may differ.
        table: The table that was asked for, if one was.
        top: How many to tell.
        run: The result, as it was given.
    """
    rows = "rows with a primary key" if table is None else f"rows of {table}"
    headline = f"{'No known' if not_known else 'All'} {rows} end {'different' if not_known else 'the same'}."
    if stories:
        ends = "ends" if len(stories) == 1 else "end"
        headline = f"{counted(len(stories), 'row')} with a primary key {ends} different."
    left = len(stories) - top
    no_key = "has no primary key, so nothing tells which changes are of one row; rows that differ:"
    return Telling(
        "Rows that end different",
        headline,
        [f"and {counted(left, 'row')} more; --top shows more of them, --json FILE all."] if left > 0 else [],
        alarms=alarms_of(doubts),
        warnings=(
            *warnings_of(doubts),
            *(f"{name} {no_key} {count:,}." for name, count in without_key.items()),
            *(
                [f"Not all rows at the end are known of {', '.join(not_known)}; more may end different there."]
                if not_known
                else []
            ),
        ),
        listings=tuple(Listing(f"{each.table} {each.key}", tuple(_parted(each))) for each in stories[:top]),
        commands=[("The whole story of a row:", stories[0].command(run))] if stories else [],
    )


def _parted(story: Story) -> Iterator[Entry]:
    ends = [f"{name}: {row_words(end.row) if end.known else 'not known'}" for name, end in story.ends.items()]
    yield Entry("", "At the end:", [*ends, story.parting])
    yield from story.entries([story.event(number) for number in story.chosen], brief=True)


def differences_json(stories: Sequence[Story], doubts: Sequence[Doubt], not_known: Sequence[str]) -> dict[str, Any]:
    """Return the stories of rows that end different as a document."""
    said = [str(each) for each in doubts]
    return {
        "rows": len(stories),
        "doubts": said,
        "not_known": list(not_known),
        "differences": [story.to_json() for story in stories],
    }
