"""Histories as JSON lines."""

import json
from pathlib import Path

import pytest

from conflict import History
from conflict.errors import ConfigurationError

HEAD = '{"clusters": ["A", "B"]}\n'


def test_one_step_a_line() -> None:
    """The lines come in an order in which everything comes after its cause."""
    history = History(
        start=["insert 1 v=0"],
        A=["update 1 v=5; insert 3; read 3; delete 3", "3/1: apply 2"],
        B=["2#77: insert 2", "rewind", "apply 1 logged"],
    )
    lines = [json.loads(line) for line in history.to_json_lines().splitlines()]
    assert lines == [
        {"clusters": ["A", "B"]},
        {"start": {"insert": {"id": 1}, "values": {"v": 0}}},
        {
            "cluster": "A",
            "epoch": "1",
            "changes": [
                {"update": {"id": 1}, "values": {"v": 5}},
                {"insert": {"id": 3}, "values": {}},
                {"read": {"id": 3}},
                {"delete": {"id": 3}},
            ],
        },
        {"cluster": "B", "epoch": "2", "transaction_id": 77, "changes": [{"insert": {"id": 2}, "values": {}}]},
        {"cluster": "A", "epoch": "3/1", "apply": "2"},
        {"cluster": "B", "restart": "rewind"},
        {"cluster": "B", "epoch": "3", "apply": "1", "logged": True},
    ]


def test_a_file_of_lines(tmp_path: Path) -> None:
    """A file is read as a text is; empty lines are left out, and a head is not needed."""
    path = tmp_path / "history.jsonl"
    path.write_text(
        '{"cluster": "A", "changes": [{"insert": {"ID": 1}}]}\n\n{"cluster": "B", "epoch": 4, "apply": 1}\n'
    )
    expected = History(A=["insert 1"], B=["4: apply 1"])
    assert History.from_json_lines(path) == History.from_json_lines(str(path)) == expected


def test_values_of_all_kinds() -> None:
    """Decimals are texts, bytes hexadecimal digits, and integers exact."""
    tables = "CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, d DECIMAL(9,2), b VARBINARY(9), f DOUBLE, m DATETIME(3))"
    history = History(
        tables=tables, A=["insert 18446744073709551615 d=1.5 b=x'00FF' f=0.1 m='2026-01-31 08:00:00.250'"], B=[]
    )
    line = json.loads(history.to_json_lines().splitlines()[1])
    assert line["changes"][0]["insert"] == {"id": 2**64 - 1}
    assert line["changes"][0]["values"] == {"d": "1.50", "b": "0x00FF", "f": 0.1, "m": "2026-01-31 08:00:00.250"}
    assert History.from_json_lines(history.to_json_lines()) == history


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x", "line 2: Expecting value"),
        ("[]", "line 2: it is []; it must be a table"),
        ('{"epoch": 1, "stepp": 1}', "unknown entries stepp"),
        ('{"cluster": "A"}', "a step has changes, apply or restart, one of them; it has none"),
        ('{"cluster": "A", "apply": 1, "changes": []}', "it has changes and apply"),
        ('{"cluster": "A", "changes": [{}]}', "a change has the key of its row as insert, update, delete, read"),
        ('{"cluster": "A", "changes": [{"insert": {"k": 1}}]}', "the key of d.t is id; given is k"),
        ('{"cluster": "A", "changes": [{"update": {"id": 1}}]}', "update has no values"),
        ('{"cluster": "A", "changes": [{"insert": 1}]}', "changes#1.insert is 1; it must be a table"),
        ('{"cluster": "A", "apply": "0"}', "0 is no epoch"),
        ('{"cluster": "A", "restart": "stop"}', "it must be one of restart, rewind"),
        ('{"cluster": "C", "restart": "rewind"}', "cluster C has steps, but clusters are A and B"),
    ],
)
def test_lines_that_are_no_steps(line: str, message: str) -> None:
    """The message has the number of the line."""
    with pytest.raises(ConfigurationError) as error:
        History.from_json_lines(HEAD + line)
    assert message in str(error.value)
