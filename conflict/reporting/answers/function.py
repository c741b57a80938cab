"""
What a report answers from a comparison: which function loses least, and what sets functions apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.parts import FunctionFigures, Headline, Topic
from conflict.shown_text import counted, listed

__all__ = ["best_functions", "compare_columns", "compare_findings", "compare_headline"]

Pair = Mapping[str, Any]
_OURS = "NDB$"  # begins the names of conflict functions; policies of other products have others
_MOST_TABLES = 5
_RANKED = ("lost_updates", "differing_rows")
_PARTLY = "partly_rejected_transactions"


def compare_headline(changes: int, tried: Sequence[Pair], without_function: Sequence[str] = ()) -> Headline:
    """
    Return which function loses least, what the configured one loses, and what else sets the two apart.

    Args:
        changes: Of users, that were decided.
        tried: The pairs of a function and a binlog type that have figures.
        without_function: Tables that the functions are not tried on.
    """
    sentences = tuple(_function_sentences(changes, tried, without_function))
    answer = listed(best_functions(tried)) if _whole(tried) else ""
    return Headline(Topic.FUNCTION, "Which function loses least?", answer, sentences, (_setting(changes, tried),))


def compare_columns(
    changes: int, tried: Sequence[Pair], without_function: Sequence[str] = ()
) -> Iterator[FunctionFigures]:
    """
    Yield what each function loses, whose changes those are, and what it leaves.

    Args:
        changes: Of users, that were decided.
        tried: The pairs of a function and a binlog type that have figures; of those of a function the first one counts.
        without_function: Tables that the functions are not tried on.
    """
    pairs: dict[str, Pair] = {}
    for pair in _whole(tried):
        pairs.setdefault(pair["function"], pair)
    yield _column("changes lost", pairs, lambda pair: f"{pair['lost_updates']:,}{_share(pair, changes)}")
    for name in next(iter(pairs.values()), {}).get("lost_by_cluster", {}):
        lost = {function: _lost_of(name, pair) for function, pair in pairs.items()}
        yield FunctionFigures(Topic.FUNCTION, f"of the changes of {name}", lost)
    yield _column("transactions applied in part", pairs, lambda pair: pair[_PARTLY])
    where = ", in tables with a function" if without_function else ""
    yield _column(f"rows that differ{where}", pairs, lambda pair: _judged(pair, without_function))


def _column(heading: str, pairs: Mapping[str, Pair], cell: Callable[[Pair], object]) -> FunctionFigures:
    return FunctionFigures(Topic.FUNCTION, heading, {name: cell(pair) for name, pair in pairs.items()})


def _lost_of(cluster: str, pair: Pair) -> str:
    """Return how many changes of a cluster's users were lost, and that in percent of all of its changes."""
    lost, made = pair["lost_by_cluster"][cluster][2], pair.get("changes_by_cluster", {}).get(cluster)
    return f"{lost:,} ({100 * lost / made:.1f} %)" if made else f"{lost:,}"


def _setting(changes: int, tried: Sequence[Pair]) -> str:
    rows = max((sum(pair.get("rows_by_table", {}).values()) for pair in tried), default=0)
    of_rows = f" to {_rows(rows)}" if rows else ""
    return f"From the recorded binlogs: {changes:,} changes of users{of_rows}, decided again under each function."


