"""
Writes a bucket's rows of exceptions tables, which get their numbers later.

See `conflict.columnar.output.exceptions_numbering` for the numbers.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.cluster_setup import steps_before
from conflict.columnar.image_values import ImageReader
from conflict.columnar.kernels.arrays import Decisions, Int8, Int16, Int64
from conflict.columnar.operation_order import operation_orders
from conflict.columnar.output.exceptions_numbering import EPOCH_APPLY, OPERATION_ORDER, OWN_CAUSE, TrackedRows
from conflict.columnar.output.exceptions_rows import exceptions_rows
from conflict.grid.folder import Folder
from conflict.results.layout import OUTCOME_PLACE, staged_exceptions_path
from conflict.rules.decision import Cause, Verdict

__all__ = ["tracked_rows", "write_exceptions"]

REJECTED = int(Verdict.REJECTED)


def write_exceptions(result: BucketResult, out: Folder) -> None:
    """Write the rows of exceptions tables without their numbers, each with the columns that they are sorted by."""
    decisions = result.folded.decisions
    rejected = np.flatnonzero(decisions.verdict == REJECTED)
    appliers, tables = _appliers_and_tables(result, decisions, rejected)
    reader = ImageReader(result.bucket)
    found: dict[tuple[str, str], list[pa.Table]] = {}
    for applier, cluster in enumerate(result.clusters):
        for table in range(len(cluster.setups)):
            mine = rejected[(appliers == applier) & (tables == table)]
            if not len(mine):
                continue
            version = steps_before(cluster.steps.get(table, ()), result.applies)[decisions.apply[mine]]
            for number, setup in enumerate(cluster.over_time(table)):
                chosen = mine[version == number]
                if setup.exceptions is not None and len(chosen):
                    rows = exceptions_rows(result, reader, setup.exceptions, applier, table, chosen)
                    found.setdefault((cluster.name, setup.exceptions.table.full_name), []).append(
                        _with_order(result, rows, chosen)
                    )
    for (cluster_name, name), parts in found.items():
        path = staged_exceptions_path(cluster_name, name, result.bucket.number)
        out.write_table(path, pa.concat_tables(parts))


def _with_order(result: BucketResult, rows: pa.Table, chosen: Int64) -> pa.Table:
    """Return rows with their outcomes, and with the columns that they are sorted by."""
    decisions = result.folded.decisions
    order = {
        EPOCH_APPLY: pa.array(decisions.apply[chosen].astype(np.int64)),
        OWN_CAUSE: pa.array(decisions.cause[chosen] != Cause.TRANS_IN_CONFLICT),
        OPERATION_ORDER: operation_orders(chosen, decisions, result.folded.logged, result.applies, result.bucket.rows),
        OUTCOME_PLACE: _outcome_places(result, chosen),
    }
    for field, column in order.items():
        rows = rows.append_column(field, column)
    return rows


def _outcome_places(result: BucketResult, chosen: Int64) -> pa.StructArray:
    """Return what tells the outcomes of some decisions of one applier from others, as `OUTCOME_PLACE`."""
    bucket, applies, decisions = result.bucket, result.applies, result.folded.decisions
    apply, source, key = (column[chosen] for column in (decisions.apply, decisions.source, decisions.key))
    applier, own = int(applies.applier[apply[0]]), source >= 0
    ordinals = np.full(len(chosen), -1, np.int32)
    ordinals[own] = bucket.rows[1 - applier].ordinal[source[own]]
    columns = {
        "applier": [result.clusters[applier].name] * len(chosen),
        "source_epoch": applies.foreign_epoch[apply],
        "epoch": applies.epoch[apply],
        "group": decisions.group[chosen],
        "ordinal": ordinals,
        "table": [bucket.numbers.tables[bucket.key_table[key[0]]].full_name] * len(chosen),
        "key": bucket.key_texts.take(pa.array(key)),
    }
    fields = list(OUTCOME_PLACE.type)
    return pa.StructArray.from_arrays([pa.array(columns[field.name], field.type) for field in fields], fields=fields)


def tracked_rows(result: BucketResult) -> TrackedRows:
    """Return how many exceptions rows pass TRACK made, by cluster and table, and by epoch apply."""
    decisions = result.folded.tracked
    rejected = np.flatnonzero(decisions.verdict == REJECTED)
    appliers, tables = _appliers_and_tables(result, decisions, rejected)
    found = {}
    for number, cluster in enumerate(result.clusters):
        for table, setup in enumerate(cluster.setups):
            if setup.exceptions is not None:
                here = rejected[(appliers == number) & (tables == table)]
                if cluster.steps.get(table):
                    version = steps_before(cluster.steps[table], result.applies)[decisions.apply[here]]
                    used = [each.exceptions is not None for each in cluster.over_time(table)]
                    here = here[np.array(used, np.bool_)[version]]
                found[cluster.name, setup.exceptions.table.full_name] = np.unique(
                    decisions.apply[here], return_counts=True
                )
    return found


def _appliers_and_tables(result: BucketResult, decisions: Decisions, chosen: Int64) -> tuple[Int8, Int16]:
    """Return the applier and the table of some decisions. Shape (chosen,)."""
    return result.applies.applier[decisions.apply[chosen]], result.bucket.key_table[decisions.key[chosen]]
