"""
Policies of other replication products, as rows of the table of functions. Computes docs/compare.md, "Policies".

A policy is compared like NDB's functions and is in no `conflict_fn`: no server runs it.
"""

from __future__ import annotations

from conflict.rules.functions import Cell, FunctionSpec

__all__ = ["BY_COMMIT_TIME", "FIRST_COMMIT", "LAST_COMMIT", "LOWEST", "MEANINGS", "OVERWRITE"]

OVERWRITE = "OVERWRITE"
# The value compared is the moment of the commit.
LAST_COMMIT = FunctionSpec("LAST_COMMIT", "last_commit", Cell.AT_LEAST, Cell.AT_LEAST, Cell.AT_LEAST)
FIRST_COMMIT = FunctionSpec(
    "FIRST_COMMIT", "first_commit", Cell.LESS_IF_UNSEEN, Cell.LESS_IF_UNSEEN, Cell.LESS_IF_UNSEEN
)
# The policies that compare moments of commits.
BY_COMMIT_TIME = {spec.name: spec for spec in (LAST_COMMIT, FIRST_COMMIT)}
LOWEST = FunctionSpec("LOWEST", "lowest", Cell.LESS, Cell.LESS, Cell.EQUAL)
# What each does, in a line.
MEANINGS = {
    OVERWRITE: "every change is applied, as to a table without a conflict function",
    FIRST_COMMIT.name: "of two changes that have not seen each other, the one that committed first stays",
    LAST_COMMIT.name: "the change that committed last stays",
    LOWEST.name: "the change with the lowest value of the column stays",
}
