"""
What a report answers from a comparison: which function loses least, and where rows end different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.bytes_by_type import listed
from conflict.reporting.parts import Headline, Topic
from conflict.rules.functions import FUNCTIONS
from conflict.shown_text import counted

__all__ = ["best_functions", "compare_findings", "compare_headline", "rows_sent_back"]

Pair = Mapping[str, Any]
_OURS = "NDB$"  # begins the names of conflict functions; policies of other products have others
_MOST_TABLES = 5
_RANKED = ("lost_updates", "differing_rows")


def compare_headline(changes: int, tried: Sequence[Pair], without_function: Sequence[str] = ()) -> Headline:
    """
    Return which function loses least, what it judges, what the configured one loses, and what was compared.

    Args:
        changes: Of users, that were decided.
        tried: The pairs of a function and a binlog type that have figures.
        without_function: Tables that the functions are not tried on.
    """
    sentences = tuple(_function_sentences(changes, tried, without_function))
    return Headline(Topic.FUNCTION, "Function", sentences, (_setting(changes, tried),))


def _setting(changes: int, tried: Sequence[Pair]) -> str:
    rows = max((sum(pair.get("rows_by_table", {}).values()) for pair in tried), default=0)
    of_rows = f" to {_rows(rows)}" if rows else ""
    functions = list(dict.fromkeys(pair["function"] for pair in tried))
    compared = f"; compared were {listed(functions)}" if functions else ""
    return f"From the recorded binlogs: {changes:,} changes of users{of_rows}{compared}."


def _function_sentences(changes: int, tried: Sequence[Pair], without_function: Sequence[str]) -> Iterator[str]:
    whole = _whole(tried)
    if not whole:
        yield "No pair of a function and a binlog type can be used: each stops an applier or could not be tried."
        return
    best, equal, used = _best(whole), best_functions(tried), _used(tried)
    others = [name for name in _losing_as_little(whole, best) if name not in equal]
    compared = len({pair["function"] for pair in _ours(whole)})
    kind = "conflict functions" if len(_ours(whole)) < len(whole) else "functions"
    configured = ", as configured," if used is not None and equal == (used["function"],) else ""
    lost = f"{best['lost_updates']:,} of {changes:,} changes{_share(best, changes)}"
    yield (
        f"{listed(equal)}{configured} {'lose' if len(equal) > 1 else 'loses'} least of the {compared} {kind} compared, "
        f"{lost}{_judging(equal)}."
    )
    if others:
        verbs = ("lose", "leave") if len(others) > 1 else ("loses", "leaves")
        yield f"{listed(others)} {verbs[0]} as many, and {verbs[1]} more rows different."
    if used is not None and used["function"] not in equal and not used["stops"]:
        tables = " in tables with a function" if without_function else ""
        mine, its = (_rows(_judged(pair, without_function)) for pair in (used, best))
        leaving = (
            f"; like {best['function']}, it leaves {mine} different{tables}"
            if mine == its
            else f" and leaves {mine}{tables} different; {best['function']} leaves {its}"
        )
        yield (f"{used['function']}, as configured, loses {used['lost_updates']:,}{_share(used, changes)}{leaving}.")


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
        yield (
            f"{other['function']}, which is no conflict function of NDB, would lose "
            f"{other['lost_updates']:,}{_share(other, changes)}."
        )
    fewest = min(ours, key=lambda pair: (pair["differing_rows"], pair["lost_updates"]))
    shown = {pair["function"]: pair for pair in (best, used, fewest) if pair is not None}
    for pair in shown.values():
        yield _differing(pair, without_function)
    if any(pair["differing_rows"] for pair in shown.values()):
        yield "Binlogs end in the middle of a run: rows of which a change was still under way also count as different."


def rows_sent_back(tried: Sequence[Pair]) -> tuple[int, int] | None:
    """Return how many rows the best function sends back, and the configured one; None if they are the same."""
    used, whole = _used(tried), _whole(tried)
    if used is None or not whole or _best(whole)["function"] == used["function"]:
        return None
    now, then = (pair["refreshes"] + pair["reflected"] for pair in (_best(whole), used))
    return now, then


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
    return [pair for pair in whole if pair["function"].startswith(_OURS) or pair.get("used")] or whole


def _best(whole: Sequence[Pair]) -> Pair:
    return min(_ours(whole), key=lambda pair: tuple(pair[each] for each in _RANKED))


def _used(pairs: Sequence[Pair]) -> Pair | None:
    return next((pair for pair in pairs if pair.get("used")), None)


def _judging(functions: Sequence[str]) -> str:
    """Return whether functions judge single rows or whole transactions, as the end of a sentence."""
    transactional = {each.name: each.transactional for each in FUNCTIONS}
    known = {name: transactional.get(name.partition("(")[0]) for name in functions}
    by_row = [name for name, whole in known.items() if whole is False]
    if not by_row:
        return ", rejecting whole transactions" if all(known.values()) else ""
    which = f"{listed(by_row)} " if len(by_row) < len(known) else ""
    judge = "judge" if len(by_row) > 1 else "judges"
    return f", but {which}{judge} single rows, and can keep half of a transaction"


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
    return f"With {pair['function']} {rows} {'ends' if count == 1 else 'end'} different{where}."


def _judged(pair: Pair, without_function: Sequence[str]) -> int:
    """Return how many rows end different in tables that the functions are tried on."""
    by_table: Mapping[str, int] = pair.get("differing_by_table", {})
    return int(pair["differing_rows"]) - sum(by_table.get(table, 0) for table in without_function)


def _rows(count: int) -> str:
    return counted(count, "row") if count else "no row"


def _share(pair: Pair, changes: int) -> str:
    return f" ({100 * pair['lost_updates'] / changes:.1f} %)" if changes else ""
