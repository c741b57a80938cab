"""
Tables that differ between the clusters: the findings of `check-replica`, for each cluster and each of its sources.

They keep their codes NDB-R, which docs/findings.md lists.
"""

from __future__ import annotations

from collections.abc import Iterator

from conflict.checking.findings import Code, Finding, Fix, Place, Severity
from conflict.checking.subject import PlacedTable, Subject, place_of
from conflict.rules.stops import ServerStop, StopError
from conflict.shown_text import capitalized
from ndb_formats.findings import Effect
from ndb_formats.findings import Finding as ReplicaFinding
from ndb_formats.findings import Severity as ReplicaSeverity
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.check import ReplicaSettings, check_table
from ndb_formats.rules.replica.codes import rule

__all__ = ["different_definitions", "missing_tables"]

# These stop the applier at the first change; others that can stop it depend on the rows.
_AT_ONCE = {"NDB-R001", "NDB-R016", "NDB-R020", "NDB-R021", "NDB-R044"}
_NO_KEY = {"NDB-R042", "NDB-R043"}  # NDB-E040 says it


def missing_tables(subject: Subject) -> Iterator[Finding]:
    """Yield tables that a source logs and a cluster does not have, or refuses to create."""
    for there, here, place in _pairs(subject):
        if not there.logging.format.logged or there.setup.refusal is not None:
            continue
        if here is None or here.setup.refusal is not None:
            stop = ServerStop.NO_SUCH_TABLE
            why = capitalized(stop.because(table=place.table, cluster=place.cluster))
            sentence = f"{why}: the first change of the other cluster stops the applier with error {stop.error:d}."
            fix = Fix("create it as on the other cluster." if here is None else "see why its CREATE TABLE fails.")
            kind = _code_of(rule(1).code, ReplicaSeverity.ERROR, Effect.STOPS, rule(1).title, StopError.NO_SUCH_TABLE)
            yield Finding(kind, (place,), sentence, fix)


def different_definitions(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with tables that are defined otherwise on a source of the cluster."""
    for there, here, place in _pairs(subject):
        if here is None or here.table == there.table or here.setup.refusal is not None:
            continue
        logging = Logging(there.logging.format)
        settings = ReplicaSettings(logging, here.cluster.conversions, undeclared_is_ndb=True)
        for found in check_table(there.table, here.table, settings):
            if found.code not in _NO_KEY:
                yield _finding(found, place)


def _finding(found: ReplicaFinding, place: Place) -> Finding:
    error = StopError.NO_CONVERSION if found.code in ("NDB-R020", "NDB-R021") else None
    kind = _code_of(found.code, found.severity, found.rule.effect, found.rule.title, error)
    column = "" if found.column is None else f"Column {found.column}: "
    reason = found.reason if column else capitalized(found.reason)
    return Finding(kind, (place,), f"{column}{reason}.", Fix(f"{found.fix}."))


def _code_of(code: str, severity: ReplicaSeverity, effect: Effect, title: str, error: int | None) -> Code:
    if severity is ReplicaSeverity.NOTE:
        return Code(code, Severity.NOTE, title)
    refused = effect is Effect.STOPS and code in _AT_ONCE
    return Code(code, Severity.REFUSED if refused else Severity.WARNING, title, error)


def _pairs(subject: Subject) -> Iterator[tuple[PlacedTable, PlacedTable | None, Place]]:
    """Yield each table of a source, the same table on a cluster that replicates from it, and the place of that."""
    for cluster, source in subject.links.channels():
        for there in subject.tables:
            if there.cluster.name == source.name:
                place = place_of(cluster, there.table)
                yield there, subject.by_place.get(place), place
