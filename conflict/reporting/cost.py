"""
What a report answers where it is asked what a function costs in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import attrs

from conflict.checking.deployment import Deployment, TableLogging
from conflict.checking.requirements import example_function, example_table, mark, requirements
from conflict.config.arguments import DeploymentPolicy
from conflict.rules.functions import FUNCTIONS, FunctionSpec
from conflict.telling.bytes_by_type import amount_of_bytes, format_name
from conflict.telling.part import Bytes, FunctionFigures, Headline, Topic
from conflict.telling.shown_text import counted, listed
from conflict.telling.value import Table

_DAY = 86_400  # seconds
_TYPES = (2, 3, 6, 7, 8, 9)  # 0 depends on server options, 4 means the same as 6
_FITS = "ok"
_QUESTION = "What does it cost in bytes?"


def cost_headline(functions: Sequence[str], sizes: Bytes) -> Headline:
    """
    Return what the log takes in the smallest binlog type that functions are usable with.

    Args:
        functions: The functions that it is about; none for every one.
        sizes: What row events take.
    """
    cost = _Cost(functions, sizes)
    whose = listed(functions) if cost.is_usable else "some function"
    told = [f"In binlog type {cost.small}, the smallest for certain that {whose} can use."]
    if len(sizes.bounds) == 1:
        told = [f"Only type {cost.small} was tried; `ndb-conflict sizes` measures all types."]
    if sizes.base_bytes:
        recorded = cost.amount(sizes.base_bytes, sizes.base_bytes + sizes.other_bytes)
        under = f" under {sizes.logged.configured}" if sizes.logged is not None else ""
        told.append(f"As it was recorded{under}{f', in {sizes.base}' * (sizes.base != 'the log')}: {recorded}.")
    bound = "at least " if cost.is_lower else ""
    answer = f"{bound}{cost.amount(sizes.bounds[cost.small][1], cost.whole())}"
    return Headline(Topic.BYTES, _QUESTION, answer, tuple(told), (_setting(cost),))


def cost_table(functions: Sequence[str], sizes: Bytes) -> Iterator[Table]:
    """Yield what the log takes a day in each type that functions are usable with, in all and by server, if known."""
    cost = _Cost(functions, sizes)
    if not cost.is_timed:
        return
    servers = sorted(sizes.servers) if len(sizes.servers) > 1 else []
    together = {name: sum(each[name] for each in sizes.servers.values()) for name in cost.types if servers}
    rows: list[list[str | None]] = []
    for name in cost.types:
        ends = dict.fromkeys(cost.daily(cost.whole(name, end)) for end in (0, 1))
        parts = (sizes.servers[each][name] / (together[name] or 1) for each in servers)
        bound = "≥" * (name in sizes.lower)
        own = (f"{bound}{cost.daily(part * cost.whole(name))}" for part in parts)
        rows.append([format_name(name), f"{bound}{' to '.join(ends)}", *own])
    marked = list(cost.types).index(cost.small), None
    recorded = {"as recorded": sizes.base_bytes + sizes.other_bytes, "as recorded, compressed": sizes.compressed}
    rows += [[name, cost.daily(size), *[None] * len(servers)] for name, size in recorded.items() if size]
    under = f" under {cost.functions[0]}" if cost.scale is not None else ""
    headings = ("", "whole log", *(f"server {each}" for each in servers))
    yield Table(f"Binlog a day{under}", headings, rows, marked, "* the smallest for certain.")


def cost_column(functions: Sequence[str], sizes: Bytes) -> Iterator[FunctionFigures]:
    """Yield what the log takes a day under each function, in the smallest type that it is usable with, if known."""
    costs = {name: _Cost([name], sizes) for name in functions}
    cells = {
        name: f"{'≥' * each.is_lower}{each.daily()}, type {each.small}" for name, each in costs.items() if each.is_timed
    }
    cells = {name: cell for name, cell in cells.items() if costs[name].is_usable}
    if cells:
        yield FunctionFigures(Topic.BYTES, "binlog a day, in the smallest usable type", cells)


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
        usable = {number for spec in FUNCTIONS for number in types_usable_with(spec.name)}
        some = [name for name in self.sizes.bounds if int(name) in usable]
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

    def amount(self, rows: int, whole: float) -> str:
        """Return what so many bytes of row events are: a whole log a day, or themselves if that is not known."""
        return f"{self.daily(whole)} a day" if self.is_timed else f"{rows:,} bytes of row events"


def _setting(cost: _Cost) -> str:
    """Return what was measured, and whose rows they are."""
    sizes, logged = cost.sizes, cost.sizes.logged
    seconds = f"{sizes.seconds:,} seconds of " if sizes.seconds else ""
    rows = f": {counted(sizes.rows, 'row change')}" if sizes.rows else ""
    users = f", {logged.users:,} of them by users" if sizes.rows and logged is not None else ""
    scaled = cost.scale is not None and logged is not None and cost.functions[0] != logged.configured
    other = "; rows that appliers log under another function are taken to be as long" if scaled else ""
    return f"From {seconds}{sizes.of}{rows}{users}{other}."


@cache
def types_usable_with(function: str) -> tuple[int, ...]:
    """
    Return the binlog types in which a function can judge every change, and that the manual allows with it.

    Args:
        function: A text such as ``NDB$EPOCH() @A``; there are none for what is no conflict function of NDB.
    """
    specs = (each for each in FUNCTIONS if each.name == _name(function))
    return tuple(number for spec in specs for number in _TYPES if _fits(spec, number))


def _fits(spec: FunctionSpec, binlog_type: int) -> bool:
    """Whether a function can judge every change in a type, and the manual allows it."""
    deployment = Deployment(example_function(spec), example_table(), TableLogging(binlog_type))
    return mark(requirements(deployment, DeploymentPolicy.MANUAL)) == _FITS


def _name(function: str) -> str:
    """Return the name of a function, which may be given by table: the first one's."""
    return function.partition("(")[0].rpartition("=")[2]
