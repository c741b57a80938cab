"""
What both engines say alike of a run: whether its logs start in the middle after all, and what there is at their end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import attrs

from conflict.config.configuration import ClusterConfiguration
from conflict.history.model import Link
from conflict.history.run import Run
from conflict.history.scheduling.summaries import EpochSizes
from conflict.results.likely_causes import with_renames
from conflict.results.run_document import RunDocument, changes_under_way
from conflict.rules.stops import StopError
from conflict.telling.shown_text import listed
from ndb_formats.findings import LogRemark
from ndb_formats.schema.tables import split_full_name

Found = TypeVar("Found")


def from_the_start(
    run: Run, attempt: Callable[[Run, Found | None], Found], unexplained: Callable[[Found], bool]
) -> Found:
    """
    Return what an attempt at a run finds; of logs that turn out to start in the middle, as of such ones.

    Args:
        run: The run.
        attempt: Resolves a run; it is given what it found before, if it takes the logs to start in the middle now.
        unexplained: Whether something remains unexplained that rows which are older than the logs can explain.
    """
    found = attempt(run, None)
    if run.start_is_open and unexplained(found):
        return attempt(run.from_the_middle, found)
    return found


def at_end_of_logs(resolved: RunDocument, applied: Mapping[Link, int], sizes: Mapping[str, EpochSizes]) -> RunDocument:
    """
    Return a result with what was under way when the logs ended, and what else the run says beside its figures.

    Args:
        resolved: The result.
        applied: Per link, the last epoch that was applied; a link without one may lack.
        sizes: Per cluster, the own epochs that count.
    """
    run = resolved.run
    return attrs.evolve(
        resolved,
        likely_causes=with_renames(resolved.likely_causes, run.renames),
        notes=run.notes,
        remarks=(*run.remarks, *tables_not_there(run, applied, sizes)),
        under_way=changes_under_way(run.links, applied, sizes),
    )


def tables_not_there(run: Run, applied: Mapping[Link, int], sizes: Mapping[str, EpochSizes]) -> Iterator[LogRemark]:
    """
    Yield where appliers may have stopped because they lack tables that no log creates and no schema holds.

    CREATE TABLE ... SELECT into NDB is logged as rows alone, so the other cluster never gets the table, and its applier
    stops at the first of these rows. Its log then shows no later epoch, and never names the table. Both are so, too,
    where it had not come so far, and has the table: which of the two it was is not known.

    Source: docs/definitions.md; a recording of CREATE TABLE ... ENGINE=NDB SELECT.

    Args:
        run: The run.
        applied: Per link, the last epoch that was applied; a link without one may lack.
        sizes: Per cluster, the own epochs that count.
    """
    for applier, source in run.links.channels():
        newest, own = applied.get((applier.name, source.name)), sizes[source.name]
        names = sorted(_not_named(run, applier, source.name))
        if not names or newest is None or not ((own.unread | (own.changes > 0)) & (own.numbers > newest)).any():
            continue
        is_, them, one = ("is", "it", "the table") if len(names) == 1 else ("are", "them", "one of them")
        yield LogRemark(
            f"{source.name} changes {listed(names)}, which {is_} in no schema and which no log creates, as where "
            f"CREATE TABLE ... SELECT did: NDB logs its rows alone. The log of {applier.name} does not name {them}, "
            f"and shows no epoch of {source.name} after {newest}: if {applier.name} lacks {one}, its applier stopped "
            f"at the first row with error {StopError.NO_SUCH_TABLE.value}",
            lost=True,
        )


def _not_named(run: Run, applier: ClusterConfiguration, source: str) -> Iterator[str]:
    """Yield the tables of a source that its applier's log does not name, as the source does; none that it filters."""
    filters = applier.filter_of(source)
    for table in run.undefined_tables.get(source, frozenset()) - run.logged_tables.get(applier.name, frozenset()):
        own = run.databases.own_name(source, table)
        database, name = split_full_name(own)
        if not filters.drops(filters.rewritten(database), name):
            yield own
