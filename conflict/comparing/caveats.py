"""
What speaks against deploying a pair: no NDB server has its policy, or the manual advises against it in its format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from conflict.comparing.figures import NOT_OFFERED
from conflict.comparing.pairs import Pair, function_on
from conflict.compatibility.deployment import Deployment, Policy, TableLogging
from conflict.compatibility.reasons import ReasonKind, reasons_of
from conflict.rules.functions import FUNCTIONS
from conflict.rules.table_setup import TableSetup
from ndb_formats.rules.update_format import BINLOG_TYPES, effective_format

__all__ = ["caveat_of"]


def caveat_of(pair: Pair, by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> str | None:
    """Return what speaks against a pair; None if nothing does."""
    policy = pair.policy
    specs = policy.specs
    if not policy.configured and (not specs or not specs <= set(FUNCTIONS)):
        return NOT_OFFERED
    return next(_advice(pair, by_cluster), None)


def _advice(pair: Pair, by_cluster: Mapping[str, Mapping[str, TableSetup]]) -> Iterator[str]:
    """Yield what the manual says against a function on a table in the format in which the table is logged."""
    for cluster, setups in by_cluster.items():
        for name, setup in setups.items():
            setup = _tried(pair, cluster, name, setup)  # noqa: PLW2901  # as it is under the pair
            number = next((row.number for row in reversed(BINLOG_TYPES) if row.format == setup.format), None)
            if setup.function is None or number is None:
                continue
            deployment = Deployment(setup.function, setup.table, TableLogging(number))
            for reason in reasons_of(deployment, Policy.MANUAL):
                if reason.kind is ReasonKind.POLICY:
                    yield f"advised against: {reason.message}"


def _tried(pair: Pair, cluster: str, table: str, setup: TableSetup) -> TableSetup:
    """Return a table with the function and the format of a pair, if it has a function."""
    wanted = setup.format if pair.binlog_type is None else effective_format(pair.binlog_type)
    function = setup.function if pair.policy.configured else function_on(cluster, pair.policy, table)
    return attrs.evolve(setup, function=function, format=wanted)
