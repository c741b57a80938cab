"""Places of outcomes: they name one change of the binlogs, in compressed transactions too."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import conflict
from conflict.results.result import Result
from tests.conflict.compressed_logs import Places, compress_log
from tests.corpora import DEMO

PLACE = ("file", "position", "payload_position", "row")
ENGINES = ("reference", "local")
Row = dict[str, Any]


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Places]]:
    """Return the folder of the demo with every transaction compressed, and the places of its events, by file."""
    folder = tmp_path_factory.mktemp("packed") / "demo"
    shutil.copytree(DEMO, folder)
    files = [f"{name}.binlog.000001" for name in "AB"]
    return folder, {name: compress_log(DEMO / name, folder / name) for name in files}


def outcomes(folder: Path, engine: str) -> tuple[Result, list[Row]]:
    """Return the result of a run and all its outcomes, files without their folder."""
    result = conflict.resolve(folder / "run.toml", engine=engine, all_outcomes=True)
    rows = result.outcomes().to_pylist()
    for row in rows:
        for name in ("file", "winner_file"):
            row[name] = row[name] and Path(row[name]).name
    return result, sorted(
        rows, key=lambda row: [str(row[name]) for name in ("applier", "epoch", "group", "ordinal", "key")]
    )


def moved(row: Row, places: dict[str, Places], prefix: str = "") -> None:
    """Put the place in the packed log into an outcome of the plain one."""
    file, position, inside = (f"{prefix}{name}" for name in PLACE[:3])
    if row[file] is not None:
        assert row[inside] == 0
        row[position], row[inside] = places[row[file]][row[position]]


@pytest.mark.parametrize("engine", ENGINES)
def test_outcomes_of_compressed_transactions(engine: str, packed: tuple[Path, dict[str, Places]]) -> None:
    """They are those of the plain log, but for the places, which are those in the payloads; winners' too."""
    folder, places = packed
    _, expected = outcomes(DEMO, engine)
    for row in expected:
        moved(row, places)
        moved(row, places, "winner_")
    result, found = outcomes(folder, engine)
    assert found == expected
    # No server writes such logs: its applier would have applied its own changes again.
    assert any(
        "skip changes of their own cluster in compressed transactions" in note
        for note in result.run["definition_notes"]
    )
    assert any(row["winner_payload_position"] for row in found)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_join_with_the_changes_is_unambiguous(engine: str, packed: tuple[Path, dict[str, Places]]) -> None:
    """File, position and row name several changes; with `payload_position`, one each, which has the outcome's key."""
    folder, _ = packed
    _, rows = outcomes(folder, engine)
    changes = (
        conflict.read_binlog(sorted(folder.glob("*.binlog.*")), schema=folder / "schema.sql").to_arrow().to_pylist()
    )
    for change in changes:
        change["file"] = Path(change["file"]).name
    without = Counter(tuple(change[name] for name in ("file", "position", "row")) for change in changes)
    assert max(without.values()) > 1
    by_place = {tuple(change[name] for name in PLACE): change for change in changes}
    assert len(by_place) == len(changes)
    joined = [row for row in rows if row["file"] is not None]
    assert len({(row["applier"], *(row[name] for name in PLACE)) for row in joined}) == len(joined) > 50
    for row in joined:
        change = by_place[tuple(row[name] for name in PLACE)]
        assert (f"{change['database']}.{change['table']}", change["operation"]) == (row["table"], row["operation"])
        image = dict([*(change["before"] or []), *(change["after"] or [])])
        key = [f"{name}={image[name].lower()}" for name in (part.split("=")[0] for part in row["key"].split(", "))]
        assert ", ".join(key) == row["key"].lower()


def test_explain_tells_the_places(packed: tuple[Path, dict[str, Places]]) -> None:
    """A story of a compressed log is that of the plain one, at the places in the payloads."""
    folder, places = packed
    stories = []
    for path in (DEMO, folder):
        story = conflict.explain(outcomes(path, "local")[0], table="cft.t1", key={"k": 3})
        stories.append(story.to_json()["events"])
    for event in stories[0]:
        for name in ("place", "logged"):
            if event[name] is not None:
                file = Path(event[name]["file"]).name
                event[name]["position"], event[name]["payload_position"] = places[file][event[name]["position"]]
    for story in stories:
        for event in story:
            del event["sentence"], event["winner"]
            for name in ("place", "logged"):
                if event[name] is not None:
                    event[name]["file"] = Path(event[name]["file"]).name
    assert stories[0] == stories[1]
