"""
What a report says of a comparison of functions and formats besides what is told of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conflict.telling.bytes_by_type import format_name
from conflict.telling.part import Bytes, FunctionFigures, Headline, Measured, Part, RowCounts, Topic, log_of
from conflict.telling.shown_text import listed, percent
from conflict.whatif.comparing.telling import best_pairs, is_too_little, tell_comparison

Pair = Mapping[str, Any]
_SHOWN_ELSEWHERE = ("pairs", "notes", "doubts", "checks")


def compare_part(document: Mapping[str, Any], source: str) -> Part:
    """Return the part of a report on a document of `compare`, read from `source`."""
    pairs: Sequence[Pair] = document["pairs"]
    whole = [pair for pair in pairs if pair["lost_updates"] is not None and not pair["stops"]]
    changes = int(document.get("compared_changes", document["changes"]))
    without = document.get("tables_without_function", ())
    best, used = best_pairs(whole), [pair for pair in whole if pair.get("used")]
    lost_share = [(pair["function"].partition("(")[0], pair["lost_updates"] / changes) for pair in used if changes]
    return Part(
        tell_comparison(document),
        source,
        {"question": "Which conflict function and which binlog type lose least, on these changes of users?"},
        {name: each for name, each in document.items() if name not in _SHOWN_ELSEWHERE},
        tuple(dict.fromkeys(pair["function"] for pair in best)),
        _bytes(whole, changes),
        (_headline((changes, document["changes"]), best, used),),
        tuple(_columns(changes, whole, without)),
        lost_share=lost_share[0] if lost_share else None,
        log=log_of(document.get("files", ())),
    )


def _headline(counts: tuple[int, int], best: Sequence[Pair], used: Sequence[Pair]) -> Headline:
    """
    Return which functions lose least, and what they and the configured one lose.

    Args:
        counts: How many changes were compared, and how many there are.
        best: The pairs that lose least.
        used: The pair of the run, if it is among all.
    """
    changes, every = counts
    question = "Which function loses least?"
    of_all = f" of {every:,}" if changes < every else ""
    setting = (f"From the recorded binlogs: {changes:,}{of_all} changes of users, decided again under each function.",)
    if every and not changes:
        return Headline(Topic.FUNCTION, question, "", ("None of the changes could be compared.",), setting)
    if is_too_little(changes, every):
        return Headline(Topic.FUNCTION, question, "", ("Too few of the changes could be compared.",), setting)
    if not best:
        none = "No pair of a function and a binlog type can be used: each stops an applier or could not be tried."
        return Headline(Topic.FUNCTION, question, "", (none,), setting)
    names = list(dict.fromkeys(pair["function"] for pair in best))
    told = [f"{listed(names)}: {best[0]['lost_updates']:,} of {changes:,} changes lost{_share(best[0], changes)}."]
    if best[0].get("caveat"):
        told.append(f"But {best[0]['caveat']}.")
    for pair in used[:1]:
        lost = f"{pair['lost_updates']:,} lost{_share(pair, changes)}" if pair["function"] not in names else "the same"
        told.append(f"As configured, {pair['function']}: {lost}.")
    return Headline(Topic.FUNCTION, question, listed(names), tuple(told), setting)


def _columns(changes: int, whole: Sequence[Pair], without_function: Sequence[str] = ()) -> Iterator[FunctionFigures]:
    """Yield what each function loses, whose changes those are, and what it leaves; of its pairs the first counts."""
    pairs: dict[str, Pair] = {}
    for pair in whole:
        pairs.setdefault(pair["function"], pair)
    yield _column("changes lost", pairs, lambda pair: f"{pair['lost_updates']:,}{_share(pair, changes)}")
    for name in next(iter(pairs.values()), {}).get("lost_by_cluster", {}):
        lost = {function: _lost_of(name, pair) for function, pair in pairs.items()}
        yield FunctionFigures(Topic.FUNCTION, f"of the changes of {name}", lost)
    yield _column("transactions applied in part", pairs, lambda pair: pair["partly_rejected_transactions"])
    where = ", in tables with a function" if without_function else ""
    yield _column(f"rows that differ{where}", pairs, lambda pair: _judged(pair, without_function))


def _column(heading: str, pairs: Mapping[str, Pair], cell: Callable[[Pair], object]) -> FunctionFigures:
    return FunctionFigures(Topic.FUNCTION, heading, {name: cell(pair) for name, pair in pairs.items()})


def _lost_of(cluster: str, pair: Pair) -> str:
    """Return how many changes of a cluster's users were lost, and that in percent of those that were compared."""
    made = pair.get("compared_by_cluster", pair.get("changes_by_cluster", {})).get(cluster)
    lost = pair["lost_by_cluster"][cluster][2]
    return f"{lost:,} ({percent(lost / made)})" if made else f"{lost:,}"


def _judged(pair: Pair, without_function: Sequence[str]) -> int:
    """Return how many rows end different in tables that the functions are tried on."""
    by_table: Mapping[str, int] = pair.get("differing_by_table", {})
    return int(pair["differing_rows"]) - sum(by_table.get(table, 0) for table in without_function)


def _share(pair: Pair, changes: int) -> str:
    return f" ({percent(pair['lost_updates'] / changes)})" if changes else ""


def _bytes(whole: Sequence[Pair], changes: int) -> Bytes | None:
    """Return what the binlog types take that were tried, related to the configured one."""
    bounds = {pair["binlog_type"]: (pair["least_bytes"], pair["most_bytes"]) for pair in whole if pair["least_bytes"]}
    bounds = {name: each for name, each in bounds.items() if name.isdigit()}
    if not bounds:
        return None
    used = next((pair for pair in whole if pair.get("used") and pair["binlog_type"] in bounds), None)
    base, base_bytes = (format_name(used["binlog_type"]), used["least_bytes"]) if used else ("", 0)
    return Bytes(Measured.COMPARED, bounds, base, base_bytes, "the recorded log", logged=_logged(whole, used, changes))


def _logged(whole: Sequence[Pair], used: Pair | None, changes: int) -> RowCounts | None:
    """Return how many rows the log has under each function; None without the configured one."""
    rows = {pair["function"]: pair.get("rows_by_appliers") for pair in reversed(whole)}
    known = {name: each for name, each in rows.items() if each is not None}
    return None if used is None else RowCounts(changes, used["function"], known)
