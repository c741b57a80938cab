"""What binlogs show beside settings: epochs that are too large, waited too long, or arrived before they were made."""

import io
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conflict.checking.check import check_configuration
from conflict.checking.read_logs import ReadLog, read_logs, travels_of
from conflict.checking.report import Report
from conflict.config.configuration import ClusterConfiguration, Links, LoggingServer
from conflict.config.run_file import load_run_file
from conflict.rules.server_variables import VARIABLE_OF, Effect, ServerVariable, parse_release
from ndb_formats.binlog_reader import read_events
from ndb_formats.constants import EventType
from ndb_formats.events.gtid_event import decode_gtid, encode_gtid
from ndb_formats.events.header import decode_format_description
from ndb_formats.writing.event_stream import EventStream
from tests.conflict.checking.test_planted import found
from tests.conflict.checking.test_settings import BASE, with_a
from tests.corpora import DEMO

SECOND, DAY = 1_000_000, 86_400
NEW = ServerVariable("new", Effect.OPEN)
GTIDS = (EventType.GTID_LOG_EVENT, EventType.ANONYMOUS_GTID_LOG_EVENT)
Moved = Callable[[int], int]  # by the number of a transaction, how many microseconds later it is logged


def with_times(binlog: Path, moved: Moved) -> bytes:
    """Return a binlog with other times of its Gtid events."""
    out, number = io.BytesIO(), 0
    stream = EventStream(out)
    for event in read_events(binlog):
        if event.type is EventType.FORMAT_DESCRIPTION_EVENT:
            stream.start(event.header, decode_format_description(event.body))
            continue
        body = event.body
        if event.type in GTIDS:
            gtid = decode_gtid(body)
            assert gtid.committed is not None
            body = encode_gtid(attrs.evolve(gtid, committed=gtid.committed + moved(number)))
            number += 1
        stream.put(event.header, body)
    return out.getvalue()


def sizes(binlog: Path) -> Iterator[int]:
    """Yield the bytes of each transaction of a log, without its Gtid event and checksums."""
    size = 0
    for event in read_events(binlog):
        if event.type in GTIDS:
            yield size
            size = 0
        else:
            size += event.header.size - 4
    yield size


def report_of(folder: Path, a: Mapping[str, str] = {}, b: Mapping[str, str] = {}, **moved: Moved) -> Report:
    """Return the report of two clusters with the logs of the demo, at other times, and with other variables."""
    for name in "AB":
        log = DEMO / f"{name}.binlog.000001"
        (folder / f"{name}.000001").write_bytes(with_times(log, moved[name]) if name in moved else log.read_bytes())
    planned = attrs.evolve(with_a(BASE, {**a}), entries=tuple(f'binlogs = ["{name}.0*"]' for name in "AB"))
    planned = attrs.evolve(planned, a=of_release(planned.a), b=of_release({**planned.b, **b}))
    planned.report(folder)
    configuration = load_run_file(folder / "run.toml").configuration
    return check_configuration(configuration, logs=read_logs(configuration))


