"""
What users lost: how many changes, of which tables, why, and the first of them in words.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from conflict.operating.repairing.reading_lost import read_lost
from conflict.results.conflicts import ALL, Chosen
from conflict.results.doubts import Doubt, alarms_of, warnings_of
from conflict.results.result import Result
from conflict.rules.decision import Cause
from conflict.telling.html import telling_html
from conflict.telling.shown_text import counted, listed, one_line, short_names
from conflict.telling.terminal import telling_text
from conflict.telling.value import Entry, Listing, Table, Telling
from ndb_formats.events.rows_event import Operation

_FIRST = 10
_SECONDS = "%Y-%m-%d %H:%M:%S"
_WORDS = {"WRITE_ROW": "insert", "UPDATE_ROW": "update", "DELETE_ROW": "delete"}
_MOST_TEXT = 60  # characters of an image in a line
_BY_TABLE = ("table", "cluster", "lost", "rejected", "overwritten", "rows")


@attrs.frozen(eq=False, repr=False)
class Losses:
    """
    The changes of a result that were lost. Printed, or in a notebook, they say how many, of which tables, and why.

    Attributes:
        result: The result.
        which: Which of its lost changes these are.
        changes: A row for each, in the order in which they committed: the columns of `LOST`,
            ``server_id``, and ``before`` and ``after``, maps from the names of the
            logged columns to their values as text.
        not_known: How many changes may be lost, too: the binlogs do not tell whether an applier rejected them.
        doubts: What makes the result doubtful.
    """

    result: Result
    which: Chosen
    changes: pa.Table
    not_known: int
    doubts: tuple[Doubt, ...]

    @property
    def rejected(self) -> int:
        """How many the other cluster rejected."""
        return len(self.changes) - int(self.changes["cause"].null_count)

    @property
    def overwritten(self) -> int:
        """How many were overwritten alone, and not rejected."""
        return int(self.changes["cause"].null_count)

    @property
    def not_looked_for(self) -> list[str]:
        """Sentences on changes that may have been overwritten, and are not listed."""
        if len(self.result.clusters) > 2:
            return ["Changes that were overwritten alone are not looked for among more than two clusters."]
        keyless = [name for name, key in self.result.run["configuration"]["primary_keys"].items() if not key]
        names = ", ".join(name for name in keyless if self.which.table in (None, name))
        return [f"Changes of {names}, without a primary key, may have been overwritten, too."] if names else []

    @property
    def without_images(self) -> tuple[int, list[str]]:
        """How many of them stand in binlogs that are not given any more, and which these are."""
        rows = self.changes.filter(pc.and_(self.changes["before"].is_null(), self.changes["after"].is_null()))
        return len(rows), rows["file"].unique().to_pylist()

    @property
    def by_table(self) -> list[tuple[str, str, int, int, int, int]]:
        """Per table and cluster: lost changes, those rejected, those overwritten alone, and their different rows."""
        found = []
        groups = self.changes.group_by(["table", "cluster"]).aggregate(
            [([], "count_all"), ("cause", "count"), ("identity", "count_distinct")]
        )
        for row in groups.sort_by([("count_all", "descending"), ("table", "ascending")]).to_pylist():
            lost, rejected = row["count_all"], row["cause_count"]
            found.append(
                (row["table"], row["cluster"], lost, rejected, lost - rejected, row["identity_count_distinct"])
            )
        return found

    @property
    def telling(self) -> Telling:
        """What is told of them."""
        return tell_lost(self)

    def __repr__(self) -> str:
        return telling_text(self.telling)

    def _repr_html_(self) -> str:
        return telling_html(self.telling)

    def document(self) -> dict[str, Any]:
        """Return all of it as a document; moments are texts as in ISO 8601."""
        return {
            "changes_of_users": self.result.run["changes"],
            "lost": len(self.changes),
            "rejected": self.rejected,
            "overwritten": self.overwritten,
            "not_known": self.not_known,
            "not_looked_for": self.not_looked_for,
            "without_images": self.without_images[0],
            "table": self.which.table,
            "key": None if self.which.identity is None else self.which.key,
            "since": None if self.which.since is None else self.which.since.isoformat(),
            "until": None if self.which.until is None else self.which.until.isoformat(),
            "doubts": [str(each) for each in self.doubts],
            "by_table": [dict(zip(_BY_TABLE, row, strict=True)) for row in self.by_table],
        }


def tell_lost(lost: Losses, top: int = _FIRST, source: str = "") -> Telling:
    """
    Return how many changes were lost, of which tables, and the first of them.

    Args:
        lost: The changes.
        top: How many of them to tell.
        source: The result, as it was given, for commands; none are told without it.
    """
    chosen = one_line(lost.which.words(_SECONDS))
    warnings = [*not_listed(lost), *warnings_of(lost.doubts)]
    if not len(lost.changes):
        return Telling(
            "Lost changes",
            f"No change of a user{chosen} is known to be lost."
            if warnings
            else f"No change of a user{chosen} was lost.",
            alarms=alarms_of(lost.doubts),
            warnings=warnings,
        )
    of = "" if chosen else f" of {lost.result.run['changes']:,}"
    headline = (
        f"{len(lost.changes):,}{of} changes of users{chosen} were lost: the other cluster rejected {lost.rejected:,}, "
        f"and {lost.overwritten:,} others were overwritten."
    )
    return Telling(
        "Lost changes",
        headline,
        tuple(_sentences(lost)),
        (_by_table(lost),),
        listings=(_first(lost, top),),
        alarms=alarms_of(lost.doubts),
        warnings=warnings,
        commands=[("All of them, with both images:", f"ndb-conflict lost {shlex.quote(source)} --out lost.csv")]
        if source
        else [],
    )


def lost_tables(result: Result, top: int, source: str) -> list[Table]:
    """
    Return the lost changes of a result by table, and the first of them; none if none was lost.

    Args:
        result: The result; its binlogs are not read.
        top: How many of them.
        source: The result, as it was given, for a command.
    """
    lost = Losses(result, ALL, read_lost(result, ALL), 0, ())
    if not len(lost.changes):
        return []
    files = short_names(str(each) for each in lost.changes["winner_file"].drop_null().unique().to_pylist())
    rows = [
        (
            "" if row["time"] is None else f"{row['time']:{_SECONDS}}",
            *(one_line(row[name]) for name in ("cluster", "table", "key")),
            _WORDS[row["operation"]],
            one_line(f"{_why(row)}{_winner(row, files)}"),
        )
        for row in lost.changes.slice(0, top).to_pylist()
    ]
    left = len(lost.changes) - len(rows)
    command = f"ndb-conflict lost {shlex.quote(source)} --top {len(lost.changes)}"
    note = f"{counted(left, 'row')} more, and what each set: {command}" if left else ""
    headings = ("time (UTC)", "made on", "table", "key", "change", "why it was lost")
    return [_by_table(lost), Table("The first lost changes", headings, rows, note=note, texts=6)]


def _by_table(lost: Losses) -> Table:
    headings = ("table", "made on", "lost", "rejected", "overwritten alone", "rows")
    return Table("Lost changes by table", headings, lost.by_table, texts=2)


def not_listed(lost: Losses) -> Iterator[str]:
    """Yield which changes may be lost beside those that are listed."""
    if lost.not_known:
        them = "it was" if lost.not_known == 1 else "they were"
        yield f"Of {counted(lost.not_known, 'more change')} it is not known whether {them} rejected."
    yield from lost.not_looked_for


def _sentences(lost: Losses) -> Iterator[str]:
    found = lost.changes
    updates = pc.equal(found["operation"], Operation.UPDATE_ROW.name).to_numpy()
    before, after = (np.diff(found[name].combine_chunks().offsets.to_numpy()) for name in ("before", "after"))
    hidden = int((updates & (before < after)).sum())
    if hidden:
        yield (
            f"{counted(hidden, 'update')} among them {'does' if hidden == 1 else 'do'} not show what all columns were "
            "before: the format does not log it."
        )
    count, files = lost.without_images
    if count:
        names = short_names(files)
        yield (
            f"What {counted(count, 'of them', 'of them')} set is not shown: {listed([names[each] for each in files])} "
            f"{'is' if len(files) == 1 else 'are'} not given, and the History alone has it."
        )
    yield (
        "A binlog holds no names of users, and does not tell changes of a repair from theirs; the transaction id and "
        "the position tell which statement it was."
    )


def _first(lost: Losses, top: int) -> Listing:
    """Return the first of the changes."""
    files = short_names(str(each) for each in lost.changes["winner_file"].drop_null().unique().to_pylist())
    entries = []
    for row in lost.changes.slice(0, top).to_pylist():
        when = "" if row["time"] is None else f"{row['time']:{_SECONDS}}"
        change = one_line(f"{row['cluster']} {row['table']} {row['key']}: {_change(row)}")
        entries.append(Entry(when, change, [one_line(f"{_why(row)}{_winner(row, files)}")]))
    left = len(lost.changes) - len(entries)
    if left:
        entries.append(Entry("", f"and {left:,} more; --top shows more of them, --out FILE all"))
    return Listing("The first of them", tuple(entries))


def _change(row: Mapping[str, Any]) -> str:
    """Return a change in words: what it set."""
    image = dict(row["after"] or ())
    values = ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in image.items())
    values = values if len(values) <= _MOST_TEXT else values[: _MOST_TEXT - 1] + "…"
    return f"{_WORDS[row['operation']]} {values}".strip()


def _why(row: Mapping[str, Any]) -> str:
    """Return why a change was lost."""
    if row["cause"] is None:
        return f"overwritten on {row['cluster']}"
    cause = row["own_cause"] if row["own_cause"] is not None else row["cause"]
    if cause == Cause.TRANS_IN_CONFLICT.name:
        return f"{row['rejected_by']} rejected its transaction"
    words = cause.lower().replace("_", " ")
    return f"{row['rejected_by']} rejected it: {words}"


def _winner(row: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """Return what took the place of a change."""
    if row["winner_cluster"] is None:
        return ""
    what = f"; instead: {_WORDS[row['winner_operation']]} of {row['winner_cluster']}"
    if row["winner_file"] is None:
        return what
    return f"{what}, {files[row['winner_file']]}, position {row['winner_position']}"
