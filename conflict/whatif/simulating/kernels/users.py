"""
What the transactions of users do to the rows of their own cluster.
"""

from __future__ import annotations

from conflict.engine.kernels.apply_order import LAST_EPOCH, PAST_ALL_GROUPS
from conflict.engine.kernels.passes import make_changes
from conflict.whatif.simulating.kernels.world import RESOLVE_BIT, Stamp, Wish, all_columns, column_bit, written_value
from ndb_formats.columnar.kernel import inlined, part, unsigned
from ndb_formats.events.rows_event import Operation

WRITE, UPDATE, DELETE = (int(operation) for operation in Operation)
READ, INSERT, PUT, SWAP = int(Wish.READ), int(Wish.INSERT), int(Wish.PUT), int(Wish.SWAP)
WISHED_DELETE = int(Wish.DELETE)
NO_STAMP, CLOCK = int(Stamp.NONE), int(Stamp.CLOCK)
NOTHING = 0  # no operation


@inlined
def epoch_number(setting, tick):
    """Return the number of an epoch: the checkpoint in the high word, the epoch within it in the low one."""
    time = tick * setting["epoch"]
    checkpoint = setting["first_checkpoint"] + time // setting["checkpoint"]
    return unsigned(checkpoint << 32 | (time % setting["checkpoint"]) // setting["epoch"])


@part
def note_difference(key, now, states, rows, run, stale):
    """
    Note whether a row differs between the clusters from now on; return whether there was room for it.

    Args:
        key: The row.
        now: The time.
        states: `State.rows`.
        rows: `Rows`.
        run: `World.run[0]`.
        stale: `World.stale`.
    """
    first, differs = states[key, 0], False
    for side in range(1, states.shape[1]):
        other = states[key, side]
        differs |= first["exists"] != other["exists"]
        if first["exists"] and other["exists"]:
            differs |= first["value"] != other["value"]
            for column in range(rows.columns.shape[2]):
                differs |= rows.columns[key, 0, column] != rows.columns[key, side, column]
    since = rows.since[key]
    if differs == (since >= 0):
        return True
    if differs:
        rows.since[key] = now
        if run["differing"] == 0:
            run["since"] = now
        run["differing"] += 1
        return True
    rows.since[key] = -1
    run["differing"] -= 1
    run["row_time"] += now - since
    if run["differing"] == 0:
        run["differed"] += now - run["since"]
    if run["stale"] == len(stale):
        return False
    stale[run["stale"]] = now - since
    run["stale"] += 1
    return True


@part
def read_wanted(side, number, wishes, version, read):
    """
    Let a transaction read the rows that it wants, to check later that nobody changed them since.

    Args:
        side: Its cluster.
        number: Its number among the wishes.
        wishes: `Intentions`.
        version: `Rows.version`.
        read: `World.read`; filled in.
    """
    for place in range(wishes.first[number], wishes.first[number + 1]):
        read[place] = version[wishes.key[place], side]


@inlined
def _operation(kind, exists):
    """Return the operation that a wish becomes."""
    if kind == INSERT or (not exists and kind in (PUT, SWAP)):
        return WRITE
    if not exists or kind == READ:
        return NOTHING
    return DELETE if kind in (WISHED_DELETE, SWAP) else UPDATE


@part
def commit_transaction(side, number, now, world):
    """
    Let a transaction do what it wants.

    Args:
        side: Its cluster.
        number: Its number among `Intentions`.
        now: The time.
        world: `World`.

    Returns:
        Whether it committed, and whether there was room for what it did.
    """
    wishes, site, setting, rows = world.intentions, world.site[side], world.settings[side], world.rows
    state, totals, changes, made = world.work.state, world.totals[side], world.changes, world.made
    start, stop = wishes.first[number], wishes.first[number + 1]
    for place in range(start, stop):
        key, kind = wishes.key[place], wishes.kind[place]
        if kind == INSERT and state.rows[key, side]["exists"]:
            return False, True
        if setting["optimistic"] and kind != READ and world.read[place] != rows.version[key, side]:
            return False, True
    epoch, first = epoch_number(setting, site["tick"]), site["stop"]
    for place in range(start, stop):
        key, kind = wishes.key[place], wishes.kind[place]
        if rows.touched[key, side] == number + 1:
            continue
        rows.touched[key, side] = number + 1
        mine = state.rows[key, side]
        if kind == READ:
            totals["reads"] += 1
            totals["stale_reads"] += rows.since[key] >= 0
            continue
        operation = _operation(kind, mine["exists"])
        if operation == NOTHING:
            totals["missed"] += 1
            continue
        table = world.tables[side, world.key_table[key]]
        made.transaction[site["stop"]] = number - wishes.begin[side]
        wished, columns = wishes.writes[place], rows.columns
        _log_change(side, key, operation, wished, epoch, now, site, setting, table, mine, changes, made, columns)
    totals["committed"] += 1
    if site["stop"] == first:
        return True, True
    site["groups"] += 1
    site["content"] = True
    end = site["stop"]
    make_changes(side, end, LAST_EPOCH, PAST_ALL_GROUPS, changes, world.rules, world.work, False)
    room = True
    for place in range(first, end):
        key = changes.rows[place]["key"]
        rows.version[key, side] += 1
        if setting["relays"]:
            rows.value[key, side] = state.rows[key, side]["value"]
        room &= note_difference(key, now, state.rows, rows, world.run[0], world.stale)
    return True, room


@inlined
def put_change(change, key, operation, stamped, table):
    """
    Fill in how a cluster logs a row operation, which writes the resolve column or not.

    Return whether the after image carries this column.
    """
    before, after = False, False
    if operation == WRITE:
        after = table["stamp"] != NO_STAMP
    elif operation == UPDATE:
        before = table["before_written"] if stamped else table["before_other"]
        after = table["after_written"] if stamped else table["after_other"]
    else:
        before = table["delete_before"]
    logged = WRITE if operation == UPDATE and table["writes"] else operation
    change["key"], change["operation"], change["empty"] = key, logged, False
    change["before_given"], change["after_given"] = before and logged != WRITE, after
    # The resolve column is the one that a new row must be given.
    change["incomplete"] = table["stamp"] != NO_STAMP and operation != DELETE and not after
    return after


@inlined
def _log_change(side, key, operation, wished, epoch, now, site, setting, table, mine, changes, made, columns):
    """Log one row operation of a user, and give the row its data columns."""
    every = all_columns(table)
    stamped = table["stamp"] != NO_STAMP and (operation == WRITE or (wished & RESOLVE_BIT) != 0)
    written = every if operation == WRITE else wished & every
    carried = every if operation == WRITE or table["whole"] else written
    value = mine["value"]
    if not mine["exists"]:
        value = unsigned(0)
    old = value
    if stamped:
        value = unsigned(max(now + setting["skew"], 1)) if table["stamp"] == CLOCK else value + unsigned(1)
    if operation == DELETE:
        carried, written = unsigned(0), every
    number = site["stop"]
    change, values = changes.rows[number], changes.values[number]
    change["epoch"], change["group"], change["relayed"] = epoch, site["groups"], 0
    after = put_change(change, key, operation, stamped, table)
    values["before"], values["after"] = old, value
    author = written_value(side, number - changes.begin[side], columns.shape[1])
    for column in range(table["columns"]):
        bit = column_bit(column)
        if written & bit:
            columns[key, side, column] = unsigned(0) if operation == DELETE else author
        made.columns[number, column] = columns[key, side, column] if carried & bit else unsigned(0)
    made.carried[number] = carried | RESOLVE_BIT if after else carried
    made.written[number] = written | RESOLVE_BIT if stamped else written
    made.at[number] = now
    site["bytes"] += table["row_bytes"]
    site["stop"] = number + 1
