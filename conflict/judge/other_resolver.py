"""
Another resolver on the recordings of real clusters: how often, and where, it decides otherwise than the clusters did.

A case is replayed twice, on one History: with the functions of the recording, which tell what the clusters decided (so
`conflict.judge.judge` makes sure), and with the resolver in their place, on all clusters. Changes of users are those
of the recording, and epochs were applied when they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from conflict.engine.ledger.resolution import Outcome
from conflict.engine.ledger.table_keys import TableKey
from conflict.engine.reference.replay import resolve
from conflict.errors import ConfigurationError, NotBuiltError
from conflict.history.model import History
from conflict.history.preparing.definitions_over_time import make_run
from conflict.history.scheduling.hints import hints_of_steps
from conflict.history.timeline import DefinitionChange, EpochApply
from conflict.judge.case import ConflictCase
from conflict.resolvers.user_policies import SHIPPED
from conflict.rules.decision import Decision, decision_text
from conflict.rules.functions import Argument, ConflictFunction, FunctionSpec, parse_conflict_function
from conflict.rules.replication_table import Role
from conflict.rules.table_setup import TableSetup
from conflict.runs.reference_run import replay_in_memory
from ndb_formats.errors import did_you_mean

Place = tuple[object, ...]


@attrs.frozen
class Difference:
    """
    A decision that is another one.

    Attributes:
        applier: The cluster that made it.
        source: The cluster that made the change.
        epoch: The epoch of the change.
        table: ``database.table``.
        key: The row, as text.
        operation: Write, update or delete.
        recorded: What the cluster decided: a cause or a verdict.
        resolver: What the resolver decides.
    """

    applier: str
    source: str
    epoch: int
    table: str
    key: str
    operation: str
    recorded: str
    resolver: str

    def __str__(self) -> str:
        return (
            f"{self.applier}: {self.operation} of {self.table} {self.key}, epoch {self.epoch} of {self.source}: "
            f"{self.recorded} there, {self.resolver} by the resolver"
        )


@attrs.frozen
class OtherDecisions:
    """
    What a resolver does on a case.

    Attributes:
        decisions: How many changes of users were judged.
        differences: Those on which it decides otherwise.
        rows_differ: Rows that end different on the clusters, as recorded.
        rows_differ_with: The same with the resolver.
        stops: With the resolver, why appliers stop.
    """

    decisions: int
    differences: tuple[Difference, ...]
    rows_differ: int
    rows_differ_with: int
    stops: tuple[str, ...] = ()

    @property
    def rows_that_differ(self) -> tuple[int, int]:
        """Rows that end different: as recorded, and with the resolver."""
        return self.rows_differ, self.rows_differ_with


def decide_otherwise(case: ConflictCase, text: str, functions: Sequence[FunctionSpec]) -> OtherDecisions:
    """
    Return what a resolver does on a case.

    Args:
        case: The case.
        text: The resolver as `conflict_fn` has it; a function of a column takes that of the recorded function.
        functions: The known functions, the resolver among them.

    Raises:
        NotBuiltError: It cannot be put in the place of the functions of the case.
        ConflictError: The case cannot be replayed.
    """
    run = make_run(case.configuration(), lambda summaries: hints_of_steps(case.steps, summaries))
    replayed = replay_in_memory(run)
    history = _without_moments(replayed.history)
    recorded = resolve(history, run.setups.at_start)
    changed = resolve(_without_roles(history, text, functions), _setups(run.setups.at_start, text, functions))
    here, there = _by_place(replayed.outcomes), _by_place(changed.outcomes)
    keys = {name: TableKey.of(setup.table, history.layouts.get(name)) for name, setup in _tables(run.setups.at_start)}
    found = tuple(_differences(here, there, keys))
    stops = tuple(each.stop.message for each in changed.clusters.values() if each.stop is not None)
    differ = sum(recorded.differing_rows.values()), sum(changed.differing_rows.values())
    return OtherDecisions(sum(map(len, here.values())), found, *differ, stops)


def _without_moments(history: History) -> History:
    """
    Return a History whose rows are judged at the commit.

    Raises:
        NotBuiltError: A log starts in the middle, or definitions change.
    """
    clusters = []
    for each in history.clusters:
        if each.start is not None or any(isinstance(item, DefinitionChange) for item in each.timeline):
            message = "a log starts in the middle, or its definitions change: another resolver is not tried on it"
            raise NotBuiltError(message)
        timeline = (attrs.evolve(item, moments=()) if isinstance(item, EpochApply) else item for item in each.timeline)
        clusters.append(attrs.evolve(each, timeline=tuple(timeline)))
    return attrs.evolve(history, clusters=tuple(clusters))


def _without_roles(history: History, text: str, functions: Sequence[FunctionSpec]) -> History:
    """Return a History whose clusters have the roles that a function needs: A is the primary, if it has roles."""
    spec = _spec(text, functions)
    roles = iter([Role.PRIMARY]) if spec.uses_role else iter(())
    other = Role.SECONDARY if spec.uses_role else Role.NONE
    clusters = tuple(attrs.evolve(each, role=next(roles, other)) for each in history.clusters)
    return attrs.evolve(history, clusters=clusters)


def _tables(setups: Mapping[str, Mapping[str, TableSetup]]) -> Iterator[tuple[str, TableSetup]]:
    return (each for own in setups.values() for each in own.items())


def _setups(
    setups: Mapping[str, Mapping[str, TableSetup]], text: str, functions: Sequence[FunctionSpec]
) -> dict[str, dict[str, TableSetup]]:
    """Return the tables of all clusters with the resolver in place of their functions, whatever refused these."""
    columns = {name: setup.function.column for name, setup in _tables(setups) if setup.function is not None}
    if not columns:
        message = "no table of it has a conflict function"
        raise NotBuiltError(message)
    made = {name: _function(text, column, functions) for name, column in columns.items()}
    first, alone = next(iter(setups)), _spec(text, functions).on_primary_alone
    return {
        name: {
            table: attrs.evolve(setup, function=made.get(table) if name == first or not alone else None)
            for table, setup in own.items()
        }
        for name, own in setups.items()
    }


def _function(text: str, column: str | None, functions: Sequence[FunctionSpec]) -> ConflictFunction:
    """Return the resolver as a table has it; `column` is that of the recorded function."""
    spec, argument = _spec(text, functions), text.partition("(")[2].strip(" )")
    if spec.argument is Argument.COLUMN and not argument:
        if column is None:
            message = f"{spec.name} takes a column, and the function of the case compares none"
            raise NotBuiltError(message)
        argument = column
    return parse_conflict_function(f"{spec.name}({argument})", functions)


def name_of_resolver(text: str, functions: Sequence[FunctionSpec]) -> str:
    """
    Return the name of a resolver, or of a function of the server.

    Args:
        text: It, with or without an argument.
        functions: The known functions.

    Raises:
        ConfigurationError: It is none of them.
    """
    return _spec(text, functions).name


def _spec(text: str, functions: Sequence[FunctionSpec]) -> FunctionSpec:
    name = text.partition("(")[0].strip()
    found = next((each for each in functions if each.name == name), None)
    if found is None:
        known = [*SHIPPED, *(each.name for each in functions)]
        message = f"{name!r} is no resolver{did_you_mean(name, known)}; give module:name, or one of {', '.join(known)}"
        raise ConfigurationError(message)
    return found


def _by_place(outcomes: Sequence[Outcome]) -> dict[Place, list[Outcome]]:
    """Return the outcomes of users' changes by what they are about, those of a change that came again in order."""
    found: dict[Place, list[Outcome]] = {}
    for each in outcomes:
        if each.ordinal >= 0:
            place = each.applier, each.source, each.source_epoch, each.ordinal, each.operation, each.table, each.key
            found.setdefault(place, []).append(each)
    return found


def _differences(
    recorded: Mapping[Place, Sequence[Outcome]], other: Mapping[Place, Sequence[Outcome]], keys: Mapping[str, TableKey]
) -> Iterator[Difference]:
    for place, own in recorded.items():
        for number, each in enumerate(own):
            answers = other.get(place, ())
            first, second = _text(each), _text(answers[number]) if number < len(answers) else "not reached"
            if first != second:
                row = keys[each.table].text(each.key) if each.table in keys else ""
                what = each.operation.name.split("_")[0].lower()
                yield Difference(each.applier, each.source, each.source_epoch, each.table, row, what, first, second)


def _text(outcome: Outcome) -> str:
    return decision_text(Decision(outcome.verdict, outcome.cause))
