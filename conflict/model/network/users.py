"""
What the transactions of users do to the rows of their own cluster; see `conflict.model.kernels.users`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.history.model import RowChange, Transaction
from conflict.model.configuration import Model
from conflict.model.kernels.world import RESOLVE_BIT, Stamp, Wish
from conflict.model.logged_groups import LoggedGroup
from conflict.model.network.differences import Differences
from conflict.model.network.station import Change, Keys, Made, Station
from conflict.model.table_layouts import VALUE_BYTES
from conflict.reference.epoch_log import LoggedChange, merged_change
from conflict.reference.row_store import Row
from conflict.rules.lost_updates import RowWrite, write
from ndb_formats.events.rows_event import Operation

__all__ = ["serve_user"]

_SIDE_BITS = 16  # of a value that names a change
_Payloads = Mapping[int, bytes | None]


def serve_user(here: Station, now: int, model: Model, keys: Keys, differences: Differences) -> None:
    """Start a transaction, or commit one that has thought."""
    ends = bool(here.thinking) and here.thinking[0][1] == now
    if ends:
        number, _ = here.thinking.popleft()
    elif here.retrying and here.retrying[0][1] == now:
        number, _ = here.retrying.popleft()
    else:
        number = here.next_start
        here.next_start += 1
    work = here.site.workload
    if not ends and work.checks:
        here.read[number] = {key: here.versions.get(keys.row(key), 0) for _, key, _ in _wishes(here, number)}
    if not ends and work.think:
        here.thinking.append((number, now + work.think))
    elif _fails(here, number, keys):
        _try_again(here, number, now)
    else:
        _commit(here, number, now, model, keys, differences)


def _written_by(change: Change) -> bytes:
    """Return the value of a data column that a change wrote, never 0."""
    side, number = change
    return (number + 1 << _SIDE_BITS | side).to_bytes(VALUE_BYTES, "little")


def _wishes(here: Station, number: int) -> Iterator[tuple[Wish, int, int]]:
    """Yield what a transaction wants: kind, row, and columns to set."""
    wanted = here.intentions
    for place in range(int(wanted.first[number]), int(wanted.first[number + 1])):
        yield Wish(int(wanted.kind[place])), int(wanted.key[place]), int(wanted.writes[place])


def _fails(here: Station, number: int, keys: Keys) -> bool:
    """Whether a transaction inserts a row that is there, or a row that it read changed since."""
    read = here.read.pop(number, None)
    for kind, key, _ in _wishes(here, number):
        if kind is Wish.INSERT and here.replayed.store.get(keys.row(key)) is not None:
            return True
        if read is not None and kind is not Wish.READ and read[key] != here.versions.get(keys.row(key), 0):
            return True
    return False


def _try_again(here: Station, number: int, now: int) -> None:
    tries, work = here.tries.get(number, 0), here.site.workload
    if tries >= work.retries:
        here.totals.failed += 1
        return
    here.tries[number] = tries + 1
    here.totals.again += 1
    here.retrying.append((number, now + work.retry_delay))


def _commit(here: Station, number: int, now: int, model: Model, keys: Keys, differences: Differences) -> None:
    changes, columns, touched = list[RowChange](), list[frozenset[int]](), set[int]()
    identity = here.side << 48 | number + 1
    for kind, key, writes in _wishes(here, number):
        if key in touched:
            continue
        touched.add(key)
        row = keys.row(key)
        if kind is Wish.READ:
            here.totals.reads += 1
            here.totals.stale_reads += row in differences.since
            continue
        author = here.side, len(here.made) + len(changes)
        found = _change(here, author, (kind, key, writes), now, model, keys)
        if found is None:
            here.totals.missed += 1
            continue
        changes.append(attrs.evolve(found[0], transaction_id=identity))
        columns.append(found[1])
        here.versions[row] = here.versions.get(row, 0) + 1
    here.totals.committed += 1
    if changes:
        transaction = Transaction(here.open.number, here.group, tuple(changes))
        _log(here, transaction, columns, number, identity, now, model)
        differences.note(((change.table, change.key) for change in changes), now)


def _log(
    here: Station,
    transaction: Transaction,
    columns: Sequence[frozenset[int]],
    number: int,
    identity: int,
    now: int,
    model: Model,
) -> None:
    """Commit a transaction, which sets those columns, to the rows and the log of its cluster."""
    log = here.replayed.log
    before = len(log.get(here.open.number, ()))
    here.replayed.commit(transaction)
    new = tuple(each for each in log[here.open.number][before:] if isinstance(each, LoggedChange))
    for entry, written in zip(new, columns, strict=True):
        author, row = (here.side, len(here.made)), (entry.change.table, entry.change.key)
        here.origins[here.open.number, entry.ordinal] = (author,)
        table = list(here.replayed.setups).index(entry.change.table)
        here.made.append(Made(now, here.open, number, table, entry.change, written))
        own = RowWrite(entry.change.operation, written, model.tables[table].data_columns)
        here.authors[row] = write(here.authors.get(row, {}), author, own)
        here.open.bytes += model.tables[table].row_bytes
    here.open.groups.append(LoggedGroup(new, identity))
    here.group += 1


def _change(
    here: Station, author: Change, wish: tuple[Wish, int, int], now: int, model: Model, keys: Keys
) -> tuple[RowChange, frozenset[int]] | None:
    """Return what a wish comes to, as the cluster logs it, and the columns that it sets; None if it finds no row."""
    kind, key, writes = wish
    name, identity = keys.row(key)
    row = here.replayed.store.get((name, identity))
    operation = _operation(kind, exists=row is not None)
    if operation is None:
        return None
    setup, table = here.replayed.setups[name], model.tables[keys.table(key)]
    old: _Payloads = {} if row is None else row.payloads
    inserts = operation is Operation.WRITE_ROW
    written = {column + 1 for column in range(table.columns) if inserts or writes >> column & 1}
    values: dict[int, bytes | None] = dict.fromkeys(written, _written_by(author))
    resolve = table.columns + 1
    if table.stamp is not Stamp.NONE and (inserts or writes & int(RESOLVE_BIT)):
        values[resolve] = _stamped(here, table.stamp, old.get(resolve), now)
        written.add(resolve)
    columns = frozenset(written)
    after: Row | None = None
    if inserts:
        written.add(0)
        after = Row({0: keys.payload(key), **values}, local=True, epoch=0)
    elif operation is Operation.UPDATE_ROW:
        after = Row({**old, **values}, local=True, epoch=0)
    wanted = RowChange(name, identity, operation, None, None)
    change = merged_change(setup, here.replayed.layouts[name], wanted, row, after, frozenset(written))
    return None if change is None else (change, columns)


def _stamped(here: Station, stamp: Stamp, old: bytes | None, now: int) -> bytes:
    """Return what a change sets the resolve column to."""
    version = int.from_bytes(old or b"", "little") + 1
    value = max(now + here.site.skew, 1) if stamp is Stamp.CLOCK else version
    return value.to_bytes(VALUE_BYTES, "little")


def _operation(kind: Wish, *, exists: bool) -> Operation | None:
    """Return the operation that a wish comes to; None if it finds no row."""
    if kind is Wish.INSERT or (not exists and kind in (Wish.PUT, Wish.SWAP)):
        return Operation.WRITE_ROW
    if not exists:
        return None
    return Operation.DELETE_ROW if kind in (Wish.DELETE, Wish.SWAP) else Operation.UPDATE_ROW
