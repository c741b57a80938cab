"""
Which decision parted the clusters, for a row that ends different.

Columns that differ were last written by different operations. Where the other cluster rejected, ignored or never came
to one of them, that decision parted the row; where both were applied, they crossed, and the later one did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from conflict.explaining.sentences import verb
from conflict.explaining.story import End, Kind, StoryEvent
from conflict.explaining.telling import ALL_COLUMNS, Told
from conflict.rules.decision import Verdict

__all__ = ["parting_of"]


def parting_of(told: Told, ends: Mapping[str, End]) -> tuple[str, int | None]:
    """
    Return why a row ends different, and the number of the event that parted it.

    Args:
        told: The story.
        ends: How the row ends on each cluster; it ends different on two of them.
    """
    names = [name for name, end in ends.items() if end.known]
    one, other = next((names[0], name) for name in names[1:] if ends[name].differs_from(ends[names[0]]))
    columns = ends[one].differing_columns(ends[other])
    last = [_writer(told, name, columns) for name in (one, other)]
    found = [event for event in _decisions(told, (one, other), last) if not _applied(event)]
    parted = found[0] if found else _crossing(told, (one, other), last)
    where = (
        f"{_list(columns)} {'differs' if len(columns) == 1 else 'differ'}" if columns else "It is on one of them alone"
    )
    wrote = "; ".join(_wrote(told, name, number) for name, number in zip((one, other), last, strict=True))
    said = f"{where}. {wrote[0].upper()}{wrote[1:]}."
    if parted is None:
        return f"{said} The binlogs do not show what parted them.", None
    if found:
        return f"{said} Event {parted.number} parted them: on {parted.cluster}, {parted.sentence}.", parted.number
    return (
        f"{said} Both were applied, each after the other cluster's own change: they crossed. Event {parted.number} "
        f"parted them: on {parted.cluster}, {parted.sentence}."
    ), parted.number


def _writer(told: Told, cluster: str, columns: Sequence[str]) -> int | None:
    """Return the number of the last event on a cluster that wrote one of some columns, or the row as a whole."""
    writers = told.writers[cluster]
    numbers = [writers[name] for name in columns if name in writers]
    return max(numbers, default=None) if columns else writers.get(ALL_COLUMNS)


def _origin(told: Told, number: int) -> StoryEvent:
    """Return the event that brought about what another one wrote: the user's change, or the refresh."""
    event = told.events[number - 1]
    if event.kind is Kind.JUDGED and event.cause_number is not None:
        return told.events[event.cause_number - 1]
    return event


def _decisions(told: Told, clusters: Sequence[str], last: Sequence[int | None]) -> Iterator[StoryEvent]:
    """Yield what each cluster decided on the operation that last wrote the other one's row."""
    for here, number in zip(reversed(clusters), last, strict=True):
        if number is None:
            continue
        origin = _origin(told, number)
        for event in reversed(told.events):
            if event.cluster == here and event.cause_number == origin.number:
                yield event
                break


def _crossing(told: Told, clusters: Sequence[str], last: Sequence[int | None]) -> StoryEvent | None:
    decided = [event for event in _decisions(told, clusters, last) if event.kind is Kind.JUDGED]
    written = [told.events[number - 1] for number in last if number is not None]
    return max([*decided, *written], key=lambda event: event.number, default=None)


def _applied(event: StoryEvent) -> bool:
    return event.kind is Kind.HEARD or event.verdict == Verdict.APPLIED.name


def _wrote(told: Told, cluster: str, number: int | None) -> str:
    if number is None:
        return f"on {cluster} nothing in its log wrote that"
    origin = _origin(told, number)
    author = "its own" if origin.cluster == cluster else f"{origin.cluster}'s"
    what = "refresh" if origin.refresh else verb(origin.operation)
    at = f"event {number}" if origin.number == number else f"event {origin.number}, applied in event {number}"
    return f"on {cluster} {author} {what} came last ({at})"


def _list(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
