"""
Policies of other replication products, as rows of the table of functions. Computes docs/compare.md, "Policies".

A policy is compared like NDB's functions and is in no `conflict_fn`: no server runs it.
"""

from __future__ import annotations

from conflict.rules.functions import Cell, FunctionSpec

__all__ = ["LAST_COMMIT", "LOWEST", "OVERWRITE"]

# Every change is applied, and nothing is a conflict: what a table without a function does.
OVERWRITE = "OVERWRITE"
# The change whose transaction committed last stays; the value compared is the moment of its commit.
LAST_COMMIT = FunctionSpec("LAST_COMMIT", "last_commit", Cell.AT_LEAST, Cell.AT_LEAST, Cell.AT_LEAST)
# The lowest value of a column stays.
LOWEST = FunctionSpec("LOWEST", "lowest", Cell.LESS, Cell.LESS, Cell.EQUAL)
