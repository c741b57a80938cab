"""
What a result warns of: crashes, skipped epochs, changes without a log, refused tables, what the logs do not begin with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.config.database_names import DatabaseNames
from conflict.results.doubts import start_words
from conflict.rules.decision import Verdict
from conflict.rules.exceptions_table import BITS_IN_EXCEPTIONS
from conflict.rules.table_setup import RefusalKind
from conflict.telling.shown_text import counted

VERDICTS = [verdict.name.lower() for verdict in Verdict]

Document = Mapping[str, Any]
Tallies = Sequence[tuple[str, str, Mapping[str, int]]]


def told_warnings(run: Document) -> Iterator[str]:
    """Yield them as sentences; `run`: a document `run.json`."""
    yield from _crashes(run)
    yield from _skipped(run)
    yield from _passed_over(run)
    yield from _unlogged(run)
    yield from _setups(run)
    yield from _bits_in_exceptions(run)
    yield from _left_open(run)


def _setups(run: Document) -> Iterator[str]:
    """Yield each refusal and warning once, with the tables that it holds for."""
    places: dict[str, list[str]] = {}
    names = DatabaseNames(run["configuration"]["databases"])
    for cluster, setups in run["configuration"]["functions"].items():
        for table, setup in setups.items():
            gone = setup["refused"] in (None, RefusalKind.DROPPED.value)
            refused = [] if gone else [f"refused: {setup['refused']}"]
            for text in (*refused, *setup["warnings"]):
                places.setdefault(text, []).append(f"{names.own_name(cluster, table)} on {cluster}")
    return (f"{', '.join(where)}: {text}" for text, where in places.items())


def _crashes(run: Document) -> Iterator[str]:
    """Yield what data nodes lost that went down, what is known of it, and what to do."""
    servers = {name: str(own["server_id"]) for name, own in run["configuration"]["clusters"].items()}
    for name, crashes in run.get("crashes", {}).items():
        others = " or ".join(server for each, server in servers.items() if each != name)
        for each in crashes:
            rows = sum(each["tables"].values())
            lost = f"{counted(rows, 'row')} of {', '.join(each['tables'])}, in unlogged_changes/"
            yield (
                f"{each['file']}, position {each['position']}: all data nodes of {name} went down (incident: cluster "
                "disconnect) and came back from a global checkpoint. What its log holds of its epochs "
                f"{each['from_epoch']} to {each['to_epoch']} {'is' if each['certain'] else 'may be'} gone, also what "
                f"its applier had applied: {lost}. {_what_rows_are(rows, each['known_rows'])} Other clusters keep what "
                f"they had received, and the applier of {name} goes on where it was: set its channel back to the epoch "
                f"that mysql.ndb_apply_status on {name} has for server {others} (ndb-conflict channel --after-epoch "
                "finds the position), and compare the rows."
            )


def _what_rows_are(rows: int, known: int) -> str:
    if known == rows:
        return "They are what they were before."
    unknown = (
        f"is not known what {'they' if not known else f'{rows - known:,} of them'} were then, until an image shows it"
    )
    return f"It {unknown}{'; the others are what they were before' if known else ''}."


_CRASHED = "its data nodes went down and lost it, "


def _bits_in_exceptions(run: Document) -> Iterator[str]:
    """Yield which rows of exceptions tables a server can show otherwise, as it writes other bits."""
    for applier, table, tally in tallies_of(run):
        setup = run["configuration"]["functions"].get(applier, {}).get(table, {})
        if tally.get("rejected", 0) and setup.get("bits_in_exceptions"):
            yield (
                f"{setup['exceptions_table']} on {applier}: {BITS_IN_EXCEPTIONS} in "
                f"{', '.join(setup['bits_in_exceptions'])} (BIT); exceptions/ has those of the row."
            )


def _skipped(run: Document) -> Iterator[str]:
    """Yield which epochs an applier never applied, and why that can be."""
    for applier in dict.fromkeys(each["applier"] for each in run.get("skipped_epochs", ())):
        mine = [each for each in run["skipped_epochs"] if each["applier"] == applier]
        tables = sorted({table for each in mine for table in each["changes"]})
        several = len(mine) > 1
        first = f"epoch {mine[0]['source_epoch']} of {mine[0]['source']}"
        epochs = f"{len(mine):,} epochs, the first {first}" if several else first
        changes = counted(sum(sum(each["changes"].values()) for each in mine), "row change")
        yield (
            f"{applier} never applied {epochs} ({changes} of {', '.join(tables)}), and "
            f"applied later ones: {_CRASHED if applier in run.get('crashes', {}) else ''}a skip "
            "(sql_replica_skip_counter, replica_skip_errors, a stop that was passed), or a "
            "conflict function that is not given rejected all of it. The rows are in skipped_epochs/."
        )


def _passed_over(run: Document) -> Iterator[str]:
    """Yield where an applier went on although no row of a table without a primary key had the values it looked for."""
    keys = run["configuration"]["primary_keys"]
    for applier, table, tally in tallies_of(run):
        count = tally.get("ignored", 0)
        if count and not keys.get(table, ["?"]):
            yield (
                f"{applier} found no row for {counted(count, 'operation')} on {table}, which has no primary key, and "
                "went on (replica_skip_errors=1032): outcomes/ has them as IGNORED."
            )


def _unlogged(run: Document) -> Iterator[str]:
    """Yield how many rows a cluster changed without a log, and what follows from that."""
    for cluster, tables in run.get("unlogged_changes", {}).items():
        left = Counter(tables)
        for each in run.get("crashes", {}).get(cluster, ()):
            left.subtract(each["tables"])
        left = +left
        changed = (
            f"{cluster} changed {counted(left.total(), 'row')} of {', '.join(left)} without a log (sql_log_bin=0, "
            "ndb_restore, or a client that does not log): later changes show it. Others do not show, of rows that "
            "nobody changed since: compare the tables themselves. "
        )
        if run["unlogged_followed"]:
            follows = "Until then it is not known what a row was, and decisions on it can be open. "
        else:
            follows = "It is not followed: decisions and counters are those of the logs alone, and there may be more. "
        if left:
            yield f"{changed}{follows}unlogged_changes/ has the rows."
        elif not run["unlogged_followed"]:
            yield f"What {cluster} lost is not followed: decisions and counters are those of the logs alone."


def _left_open(run: Document) -> Iterator[str]:
    if run["starts_in_the_middle"]:
        yield (
            f"{start_words(run['starts_in_the_middle'])}. Older rows are not known until the logs show them; counters "
            "start with the logs."
        )
    if run["other_readings"]:
        ways = len(run["other_readings"]) + 1
        yield f"The binlogs can be read in {ways} ways that agree with them equally well: readings/ has the others."


def tallies_of(run: Document) -> Tallies:
    """Return the appliers and tables that had operations, with their figures."""
    return [
        (cluster, table, tally)
        for cluster, tables in run["tables"].items()
        for table, tally in tables.items()
        if any(tally.get(name) for name in VERDICTS)
    ]
