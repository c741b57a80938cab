"""
What makes a result doubtful, in sentences. Computes docs/compare.md, "Doubts".

A result is doubtful where the binlogs contradict it, where nothing in them confirms it, and where they end early. What
is said before any figure is an alarm: the figures are not what happened, something contradicts the configuration, or
the logs end before the clusters could be equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from conflict.results.cause_kinds import TELLING, CauseKind, with_options
from conflict.telling.shown_text import counted

Document = Mapping[str, Any]


@attrs.frozen
class Doubt:
    """
    One reason to doubt a result.

    Attributes:
        label: What is wrong, in few words.
        text: What is to be said about it, with a full stop.
        serious: Whether a binlog could not be read, or contradicts the result.
        alarm: Whether it is said before any figure.
    """

    label: str
    text: str
    serious: bool = False
    alarm: bool = False

    def __str__(self) -> str:
        return f"{self.label}: {self.text}"


def alarms_of(doubts: Sequence[Doubt]) -> tuple[str, ...]:
    """Return what is said before any figure."""
    return tuple(str(doubt) for doubt in doubts if doubt.alarm)


def warnings_of(doubts: Sequence[Doubt]) -> tuple[str, ...]:
    """Return what is said after the figures."""
    return tuple(str(doubt) for doubt in doubts if not doubt.alarm)


def is_contradicted(run: Document) -> bool:
    """
    Whether the binlogs contradict a result or what is declared, or lack what a result needs.

    Args:
        run: As for `doubts_of`.
    """
    missing = any(remark["contradicts"] for remark in run["log_remarks"])
    telling = any(CauseKind(cause["kind"]) in TELLING for cause in run["likely_causes"])
    return bool(run["contradicted_by_binlogs"]) or missing or telling


def not_what_happened(run: Document) -> bool:
    """
    Whether the figures of a result are not to be relied on at all.

    Args:
        run: As for `doubts_of`.
    """
    return bool(run["contradicted_by_binlogs"] or run.get("unrelated_binlogs"))


def start_words(starts: Mapping[str, int]) -> str:
    """Return where logs start that start in the middle, as a sentence without its end; by cluster, its first epoch."""
    places = " and ".join(f"at epoch {epoch} of {name}" for name, epoch in starts.items())
    return f"The logs start in the middle, {places}"


def doubts_from_the_middle(run: Document) -> tuple[Doubt, ...]:
    """Return `doubts_of` a result, and that its logs start in the middle, where nothing else says it."""
    starts = run["starts_in_the_middle"]
    left = sum(run["undecided"].values())
    text = "Rows from before are not known until the logs show them"
    text += f"; {counted(left, 'decision')} {'is' if left == 1 else 'are'} open" if left else ""
    return (*doubts_of(run), *([Doubt(start_words(starts), f"{text}.")] if starts else []))


def convergence_words(*, converged: bool | None, under_way: bool) -> str:
    """
    Return whether clusters converged, as the end of a sentence about them.

    Args:
        converged: Whether they end with the same rows; None if not known.
        under_way: Whether changes were still under way when the logs end: rows can differ for that reason alone.
    """
    if converged is None:
        return "may or may not have converged"
    if converged:
        return "converged"
    return "had not converged yet when the logs end" if under_way else "did not converge"


def goes_on(run: Document, name: str) -> bool:
    """Whether a binlog shows changes by the applier of a cluster where nothing is derived, as it stopped before."""
    kinds = (kind for found in run["contradictions"].get(name, {}).values() for kind in found)
    return any(kind.startswith("derived nothing") for kind in kinds)


def stopped_words(run: Document, name: str) -> str:
    """Return that the applier of a cluster stopped, or would have."""
    if goes_on(run, name):
        return (
            f"As the run is configured, the applier of {name} would have stopped, but its binlog shows that it went on"
        )
    return f"The applier of {name} stopped"


def doubts_of(run: Document) -> tuple[Doubt, ...]:
    """
    Return what makes a result doubtful, the worst first; alarms come before all others.

    Args:
        run: The document `run.json`, or the part that `conflict.results.run_document.RunDocument.checks` returns.
    """
    parts = (
        *(_contradiction, _missing_parts, _changes_under_way),
        *(_causes, _remarks, _notes, _unexplained_changes, _not_examined),
    )
    found = [doubt for part in parts for doubt in part(run)]
    return tuple(sorted(found, key=lambda doubt: not doubt.alarm))


def _contradiction(run: Document) -> Iterator[Doubt]:
    compared, differing = run["compared_with_binlogs"], run["contradicted_by_binlogs"]
    label = "The binlogs contradict the run as it is configured"
    if differing:
        text = (
            f"of {counted(compared, 'row change')} by appliers, {differing:,} differ from those found here. "
            "What is shown is not what happened."
        )
        yield Doubt(label, text, serious=True, alarm=True)
    elif run.get("unrelated_binlogs"):
        text = (
            "no change by an applier is of an epoch that the other cluster's binlogs hold. They are of different "
            "clusters or times, or their last files are missing. Give all binlog files of both servers, of one time."
        )
        yield Doubt("The binlogs do not belong together", text, serious=True, alarm=True)
    elif is_contradicted(run):
        text = "not by a row change of an applier, but by what is said next."
        yield Doubt(label, text, serious=True, alarm=True)
    elif not compared:
        yield Doubt("Nothing is checked", "the binlogs show no row change by an applier.")


def _causes(run: Document) -> Iterator[Doubt]:
    """Yield why the binlogs may contradict a result, and what they lack; what holds for several clusters once."""
    label = "Likely cause" if run["contradicted_by_binlogs"] else "Note"
    alike: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in run["likely_causes"]:
        cause = each if "shown" in each else {**each, "shown": each["sentence"], "options": ""}  # of an older result
        what, options = cause["shown"], cause["options"]
        alike.setdefault((cause["kind"], options or _without_cluster(what, cause)), []).append(cause)
    for causes in alike.values():
        names = sorted({table for cause in causes for table in cause["tables"]})
        text = with_options(_seen(causes), causes[0]["options"])
        yield Doubt(f"{label} ({', '.join(names)})" if names else label, text, alarm=is_contradicted(run))


def _seen(causes: Sequence[Mapping[str, Any]]) -> str:
    """Return what the binlogs show, of causes that are the same but for the cluster that shows it."""
    said: dict[str, list[tuple[str, str]]] = {}
    for cause in causes:
        what = cause["shown"]
        said.setdefault(_without_cluster(what, cause), []).append((what, cause["cluster"]))
    sentences = []
    for (what, _), *others in said.values():
        sentences += [what] + [f"The same on {' and '.join(name for _, name in others)}."] * bool(others)
    return " ".join(sentences)


def _without_cluster(text: str, cause: Mapping[str, Any]) -> str:
    return re.sub(rf"\b{re.escape(cause['cluster'])}\b", "", text)


def _remarks(run: Document) -> Iterator[Doubt]:
    """Yield what the binlogs hold besides rows: a result lacks it."""
    for remark in run["log_remarks"]:
        yield Doubt("Not among the rows", f"{remark['sentence']}.", remark["contradicts"], remark["contradicts"])


def _notes(run: Document) -> Iterator[Doubt]:
    """Yield what is to be said about the definitions of tables, which may be why the binlogs contradict a result."""
    for note in run["definition_notes"]:
        yield Doubt("Note", f"{note}.", alarm=not_what_happened(run))


def _unexplained_changes(run: Document) -> Iterator[Doubt]:
    """Yield the changes of clusters that found no row."""
    for name, changes in run["unexplained_changes"].items():
        if changes:
            yield Doubt(
                f"{name} changed {counted(changes, 'row')} that should not exist there",
                "older than the binlogs, or made when another function was in force.",
            )


def _not_examined(run: Document) -> Iterator[Doubt]:
    """Yield how many applied epochs were too many to look at row by row."""
    epochs = run["epochs_not_examined"]
    if epochs:
        text = "may leave open when their rows were judged, and so may the counters"
        more = (
            "that may explain what the binlogs contradict" if run["contradicted_by_binlogs"] else "no row depends on it"
        )
        yield Doubt("Not looked at", f"{counted(epochs, 'applied epoch')} {text}; {more}.")


def _changes_under_way(run: Document) -> Iterator[Doubt]:
    """Yield which changes an applier had not reached when the logs end."""
    links = () if run.get("unrelated_binlogs") else run.get("changes_under_way", ())
    if links:
        said = [
            f"{counted(each['changes'], 'row change')} ({counted(each['epochs'], 'epoch')}) of {each['source']} that "
            f"{each['applier']} had not applied yet"
            for each in links
        ]
        text = f"the logs end with {' and '.join(said)}. Rows of these changes can differ for that reason alone."
        yield Doubt("Changes were still under way", text, alarm=True)


def _missing_parts(run: Document) -> Iterator[Doubt]:
    """Yield what is left out of a result, because a binlog ends too early or cannot be read."""
    for name, epochs in run["epochs_left_out"].items():
        if epochs:
            text = "built on epochs of the other cluster that its binlogs do not hold."
            yield Doubt("Left out at the end", f"{counted(epochs, 'epoch')} of {name}, {text}")
    for name, error in run["binlog_errors"].items():
        left = counted(run["row_operations_left_out"].get(name, 0), "row operation")
        yield Doubt(
            f"The binlogs of {name} could not be read to the end",
            f"{error}. Every epoch before that is resolved. Left out of an unfinished one: {left}.",
            serious=True,
            alarm=True,
        )
