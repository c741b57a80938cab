"""
What a report answers where it is asked what a function costs in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from conflict.reporting.parts import Bytes, FunctionFigures, Headline, Topic
from conflict.reporting.wording.bytes_by_type import (
    amount_of_bytes,
    bytes_between,
    change_of_bytes,
    format_name,
)
from conflict.reporting.wording.usable_types import NO_FUNCTION, types_usable_with, usable_with
from conflict.shown_text import listed

__all__ = ["cost_column", "cost_findings", "cost_headline"]

_DAY = 86_400  # seconds
_QUESTION = "What does it cost in bytes?"


def cost_headline(functions: Sequence[str], sizes: Bytes) -> Headline:
    """
    Return what the log takes in the smallest binlog type that functions are usable with.

    Args:
        functions: The functions that it is about; none for every one.
        sizes: What row events take.
    """
    cost = _Cost(functions, sizes)
    if not cost.is_timed:
        return Headline(Topic.BYTES, _QUESTION, "", (_of_row_events(cost), *_rivals(cost)), (f"From {sizes.of}.",))
    about = "At least " if cost.is_lower else "About " if cost.scale is not None else ""
    under = f" under {listed(functions)}" if cost.is_usable else ""
    told = (
        f"{about}{cost.daily()} of binlog a day{under} in binlog type {cost.small}, for {sizes.of} at this load.",
        *_against_the_log(cost),
        *_by_server(cost),
        *_rivals(cost),
        *_compressed(cost),
    )
    return Headline(
        Topic.BYTES, _QUESTION, f"{'at least ' * cost.is_lower}{cost.daily()} a day", told, tuple(_setting(cost))
    )


def cost_column(functions: Sequence[str], sizes: Bytes) -> Iterator[FunctionFigures]:
    """Yield what the log takes a day under each function, in the smallest type that it is usable with, if known."""
    costs = {name: _Cost([name], sizes) for name in functions}
    cells = {
        name: f"{'≥' * each.is_lower}{each.daily()}, type {each.small}" for name, each in costs.items() if each.is_timed
    }
    cells = {name: cell for name, cell in cells.items() if costs[name].is_usable}
    if cells:
        yield FunctionFigures(Topic.BYTES, "binlog a day, in the smallest usable type", cells)


def cost_findings(sizes: Bytes) -> Iterator[str]:
    """Yield what besides the smallest type one must know: why bytes are a range, and whose rows were measured."""
    if any(low < high for low, high in sizes.bounds.values()):
        yield "A range: the log does not show whether statements also set columns to the values that they had."
    if sizes.lower:
        types = listed([f"type {name}" for name in sizes.bounds if name in sizes.lower])
        yield (
            f"At least: the log lacks values that {types} would log, and rows count without them. A log of type 7 has "
            "all values."
        )
    if sizes.rows:
        yield f"The log has {sizes.rows:,} row changes of {sizes.base_bytes / sizes.rows:.1f} bytes on average."
    if sizes.rows and sizes.logged is not None:
        users = sizes.logged.users
        yield (
            f"Of these, users made {users:,}; appliers logged the other {sizes.rows - users:,}, "
            "which they had applied, refreshed or reflected: one for each row of an applied epoch."
        )
    yield from sizes.also


@attrs.frozen
class _Cost:
    """What a log takes under some functions, all of which have the cost of the first one; none for every one."""

    functions: Sequence[str]
    sizes: Bytes

    @property
    def is_timed(self) -> bool:
        """Whether it is known what the whole log takes, and in which time."""
        return bool(self.sizes.seconds and self.sizes.other_bytes)

    @property
    def is_usable(self) -> bool:
        """Whether there is a type that the functions are usable with."""
        return bool(self._usable)

    @property
    def types(self) -> Sequence[str]:
        """The binlog types that the functions are usable with; if there are none, those that some function is."""
        some = [name for name in self.sizes.bounds if usable_with(int(name)) != NO_FUNCTION]
        return self._usable or some or list(self.sizes.bounds)

    @property
    def _usable(self) -> list[str]:
        known = [set(types) for each in self.functions if (types := types_usable_with(each))]
        return [name for name in self.sizes.bounds if known and all(int(name) in types for types in known)]

    @property
    def small(self) -> str:
        """The type that takes least for certain; if nothing is, the one with the least lower bound."""
        return min(self.types, key=lambda name: (name in self.sizes.lower, self.sizes.bounds[name][1]))

    @property
    def is_lower(self) -> bool:
        """Whether this type takes more than its bytes, by an amount that the log does not show."""
        return self.small in self.sizes.lower

    def between(self, name: str) -> str:
        """Return the bytes of row events in a type."""
        return f"{'at least ' * (name in self.sizes.lower)}{bytes_between(*self.sizes.bounds[name])}"

    @property
    def scale(self) -> float | None:
        """How many times as many rows the log has as it was recorded with; None if that is not known."""
        logged = self.sizes.logged
        return logged.scale(self.functions[0]) if logged is not None and self.functions else None

    def whole(self, name: str | None = None, bound: int = 1) -> float:
        """Return the bytes of the whole log, in a type; bound 0 is the least, 1 the most."""
        return (self.scale or 1.0) * self.sizes.bounds[name or self.small][bound] + self.sizes.other_bytes

    def daily(self, whole: float | None = None) -> str:
        """Return what a log of so many bytes takes a day; by default that in the smallest type."""
        return amount_of_bytes((self.whole() if whole is None else whole) / self.sizes.seconds * _DAY)


def _of_row_events(cost: _Cost) -> str:
    """Return what row events take, where it is not known what a whole log takes, or in which time."""
    sizes, small = cost.sizes, cost.small
    bounds, base = sizes.bounds[small], (sizes.base_bytes, sizes.base_bytes)
    if len(sizes.bounds) == 1:
        return (
            f"Only {format_name(small)} was tried: {cost.between(small)} bytes of row events; "
            "`ndb-conflict sizes` measures all types."
        )
    whose = (
        f"Binlog type {small}, which {listed(cost.functions)} can use,"
        if cost.is_usable
        else f"Of the binlog types, {small} (for {usable_with(int(small))})"
    )
    against = ""
    if sizes.base and bounds != base and not cost.is_lower:
        against = f" ({change_of_bytes(bounds, base)} against the {sizes.base_bytes:,} of {sizes.base})"
    least = "" if any(_rivals(cost)) else "least, "
    return f"{whose} takes {least}{cost.between(small)} bytes of row events{against}."


def _against_the_log(cost: _Cost) -> Iterator[str]:
    """Yield what the log takes as it was recorded, if that is something else."""
    sizes = cost.sizes
    recorded = sizes.base_bytes + sizes.other_bytes
    if not sizes.base_bytes or round(cost.whole()) == recorded:
        return
    how = [f"under {sizes.logged.configured}"] if sizes.logged is not None else []
    how += [f"in {sizes.base}"] if sizes.base != "the log" else []
    if cost.is_lower:
        yield f"As it was recorded{', ' * bool(how)}{' '.join(how)}, the log takes {cost.daily(recorded)} a day."
        return
    share = 100 * (cost.whole() / recorded - 1)
    yield (
        f"That is {abs(share):.1f} % {'less' if share < 0 else 'more'} than the {cost.daily(recorded)} of the log as "
        f"it was recorded{', ' if how else ''}{' '.join(how)}."
    )
    alone = sizes.bounds[cost.small][1] + sizes.other_bytes
    if sizes.logged is not None and cost.scale is not None and sizes.base_bytes not in sizes.bounds[cost.small]:
        yield f"Under {sizes.logged.configured}, type {cost.small} takes {cost.daily(alone)}."


def _by_server(cost: _Cost) -> Iterator[str]:
    """Yield what each server logs, if there are several."""
    servers = cost.sizes.servers
    if len(servers) > 1:
        together = sum(each[cost.small] for each in servers.values())
        daily = {name: cost.daily(cost.whole() * each[cost.small] / together) for name, each in sorted(servers.items())}
        parts = ", ".join(f"{size} on server {server}" for server, size in daily.items())
        yield f"By server{', at least' * cost.is_lower}: {parts}."


def _rivals(cost: _Cost) -> Iterator[str]:
    """Yield which types may be smaller than the one that is the smallest for certain."""
    bounds = cost.sizes.bounds
    for name in cost.types:
        if name != cost.small and (cost.is_lower or bounds[name][0] < bounds[cost.small][1]):
            size = cost.between(name)
            if cost.is_timed and name in cost.sizes.lower:
                size = f"at least {cost.daily(cost.whole(name, 0))}"
            elif cost.is_timed:
                size = f"{cost.daily(cost.whole(name, 0))} to {cost.daily(cost.whole(name))}"
            rival = format_name(name).capitalize()
            under = f" under {cost.functions[0]}" if cost.is_timed and cost.scale is not None else ""
            smaller = f"so it may be smaller than type {cost.small}: the log does not show which"
            yield f"{rival} takes {size}{under}, {smaller}."


def _compressed(cost: _Cost) -> Iterator[str]:
    """Yield what compression would leave of the log as it was recorded."""
    if cost.sizes.compressed:
        daily = cost.daily(cost.sizes.compressed)
        yield f"With compressed transactions, the log as it was recorded takes {daily} a day."


def _setting(cost: _Cost) -> Iterator[str]:
    """Yield what was measured, and how the rows of another function are known."""
    sizes, logged = cost.sizes, cost.sizes.logged
    rows = f"{sizes.rows:,} row changes of " if sizes.rows else ""
    yield (
        f"From {sizes.seconds:,} seconds of {sizes.of}: {rows}"
        f"{'at least ' * cost.is_lower}{sizes.bounds[cost.small][1]:,} bytes in type "
        f"{cost.small}, and {sizes.other_bytes:,} bytes of other events."
    )
    if logged is not None and cost.scale is not None and cost.functions[0] != logged.configured:
        now = logged.users + logged.by_appliers[cost.functions[0]]
        size = round(cost.whole() - sizes.other_bytes)
        yield f"Under {cost.functions[0]} there are {now:,} row changes, of {size:,} bytes if they are as long."
