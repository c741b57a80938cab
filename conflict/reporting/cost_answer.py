"""
What a report answers where it is asked what a function costs in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conflict.reporting.bytes_by_type import amount_of_bytes, bytes_between, change_of_bytes, format_name, listed
from conflict.reporting.parts import Bytes, Headline, Topic
from conflict.reporting.usable_types import NO_FUNCTION, types_usable_with, usable_with
from conflict.shown_text import counted

__all__ = ["cost_findings", "cost_headline"]

_DAY = 86_400  # seconds


def cost_headline(functions: Sequence[str], sizes: Bytes) -> Headline:
    """
    Return which binlog type takes least among those that functions are usable with, what the whole log then takes.

    Args:
        functions: The functions that it is about; none for every one.
        sizes: What row events take.
    """
    names, _ = _candidates(functions, sizes)
    small = _smallest(names, sizes)
    told = (
        _least(functions, sizes),
        *_rivals(names, sizes),
        *_whole_log(small, sizes),
        *_sent_back(functions, small, sizes),
    )
    left = f", as {sizes.left_by} left it" if sizes.left_by else ""
    return Headline(Topic.BYTES, "Bytes", told, (f"From {sizes.of}{left}; before compression.",))


def cost_findings(sizes: Bytes) -> Iterator[str]:
    """Yield what besides the smallest type one must know: why bytes are a range, and whose rows were measured."""
    if any(low < high for low, high in sizes.bounds.values()):
        yield "A range: the log does not show whether statements also set columns to the values that they had."
    if sizes.rows:
        yield f"The log has {sizes.rows:,} row changes of {sizes.base_bytes / sizes.rows:.1f} bytes on average."
    if sizes.rows and sizes.users:
        yield (
            f"Of these, users made {sizes.users:,}; appliers logged the other {sizes.rows - sizes.users:,}, "
            "which they had applied, refreshed or reflected."
        )
    yield from sizes.also


def _candidates(functions: Sequence[str], sizes: Bytes) -> tuple[Sequence[str], bool]:
    """Return the binlog types that functions are usable with, and True; if there are none, others, and False."""
    known = [set(types) for each in functions if (types := types_usable_with(each))]
    usable = [name for name in sizes.bounds if known and all(int(name) in types for types in known)]
    some = [name for name in sizes.bounds if usable_with(int(name)) != NO_FUNCTION]
    return usable or some or list(sizes.bounds), bool(usable)


def _smallest(names: Sequence[str], sizes: Bytes) -> str:
    return min(names, key=lambda name: sizes.bounds[name][1])


def _rivals(names: Sequence[str], sizes: Bytes) -> Iterator[str]:
    """Yield which types may be smaller than the one that is the smallest for certain."""
    small = _smallest(names, sizes)
    for name in names:
        if name != small and sizes.bounds[name][0] < sizes.bounds[small][1]:
            size = bytes_between(*sizes.bounds[name])
            rival = format_name(name).capitalize()
            yield f"{rival} takes {size}, so it may be smaller than type {small}: the log does not show which."


def _whole_log(small: str, sizes: Bytes) -> Iterator[str]:
    """Yield what the log takes with all its events, and how much that is in a second and in a day."""
    if not sizes.other_bytes:
        return
    whole = sizes.bounds[small][1] + sizes.other_bytes
    rate = whole / sizes.seconds if sizes.seconds else 0
    over = (
        f" in {sizes.seconds:,} seconds: {amount_of_bytes(rate)} a second, or {amount_of_bytes(rate * _DAY)} a day "
        "at this load"
        if rate
        else ""
    )
    yield f"With {sizes.other_bytes:,} bytes of other events, {sizes.of} takes {whole:,} bytes{over}."


def _sent_back(functions: Sequence[str], small: str, sizes: Bytes) -> Iterator[str]:
    """Yield about how many bytes the rows are that the best function sends back, against those in the log."""
    if sizes.sent is None or not functions:
        return
    now, then = sizes.sent
    size = ""
    if sizes.rows and now != then:
        row = sizes.bounds[small][1] / sizes.rows
        more = "less" if now < then else "more"
        size = f": about {amount_of_bytes(abs(now - then) * row)} {more} on each cluster that logs them"
    yield f"{functions[0]} would send back {counted(now, 'row')}, where the log has {then:,}{size}."


def _least(functions: Sequence[str], sizes: Bytes) -> str:
    names, usable = _candidates(functions, sizes)
    small = _smallest(names, sizes)
    bounds, base = sizes.bounds[small], (sizes.base_bytes, sizes.base_bytes)
    if len(sizes.bounds) == 1:
        return (
            f"Only {format_name(small)} was tried: {bytes_between(*bounds)} bytes of row events; "
            "`ndb-conflict sizes` measures all types."
        )
    whose = (
        f"Binlog type {small}, which {listed(functions)} can use,"
        if usable
        else f"Of the binlog types, {small} (for {usable_with(int(small))})"
    )
    change = change_of_bytes(bounds, base)
    against = f" ({change} against the {sizes.base_bytes:,} of {sizes.base})" if sizes.base and bounds != base else ""
    least = "" if any(_rivals(names, sizes)) else "least, "
    return f"{whose} takes {least}{bytes_between(*bounds)} bytes of row events{against}."
