"""
Where and when the files of a plan run, and what conflict functions do with what they change.

A repair is a change of a user like others: it is replicated, and the other cluster judges it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.operating.repairing.ended_run import EndedRun
from conflict.operating.repairing.equal import operation_in_words
from conflict.operating.repairing.proof import Proof
from conflict.rules.decision import Cause, Verdict
from conflict.rules.functions import ConflictFunction
from conflict.telling.shown_text import counted, listed
from conflict.telling.value import Table
from ndb_formats.events.rows_event import Operation


def steps(ended: EndedRun, files: Sequence[tuple[str, str]]) -> Iterator[str]:
    """
    Yield what is to be done, in order.

    Args:
        ended: The clusters.
        files: Cluster and name of each file, in order.
    """
    for cluster in ended.clusters:
        stop = ended.cluster(cluster).result.stop
        if stop is not None:
            yield (
                f"The applier of {cluster} has stopped: {stop.message}. Until it runs again, nothing that is repaired "
                f"on {ended.other(cluster)} arrives there."
            )
    for number, (cluster, name) in enumerate(files, start=1):
        wait = f" Wait until {ended.other(cluster)} has applied it." if number < len(files) else ""
        yield f"{number}. Run {name} on {cluster}, with the binary log and the appliers of both clusters on.{wait}"
    if files:
        yield "Resolve the binlogs again after that: no row is to differ but those to review."


def races(ended: EndedRun, proof: Proof) -> Iterator[str]:
    """Yield what becomes of a repair if a user of the cluster that judges it changes the same row meanwhile."""
    for cluster, table in dict.fromkeys((each.applier, each.table) for each in proof.judged):
        function = _judge(ended, cluster, table)
        source = ended.other(cluster)
        start = f"If a user of {cluster} changes a row of {table} before its repair on {source} arrives"
        if function is None:
            yield f"{start}, {cluster} overwrites that change: nothing is judged there."
        elif function.spec.refreshes:
            yield f"{start}, the repair loses: {cluster} rejects it under {function}, and refreshes the row."
        else:
            yield f"{start}, {function} decides between the two by {function.column}; the row may differ again."


def lost_again(proof: Proof) -> Iterator[str]:
    """Yield how many statements are listed as lost changes once they ran: those that the other cluster rejects."""
    count = sum(
        number
        for each, number in proof.judged.items()
        if each.verdict is Verdict.REJECTED
        and (each.operation, each.cause) != (Operation.DELETE_ROW, Cause.ROW_DOES_NOT_EXIST)
    )
    if count:
        yield (
            f"`lost` will list {counted(count, 'change')} of this repair, too: the other cluster rejects "
            f"{'it' if count == 1 else 'them'}, and has the {'row' if count == 1 else 'rows'} like that."
        )


def outcome_table(tables: Mapping[str, Mapping[str, Any]]) -> Table:
    """
    Return what the clusters hold after a repair.

    Args:
        tables: By table, the fields of `conflict.operating.repairing.proof.RowCounts`.
    """
    clusters = list(next(iter(tables.values()))["after"]) if tables else []
    doubtful = any(each["may_differ"] for each in tables.values())
    rows = [
        (name, *each["after"].values(), each["differing_before"], each["differing_after"])
        + ((each["may_differ"],) if doubtful else ())
        for name, each in tables.items()
    ]
    headings = ("table", *(f"rows on {name}" for name in clusters), "differed", "will differ")
    if not doubtful:
        return Table("What the clusters will hold", headings, rows)
    note = "A row that may differ is not known in full. Rows that the logs do not touch are not counted."
    return Table("What the clusters will hold", (*headings, "may differ"), rows, note=note)


def judged_table(ended: EndedRun, proof: Proof) -> Table:
    """Return what each applier does with the repair, by the proof."""
    rows = [
        (
            each.table,
            operation_in_words(each.operation),
            each.applier,
            str(_judge(ended, each.applier, each.table) or "none"),
            _decision(each.verdict, each.cause),
            count,
        )
        for each, count in sorted(proof.judged.items(), key=lambda item: str(item[0]))
    ]
    headings = ("table", "operation", "judged by", "function", "what becomes of it", "rows")
    refreshed = [f"{count} of {table}" for table, count in proof.refreshed.items() if count]
    note = f"Refreshed after that, to the same values: {listed(refreshed)}." if refreshed else ""
    return Table("What the other cluster does with it", headings, rows, texts=5, note=note)


def _judge(ended: EndedRun, cluster: str, table: str) -> ConflictFunction | None:
    """Return the function by which an applier judges a table; None if it judges nothing."""
    here = ended.cluster(cluster)
    setup = here.setups.get(table)
    return None if setup is None else setup.deployed(here.role).judge


def _decision(verdict: Verdict, cause: Cause) -> str:
    words = verdict.name.lower()
    return words if cause is Cause.NONE else f"{words}: {cause.name}"
