"""
`ndb-conflict conflicts`: how many conflicts a result holds, where and when.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

import conflict.api.results
from conflict.api.results import CountedConflicts
from conflict.cli.common import console
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.config.option_values import By
from conflict.decoding.staging import check_output

_AT_A_GLANCE, _IN_DETAIL = 5, 20  # rows of a table


@command_of(conflict.api.results.conflicts)
def conflicts(
    call: Call[CountedConflicts],
    result: Path,
    by: By | None,
    since: datetime | None,
    until: datetime | None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Rows of each table; 20 by default with --by, else 5.", show_default=False)
    ] = None,
    json_file: JsonOption = None,
    force: ForceOption = False,
) -> None:
    """
    Show how many conflicts a result holds, and where and when: by table, cause, time, key and transaction.

    Example: ndb-conflict conflicts build/result --by key

    Example: ndb-conflict conflicts build/result --observed A=status.txt
    """
    from conflict.engine.ledger.layout import RESOLVE_AGAIN
    from conflict.history.grid.catalogue import refusing_contradictions
    from conflict.operating.observing.telling import tell_observed
    from conflict.results.conflicts import ALL, at_a_glance, read_beside, read_conflicts, totals_of
    from conflict.results.told_conflicts import tell_conflicts
    from conflict.telling.terminal import print_telling

    check_output(json_file, [result], force=force)
    del call.options["top"]  # of what is printed
    found = call()
    of, which, totals = found.result, found.which, found.totals
    with refusing_contradictions(of.folder, RESOLVE_AGAIN):
        missed = not totals.conflicts and (since is not None or until is not None)
        other_times = totals_of(read_conflicts(of.folder, of.clusters, table=which.table)) if missed else None
        beside = read_beside(of.folder, of.run) if which == ALL else None
    if found.observed is not None:
        print_telling(console, tell_observed(found.observed, top or _IN_DETAIL, found.doubts))
        write_json(json_file, found.document())
        exit_with(ExitCode.CONTRADICTED if found.observed.unexplained else ExitCode.DONE)
        return
    shown = {each: found.counts[each] for each in (at_a_glance(totals) if by is None else (by,))}
    rows = top or (_AT_A_GLANCE if by is None else _IN_DETAIL)
    print_telling(console, tell_conflicts(totals, shown, rows, str(result), which, found.doubts, other_times, beside))
    write_json(json_file, found.document())
