"""What can be published of benchmarks, and results beside those that are."""

import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.beside import beside
from benchmarks.documents import figures, unfit
from benchmarks.machine import environment, start, without_path
from benchmarks.page import RESULTS, take_over

QUIET = {"cores": 2, "busy_cores_at_start": 0.1}


def result(*processor: float, **machine: object) -> dict[str, object]:
    """Return a document with one work."""
    work = {"processor_seconds": list(processor), "wall_seconds": [1.0] * len(processor)}
    return {"environment": {**QUIET, **machine}, "results": {"mix": {"ours": work}}}


def test_figures_at_any_depth_have_a_name_and_a_median() -> None:
    """Those in lists, too."""
    document = {"a": {"b": {"processor_seconds": [1.0, 3.0, 2.0]}}, "c": [{"processor_seconds": [5.0]}]}
    assert [(each.name, each.seconds) for each in figures(document)] == [("a, b", 2.0), ("c, 1", 5.0)]


@pytest.mark.parametrize(
    ("document", "reasons"),
    [
        (result(1.0, 1.1, 0.9), []),
        (result(1.0, 1.1, 7.0), []),  # one run of three that was disturbed moves no median
        (result(1.0, 1.5, 2.0), ["mix, ours: its runs lie 33% apart, more than 10%"]),
        (result(1.0, busy_cores_at_start=1.2), ["others kept 1.2 of 2 cores busy when it began"]),
        (result(1.0, busy_cores_at_start=1.0), []),
        (result(1.0, busy_cores_at_start=None), ["it does not say how busy the machine was"]),
    ],
)
def test_results_of_a_busy_machine_or_with_noise_are_not_published(
    document: dict[str, object], reasons: list[str]
) -> None:
    """Half of the cores, and 10 %, are the limits."""
    assert list(unfit(document)) == reasons


def test_only_what_is_fit_takes_the_place_of_what_was_published(tmp_path: Path) -> None:
    """The others are named, and the old ones stay."""
    made, kept = tmp_path / "made", tmp_path / "kept"
    made.mkdir()
    kept.mkdir()
    for name, document in (("good", result(1.0)), ("bad", result(1.0, 2.0, 4.0))):
        (made / f"{name}.json").write_text(json.dumps(document))
        (made / f"{name}.md").write_text("new")
        (made / f"{name}.svg").write_text("drawn")
        (kept / f"{name}.md").write_text("old")
    assert take_over(made, kept, kept) == [
        "bad.json is not published: mix, ours: its runs lie 50% apart, more than 10%"
    ]
    assert {path.name: path.read_text() for path in kept.glob("*.md")} == {"good.md": "new", "bad.md": "old"}
    assert [path.name for path in kept.glob("*.svg")] == ["good.svg"]


def test_results_stand_beside_those_that_are_published() -> None:
    """A figure is 1.50 times the published one; what is new stands alone."""
    here = result(3.0)
    here["results"]["mix"]["new"] = {"processor_seconds": [1.0]}
    console = Console(width=120)
    with console.capture() as shown:
        console.print(beside("decode", here, result(2.0)))
    lines = [line.strip(" │┃").replace("│", " ").split() for line in shown.get().splitlines()]
    assert ["mix,", "ours", "2.00", "3.00", "1.50", "0%"] in lines
    assert ["mix,", "new", "1.00", "0%"] in lines


def test_a_result_says_what_it_depends_on() -> None:
    """The commit, the memory and the peers, with whose they are."""
    facts = environment(start(tries=1, seconds=0.01), "numpy", peers={"mysqlbinlog": "Ver 9.7 (MySQL)"})
    assert facts["cores"] >= 1
    assert facts["memory_gib"] > 0.1
    assert facts["peers"] == {"mysqlbinlog": "Ver 9.7 (MySQL)"}
    assert facts["busy_cores_at_start"] >= 0
    assert set(facts["packages"]) == {"numpy"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("/opt/mysql/bin/mysqlbinlog  Ver 9.7.4 for Linux on x86_64", "Ver 9.7.4 for Linux on x86_64"),
        ("mysqlbinlog Ver 3.5 for debian-linux-gnu at x86_64", "mysqlbinlog Ver 3.5 for debian-linux-gnu at x86_64"),
    ],
)
def test_the_version_of_a_peer_has_no_path(said: str, shown: str) -> None:
    assert without_path(said) == shown


def test_published_results_name_no_place_on_a_machine() -> None:
    files = sorted(RESULTS.rglob("*.json"))
    assert files
    texts = {file.name: re.findall(r'"(/[^"]+/[^"]*)"', file.read_text("utf-8")) for file in files}
    assert {name: found for name, found in texts.items() if found} == {}
