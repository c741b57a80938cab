"""
Rows of a bucket of which binlogs show other effects than were derived. Computes docs/result.md, "Contradictions".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.output.effects import DifferingRows
from conflict.history.effects import Effect
from conflict.results.contradictions import CONTRADICTIONS, OTHER_VALUES, kind_text

__all__ = ["contradictions_table"]

_MASKS = 1 << (max(Effect) + 1)  # effects as bits, bit n for effect n


def contradictions_table(result: BucketResult, rows: DifferingRows) -> tuple[pa.Table, dict[str, dict[str, int]]]:
    """Return the contradictions of one applier's work as `CONTRADICTIONS`, and how many of each kind per table."""
    # Few kinds stand for many rows.
    coded = (result.bucket.key_table[rows.key].astype(np.int64) * _MASKS + rows.derived) * _MASKS + rows.shown
    numbers = np.bincount(coded)
    kinds = np.flatnonzero(numbers)
    place_of = np.zeros(len(numbers), np.int64)
    place_of[kinds] = np.arange(len(kinds))
    of_each = pa.array(place_of[coded])
    texts = [_texts(result, *kind) for kind in _decoded(kinds)]
    counts: dict[str, dict[str, int]] = {}
    for (table, derived, shown), number in zip(texts, numbers[kinds].tolist(), strict=True):
        counts.setdefault(table, {})[kind_text(derived, shown)] = number
    table, derived, shown = (pa.array([text[place] for text in texts], pa.string()).take(of_each) for place in range(3))
    keys = result.bucket.key_texts.take(pa.array(rows.key))
    columns = [pa.array(rows.epoch), pa.array(rows.group), table, keys, derived, shown]
    return pa.table(columns, schema=CONTRADICTIONS), counts


def _decoded(kinds: Int64) -> list[tuple[int, int, int]]:
    """Return table, derived and shown effects of coded kinds."""
    tables, effects = np.divmod(kinds, _MASKS * _MASKS)
    return list(zip(tables.tolist(), (effects // _MASKS).tolist(), (effects % _MASKS).tolist(), strict=True))


def _texts(result: BucketResult, table: int, derived: int, shown: int) -> tuple[str, str | None, str | None]:
    """Return table, derived and shown effects of a kind as results name them; bit n of a number is effect n."""
    first, second = (
        " and ".join(effect.name for effect in Effect if bits >> effect & 1) or None for bits in (derived, shown)
    )
    return result.bucket.numbers.tables[table].full_name, first, OTHER_VALUES if first == second else second
