"""
Binlogs to a History in memory, with the scalar reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

import attrs

from conflict.config.configuration import ClusterConfiguration
from conflict.history.epochs import BinlogEpoch, EpochReader
from conflict.history.model import Cluster, History, Payloads, Start, whole_start
from conflict.history.reading.crashes import crashes_in_rows, crashes_of, not_by_crash
from conflict.history.reading.epoch_logs import read_log
from conflict.history.reading.epochs_by_content import MOST_READINGS, hides_epochs, readings_by_content
from conflict.history.reading.given_rows import GivenRows, load_given_rows
from conflict.history.reading.network import direct_traces, refuse_logs_of_network
from conflict.history.reading.unlogged_changes import is_too_many, logged_states, unlogged_changes
from conflict.history.roles import RoleChange, ShownChange, possible_changes, shown_changes, with_roles
from conflict.history.run import Run
from conflict.history.scheduling.cluster_schedule import kept_changes, placed_changes, schedule_of, with_positions
from conflict.history.scheduling.schedule import ClusterHints
from conflict.history.scheduling.servers import of_clusters
from conflict.history.scheduling.start import (
    bounds_of,
    certain_applies,
    consistent_cut,
    refuse_changes,
    returned_before,
    span_of_times,
    starts_in_the_middle,
)
from conflict.history.scheduling.summaries import Summary, SummaryColumns, epoch_ends, summarize
from conflict.history.timeline import DefinitionChange, Transaction, timeline_of
from conflict.history.unlogged import Crash, UnloggedChange
from ndb_formats.errors import FormatError, WrongKeyError
from ndb_formats.events.row_image import RowLayout


@attrs.define
class ClusterReading:
    """
    What was read of one cluster's binlogs.

    Attributes:
        cluster: The cluster.
        epochs: Every complete epoch.
        layouts: Layout of each table met.
        changes: The changes of definitions.
        error: Why they could not be read to the end; None if they could.
        left_out: Row operations of the epoch that the error cut off.
        reports: Whether its binlog says which epochs its applier took (`ndb_log_apply_status`).
        shown_roles: The changes of its role that its binlog shows, if nothing else tells of them.
        roles: Where they are taken to have been.
        taken_whole: Whether a replica takes all of what it logged in compressed transactions.
    """

    cluster: ClusterConfiguration
    epochs: list[BinlogEpoch] = attrs.field(factory=list, repr=False)
    layouts: dict[str, RowLayout] = attrs.field(factory=dict, repr=False)
    changes: list[DefinitionChange] = attrs.field(factory=list, repr=False)
    error: FormatError | None = None
    left_out: int = 0
    reports: bool = True
    shown_roles: Sequence[ShownChange] = ()
    roles: Sequence[RoleChange] = ()
    taken_whole: bool = True


def read_cluster(cluster: ClusterConfiguration, run: Run) -> ClusterReading:
    """
    Read a cluster's binlogs in this process; what comes before an error is kept.

    Raises:
        WrongKeyError: A table has another primary key, so that nothing before is right either.
    """
    definitions = run.definitions.get(cluster.name)
    reader = EpochReader(
        cluster.server_id,
        run.data_schema,
        definitions=definitions,
        moment=None if definitions is None else definitions.start,
        without_key=True,
        databases=run.databases.of(cluster.name),
        statements=run.statements,
        server_id_bits=cluster.server_id_bits,
    )
    reading = ClusterReading(cluster, layouts=reader.layouts, changes=reader.changes)
    try:
        for epoch in read_log(run.log_of(cluster), reader):
            reading.epochs.append(epoch)
    except WrongKeyError:
        raise
    except FormatError as error:
        reading.error, reading.left_out = error, reader.rows_pending
    return reading


def read_clusters(
    run: Run, progress: Callable[[int, int], None] = lambda done, total: None
) -> dict[str, ClusterReading]:
    """
    Read the binlogs of all clusters in this process; see `read_cluster`.

    Args:
        run: The run.
        progress: Called with how many clusters are read, and how many there are.
    """
    readings = dict[str, ClusterReading]()
    for done, cluster in enumerate(run.clusters):
        progress(done, len(run.clusters))
        readings[cluster.name] = read_cluster(cluster, run)
    epochs = of_clusters(run.links, {name: reading.epochs for name, reading in readings.items()})
    return {name: attrs.evolve(reading, epochs=epochs[name]) for name, reading in readings.items()}


def history_of(run: Run, readings: Mapping[str, ClusterReading], hints: ClusterHints | None = None) -> History:
    """
    Return the History of what was read.

    Raises:
        ConfigurationError: It starts in the middle, and definitions change; or one of the two, with other than a pair
            of clusters.
    """
    summaries = usable_epochs(run, readings)
    refuse_logs_of_network(run, summaries)
    middle = starts_in_the_middle(run.span, run.links, summaries)
    if middle:
        refuse_changes(run.definitions)
    clusters, assumed, applied = [], {}, {}
    layouts: dict[str, RowLayout] = {}
    made = placed_changes(run.links, {name: reading.changes for name, reading in readings.items()})
    for cluster in run.clusters:
        reading = readings[cluster.name]
        cut = _is_cut(run, reading, summaries[cluster.name])
        applies, assumed[cluster.name] = schedule_of(
            run.links, cluster, summaries, hints, cut=cut, changes=made, restarts=run.restarts_of(cluster)
        )
        start = None
        if middle:
            first = summaries[cluster.name][0].number if summaries[cluster.name] else 0
            given = _given_rows(run, cluster, readings)
            returned = returned_before(run.links, summaries, cluster.name)
            start = Start(first, given.rows, given.tables, returned)
            applies = [certain_applies(each, start.epoch) for each in applies]
        own = with_roles([apply for each in applies for apply in each.applies()], reading.roles)
        applied[cluster.name] = [attrs.evolve(each, reported=reading.reports) for each in own]
        transactions: list[Transaction] = [
            transaction
            for epoch in readings[cluster.name].epochs[: len(summaries[cluster.name])]
            for transaction in epoch.transactions
        ]
        changes = kept_changes(made[cluster.name], _last(summaries[cluster.name]), cut=cut)
        numbers = SummaryColumns.of(summaries[cluster.name]).number
        timeline = timeline_of(transactions, applied[cluster.name], with_positions(changes, numbers))
        clusters.append(
            Cluster(
                cluster.name,
                cluster.server_id,
                timeline,
                cluster.role,
                start,
                cluster.ignored,
                run.filtered(cluster),
                run.restarts_of(cluster),
                payloads=_payloads(run, reading, summaries) if reading.taken_whole else Payloads(),
                applies_singly=cluster.applies_singly,
            )
        )
        layouts.update(readings[cluster.name].layouts)
    ends = {name: epoch_ends(own) for name, own in summaries.items()}
    applies_of = {name: tuple(each) for name, each in applied.items()}
    return History(tuple(clusters), layouts, assumed, applies_of, ends, databases=run.databases)


def _payloads(run: Run, reading: ClusterReading, summaries: Mapping[str, Sequence[Summary]]) -> Payloads:
    """
    Return what a cluster logged in compressed transactions; nothing if a replica is shown to skip within them.

    Args:
        run: The run.
        reading: The cluster's.
        summaries: Per cluster, its own epochs; those of the replicas show which ones they applied.
    """
    cluster = reading.cluster
    epochs = reading.epochs[: len(summaries[cluster.name])]
    compressed = frozenset(epoch.number for epoch in epochs if epoch.compressed)
    returned = {epoch.number: epoch.returned for epoch in epochs if epoch.returned is not None}
    replicas = (each.name for each in run.links.replicas(cluster.name))
    taken = (
        each.epoch
        for name in replicas
        for summary in summaries[name]
        for each in summary.applied
        if each.server_id == cluster.server_id
    )
    if not compressed or any(epoch in returned for epoch in taken):
        return Payloads()
    transactions = {
        (epoch.number, group): change.transaction_id
        for epoch in epochs
        if epoch.compressed
        for group, change in epoch.consequences
        if change.transaction_id is not None
    }
    return Payloads(compressed, returned, transactions, any(epoch.relays for epoch in epochs))


def with_unlogged(run: Run, readings: Mapping[str, ClusterReading], history: History) -> History:
    """
    Return a History with the rows that are not what their cluster's log says, which are followed unless they are many.

    They were changed without a log, or set back by a crash.
    """
    summaries = usable_epochs(run, readings)
    unlogged, crashes = dict[str, tuple[UnloggedChange, ...]](), dict[str, Sequence[Crash]]()
    for name, reading in readings.items():
        epochs = reading.epochs[: len(summaries[name])]
        states = logged_states(epochs, [other.epochs for peer, other in readings.items() if peer != name])
        possible = crashes_of(run.disconnects_of(name), [(each.number, each.committed) for each in epochs])
        mine, lost = crashes_in_rows(possible, states)
        shown = unlogged_changes(states, reading.changes)
        if found := (*lost, *not_by_crash(shown, lost)):
            unlogged[name] = found
        if mine:
            crashes[name] = mine
    history = attrs.evolve(history, unlogged=unlogged, crashes=crashes)
    if not unlogged or is_too_many(unlogged):
        return history
    whole = whole_start(run.data_schema.tables)
    clusters = (
        attrs.evolve(each, start=each.start or whole, unlogged=unlogged.get(each.name, ())) for each in history.clusters
    )
    return attrs.evolve(history, clusters=tuple(clusters))


def within_readings(run: Run, readings: Mapping[str, ClusterReading]) -> Run:
    """Return the run without the changes of definitions that come after all that is resolved of what was read."""
    if not run.definitions:
        return run
    summaries = usable_epochs(run, readings)
    kept = {
        name: kept_changes(reading.changes, _last(summaries[name]), cut=_is_cut(run, reading, summaries[name]))
        for name, reading in readings.items()
    }
    return with_changes(run, kept)


def with_changes(run: Run, changes: Mapping[str, Sequence[DefinitionChange]]) -> Run:
    """Return a run whose definitions are followed, with these changes of each cluster's alone."""
    definitions = {
        name: attrs.evolve(known, steps=tuple(each.step for each in changes.get(name, ())))
        for name, known in run.definitions.items()
    }
    return attrs.evolve(run, definitions=definitions)