def _function_sentences(changes: int, tried: Sequence[Pair], without_function: Sequence[str]) -> Iterator[str]:
    whole = _whole(tried)
    if not whole:
        yield "No pair of a function and a binlog type can be used: each stops an applier or could not be tried."
        return
    best, equal, used = _best(whole), best_functions(tried), _used(tried)
    others = [name for name in _losing_as_little(whole, best) if name not in equal]
    offered = _offered(whole)
    beaten = any(pair["lost_updates"] < best["lost_updates"] for pair in offered)  # by one that is advised against
    compared = len({pair["function"] for pair in (_ours(whole) if beaten else offered)})
    kind = "conflict functions" if len(offered) < len(whole) else "functions"
    configured = ", as configured," if used is not None and equal == (used["function"],) else ""
    rejected, lost = best["lost_rejected"], best["lost_updates"]
    yield (
        f"{listed(equal)}{configured} {'lose' if len(equal) > 1 else 'loses'} least of the {compared} {kind} compared: "
        f"{lost:,} of {changes:,} changes{_share(best, changes)}, {rejected:,} of them rejected and "
        f"{lost - rejected:,} overwritten."
    )
    if others:
        verbs = ("lose", "leave") if len(others) > 1 else ("loses", "leaves")
        yield f"{listed(others)} {verbs[0]} as many, and {verbs[1]} more rows different."
    other = used if used is not None and used["function"] not in equal and not used["stops"] else None
    if other is not None:
        yield f"{other['function']}, as configured, loses {other['lost_updates']:,}{_share(other, changes)}."
    if best.get("caveat"):
        yield f"It is {best['caveat'].rstrip('.')}." if _OURS in best["function"] else f"But {best['caveat']}."
    yield from _partly(best, other)
    yield _leaving(best, other, without_function)
    yield from _unjudged(best, other, without_function)


def _partly(best: Pair, other: Pair | None) -> Iterator[str]:
    """Yield how many transactions are applied in part under the best function, and under the configured one."""
    pairs = [pair for pair in (best, other) if pair is not None]
    if any(pair[_PARTLY] for pair in pairs):  # not known of any, if the log does not say which are transactions
        beside = "" if other is None else f"; with {other['function']} {_count(other[_PARTLY])}"
        verb = "is" if best[_PARTLY] == 1 else "are"
        yield f"With {best['function']} {_counted(best[_PARTLY], 'transaction')} {verb} applied in part{beside}."


def _leaving(best: Pair, other: Pair | None, without_function: Sequence[str]) -> str:
    """Return how many rows end different under the best function and the configured one."""
    where = "of tables with a function " if without_function else ""
    rows = [_judged(pair, without_function) for pair in (best, other) if pair is not None]
    if len(rows) == 2 and rows[0] == rows[1]:
        return f"With both, {_rows(rows[0])} {where}{_end(rows[0])} different."
    beside = f", with {other['function']} {_count(rows[1])}" if other is not None else ""
    return f"With {best['function']}, {_rows(rows[0])} {where}{_end(rows[0])} different{beside}."


def _unjudged(best: Pair, other: Pair | None, without_function: Sequence[str]) -> Iterator[str]:
    """Yield what tables without a function lose and leave different, if anything: there more is lost than need be."""
    pairs = [pair for pair in (best, other) if pair is not None]
    lost = [sum(pair.get("lost_by_table", {}).get(table, 0) for table in without_function) for pair in pairs]
    rows = [int(pair["differing_rows"]) - _judged(pair, without_function) for pair in pairs]
    if not any((*lost, *rows)):
        return
    has = "has" if len(without_function) == 1 else "have"
    beside = f"; {pairs[1]['function']} {lost[1]:,} and {rows[1]:,}" if pairs[1:] else ""
    yield (
        f"In {listed(list(without_function))}, which {has} no function, {best['function']} loses {lost[0]:,} of these "
        f"changes and leaves {_rows(rows[0])} different{beside}."
    )


