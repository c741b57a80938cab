"""What the results of one report say together: the top of the page, bytes, and what simulated losses differ in."""

from typing import Any

import attrs

from conflict.reporting.bytes_by_type import BYTES_CHART, amount_of_bytes, bytes_chart
from conflict.reporting.cost_answer import cost_findings, cost_headline
from conflict.reporting.joining import joined
from conflict.reporting.model_words import against_recording, without_function
from conflict.reporting.of_sizes import sizes_part
from conflict.reporting.parts import Bytes, Headline, Measured, Part, Table, Topic

BOUNDS = {"2": (70, 120), "3": (90, 90), "7": (200, 200), "8": (95, 130), "9": (110, 110)}
SIZES = Bytes(Measured.MEASURED, BOUNDS, "type 7", 200, "the log", rows=10)


def least(functions: list[str], sizes: Bytes) -> str:
    """Return what the top of a page says of the smallest type."""
    return cost_headline(functions, sizes).sentences[0]


def sized(**others: Any) -> dict[str, Any]:
    """Return a document as `sizes` writes it, with 5 row changes."""
    formats = {name: {"least": {"bytes": each[0]}, "most": {"bytes": each[1]}} for name, each in BOUNDS.items()}
    totals = {"logged": {"bytes": 200}, "rows": 5, "formats": formats}
    return {"formats": dict.fromkeys(BOUNDS, "F"), "totals": totals, "file_bytes": 300, "tables": [], **others}


def part(title: str, **others: Any) -> Part:
    """Return what a report says of a result, with nothing but what is given."""
    return attrs.evolve(Part(title, "a file", {}, ("It is.",), (), Table("t", (), []), (), (), {}), **others)


def test_the_cost_is_that_of_the_best_function() -> None:
    """Types 2 and 3 are smaller, and NDB$EPOCH cannot have them; which of 8 and 9 is smaller depends on statements."""
    assert least(["NDB$EPOCH()"], SIZES) == (
        "Binlog type 9, which NDB$EPOCH() can use, takes 110 bytes of row events (-45.0 % against the 200 of type 7)."
    )
    assert cost_headline(["NDB$EPOCH() @A"], SIZES).sentences[1:] == (
        "Type 8 takes 95 to 130, so it may be smaller than type 9: the log does not show which.",
    )
    assert list(cost_findings(attrs.evolve(SIZES, users=7, also=["So."]))) == [
        "A range: the log does not show whether statements also set columns to the values that they had.",
        "The log has 10 row changes of 20.0 bytes on average.",
        "Of these, users made 7; appliers logged the other 3, which they had applied, refreshed or reflected.",
        "So.",
    ]


def test_the_cost_of_the_whole_log() -> None:
    """Type 9 with other events takes 500 bytes in 20 seconds; 3 rows less, of 11 bytes each, are 33 bytes."""
    sizes = attrs.evolve(SIZES, other_bytes=390, seconds=20, sent=(4, 7), left_by="NDB$EPOCH2() @A")
    found = cost_headline(["NDB$EPOCH() @A"], sizes)
    assert found.sentences[2:] == (
        (
            "With 390 bytes of other events, the log takes 500 bytes in 20 seconds: 25 bytes a second, or 2.16 MB a "
            "day at this load."
        ),
        (
            "NDB$EPOCH() @A would send back 4 rows, where the log has 7: about 33 bytes less on each cluster that logs "
            "them."
        ),
    )
    assert found.setting == ("From the log, as NDB$EPOCH2() @A left it; before compression.",)
    brief = cost_headline(["NDB$EPOCH() @A"], attrs.evolve(sizes, seconds=0, sent=(7, 7)))
    assert brief.sentences[2:] == (
        "With 390 bytes of other events, the log takes 500 bytes.",
        "NDB$EPOCH() @A would send back 7 rows, where the log has 7.",
    )


def test_amounts_of_bytes() -> None:
    """With three digits, in the unit in which there are less than a thousand."""
    amounts = {7.25: "7.25 bytes", 999.6: "1 kB", 24_496: "24.5 kB", 2_116_449_000: "2.12 GB", 5e15: "5,000 TB"}
    assert {amount: amount_of_bytes(amount) for amount in amounts} == amounts


def test_the_cost_where_no_function_is_best() -> None:
    """All types count that some function can have; a comparison with one type says that no other was measured."""
    some = {"2": (70, 70), "3": (90, 90), "7": (200, 200)}
    assert least([], attrs.evolve(SIZES, bounds=some)) == (
        "Of the binlog types, 3 (for NDB$MAX_INS, NDB$MAX_DEL_WIN_INS) takes least, 90 bytes of row events "
        "(-55.0 % against the 200 of type 7)."
    )
    assert list(cost_findings(attrs.evolve(SIZES, bounds=some, rows=0, users=7))) == []
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"3": (90, 90), "9": (110, 110)}, base="")) == (
        "Of the binlog types, 3 (for NDB$MAX_INS, NDB$MAX_DEL_WIN_INS) takes least, 90 bytes of row events."
    )
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200)})) == (
        "Only type 7 was tried: 200 bytes of row events; `ndb-conflict sizes` measures all types."
    )
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200), "9": (110, 110)})) == (
        "Binlog type 7, which NDB$MAX(x) can use, takes least, 200 bytes of row events."
    )


