"""
What the reference engine resolves in a run of the columnar engine: some rows beside those of the kernels, or all.

Computes docs/jobs.md, "Careful rows", whose table is `CareKind` in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import attrs

from conflict.telling.shown_text import counted


@attrs.frozen
class _Care:
    """
    Why rows, or all rows of a run, are resolved change by change.

    Attributes:
        name: In `run.json`.
        what: What they are, as the end of a sentence.
        why: Why the kernels cannot.
        whole: It takes all rows of the run.
    """

    name: str
    what: str
    why: str
    whole: bool = False


class CareKind(Enum):
    """Kinds of rows and of runs that are resolved with care."""

    NO_KEY = _Care(
        "no_primary_key",
        "of tables without a primary key",
        "Such a row is known by its values, and an update gives it others: it has no bucket.",
    )
    FOREIGN_KEY = _Care(
        "foreign_key",
        "on which a foreign key acts, or that are linked to such rows",
        "What happens to one row reaches others, in any bucket.",
    )
    UNLOGGED = _Care(
        "unlogged",
        "that a cluster changed without a log",
        "What such a row was in between is tried, as with rows that are older than the log.",
    )
    RESPELLED = _Care(
        "respelled",
        "whose keys are spelled in several ways, such as 'abc' and 'ABC'",
        "What an applier does with such a row depends on the bytes of its key; the kernels know its number.",
    )
    OLDER = _Care(
        "older_than_log",
        "that are older than the log, and whose first change does not show what they were",
        "Every state that fits what the binlogs show is tried.",
    )
    NO_PAIR = _Care(
        "no_pair",
        "other than two clusters replicate to each other",
        "A decision compares an operation with what one other cluster did.",
        whole=True,
    )
    SPAN_OF_TIME = _Care(
        "span_of_time",
        "the part of the logs is given by time",
        "A History has the times of epochs, and no index by them.",
        whole=True,
    )
    GIVEN_ROWS = _Care("given_rows", "rows are given", "They are in no binlog, so they are in no History.", whole=True)
    CHANGING_LINKS = _Care(
        "changing_links",
        "the definitions of tables with foreign keys change",
        "Which rows are linked changes with them.",
        whole=True,
    )
    CHANGING_FUNCTION = _Care(
        "changing_function",
        "a table gets another conflict function",
        "The kernels have one function for each table.",
        whole=True,
    )
    CHANGING_KEYLESS = _Care(
        "changing_keyless",
        "definitions change, and a table has no primary key",
        "The values by which its rows are known change with them.",
        whole=True,
    )
    ALTERED_VALUES = _Care(
        "altered_values",
        "a statement converts the values of a column, or changes the default of a new one",
        "The kernels have values as they were logged, and one default for each column.",
        whole=True,
    )
    REFLECTED_VALUE = _Care(
        "reflected_value",
        "a reflected value is compared",
        "The value is that of the row when it was reflected, not of a change in a binlog.",
        whole=True,
    )
    NAMELESS_EPOCHS = _Care(
        "nameless_epochs",
        "the binlogs do not name the epochs that were applied",
        "They are found by their content, in every way that fits.",
        whole=True,
    )
    SINGLE_OPERATIONS = _Care(
        "single_operations",
        "an applier sends its operations one by one (replica_allow_batching = OFF)",
        "The operations on a row can each have been judged at a moment of their own.",
        whole=True,
    )
    COMPRESSED = _Care(
        "compressed_epochs",
        "a cluster logs what it applied in compressed transactions",
        "They bring changes back to the cluster that made them, which applies them again.",
        whole=True,
    )
    CHANGING_ROLES = _Care(
        "changing_roles",
        "the roles of the clusters change",
        "Where they changed is tried, for all rows at once.",
        whole=True,
    )
    OTHER_MARKS = _Care(
        "other_marks",
        "the binlogs mark rows otherwise than the roles and functions say",
        "Other roles are tried, for all rows at once.",
        whole=True,
    )
    ONE_SIDED_DEFINITION = _Care(
        "one_sided_definition",
        "a statement changed a table on one cluster, and the binlogs of the other one do not hold it",
        "Rows of two definitions are compared.",
        whole=True,
    )
    OTHER_FORM = _Care(
        "other_form",
        "changes of a table reached an applier before or after a statement that changed its columns",
        "Rows of two definitions are compared.",
        whole=True,
    )
    UNLOGGED_DOUBTS = _Care(
        "unlogged_doubts",
        "rows were changed without a log, and the logs hold at most 200,000 row changes",
        "What such a row was can decide on other rows, of transactions in conflict and of tables that refer to it.",
        whole=True,
    )
    CRASH_DOUBTS = _Care(
        "crash_doubts",
        "all data nodes of a cluster went down, and the logs hold at most 200,000 row changes",
        "What a row came back as can decide on other rows, of transactions in conflict and of tables that refer to it.",
        whole=True,
    )
    MIDDLE_LINKS = _Care(
        "middle_links",
        "the logs start in the middle, transactions can be rejected, and tables have foreign keys",
        "Which rows were linked is not known.",
        whole=True,
    )
    MIDDLE_RESPELLED = _Care(
        "middle_respelled",
        "the logs start in the middle, transactions can be rejected, and keys are spelled in several ways",
        "Which transactions such a row puts in conflict is not known.",
        whole=True,
    )
    MIDDLE_REFRESHES = _Care(
        "middle_refreshes",
        "the logs start in the middle, and a cluster refreshes single rows and rows of whole transactions",
        "A refresh does not tell which of the two it was.",
        whole=True,
    )
    MIDDLE_REJECTED = _Care(
        "middle_rejected",
        "the logs start in the middle, and whether transactions were rejected depends on what is not known",
        "One row of a transaction decides all its other rows.",
        whole=True,
    )
    MIDDLE_STOP = _Care(
        "middle_stop",
        "the logs start in the middle, and an applier stops",
        "A stop can follow from a row that is not known, and then it was none.",
        whole=True,
    )


def said_of(rows: Mapping[str, int]) -> str:
    """Return what was resolved with care as a list in words; `rows`: the number of rows by the name of their kind."""
    parts = [
        f"{counted(rows[each.value.name], 'row')} {each.value.what}" for each in CareKind if each.value.name in rows
    ]
    return "; ".join(parts)
