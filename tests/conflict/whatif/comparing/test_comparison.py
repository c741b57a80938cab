"""`compare`: the functions that were in force have the recorded figures, and others those worked out by hand."""

from pathlib import Path

import pytest

import conflict
from conflict.errors import ConfigurationError
from conflict.history.grid.folder import Folder
from conflict.history.preparing.definitions_over_time import make_run
from conflict.judge.case import ConflictCase, find_recordings
from conflict.rules.counters import COUNTERS
from conflict.runs.pipeline import run_by
from conflict.whatif.comparing.figures import COMPARISON, NOT_OFFERED, ComparedPair, Figures, ranked
from conflict.whatif.comparing.pairs import MEANINGS
from conflict.whatif.comparing.telling import tell_comparison
from conflict.whatif.simulating.model_file import parse_model
from conflict.whatif.simulating.run import simulate
from conflict.whatif.simulating.run_folder import write_run
from tests.conflict.whatif.comparing.recorded import compared, differing_rows
from tests.corpora import DEMO, RECORDINGS, SHARED

LIVES = RECORDINGS / "lives"
CHANGING = sorted(path.parent for path in RECORDINGS.glob("everyday/*/ddl_*/scenario.json"))


def used(rows: tuple[ComparedPair, ...]) -> Figures:
    """Return the figures of the pair that was in force."""
    (figures,) = [row.figures for row in rows if row.used]
    assert figures is not None
    return figures


def assert_recorded(case: ConflictCase, figures: Figures, folder: Path) -> None:
    """Check the counters and the rows that differ; a counter may be in the range that open decisions leave."""
    run = run_by("local", make_run(case.configuration()), Folder(str(folder)))
    for side in "AB":
        recorded, ranges = case.expected[side]["status_difference"], run.summary.counter_ranges[side]
        for counter in COUNTERS:
            value = figures.counters[side].get(counter, 0)
            assert value == run.summary.counters[side].get(counter, 0)
            least, most = ranges.get(counter, (value, value))
            assert least <= recorded[counter] <= most, (side, counter)
    database = case.scenario["database"]
    assert figures.differing == {f"{database}.{name}": n for name, n in differing_rows(case.expected).items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["live_2_epoch_type8", "live_3_epoch2_trans_type7"])
def test_the_functions_that_were_in_force(name: str, tmp_path: Path) -> None:
    """Bundled live load: the recorded counters, and the recorded rows that differ."""
    case = ConflictCase.load(LIVES / name)
    assert_recorded(case, used(compared(case, "OVERWRITE").rows), tmp_path)


@pytest.mark.slow
@pytest.mark.corpus("conformance/lives")
def test_every_live_run(tmp_path: Path) -> None:
    """The same of all of the corpus."""
    folders = [each.path for each in find_recordings(SHARED / "conformance" / "lives")]
    for number, folder in enumerate([SHARED / "conformance" / "live", *folders]):
        case = ConflictCase.load(folder)
        found = compared(case, "OVERWRITE")
        assert_recorded(case, used(found.rows), tmp_path / str(number))
        shown = found.run.checks()["compared_with_binlogs"]
        assert sum(used(found.rows).logged.values()) == shown  # as many rows as appliers logged


@pytest.mark.parametrize("case", CHANGING, ids=lambda case: case.name)
def test_definitions_that_change(case: Path, tmp_path: Path) -> None:
    """The recorded counters and rows that differ; the bytes of the binlogs are measured to their end."""
    loaded = ConflictCase.load(case)
    found = compared(loaded, "OVERWRITE", steps=tmp_path / "steps.json")
    assert (found.cut, found.doubts) == ((), ())
    figures = used(found.rows)
    for side in "AB":
        recorded, ranges = loaded.expected[side]["status_difference"], found.run.summary.counter_ranges[side]
        for counter in COUNTERS:
            value = figures.counters[side].get(counter, 0)
            least, most = ranges.get(counter, (value, value))
            assert least <= recorded[counter] <= most, (side, counter)
    differing = {f"day.{name}": count for name, count in differing_rows(loaded.expected).items()}
    assert {name: count for name, count in figures.differing.items() if name in differing} == differing


@pytest.mark.slow
@pytest.mark.corpus("conformance/everyday")
def test_every_recording_whose_definitions_change(tmp_path: Path) -> None:
    """The same of all of the corpus."""
    cases = sorted((SHARED / "conformance" / "everyday").glob("*/ddl_*"))
    assert cases
    for case in cases:
        test_definitions_that_change(case, tmp_path)


