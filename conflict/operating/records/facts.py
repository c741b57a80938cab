"""
What a result knows of its conflicts and lost changes, without their images: a row per record.

A change can be in conflict several times: with several appliers, or as the delete and the write that an update of its
key is judged as. Each of these is a record; the first says that the change is lost.
"""

from __future__ import annotations

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from conflict.engine.ledger.layout import UNDECIDED
from conflict.engine.ledger.table_keys import table_of, typed_keys
from conflict.history.grid.schemas import PLACE
from conflict.operating.records.layout import CONFLICT, LOST, OVERWRITTEN, RECORD, REJECTED, VERSION
from conflict.operating.repairing.reading_lost import chosen_of, loses, lost_of, read_rejected
from conflict.results.conflicts import Chosen, numbered
from conflict.results.result import Result
from ndb_formats.columnar.lines import json_objects

Int64 = npt.NDArray[np.int64]
_IMAGES = ("server_id", "before", "after")
# Of the rows here, `key` and `identity` are as in outcomes: `with_keys` makes the record's key of them.
FACTS = pa.schema([*(field for field in RECORD if field.name not in _IMAGES), ("identity", pa.binary())])
_DECISION = ("applier", "source_epoch", "table", "identity", "operation")
# The order of records: that of the logs, cluster by cluster.
_ORDER = ("source", *PLACE, "source_epoch", "table", "applier", "epoch", "identity")


def read_facts(result: Result, which: Chosen) -> pa.Table:
    """
    Return the conflicts and lost changes of a result, as `FACTS`, in the order of the logs.

    Args:
        result: The result.
        which: Which of them.
    """
    rejected = read_rejected(result)
    lost = lost_of(result, rejected)
    row_of_lost = _first_rejections(rejected, lost)
    found = pa.concat_tables(
        [
            _conflicts(rejected, lost, row_of_lost),
            _overwritten(lost.filter(pa.array(row_of_lost < 0))),
        ]
    )
    found = chosen_of(found, which)
    found = _with_functions(_with_candidates(found, result), result).select(FACTS.names).cast(FACTS)
    return found.sort_by([(name, "ascending") for name in _ORDER])


def _first_rejections(rejected: pa.Table, lost: pa.Table) -> Int64:
    """Return the row of the first rejection of each lost change; -1 if none rejected it. Shape (lost changes,)."""
    place = ("cluster", *PLACE)
    theirs = rejected.select(["source", *PLACE]).rename_columns(list(place))
    codes = numbered(pa.concat_tables([theirs, lost.select(list(place))]), place)
    first = np.full(int(codes.max(initial=-1)) + 1, -1)
    rows = np.flatnonzero(loses(rejected).to_numpy())
    first[codes[rows][::-1]] = rows[::-1]
    return first[codes[len(rejected) :]]


def _conflicts(rejected: pa.Table, lost: pa.Table, row_of_lost: Int64) -> pa.Table:
    """Return the conflicts; what won against a lost change is what `lost` says."""
    lost_of_row = np.full(len(rejected), -1)
    changes = np.flatnonzero(row_of_lost >= 0)
    lost_of_row[row_of_lost[changes]] = changes
    is_lost = pa.array(lost_of_row >= 0)
    mine = lost.take(pa.array(lost_of_row, mask=lost_of_row < 0))
    columns = {name: rejected[name] for name in rejected.column_names} | {
        "kind": _repeated(CONFLICT, len(rejected)),
        "lost": is_lost,
        "lost_by": pc.if_else(is_lost, REJECTED, pa.scalar(None, pa.string())),
        "overwritten_in": mine["overwritten_in"],
        "winner_refresh": pc.if_else(rejected["winner_cluster"].is_valid(), rejected["refreshed"], None),
    }
    for name in (each for each in RECORD.names if each.startswith("winner_") and each in lost.column_names):
        columns[name] = pc.if_else(is_lost, mine[name], rejected[name])
    return pa.table(_named(columns))


