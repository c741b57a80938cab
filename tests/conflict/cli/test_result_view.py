"""What `resolve` prints of a result."""

import io
from pathlib import Path

import attrs
from rich.console import Console

import conflict
from conflict.cli.views.result import print_run
from conflict.config.run_file import load_run_file
from conflict.results.run_document import Run
from conflict.results.summary import RoundFigures, RunSummary
from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType
from tests.corpora import DEMO

NOTHING = RunSummary({}, {"A": {}, "B": {}}, {"A": {}, "B": {}}, {"cft.t1": 0}, 0, 0, {}, {})


def printed(summary: RunSummary, changes: int) -> str:
    """Return what is printed of a run with these figures."""
    out = io.StringIO()
    run = Run(summary, changes, {}, {}, {}, {})
    print_run(Console(file=out, width=200), load_run_file(DEMO / "run.toml").configuration, run, [], "out")
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
