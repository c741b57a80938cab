"""Histories of results: what a run did to some rows comes to the same as in the run."""

from pathlib import Path

import pytest

import conflict
from conflict import History
from conflict.errors import ConfigurationError, HistoryError
from tests.corpora import DEMO

FUNCTIONS = {"cft.t1": "NDB$EPOCH(6)", "cft.t2": "NDB$EPOCH(6)"}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> conflict.Result:
    """Return the result of the bundled recording."""
    out = tmp_path_factory.mktemp("demo") / "result"
    return conflict.resolve(DEMO / "run.toml", out=out, engine="reference", all_outcomes=True)


def test_a_whole_run(result: conflict.Result) -> None:
    """Rows and counters are those of the result."""
    found = History.from_result(result).resolve(FUNCTIONS)
    for name in "AB":
        for table in ("cft.t1", "cft.t2", "cft.plain"):
            expected = result.rows(name, table).to_pylist()
            assert sorted(map(str, found.rows(name, table))) == sorted(map(str, expected))
        moved = {counter: value for counter, value in result.counters[name].items() if value}
        assert dict(found.counters[name]) == moved


def test_every_row(result: conflict.Result) -> None:
    """What appliers decided on a row is what they decide on it alone."""
    outcomes = result.outcomes(table="cft.t1").to_pylist()
    for key in dict.fromkeys(each["key"] for each in outcomes):
        found = History.from_result(result, table="t1", key=key).resolve(FUNCTIONS["cft.t1"])
        for name in "AB":
            mine = [each for each in outcomes if (each["key"], each["applier"]) == (key, name)]
            expected = [(each["operation"], each["verdict"], each["cause"] or "NONE") for each in mine]
            decided = [each for each in found.judged if each.applier == name]
            told = [(f"{each.operation.upper()}_ROW", each.verdict.name, each.cause.name) for each in decided]
            assert sorted(told) == sorted(expected), key


def test_a_transaction(result: conflict.Result) -> None:
    """The rows that it changed are all there."""
    number = next(each for each in result.outcomes(table="cft.plain").to_pydict()["transaction_id"] if each)
    found = History.from_result(result, transaction=number)
    assert "cft.plain" in found.tables.by_name
    assert any(found.lanes.values())


def test_what_is_asked_for_and_not_there(result: conflict.Result, tmp_path: Path) -> None:
    """The message says what is missing."""
    with pytest.raises(HistoryError, match="nothing happened to row 999 of t1"):
        History.from_result(result, table="t1", key=999)
    with pytest.raises(HistoryError, match="transaction 5 is in no binlog"):
        History.from_result(result, transaction=5)
    with pytest.raises(ConfigurationError, match="ask for one thing"):
        History.from_result(result, key=1)
    with pytest.raises(ConfigurationError):
        History.from_result(tmp_path / "nothing.toml")
