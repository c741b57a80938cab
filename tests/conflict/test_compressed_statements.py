"""What a log says besides rows is the same whether its transactions are compressed or not."""

from __future__ import annotations

import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import conflict
from conflict.errors import LogWarning
from ndb_formats.columnar.log_scan import LoggedTable, LogItem, scan_log
from tests.conflict.cli.commands import invoke
from tests.conflict.cli.test_besides_rows import insert, query
from tests.conflict.compressed_logs import compress_log
from tests.conflict.raw_events import XID, Raw
from tests.ndb_formats.building import MAGIC, description_event, event_bytes

GTID: Raw = (34, 1, bytes(25))  # of no group: what stands before every transaction
BEGIN, *ROWS, _ = insert(b"t")
PIECES = {
    "rows": ROWS,
    **{text: [query(text.encode())] for text in ("SAVEPOINT a", "SAVEPOINT b", "ROLLBACK TO a", "ROLLBACK TO b")},
    "statement": [query(b"INSERT INTO t VALUES (1, 2)")],
    "definition": [query(b"CREATE TABLE u (a INT)")],
}
ENDS = {"commit": query(b"COMMIT"), "rollback": query(b"ROLLBACK"), "xid": (XID, 1, bytes(8))}
Transaction = tuple[list[str], str]


def write(path: Path, transactions: list[Transaction]) -> Path:
    """Write a log of transactions, each given by its pieces and its end."""
    raws: list[Raw] = []
    for pieces, end in transactions:
        raws += [GTID, BEGIN, *(raw for piece in pieces for raw in PIECES[piece]), ENDS[end]]
    data, position = MAGIC + description_event(), 0
    for code, _, body in raws:
        position = len(data)
        data += event_bytes(code, body, position=position)
    path.write_bytes(data)
    return path


def said(path: Path) -> list[LogItem]:
    """Return what a log says besides rows."""
    return list(scan_log([path], verify=True))


@given(st.lists(st.tuples(st.lists(st.sampled_from(sorted(PIECES)), max_size=8), st.sampled_from(sorted(ENDS)))))
def test_compression_changes_places_alone(transactions: list[Transaction]) -> None:
    """Every item of the plain log is there, at the position of the compressed transaction around it, in order."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, packed = write(folder / "plain", transactions), folder / "packed"
        places = compress_log(plain, packed)
        expected = [attrs.evolve(item, file=str(packed), position=places[item.position][0]) for item in said(plain)]
        assert said(packed) == expected
        assert all(item.packed for item in said(packed) if isinstance(item, LoggedTable))


CASES: list[tuple[Transaction, str]] = [
    ((["rows"], "rollback"), "ROLLBACK"),
    ((["rows", "SAVEPOINT a", "rows", "ROLLBACK TO a"], "xid"), "ROLLBACK TO a"),
    ((["SAVEPOINT a", "SAVEPOINT b", "rows", "ROLLBACK TO a"], "commit"), "ROLLBACK TO a"),
    ((["rows", "SAVEPOINT a", "ROLLBACK TO a"], "commit"), ""),
    ((["rows"], "commit"), ""),
]


@pytest.mark.parametrize(("transaction", "back"), CASES)
def test_rows_that_were_taken_back(transaction: Transaction, back: str, tmp_path: Path) -> None:
    """Are among the rows, and it is said: by `decode` and in Python."""
    packed = tmp_path / "packed"
    compress_log(write(tmp_path / "plain", [transaction]), packed)
    start = 4 + len(description_event()) + len(event_bytes(*GTID[::2]))
    sentence = (
        "1 rollback is logged after the changes that were undone, which are among the rows as far as these files hold "
        f"them; the first is at {packed}, position {start}: {back}"
    )
    code, shown = invoke("decode", "--format", "json", "-r", tmp_path / "rows", packed)
    assert (code, sentence in shown) == ((4, True) if back else (0, False))
    count = transaction[0].count("rows")
    if back:
        with pytest.warns(LogWarning) as warned:
            assert conflict.read_binlog(packed).to_arrow().num_rows == count
        assert [str(each.message) for each in warned] == [sentence]
    else:
        assert conflict.read_binlog(packed).to_arrow().num_rows == count
