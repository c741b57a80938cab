"""
Users' functions to the workers.

A task holds the functions that it uses. Functions of an installed module travel by name; a user's module need not be
on the workers, so its functions travel with their code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from pyspark import cloudpickle

from conflict.rules.functions import FunctionSpec
from conflict.rules.user_policies import CheckedDecide

__all__ = ["ship_by_value"]


def ship_by_value(functions: Iterable[FunctionSpec]) -> None:
    """
    See to it that tasks pickled from now on carry users' functions with their code.

    Only the module that a function is written in goes with it; what that module imports must be on the workers.
    """
    for spec in functions:
        if isinstance(spec.decide, CheckedDecide):
            module = sys.modules.get(spec.decide.rule.__module__)
            if module is not None and module.__name__ != "__main__":
                cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]  # pyspark ships it untyped
