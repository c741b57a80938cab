"""What the results of one report say together: the top of the page, bytes, and what simulated losses differ in."""

from collections.abc import Sequence
from typing import Any

import attrs

from conflict.reporting.cost import cost_column, cost_headline, cost_table
from conflict.reporting.joining import joined
from conflict.telling.bytes_by_type import BYTES_CHART, amount_of_bytes, bytes_chart
from conflict.telling.part import Bytes, Headline, Measured, Part, RowCounts, Topic
from conflict.telling.value import Chart, Telling
from conflict.whatif.simulating.words import against_recording, without_function
from conflict.whatif.sizing.telling import sizes_part, tell_sizes

BOUNDS = {"2": (70, 120), "3": (90, 90), "7": (200, 200), "8": (95, 130), "9": (110, 110)}
SIZES = Bytes(Measured.MEASURED, BOUNDS, "type 7", 200, "the log", rows=10)


def sized(**others: Any) -> dict[str, Any]:
    """Return a document as `sizes` writes it, with 5 updates of one table."""
    formats = {
        name: {"least": {"bytes": least}, "most": {"bytes": most}, "rows_lacking_values": 0}
        for name, (least, most) in BOUNDS.items()
    }
    totals = {"logged": {"bytes": 200}, "rows": 5, "hidden": 2, "formats": formats}
    return {
        "formats": dict.fromkeys(BOUNDS, "F"),
        "totals": totals,
        "file_bytes": 500,
        "total": 500,
        "frame": 300,
        "other_events": {},
        "tables": [{"table": "d.t", "definition": True, "changes": {"update": totals}}],
        "columns": [],
        "every_column_set": {},
        "compression": None,
        **others,
    }


def part(title: str, charts: Sequence[Chart] = (), **others: Any) -> Part:
    """Return what a report says of a result, with nothing but what is given."""
    return attrs.evolve(Part(Telling(title, "", ("It is.",), charts=charts), "a file", {}, {}), **others)


def test_the_cost_is_that_of_the_best_function() -> None:
    """Types 2 and 3 are smaller, and NDB$EPOCH cannot have them; which of 8 and 9 is smaller depends on statements."""
    found = cost_headline(["NDB$EPOCH()"], SIZES)
    assert found.answer == "110 bytes of row events"
    assert "type 9," in found.sentences[0]
    assert found.sentences[1] == "As it was recorded, in type 7: 200 bytes of row events."
    assert list(cost_table(["NDB$EPOCH()"], SIZES)) == [], "in which time the log was written is not known"


# 10 row changes in 20 seconds, 6 by users; under NDB$EPOCH() appliers log 2 rows where they logged 4.
TIMED = attrs.evolve(
    SIZES,
    other_bytes=390,
    seconds=20,
    compressed=100,
    servers={1: {"9": 300, "8": 0, "7": 0}, 2: {"9": 200, "8": 0, "7": 0}},
    logged=RowCounts(6, "NDB$EPOCH2() @A", {"NDB$EPOCH() @A": 2, "NDB$EPOCH2() @A": 4, "NDB$MAX(x)": 0}),
)


def test_the_cost_of_the_whole_log_in_a_day() -> None:
    """Type 9: 8 rows of 11 bytes and 390 other bytes are 478 in 20 seconds; 590 were recorded; 3 of 5 on server 1."""
    found = cost_headline(["NDB$EPOCH() @A"], TIMED)
    assert (found.question, found.answer) == ("What does it cost in bytes?", "2.06 MB a day")
    assert found.sentences[1] == "As it was recorded under NDB$EPOCH2() @A, in type 7: 2.55 MB a day."
    assert found.setting[0].startswith("From 20 seconds of the log: 10 row changes, 6 of them by users;")
    (table,) = cost_table(["NDB$EPOCH() @A"], TIMED)
    assert table.title == "Binlog a day under NDB$EPOCH() @A"
    rows = {str(row[0]): list(row[1:]) for row in table.rows}
    assert rows["type 9"] == ["2.06 MB", "1.24 MB", "826 kB"]
    assert rows["type 8"][0] == "2.01 MB to 2.13 MB", "it may be smaller"
    assert rows["as recorded"] == ["2.55 MB", None, None]
    assert rows["as recorded, compressed"] == ["432 kB", None, None]
    assert table.text(list(rows).index("type 9"), 0) == "type 9 *"


def test_the_cost_of_each_function() -> None:
    """In the smallest type that it is usable with: NDB$MAX has type 7 alone, and logs 6 rows of 20 bytes."""
    (column,) = cost_column(["NDB$EPOCH() @A", "NDB$EPOCH2() @A", "NDB$MAX(x)", "OVERWRITE"], TIMED)
    assert column.cells == {
        "NDB$EPOCH() @A": "2.06 MB, type 9",
        "NDB$EPOCH2() @A": "2.16 MB, type 9",
        "NDB$MAX(x)": "2.20 MB, type 7",
    }
    assert list(cost_column(["NDB$EPOCH() @A"], SIZES)) == [], "in which time the log was written is not known"


