"""Where no transaction is open in a file that grows."""

from pathlib import Path

import pytest

from ndb_formats.binlog_reader import Event, read_events
from ndb_formats.columnar.settled import settled_positions
from ndb_formats.constants import EventType
from ndb_formats.events.query_event import decode_query
from ndb_formats.events.rows_event import ROWS_EVENTS
from tests.corpora import DEMO

REPORTS = Path(__file__).parents[2] / "recordings" / "reports"
STARTS = {EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT, EventType.MARIADB_GTID_EVENT}
INSIDE = {*ROWS_EVENTS, *STARTS, EventType.TABLE_MAP_EVENT}
LOGS = [DEMO / "A.binlog.000001", *sorted(REPORTS.glob("*.binlog"))]


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)
def test_a_file_that_is_cut(log: Path, tmp_path: Path) -> None:
    """Wherever it is: no transaction is cut, and no whole one is left out."""
    events, data, file = list(read_events(log)), log.read_bytes(), tmp_path / "binlog.000001"
    assert len(events) > 3
    for number, event in enumerate(events):
        cut = event.end + (7 if number % 2 else 0)  # also in the middle of the next header
        file.write_bytes(data[:cut])
        last = int(settled_positions(file)[-1])
        begins = any(each.position == last and each.type in STARTS for each in events)
        assert last == 4 or begins or any(each.end == last and each.type not in INSIDE for each in events)
        assert not any(_ends(each) for each in events if last <= each.position and each.end <= cut)
    file.write_bytes(data)
    assert settled_positions(file)[-1] == len(data)


def _ends(event: Event) -> bool:
    commits = event.type is EventType.QUERY_EVENT and decode_query(event.body).statement in ("COMMIT", "ROLLBACK")
    return commits or event.type in (EventType.XID_EVENT, EventType.XA_PREPARE_LOG_EVENT)
