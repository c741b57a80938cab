"""
Policies of other replication products, as rows of the table of functions. Computes docs/compare.md, "Policies".

A policy is compared like NDB's functions and is in no `conflict_fn`: no server runs it.
"""

from __future__ import annotations

from conflict.rules.functions import Cell, FunctionSpec

__all__ = ["BY_COMMIT_TIME", "FIRST_COMMIT", "LAST_COMMIT", "LOWEST", "OVERWRITE"]

# Every change is applied, and nothing is a conflict: what a table without a function does.
OVERWRITE = "OVERWRITE"
# The change whose transaction committed last stays; the value compared is the moment of its commit.
LAST_COMMIT = FunctionSpec("LAST_COMMIT", "last_commit", Cell.AT_LEAST, Cell.AT_LEAST, Cell.AT_LEAST)
# Of two changes that have not seen each other, the one whose transaction committed first stays.
FIRST_COMMIT = FunctionSpec(
    "FIRST_COMMIT", "first_commit", Cell.LESS_IF_UNSEEN, Cell.LESS_IF_UNSEEN, Cell.LESS_IF_UNSEEN
)
# The policies that compare moments of commits.
BY_COMMIT_TIME = {spec.name: spec for spec in (LAST_COMMIT, FIRST_COMMIT)}
# The lowest value of a column stays.
LOWEST = FunctionSpec("LOWEST", "lowest", Cell.LESS, Cell.LESS, Cell.EQUAL)
