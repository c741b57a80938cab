"""What the results of one report say together: the top of the page, bytes, and what simulated losses differ in."""

from collections.abc import Sequence
from typing import Any

import attrs

from conflict.reporting.answers.cost import cost_column, cost_findings, cost_headline
from conflict.reporting.joining import joined
from conflict.reporting.kinds.sizes import sizes_part
from conflict.reporting.parts import Bytes, Headline, Measured, Part, RowCounts, Topic
from conflict.reporting.wording.bytes_by_type import BYTES_CHART, amount_of_bytes, bytes_chart
from conflict.reporting.wording.model_words import against_recording, without_function
from conflict.telling.value import Chart, Telling

BOUNDS = {"2": (70, 120), "3": (90, 90), "7": (200, 200), "8": (95, 130), "9": (110, 110)}
SIZES = Bytes(Measured.MEASURED, BOUNDS, "type 7", 200, "the log", rows=10)


def least(functions: list[str], sizes: Bytes) -> str:
    """Return what the top of a page says of the smallest type."""
    return cost_headline(functions, sizes).sentences[0]


def sized(**others: Any) -> dict[str, Any]:
    """Return a document as `sizes` writes it, with 5 row changes."""
    formats = {name: {"least": {"bytes": each[0]}, "most": {"bytes": each[1]}} for name, each in BOUNDS.items()}
    totals = {"logged": {"bytes": 200}, "rows": 5, "formats": formats}
    return {
        "formats": dict.fromkeys(BOUNDS, "F"),
        "totals": totals,
        "file_bytes": 300,
        "total": 500,
        "tables": [],
        **others,
    }


def part(title: str, charts: Sequence[Chart] = (), **others: Any) -> Part:
    """Return what a report says of a result, with nothing but what is given."""
    return attrs.evolve(Part(Telling(title, "", ("It is.",), charts=charts), "a file", {}, {}), **others)


def test_the_cost_is_that_of_the_best_function() -> None:
    """Types 2 and 3 are smaller, and NDB$EPOCH cannot have them; which of 8 and 9 is smaller depends on statements."""
    assert least(["NDB$EPOCH()"], SIZES) == (
        "Binlog type 9, which NDB$EPOCH() can use, takes 110 bytes of row events (-45.0 % against the 200 of type 7)."
    )
    assert cost_headline(["NDB$EPOCH() @A"], SIZES).sentences[1:] == (
        "Type 8 takes 95 to 130, so it may be smaller than type 9: the log does not show which.",
    )
    users = RowCounts(7, "f", {})
    assert list(cost_findings(attrs.evolve(SIZES, logged=users, also=["So."]))) == [
        "A range: the log does not show whether statements also set columns to the values that they had.",
        "The log has 10 row changes of 20.0 bytes on average.",
        (
            "Of these, users made 7; appliers logged the other 3, which they had applied, refreshed or reflected: one "
            "for each row of an applied epoch."
        ),
        "So.",
    ]


# 10 row changes in 20 seconds, 6 by users; under NDB$EPOCH() appliers log 2 rows where they logged 4.
TIMED = attrs.evolve(
    SIZES,
    other_bytes=390,
    seconds=20,
    compressed=100,
    servers={1: {"9": 300, "8": 0}, 2: {"9": 200, "8": 0}},
    logged=RowCounts(6, "NDB$EPOCH2() @A", {"NDB$EPOCH() @A": 2, "NDB$EPOCH2() @A": 4, "NDB$MAX(x)": 0}),
)


