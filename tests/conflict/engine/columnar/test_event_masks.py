"""Which columns a reflected event carries: the masks say what `ndb_columns` says."""

import itertools

import numpy as np
import pytest

from conflict.engine.kernels.logged_rows import event_masks, mark_columns
from conflict.rules.functions import parse_conflict_function
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from ndb_formats.events.rows_event import Operation
from ndb_formats.rules.update_format import effective_format, ndb_columns
from ndb_formats.schema.create_table import parse_schema

TABLES = [
    "k INT NOT NULL PRIMARY KEY, a INT, b INT",
    "k VARCHAR(9) CHARACTER SET latin1 NOT NULL, j INT NOT NULL, a INT, PRIMARY KEY (k, j)",
    "k INT NOT NULL PRIMARY KEY, a INT, s INT GENERATED ALWAYS AS (a + 1) STORED, b INT",
    "k INT NOT NULL PRIMARY KEY, a INT, v INT GENERATED ALWAYS AS (a + 1) VIRTUAL, b INT, c INT",
    "k INT NOT NULL PRIMARY KEY, a INT, t TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP, b INT",
]


@pytest.mark.parametrize("binlog_type", [6, 7, 8, 9])
@pytest.mark.parametrize("columns", TABLES)
def test_masks_follow_the_format(columns: str, binlog_type: int):
    """Every set of written columns of every kind of table, in every format that can be reflected."""
    table = parse_schema(f"CREATE TABLE t ({columns});", database="d").tables[0]
    setup = TableSetup(table, parse_conflict_function("NDB$EPOCH2()"), format=effective_format(binlog_type))
    masks = event_masks([(Role.PRIMARY, [setup]), (Role.SECONDARY, [setup])])
    assert masks.reflects.tolist() == [[True], [False]]
    width = len(table.columns)
    for written in itertools.product([False, True], repeat=width):
        marked = np.ones(width, np.bool_)
        applies = np.array([5 if each else 4 for each in written])
        mark_columns(masks, 0, applies, 5, marked)
        event = ndb_columns(
            setup.format, table, Operation.UPDATE_ROW, {place for place in range(width) if written[place]}
        )
        assert event is not None
        for base, full, expected in (
            (masks.base_before, masks.all_before, event.before),
            (masks.base_after, masks.all_after, event.after),
        ):
            carried = base[0, 0] | (marked & full[0, 0])
            assert tuple(np.flatnonzero(carried).tolist()) == expected, written


def test_what_is_not_logged_is_not_reflected():
    """A table whose changes are not logged sends nothing back."""
    table = parse_schema("CREATE TABLE t (k INT NOT NULL PRIMARY KEY);", database="d").tables[0]
    setup = TableSetup(table, parse_conflict_function("NDB$EPOCH2()"), format=effective_format(1))
    assert not event_masks([(Role.PRIMARY, [setup])] * 2).reflects.any()
