"""
Compares what appliers do to a bucket's rows with what their binlogs show.

Computes `compared_with_binlogs` and `contradicted_by_binlogs` of docs/run-file.md, "run.json".
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import attrs
import numpy as np

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int32, Int64, UInt64, each_read_only, read_only
from conflict.columnar.kernels.effects import DecidedRows, SentRows, ShownRows, compare, in_order, touched_rows
from conflict.history.reconcile import MAX_CONTRADICTIONS

__all__ = ["Differing", "compare_effects"]

# Number of the applier, own epoch and group of an epoch apply.
Applied = tuple[int, int, int]


@attrs.frozen
class Differing:
    """
    How the effects of both appliers compare with what their binlogs show.

    Attributes:
        compared: Number of rows, per epoch apply, that either has.
        contradicted: Number of those that differ.
        applies: The epoch applies that differ, the first `MAX_CONTRADICTIONS` + 1 of each applier: with more, nothing
            is explained.
    """

    compared: int
    contradicted: int
    applies: AbstractSet[Applied]


def compare_effects(result: BucketResult, *, with_applies: bool) -> Differing:
    """
    Compare the effects of both appliers with what their binlogs show.

    Args:
        result: A decided bucket.
        with_applies: Return which epoch applies differ too.
    """
    compared = contradicted = 0
    applies: set[Applied] = set()
    for number in range(len(result.clusters)):
        rows, epochs, groups, keys = _compare(result, number)
        compared += rows
        contradicted += len(keys)
        if with_applies:
            applies |= _differing_applies(number, epochs, groups)
    return Differing(compared, contradicted, applies)


def _compare(result: BucketResult, number: int) -> tuple[int, UInt64, Int32, Int64]:
    """Return the number of an applier's rows that were compared, and epoch, group and key of those that differ."""
    decisions, logged, applies = result.folded.decisions, result.folded.logged, result.applies
    keys = len(result.bucket.key_table)
    mine = np.flatnonzero(logged.refresh & (logged.cluster == number))
    decided = DecidedRows(*each_read_only(*(getattr(decisions, name) for name in DecidedRows._fields)))
    sent = SentRows(*each_read_only(*(getattr(logged, name)[mine] for name in SentRows._fields)))
    apply, key, effect = touched_rows(number, read_only(applies.applier), decided, sent, keys)
    found = ShownRows(*each_read_only(applies.epoch[apply], applies.group[apply], key, effect))
    shown = ShownRows(*each_read_only(*_shown(result, number)))
    rows, epochs, groups, differing = compare(found, apply, shown, keys)
    return rows, epochs, groups, differing


def _shown(result: BucketResult, number: int) -> list[np.ndarray]:
    """Return epoch, group, key and effect of the rows that an applier touched by its binlog, in order."""
    names = ("epoch", "group", "key", "effect")
    result.bucket.consequences[number].read(names)
    shown = [result.bucket.consequences[number].array(name) for name in names]
    if in_order(read_only(shown[0]), read_only(shown[1])):
        return shown
    order = np.lexsort((shown[1], shown[0]))
    return [column[order] for column in shown]


def _differing_applies(number: int, epochs: UInt64, groups: Int32) -> set[Applied]:
    """Return the first epoch applies of an applier that differ, given epoch and group of differing rows."""
    found: set[Applied] = set()
    for epoch, group in zip(epochs.tolist(), groups.tolist(), strict=True):
        found.add((number, epoch, group))
        if len(found) > MAX_CONTRADICTIONS:
            break
    return found
