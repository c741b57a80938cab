"""
Writes one bucket's share of the result.

This is what a Spark task does in the end; it needs no Spark itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.image_values import ImageReader
from conflict.columnar.output.counts import count_bucket
from conflict.columnar.output.effects import compare_effects
from conflict.columnar.output.exceptions import tracked_rows, write_exceptions
from conflict.columnar.output.exceptions_numbering import TrackedRows
from conflict.columnar.output.final_rows import count_differing, final_table
from conflict.columnar.output.outcomes import chosen_decisions, outcome_table
from conflict.columnar.output.undecided import write_undecided
from conflict.grid.folder import Folder
from conflict.results.layout import outcomes_path
from conflict.results.summary import BucketSummary
from conflict.rules.decision import Verdict
from ndb_formats.events.rows_event import Operation

__all__ = ["write_bucket"]

DELETE = int(Operation.DELETE_ROW)
REJECTED, DISCARDED = int(Verdict.REJECTED), int(Verdict.DISCARDED)


def write_bucket(
    result: BucketResult,
    files: Mapping[str, Sequence[str]],
    out: Folder,
    *,
    final_rows: bool = True,
    all_outcomes: bool = False,
) -> tuple[BucketSummary, TrackedRows]:
    """
    Write a bucket's parts of the result.

    Args:
        result: The bucket, decided, with what may have been decided besides.
        files: Per cluster, its binlog files by number.
        out: Folder of the result.
        final_rows: Whether the rows of the tables at the end are wanted. Without them no values are compared either:
            where those alone can tell how many rows differ, that stays open.
        all_outcomes: Whether outcomes are written of every operation, or of those alone that were not applied as they
            stood.

    Returns:
        What the bucket adds to the whole, and the exceptions rows that its share of rolled back passes made.
    """
    bucket, clusters, folded = result.bucket, result.clusters, result.folded
    for number, (cluster, chosen) in enumerate(
        zip(clusters, chosen_decisions(result, every=all_outcomes), strict=True)
    ):
        if len(chosen):
            source = clusters[1 - number].name
            outcomes = outcome_table(result, number, chosen, source, files[source])
            out.write_table(outcomes_path(cluster.name, bucket.number), outcomes)
    write_exceptions(result, out)
    counters, tables = count_bucket(result)
    unexplained = {cluster.name: int(folded.unexplained[number].sum()) for number, cluster in enumerate(clusters)}
    summary = BucketSummary(counters=counters, tables=tables, unexplained=unexplained)
    for name, slack in write_undecided(result, out).items():
        summary.undecided[name] = slack.undecided
        summary.less[name], summary.more[name] = dict(slack.less), dict(slack.more)
    _count_rows(result, summary)
    if final_rows:
        _write_rows(result, out, summary)
    differing = compare_effects(result, with_places=False)
    summary.compared, summary.contradicted = differing.compared, differing.contradicted
    return summary, tracked_rows(result)


def _write_rows(task: BucketResult, out: Folder, summary: BucketSummary) -> None:
    """Write the final rows of both clusters, and count where they differ."""
    reader = ImageReader(task.bucket)
    for table, definition in enumerate(task.bucket.numbers.tables):
        final = final_table(task, reader, table)
        summary.differing_rows[definition.full_name] = final.differing
        for cluster, rows in zip(task.clusters, final.rows, strict=True):
            if len(rows) and cluster.setups[table].refusal is None:
                path = f"rows/{cluster.name}/{definition.full_name}/bucket={task.bucket.number:05d}.parquet"
                out.write_table(path, rows)


def _count_rows(task: BucketResult, summary: BucketSummary) -> None:
    """Count the final rows of both clusters, and where they differ as far as that can be told without their values."""
    for table, definition in enumerate(task.bucket.numbers.tables):
        here = task.bucket.key_table == table
        summary.differing_rows[definition.full_name] = count_differing(task, table)
        for cluster, exists in zip(task.clusters, task.folded.exists, strict=True):
            # A table that is refused does not exist there.
            count = 0 if cluster.setups[table].refusal is not None else int((exists & here).sum())
            summary.rows.setdefault(cluster.name, {})[definition.full_name] = count
