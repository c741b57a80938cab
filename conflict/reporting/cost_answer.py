"""
What a report answers where it is asked what a function costs in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conflict.reporting.bytes_by_type import bytes_between, change_of_bytes, format_name, listed
from conflict.reporting.parts import Bytes, Headline, Topic
from conflict.reporting.usable_types import NO_FUNCTION, types_usable_with, usable_with

__all__ = ["cost_findings", "cost_headline"]


def cost_headline(functions: Sequence[str], sizes: Bytes) -> Headline:
    """
    Return which binlog type takes least among those that functions are usable with, and against which log.

    Args:
        functions: The functions that it is about; none for every one.
        sizes: What row events take.
    """
    return Headline(Topic.BYTES, "Bytes", (_least(functions, sizes),))


def cost_findings(functions: Sequence[str], sizes: Bytes) -> Iterator[str]:
    """Yield what besides the smallest type one must know: which may be smaller, and whose rows were measured."""
    names, _ = _candidates(functions, sizes)
    small = _smallest(names, sizes)
    for name in _rivals(names, sizes):
        size = bytes_between(*sizes.bounds[name])
        yield f"{format_name(name).capitalize()} takes {size} bytes, perhaps less than {format_name(small)}."
    if any(low < high for low, high in sizes.bounds.values()):
        yield "A range: the log does not show whether statements also set columns to the values that they had."
    if sizes.rows:
        yield f"The log has {sizes.rows:,} row changes of {sizes.base_bytes / sizes.rows:.1f} bytes on average."
    if sizes.rows and sizes.users:
        yield (
            f"Of these, users made {sizes.users:,}; appliers logged the other {sizes.rows - sizes.users:,}, "
            "which they had applied, refreshed or reflected."
        )
    yield "Bytes are those of row events before compression."
    yield from sizes.also


def _candidates(functions: Sequence[str], sizes: Bytes) -> tuple[Sequence[str], bool]:
    """Return the binlog types that functions are usable with, and True; if there are none, others, and False."""
    known = [set(types) for each in functions if (types := types_usable_with(each))]
    usable = [name for name in sizes.bounds if known and all(int(name) in types for types in known)]
    some = [name for name in sizes.bounds if usable_with(int(name)) != NO_FUNCTION]
    return usable or some or list(sizes.bounds), bool(usable)


def _smallest(names: Sequence[str], sizes: Bytes) -> str:
    return min(names, key=lambda name: sizes.bounds[name][1])


def _rivals(names: Sequence[str], sizes: Bytes) -> list[str]:
    """Return the types that may be smaller than the one that is the smallest for certain."""
    small = _smallest(names, sizes)
    return [name for name in names if name != small and sizes.bounds[name][0] < sizes.bounds[small][1]]


def _least(functions: Sequence[str], sizes: Bytes) -> str:
    names, usable = _candidates(functions, sizes)
    small = _smallest(names, sizes)
    bounds, base = sizes.bounds[small], (sizes.base_bytes, sizes.base_bytes)
    if len(sizes.bounds) == 1:
        return (
            f"Only {format_name(small)} was tried: {bytes_between(*bounds)} bytes of row events in {sizes.of}; "
            "`ndb-conflict sizes` measures all types."
        )
    whose = (
        f"Binlog type {small}, which {listed(functions)} can use,"
        if usable
        else f"Of the binlog types, {small} (for {usable_with(int(small))})"
    )
    against = f" ({change_of_bytes(bounds, base)} against {sizes.base})" if sizes.base and bounds != base else ""
    least = "" if _rivals(names, sizes) else "least, "
    return f"{whose} takes {least}{bytes_between(*bounds)} bytes of row events{against}, in {sizes.of}."
