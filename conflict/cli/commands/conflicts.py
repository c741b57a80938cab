"""
`ndb-conflict conflicts`: how many conflicts a result holds, where and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

import conflict.api.results
from conflict.api.results import CountedConflicts
from conflict.cli.common import console, say
from conflict.cli.from_functions import Call, command_of
from conflict.cli.outputs import ForceOption, JsonOption, write_json
from conflict.cli.refusals import ExitCode, exit_with
from conflict.config.option_values import By, RecordFormat
from conflict.decoding.staging import check_output
from conflict.errors import ConfigurationError

_AT_A_GLANCE, _IN_DETAIL = 5, 20  # rows of a table
_SERVERS = ("observed", "server", "defaults_file")


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
    form: Annotated[
        RecordFormat | None,
        typer.Option("--format", help="Write a record per conflict and lost change, in this format, and no counts."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Write the records to this file: .jsonl, .csv or .parquet.", show_default=False
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """
    Show how many conflicts a result holds, and where and when: by table, cause, time, key and transaction.

    Example: ndb-conflict conflicts build/result --by key

    Example: ndb-conflict conflicts build/result --observed A=status.txt

    Example: ndb-conflict conflicts build/result --out records.jsonl
    """
    from conflict.engine.ledger.layout import RESOLVE_AGAIN
    from conflict.history.grid.catalogue import refusing_contradictions
    from conflict.operating.observing.telling import tell_observed
    from conflict.results.conflicts import ALL, at_a_glance, read_beside, read_conflicts, totals_of
    from conflict.results.told_conflicts import tell_conflicts
    from conflict.telling.terminal import print_telling

    if form is not None or out is not None:
        counted = {
            "--by": by,
            "--top": top,
            "--json": json_file,
            **{f"--{name}": call.options[name] for name in _SERVERS},
        }
        _write_records(call, form, out, [name for name, given in counted.items() if given], force=force)
        return
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


def _write_records(
    call: Call[CountedConflicts], form: RecordFormat | None, out: Path | None, others: Sequence[str], *, force: bool
) -> None:
    """Write the records of a result to a file, or to standard output; `others` are options that do not go with it."""
    from conflict.api.results import chosen
    from conflict.operating.records.files import format_of, write_file, write_records
    from conflict.operating.records.reading import Logs, read_records

    if others:
        message = f"{others[0]} is about counts, and --format and --out are about records; leave one of them out"
        raise ConfigurationError(message)
    wanted, options = format_of(form, out), call.options
    check_output(out, [options["result"]], force=force)
    found, which = chosen(options["result"], options["since"], options["until"], options["table"])
    logs = Logs.of(found)
    if logs.remark:
        say(logs.remark)
    records = read_records(found, which, logs)
    if out is None:
        write_records(records, wanted, typer.get_binary_stream("stdout"))
    else:
        write_file(records, wanted, out)
