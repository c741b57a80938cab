"""
What differs by release: the rules of ``check --server-version``.

`RELEASES` is the table of them, with their sources. A rule that a configuration can meet has a function that finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from conflict.checking.findings import Code, Finding, Fix, TablePlace, quoted, set_variable
from conflict.checking.rules.appliers import applying, workers_of
from conflict.checking.subject import PlacedTable, Subject
from conflict.rules.server_variables import VARIABLE_OF, Release
from ndb_formats.rules.update_format import changing_key_columns

RECORDED = (9, 7)  # the line of releases whose conflicts were recorded

_MANUAL, _ORACLE = "https://dev.mysql.com/doc/refman/8.0/en/", "https://docs.oracle.com/cd/E17952_01/"
# The functions that judge inserts, and those that judge updates and deletes as they do.
_INSERTS = {"NDB$MAX_INS": "NDB$MAX", "NDB$MAX_DEL_WIN_INS": "NDB$MAX_DELETE_WIN"}


@attrs.frozen
class ReleaseRule:
    """
    A difference between releases.

    Attributes:
        since: The first release without it.
        before: What earlier releases do.
        source: The address of the page that says so.
        code: The code of what is found; None if only defaults or words differ.
        find: What finds it in a configuration of an earlier release.
        beside: A later line of releases, by its first two numbers, that began before `since` and has it, too.
    """

    since: Release
    before: str
    source: str
    code: Code | None = None
    find: Callable[[Subject], Iterator[Finding]] | None = None
    beside: tuple[int, int] | None = None

    def holds_in(self, release: Release) -> bool:
        """Whether a release is one of the earlier ones."""
        return release < self.since or release[:2] == self.beside


def lacking_in_release(subject: Subject) -> Iterator[Finding]:
    """Yield what the release of the servers lacks or does in another way; nothing if it is not given."""
    if subject.release is None:
        return
    yield from _names(subject)
    for rule in RELEASES:
        if rule.find is not None and rule.holds_in(subject.release):
            yield from rule.find(subject)


def not_recorded(subject: Subject) -> Iterator[Finding]:
    """Yield that the servers are of a release whose conflict functions were not recorded, where there are any."""
    if subject.release is None or subject.release[:2] == RECORDED:
        return
    if any(placed.function is not None for placed in subject.tables):
        sentence = (
            f"The servers are MySQL {_shown(subject.release)}; how NDB resolves conflicts was recorded from MySQL "
            f"{'.'.join(map(str, RECORDED))} alone. The rules are those of that release, but for what is known to "
            "differ."
        )
        places = tuple(TablePlace(cluster.name) for cluster in subject.clusters)
        yield Finding(Code.NOT_RECORDED, sentence, places)


def _names(subject: Subject) -> Iterator[Finding]:
    """Yield variables that the release does not have under the name that is written."""
    release = subject.release or (0, 0, 0)
    for cluster in subject.clusters:
        given = () if cluster.variables is None or cluster.variables.are_all else cluster.variables.options
        for name in dict.fromkeys(name for name, _ in given):
            variable = VARIABLE_OF.get(name)
            if variable is None or name != variable.name or variable.is_in(release):
                continue
            when = f"it is there from {variable.since} on" if variable.since else f"it went with {variable.until}"
            early = bool(variable.since) and variable.older
            sentence = f"MySQL {_shown(release)} has no {name}: {f'its name is {variable.older}' if early else when}."
            before = f"write {variable.older} in place of {name}" if early else f"remove {name}"
            fix = Fix(f"{before} in the my.cnf of ", (cluster.name,), ".")
            place = (TablePlace(cluster.name),)
            yield Finding(Code.NOT_IN_RELEASE, sentence, place, fix, at=name, page="added-deprecated-removed")


def _functions(subject: Subject) -> Iterator[Finding]:
    for placed in subject.tables:
        if placed.function is not None and placed.function.spec.name in _INSERTS:
            name = placed.function.spec.name
            sentence = f"{name} is there from 8.0.30 on; an earlier server does not create the table with it."
            fix = placed.set_in_row("conflict_fn", quoted(str(placed.function).replace(name, _INSERTS[name])))
            yield _of_table(Code.FUNCTION_NOT_IN_RELEASE, sentence, placed, fix)


def _workers(subject: Subject) -> Iterator[Finding]:
    variable = VARIABLE_OF["replica_parallel_workers"]
    for cluster in applying(subject):
        workers = workers_of(subject, cluster)
        if workers > 1:
            sentence = f"The applier has {workers} workers ({variable.name}), and NDB supports several from 8.0.33 on."
            renamed = subject.release is not None and variable.is_in(subject.release)
            fix = set_variable(cluster.name, variable.name if renamed else variable.older, "0")
            place = (TablePlace(cluster.name),)
            yield Finding(Code.WORKERS_NOT_IN_RELEASE, sentence, place, fix, page="mysql-cluster-replication-mta")


def _key_columns(subject: Subject) -> Iterator[Finding]:
    for placed in subject.tables:
        lost = [placed.table.columns[each].name for each in sorted(changing_key_columns(placed.table))]
        form = placed.logging.format
        if lost and form.logged and form.minimal and subject.links.replicas(placed.cluster.name):
            sentence = (
                f"Before 8.0.35, updates under {placed.logging} are logged without the columns of the key, also where "
                "an update replaces a text by one that counts as equal, such as 'abc' by 'ABC': that change of "
                f"{', '.join(lost)} does not arrive."
            )
            yield _of_table(Code.LOST_KEY_COLUMNS, sentence, placed, placed.set_in_row("binlog_type", "7"))


def _slices(subject: Subject) -> Iterator[Finding]:
    for placed in subject.tables:
        if placed.row is not None and placed.row.binlog_row_slice_count is not None:
            sentence = "mysql.ndb_replication has binlog_row_slice_count and binlog_row_slice_id from 9.4.0 on."
            fix = Fix("leave both out of the row; one SQL node logs all rows.")
            yield _of_table(Code.SLICES_NOT_IN_RELEASE, sentence, placed, fix)


def _of_table(code: Code, sentence: str, placed: PlacedTable, fix: Fix) -> Finding:
    return Finding(code, sentence, (placed.place,), fix, page="mysql-cluster-replication-conflict-resolution")


def _shown(release: Release) -> str:
    return ".".join(map(str, release))


RELEASES = (
    ReleaseRule(
        (8, 0, 22),
        "`SHOW REPLICA STATUS` and its kin say `SLAVE`",
        f"{_MANUAL}added-deprecated-removed.html",
    ),
    ReleaseRule(
        (8, 0, 26),
        "variables of appliers have older names",
        f"{_MANUAL}added-deprecated-removed.html",
        Code.NOT_IN_RELEASE,
    ),
    ReleaseRule(
        (8, 0, 27),
        "`replica_parallel_workers` is 0 by default, `replica_preserve_commit_order` OFF",
        f"{_MANUAL}replication-options-replica.html",
    ),
    ReleaseRule(
        (8, 0, 30),
        "`replica_allow_batching` is OFF by default",
        f"{_ORACLE}mysql-cluster-8.0-relnotes-en/news-8-0-30.html",
        Code.NO_BATCHING,
    ),
    ReleaseRule(
        (8, 0, 30),
        "no `NDB$MAX_INS`, no `NDB$MAX_DEL_WIN_INS`",
        f"{_MANUAL}mysql-cluster-replication-conflict-resolution.html",
        Code.FUNCTION_NOT_IN_RELEASE,
        _functions,
    ),
    ReleaseRule(
        (8, 0, 33),
        "one worker for NDB",
        f"{_MANUAL}mysql-cluster-replication-mta.html",
        Code.WORKERS_NOT_IN_RELEASE,
        _workers,
    ),
    ReleaseRule(
        (8, 0, 35),
        "minimal types omit text columns of the key from after images of updates (8.1.0, too)",
        f"{_ORACLE}mysql-cluster-8.0-relnotes-en/news-8-0-35.html",
        Code.LOST_KEY_COLUMNS,
        _key_columns,
        (8, 1),
    ),
    ReleaseRule(
        (8, 4, 0),
        "workers need `binlog_transaction_dependency_tracking=WRITESET`",
        "https://dev.mysql.com/doc/mysqld-version-reference/en/optvar-changes-8-4.html",
        Code.IDLE_WORKERS,
    ),
    ReleaseRule(
        (9, 4, 0),
        "`mysql.ndb_replication` has no columns for row slices",
        "https://dev.mysql.com/doc/mysqld-version-reference/en/optvar-changes-9-4.html",
        Code.SLICES_NOT_IN_RELEASE,
        _slices,
    ),
)