def _is_cut(run: Run, reading: ClusterReading, usable: Sequence[Summary]) -> bool:
    """Whether a binlog goes on after the epochs that are resolved."""
    cut = reading.error is not None or len(usable) < len(reading.epochs)
    return cut or bool(run.span.last) or run.span.stop_time is not None


def _last(summaries: Sequence[Summary]) -> int:
    return summaries[-1].number if summaries else 0


def cut_readings(run: Run, readings: Mapping[str, ClusterReading]) -> dict[str, ClusterReading]:
    """
    Leave out the epochs that a run is not to read; see `bounds_of`.

    Raises:
        ConfigurationError: A cluster has no epoch left, or definitions change.
    """
    if not run.span.cuts:
        return dict(readings)
    refuse_changes(run.definitions)
    times = {name: [(each.time, each.number) for each in reading.epochs] for name, reading in readings.items()}
    span = span_of_times(run.span, times)
    bounds = bounds_of(span, run.links, usable_epochs(run, readings, with_holes=True))
    return {
        name: attrs.evolve(reading, epochs=[each for each in reading.epochs if each.number in bounds[name]])
        for name, reading in readings.items()
    }


def possible_readings(
    run: Run, readings: Mapping[str, ClusterReading], hints: ClusterHints | None = None
) -> list[dict[str, ClusterReading]]:
    """
    Return the ways in which binlogs can be read that do not say all of the schedule, the likely ones first.

    There is one for each way in which epochs are found by content (see `conflict.history.reading.epochs_by_content`),
    and for each place of changes of roles (see `conflict.history.roles`). Hints can tell the roles. Other than a pair
    of clusters is read in one way.
    """
    if not run.links.is_pair:
        return [dict(readings)]
    epochs = {name: reading.epochs for name, reading in readings.items()}
    found = [
        {
            name: attrs.evolve(readings[name], epochs=own, reports=not hides_epochs(epochs[name]))
            for name, own in each.items()
        }
        for each in readings_by_content(epochs, run.links.server_ids)
    ]
    hinted = any(hint.role for each in (hints or {}).values() for period in each for hint in period.values())
    return found if hinted else [way for each in found for way in _ways_of_roles(run, each)][:MOST_READINGS]


