"""A rule with one cell changed: how many recordings of real clusters tell it from NDB$MAX."""

import conflict

NDB_MAX = {"write": "reject if present", "update": "greater", "delete": "equal"}
CHANGES = {
    "nothing": {},
    "of equal values, the incoming one wins": {"update": "at least"},
    "a delete always wins": {"delete": "reject if missing"},
    "an insert of a row that exists is compared": {"write": "greater"},
}

for words, cell in CHANGES.items():
    rule = conflict.Resolver.row("CHANGED", **NDB_MAX | cell)
    found = conflict.conformance("build/cases/max", resolver=rule).to_pandas()
    differing, cases = found.differing.sum(), (found.differing > 0).sum()
    print(f"{words}: {differing} of {found.decisions.sum()} decisions, in {cases} cases")
