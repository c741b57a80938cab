"""
`ndb-conflict conflicts`: how many conflicts a result holds, where and when.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conflict.cli.common import console
from conflict.cli.outputs import ForceOption, JsonOption, check_output, write_json
from conflict.config.option_values import moment_of
from conflict.results.counting import By

__all__ = ["conflicts"]

_AT_A_GLANCE, _IN_DETAIL = 5, 20  # rows of a table


def conflicts(
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Folder that resolve wrote.")],
    by: Annotated[By | None, typer.Option(help="Count by this alone.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="DATETIME", help="Leave out changes that committed before this time; UTC without an offset."
        ),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATETIME", help="Leave out changes that committed at this time or later.")
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="TABLE", help="Of this database.table alone, or of the table.")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Rows of each table; 20 by default with --by, else 5.", show_default=False)
    ] = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Show how many conflicts a result holds, and where and when: by table, cause, time, key and transaction.

    Example: ndb-conflict conflicts build/result --by key
    """
    from conflict.cli.views.conflicts import conflicts_json, print_conflicts
    from conflict.history.grid.catalogue import refusing_contradictions
    from conflict.result import read_result
    from conflict.results.catalogue import RESOLVE_AGAIN
    from conflict.results.conflicts import (
        ALL,
        Chosen,
        at_a_glance,
        count_conflicts,
        read_beside,
        read_conflicts,
        totals_of,
    )
    from conflict.results.doubts import doubts_of

    check_output(json_file, [result], force=force)
    first = None if since is None else moment_of(since, "--since")
    last = None if until is None else moment_of(until, "--until")
    found = read_result(str(result))
    which = Chosen(first, last, None if table is None else found.table_named(table))
    with refusing_contradictions(found.folder, RESOLVE_AGAIN):
        conflicts = read_conflicts(found.folder, found.clusters, which.since, until=which.until, table=which.table)
        totals, doubts = totals_of(conflicts), doubts_of(found.run)
        missed = not totals.conflicts and (first is not None or last is not None)
        other_times = totals_of(read_conflicts(found.folder, found.clusters, table=which.table)) if missed else None
        beside = read_beside(found.folder, found.run) if which == ALL else None
        shown = at_a_glance(totals) if by is None else (by,)
        counts = {each: count_conflicts(conflicts, each) for each in shown}
    rows = top or (_AT_A_GLANCE if by is None else _IN_DETAIL)
    print_conflicts(console, totals, counts, rows, which, doubts, other_times, beside)
    if json_file is not None:  # all transactions can be many
        if by is None:
            counts[By.HOUR] = count_conflicts(conflicts, By.HOUR)  # always, however short the time
        write_json(json_file, conflicts_json(totals, counts, which, doubts))
