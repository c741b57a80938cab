"""
What a report answers from a comparison: which function loses least, and where rows end different.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.bytes_by_type import listed

__all__ = ["best_functions", "compare_answer"]

Pair = Mapping[str, Any]
_OURS = "NDB$"  # begins the names of conflict functions; policies of other products have others
_MOST_TABLES = 5


def compare_answer(changes: int, tried: Sequence[Pair], without_function: Sequence[str] = ()) -> Iterator[str]:
    """
    Yield the sentences of the answer.

    Args:
        changes: Of users, that were decided.
        tried: The pairs of a function and a binlog type that have figures.
        without_function: Tables that the functions are not tried on.
    """
    whole = _whole(tried)
    if not whole:
        yield "No pair of a function and a binlog type can be used: each stops an applier or could not be tried."
        return
    used = next((pair for pair in tried if pair.get("used")), None)
    best, equal = _best(whole), best_functions(tried)
    configured = ", as configured," if used is not None and list(equal) == [used["function"]] else ""
    policy = list(_policy(whole, best, changes))
    among = "Of the conflict functions, " if policy else ""
    lose = "lose" if len(equal) > 1 else "loses"
    yield (
        f"{among}{listed(equal)}{configured} {lose} least: {_of(best['lost_updates'], changes)}: {_ways(best)}. "
        f"{_rows(best, without_function)}."
    )
    yield from policy
    yield from _others(_ours(whole), best, used, changes)


def best_functions(tried: Sequence[Pair]) -> tuple[str, ...]:
    """Return the functions that lose least and stop no applier, the configured one among them; none if all stop."""
    whole = _whole(tried)
    if not whole:
        return ()
    least = _best(whole)["lost_updates"]
    return tuple(dict.fromkeys(pair["function"] for pair in _ours(whole) if pair["lost_updates"] == least))


def _whole(tried: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in tried if not pair["stops"]]


def _ours(whole: Sequence[Pair]) -> Sequence[Pair]:
    return [pair for pair in whole if pair["function"].startswith(_OURS) or pair.get("used")] or whole


def _best(whole: Sequence[Pair]) -> Pair:
    return min(_ours(whole), key=lambda pair: (pair["lost_updates"], pair["differing_rows"]))


def _policy(whole: Sequence[Pair], best: Pair, changes: int) -> Iterator[str]:
    """Yield what loses less than every conflict function, if a policy of another product does."""
    other = min(whole, key=lambda pair: pair["lost_updates"])
    if other["lost_updates"] < best["lost_updates"]:
        yield (
            f"{other['function']}, which is no conflict function of NDB, would lose "
            f"{_of(other['lost_updates'], changes)}, and {_ends(other['differing_rows'])} different."
        )


def _others(ours: Sequence[Pair], best: Pair, used: Pair | None, changes: int) -> Iterator[str]:
    """Yield what leaves fewer rows different than the best, and what is configured, in one sentence if it is one."""
    fewest = min(ours, key=lambda pair: (pair["differing_rows"], pair["lost_updates"]))
    fewer = fewest["differing_rows"] < best["differing_rows"]
    other_used = used is not None and used["lost_updates"] > best["lost_updates"]
    if fewer:
        configured = ", as configured," if used is not None and used["function"] == fewest["function"] else ""
        yield (
            f"{fewest['function']}{configured} loses {_count(fewest['lost_updates'], changes)} "
            f"but leaves the fewest rows different: {_differing(fewest)}."
        )
    if used is not None and other_used and not (fewer and used["function"] == fewest["function"]):
        yield (
            f"{used['function']}, as configured, loses {_count(used['lost_updates'], changes)}, "
            f"and {_ends(used['differing_rows'])} different."
        )


def _ways(pair: Pair) -> str:
    """Return in which ways changes were lost; one that was lost in both counts as rejected."""
    rejected = pair["lost_rejected"]
    rest = pair["lost_updates"] - rejected
    if not rejected or not rest:
        return "all rejected" if rejected else "all overwritten" if rest else "none"
    return f"{rejected:,} rejected, {rest:,} not rejected but overwritten"


def _rows(pair: Pair, without_function: Sequence[str]) -> str:
    """Return how many rows end different, of how many, and in which tables."""
    if not pair["differing_rows"]:
        return "No row ends different on the two clusters"
    different = {table: count for table, count in pair.get("differing_by_table", {}).items() if count}
    tables = [
        f"{count:,} of {table}{', which has no conflict function' if table in without_function else ''}"
        for table, count in list(different.items())[:_MOST_TABLES]
    ]
    more = f", and others of {len(different) - _MOST_TABLES:,} more tables" if len(different) > _MOST_TABLES else ""
    where = f": {'; '.join(tables)}{more}" if tables else ""
    verb = "ends" if pair["differing_rows"] == 1 else "end"
    return f"{_differing(pair)} {verb} different on the two clusters{where}"


def _differing(pair: Pair) -> str:
    """Return the rows that end different, of those that the binlogs change if that is known."""
    count, known = pair["differing_rows"], sum(pair.get("rows_by_table", {}).values())
    return f"{count:,} of {known:,} rows" if known else f"{count:,} row{'' if count == 1 else 's'}"


def _of(count: int, changes: int) -> str:
    share = f" ({100 * count / changes:.1f} %)" if changes else ""
    return f"{count:,} of {changes:,} changes{share}"


def _count(count: int, changes: int) -> str:
    return f"{count:,} ({100 * count / changes:.1f} %)" if changes else f"{count:,}"


def _ends(count: int) -> str:
    return {0: "no row ends", 1: "1 row ends"}.get(count, f"{count:,} rows end")