def test_the_cost_of_the_whole_log_in_a_day() -> None:
    """Type 9: 8 rows of 11 bytes and 390 other bytes are 478 in 20 seconds; 590 were recorded; 3 of 5 on server 1."""
    found = cost_headline(["NDB$EPOCH() @A"], TIMED)
    assert (found.question, found.answer) == ("What does it cost in bytes?", "2.06 MB a day")
    assert list(found.sentences) == [
        "About 2.06 MB of binlog a day under NDB$EPOCH() @A in binlog type 9, for the log at this load.",
        "That is 19.0 % less than the 2.55 MB of the log as it was recorded, under NDB$EPOCH2() @A in type 7.",
        "Under NDB$EPOCH2() @A, type 9 takes 2.16 MB.",
        "By server: 1.24 MB on server 1, 826 kB on server 2.",
        (
            "Type 8 takes 2.01 MB to 2.13 MB under NDB$EPOCH() @A, so it may be smaller than type 9: the log does not "
            "show which."
        ),
        "With compressed transactions, the log as it was recorded takes 432 kB a day.",
    ]
    assert list(found.setting) == [
        "From 20 seconds of the log: 10 row changes of 110 bytes in type 9, and 390 bytes of other events.",
        "Under NDB$EPOCH() @A there are 8 row changes, of 88 bytes if they are as long.",
    ]


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
    """As it is; nothing is said of what it is already."""
    sizes = attrs.evolve(TIMED, logged=None, servers={}, compressed=0)
    assert list(cost_headline(["NDB$MAX(x)"], sizes).sentences) == [
        "2.55 MB of binlog a day under NDB$MAX(x) in binlog type 7, for the log at this load."
    ]
    assert (
        cost_headline([], sizes).sentences[0] == "2.07 MB of binlog a day in binlog type 3, for the log at this load."
    )


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
    assert least([], attrs.evolve(SIZES, bounds=some)) == (
        "Of the binlog types, 3 (for NDB$MAX_INS, NDB$MAX_DEL_WIN_INS) takes least, 90 bytes of row events "
        "(-55.0 % against the 200 of type 7)."
    )
    assert list(cost_findings(attrs.evolve(SIZES, bounds=some, rows=0))) == []
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"3": (90, 90), "9": (110, 110)}, base="")) == (
        "Of the binlog types, 3 (for NDB$MAX_INS, NDB$MAX_DEL_WIN_INS) takes least, 90 bytes of row events."
    )
    assert least(["NDB$EPOCH()"], attrs.evolve(SIZES, base="", base_bytes=0)) == (
        "Binlog type 9, which NDB$EPOCH() can use, takes 110 bytes of row events."
    )
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200)})) == (
        "Only type 7 was tried: 200 bytes of row events; `ndb-conflict sizes` measures all types."
    )
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200), "9": (110, 110)})) == (
        "Binlog type 7, which NDB$MAX(x) can use, takes least, 200 bytes of row events."
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
    assert top.sentences[0].startswith("Binlog type 9, which NDB$EPOCH() can use, takes 110 bytes")
    assert "Of these, users made 7; appliers logged the other 3, " in " ".join(sizes.telling.sentences)
    for other in (attrs.evolve(SIZES, base_bytes=300), attrs.evolve(SIZES, rows=20)):
        found = joined([compared, part("sizes", bytes=other)])[1]
        assert not any(each.startswith("Of these, users made") for each in found.telling.sentences), "it is another log"
    assert (
        joined([simulated, compared])[1]
        .headlines[0]
        .sentences[0]
        .startswith("Binlog type 9, which NDB$EPOCH() can use")
    )
    assert joined([simulated])[0].headlines[0].sentences[0].startswith("Binlog type 7, which NDB$MAX(x) can use")


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
    assert found.also == ("The files as they were logged have 100 bytes for server 1 and 50 bytes for server 2.",)


def test_what_compression_would_leave() -> None:
    """By the variable of NDB's binlog, where each transaction is an epoch; by the other one in a log without epochs."""
    compression = {"transactions": 2, "plain": 400, "compressed": 100}
    (found,) = joined([sizes_part(sized(compression=compression), "a file")])
    assert found.telling.sentences[-1] == (
        "With `binlog_transaction_compression`, 2 transactions of 400 bytes would take 100 (25.0 %), as logged."
    )
    epochs = {"mysql.ndb_apply_status": {"bytes": 9, "events": 2}}
    (found,) = joined([sizes_part(sized(compression=compression, other_events=epochs), "a file")])
    assert found.telling.sentences[-1] == (
        "With `ndb_log_transaction_compression`, 2 epoch transactions of 400 bytes would take 100 (25.0 %), as logged."
    )


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