def test_the_cost_of_a_log_that_was_not_compared() -> None:
    """As it is."""
    sizes = attrs.evolve(TIMED, logged=None, servers={}, compressed=0)
    assert cost_headline(["NDB$MAX(x)"], sizes).answer == "2.55 MB a day"
    every = cost_headline([], sizes)
    assert every.answer == "2.07 MB a day"
    assert "type 3, the smallest for certain that some function can use" in every.sentences[0]
    assert next(cost_table([], sizes)).title == "Binlog a day"


def test_amounts_of_bytes() -> None:
    """With three digits, in the unit in which there are less than a thousand."""
    amounts = {
        7.25: "7.25 bytes",
        999.6: "1.00 kB",
        24_496: "24.5 kB",
        2_099_900_000: "2.10 GB",
        314_159: "314 kB",
        5e15: "5,000 TB",
    }
    assert {amount: amount_of_bytes(amount) for amount in amounts} == amounts


def test_the_cost_where_no_function_is_best() -> None:
    """All types count that some function can have; a comparison with one type says that no other was measured."""
    some = {"2": (70, 70), "3": (90, 90), "7": (200, 200)}
    assert cost_headline([], attrs.evolve(SIZES, bounds=some)).answer == "90 bytes of row events"
    unusable = attrs.evolve(SIZES, bounds={"3": (90, 90), "9": (110, 110)}, base="")
    assert cost_headline(["NDB$MAX(x)"], unusable).answer == "90 bytes of row events"
    assert len(cost_headline(["NDB$EPOCH()"], attrs.evolve(SIZES, base="", base_bytes=0)).sentences) == 1
    assert cost_headline(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200)})).sentences[0] == (
        "Only type 7 was tried; `ndb-conflict sizes` measures all types."
    )


def line(topic: Topic, *sentences: str) -> Headline:
    """Return a headline."""
    return Headline(topic, f"Which {topic.name.lower()}?", "this", sentences)


def test_each_topic_has_one_headline() -> None:
    """That of recorded changes comes first; what a simulation says of the topic is a finding of it."""
    recorded = part("compare", headlines=(line(Topic.FUNCTION, "f."),), best=("f",))
    lines = (line(Topic.FUNCTION, "g.", "One seed."), line(Topic.LIMIT, "10 ms."))
    simulated = part("sweep", headlines=lines, best=("g",), basis=("Links are shorter.",), recorded=False)
    sweep, compare = joined([simulated, recorded])
    assert (compare.headlines, compare.telling.sentences) == (recorded.headlines, ("It is.",))
    assert sweep.headlines == lines[1:]
    assert sweep.telling.sentences == ("g.", "One seed.", "It is.", "Links are shorter.")
    (alone,) = joined([simulated])
    assert (alone.headlines, alone.telling.sentences) == (lines, ("It is.",)), "there is no recording to differ from"


def test_bytes_are_told_once() -> None:
    """Where they are measured, for the function that loses least on recorded changes; else where they are compared."""
    chart = next(bytes_chart({"7": 200, "9": 110}, "the log"))
    measured = part("sizes", bytes=SIZES, charts=(chart,))
    logged = RowCounts(7, "f", {"f": 3, "NDB$EPOCH()": 1})
    of_compare = Bytes(Measured.COMPARED, BOUNDS, "type 7", 200, "the recorded log", logged=logged)
    compared = part("compare", best=("NDB$EPOCH()",), bytes=of_compare, charts=(chart,))
    of_sweep = attrs.evolve(SIZES, source=Measured.SIMULATED)
    simulated = part("sweep", best=("NDB$MAX(x)",), bytes=of_sweep, charts=(chart,), recorded=False)
    sweep, compare, sizes = joined([simulated, compared, measured])
    assert (sweep.telling.charts, compare.telling.charts) == ((), ())
    assert (compare.telling.sentences, compare.headlines) == (("It is.",), ())
    assert [each.name for each in joined([simulated, compared])[0].telling.charts] == [BYTES_CHART]
    (top,) = sizes.headlines
    assert (top.answer, "type 9," in top.sentences[0]) == ("110 bytes of row events", True)
    assert "NDB$EPOCH()" in top.sentences[0]
    assert "7 of them by users" in top.setting[0]
    for other in (attrs.evolve(SIZES, base_bytes=300), attrs.evolve(SIZES, rows=20)):
        found = joined([compared, part("sizes", bytes=other)])[1]
        assert "by users" not in found.headlines[0].setting[0], "it is another log"
    assert (
        "type 9, the smallest for certain that NDB$EPOCH() "
        in joined([simulated, compared])[1].headlines[0].sentences[0]
    )
    assert "type 7, the smallest for certain that NDB$MAX(x) " in joined([simulated])[0].headlines[0].sentences[0]


def test_whose_bytes_are_measured() -> None:
    """Of one cluster or of several, if the document says it."""
    logs = {(1, 2, 2): "the log of servers 1 and 2", (1,): "the log of server 1 alone", (): "the measured log"}
    for servers, words in logs.items():
        files = [{"server_id": each, "bytes": 50, "first_change": None, "last_change": None} for each in servers]
        found = sizes_part(sized(files=files), "a file")
        assert found.bytes is not None
        assert found.bytes.of == words
        assert words in found.asked["question"]