def test_a_log_without_transaction_ids() -> None:
    """It does not say which changes are of one transaction, so none is counted; the changes themselves are."""
    (case,) = RECORDINGS.glob("everyday/epoch2/option_no_transaction_ids*")
    figures = used(compared(ConflictCase.load(case), "OVERWRITE").rows)
    assert (figures.rejected_transactions, figures.partly_rejected_transactions) == (None, None)
    assert figures.lost_updates > 0


def test_formats_where_definitions_change() -> None:
    """They are not tried, and it is said what to do."""
    found = compared(ConflictCase.load(CHANGING[0]), "OVERWRITE", (3,))
    (said,) = {row.error for row in found.rows if row.binlog_type == "3"}
    assert said == (
        "definitions change in the binlogs, and a change does not say with which one it would be logged again; compare "
        "binlogs from before the change, or from after it"
    )


def test_lists_as_on_the_command_line() -> None:
    """Texts with commas are as good as sequences; a pair that cannot be tried says why, as the command does."""
    texts = conflict.compare(DEMO / "run.toml", functions="NDB$OLD(x), NDB$OLD(y)", formats="7", prefer="divergence")
    lists = conflict.compare(
        DEMO / "run.toml", functions=["NDB$OLD(x)", "NDB$OLD(y)"], formats=[7], prefer=["divergence"]
    )
    assert texts.to_json()["pairs"] == lists.to_json()["pairs"]
    assert {row.function for row in texts.rows if row.error and row.binlog_type == "9"} == {"NDB$OLD(y)"}
    why = tell_comparison(texts.to_json()).tables[-1]
    assert ["NDB$OLD(y)", "9", "table cft.t1 has no column y"] in why.rows
    for shown in (repr(texts), texts._repr_html_()):
        assert why.title in shown


def test_the_demo() -> None:
    """25 conflicts of 17 transactions are recorded, and one row that differs, in the table without a function."""
    found = conflict.compare(DEMO / "run.toml", functions=["NDB$MAX(x)", "OVERWRITE", "NDB$OLD(x)"], formats=[7])
    figures = used(found.rows)
    assert figures.causes == {
        "row_does_not_exist": 3,
        "row_already_exists": 4,
        "row_in_conflict": 18,
        "trans_in_conflict": 0,
    }
    assert (figures.rejected_transactions, figures.refreshes, figures.differing_rows) == (17, 18, 1)
    assert sum(figures.logged.values()) == 81  # row changes by appliers that the binlogs show
    assert sum(figures.made.values()) == 90  # row changes by users
    assert sum(figures.lost_by_table.values()) == figures.lost_updates
    assert figures.lost_by_table["cft.plain"] > 0  # overwritten, as it has no function
    assert {name: each[0] for name, each in figures.lost.items()} == {
        "A": 0,
        "B": 23,
    }  # what A rejected is B's; two deletes were of rows that were gone
    table = found.to_arrow()
    assert table.schema == COMPARISON
    by_name = {(row["function"], row["binlog_type"]): row for row in table.to_pylist()}
    assert by_name["OVERWRITE", "9"]["conflicts"] == 0
    assert by_name["OVERWRITE", "9"]["lost_updates"] == by_name["OVERWRITE", "9"]["lost_overwritten"]
    assert "an update lacks x in its before image, where NDB$OLD looks for it" in by_name["NDB$OLD(x)", "9"]["stops"]
    assert by_name["NDB$OLD(x)", "9"]["rank"] == 4  # after all that run to the end
    # Type 9 has no before values, so no log of type 7 follows from it.
    assert by_name["OVERWRITE", "7"]["error"] == "table cft.t1: before images of updates lack column x"
    assert by_name["OVERWRITE", "7"]["rank"] is None
    assert "NDB$EPOCH() @A" in repr(found)
    page = found._repr_html_()
    assert all(row.function in page for row in found.rows)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        (["NDB$NONE()"], "NDB$NONE.*besides functions there are OVERWRITE, LAST_COMMIT"),
        (["NDB$EPOCH()@C"], "there is no cluster C; there are A and B"),
        (["NDB$MAX(x)@A"], "leave out @A"),
        (["OVERWRITE@A"], "leave out @A"),
    ],
)
def test_what_is_not_understood(functions: list[str], message: str) -> None:
    """Refused before anything is read."""
    with pytest.raises(ConfigurationError, match=message.replace("$", r"\$").replace("(", r"\(").replace(")", r"\)")):
        conflict.compare(DEMO / "run.toml", functions=functions)


