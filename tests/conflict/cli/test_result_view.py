"""What `resolve` prints of a result."""

import io
from pathlib import Path

import attrs
from rich.console import Console

import conflict
from conflict.cli.views.result import print_run
from conflict.config.run_file import load_run_file
from conflict.history.run import Run
from conflict.results.run_document import ResolvedRun
from conflict.results.summary import RoundFigures, RunSummary
from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from tests.corpora import DEMO

NOTHING = RunSummary({}, {"A": {}, "B": {}}, {"A": {}, "B": {}}, {"cft.t1": 0}, 0, 0, {}, {})


def printed(summary: RunSummary, changes: int, width: int = 200) -> str:
    """Return what is printed of a run with these figures."""
    out = io.StringIO()
    run = ResolvedRun(Run(load_run_file(DEMO / "run.toml").configuration), summary, changes, {}, {}, {}, {})
    print_run(Console(file=out, width=width), run, [], "out")
    return out.getvalue()


def test_the_first_rounds_are_printed() -> None:
    """Clusters that correct each other need hundreds of rounds."""
    rounds = tuple(RoundFigures(rows, 3, 1) for rows in (100, 50, *[20] * 400))
    said = printed(attrs.evolve(NOTHING, rounds=rounds), 7)
    assert (
        "3 transactions in conflict, found in 402 rounds over 100, 50, 20, 20, 20, 20, 20, 20, … row changes." in said
    )
    assert "rounds over 100, 50 row changes." in printed(attrs.evolve(NOTHING, rounds=rounds[:2]), 7)


def test_nothing_that_was_read_does_not_converge(tmp_path: Path) -> None:
    """Binlogs without a change of the tables tell nothing of what the tables hold."""
    words = "The binlogs hold no row change of the clusters' own, of tables that are known."
    assert words in printed(NOTHING, 0)
    assert "converged" not in printed(NOTHING, 0)
    assert "did not converge" in printed(attrs.evolve(NOTHING, differing_rows={"cft.t1": 1}), 0)
    files = [tmp_path / f"{name}.binlog.000001" for name in "AB"]
    for file in files:
        headers = read_headers(DEMO / file.name)
        first = next(position for position, header in headers if header.type_code == EventType.QUERY_EVENT)
        file.write_bytes((DEMO / file.name).read_bytes()[:first])
    schema = DEMO / "schema.sql"
    result = conflict.resolve(*files, schema=schema, engine="reference", out=tmp_path / "out")
    assert repr(result.summary).startswith(words)


def test_no_figure_is_cut_in_80_columns() -> None:
    """Also where verdicts occur that are rare, and names are long."""
    figures = {"applied": 1_234_567, "ignored": 345_678, "rejected": 456_789, "refreshes": 567_891}
    figures |= {"discarded": 678_912, "skipped": 789_123, "cannot_tell": 891_234}
    summary = attrs.evolve(NOTHING, tables={"amsterdam": {"shop.orders_of_customers": figures}})
    said = printed(summary, 7, width=80)
    assert all(f"{figure:,}" in said for figure in figures.values())
    assert all(heading in said for heading in ("conflicts", "refreshed", "discarded", "skipped", "cannot tell"))
    assert max(map(len, said.splitlines())) <= 80


def test_an_alarm_comes_before_the_figures() -> None:
    """Every table says that it is not what happened, and the end points to the alarm."""
    tallies = {"A": {"cft.t1": {"applied": 2}}}
    contradictions = {"A": {"cft.t1": {"derived CHANGED, shown nothing": 2}}}
    summary = attrs.evolve(NOTHING, tables=tallies, compared=3, contradicted=2, contradictions=contradictions)
    said = printed(summary, 7).splitlines()
    assert said[0].startswith(
        "The binlogs contradict the run as it is configured: of 3 row changes by appliers, 2 differ"
    )
    titles = [line for line in said if line.startswith("What the ")]
    assert titles == [
        "What the binlogs show otherwise",
        "What the appliers did, which is not what happened",
        "What the tables hold at the end, which is not what happened",
    ]
    assert said[-2] == "The binlogs contradict the run as it is configured: see the first lines."
    assert "not what happened" not in printed(attrs.evolve(summary, contradicted=0, contradictions={}), 7)
