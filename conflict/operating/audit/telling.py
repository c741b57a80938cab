"""
What is told of an audit of the columns that conflict functions compare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conflict.telling.shown_text import counted, one_line
from conflict.telling.value import Entry, Listing, Table, Telling

Document = Mapping[str, Any]

_WORDS = {
    "falls": "set a lower value than the row had, which the other cluster rejects",
    "unchanged": (
        "left the value as it was: NDB$MAX and its relatives reject such an update, NDB$OLD does not notice it later"
    ),
    "tie": (
        "set a value that the other cluster set, too: under NDB$MAX both reject, and rows end different; NDB$OLD takes "
        "the two rows for one"
    ),
    "null": "set NULL, which compares as 0",
    "ahead": "set a moment that is later than their commit: such a change wins over later ones of other clusters",
}


def tell_audit(found: Document) -> Telling:
    """Return what is told of a document of `conflict.operating.audit.audit.Audit`."""
    findings, changes = found["findings"], found["changes"]
    total = sum(each["changes"] for each in changes)
    tables = counted(len(found["columns"]), "table")
    headline = f"Nothing is wrong with the values that functions compare: {counted(total, 'change')} of {tables}."
    if not found["columns"]:
        headline = "No conflict function here compares a column."
    elif findings:
        headline = f"{counted(len(findings), 'finding')} on the values that functions compare, in {tables}."
    kinds = dict.fromkeys(each["kind"] for each in findings)
    return Telling(
        "The values that conflict functions compare",
        headline,
        tables=[_counts(found)] if found["columns"] else [],
        listings=[
            Listing(
                "",
                [
                    Entry(
                        f"{each['table']}.{each['column']}",
                        f"{each['cluster']}: {each['count']:,} {_WORDS[each['kind']]}.",
                        [*map(_example, each["first"]), *_ahead(each)],
                    )
                    for each in findings
                ],
            )
        ]
        if kinds
        else [],
    )


def _counts(found: Document) -> Table:
    kinds = tuple(_WORDS)
    counts = {(each["table"], each["cluster"], each["kind"]): each["count"] for each in found["findings"]}
    return Table(
        "Changes of users",
        ("table", "function", "cluster", "changes", *kinds),
        [
            (
                each["table"],
                found["columns"][each["table"]],
                each["cluster"],
                each["changes"],
                *(counts.get((each["table"], each["cluster"], kind), 0) for kind in kinds),
            )
            for each in found["changes"]
        ],
        note="Ties are counted once, for the first cluster.",
        texts=3,
    )


def _example(each: Document) -> str:
    value = "NULL or as before" if each["value"] is None else each["value"]
    before = "" if each["before"] is None else f", before {each['before']}"
    return (
        f"First: {each['cluster']}, {one_line(each['key'])}: {value}{before}; epoch {each['epoch']}, {each['file']}, "
        f"position {each['position']}."
    )


def _ahead(each: Document) -> list[str]:
    if each["longest_ms"] is None:
        return []
    return [f"At most {each['longest_ms'] / 1000:,.3f} s ahead; the values are {each['unit']} since 1970."]