def of_release(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the release of the logs has."""
    return {name: value for name, value in variables.items() if VARIABLE_OF.get(name, NEW).is_in((9, 7, 4))}


def by_seconds(seconds: float) -> Moved:
    """Return how a clock moves all times."""
    return lambda number: round(seconds * SECOND)


def test_nothing_is_found_in_the_logs_of_a_recording(tmp_path: Path) -> None:
    """Its epochs are small, arrived soon, and its servers ran on one host."""
    assert found(report_of(tmp_path)) == set()


def test_epochs_larger_than_the_cache(tmp_path: Path) -> None:
    """How many, of how many, and the largest; each server's own log against its own cache."""
    log = DEMO / "A.binlog.000001"
    own = [size for size in sizes(log) if size][1:]
    (finding,) = (report := report_of(tmp_path, {"ndb_log_cache_size": "1000"})).findings
    assert found(report) == {("099", "A")}
    larger = sum(size > 1000 for size in own)
    assert 0 < larger < len(own)
    assert f"{larger} epochs of {len(own)} in the binlogs, the largest of {max(own):,} bytes" in finding.sentence
    assert str(finding.fix) == "SET PERSIST ndb_log_cache_size = 2048; on A."
    assert found(report_of(tmp_path, {"ndb_log_cache_size": str(max(own))})) == set()
    assert found(report_of(tmp_path, {"ndb_log_cache_size": str(max(own) - 1)})) == {("099", "A")}


def test_the_cache_of_earlier_releases(tmp_path: Path) -> None:
    """It is that of all transactions; an option file that does not set it has its default; sizes can have a unit."""
    small = {"binlog_cache_size": "1000"}
    assert found(report_of(tmp_path, small)) == set()
    configuration = load_run_file(tmp_path / "run.toml").configuration
    logs = read_logs(configuration)
    old = check_configuration(configuration, release=parse_release("8.4.2"), logs=logs)
    assert {(each.code, each.page) for each in old.findings if each.code == "NDB-E099"} == {("NDB-E099", "binary-log")}
    for line, codes in (("", set()), ("ndb-log-cache-size = 1K", {"NDB-E099"}), ("ndb-log-cache-size = 1M", set())):
        (tmp_path / "A.txt").write_text(f"[mysqld]\nserver-id = 1\n{line}\n")
        configuration = load_run_file(tmp_path / "run.toml").configuration
        report = check_configuration(configuration, logs=logs)
        assert {each.code for each in report.findings} & {"NDB-E099"} == codes


def test_epochs_that_are_too_large_to_be_logged(tmp_path: Path) -> None:
    """The largest epoch of a log against the largest transaction that its server takes."""
    largest = max(sizes(DEMO / "A.binlog.000001"))
    assert found(report_of(tmp_path, {"max_binlog_cache_size": str(largest)})) == set()
    (finding,) = (report := report_of(tmp_path, {"max_binlog_cache_size": "1024"})).findings
    assert found(report) == {("100", "A")}
    assert f"has {largest:,} bytes" in finding.sentence
    assert str(finding.fix) == "SET PERSIST max_binlog_cache_size = 4294967296; on A."


@pytest.mark.parametrize(
    ("clocks", "expected", "said"),
    [
        ({"B": by_seconds(-5)}, {("101", "AB")}, "B applied an epoch 5.0 seconds before A had made it"),
        ({"A": by_seconds(5)}, {("101", "AB")}, "B applied an epoch 5.0 seconds before A had made it"),
        ({"B": by_seconds(3600)}, {("101", "AB")}, "A applied an epoch 3,600.0 seconds before B had made it"),
        ({"B": by_seconds(-1)}, set(), ""),
        ({"A": by_seconds(3600), "B": by_seconds(3600)}, set(), ""),
    ],
)
def test_clocks_that_differ(
    clocks: dict[str, Moved], expected: set[tuple[str, str]], said: str, tmp_path: Path
) -> None:
    """By a second at least: the fastest epochs took some hundredths of one."""
    report = report_of(tmp_path, **clocks)
    assert found(report) == expected
    assert all(said in each.sentence for each in report.findings)


def after(number: int, seconds: int) -> Moved:
    """Return how times move if a server stood still before a transaction."""
    return lambda each: seconds * SECOND if each >= number else 0


def test_channels_that_stood_still_for_longer_than_logs_are_kept(tmp_path: Path) -> None:
    """Both for two days, between an epoch of A and its arrival; whether clocks agree does not matter."""
    two_days, day = 2 * DAY, {"binlog_expire_logs_seconds": str(DAY)}
    logs = read_logs(load_run_file(DEMO / "run.toml").configuration)
    (there,) = (each for each in travels_of(logs, _pair()) if each.source.server_id == 1)
    epoch = int(there.applier.applied[0])
    made = there.source.number.tolist().index(epoch)
    place = there.applier.number.tolist()
    arrived = int(np.flatnonzero(there.applier.committed == there.applier.applied_at[0])[0])
    assert len(place) > arrived
    stood = {"A": after(made + 2, two_days), "B": after(arrived + 1, two_days)}  # the first Gtid is of no epoch
    report = report_of(tmp_path, day, **stood)
    assert found(report) == {("098", "A")}
    (finding,) = report.findings
    assert "172,80" in finding.sentence
    assert str(finding.fix) == f"SET PERSIST binlog_expire_logs_seconds = {4 * DAY}; on A."
    assert found(report_of(tmp_path, {"binlog_expire_logs_seconds": str(3 * DAY)}, **stood)) == set()
    assert found(report_of(tmp_path, {**day, "binlog_expire_logs_auto_purge": "OFF"}, **stood)) == {("096", "A")}


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """A log that is cut off, is none, or is not there; `resolve` says so."""
    report_of(tmp_path)
    log = (tmp_path / "A.000001").read_bytes()
    (tmp_path / "A.000001").write_bytes(log[:-100])
    (tmp_path / "B.000001").write_bytes(b"no binlog")
    configuration = load_run_file(tmp_path / "run.toml").configuration
    cut, none = read_logs(configuration)
    assert 0 < len(cut.number) < 16
    assert not len(none.number)
    shutil.move(tmp_path / "B.000001", tmp_path / "other")
    assert [each.cluster for each in read_logs(configuration)] == ["A"]


def _pair() -> Links:
    return Links(tuple(ClusterConfiguration(name, (LoggingServer(number),)) for name, number in (("A", 1), ("B", 2))))


def log_of(name: str, committed: list[int], applied: list[tuple[int, int]]) -> ReadLog:
    """Return a log with epochs 10, 11, ... at some times, and foreign epochs that were applied at some times."""
    server = "AB".index(name) + 1
    epochs, times = ([each[place] for each in applied] for place in (0, 1))
    return ReadLog(
        name,
        server,
        np.arange(10, 10 + len(committed), dtype=np.uint64),
        np.array(committed, np.int64),
        np.zeros(len(committed), np.int64),
        np.full(len(applied), 3 - server, np.uint64),
        np.array(epochs, np.uint64),
        np.array(times, np.int64),
    )


def took(made: ReadLog, there: ReadLog) -> list[int]:
    """Return how long epochs of A took to B."""
    return [time for each in travels_of((made, there), _pair()) if each.source is made for time in each.took.tolist()]


def test_which_times_count() -> None:
    """The first time that an epoch is applied; not of epochs that the log lacks, or whose times it does not tell."""
    made = log_of("A", [100, 200, 0, 400], [])
    assert took(made, log_of("B", [1], [(10, 150), (11, 230), (10, 9000), (12, 400), (13, 0), (99, 500)])) == [50, 30]
    assert took(made, log_of("B", [1], [])) == []
    anew = attrs.evolve(made, number=np.array([10, 11, 10, 11], np.uint64))
    assert took(anew, log_of("B", [1], [(10, 150)])) == []


@given(
    st.lists(st.integers(1, 10**15), min_size=1, max_size=6),
    st.lists(st.integers(0, 10**9), min_size=6, max_size=6),
    st.integers(-(10**9), 10**9),
)
def test_a_clock_moves_all_by_as_much(committed: list[int], delays: list[int], skew: int) -> None:
    """So what epochs took longer than the fastest stays as it is."""
    at = [moment + 10**10 for moment in committed]
    arrived = [(10 + place, moment + delay) for place, (moment, delay) in enumerate(zip(at, delays, strict=False))]
    moved = [(epoch, moment + skew) for epoch, moment in arrived]
    made = log_of("A", at, [])
    assert took(made, log_of("B", [1], arrived)) == delays[: len(at)]
    assert took(made, log_of("B", [1], moved)) == [delay + skew for delay in delays[: len(at)]]
