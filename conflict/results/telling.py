"""
What is told of a result of `resolve`, from its document `run.json`: in a terminal, on a page, in a notebook.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from conflict.config.database_names import DatabaseNames
from conflict.engine.ledger.careful import said_of
from conflict.results.doubts import (
    alarms_of,
    convergence_words,
    doubts_of,
    goes_on,
    not_what_happened,
    stopped_words,
    warnings_of,
)
from conflict.results.told_warnings import VERDICTS, Document, Tallies, tallies_of, told_warnings
from conflict.rules.decision import Cause, Compared, Decision, Verdict, explain, operation_word
from conflict.rules.functions import FUNCTIONS, Argument
from conflict.telling.shown_text import counted, listed
from conflict.telling.value import Entry, Listing, Table, Telling, Tone, Toned
from ndb_formats.events.rows_event import Operation

RARE = ("merged", "discarded", "skipped", "cannot_tell")  # verdicts that have a column only where they occur
_BY_EPOCH = tuple(f"{spec.name}(" for spec in FUNCTIONS if spec.argument is Argument.GCI_BITS)
_SHOWN = "What the binlogs show otherwise"
_MOST_MOVES = 4  # run.json has all
_MOST_KINDS = 12  # of contradictions; contradictions/ has all


def tell_result(run: Document) -> Telling:
    """Return what is told of a document `run.json`."""
    wrong, doubts = not_what_happened(run), doubts_of(run)
    title = "Not what happened: the run as it is configured" if wrong else "What happened"
    run = _as_named(run)
    if any(run["binlog_errors"].values()) and not run["changes"]:  # all else would be nothing, or follow from a fault
        return Telling(title, "Nothing was resolved.", alarms=[str(each) for each in doubts if each.serious])
    tables = [*_contradictions(run), *_outcomes(run), *_counters(run), _final_rows(run), *_not_known(run), *_open(run)]
    return Telling(
        title,
        _headline(run),
        tuple(_sentences(run)),
        tuple(_with_mark(table, ", which is not what happened" * wrong) for table in tables),
        alarms=(*alarms_of(doubts), *_stops(run)),
        warnings=(*told_warnings(run), *warnings_of(doubts)),
    )


def _as_named(run: Document) -> Document:
    """Return a document in which what is of one cluster alone has the names that this cluster uses."""
    names = DatabaseNames(run["configuration"]["databases"])
    if not names:
        return run

    def named(cluster: str, tables: Mapping[str, Any]) -> dict[str, Any]:
        return {names.own_name(cluster, table): found for table, found in tables.items()}

    by_table = ("tables", "contradictions", "not_known", "unlogged_changes")
    renamed = {part: {each: named(each, own) for each, own in run.get(part, {}).items()} for part in by_table}
    skipped = [{**each, "changes": named(each["applier"], each["changes"])} for each in run.get("skipped_epochs", ())]
    crashes = {
        name: [{**each, "tables": named(name, each["tables"])} for each in own]
        for name, own in run.get("crashes", {}).items()
    }
    return {**run, **renamed, "skipped_epochs": skipped, "crashes": crashes}


def tell_examples(run: Document, outcomes: Sequence[Mapping[str, Any]]) -> Telling:
    """Return what is told of a document, with some rejected operations (`conflict.results.files.rejected_examples`)."""
    telling = tell_result(run)
    if not outcomes:
        return telling
    mark = ", which is not what happened" * not_what_happened(run)
    return attrs.evolve(telling, listings=[Listing(f"For example{mark}", [_example(run, each) for each in outcomes])])


def _with_mark(table: Table, mark: str) -> Table:
    return table if table.title == _SHOWN else attrs.evolve(table, title=table.title + mark)


def _headline(run: Document) -> str:
    differ = any(run["differing_rows"].values())
    if not run["changes"] and (run.get("unrelated_binlogs") or not differ):
        return "The binlogs hold no row change of the clusters' own, of tables that are known."
    answer = convergence_words(converged=run["converged"], under_way=bool(run.get("changes_under_way")))
    which = ", on the rows that the logs touch" * bool(run["starts_in_the_middle"])
    ends = "" if run.get("unrelated_binlogs") else f"; the clusters {answer}{which}"
    conflicts = sum(tally.get("rejected", 0) for _, _, tally in tallies_of(run))
    return f"{counted(run['changes'], 'row change')}, {counted(conflicts, 'conflict')}{ends}."


def _sentences(run: Document) -> Iterator[str]:
    if run.get("after"):
        epochs = run["after"]["source_epochs"]
        last = listed([f"epoch {epoch} on {applier}" for applier, epoch in epochs.items()])
        yield f"Told is what was applied after the result in {run['after']['result']}: after {last}."
    compared = run["compared_with_binlogs"]
    if compared and not not_what_happened(run):
        yield f"All {compared:,} row changes by appliers in the binlogs agree."
    rounds = run["rounds"]
    if rounds and rounds[-1]["in_conflict"]:
        conflicts = counted(rounds[-1]["in_conflict"], "transaction")
        yield f"{conflicts} in conflict, found in {counted(len(rounds), 'round')}."
    if run.get("careful_rows"):
        yield f"Resolved with care, by the reference engine: {said_of(run['careful_rows'])}."
    yield from _moves(run)


def _moves(run: Document) -> Iterator[str]:
    """Yield where channels moved, and which epochs came again."""
    cutovers = run.get("cutovers", ())
    for each in cutovers[:_MOST_MOVES]:
        source, applier = each["source"], each["applier"]
        before, after = each["source_servers"]
        when = "" if each["committed"] is None else f" ({each['committed'][:19].replace('T', ' ')})"
        never = f"; {counted(len(each['never_applied']), 'epoch')} between never came" if each["never_applied"] else ""
        nodes = listed([str(server) for server in dict.fromkeys(each["applier_servers"])], "then")
        yield (
            f"The channel {source} → {applier} moved from server {before} to server {after} of {source} in epoch "
            f"{each['epoch']} of {applier}{when}: epoch {each['first_epoch']} came first from there{never}. "
            f"No log says which SQL node of {applier} applies; {nodes} is assumed."
        )
    if len(cutovers) > _MOST_MOVES:
        yield f"Channels moved {len(cutovers) - _MOST_MOVES:,} more times: run.json lists all cutovers."
    repeats = run.get("repeated_epochs", ())
    for applier, source in dict.fromkeys((each["applier"], each["source"]) for each in repeats):
        mine = [each for each in repeats if (each["applier"], each["source"]) == (applier, source)]
        changes = counted(sum(sum(each["changes"].values()) for each in mine), "row change")
        epochs = f"{len(mine):,} epochs" if len(mine) > 1 else "1 epoch"
        yield (
            f"{applier} applied {epochs} of {source} again, the first {mine[0]['source_epoch']} ({changes}): "
            "repeated_epochs/ has the rows."
        )


def _stops(run: Document) -> Iterator[str]:
    """Yield where and why each applier stopped, and what the server says; or would have, where its log goes on."""
    for name, stop in run["stops"].items():
        place = f"{stop['origin']['file']}, position {stop['origin']['position']}, " if stop["origin"] else ""
        column = f", column {stop['column']}" if stop["column"] else ""
        server = f' The server says: "{stop["server"]}"' if stop["server"] else ""
        undone = "" if goes_on(run, name) else f" Epoch {stop['foreign_epoch']} was undone."
        yield (
            f"{stopped_words(run, name)}: error {stop['error']}, {place}table {stop['table']}{column}: "
            f"{stop['message']}.{undone}{server}"
        )


# -----------------------------------------------------------------------------------------------------------
# Tables
# -----------------------------------------------------------------------------------------------------------


def _contradictions(run: Document) -> Iterator[Table]:
    """Yield what the binlogs show otherwise, the most frequent kinds first."""
    kinds = [
        (applier, table, kind, number)
        for applier, tables in run["contradictions"].items()
        for table, found in tables.items()
        for kind, number in found.items()
    ]
    kinds.sort(key=lambda each: -each[3])
    rest = kinds[_MOST_KINDS:]
    more = f"{counted(len(rest), 'rarer kind')}, of {counted(sum(each[3] for each in rest), 'row')}; " if rest else ""
    note = f"{more}contradictions/ lists the rows. Counters, ranges and rows do not hold where rows differ."
    if kinds:
        yield Table(_SHOWN, ("applier", "table", "contradiction", "rows"), kinds[:_MOST_KINDS], note=note, texts=3)


def _outcomes(run: Document) -> Iterator[Table]:
    """Yield what became of changes; verdicts that are rare apart, because one table would not fit into 80 columns."""
    tallies, names = tallies_of(run), ("applied", "ignored", "rejected", "refreshes")
    if tallies:
        headings = ("applier", "table", "received", "applied", "ignored", "conflicts", "refreshed")
        rows = [
            (cluster, table, sum(tally.get(name, 0) for name in VERDICTS), *(tally.get(name, 0) for name in names))
            for cluster, table, tally in tallies
        ]
        yield Table("What the appliers did", headings, rows, texts=2)
    yield from _of_some("What else became of changes", tallies, RARE)
    yield from _of_some("Conflicts by cause", tallies, [cause.name for cause in Cause])


def _counters(run: Document) -> Iterator[Table]:
    """Yield what each SQL node counted, where several applied or one was restarted."""
    by_server = [(name, each) for name, own in run.get("server_counters", {}).items() for each in own]
    restarted = any(each["restart"] is not None for _, each in by_server)
    rows = [
        (name, str(each["server"]), counter, value, *([_since(each, counter)] if restarted else []))
        for name, each in by_server
        for counter, value in each["counters"].items()
    ]
    if rows:
        headings = ("cluster", "server", "counter", "counted", *(["since its restart"] if restarted else []))
        places = [
            f"server {each['server']} at {each['restart']['file'].rpartition('/')[2]}, position "
            f"{each['restart']['position']}"
            for _, each in by_server
            if each["restart"] is not None
        ]
        note = f"Restarted: {listed(places)}; a server counts anew from there on." if places else ""
        yield Table("What each SQL node counted", headings, rows, note=note, texts=3)


def _since(counted: Document, counter: str) -> object:
    """Return what a server counted since its restart; a range if epochs may have been applied before or after it."""
    if counted["restart"] is None:
        return None
    least, most = counted["since_restart_ranges"].get(counter, (0, 0))
    return f"{least:,}-{most:,}" if least < most else counted["since_restart"][counter]


def _of_some(title: str, tallies: Tallies, names: Sequence[str]) -> Iterator[Table]:
    """Yield a table of the figures that are not 0 everywhere, if there are any."""
    found = [name for name in names if any(tally.get(name) for _, _, tally in tallies)]
    if found:
        rows = [
            (cluster, table, *(tally.get(name, 0) for name in found))
            for cluster, table, tally in tallies
            if any(tally.get(name) for name in found)
        ]
        headings = ("applier", "table", *(name.lower().replace("_", " ") for name in found))
        yield Table(title, headings, rows, texts=2)


def _final_rows(run: Document) -> Table:
    names = list(run["configuration"]["clusters"])
    rows = [
        (
            table,
            function_of(run["configuration"], table),
            *(run["rows"][name].get(table, 0) for name in names),
            "?" if differing is None else Toned(differing, Tone.BAD) if differing else 0,
        )
        for table, differing in run["differing_rows"].items()
    ]
    headings = ("table", "function", *(f"rows on {name}" for name in names), "differing")
    return Table("What the tables hold at the end", headings, rows, texts=2)


def function_of(configuration: Document, table: str, clusters: Sequence[str] = ()) -> str:
    """Return by which functions a table is resolved, on some clusters or on all, at the end and earlier."""
    names = clusters or list(configuration["functions"])
    now = [configuration["functions"][name].get(table, {}).get("function") for name in names]
    earlier = [
        f"{text} until a statement"
        for name in names
        for text in configuration.get("earlier_functions", {}).get(name, {}).get(table, ())
    ]
    return ", ".join(dict.fromkeys(filter(None, (*now, *earlier)))) or "none"


def _not_known(run: Document) -> Iterator[Table]:
    """Yield what is never known of rows: older than the logs, set back by a crash, or given values by a statement."""
    names = ("rows", "rows_in_part", "columns")
    rows = [
        (cluster, table, *(found[name] for name in names))
        for cluster, tables in run["not_known"].items()
        for table, found in tables.items()
        if any(found[name] for name in names)
    ]
    if rows:
        headings = ("cluster", "table", "rows that may exist", "rows known in part", "columns of these")
        title, note = "What is not known of older rows", ""
        if not run["starts_in_the_middle"]:
            title = "What is not known of rows"
            note = (
                "A crash may have set these rows back, or a statement gave them values that the server computed (an "
                "expression, a generated column, a number, the time), or converted by rules that are not known here. "
                "rows_in_part/ has what is known of the latter."
            )
        yield Table(title, headings, rows, note=note, texts=2)


def _open(run: Document) -> Iterator[Table]:
    """Yield what the binlogs leave open of each applier: decisions, and places and moments that were chosen."""
    undecided, assumed = run["undecided"], run["epochs_with_assumed_place"]
    rows = [(name, undecided.get(name, 0), assumed.get(name, 0)) for name in run["configuration"]["clusters"]]
    rows = [row for row in rows if any(row[1:])]
    if rows:
        note = (
            "undecided/ has the candidates of each decision. An epoch without a trace in the applier's binlog is taken "
            "at the first possible place. No row depends on either, but for those of which nobody can tell."
        )
        headings = ("applier", "decisions", "epochs without a trace")
        yield Table("What the binlogs leave open", headings, rows, note=note)
    ranges = [
        (name, counter, *bounds)
        for name, counters in (run["counter_ranges"] or {}).items()
        for counter, bounds in counters.items()
    ]
    if ranges:
        yield Table("Counters that this leaves open", ("cluster", "counter", "at least", "at most"), ranges, texts=2)
    settled = [
        (each["cluster"], str(each["foreign_epoch"]), each["judged_earlier"], each["candidates"], each["rows"])
        for each in run["cannot_tell"]
    ]
    if settled:
        columns = ("applier", "epoch", "rows judged earlier", "possible answers", "rows that would differ")
        note = "Chosen is the answer that agrees with the binlog and judges the fewest rows earlier."
        yield Table("When rows were judged, where the binlogs leave it open", columns, settled, note=note, texts=2)


def _example(run: Document, outcome: Mapping[str, Any]) -> Entry:
    """Return a rejected operation: where it stands, and why it was rejected."""
    applier, table = outcome["applier"], outcome["table"]
    by_epoch = function_of(run["configuration"], table, [applier]).startswith(_BY_EPOCH)
    decision = Decision(Verdict.REJECTED, Cause[outcome["cause"]], outcome["incoming"], outcome["stored"])
    place = "a refresh" if outcome["refresh"] else "sent on by its applier"
    if outcome["file"] is not None:
        place = f"{outcome['file'].rsplit('/', 1)[-1]}, position {outcome['position']}"
    sentence = explain(decision, operation_word(Operation[outcome["operation"]]), Compared(by_epoch))
    shown = DatabaseNames(run["configuration"]["databases"]).own_name(applier, table)
    return Entry(f"{outcome['source']} → {applier}", f"{shown} {outcome['key']} ({place})", [f"{sentence}."])
