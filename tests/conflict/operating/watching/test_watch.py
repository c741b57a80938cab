"""The record of logs that grow is that of one run over all of them, whatever happens meanwhile."""

import random
from pathlib import Path

import pytest

import conflict
from conflict.config.run_file import load_run_file
from conflict.errors import ConfigurationError, HistoryError
from conflict.operating.watching.watch import Watch
from tests.conflict.cli.commands import invoke
from tests.conflict.operating.watching.feeds import Feed
from tests.conflict.operating.watching.kills import Killer, finished, watched_with_kills
from tests.corpora import DEMO, RECORDINGS, SHARED

CASES = sorted(path.parent for path in RECORDINGS.glob("conflict/*/random*/scenario.json"))
LIVES = sorted(path.parent for path in RECORDINGS.glob("lives/*/scenario.json"))
ALL_LIVES = sorted(path.parent for path in SHARED.glob("conformance/live*/**/scenario.json"))
LONG = sorted(path.parent for path in SHARED.glob("conformance/operations/long/*/scenario.json"))
KILLS = 200


def watched(feed: Feed, out: Path, *, cuts: bool = True) -> list[bytes]:
    """Return the records of a watch of logs that grow."""
    watch = Watch.opened(load_run_file(feed.run_file), out)
    for _ in feed.growth(cuts=cuts):
        watch.step()
    return finished(watch)


def feed_of(case: Path, folder: Path, seed: int, chunk: int) -> Feed:
    """Return the feed of a recording, whose logs have begun."""
    (folder / "feed").mkdir()
    feed = Feed.of(case, folder / "feed", seed, chunk=chunk)
    feed.begin()
    return feed


@pytest.mark.parametrize("case", CASES[::4], ids=lambda case: "/".join(case.parts[-2:]))
def test_of_a_recording(case: Path, tmp_path: Path) -> None:
    """In chunks of random sizes, with rotations, and files that are written again."""
    feed = feed_of(case, tmp_path, 1, 2000)
    found = watched(feed, tmp_path / "out")
    assert sorted(found) == sorted(feed.batch(tmp_path / "batch"))


@pytest.mark.parametrize("case", CASES[1::8], ids=lambda case: "/".join(case.parts[-2:]))
def test_with_kills(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At moments that lie anywhere."""
    feed, killer = feed_of(case, tmp_path, 2, 1500), Killer(random.Random(2))
    found = watched_with_kills(feed.run_file, tmp_path / "out", feed.growth(), killer, 20, monkeypatch)
    assert killer.kills > 3
    assert sorted(found) == sorted(feed.batch(tmp_path / "batch"))


@pytest.mark.slow
@pytest.mark.parametrize("case", LIVES, ids=lambda case: case.name)
def test_of_a_live_recording(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both appliers run all the time: rows are judged before their epoch commits."""
    feed, killer = feed_of(case, tmp_path, 3, 1 << 15), Killer(random.Random(3))
    found = watched_with_kills(feed.run_file, tmp_path / "out", feed.growth(cuts=True), killer, 10, monkeypatch)
    expected = sorted(feed.batch(tmp_path / "batch"))
    assert len(expected) > 1000
    assert sorted(found) == expected


@pytest.mark.slow
@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("case", ALL_LIVES, ids=lambda case: case.name)
def test_of_all_lives(case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all functions; 200 kills in all."""
    feed, killer = feed_of(case, tmp_path, 4, 1 << 14), Killer(random.Random(4))
    most = KILLS // len(ALL_LIVES) + 1
    found = watched_with_kills(feed.run_file, tmp_path / "out", feed.growth(cuts=True), killer, most, monkeypatch)
    assert killer.kills == most
    assert sorted(found) == sorted(feed.batch(tmp_path / "batch"))


@pytest.mark.slow
@pytest.mark.corpus("conformance")
@pytest.mark.parametrize("case", LONG, ids=lambda case: case.name)
def test_of_a_long_recording(case: Path, tmp_path: Path) -> None:
    """Eight connections on each side."""
    feed = feed_of(case, tmp_path, 5, 1 << 17)
    found = watched(feed, tmp_path / "out", cuts=False)
    assert sorted(found) == sorted(feed.batch(tmp_path / "batch"))


def test_the_engines_agree(tmp_path: Path) -> None:
    """Both engines have the record of the watch."""
    feed = feed_of(CASES[0], tmp_path, 6, 3000)
    found = sorted(watched(feed, tmp_path / "out"))
    assert found
    for engine in ("reference", "local"):
        assert sorted(feed.batch(tmp_path / engine, engine)) == found


def test_the_command_and_the_iterator(tmp_path: Path) -> None:
    """Both append the same; a watch that was ended does not go on."""
    feed = feed_of(CASES[0], tmp_path, 7, 1 << 20)
    for _ in feed.growth():
        pass
    arguments = ("watch", feed.run_file, "--until-idle", "--metrics", tmp_path / "m.prom", "--out", tmp_path / "a")
    code, output = invoke(*arguments)
    records = list(conflict.watch(feed.run_file, out=tmp_path / "b", until_idle=True))
    assert (code, f"Wrote {len(records)} records to" in output) == (0, True)
    assert (tmp_path / "a" / "records.jsonl").read_bytes() == (tmp_path / "b" / "records.jsonl").read_bytes()
    counted = [line for line in (tmp_path / "m.prom").read_text().splitlines() if line.startswith("ndb_conflict_conf")]
    assert sum(int(line.split()[-1]) for line in counted) == sum(each["kind"] == "conflict" for each in records)
    with pytest.raises(ConfigurationError, match="was ended with --until-idle"):
        list(conflict.watch(feed.run_file, out=tmp_path / "b"))


def test_what_is_refused(tmp_path: Path) -> None:
    """A schedule in the run file; an applier that stops, after the records up to there."""
    with pytest.raises(ConfigurationError, match="watch does not follow a schedule"):
        list(conflict.watch(DEMO / "run.toml", out=tmp_path / "demo"))
    case = RECORDINGS / "conflict" / "max_ins" / "probe_type2"
    feed = feed_of(case, tmp_path, 8, 1 << 20)
    for _ in feed.growth():
        pass
    with pytest.raises(HistoryError, match=r"the applier of \w stops at epoch \d+"):
        list(conflict.watch(feed.run_file, out=tmp_path / "out", until_idle=True))