@pytest.mark.parametrize("wrong", [{"formats": [1]}, {"formats": [11]}, {"prefer": ["speed"]}, {"engine": "reference"}])
def test_wrong_arguments(wrong: dict[str, object]) -> None:
    """A format, a criterion or an engine that does not compare."""
    with pytest.raises(ConfigurationError):
        conflict.compare(DEMO / "run.toml", **wrong)  # type: ignore[arg-type]


def test_a_column_that_a_table_lacks() -> None:
    """The pair is not tried, and the others are."""
    found = conflict.compare(DEMO / "run.toml", functions=["NDB$MAX(nothing)", "OVERWRITE"])
    (row,) = [row for row in found.rows if row.function == "NDB$MAX(nothing)"]
    assert row.error == "table cft.t1 has no column nothing"
    assert row is found.rows[-1]


def test_rows_that_differ_by_table() -> None:
    """In the recording one row of the table without a function; the binlogs change at least the rows at the end."""
    found = conflict.compare(DEMO / "run.toml", functions=["OVERWRITE"]).to_json()
    assert found["tables_without_function"] == ["cft.plain"]
    (configured,) = [each for each in found["pairs"] if each["used"]]
    assert configured["differing_by_table"] == {"cft.t1": 0, "cft.t2": 0, "cft.plain": 1}
    at_the_end = {"cft.t1": 2, "cft.t2": 3, "cft.plain": 2}
    assert all(configured["rows_by_table"][table] >= rows for table, rows in at_the_end.items())


def test_ranking() -> None:
    """By the first criterion, then by the next; a pair that stops after all others."""

    def row(name: str, lost: int, differing: int) -> ComparedPair:
        return ComparedPair(
            name,
            "7",
            Figures({}, {}, 0, 0, {"A": (0, lost, lost)}, {}, {}, {}, {"t": differing}, {}, {}, {}, {}, {}, {}),
        )

    rows = [row("a", 2, 0), row("b", 1, 5), row("c", 1, 4), ComparedPair("d", "7", error="no")]
    assert [each.function for each in ranked(rows, ["lost-updates", "divergence"])] == ["c", "b", "a", "d"]
    assert [each.function for each in ranked(rows, ["divergence"])] == ["a", "c", "b", "d"]


def test_what_no_server_has_comes_below() -> None:
    """And is marked, as is what the manual advises against in the format of the log, which is type 9."""
    found = conflict.compare(DEMO / "run.toml", functions=["OVERWRITE", "NDB$MAX(x)", "NDB$EPOCH()", "LOWEST(x)"])
    losses = tell_comparison(found.to_json()).tables[0]
    assert [losses.text(row, 0) for row in range(4)] == [
        "NDB$EPOCH() @A *",
        "OVERWRITE †",
        "LOWEST(x) †",
        "NDB$MAX(x) ‡",
    ]
    assert found.rows[0].function == "NDB$EPOCH() @A"  # although OVERWRITE loses less
    cells = {row["function"]: row["caveat"] for row in found.to_arrow().to_pylist()}
    assert cells["NDB$EPOCH() @A"] is None
    assert cells["OVERWRITE"] == NOT_OFFERED
    assert "do not work correctly with types 8 and 9" in cells["NDB$MAX(x)"]
    assert "NDB$MAX(x) ‡" in repr(found)
    assert "† no NDB server has it" in repr(found)


def test_the_best_of_what_a_server_has() -> None:
    """By the recording 34 of 90 changes are lost; OVERWRITE loses fewer, but is no conflict function. Both are said."""
    found = conflict.compare(DEMO / "run.toml", functions=["OVERWRITE", "NDB$EPOCH()", "NDB$EPOCH2_TRANS()"])
    told = tell_comparison(found.to_json())
    assert "NDB$EPOCH() @A" in told.headline
    assert "33 of 90 (36.7 %)" in told.headline
    assert [line.partition(":")[0] for line in told.sentences][:-1] == ["OVERWRITE"]
    others = [f"{name}(x)" if name == "LOWEST" else name for name in MEANINGS]
    every = tell_comparison(conflict.compare(DEMO / "run.toml", functions=["NDB$EPOCH()", *others]).to_json())
    assert [line.partition(":")[0] for line in every.sentences][:-1] == [*MEANINGS]
    assert every.headline == "", "there is no choice"