def test_how_long_a_log_is() -> None:
    """From the first change of any file to the last one of any; files without changes have no times."""
    early, late = "2026-01-31T08:00:00+00:00", "2026-01-31T08:00:09+00:00"
    files = [
        {"server_id": 2, "bytes": 50, "first_change": early, "last_change": "2026-01-31T08:00:02+00:00"},
        {"server_id": 1, "bytes": 70, "first_change": "2026-01-31T08:00:01+00:00", "last_change": late},
        {"server_id": 1, "bytes": 30, "first_change": None, "last_change": None},
    ]
    found = sizes_part(sized(files=files, frame=60), "a file").bytes
    assert found is not None
    assert (found.seconds, found.other_bytes) == (9, 60)


def test_what_compression_would_leave() -> None:
    """By the variable of NDB's binlog, where each transaction is an epoch; by the other one in a log without epochs."""
    compression = {"transactions": 2, "plain": 400, "compressed": 100}
    (said,) = tell_sizes(sized(compression=compression)).sentences
    assert said.startswith("`binlog_transaction_compression` would leave 100 of 400 bytes (25.0 %), ")
    epochs = {"mysql.ndb_apply_status": {"bytes": 9, "events": 2}}
    (said,) = tell_sizes(sized(compression=compression, other_events=epochs)).sentences
    assert said.startswith("`ndb_log_transaction_compression` ")
    (said,) = tell_sizes(sized(file_bytes=250)).sentences
    assert "250 bytes, 50.0 %" in said


def test_the_sizes_of_every_format() -> None:
    """By kind of change and of the whole log, as a share of it; a table without a definition is a warning."""
    told = tell_sizes(sized(configured={"types": {"d.t": "9"}}, every_column_set={"7": 0, "8": 35}))
    rows = {row[0]: list(row[1:]) for row in told.tables[0].rows}
    assert list(rows) == ["as logged", "type 2", "type 3", "type 7", "type 8", "type 9", "configured"]
    assert rows["as logged"] == ["0", "200", "0", "500", "100 %"]
    assert rows["type 8"] == ["0", "95-130", "0", "395-430", "79-86 %"]
    assert rows["configured"] == rows["type 9"] == ["0", "110", "0", "410", "82 %"]
    assert "2 of 5 changes" in told.tables[0].note
    assert [row[:2] for row in told.tables[2].rows] == [["d.t", "update"]]
    assert told.tables[-1].rows == [["type 8", 35, "+8.9 %"]]
    data = told.charts[0].data.to_pydict()
    assert data["format"][0] == "as logged"
    assert (data["updates"][4], data["more, if all columns were set"][4]) == (95, 35)
    tables = [{**each, "definition": False} for each in sized()["tables"]]
    assert "No definition of d.t:" in tell_sizes(sized(tables=tables)).warnings[0]
    assert told.warnings == ()


def test_how_a_simulation_differs_from_its_recording() -> None:
    """What the median epoch took, or that the model says it; and a function where there was none."""
    model = {
        "tables": [{"name": "t", "recordcount": 40, "function": "f"}, {"name": "u", "recordcount": 2, "function": {}}],
        "clusters": {"A": {"link": {"trace_ms": [[0, 5], [1, 4000], [2, 30]]}}, "B": {"link": {"latency_ms": 5}}},
    }
    (said,) = against_recording(model)
    assert "30 ms from A (longest 4,000)" in said
    assert list(against_recording({})) == [
        "The simulated epochs do not take as long as those of the recording, but as long as the model says."
    ]
    assert without_function(model) == ["u"]


def test_how_well_the_model_fits_the_recording() -> None:
    """What the configured functions lose in both, beside the limit; else it is a finding of the simulation."""
    recorded = part("compare", lost_share=("NDB$EPOCH", 0.2561))
    replayed = part("simulate", lost_share=("NDB$EPOCH", 0.258), recorded=False)
    sweep = part("sweep", headlines=(line(Topic.LIMIT, "88 ms."),), recorded=False)
    said = (
        "Simulated with epochs that take as long as the recorded ones, NDB$EPOCH loses 25.8 %; in the recording it "
        "lost 25.6 %."
    )
    assert joined([recorded, replayed, sweep])[2].headlines[0].sentences == ("88 ms.", said)
    assert joined([recorded, replayed])[1].telling.sentences == ("It is.", said)
    assert joined([replayed, sweep])[1].headlines[0].sentences == ("88 ms.",)
    other = attrs.evolve(replayed, lost_share=("NDB$MAX", 0.258))
    assert joined([recorded, other])[1].telling.sentences == ("It is.",), (
        "it says nothing of the function of the recording"
    )


def test_tables_without_a_function() -> None:
    """Only where others have one."""
    model = {"tables": [{"name": "t", "function": "f"}, {"name": "u", "function": {}}]}
    assert without_function(model) == ["u"]
    assert without_function({"tables": [{"name": "t"}]}) == []
