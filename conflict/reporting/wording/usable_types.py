"""
Which binlog types a conflict function may be used with.
"""

from __future__ import annotations

from functools import cache

from conflict.checking.deployment import Deployment, DeploymentPolicy, TableLogging
from conflict.checking.requirements import example_function, example_table, mark, requirements
from conflict.rules.functions import FUNCTIONS, FunctionSpec

__all__ = ["types_usable_with"]

_TYPES = (2, 3, 6, 7, 8, 9)  # 0 depends on server options, 4 means the same as 6
_FITS = "ok"


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
