"""
What is to be said of a log to who reads its rows: changes that are not among them, incidents, rollbacks.

`remarks_on` takes what `ndb_formats.columnar.log_scan` finds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from ndb_formats.columnar.log_scan import LoggedEnd, LoggedIncident, LogItem, ScannedChange, scan_log
from ndb_formats.events.logged_statement import may_change
from ndb_formats.findings import LogRemark
from ndb_formats.schema.tables import split_full_name

_MOST_INCIDENTS = 3
_MOST_SHOWN = 80  # characters of a statement


def log_remarks(files: Sequence[str | Path]) -> list[LogRemark]:
    """Return what is to be said of files; an error in them is left to whoever reads their rows."""
    return list(remarks_on(scan_log(files, verify=False)))


def remarks_on_rows(items: Iterable[LogItem]) -> Iterator[LogRemark]:
    """
    Yield `remarks_on`, and what is to be said to who takes the rows of a log for what happened.

    Rows that were rolled back are in logs of transactions that also changed tables without transactions, of MariaDB
    after a savepoint, and of prepared XA transactions. NDB logs none.
    """
    kept = list(items)
    yield from remarks_on(kept)
    undone, prepared = list[LoggedEnd](), dict[str, LoggedEnd]()
    for item in kept:
        if not isinstance(item, LoggedEnd):
            continue
        verb, _, xid = item.text.upper().partition(" X'")
        if verb == "XA PREPARE":
            prepared[xid] = item
        else:
            prepared.pop(xid, None)
            undone += [] if verb == "XA COMMIT" else [item]
    if undone:
        are = "1 rollback is" if len(undone) == 1 else f"{len(undone):,} rollbacks are"
        what = "logged after the changes that were undone, which are among the rows as far as these files hold them"
        yield LogRemark(f"{are} {what}; {_FIRST} {_shown(undone[0])}")
    if prepared:
        are = "1 XA transaction is" if len(prepared) == 1 else f"{len(prepared):,} XA transactions are"
        first = _shown(next(iter(prepared.values())))
        yield LogRemark(f"{are} prepared, and neither committed nor rolled back in these files; {_FIRST} {first}")


def remarks_on(items: Iterable[LogItem], resolved: Collection[str] = ()) -> Iterator[LogRemark]:
    """
    Yield what is to be said of what a log holds besides rows.

    Args:
        items: What `scan_log` yields.
        resolved: Full names of tables with a conflict function: nothing holds for them that is not among the rows.
    """
    changes, incidents = list[ScannedChange](), list[LoggedIncident]()
    for item in items:
        if isinstance(item, ScannedChange):
            changes.append(item)
        elif isinstance(item, LoggedIncident):
            incidents.append(item)
    for each in islice(incidents, _MOST_INCIDENTS):
        yield LogRemark(_of_incident(each), lost=True)
    if len(incidents) > _MOST_INCIDENTS:
        yield LogRemark(f"{len(incidents) - _MOST_INCIDENTS:,} more incidents follow", lost=True)
    touching = [each for each in changes if each.tables.intersection(resolved)]
    if touching:
        tables = ", ".join(sorted(frozenset().union(*(each.tables for each in touching)).intersection(resolved)))
        said = f"{_count(touching)}, on {tables}, for which a conflict function is set; {_FIRST} {_shown(touching[0])}"
        yield LogRemark(said, contradicts=True)
    rest = [each for each in changes if not each.tables.intersection(resolved)]
    doubtful = {number: found for number, each in enumerate(rest) if (found := _named(each, resolved))}
    if doubtful:
        these = [rest[number] for number in doubtful]
        tables = ", ".join(sorted(frozenset().union(*doubtful.values())))
        said = f"{_count(these)}, and may have changed {tables}, for which a conflict function is set"
        yield LogRemark(f"{said}; {_FIRST} {_shown(these[0])}", contradicts=True)
    others = [each for number, each in enumerate(rest) if number not in doubtful]
    if others:
        yield LogRemark(f"{_count(others)}; {_FIRST} {_shown(others[0])}")


def _named(change: ScannedChange, resolved: Collection[str]) -> frozenset[str]:
    """Return the tables that a statement may change without saying which."""
    if change.tables:
        return frozenset()
    return frozenset(name for name in resolved if may_change(change.text, split_full_name(name)[1]))


_FIRST = "the first is at"


def _of_incident(each: LoggedIncident) -> str:
    message = f" ({each.incident.message})" if each.incident.message else ""
    return (
        f"{each.file}, position {each.position}: incident {each.incident.number}, {each.incident.name}{message}: the "
        f"log may lack changes from here on, and a replica stops here with {_INCIDENT_ERRORS}"
    )


# ER_REPLICA_INCIDENT of MySQL, and ER_SLAVE_INCIDENT.
_INCIDENT_ERRORS = "error 13119 (MariaDB, and MySQL before 8.0: 1590)"


def _count(changes: Sequence[ScannedChange]) -> str:
    many = len(changes) != 1
    are = f"{len(changes):,} changes are logged as statements" if many else "1 change is logged as a statement"
    return f"{are} and {'are' if many else 'is'} not among the rows"


def _shown(change: ScannedChange | LoggedEnd) -> str:
    text = " ".join(change.text.encode("utf-8", "backslashreplace").decode().split())
    text = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    return f"{change.file}, position {change.position}: {text}"
