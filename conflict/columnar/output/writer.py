"""
Writes one bucket's part of the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from conflict.columnar.bucket_result import BucketResult
from conflict.columnar.image_values import ImageReader
from conflict.columnar.kernels.arrays import Int64
from conflict.columnar.output.contradictions import contradictions_table
from conflict.columnar.output.copied_rows import count_copied
from conflict.columnar.output.counts import count_bucket
from conflict.columnar.output.effects import compare_effects
from conflict.columnar.output.exceptions import tracked_rows, write_exceptions
from conflict.columnar.output.exceptions_numbering import TrackedRows
from conflict.columnar.output.final_rows import count_differing, final_table
from conflict.columnar.output.outcomes import chosen_decisions, outcome_table
from conflict.columnar.output.undecided import write_undecided
from conflict.grid.folder import Folder
from conflict.results.contradictions import contradictions_path
from conflict.results.layout import outcomes_path, rows_path
from conflict.results.model import NotKnown
from conflict.results.options import ResultOptions
from conflict.results.summary import BucketSummary

__all__ = ["write_bucket"]


def write_bucket(
    result: BucketResult,
    files: Mapping[str, Sequence[str]],
    out: Folder,
    options: ResultOptions,
) -> tuple[BucketSummary, TrackedRows]:
    """
    Write a bucket's parts of the result.

    Args:
        result: A decided bucket, with the candidates of open decisions.
        files: Per cluster, its binlog files by number.
        out: Folder of the result.
        options: What the result holds.

    Returns:
        What the bucket adds to the figures, and the exceptions rows that pass TRACK made in it.
    """
    bucket, clusters, folded = result.bucket, result.clusters, result.folded
    for number, (cluster, chosen) in enumerate(
        zip(clusters, chosen_decisions(result, every=options.all_outcomes), strict=True)
    ):
        if len(chosen):
            outcomes = outcome_table(result, number, chosen, files)
            out.write_table(outcomes_path(cluster.name, bucket.number), outcomes)
    write_exceptions(result, out)
    counters, tables = count_bucket(result)
    unexplained = {cluster.name: int(folded.unexplained[number].sum()) for number, cluster in enumerate(clusters)}
    copied = {cluster.name: count_copied(result, number) for number, cluster in enumerate(clusters) if cluster.copied}
    summary = BucketSummary(counters=counters, tables=tables, unexplained=unexplained, copied=copied)
    for name, slack in write_undecided(result, out).items():
        summary.undecided[name] = slack.undecided
        summary.less[name], summary.more[name] = dict(slack.less), dict(slack.more)
    _count_rows(result, summary)
    if options.final_rows:
        _write_rows(result, out, summary)
    differing = compare_effects(result, with_applies=False)
    summary.compared, summary.contradicted = differing.compared, sum(len(rows) for rows in differing.rows)
    for cluster, rows in zip(clusters, differing.rows, strict=True):
        if len(rows):
            table, summary.contradictions[cluster.name] = contradictions_table(result, rows)
            out.write_table(contradictions_path(cluster.name, bucket.number), table)
    return summary, tracked_rows(result)


def _write_rows(result: BucketResult, out: Folder, summary: BucketSummary) -> None:
    """Write the final rows of both clusters, and count where they differ."""
    reader = ImageReader(result.bucket)
    for table, definition in enumerate(result.bucket.numbers.tables):
        final = final_table(result, reader, table)
        summary.differing_rows[definition.full_name] = final.differing
        for cluster, rows in zip(result.clusters, final.rows, strict=True):
            if len(rows) and cluster.setups[table].refusal is None:
                out.write_table(rows_path(cluster.name, definition.full_name, result.bucket.number), rows)


def _count_rows(result: BucketResult, summary: BucketSummary) -> None:
    """Count the final rows of both clusters, and those that differ where this follows without their values."""
    for table, definition in enumerate(result.bucket.numbers.tables):
        here = result.bucket.key_table == table
        summary.differing_rows[definition.full_name] = count_differing(result, table)
        for side, (cluster, exists) in enumerate(zip(result.clusters, result.folded.exists, strict=True)):
            if result.older is not None:
                columns = result.columns_not_known[side][here]
                _count_not_known(summary, cluster.name, definition.full_name, columns)
                exists = exists & (result.columns_not_known[side] == 0)  # noqa: PLW2901
            # The cluster does not have a table that was refused.
            count = 0 if cluster.setups[table].refusal is not None else int((exists & here).sum())
            summary.rows.setdefault(cluster.name, {})[definition.full_name] = count


def _count_not_known(summary: BucketSummary, cluster: str, table: str, columns: Int64) -> None:
    """Count the rows of a table that are known in part; `columns` is how many columns each lacks."""
    if columns.any():
        found = NotKnown(0, int((columns > 0).sum()), int(columns.sum()))
        summary.not_known.setdefault(cluster, {})[table] = attrs.asdict(found)
