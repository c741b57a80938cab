"""
What a report answers where it is asked what a function costs in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conflict.reporting.bytes_by_type import bytes_between, change_of_bytes, format_name, listed
from conflict.reporting.parts import Bytes
from conflict.reporting.usable_types import NO_FUNCTION, types_usable_with, usable_with

__all__ = ["cost_answer"]


def cost_answer(functions: Sequence[str], sizes: Bytes, *, least: bool = True) -> Iterator[str]:
    """
    Yield what the binlog types take that functions are usable with, the smallest first.

    Args:
        functions: The functions that it is about; none for every one.
        sizes: What row events take.
        least: Whether these are the functions that lose least.
    """
    several = len(sizes.bounds) > 1
    yield (
        _smallest(functions, sizes, least)
        if several
        else (f"Only binlog type {next(iter(sizes.bounds))} was tried; the command `sizes` measures all.")
    )
    if sizes.base_bytes:
        each = f" ({sizes.base_bytes / sizes.rows:.1f} for each row change)" if sizes.rows else ""
        against = " % is against these." if several else ""
        yield f"Row events take {sizes.base_bytes:,} bytes{each} {sizes.base_words}.{against}"
    ranges = any(low < high for low, high in sizes.bounds.values())
    meaning = " A range means: the log does not show which columns statements set." if ranges else ""
    yield f"These are bytes of row events before compression: of {sizes.of}.{meaning}"
    yield from sizes.also


def _smallest(functions: Sequence[str], sizes: Bytes, least: bool) -> str:
    """Return which types take least among those that the functions are usable with; if there are none, of all."""
    known = [set(types) for each in functions if (types := types_usable_with(each))]
    usable = [name for name in sizes.bounds if known and all(int(name) in types for types in known)]
    names = usable or [name for name in sizes.bounds if usable_with(int(name)) != NO_FUNCTION] or list(sizes.bounds)
    small = min(names, key=lambda name: sizes.bounds[name][1])
    rivals = [name for name in names if name != small and sizes.bounds[name][0] < sizes.bounds[small][1]]
    parts = [_words(name, sizes, of_all=not usable) for name in (small, *rivals)]
    among = ""
    if known:
        lose = f", which {'lose' if len(functions) > 1 else 'loses'} least," if least else ""
        can = f"binlog type {listed(usable, 'or')}" if usable else "none of the binlog types here"
        among = f"{listed(functions)}{lose} can be used with {can}. "
    of_them = "of them" if usable else "of the binlog types"
    if rivals:
        return f"{among}Which {of_them} takes least is not certain: {'; '.join(parts)}."
    return f"{among}Least {of_them} takes {parts[0]}."


def _words(name: str, sizes: Bytes, *, of_all: bool) -> str:
    """Return a type with its bytes, in percent against the base, and for each row change; of all with its functions."""
    bounds, base = sizes.bounds[name], sizes.base_bytes
    notes = [change_of_bytes(bounds, (base, base))] if base else []
    if sizes.rows:
        each = dict.fromkeys(f"{bound / sizes.rows:.1f}" for bound in bounds)
        notes.append(f"{' to '.join(each)} for each row change")
    more = f" ({', '.join(notes)})" if notes else ""
    whose = f", for {usable_with(int(name))}" if of_all else ""
    return f"{format_name(name)}{whose}: {bytes_between(*bounds)} bytes{more}"
