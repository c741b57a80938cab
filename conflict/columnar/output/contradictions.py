"""
Rows of a bucket of which binlogs show other effects than were derived. Computes docs/run-file.md, "Contradictions".
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.kernels.arrays import Int8
from conflict.columnar.output.effects import DifferingRows
from conflict.history.effects import Effect
from conflict.results.contradictions import CONTRADICTIONS, OTHER_VALUES, count_kinds
from conflict.results.layout import labelled

__all__ = ["contradictions_table"]


def contradictions_table(result: BucketResult, rows: DifferingRows) -> tuple[pa.Table, dict[str, dict[str, int]]]:
    """Return the contradictions of one applier's work as `CONTRADICTIONS`, and how many of each kind per table."""
    derived, shown = _texts(rows.derived), _texts(rows.shown)
    shown = [OTHER_VALUES if text == mine else text for text, mine in zip(shown, derived, strict=True)]
    names = [table.full_name for table in result.bucket.numbers.tables]
    tables = labelled(result.bucket.key_table[rows.key], names)
    columns = [
        pa.array(rows.epoch),
        pa.array(rows.group),
        tables.cast(pa.string()),
        result.bucket.key_texts.take(pa.array(rows.key)),
        pa.array(derived, pa.string()),
        pa.array(shown, pa.string()),
    ]
    return pa.table(columns, schema=CONTRADICTIONS), count_kinds(zip(tables.to_pylist(), derived, shown, strict=True))


def _texts(effects: Int8) -> list[str | None]:
    """Return effects as results name them, by their bits; None for no effect."""
    texts = {
        bits: " and ".join(effect.name for effect in Effect if bits >> effect & 1) or None
        for bits in np.unique(effects).tolist()
    }
    return [texts[bits] for bits in effects.tolist()]