def line(topic: Topic, *sentences: str) -> Headline:
    """Return a headline."""
    return Headline(topic, topic.name.title(), sentences)


def test_each_topic_has_one_headline() -> None:
    """That of recorded changes comes first; what a simulation says of the topic is a finding of it."""
    recorded = part("compare", headlines=(line(Topic.FUNCTION, "f."),), best=("f",))
    lines = (line(Topic.FUNCTION, "g.", "One seed."), line(Topic.LIMIT, "10 ms."))
    simulated = part("sweep", headlines=lines, best=("g",), basis=("Links are shorter.",), recorded=False)
    sweep, compare = joined([simulated, recorded])
    assert (compare.headlines, compare.answer) == (recorded.headlines, ("It is.",))
    assert sweep.headlines == lines[1:]
    assert sweep.answer == ("g.", "One seed.", "It is.", "Links are shorter.")
    (alone,) = joined([simulated])
    assert (alone.headlines, alone.answer) == (lines, ("It is.",)), "there is no recording to differ from"


def test_bytes_are_told_once() -> None:
    """Where they are measured, for the function that loses least on recorded changes; else where they are compared."""
    chart = next(bytes_chart({"7": 200, "9": 110}, "the log"))
    measured = part("sizes", bytes=SIZES, charts=(chart,))
    of_compare = Bytes(Measured.COMPARED, BOUNDS, "type 7", 200, "the recorded log", users=7, left_by="f", sent=(1, 2))
    compared = part("compare", best=("NDB$EPOCH()",), bytes=of_compare, charts=(chart,))
    of_sweep = attrs.evolve(SIZES, source=Measured.SIMULATED)
    simulated = part("sweep", best=("NDB$MAX(x)",), bytes=of_sweep, charts=(chart,), recorded=False)
    sweep, compare, sizes = joined([simulated, compared, measured])
    assert [each.name for each in sweep.charts] == [BYTES_CHART], "the bytes of a simulation are others"
    assert (compare.answer, compare.charts, compare.headlines) == (("It is.",), (), ())
    (top,) = sizes.headlines
    assert top.sentences[0].startswith("Binlog type 9, which NDB$EPOCH() can use, takes 110 bytes")
    assert top.sentences[-1].startswith("NDB$EPOCH() would send back 1 row, where the log has 2: about 11 bytes less")
    assert top.setting == ("From the log, as f left it; before compression.",), "it has as many bytes as the recorded"
    assert "Of these, users made 7; appliers logged the other 3, " in " ".join(sizes.answer)
    other = part("sizes", bytes=attrs.evolve(SIZES, base_bytes=300))
    assert joined([compared, other])[1].headlines[0].setting == ("From the log; before compression.",)
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
    assert found.answer[-1] == (
        "With `binlog_transaction_compression`, 2 transactions of 400 bytes would take 100 (25.0 %), as logged."
    )
    epochs = {"mysql.ndb_apply_status": {"bytes": 9, "events": 2}}
    (found,) = joined([sizes_part(sized(compression=compression, other_events=epochs), "a file")])
    assert found.answer[-1] == (
        "With `ndb_log_transaction_compression`, 2 epoch transactions of 400 bytes would take 100 (25.0 %), as logged."
    )


def test_how_a_simulation_differs_from_its_recording() -> None:
    """Shorter or longer links than the median epoch had, and a function where there was none."""
    model = {
        "tables": [{"name": "t", "recordcount": 40, "function": "f"}, {"name": "u", "recordcount": 2, "function": {}}],
        "clusters": {"A": {"link": {"trace_ms": [[0, 5], [1, 4000], [2, 30]]}}, "B": {"link": {"latency_ms": 5}}},
    }
    took = "In the recording, the median epoch took 30 ms from A (longest 4,000) until it was applied."
    assert list(against_recording(model, [1, 29], everywhere=True)) == [
        took,
        "The simulated latencies are shorter.",
        "In the simulations u has the function too, in the recording none.",
    ]
    assert next(against_recording(model, [1], limit=29)) == (
        "In the recording, the median epoch took 30 ms from A (longest 4,000) until it was applied, waits included: "
        "longer than 29 ms."
    )
    assert next(against_recording(model, [1], limit=30)) == took
    assert list(against_recording(model, [31])) == [
        took,
        "The simulated latencies are longer.",
    ]
    assert list(against_recording(model, [1, 100])) == [took]
    assert list(against_recording(model)) == [took, "The simulated epochs take as long."]
    assert list(against_recording({})) == [
        "The simulated epochs do not take as long as those of the recording, but as long as the model says."
    ]
    assert without_function(model) == ["u"]
    assert without_function({"tables": [{"name": "t"}]}) == []
