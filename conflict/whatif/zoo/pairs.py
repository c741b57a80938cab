"""
What the zoo is about: its rows, which are functions as they are configured and used; formats; anomalies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import attrs

from conflict.checking.requirements import Status
from conflict.config.arguments import DeploymentPolicy
from conflict.errors import ConfigurationError
from conflict.resolvers.user_policies import Given, asked_function
from conflict.rules.functions import FUNCTIONS, Argument
from conflict.whatif.diverging.scope import Goal, Scope, Values

FORMATS = (2, 3, 6, 7, 8, 9)  # type 0 is one of them by the server options, and 4 means the same as 6
NONE = "none"
VALUES = (Values.VERSION, Values.CLOCK)
# By anomaly: the heading of its column, and what happens.
ANOMALIES = {
    Goal.DIFFERENCE: ("rows differ", "Rows end different on the two clusters."),
    Goal.LOST: ("update lost", "A change of a user is rejected, or overwritten by one that had not seen it."),
    Goal.STOP: ("applier stops", "An applier stops with an error."),
    Goal.RETURNS: ("deleted row comes back", "A row that a user deleted, and nobody inserted since, is there again."),
    Goal.COUNTERS: ("counters lie", "A change is lost and no counter says so, or one counts what lost nothing."),
}


def all_functions() -> tuple[str, ...]:
    """Return the functions of the server, as they are configured, and none."""
    arguments = {Argument.COLUMN: "x", Argument.GCI_BITS: ""}
    return (*(f"{spec.name}({arguments[spec.argument]})" for spec in FUNCTIONS), NONE)


def is_of_servers(scope: Scope) -> bool:
    """Whether servers run the function of a scope: it is none of a user's own."""
    return scope.parsed is None or scope.parsed.spec in FUNCTIONS


@attrs.frozen
class Pair:
    """
    A function as it is configured and used, with a format: what one search is about.

    Attributes:
        scope: What is searched.
        refusal: Why there is nothing to search; None if there is.
    """

    scope: Scope
    refusal: str | None = None

    @property
    def is_of_servers(self) -> bool:
        """Whether servers run it; see `is_of_servers`."""
        return is_of_servers(self.scope)

    @property
    def row(self) -> str:
        """Its row: the function, and what is written to the column that it compares."""
        compares = self.scope.resolve_column is not None
        return f"{self.scope.function or NONE}{f', {self.scope.values}' if compares else ''}"

    @property
    def name(self) -> str:
        """Its name among files."""
        words = re.sub(r"\W+", "_", self.row.removeprefix("NDB$").lower()).strip("_")
        return f"{words}_type{self.scope.binlog_type}"


@attrs.frozen
class Bounds:
    """How much happens at most; see `Scope`."""

    transactions: int = 3
    rows: int = 1
    columns: int = 2
    outages: int = 0

    @property
    def words(self) -> str:
        """The bounds in words."""
        bounds = {"transaction": self.transactions, "row": self.rows, "data column": self.columns}
        bounds["outage"] = self.outages
        return ", ".join(f"{number} {noun}{'' if number == 1 else 's'}" for noun, number in bounds.items())


def pairs_of(
    functions: Iterable[Given], formats: Sequence[int], values: Sequence[Values], bounds: Bounds
) -> Iterator[Pair]:
    """
    Yield all pairs, row by row; what is written to a column makes rows of functions that compare one alone.

    Raises:
        ConfigurationError: A function is not known, a format logs nothing, or a bound is out of range.
    """
    for function in functions:
        asked, known = (None, FUNCTIONS) if function == NONE else asked_function(function)
        plain = Scope(asked, FORMATS[0], functions=known)
        for each in values if plain.resolve_column is not None else values[:1]:
            for number in formats:
                size = bounds.transactions, bounds.rows, bounds.columns, None, bounds.outages
                yield _pair(Scope(asked, number, *size, each, known))


def _pair(scope: Scope) -> Pair:
    """Return a pair, and why it is refused, by what each operation needs and by the servers."""
    Scope(None, scope.binlog_type, 1, scope.rows, scope.columns).check()  # bounds and format; with no function
    answer = scope.answer(DeploymentPolicy.NEEDS)
    if answer is not None and answer.status is Status.REFUSED:
        return Pair(scope, " ".join(reason.sentence for reason in answer.reasons))
    try:
        scope.check(DeploymentPolicy.NEEDS)
    except ConfigurationError as error:
        return Pair(scope, str(error))
    return Pair(scope)