def test_columns_of_losses_add_up() -> None:
    """Of a row, the lost changes are those that were rejected and those that were overwritten."""
    table = tell_comparison(conflict.compare(DEMO / "run.toml").to_json()).tables[0]
    assert len(table.rows) > 10
    assert all(row[1] == int(str(row[2])) + int(str(row[3])) for row in table.rows)


def test_the_legend_says_what_is_lost() -> None:
    """The title has the criteria as they were asked for; conflicts that are not lost are deletes of no row."""
    functions, prefer = ["NDB$EPOCH()", "OVERWRITE", "NDB$OLD(x)"], ["traffic", "lost-updates"]
    found = conflict.compare(DEMO / "run.toml", functions=functions, prefer=prefer)
    table = tell_comparison(found.to_json()).tables[0]
    assert table.title.endswith("best first by traffic, lost-updates")
    assert [line[0] for line in table.note.splitlines()] == ["L", "*", "†", "‡", "("]
    assert "delete of a row that was gone already" in table.note
    assert [bool(row.figures and row.figures.stops) for row in found.rows] == [False, False, True]
    used = found.to_arrow().to_pylist()[0]
    outcomes = conflict.resolve(DEMO / "run.toml", engine="local").conflicts.to_pylist()
    gone = [each for each in outcomes if (each["operation"], each["cause"]) == ("DELETE_ROW", "ROW_DOES_NOT_EXIST")]
    assert (used["conflicts"], used["lost_rejected"]) == (len(outcomes), len(outcomes) - len(gone))


@pytest.fixture(scope="module")
def two_columns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two tables, one with a column ts and one with a column ver for functions to compare."""
    folder = tmp_path_factory.mktemp("two")
    tables = [{"name": name, "function": "NDB$MAX(x)"} for name in ("acct", "bin")]
    links = {name: {"link": {"latency_ms": 300}} for name in "AB"}
    model = {"seconds": 3, "recordcount": 20, "x": "version", "tables": tables, "clusters": links}
    write_run(simulate(parse_model(model), 1), folder)
    for file, old, mark in (
        ("schema.sql", "x BIGINT", "CREATE TABLE `bin`"),
        ("run.toml", "(x)", 'table_name = "bin"'),
    ):
        acct, between, others = (folder / file).read_text().partition(mark)
        text = acct.replace(old, old.replace("x", "ts")) + between + others.replace(old, old.replace("x", "ver"))
        (folder / file).write_text(text)
    return folder / "run.toml"


def test_tables_that_compare_different_columns(two_columns: Path) -> None:
    """Named one by one, or each its own; both say the same, and it is what the run has."""
    functions = ["acct=NDB$OLD(ts)", "model.bin=NDB$OLD(ver)", "NDB$MAX", "acct=NDB$OLD(ver)"]
    found = {row.function: row for row in conflict.compare(two_columns, functions=functions).rows}
    assert list(found) == [
        "acct=NDB$OLD(ts),bin=NDB$OLD(ver)",
        "acct=NDB$MAX(ts),bin=NDB$MAX(ver)",
        "acct=NDB$OLD(ver)",
    ]
    assert [row.used for row in found.values()] == [False, True, False]
    assert found["acct=NDB$OLD(ver)"].error == "table model.acct has no column ver"
    again = conflict.compare(two_columns, functions=["NDB$OLD"])
    assert [row for row in again.rows if not row.used] == [found["acct=NDB$OLD(ts),bin=NDB$OLD(ver)"]]
    by_default = {row.function for row in conflict.compare(two_columns).rows if row.figures is not None}
    assert {"acct=NDB$OLD(ts),bin=NDB$OLD(ver)", "acct=NDB$MAX_INS(ts),bin=NDB$MAX_INS(ver)"} <= by_default


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("act=NDB$OLD(ts)", "which table act is meant is not known; functions are tried on model.acct, model.bin"),
        ("acct=NDB$EPOCH()", "by table there are functions that compare a column"),
        ("acct=NDB$OLD", "missing '('"),
    ],
)
def test_what_is_wrong_by_table(two_columns: Path, function: str, message: str) -> None:
    """Refused with what there is."""
    with pytest.raises(ConfigurationError) as caught:
        conflict.compare(two_columns, functions=[function])
    assert message in str(caught.value)


def test_a_table_that_no_function_is_named_for(two_columns: Path) -> None:
    """It is not left without one in silence."""
    found = conflict.compare(two_columns, functions=["acct=NDB$OLD(ts)"])
    assert [row.error for row in found.rows if not row.used] == ["it names no function for table model.bin"]
