"""What the results of one report say together: the top of the page, bytes, and what simulated losses differ in."""

from typing import Any

import attrs

from conflict.reporting.bytes_by_type import BYTES_CHART, bytes_chart
from conflict.reporting.cost_answer import cost_findings, cost_headline
from conflict.reporting.joining import joined
from conflict.reporting.model_words import against_recording, without_function
from conflict.reporting.of_sizes import sizes_part
from conflict.reporting.parts import Bytes, Headline, Measured, Part, Table, Topic

BOUNDS = {"2": (70, 120), "3": (90, 90), "7": (200, 200), "8": (95, 130), "9": (110, 110)}
SIZES = Bytes(Measured.MEASURED, BOUNDS, "type 7", 200, "the log", rows=10)
ALL = "Bytes are those of row events before compression."


def least(functions: list[str], sizes: Bytes) -> str:
    """Return what the top of a page says of bytes."""
    (sentence,) = cost_headline(functions, sizes).sentences
    return sentence


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
    assert least(["NDB$EPOCH() @A"], SIZES) == (
        "Binlog type 9, which NDB$EPOCH() @A can use, takes 110 bytes of row events (-45.0 % against type 7), "
        "in the log."
    )
    assert list(cost_findings(["NDB$EPOCH() @A"], attrs.evolve(SIZES, users=7, also=["So."]))) == [
        "Type 8 takes 95 to 130 bytes, perhaps less than type 9.",
        "A range: the log does not show whether statements also set columns to the values that they had.",
        "The log has 10 row changes of 20.0 bytes on average.",
        "Of these, users made 7; appliers logged the other 3, which they had applied, refreshed or reflected.",
        ALL,
        "So.",
    ]


def test_the_cost_where_no_function_is_best() -> None:
    """All types count that some function can have; a comparison with one type says that no other was measured."""
    some = {"2": (70, 70), "3": (90, 90), "7": (200, 200)}
    assert least([], attrs.evolve(SIZES, bounds=some)) == (
        "Of the binlog types, 3 (for NDB$MAX_INS, NDB$MAX_DEL_WIN_INS) takes least, 90 bytes of row events "
        "(-55.0 % against type 7), in the log."
    )
    assert list(cost_findings([], attrs.evolve(SIZES, bounds=some, rows=0, users=7))) == [ALL]
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"3": (90, 90), "9": (110, 110)}, base="")) == (
        "Of the binlog types, 3 (for NDB$MAX_INS, NDB$MAX_DEL_WIN_INS) takes least, 90 bytes of row events, in the log."
    )
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200)})) == (
        "Only type 7 was tried: 200 bytes of row events in the log; `ndb-conflict sizes` measures all types."
    )
    assert least(["NDB$MAX(x)"], attrs.evolve(SIZES, bounds={"7": (200, 200), "9": (110, 110)})) == (
        "Binlog type 7, which NDB$MAX(x) can use, takes least, 200 bytes of row events, in the log."
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
    of_compare = Bytes(Measured.COMPARED, BOUNDS, "type 7", 200, "the recorded log", users=7, also=("It sends 1.",))
    compared = part("compare", best=("NDB$EPOCH()",), bytes=of_compare, charts=(chart,))
    of_sweep = attrs.evolve(SIZES, source=Measured.SIMULATED)
    simulated = part("sweep", best=("NDB$MAX(x)",), bytes=of_sweep, charts=(chart,), recorded=False)
    sweep, compare, sizes = joined([simulated, compared, measured])
    assert [each.name for each in sweep.charts] == [BYTES_CHART], "the bytes of a simulation are others"
    assert (compare.answer, compare.charts, compare.headlines) == (("It is.",), (), ())
    (top,) = sizes.headlines[0].sentences
    assert top.startswith("Binlog type 9, which NDB$EPOCH() can use, takes 110 bytes")
    assert top.endswith(", in the recorded log."), "it has as many bytes as the measured one"
    assert "Of these, users made 7; appliers logged the other 3, " in " ".join(sizes.answer)
    assert sizes.answer[-1] == "It sends 1."
    other = part("sizes", bytes=attrs.evolve(SIZES, base_bytes=300))
    assert joined([compared, other])[1].headlines[0].sentences[0].endswith(", in the log.")
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
        found = sizes_part(sized(server_ids=servers), "a file")
        assert found.bytes is not None
        assert found.bytes.of == words
        assert words in found.asked["question"]


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
