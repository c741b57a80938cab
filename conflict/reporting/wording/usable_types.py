"""
Which binlog types a conflict function may be used with, as tables of a report say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from conflict.checking.deployment import Deployment, DeploymentPolicy, TableLogging
from conflict.checking.requirements import MARKS, example_function, example_table, mark, requirements
from conflict.rules.functions import FUNCTIONS, FunctionSpec
from conflict.telling.value import Table

__all__ = ["NO_FUNCTION", "types_usable_with", "usable_types_table", "usable_with"]

_TYPES = (2, 3, 6, 7, 8, 9)  # 0 depends on server options, 4 means the same as 6
_FITS = "ok"
_WORKS = "works, against the manual"
NO_FUNCTION = "no function"
_REFUSED = "the server does not create the table, no update can be judged, or the manual does not allow it"


def usable_types_table(functions: Iterable[str]) -> Iterator[Table]:
    """
    Yield which binlog types functions may be used with.

    Args:
        functions: Texts such as ``NDB$MAX(x)``; those that are no conflict function of NDB are left out.
    """
    specs = {each.name: each for each in FUNCTIONS}
    names = dict.fromkeys(name for each in functions if (name := _name(each)) in specs)
    rows = [[name, *(_cell(specs[name], each) for each in _TYPES)] for name in names]
    if not rows:
        return
    cells = {cell for row in rows for cell in row[1:]}
    marks = {**MARKS, "refused": _REFUSED}
    legend = [f"{name}: {meaning}" for name, meaning in marks.items() if any(name in cell.split() for cell in cells)]
    if _WORKS in cells:
        legend.append(
            f"{_WORKS}: every change can be judged, but the manual does not allow the function with this type"
        )
    headings = ("function", *(f"type {each}" for each in _TYPES))
    yield Table("Binlog types that the functions are usable with", headings, rows, note=f"{'. '.join(legend)}.")


@cache
def types_usable_with(function: str) -> tuple[int, ...]:
    """
    Return the binlog types in which a function can judge every change, and that the manual allows with it.

    Args:
        function: A text such as ``NDB$EPOCH() @A``; there are none for what is no conflict function of NDB.
    """
    specs = (each for each in FUNCTIONS if each.name == _name(function))
    return tuple(number for spec in specs for number in _TYPES if _cell(spec, number) == _FITS)


@cache
def usable_with(binlog_type: int) -> str:
    """Return the functions that can judge every change logged in a binlog type, and that the manual allows with it."""
    names = [each.name for each in FUNCTIONS if _cell(each, binlog_type) == _FITS]
    if len(names) == len(FUNCTIONS):
        return "every function"
    return ", ".join(names) or NO_FUNCTION


def _cell(spec: FunctionSpec, binlog_type: int) -> str:
    """Return what a function can judge under a type; a function that only the manual rules out there works."""
    deployment = Deployment(example_function(spec), example_table(), TableLogging(binlog_type))
    by_needs, by_manual = (
        mark(requirements(deployment, policy)) for policy in (DeploymentPolicy.NEEDS, DeploymentPolicy.MANUAL)
    )
    return by_needs if by_needs == by_manual else _WORKS if by_needs == _FITS else by_manual


def _name(function: str) -> str:
    """Return the name of a function, which may be given by table: the first one's."""
    return function.partition("(")[0].rpartition("=")[2]