def compare_findings(tried: Sequence[Pair], changes: int, without_function: Sequence[str] = ()) -> Iterator[str]:
    """
    Yield what besides the headline was found: policies that lose less, and rows that end different.

    Args:
        tried: The pairs of a function and a binlog type that have figures.
        changes: Of users, that were decided.
        without_function: Tables that the functions are not tried on.
    """
    whole = _whole(tried)
    if not whole:
        return
    ours, best, used = _ours(whole), _best(whole), _used(whole)
    other = min(whole, key=lambda pair: pair["lost_updates"])
    if other["lost_updates"] < best["lost_updates"]:
        why = (
            "which the manual advises against" if _OURS in other["function"] else "which is no conflict function of NDB"
        )
        yield (f"{other['function']}, {why}, would lose {other['lost_updates']:,}{_share(other, changes)}.")
    fewest = min(ours, key=lambda pair: (pair["differing_rows"], pair["lost_updates"]))
    shown = {pair["function"]: pair for pair in (best, used, fewest) if pair is not None}
    for pair in shown.values():
        yield _differing(pair, without_function)
    if any(pair["differing_rows"] for pair in shown.values()):
        yield "Binlogs end in the middle of a run: rows of which a change was still under way also count as different."


def best_functions(tried: Sequence[Pair]) -> tuple[str, ...]:
    """
    Return the functions that lose least and stop no applier; none if all stop.

    Of several, those that leave fewest rows different.
    """
    whole = _whole(tried)
    if not whole:
        return ()
    best = _best(whole)
    alike = [pair for pair in _ours(whole) if all(pair[each] == best[each] for each in _RANKED)]
    return tuple(dict.fromkeys(pair["function"] for pair in alike))


def _losing_as_little(whole: Sequence[Pair], best: Pair) -> list[str]:
    alike = [pair["function"] for pair in _ours(whole) if pair["lost_updates"] == best["lost_updates"]]
    return list(dict.fromkeys(alike))


def _whole(tried: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in tried if not pair["stops"]]


def _ours(whole: Sequence[Pair]) -> Sequence[Pair]:
    """Return the pairs that a server can be set to; if there are any, those that the manual does not advise against."""
    offered = _offered(whole)
    return [pair for pair in offered if not pair.get("caveat")] or offered


def _offered(whole: Sequence[Pair]) -> Sequence[Pair]:
    return [pair for pair in whole if _OURS in pair["function"] or pair.get("used")] or whole


def _best(whole: Sequence[Pair]) -> Pair:
    return min(_ours(whole), key=lambda pair: tuple(pair[each] for each in _RANKED))


def _used(pairs: Sequence[Pair]) -> Pair | None:
    return next((pair for pair in pairs if pair.get("used")), None)


def _differing(pair: Pair, without_function: Sequence[str]) -> str:
    """Return how many rows end different, of how many, and in which tables."""
    count, known = pair["differing_rows"], sum(pair.get("rows_by_table", {}).values())
    if not count:
        return f"With {pair['function']} no row ends different."
    rows = f"{count:,} of {known:,} rows" if known else _rows(count)
    different = {table: each for table, each in pair.get("differing_by_table", {}).items() if each}
    tables = [
        f"{each:,} in {table}{' (no function)' if table in without_function else ''}"
        for table, each in list(different.items())[:_MOST_TABLES]
    ]
    more = f", others in {len(different) - _MOST_TABLES:,} more" if len(different) > _MOST_TABLES else ""
    where = f": {', '.join(tables)}{more}" if tables else ""
    return f"With {pair['function']} {rows} {_end(count)} different{where}."


def _judged(pair: Pair, without_function: Sequence[str]) -> int:
    """Return how many rows end different in tables that the functions are tried on."""
    by_table: Mapping[str, int] = pair.get("differing_by_table", {})
    return int(pair["differing_rows"]) - sum(by_table.get(table, 0) for table in without_function)


def _rows(count: int) -> str:
    return _counted(count, "row")


def _counted(count: int, noun: str) -> str:
    return counted(count, noun) if count else f"no {noun}"


def _end(rows: int) -> str:
    return "end" if rows > 1 else "ends"


def _count(count: int) -> str:
    return f"{count:,}" if count else "none"


def _share(pair: Pair, changes: int) -> str:
    return f" ({100 * pair['lost_updates'] / changes:.1f} %)" if changes else ""
