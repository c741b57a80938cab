"""
Tables that differ between a source and a replica: `check-replica` of two schemas, and `check` of every channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conflict.checking.findings import REPLICA_CODES, Finding, Fix, TablePlace
from conflict.checking.replica_report import ReplicaReport
from conflict.checking.subject import PlacedTable, Subject
from conflict.rules.stops import ServerStop
from conflict.telling.shown_text import capitalized
from ndb_formats.findings import Finding as Difference
from ndb_formats.rules.images import Logging
from ndb_formats.rules.replica.check import ReplicaSettings, check_replica, check_table
from ndb_formats.schema.tables import Schema

_MISSING = REPLICA_CODES["NDB-R001"]
_NO_KEY = {"NDB-R042", "NDB-R043"}  # NDB-E040 says it


def check_schemas(source: Schema, replica: Schema, settings: ReplicaSettings) -> ReplicaReport:
    """Return what keeps changes of a source's tables from giving the same rows on a replica."""
    differences = check_replica(source, replica, settings)
    tables = tuple(table.full_name.removeprefix(".") for table in source.tables)
    return ReplicaReport(settings, tables, tuple(_finding(each, TablePlace("", each.table)) for each in differences))


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
            yield Finding(_MISSING, sentence, (place,), fix, server=stop.words_with(table=place.table))


def different_definitions(subject: Subject) -> Iterator[Finding]:
    """Yield what is wrong with tables that are defined otherwise on a source of the cluster."""
    for there, here, place in _pairs(subject):
        if here is None or here.setup.refusal is not None:
            continue
        logging = Logging(there.logging.format)
        settings = ReplicaSettings(logging, here.cluster.conversions, undeclared_is_ndb=True)
        for found in check_table(there.table, here.table, settings):
            if found.code not in _NO_KEY:
                yield _finding(found, place)


def _finding(found: Difference, place: TablePlace) -> Finding:
    """Return a difference between two tables as a finding."""
    sentence, fix = f"{capitalized(found.reason)}.", Fix(f"{found.fix}.")
    return Finding(REPLICA_CODES[found.code], sentence, (place,), fix, found.column)


def _pairs(subject: Subject) -> Iterable[tuple[PlacedTable, PlacedTable | None, TablePlace]]:
    """Yield each table of a source, the same table on a cluster that replicates from it, and the place of that."""
    for cluster, source in subject.links.channels():
        for there in subject.tables:
            if there.cluster.name == source.name:
                place = subject.place_on(cluster, there)
                yield there, subject.by_place.get(place), place
