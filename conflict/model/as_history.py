"""
A simulation as a History, which both engines resolve.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from conflict.history.model import Cluster, EpochApply, History, RowChange, Timeline, Transaction
from conflict.model.configuration import DATABASE
from conflict.model.connections import source_of
from conflict.model.kernels.world import RESOLVE_BIT
from conflict.model.run import Simulated
from conflict.model.table_layouts import KEY_BYTES, VALUE_BYTES, layouts_of
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.row_image import RowImage, RowLayout
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.event_columns import EventColumns
from ndb_formats.rules.update_format import ndb_columns
from ndb_formats.schema.row_keys import key_of

__all__ = ["history_of", "row_key"]


def history_of(run: Simulated) -> History:
    """Return what happened, without its consequences."""
    setups = run.model.setups()
    layouts = layouts_of(setups[run.model.sites[0].name].values())
    clusters = tuple(
        Cluster(site.name, site.server_id, _timeline(run, side, list(setups[site.name].values()), layouts), site.role)
        for side, site in enumerate(run.model.sites)
    )
    return History(clusters, layouts)


def row_key(run: Simulated, key: int) -> tuple[int, int]:
    """Return the table of a row, and its number there."""
    table = int(np.searchsorted(run.key_offsets, key, "right")) - 1
    return table, key - int(run.key_offsets[table])


def _timeline(run: Simulated, side: int, setups: list[TableSetup], layouts: dict[str, RowLayout]) -> Timeline:
    items: list[tuple[tuple[int, int, int], Transaction | EpochApply]] = [
        ((each.epoch, each.group, 0), each) for each in _transactions(run, side, setups, layouts)
    ]
    there = source_of(run.model, side)
    source = "" if there is None else run.model.sites[there].name
    applies = run.world.schedule.applies[: run.world.run[0]["applies"]]
    for number in np.flatnonzero(applies["applier"] == side):
        epoch, foreign = int(applies["epoch"][number]), int(applies["foreign_epoch"][number])
        group, traced = int(applies["group"][number]), bool(applies["traced"][number])
        items.append(((epoch, group, int(number)), EpochApply(epoch, group, source, foreign, traced)))
    site = run.world.site[side]
    if site["stopped"]:
        epoch, group = int(site["stop_epoch"]), int(site["stop_group"]) - 1
        foreign = int(run.world.epochs[there, site["next_foreign"]]["number"])
        items.append(((epoch, group, len(applies)), EpochApply(epoch, group, source, foreign, traced=False)))
    return tuple(item for _, item in sorted(items, key=lambda each: each[0]))


def _transactions(
    run: Simulated, side: int, setups: list[TableSetup], layouts: dict[str, RowLayout]
) -> Iterator[Transaction]:
    """Yield the transactions of a cluster's users."""
    rows, begin, stop = run.world.changes.rows, run.world.changes.begin[side], int(run.world.site[side]["stop"])
    own = begin + np.flatnonzero(rows["relayed"][begin:stop] == 0)
    for (epoch, group), places in groupby(own.tolist(), lambda place: rows[["epoch", "group"]][place].item()):
        mine = list(places)
        identity = side << 48 | int(run.world.made.transaction[mine[0]]) + 1
        changes = tuple(_change(run, place, identity, setups, layouts) for place in mine)
        yield Transaction(epoch, group, changes)


def _change(
    run: Simulated, place: int, identity: int, setups: list[TableSetup], layouts: dict[str, RowLayout]
) -> RowChange:
    """Return one row change with the columns that its table logs."""
    change, carried = run.world.changes.rows[place], int(run.world.made.carried[place])
    table, number = row_key(run, int(change["key"]))
    setup, model_table = setups[table], run.model.tables[table]
    name = f"{DATABASE}.{model_table.name}"
    key, resolve = number.to_bytes(KEY_BYTES, "little"), model_table.columns + 1
    values = [_payload(int(value)) for value in run.world.made.columns[place, : model_table.columns]]
    written = {column + 1 for column in range(model_table.columns) if carried >> column & 1}
    if carried & int(RESOLVE_BIT):
        written.add(resolve)
    operation = Operation(int(change["operation"]))
    columns = _columns(setup, operation, written)
    old, new = (int(value).to_bytes(VALUE_BYTES, "little") for value in run.world.changes.values[place].item())
    return RowChange(
        name,
        key_of(setup.table.columns[:1], [key]),
        operation,
        _image(layouts[name], columns.before, [key, *[None] * len(values), old]),
        _image(layouts[name], columns.after, [key, *values, new]),
        identity,
    )


def _columns(setup: TableSetup, operation: Operation, written: set[int]) -> EventColumns:
    """Return the columns of both images of a logged operation; an insert is logged as an update's write is."""
    updates = operation is Operation.WRITE_ROW and setup.format.as_write
    if updates:
        return EventColumns(operation, None, tuple(sorted({0, *written})))
    found = ndb_columns(setup.format, setup.table, operation, written)
    assert found is not None
    return found


def _image(layout: RowLayout, columns: tuple[int, ...] | None, row: list[bytes | None]) -> RowImage | None:
    """Return an image; data columns of a before image, which decide nothing, are NULL."""
    return None if columns is None else RowImage(layout, columns, tuple(row[place] for place in columns))


def _payload(value: int) -> bytes | None:
    return value.to_bytes(VALUE_BYTES, "little") if value else None
