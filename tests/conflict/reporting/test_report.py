"""`ndb-conflict report`: one page for results of every kind, which loads nothing and trusts no name."""

import csv
import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import attrs
import pyarrow as pa
import pytest

from conflict.cli.refusals import ExitCode
from conflict.errors import ConfigurationError
from conflict.reporting.html.page import overview, page_of
from conflict.reporting.joining import joined
from conflict.reporting.reading import part_of
from conflict.reporting.resolve_part import resolve_part
from conflict.results.result import read_result
from conflict.telling.part import FunctionFigures, Part, Topic
from conflict.telling.value import Chart, Form, Table, Telling, shown
from conflict.whatif.comparing.part import compare_part
from tests.conflict.cli.commands import invoke
from tests.conflict.reporting.pages import Page

NOTHING = Part(Telling("nothing", tables=[Table("t", (), [])]), "a file", {}, {})
EVIL = "<script>alert('$x$')</script>\x1b[2J"


@pytest.fixture(scope="session")
def report(results: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a report of all results, and of the figures of two."""
    folder = tmp_path_factory.mktemp("report")
    two = (results["resolve"], results["sizes"])
    code, output = invoke("report", *two, "--out", folder / "two.html", "--figures", folder / "figures")
    assert code == 0, output
    code, output = invoke("report", *results.values(), "--out", folder / "r.html")
    assert code == 0, output
    assert "7 results, " in output
    return folder


def test_all_kinds_of_results_are_told(report: Path) -> None:
    """Each has its part and its answer; the figures of the recording are those that it is known to have."""
    page = Page((report / "r.html").read_text("utf-8"))
    assert page.elements.count("section") == 8
    for text in (
        "90 row changes, 25 conflicts; the clusters did not converge.",
        "cft.plain none 2 2 1",
        "All 81 row changes by appliers in the binlogs agree.",
        "Which function loses least? NDB$EPOCH() @A NDB$EPOCH() @A: 33 of 90 changes lost (36.7 %).",
        "NDB$EPOCH() @A * 33 23 10 1 18",
        "NDB$EPOCH() @A 3 4 18 0 17 (5)",
        "cft.plain (no function)",
        "What does latency cost? With NDB$EPOCH(), ",
        "The functions side by side As configured: NDB$EPOCH() @A. A dash: not simulated.",
        "OVERWRITE † 29 0 29 4 0",
        "How long changes took to reach the other cluster, ms",
        "Rows that differ by table function cft.plain (no function)",
        " a day In binlog type 8, the smallest for certain that NDB$EPOCH() @A can use.",
        "Binlog a day * the smallest for certain. whole log type 6",
        "From the recorded binlogs: 90 changes of users, ",
        "Stale time of rows, 99th percentile, ms, by latency_ms (median)",
        "seeds of one point differ by up to ",
        "The simulated epochs do not take as long as those of the recording, but as long as the model says.",
        "What the words mean @A Behind a function: cluster A is the primary",
        "conflict function NDB$EPOCH() binlog type 7 latency of links from A 50 ms rate 200 transactions per second",
        "8: 2 with different seeds, of which the figures are the medians, for each combination",
        "The clusters end different after 1 step (17 states) under NDB$EPOCH(), binlog type 7",
        "searched all schedules of up to 2 transactions, 1 row",
        "deletes row 1",
        "cft.t2 B 15 14 1 3",  # of lost changes by table
        "1 statement in 1 file; 33 rows or lost changes left to review.",
        "1-B.sql 1 cft.plain id=3 equal, A wins (*=A)",
        "reapply cft.plain id=1 x and n are not what the change found",
    ):
        assert text in page.text


def test_the_top_is_short(results: dict[str, Path]) -> None:
    """Up to seven sentences an answer, in the order function, limit, bytes; no sentence has more than 30 words."""
    parts = joined([part_of(each) for each in results.values()])
    lines = [line for part in parts for line in part.headlines]
    assert sorted(line.topic for line in lines) == list(Topic)
    assert max(len(line.sentences) for line in lines) <= 7
    assert all(line.setting for line in lines)
    texts = [text for line in lines for text in line.sentences] + [
        text for part in parts for text in part.telling.sentences
    ]
    assert [each for text in texts for each in re.split("[.] (?=[A-Z])", text) if len(each.split()) > 30] == []
    page = page_of("t", parts)
    questions = ("Which function loses least?", "What does latency cost?", "What does it cost in bytes?")
    places = [page.index(f"<article><h2>{each}</h2>") for each in questions]
    assert [*places, page.index("<section")] == sorted([*places, page.index("<section")])


def test_no_request_leaves_the_page(report: Path) -> None:
    """Nothing that a browser would load: no script, no image, no style or font from elsewhere."""
    page = Page((report / "r.html").read_text("utf-8"))
    assert page.loaded, "the charts refer to parts of themselves"
    assert page.outside == []
    assert page.handlers == []
    assert not {"script", "img", "link", "iframe", "object", "embed", "base", "form"} & set(page.elements)


def test_figures_are_files_with_their_data(report: Path) -> None:
    """The data of the timeline add up to the conflicts and the refreshed rows of the recording."""
    figures = json.loads((report / "figures" / "run.json").read_text())["figures"]
    assert "1-timeline" in figures
    for name in figures:
        assert (report / "figures" / f"{name}.svg").read_bytes().startswith(b"<?xml")
        assert (report / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    with (report / "figures" / "1-timeline.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(int(row["conflicts"]) for row in rows) == 25
    assert sum(int(row["refreshed rows"]) for row in rows) == 18


def test_what_is_there_is_kept(report: Path, results: dict[str, Path]) -> None:
    """A page is replaced with --force alone, and what is no result is refused by its name."""
    code, output = invoke("report", results["resolve"], "--out", report / "r.html")
    assert code == ExitCode.REFUSED
    assert "r.html exists already" in output
    for path, text in ((report, "holds no result"), (report / "figures" / "1-timeline.csv", "is no JSON")):
        code, output = invoke("report", path, "--out", report / "other.html")
        assert code == ExitCode.REFUSED
        assert text in output
        assert not (report / "other.html").exists()


@pytest.mark.parametrize(
    "document",
    [
        {"pairs": [{}], "prefer": [], "changes": 1},
        {"intervals": {}, "runs": [], "seeds": []},
        {"formats": [], "totals": {}, "file_bytes": "much"},
        {"searches": [{"goal": 1}]},
        {"searches": []},
    ],
)
def test_damaged_documents_are_refused(document: dict[str, object], tmp_path: Path) -> None:
    """By the name of the file."""
    (tmp_path / "damaged.json").write_text(json.dumps(document))
    code, output = invoke("report", tmp_path / "damaged.json", "--out", tmp_path / "r.html")
    assert code == ExitCode.REFUSED
    assert "damaged.json is not as this version of ndb-conflict writes it" in output
    assert not (tmp_path / "r.html").exists()


def test_names_from_data_are_only_text(results: dict[str, Path]) -> None:
    """In a table, a chart, a warning and the configuration: a name with markup makes no element."""
    chart = Chart("c", EVIL, Form.STACKED, pa.table({"table": [EVIL, "t2"], EVIL: [1, 2], "n": [3, None]}), EVIL)
    lines = Chart("l", "lines", Form.LINES, pa.table({"x": [1.0, 2.0], EVIL: [1.0, None]}), "y", EVIL, EVIL)
    table = Table(EVIL, (EVIL, "n"), [(EVIL, 1), (None, 2.5)], (0, None), EVIL)
    telling = Telling(EVIL, EVIL, (EVIL,), (table, table), (chart, lines), (EVIL,), (EVIL,))
    part = Part(telling, EVIL, {EVIL: EVIL}, {EVIL: [EVIL]})
    page = Page(page_of(EVIL, [part, part]))
    assert "script" not in page.elements
    assert page.outside == []
    assert "\x1b" not in page.text
    assert "<script>alert('$x$')</script>\\x1b[2J" in page.text
    run: Any = json.loads(json.dumps(read_result(str(results["resolve"])).run).replace("cft.t1", "cft.<script>"))
    result = attrs.evolve(read_result(str(results["resolve"])), run=run)
    page = Page(page_of("names", [resolve_part(result, "a result")]))
    assert "script" not in page.elements
    assert "cft.<script>" in page.text


def test_a_figure_of_one_number_is_a_sentence() -> None:
    """Where it is, and that all else is 0; two numbers are drawn."""
    data = pa.table({"latency_ms": [10, 1000], "f": [0, 0], "g": [0.0, 2.0]})
    lines = Chart("l", "Rows", Form.LINES, data, "rows", "latency_ms")
    assert lines.in_words == "g, latency_ms 1,000: 2; 0 everywhere else."
    bar = Chart("b", "Rows", Form.STACKED, pa.table({"table": ["t"], "rows": [3]}), "rows")
    assert bar.in_words == "t: 3."
    assert attrs.evolve(bar, data=pa.table({"table": ["t", "u"], "rows": [0, None]})).in_words == "0 everywhere."
    assert attrs.evolve(bar, data=pa.table({"table": ["t", "u"], "rows": [3, 1]})).in_words == ""
    page = Page(page_of("t", [attrs.evolve(NOTHING, telling=Telling("t", charts=(lines, bar)))]))
    assert "figure" not in page.elements
    assert "Rows g, latency_ms 1,000: 2; 0 everywhere else. Rows t: 3." in page.text


def test_no_line_ends_inside_of_code_or_before_a_unit() -> None:
    """Code in a sentence is an element that does not wrap, and what it holds is text."""
    part = attrs.evolve(NOTHING, telling=Telling("t", "Give `--find 'a < 1'` and `<b>`: 5 %."))
    page = page_of("t", [part])
    assert "<li>Give <code>--find &#x27;a &lt; 1&#x27;</code> and <code>&lt;b&gt;</code>: 5\u00a0%.</li>" in page
    assert "code { white-space: nowrap; }" in page


def pair(function: str, binlog_type: str, lost: tuple[int, int, int], **others: object) -> dict[str, Any]:
    """Return a pair as `compare` writes it: lost updates, of these rejected, of these overwritten."""
    zeros = dict.fromkeys(
        (
            *("conflicts", "rejected_transactions", "partly_rejected_transactions", "differing_rows"),
            *("refreshes", "reflected", "changes_without_row", "rows_by_appliers"),
            *("row_does_not_exist", "row_already_exists", "row_in_conflict", "trans_in_conflict"),
        ),
        0,
    )
    names = ("lost_updates", "lost_rejected", "lost_overwritten")
    sizes = {"least_bytes": 1000, "most_bytes": 1000, "stops": None, "error": None}
    return {
        "function": function,
        "binlog_type": binlog_type,
        **zeros,
        **dict(zip(names, lost, strict=True)),
        **sizes,
        **others,
    }


def test_the_answer_of_a_comparison() -> None:
    """The function that loses least, without those that stop; what is configured; the format that is smallest."""
    partly = {"partly_rejected_transactions": 1}
    document = {
        "prefer": ["lost-updates"],
        "changes": 200,
        "doubts": ["The binlogs contradict the functions."],
        "new": 1,
        "pairs": [
            pair("NDB$EPOCH() @A", "7", (10, 8, 2), used=True, differing_rows=1),
            pair("NDB$MAX(x)", "7", (4, 4, 0), differing_rows=3, **partly),
            pair("NDB$MAX(x)", "9", (4, 4, 0), differing_rows=3, least_bytes=500, most_bytes=600, **partly),
            pair("NDB$OLD(x)", "7", (0, 0, 0), stops="A: no column x"),
            {**pair("NDB$MAX(x)", "6", (0, 0, 0), error="it does not follow"), "lost_updates": None},
        ],
    }
    part = compare_part(document, "a file")
    assert list(part.headlines[0].sentences) == [
        "NDB$MAX(x): 4 of 200 changes lost (2.0 %).",
        "As configured, NDB$EPOCH() @A: 10 lost (5.0 %).",
    ]
    assert part.headlines[0].setting == (
        "From the recorded binlogs: 200 changes of users, decided again under each function.",
    )
    assert {column.heading: dict(column.cells) for column in part.by_function} == {
        "changes lost": {"NDB$EPOCH() @A": "10 (5.0 %)", "NDB$MAX(x)": "4 (2.0 %)"},
        "transactions applied in part": {"NDB$EPOCH() @A": 0, "NDB$MAX(x)": 1},
        "rows that differ": {"NDB$EPOCH() @A": 1, "NDB$MAX(x)": 3},
    }
    assert "NDB$MAX(x) loses least: 4 of 200" in part.telling.headline
    assert part.best == ("NDB$MAX(x)",)
    assert part.bytes is not None
    assert part.bytes.bounds == {"7": (1000, 1000), "9": (500, 600)}
    assert part.telling.alarms == ("The binlogs contradict the functions.",)
    losses, causes, *_, reasons = part.telling.tables
    assert [list(row[:7]) for row in losses.rows] == [
        ["NDB$EPOCH() @A", "7", 10, 8, 2, 1, 0],
        ["NDB$MAX(x)", "7", 4, 4, 0, 3, 0],
        ["NDB$MAX(x)", "9", 4, 4, 0, 3, 0],
        ["NDB$OLD(x) (stops)", "7", 0, 0, 0, 0, 0],
    ]
    assert losses.marked == (0, None)
    assert [row[1] for row in causes.rows] == ["7", "7, 9", "7"]
    assert reasons.rows == [["NDB$OLD(x)", "7", "A: no column x"], ["NDB$MAX(x)", "6", "it does not follow"]]
    lost = part.telling.charts[0]
    assert lost.data.to_pydict() == {
        "pair": ["NDB$EPOCH() @A", "NDB$MAX(x)"],
        "rejected": [8, 4],
        "overwritten and not rejected": [2, 0],
    }
    assert lost.note.startswith("Where no type is named, type 7 and type 9 give the same.")


def test_of_functions_that_lose_as_little_the_one_with_fewest_differing_rows_is_best() -> None:
    """What the manual advises against, or no server has, is best only where there is nothing else."""
    f, g = (pair(f"NDB$MAX({each})", "7", (4, 4, 0), differing_rows=rows) for each, rows in (("f", 1), ("g", 2)))
    used = pair("NDB$OLD(h)", "7", (9, 9, 0), used=True, differing_rows=1)
    other = pair("OVERWRITE", "7", (0, 0, 0), caveat="no server has it")
    assert compare_part({"prefer": [], "changes": 9, "pairs": [g, f, used, other]}, "a file").best == ("NDB$MAX(f)",)
    assert compare_part({"prefer": [], "changes": 9, "pairs": [other]}, "a file").best == ("OVERWRITE",)
    stops = pair("NDB$OLD(h)", "7", (9, 9, 0), stops="no value")
    assert compare_part({"prefer": [], "changes": 9, "pairs": [stops]}, "a file").best == ()


def test_tables_without_a_function_in_the_answer() -> None:
    """What they lose, and how many of their rows differ, is told apart; clusters have what they lost, of how many."""
    tables = {"differing_by_table": {"d.t": 1, "d.u": 2}, "lost_by_table": {"d.t": 3, "d.u": 4}}
    lost = {"lost_by_cluster": {"A": (3, 4, 7), "B": (0, 0, 0)}, "changes_by_cluster": {"A": 20, "B": 5}}
    best = pair("NDB$EPOCH() @A", "7", (7, 3, 4), used=True, differing_rows=3, **tables, **lost)
    document = {"prefer": [], "changes": 25, "pairs": [best], "tables_without_function": ["d.u"]}
    part = compare_part(document, "a file")
    assert {column.heading: column.cells["NDB$EPOCH() @A"] for column in part.by_function} == {
        "changes lost": "7 (28.0 %)",
        "of the changes of A": "7 (35.0 %)",
        "of the changes of B": "0 (0.0 %)",
        "transactions applied in part": 0,
        "rows that differ, in tables with a function": 1,
    }
    lost_table, differing = part.telling.tables[-2:]
    assert list(lost_table.headings) == list(differing.headings) == ["function", "d.t", "d.u (no function)"]
    assert (lost_table.rows, differing.rows) == ([["NDB$EPOCH() @A", 3, 4]], [["NDB$EPOCH() @A", 1, 2]])


def test_functions_side_by_side() -> None:
    """Simulations name a function without its primary; one that two clusters can have stays as it is."""

    def told(topic: Topic, **cells: object) -> Part:
        return attrs.evolve(NOTHING, by_function=(FunctionFigures(topic, topic.name, cells),))

    names = {"f": "NDB$EPOCH()", "fa": "NDB$EPOCH() @A", "fb": "NDB$EPOCH() @B", "g": "NDB$MAX(x)"}
    limits = told(Topic.LIMIT, **{names["f"]: "88 ms", "h": "any"})
    one = overview([limits, told(Topic.FUNCTION, **{names["fa"]: 1, names["g"]: 2})])
    assert one is not None
    assert one.headings == ("function", "FUNCTION", "LIMIT")
    assert [list(row) for row in one.rows] == [[names["fa"], 1, "88 ms"], [names["g"], 2, None], ["h", None, "any"]]
    two = overview([limits, told(Topic.FUNCTION, **{names["fa"]: 1, names["fb"]: 2})])
    assert two is not None
    assert [row[0] for row in two.rows] == [names["fa"], names["fb"], names["f"], "h"]
    assert overview([limits, NOTHING]) is None, "the table of its own result says it"


def test_types_that_differ_have_bars_of_their_own() -> None:
    """Named by function and type."""
    pairs = [pair("f", "7", (4, 4, 0)), pair("f", "9", (5, 4, 1)), pair("g", "7", (6, 6, 0)), pair("g", "9", (6, 6, 0))]
    part = compare_part({"prefer": [], "changes": 9, "pairs": pairs}, "a file")
    chart = part.telling.charts[0]
    assert chart.data["pair"].to_pylist() == ["f, type 7", "f, type 9", "g"]


def test_a_sweep_that_went_on_is_reported(results: dict[str, Path], tmp_path: Path) -> None:
    """Its list of files is the new one, and not in itself; a border is told once for all functions that share it."""
    shutil.copytree(results["sweep"], tmp_path / "sweep")
    grid = results["sweep"].with_name("sweep.toml")
    search = ("--find", "lost_share < 2", "--over", "latency_ms")
    code, output = invoke("sweep", grid, "--out", tmp_path / "sweep", "--workers", 1, *search)
    assert code == 0, output
    assert "8 from an earlier sweep, 0 new" in " ".join(output.split())
    code, output = invoke("report", tmp_path / "sweep", "--out", tmp_path / "r.html")
    assert code == 0, output
    page = Page((tmp_path / "r.html").read_text("utf-8"))
    assert "At which latency are 200 % lost? none that was tried " in page.text
    assert "lost_share < 2, by latency_ms" in page.text
    assert "lost_share The part of users' changes that is lost" in page.text
    (tmp_path / "sweep" / "results.parquet").write_bytes(b"")
    code, output = invoke("report", tmp_path / "sweep", "--out", tmp_path / "other.html")
    assert code == ExitCode.REFUSED
    assert "Delete the damaged files, and sweep again" in output


def test_what_is_cut_says_where_the_rest_is(
    results: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of how many rows or lines the first ones are shown, and the command or the file that has all of them."""
    monkeypatch.setattr("conflict.reporting.resolve_part._MOST_ROWS", 2)
    monkeypatch.setattr("conflict.whatif.sweeping.telling._MOST_LINES", 1)
    cut, lost = [table for table in part_of(results["resolve"]).telling.tables if table.note]
    assert (len(cut.rows), "4 rows more" in cut.note) == (2, True)
    command = shlex.split(cut.note.partition("ndb-conflict ")[2])
    monkeypatch.chdir(tmp_path)
    code, output = invoke(*command)
    assert (code, len(re.findall(r"cft\.t\d [ak]=", output))) == (0, 6)
    assert all(f"{row[0]} {row[1]} {row[2]}" in output for row in cut.rows)
    assert (len(lost.rows), lost.note.partition(":")[0]) == (2, "31 rows more, and what each set")
    code, output = invoke(*shlex.split(lost.note.partition("ndb-conflict ")[2]))
    assert (code, len(re.findall(r"20\d\d-\d\d-\d\d \d\d:", output))) == (0, 33)
    notes = [chart.note for chart in part_of(results["sweep"]).telling.charts if "1 of 2 lines" in chart.note]
    assert notes
    assert all((results["sweep"] / re.findall(r"\S+\.parquet", note)[0]).is_file() for note in notes)


def test_a_damaged_plan_is_refused(results: dict[str, Path], tmp_path: Path) -> None:
    """With what to do."""
    shutil.copytree(results["repair"], tmp_path / "plan")
    (tmp_path / "plan" / "review.parquet").write_bytes(b"")
    with pytest.raises(ConfigurationError, match=r"is damaged .*; plan the repair again"):
        part_of(tmp_path / "plan")


def test_a_sweep_that_was_stopped_is_refused(tmp_path: Path) -> None:
    """With what to do."""
    (tmp_path / "sweep" / "runs").mkdir(parents=True)
    code, output = invoke("report", tmp_path / "sweep", "--out", tmp_path / "r.html")
    assert code == ExitCode.REFUSED
    assert "holds an unfinished sweep; run the same command again to continue it" in output


def test_what_is_not_known_is_said(results: dict[str, Path]) -> None:
    """Of a decision that cannot be told, which has a column of its own."""
    found = read_result(str(results["resolve"]))
    run: Any = json.loads(json.dumps(found.run))
    run["tables"]["A"]["cft.t1"]["cannot_tell"] = 4
    part = resolve_part(attrs.evolve(found, run=run), "a result")
    assert (("applier", "table", "cannot tell"), [("A", "cft.t1", 4)]) in [
        (table.headings, table.rows) for table in part.telling.tables
    ]
    assert "cannot tell, not known" in page_words(part)


def page_words(part: Part) -> str:
    """Return what a reader sees of the page of one part."""
    return Page(page_of("words", [part])).text


def test_cells() -> None:
    """Numbers as people read them."""
    cells = {
        None: "-",
        12345: "12,345",
        0.123456: "0.123",
        91.40872: "91.4",
        926.87: "926.9",
        1102.5: "1,102",
        2.0: "2",
    }
    assert {value: shown(value) for value in cells} == cells
    assert shown("x") == "x"
