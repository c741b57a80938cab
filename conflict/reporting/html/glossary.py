"""
The words that a reader of a report meets and may not know; docs/glossary.md and docs/compare.md say more.
"""

from __future__ import annotations

import re

# By the word, what tells that a page has it, and what it means.
_WORDS = {
    "@A": (r"\) ?@\w", "Behind a function: cluster A is the primary, whose applier judges; the other follows it."),
    "(x)": (r"\$\w+\([A-Za-z_]", "Behind a function: the column whose values it compares."),
    "row change": (r"row changes", "One row in one transaction, as a cluster logged it, whoever made it."),
    "change": (r"\d changes|of all changes|changes of users", "A row change that a user's transaction made."),
    "conflict": (
        r"\bconflicts\b",
        (
            "A change that an applier rejected. NDB$EPOCH2_TRANS rejects all changes of a transaction; so does "
            "NDB$EPOCH_TRANS, unless it was a delete that found no row."
        ),
    ),
    "rejected": (r"\brejected\b", "The other cluster's applier judged the change to be in conflict, and left its row."),
    "lost, lost update": (
        r"\b(lost|loses|lose)\b",
        "Of a user's change: rejected, or overwritten by a change of the other cluster that had not seen it.",
    ),
    "applied in part": (
        r"\bin part\b",
        "Of a transaction: some of its changes were rejected, and others were not.",
    ),
    "refreshed": (
        r"\brefreshed\b",
        "Of a row: the applier that rejected a change logs its own row, so that the other cluster takes it.",
    ),
    "reflected": (
        r"\breflected\b",
        "Of a row, under NDB$EPOCH2 and NDB$EPOCH2_TRANS: what the primary applied comes back to the secondary.",
    ),
    "trans in conflict": (
        r"trans in conflict|transaction in conflict",
        "Under NDB$EPOCH_TRANS and NDB$EPOCH2_TRANS: a change of its transaction, or of an earlier one, conflicts.",
    ),
    "row in conflict": (r"\brow in conflict", "The row had changed on the applier's cluster in the meantime."),
    "ignored": (r"\bignored\b", "The change found no row to change: nothing was done, and it counts as no conflict."),
    "cannot tell, not known": (
        r"cannot[ _]tell|[Nn]ot known",
        "The binlogs do not show it: rows are older than they are. It is neither a conflict nor none.",
    ),
    "lost_share": (r"\blost_share\b", "The part of users' changes that is lost: 0.02 is 2 %."),
    "median": (
        r"\b[Mm]edians?\b",
        "The one in the middle. If two figures follow in parentheses: the least and the most.",
    ),
    "closed form": (r"closed form", "A formula that gives the conflicts from rates, rows and conflict windows."),
    "conflict window": (
        r"conflict window",
        "From a change to its being applied on the other cluster; changes of both meet in it.",
    ),
    "without a row": (
        r"[Ww]ithout a row",
        "A user's update or delete that has no row to change under this function: users would have seen other rows.",
    ),
    "rows that differ": (
        r"rows? ends? different|[Rr]ows that (differ|end different)|[Rr]ows end different|row different",
        "Not the same on both clusters at the end: binlogs end with changes under way, simulations with all applied.",
    ),
    "stale": (r"\b[Ss]tale\b", "Of a row: different on the two clusters for a time."),
    "epoch": (r"\bepochs?\b", "What a cluster commits in one step, about 100 ms; it is applied as one transaction."),
    "latency_ms": (r"latency_ms", "How long an epoch is on a link, one way, in milliseconds."),
    "binlog type": (r"\bbinlog types?\b", "What NDB logs of a row change: binlog_type in mysql.ndb_replication."),
}


def words_explained(text: str) -> dict[str, str]:
    """Return the words that a text has, with what they mean."""
    return {word: meaning for word, (pattern, meaning) in _WORDS.items() if re.search(pattern, text)}
