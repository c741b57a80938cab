"""
What the contradictions of tables point to; see `conflict.results.likely_causes`.

Some effects have one cause: only a function by epoch refreshes rows, only a primary with a role marks them as
reflected. That a cluster applied or rejected otherwise fits several causes, which are listed together, the likeliest
first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from conflict.engine.ledger.contradictions import OTHER_VALUES, kind_text, marked_text
from conflict.history.roles import Mark
from conflict.history.shown_effects import Effect
from conflict.results.cause_kinds import CauseKind, LikelyCause, LogFacts
from conflict.rules.functions import ConflictFunction
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import RefusalKind, TableSetup
from conflict.telling.shown_text import capitalized

Setups = Mapping[str, Mapping[str, TableSetup]]

_REFRESHES = (Effect.REFRESHED.name, Effect.REFRESHED_ABSENT.name)
_CHANGES = (Effect.CHANGED.name, Effect.DELETED.name)
_GIVE = (
    "init, given the binlogs, finds which by trial; conflict_fn in the run file, --conflict-fn 'TABLE=FUNCTION' or "
    "--ndb-replication FILE says it"
)
_IN_FORCE = f"another conflict function was in force ({_GIVE})"
_WORDS = {
    CauseKind.FUNCTION: f"another conflict function, or none, was in force ({_GIVE})",
    CauseKind.ROLE: "another role was in force (--primary, or role in the run file)",
    CauseKind.PRIMARY: "the other cluster was the primary, or both were (--primary)",
    CauseKind.UNLOGGED: "the rows were written anew before, which no binlog holds: OPTIMIZE TABLE does that, and for a "
    "function by epoch it is a change of each row by the cluster where it was run",
    CauseKind.FILES: "a file, or some events, are missing (give all binlog files of both servers; changes under "
    "sql_log_bin=0 are in none)",
    CauseKind.DEFINITION: "the PRIMARY KEY is not the one that the definition says (--schema, schema in the run file)",
    CauseKind.BINLOG_TYPE: "another binlog type was in force (binlog_type of its row of mysql.ndb_replication)",
    CauseKind.VALUES: "the binlogs are not of the same time, or one of them was altered",
}


@attrs.frozen
class _Seen:
    """
    What contradicts on one table of one cluster: rows, by how they differ.

    Attributes:
        cluster: The cluster.
        setup: How it set the table up.
        refreshed: Refreshed, and not so derived.
        not_refreshed: The reverse; changed instead.
        kept: Derived as refreshed, and neither refreshed nor changed.
        more: Changed, and nothing derived.
        less: The reverse.
        marks: The marks that fit neither role nor function.
        values: Given other values.
        all: All of them.
    """

    cluster: str
    setup: TableSetup
    refreshed: int
    not_refreshed: int
    kept: int
    more: int
    less: int
    marks: tuple[Mark, ...]
    values: int
    all: int

    @classmethod
    def of(cls, cluster: str, setup: TableSetup, kinds: Mapping[str, int]) -> _Seen:
        """Return it, from how many contradictions of each kind there are."""

        def count(derived: tuple[str | None, ...], shown: tuple[str | None, ...]) -> int:
            return sum(kinds.get(kind_text(one, other), 0) for one in derived for other in shown if one != other)

        return cls(
            cluster,
            setup,
            count((None, *_CHANGES), _REFRESHES),
            count(_REFRESHES, _CHANGES),
            count(_REFRESHES, (None,)),
            count((None,), _CHANGES),
            count(_CHANGES, (None,)),
            tuple(mark for mark in Mark if any(count((each,), (marked_text(each, mark),)) for each in _CHANGES)),
            sum(number for each, number in kinds.items() if OTHER_VALUES in each),
            sum(kinds.values()),
        )

    @property
    def table(self) -> str:
        """``database.table``."""
        return self.setup.table.full_name

    @property
    def rejects_more(self) -> bool:
        """Whether all that differs is that its function by epoch rejected changes, and sent the rows as they were."""
        return _by_epoch(self.setup) and self.refreshed == self.all

    def cause(self, kind: CauseKind, sentence: str) -> LikelyCause:
        """Return a cause of it."""
        return LikelyCause(self.cluster, kind, (self.table,), sentence)


def causes_of_tables(
    contradictions: Mapping[str, Mapping[str, Mapping[str, int]]],
    facts: Mapping[str, LogFacts],
    setups: Setups,
    *,
    lossy: bool = False,
) -> tuple[LikelyCause, ...]:
    """
    Return what contradictions point to: what alone explains some of them, or else all that may.

    Args:
        contradictions: Per applying cluster and table, how many of each kind (see `engine.ledger.contradictions`).
        facts: Per cluster, what its binlog holds.
        setups: Per cluster, its setup of each table.
        lossy: Whether a log may lack changes, as an incident in it says.
    """
    seen = [
        _Seen.of(name, setups[name][table], kinds)
        for name, tables in contradictions.items()
        for table, kinds in tables.items()
    ]
    filtered = [each for each in seen if _arrives_nowhere(each, facts)]
    tables = {each.table for each in filtered}
    seen = [each for each in seen if each.table not in tables]
    found = [
        *(_of_filter(each, facts) for each in filtered),
        *(cause for each in seen for cause in _of_refusal(each)),
        *_of_roles(seen, facts, setups),
        *(cause for each in seen for cause in _of_marks(each, seen, facts, setups)),
        *(cause for each in seen for cause in _of_refreshes(each, seen, facts, setups)),
    ]
    certain = [each for each in found if not each.cannot_tell]
    values = [_of_values(each) for each in seen if 2 * each.values >= each.all > 0]
    several = [each for each in found if each.cannot_tell] or [
        *_of_no_refresh(seen, facts),
        *(_several(each, seen, facts, setups) for each in _left(seen, facts)),
    ]
    found = [*(certain or several), *values]
    return tuple(_merged(map(_of_incident, found) if lossy else found))


def of_mark(name: str, setup: TableSetup, mark: Mark) -> LikelyCause:
    """Return what it points to that a cluster marks rows otherwise than its role and function do."""
    tables = (setup.table.full_name,)
    if not _by_role(setup):
        sentence = (
            f"{name} marked rows as reflected, which only a primary of NDB$EPOCH2 or NDB$EPOCH2_TRANS does: "
            f"{_IN_FORCE}."
        )
        return LikelyCause(name, CauseKind.FUNCTION, tables, sentence)
    if mark is Mark.REFLECTED:
        sentence = (
            f"{name} marked rows as reflected, which only a primary does: another role was in force (--primary {name})."
        )
    else:
        sentence = f"{name} did not mark rows as reflected, as a primary does: another role was in force (--primary)."
    return LikelyCause(name, CauseKind.ROLE, tables, sentence)


def _arrives_nowhere(each: _Seen, facts: Mapping[str, LogFacts]) -> bool:
    """Whether an applier that applied changes of other tables received some of this table and shows none."""
    applied = facts[each.cluster].applied_tables
    received = any(each.table in own.changed_tables for name, own in facts.items() if name != each.cluster)
    return bool(applied) and each.table not in applied and received and each.less + each.kept == each.all > 0


def _of_filter(each: _Seen, facts: Mapping[str, LogFacts]) -> LikelyCause:
    sources = [name for name, own in facts.items() if name != each.cluster and each.table in own.changed_tables]
    shown = (
        f"No change from {' or '.join(sources)} arrived at {each.cluster} here, while changes of other tables did: are "
        "they filtered?"
    )
    drops = f"a filter drops them (replicate_ignore_table and the like, for [clusters.{each.cluster}] of the run file)"
    kinds = CauseKind.FILTER, CauseKind.FILES
    options = f"{drops}; {_WORDS[CauseKind.FILES]}"
    return LikelyCause(each.cluster, CauseKind.FILTER, (each.table,), shown, kinds, options)


def _of_refusal(each: _Seen) -> Iterator[LikelyCause]:
    """Yield the causes that explain rows of a table which the server refuses as it is configured."""
    refusal = each.setup.refusal
    if refusal is None or not _refused(each.setup):
        return
    what = f"{each.cluster} has rows of a table that its server refuses as it is given ({refusal.message.rstrip('.')})"
    if refusal.kind is RefusalKind.UPDATES_AS_WRITES:
        yield _cannot_tell(each, what, (CauseKind.FUNCTION, CauseKind.BINLOG_TYPE))
    else:
        yield each.cause(CauseKind.FUNCTION, f"{what}: {_IN_FORCE}.")


def _of_roles(seen: Iterable[_Seen], facts: Mapping[str, LogFacts], setups: Setups) -> Iterator[LikelyCause]:
    """Yield the clusters that marked rows as reflected and are given another role, even if effects differ, too."""
    for name in dict.fromkeys(each.cluster for each in seen if facts[each.cluster].other_role):
        for setup in filter(_by_role, setups[name].values()):
            yield of_mark(name, setup, Mark.REFLECTED)


def _of_marks(
    each: _Seen, seen: Iterable[_Seen], facts: Mapping[str, LogFacts], setups: Setups
) -> Iterator[LikelyCause]:
    """Yield what the marks of rows point to; those of rows with other effects are not among the contradictions."""
    if any(map(_refused, setups[each.cluster].values())):  # its function is not known then
        return
    own, marks = facts[each.cluster], each.marks
    if own.reflected and not any(map(_by_role, setups[each.cluster].values())):
        marks = (Mark.REFLECTED,)
    primaries = {other.cluster for other in seen if Mark.REFLECTED in other.marks}
    primaries |= {name for name, other in facts.items() if other.reflected}
    for mark in marks:
        if mark is Mark.REFLECTED or primaries - {each.cluster} or not _by_role(each.setup):
            yield of_mark(each.cluster, each.setup, mark)
        elif own.refreshed:
            sentence = (
                f"{each.cluster} refreshed rows after conflicts and did not mark those that it applied as reflected: "
                f"NDB$EPOCH or NDB$EPOCH_TRANS was in force, and not {each.setup.function} ({_GIVE})."
            )
            yield each.cause(CauseKind.FUNCTION, sentence)
        else:
            what = f"{each.cluster} did not mark rows as reflected, which a primary of {each.setup.function} does"
            yield _cannot_tell(each, what, (CauseKind.FUNCTION, CauseKind.ROLE))


def _of_refreshes(
    each: _Seen, seen: Iterable[_Seen], facts: Mapping[str, LogFacts], setups: Setups
) -> Iterator[LikelyCause]:
    """Yield the causes that explain refreshed rows which no configured function refreshes."""
    name, function = each.cluster, each.setup.function
    if not each.refreshed or each.marks or _by_epoch(each.setup) or any(map(_refused, setups[name].values())):
        return
    did = f"{name} refreshed rows after conflicts"
    given = next((setup.function for setup in setups[name].values() if _by_epoch(setup)), None)
    there, other = _elsewhere(name, setups)
    at_there = [each for each in seen if each.cluster == there]
    if function is not None and any(each.kept or each.not_refreshed for each in at_there):
        what = f"{did}, which {function} does not do, and {there} did not, where {other} is given"
        yield _cannot_tell(each, what, (CauseKind.FUNCTION, CauseKind.PRIMARY))
    elif function is not None:
        sentence = f"{did}, which {function} does not do: {_IN_FORCE}."
        yield each.cause(CauseKind.FUNCTION, sentence)
    elif given is not None:
        what = f"{did}, and no conflict function is given for them"
        one = "one that rejects whole transactions, these rows among them (NDB$EPOCH_TRANS, NDB$EPOCH2_TRANS)"
        if given.spec.transactional:
            of_primary = given.spec.uses_role and facts[name].role is not Role.PRIMARY
            kinds = (CauseKind.FUNCTION, CauseKind.FILES, CauseKind.DEFINITION)
            yield _cannot_tell(each, what, (CauseKind.ROLE, *kinds) if of_primary else kinds)
        else:
            sentence = f"{what}: one by epoch was in force there; or, in place of {given}, {one} ({_GIVE})."
            yield each.cause(CauseKind.FUNCTION, sentence)
    elif there is not None:
        what = f"{did}, and {other} is given for {there} alone"
        # A cluster without a function changes what it is sent; a row that it kept is at most one that was not there.
        if any(each.not_refreshed for each in at_there) and all(each.kept <= each.not_refreshed for each in at_there):
            yield each.cause(CauseKind.PRIMARY, f"{what}, which did not: {name} was the primary (--primary {name}).")
        else:
            yield _cannot_tell(each, what, (CauseKind.PRIMARY, CauseKind.FUNCTION, CauseKind.FILES))
    else:
        sentence = f"{did}: a function by epoch was in force, and none is declared ({_GIVE})."
        yield each.cause(CauseKind.FUNCTION, sentence)


def _elsewhere(name: str, setups: Setups) -> tuple[str | None, str]:
    """Return another cluster that has a function by epoch without roles, and the function."""
    for cluster, tables in setups.items():
        for setup in tables.values():
            if cluster != name and _on_primary_alone(setup.function):
                return cluster, str(setup.function)
    return None, ""


def _refused(setup: TableSetup) -> bool:
    return setup.refusal is not None and setup.refusal.kind is not RefusalKind.DROPPED


def _by_role(setup: TableSetup) -> bool:
    return setup.function is not None and setup.function.spec.uses_role


def _on_primary_alone(function: ConflictFunction | None) -> bool:
    return function is not None and function.spec.on_primary_alone


def _by_epoch(setup: TableSetup | None) -> bool:
    return setup is not None and setup.function is not None and setup.function.spec.by_epoch


def _of_values(each: _Seen) -> LikelyCause:
    # Fewer follow from a function that is not the one that was in force: rows differ, and then values.
    what = f"{each.cluster} wrote other values than the other cluster's binlog holds"
    return _cannot_tell(each, what, (CauseKind.VALUES, CauseKind.FUNCTION, CauseKind.FILES, CauseKind.DEFINITION))


def _not_refreshing(seen: Iterable[_Seen], facts: Mapping[str, LogFacts]) -> list[_Seen]:
    """Return what shows that no function by epoch was in force: conflicts, and no refreshed row in any binlog."""
    if any(own.refreshed for own in facts.values()):
        return []
    return [each for each in seen if _by_epoch(each.setup) and (each.kept or each.not_refreshed)]


def _of_no_refresh(seen: Iterable[_Seen], facts: Mapping[str, LogFacts]) -> Iterator[LikelyCause]:
    """Yield the causes that explain why no applier refreshed a row under a function by epoch."""
    for each in (found := _not_refreshing(seen, facts)):
        what = (
            f"no applier refreshed a row, which every NDB$EPOCH function does on a conflict, and {each.setup.function} "
            "is given"
        )
        cause = _cannot_tell(each, what, _kinds(each, facts))
        yield attrs.evolve(cause, cluster=found[0].cluster)  # which says it of all


def _left(seen: Sequence[_Seen], facts: Mapping[str, LogFacts]) -> list[_Seen]:
    """Return what several causes explain, but for what follows from a function by epoch that was not in force."""
    # What a cluster without a function changes otherwise can be what the other one refreshed.
    refreshed = {each.table: each.all for each in seen if each.rejects_more}
    all_of = [
        each
        for each in seen
        if each.values < each.all
        and (each.setup.function is not None or not each.more == each.all <= refreshed.get(each.table, 0))
    ]
    if not _not_refreshing(all_of, facts):
        return all_of
    return [each for each in all_of if each.setup.function is not None and not _by_epoch(each.setup)]


def _several(each: _Seen, seen: Iterable[_Seen], facts: Mapping[str, LogFacts], setups: Setups) -> LikelyCause:
    """Return the causes of what several explain; `facts`: per cluster, what its binlog holds."""
    function, name = each.setup.function, each.cluster
    alike = [other for other in seen if other.cluster == name and other.setup.function == function]
    if function is None:
        did = "did not apply all that it received" if each.less else "changed other rows than it received"
        what = f"no conflict function is given, and {name} {did}"
        elsewhere = _elsewhere(name, setups)[0] is not None and not any(map(_by_epoch, setups[name].values()))
        primary = [CauseKind.PRIMARY] if elsewhere else []
        return _cannot_tell(each, what, (CauseKind.FUNCTION, *primary, CauseKind.FILES, CauseKind.DEFINITION))
    rejects = [f"rejected what {function} applies"] if any(one.refreshed or one.less for one in alike) else []
    applies = [f"applied what {function} rejects"] if any(one.more or one.not_refreshed for one in alike) else []
    what = f"{name} {' and '.join(rejects + applies) or f'did what {function} does not explain'}"
    return _cannot_tell(each, what, _kinds(each, facts))


def _kinds(each: _Seen, facts: Mapping[str, LogFacts]) -> tuple[CauseKind, ...]:
    """Return what may be wrong where a table has a function; `facts`: per cluster, what its binlog holds."""
    function, kinds = each.setup.function, [CauseKind.FUNCTION]
    primaries = [given for given, own in facts.items() if own.role is Role.PRIMARY]
    if _by_role(each.setup) and (not facts[each.cluster].reflected or len(primaries) > 1):
        kinds.append(CauseKind.ROLE)
    elif _on_primary_alone(function):
        kinds.append(CauseKind.PRIMARY)
    if each.rejects_more:
        kinds.append(CauseKind.UNLOGGED)
    return (*kinds, CauseKind.FILES, CauseKind.DEFINITION)


def _cannot_tell(each: _Seen, what: str, kinds: tuple[CauseKind, ...]) -> LikelyCause:
    """Return several causes as one."""
    words = dict(_WORDS)
    if each.setup.function is None and each.setup.refusal is None:
        words[CauseKind.FUNCTION] = f"a conflict function was in force that is not given ({_GIVE})"
    options = "; ".join(words[kind] for kind in kinds)
    return LikelyCause(each.cluster, kinds[0], (each.table,), f"{capitalized(what)}.", kinds, options)


def _of_incident(cause: LikelyCause) -> LikelyCause:
    """Return a cause with what an incident lost as the likeliest one, where missing events explain it."""
    if CauseKind.FILES not in cause.kinds:
        return cause
    others = tuple(kind for kind in cause.kinds if kind is not CauseKind.FILES)
    parts = (_LOST, *cause.options.split(_WORDS[CauseKind.FILES]))
    options = "; ".join(part.strip("; ") for part in parts if part.strip("; "))
    return attrs.evolve(cause, kind=CauseKind.FILES, cannot_tell=(CauseKind.FILES, *others), options=options)


_LOST = "changes are missing that the log lost at its incident (give the log of another SQL node of the cluster)"


def _merged(causes: Iterable[LikelyCause]) -> Iterator[LikelyCause]:
    """Yield each cause once, with all tables that it concerns."""
    merged: dict[LikelyCause, list[str]] = {}
    for cause in causes:
        merged.setdefault(attrs.evolve(cause, tables=()), []).extend(cause.tables)
    for cause, tables in merged.items():
        yield attrs.evolve(cause, tables=tuple(sorted(set(tables))))
