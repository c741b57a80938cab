"""
What an applier does with an epoch of the cluster that its cluster replicates from.

The reference engine decides. Here is what surrounds that in a simulation: which changes of users an operation comes
from, which of them are lost, and what goes on to the next cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from conflict.history.model import EpochApply
from conflict.model.configuration import Model
from conflict.model.kernels.world import NEVER
from conflict.model.logged_groups import LoggedGroup
from conflict.model.network.differences import Differences
from conflict.model.network.station import Change, Epoch, Station
from conflict.reference.epoch_log import LoggedChange
from conflict.reference.row_store import RowKey
from conflict.results.model import Outcome
from conflict.rules.decision import Verdict
from conflict.rules.lost_updates import RowWrite, loses, overwrite

__all__ = ["apply_epoch", "operations"]

_APPLIED_BIT = 1 << 47  # of a transaction id: a transaction of the applier


def operations(here: Station, foreign: Epoch) -> int:
    """Return how many row operations of an epoch an applier takes."""
    assert here.source is not None
    return len(here.replayed.arriving(here.source.replayed, foreign.number))


def apply_epoch(here: Station, now: int, stations: Sequence[Station], model: Model, differences: Differences) -> None:
    """Apply and commit the next epoch of the source."""
    source, replayed, number = here.source, here.replayed, here.open.number
    assert source is not None
    foreign = source.epochs[here.next_foreign]
    arriving = {(entry.change.table, entry.change.key) for entry in replayed.arriving(source.replayed, foreign.number)}
    before = {key: _payloads(here, key) for key in arriving}
    logged, decided = len(replayed.log.get(number, ())), len(replayed.outcomes)
    here.applier.apply_epoch(EpochApply(number, here.group, source.site.name, foreign.number), source.replayed)
    here.apply_at = int(NEVER)
    if replayed.result.stop is not None:
        here.stopped_at = here.begun
        here.applies.append((number, foreign.number, False))
        return
    outcomes = replayed.outcomes[decided:]
    _note_origins(here, source, outcomes, stations, model)
    changed = [key for key in arriving if _payloads(here, key) != before[key]]
    for key in {(each.table, each.key) for each in outcomes if each.verdict is Verdict.APPLIED}:
        here.versions[key] = here.versions.get(key, 0) + 1
    new = tuple(each for each in replayed.log.get(number, ())[logged:] if isinstance(each, LoggedChange))
    _log(here, new, foreign, model)
    here.applies.append((number, foreign.number, True))
    foreign.begun[here.side] = here.begun
    foreign.arrive(here.side, now)
    here.next_foreign += 1
    here.free_at = now
    differences.note(changed, now)


def _payloads(here: Station, key: RowKey) -> Mapping[int, bytes | None]:
    """Return the columns of a row; none if it does not exist."""
    row = here.replayed.store.get(key)
    return {} if row is None else row.payloads


def _log(here: Station, new: tuple[LoggedChange, ...], foreign: Epoch, model: Model) -> None:
    """Log what an epoch apply changed, with the epochs that it brought news of."""
    assert here.source is not None
    names = [table.name for table in model.tables]
    for entry in new:
        here.open.bytes += model.tables[names.index(entry.change.table.partition(".")[2])].row_bytes
    ids = {site.name: site.server_id for site in model.sites}
    relayed = here.source.replayed.relayed.get(foreign.number, {})
    news = [(ids[name], epoch) for name, epoch in relayed.items() if name != here.site.name]
    applied = ((here.source.site.server_id, foreign.number), *news)
    identity = here.side << 48 | _APPLIED_BIT | len(here.applies)
    here.open.groups.append(LoggedGroup(new, identity, applied))
    here.open.carries.append(foreign)
    here.group += 1


def _note_origins(
    here: Station, source: Station, outcomes: Sequence[Outcome], stations: Sequence[Station], model: Model
) -> None:
    """Note which changes of users the operations of an epoch come from, and which changes they lose."""
    passed = dict[RowKey, list[Change]]()
    for each in outcomes:
        key = each.table, each.key
        place = (each.source_epoch, each.group, key) if each.ordinal < 0 else (each.source_epoch, each.ordinal)
        for origin in source.origins.get(place, ()):
            if each.verdict is Verdict.REJECTED:
                stations[origin[0]].refused.add(origin[1])
            if loses(each.verdict, each.operation, each.cause):
                stations[origin[0]].rejected.add(origin[1])
            if each.verdict is Verdict.APPLIED:
                _note_overwritten(here, key, origin, stations, model)
                passed.setdefault(key, []).append(origin)
    for key, changes in passed.items():
        here.origins[here.open.number, here.group, key] = tuple(changes)


def _note_overwritten(here: Station, key: RowKey, origin: Change, stations: Sequence[Station], model: Model) -> None:
    """Note the changes that a change, applied here, overwrites without having seen them."""
    made = stations[origin[0]].made[origin[1]]
    written = RowWrite(made.change.operation, made.carried, model.tables[made.table].data_columns)
    here.authors[key], over = overwrite(here.authors.get(key, {}), origin, written)
    for side, number in over:
        if side != origin[0] and not _knew(origin, (side, number), stations):
            stations[side].overwritten.add(number)


def _knew(later: Change, earlier: Change, stations: Sequence[Station]) -> bool:
    """Whether the cluster of a change had applied another one when it committed."""
    came = stations[earlier[0]].made[earlier[1]].epoch.came.get(later[0])
    return came is not None and came <= stations[later[0]].made[later[1]].at