def _ways_of_roles(run: Run, readings: Mapping[str, ClusterReading]) -> Iterator[dict[str, ClusterReading]]:
    """Yield the readings with every place of the changes of roles that the binlogs show."""
    setups, ways = run.setups.at_end, []
    for name, reading in readings.items():
        peer = run.links.peer(name)
        shown = shown_changes(reading.epochs, reading.cluster.role, setups[name], peer.server_id)
        places = possible_changes(shown, [epoch.number for epoch in readings[peer.name].epochs])
        ways.append([attrs.evolve(reading, shown_roles=shown, roles=each) for each in places])
    for chosen in product(*ways):
        yield dict(zip(readings, chosen, strict=True))


def _given_rows(run: Run, cluster: ClusterConfiguration, readings: Mapping[str, ClusterReading]) -> GivenRows:
    """Return the rows that a cluster's tables held when its log starts, as far as files give them."""
    owner = cluster if cluster.rows or cluster.rows_of is None else run.links.peer(cluster.name)
    layouts = {name: layout for reading in readings.values() for name, layout in reading.layouts.items()}
    return load_given_rows(owner.rows, run.data_schema, layouts, partial(run.databases.own_name, owner.name))


def usable_epochs(
    run: Run, readings: Mapping[str, ClusterReading], *, with_holes: bool = False
) -> dict[str, SummaryColumns]:
    """Return the epochs of each cluster that do not depend on missing epochs; see `consistent_cut`."""
    summaries = {name: [summarize(epoch) for epoch in reading.epochs] for name, reading in readings.items()}
    return consistent_cut(direct_traces(run.links, summaries), run.links.server_ids, with_holes=with_holes)