def _overwritten(lost: pa.Table) -> pa.Table:
    """Return the lost changes that no applier rejected."""
    columns = {name: lost[name] for name in lost.column_names} | {
        "kind": _repeated(LOST, len(lost)),
        "lost": pa.repeat(pa.scalar(True), len(lost)),
        "lost_by": _repeated(OVERWRITTEN, len(lost)),
        "applier": lost["cluster"],
        "epoch": lost["overwritten_in"],
        "source": lost["cluster"],
        "source_epoch": lost["epoch"],
        "refresh": pa.repeat(pa.scalar(False), len(lost)),
        "winner_refresh": pa.repeat(pa.scalar(False), len(lost)),
        **{name: pa.nulls(len(lost), FACTS.field(name).type) for name in ("verdict", "incoming", "stored")},
    }
    return pa.table(_named(columns))


def _repeated(text: str, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), count)


def _named(columns: dict[str, pa.ChunkedArray]) -> dict[str, pa.ChunkedArray]:
    """Return the columns that differ from record to record for themselves."""
    return {name: columns[name] for name in FACTS.names if name in columns}


def _with_functions(found: pa.Table, result: Result) -> pa.Table:
    """Return facts with the function of the applier for the table; NULL if it has none, or had another one before."""
    setup = result.run["configuration"]
    earlier = setup.get("earlier_functions", {})
    numbers = numbered(found, ("applier", "table"))
    _, examples = np.unique(numbers, return_index=True)
    functions = [
        None
        if row["table"] in earlier.get(row["applier"], {})
        else setup["functions"][row["applier"]].get(row["table"], {}).get("function")
        for row in found.select(["applier", "table"]).take(pa.array(examples)).to_pylist()
    ]
    found = found.append_column("function", pa.array(functions, pa.string()).take(pa.array(numbers)))
    return found.append_column("version", pa.repeat(pa.scalar(VERSION, pa.int32()), len(found)))


def _with_candidates(found: pa.Table, result: Result) -> pa.Table:
    """Return facts with the decisions that the binlogs leave open, and all that they could have been."""
    undecided = _undecided(result)
    codes = numbered(pa.concat_tables([found.select(list(_DECISION)), undecided.select(list(_DECISION))]), _DECISION)
    lists = undecided["candidates"].combine_chunks()
    pairs = pa.table(
        {
            "code": pa.array(codes[len(found) :]).take(lists.value_parent_indices()),
            "candidate": lists.flatten(),
        }
    )
    each = pairs.group_by("code").aggregate([("candidate", "distinct")])
    texts = [json.dumps(sorted(names)) for names in each["candidate_distinct"].to_pylist()]
    row_of_code = np.full(int(codes.max(initial=-1)) + 1, -1)
    row_of_code[each["code"].to_numpy()] = np.arange(len(each))
    rows = row_of_code[codes[: len(found)]]
    rows[np.array(found["kind"].to_numpy() == LOST, np.bool_)] = -1  # the applier of the other cluster decided on it
    found = found.append_column("open", pa.array(rows >= 0))
    return found.append_column("candidates", pa.array(texts, pa.string()).take(pa.array(rows, mask=rows < 0)))


def _undecided(result: Result) -> pa.Table:
    """Return the open decisions of a result, as `UNDECIDED`, with their applier."""
    schema = pa.schema([*UNDECIDED, ("applier", pa.string())])
    parts = [schema.empty_table()]
    for applier in result.clusters:
        found = result.undecided(applier)
        parts.append(found.append_column("applier", _repeated(applier, len(found))))
    return pa.concat_tables(parts)


def with_keys(facts: pa.Table, result: Result) -> pa.Table:
    """Return facts with their keys as JSON objects in place of texts; NULL in a table without a primary key."""
    keys = np.full(len(facts), None, object)
    setup = result.run["configuration"]
    for name in pc.unique(facts["table"]).to_pylist():
        key = setup["primary_keys"][name]
        if key:
            rows = np.flatnonzero(pc.equal(facts["table"], name).to_numpy())
            mine, columns = facts.take(pa.array(rows)), setup["tables"][name]
            values = typed_keys(mine["identity"], mine["key"], table_of({each: columns[each] for each in key}, key))
            keys[rows] = json_objects(values).to_numpy(zero_copy_only=False)
    return facts.set_column(facts.schema.get_field_index("key"), "key", pa.array(keys, pa.string()))
