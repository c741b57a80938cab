"""
The fold without compilation, for functions that users write in Python: the slow path.

The kernels are Python functions before they are compiled. Here the same code runs as it stands, with one name
bound to something else: the rule of a single operation first asks the user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from numba.core.registry import CPUDispatcher

from conflict.columnar.kernels import arrivals, open_decisions, passes, rules, search
from conflict.columnar.kernels import fold as fold_module
from conflict.columnar.kernels.fold import Folded

__all__ = ["Decide", "interpreted_fold"]

# As `conflict.columnar.kernels.rules.decide_operation`, without the first three arguments.
Decide = Callable[..., tuple[int, int, int, int]]


def interpreted_fold(decides: Mapping[int, Decide]) -> Callable[..., Folded]:
    """
    Return `conflict.columnar.kernels.fold.fold` uncompiled.

    Args:
        decides: Rules of users' functions, by their number.
    """
    names: dict[str, Any] = {}
    for module in (rules, search, arrivals, open_decisions, passes, fold_module):
        names.update(vars(module))
    for name, value in list(names.items()):
        if isinstance(value, CPUDispatcher):
            names[name] = FunctionType(value.py_func.__code__, names, name)
    built_in = names["decide_operation"]

    def decide_operation(function: int, bits: int, secondary: bool, *rest: Any) -> tuple[int, ...]:
        decide = decides.get(int(function))
        if decide is None or secondary:
            return tuple(built_in(function, bits, secondary, *rest))
        return decide(*rest)

    names["decide_operation"] = decide_operation
    return FunctionType(fold_module.fold.__code__, names, "fold")
