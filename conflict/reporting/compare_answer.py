"""
What a report answers from a comparison: which function loses least, what the run has, what each format costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.reporting.bytes_by_type import bytes_sentence, listed

__all__ = ["compare_answer"]

Pair = Mapping[str, Any]
_OURS = "NDB$"  # begins the names of conflict functions; policies of other products have others


def compare_answer(changes: int, tried: Sequence[Pair]) -> Iterator[str]:
    """
    Yield the sentences of the answer.

    Args:
        changes: Of users, that were decided.
        tried: The pairs of a function and a binlog type that have figures.
    """
    whole = [pair for pair in tried if not pair["stops"]]
    if not whole:
        yield "No pair of a function and a binlog type can be used: each stops an applier or could not be tried."
        return
    ours = [pair for pair in whole if pair["function"].startswith(_OURS) or pair.get("used")] or whole
    used = next((pair for pair in tried if pair.get("used")), None)
    best = min(ours, key=lambda pair: (pair["lost_updates"], pair["differing_rows"]))
    equal = list(dict.fromkeys(pair["function"] for pair in ours if pair["lost_updates"] == best["lost_updates"]))
    configured = ", which the run uses," if used is not None and equal == [used["function"]] else ""
    policy = list(_policy(whole, best, changes))
    among = "Of the conflict functions, " if policy else ""
    yield (
        f"{among}{listed(equal, 'or')}{configured} loses least: {_of(best['lost_updates'], changes)}: {_ways(best)}. "
        f"{_rows(best['differing_rows']).capitalize()} different on the two clusters."
    )
    yield from policy
    yield from _others(ours, best, used, changes)
    yield from _sizes(whole, used)


def _policy(whole: Sequence[Pair], best: Pair, changes: int) -> Iterator[str]:
    """Yield what loses less than every conflict function, if a policy of another product does."""
    other = min(whole, key=lambda pair: pair["lost_updates"])
    if other["lost_updates"] < best["lost_updates"]:
        yield (
            f"{other['function']}, which is no conflict function of NDB, would lose "
            f"{_of(other['lost_updates'], changes)}, and {_rows(other['differing_rows'])} different."
        )


def _others(ours: Sequence[Pair], best: Pair, used: Pair | None, changes: int) -> Iterator[str]:
    """Yield what leaves fewer rows different than the best, and what the run uses, in one sentence if it is one."""
    fewest = min(ours, key=lambda pair: (pair["differing_rows"], pair["lost_updates"]))
    fewer = fewest["differing_rows"] < best["differing_rows"]
    other_used = used is not None and used["lost_updates"] > best["lost_updates"]
    if fewer:
        configured = ", which the run uses," if used is not None and used["function"] == fewest["function"] else ""
        yield (
            f"{fewest['function']}{configured} loses {_count(fewest['lost_updates'], changes)} "
            f"but leaves the fewest rows different: {fewest['differing_rows']:,}."
        )
    if used is not None and other_used and not (fewer and used["function"] == fewest["function"]):
        yield (
            f"{used['function']}, which the run uses, loses {_count(used['lost_updates'], changes)}, "
            f"and {_rows(used['differing_rows'])} different."
        )


def _sizes(whole: Sequence[Pair], used: Pair | None) -> Iterator[str]:
    """Yield the bytes of each binlog type, related to those of the configured one."""
    sizes = {pair["binlog_type"]: pair for pair in whole if pair["least_bytes"]}
    if not sizes:
        return
    configured = used is not None and used["binlog_type"] in sizes
    name = used["binlog_type"] if used is not None and configured else next(iter(sizes))
    bounds = {each: (pair["least_bytes"], pair["most_bytes"]) for each, pair in sizes.items()}
    yield bytes_sentence(bounds, name, "Row events", "the configured" if configured else "")


def _ways(pair: Pair) -> str:
    """Return in which ways changes were lost; a change can be lost in both, and counts once."""
    rejected = pair["lost_rejected"]
    rest = pair["lost_updates"] - rejected
    both = pair["lost_overwritten"] - rest
    if not rejected or not rest:
        found = f"{rejected:,} rejected" if rejected else f"{rest:,} overwritten"
    else:
        found = f"{rejected:,} rejected and {rest:,} others overwritten"
    return f"{found} ({both:,} {'was' if both == 1 else 'were'} both)" if both else found


def _of(count: int, changes: int) -> str:
    share = f" ({100 * count / changes:.1f} %)" if changes else ""
    return f"{count:,} of {changes:,} changes{share}"


def _count(count: int, changes: int) -> str:
    return f"{count:,} ({100 * count / changes:.1f} %)" if changes else f"{count:,}"


def _rows(count: int) -> str:
    return {0: "no row ends", 1: "1 row ends"}.get(count, f"{count:,} rows end")
