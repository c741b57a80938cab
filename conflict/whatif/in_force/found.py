"""
Which conflict functions were in force, by trial: those under which appliers do what the binlogs show that they did.

Appliers log what they did (`log_replica_updates`). Under another function they would have done something else as soon
as changes met. So what comes of the functions is compared with the binlogs, on the beginning of the logs, and then on
more of them: there several may not fit any more, and changes of other tables meet. Marks and refreshed rows say
beforehand which kind of functions it can be. Computes docs/run-file.md, "Functions found by trial".
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import attrs

from conflict.config.additions import ShownFunctions
from conflict.config.arguments import StageProgress, no_progress
from conflict.config.configuration import Configuration
from conflict.engine.ledger.careful import CareKind
from conflict.history.roles import Mark
from conflict.rules.functions import FUNCTIONS, Argument, ConflictFunction
from conflict.telling.shown_text import listed
from conflict.whatif.comparing.default_policies import comparable_columns
from conflict.whatif.in_force.log_starts import with_log_starts
from conflict.whatif.in_force.trials import Assignment, Trial, Trials
from ndb_formats.errors import FormatError
from ndb_formats.schema.tables import Table

SIZES = (1 << 19, 1 << 21)  # bytes of each log
_REFERENCE_SIZE = 1 << 17  # the same, where the reference engine tries functions
_FEW_TABLES = 8  # each of so many is tried without a function, even if all fits
_EXPLAINED = 20  # functions explain what differs without them if one in so many does with them, at most

# By table, functions that fit as well; None for no function.
Others = Mapping[str, Sequence[ConflictFunction | None]]


@attrs.frozen
class _Found:
    """
    Functions that fit.

    Attributes:
        chosen: The trial of those that fit best.
        plain: The trial without functions.
        others: By table, functions that fit as well.
        where: Of which part of the logs, in words.
    """

    chosen: Trial
    plain: Trial
    others: Others
    where: str

    @property
    def functions(self) -> Mapping[str, ConflictFunction]:
        """The function of each table that has one."""
        return self.chosen.assignment.functions

    @property
    def shown(self) -> ShownFunctions:
        """What the binlogs show, in words too."""
        primary = self.chosen.assignment.primary
        return ShownFunctions(self.functions, primary, self.others, self._sentences(primary))

    def _sentences(self, primary: str | None) -> tuple[str, ...]:
        tables: dict[str, list[str]] = {}
        for table, function in sorted(self.functions.items()):
            tables.setdefault(function.short, []).append(table)
        found = "; ".join(f"{function} on {listed(own)}" for function, own in tables.items())
        judging = "" if primary is None else f", with {primary} as the primary"
        return f"Conflict functions, found by trial: {found}{judging}.", self._evidence, *self._open

    @property
    def _evidence(self) -> str:
        """What shows it, as a sentence."""
        if not self.chosen.compared:
            return f"The marks of rows alone show it: {self.where} hold no other row change by an applier to compare."
        return (
            f"In {self.where}, {self.chosen.wrong:,} of {self.chosen.compared:,} row changes by appliers differ "
            f"from what these functions do, and {self.plain.wrong:,} from what none do."
        )

    @property
    def _open(self) -> Iterator[str]:
        """What else fits, as a sentence."""
        named = {
            table: listed(["none" if each is None else each.short for each in own], "or")
            for table, own in sorted(self.others.items())
        }
        if named:
            yield f"Fits equally well: {'; '.join(f'{others} on {table}' for table, others in named.items())}."


def find_functions(configuration: Configuration, progress: StageProgress = no_progress) -> ShownFunctions | None:
    """
    Return the functions that were in force; None if the binlogs do not show any.

    Args:
        configuration: A run of two clusters, whose tables have their binlog types and no functions.
        progress: Called with the name of the stage, what is done, and what there is to do.
    """
    found: _Found | None = None
    with tempfile.TemporaryDirectory(prefix="ndb-conflict-") as scratch:
        for done, size in enumerate(SIZES):
            progress("finding functions", done, len(SIZES))
            folder = Path(scratch) / str(size)
            folder.mkdir()
            try:
                trials = Trials(with_log_starts(configuration, size, folder), str(folder))
            except FormatError:
                break  # who reads the rows says why
            search = _Search(trials, _part(configuration, size), found)
            found = found if search.confirms else search.found or found
            if found is None and any(isinstance(each, CareKind) for each in trials.untried):
                found = _by_reference(configuration, Path(scratch) / "reference")
                break
            if _longest(configuration) <= size or (found is None and search.is_unexplained):
                break
    progress("finding functions", len(SIZES), len(SIZES))
    return None if found is None else found.shown


def _by_reference(configuration: Configuration, folder: Path) -> _Found | None:
    """Return what the reference engine finds, on the little that it can try in a few seconds."""
    folder.mkdir()
    starts = with_log_starts(configuration, _REFERENCE_SIZE, folder)
    trials = Trials(starts, str(folder), by_reference=True)
    return _Search(trials, _part(configuration, _REFERENCE_SIZE), None).found


def _part(configuration: Configuration, size: int) -> str:
    """Return which part of the logs their first bytes are, in words."""
    return "the binlogs" if _longest(configuration) <= size else f"the first {size >> 10:,} KiB of each log"


def _longest(configuration: Configuration) -> int:
    """Return the bytes of the longest log."""
    servers = (server for each in configuration.clusters for server in each.servers)
    return max((sum(file.stat().st_size for file in each.files) for each in servers), default=0)


class _Search:
    """
    A search in one part of the logs.

    Args:
        trials: Trials on it.
        where: Which part it is, in words.
        before: What fits in a smaller part; of these functions, no others are tried.
    """

    def __init__(self, trials: Trials, where: str, before: _Found | None) -> None:
        self._trials, self._where, self._before = trials, where, before

    @cached_property
    def _plain(self) -> Trial | None:
        """The trial without functions."""
        return self._trials.run(Assignment())

    @property
    def is_unexplained(self) -> bool:
        """Whether something differs without functions, or that cannot be told: with more of the logs it does, too."""
        return self._plain is None or bool(self._plain.wrong)

    @property
    def confirms(self) -> bool:
        """Whether what fits in a smaller part explains this one, too, and nothing else did."""
        if self._before is None or self._before.others:
            return False
        trial = self._trials.run(self._before.chosen.assignment)
        return trial is not None and not trial.wrong

    @property
    def found(self) -> _Found | None:
        """What fits; None if nothing does, or no function at all."""
        plain = self._plain
        if plain is None:
            return None
        best, others = self._by_epoch(plain)
        best, more = self._by_column(best)
        if not best.assignment.functions:
            return None
        return _Found(best, plain, {**others, **more}, self._where)

    def _by_epoch(self, plain: Trial) -> tuple[Trial, Others]:
        """Return the best trial of functions by epoch, which is that without any where none fits, and others."""
        tried = [trial for each in self._assignments(plain) for trial in self._with_fewer_tables(each)]
        best = min(tried, key=lambda each: (each.wrong, each.stops, each.under_way), default=plain)
        if best.wrong * _EXPLAINED > sum(plain.differing.get(each, 0) for each in self._touched(plain, best)):
            return plain, {}
        same = [each.assignment.functions for each in tried if each.wrong == best.wrong]
        chosen = best.assignment.functions
        fitting = {table: dict.fromkeys(each.get(table) for each in same) for table in chosen}
        others = {table: [each for each in own if each != chosen[table]] for table, own in fitting.items()}
        return best, {table: own for table, own in others.items() if own}

    @staticmethod
    def _touched(plain: Trial, best: Trial) -> set[str]:
        """Return the tables in which functions by epoch change something."""
        return {*best.assignment.functions, *plain.refreshed.get(best.assignment.primary or "", ())}

    def _assignments(self, plain: Trial) -> Iterator[Assignment]:
        """Yield the functions by epoch that can be: the primary refreshes rows, or marks them as reflected."""
        marks, reflected = self._trials.marks, self._reflected
        by_role = any(reflected.values())
        shown = {name: tables for name, tables in (reflected if by_role else plain.refreshed).items() if tables}
        if len(shown) != 1:
            return  # or roles changed
        ((primary, tables),) = shown.items()
        # A table has no marks if all that was received of it was rejected.
        unmarked = {table for table in plain.refreshed.get(primary, ()) if not marks.get(primary, {}).get(table)}
        tables = tables | unmarked if by_role else tables
        for spec in FUNCTIONS:
            if spec.refreshes and (by_role or tables <= unmarked if spec.uses_role else not by_role):
                yield Assignment(dict.fromkeys(sorted(tables), ConflictFunction(spec)), primary)

    @property
    def _reflected(self) -> Mapping[str, frozenset[str]]:
        """By cluster, the tables of which its applier marks rows as reflected, and so has a function for."""
        return {
            name: frozenset(table for table, found in tables.items() if Mark.REFLECTED in found)
            for name, tables in self._trials.marks.items()
        }

    def _with_fewer_tables(self, assignment: Assignment) -> Iterator[Trial]:
        """Yield the trial of functions, and those of fewer: transactions refresh rows of other tables, too."""
        best = self._trials.run(assignment)
        if best is None:
            return
        yield best
        functions = assignment.functions
        if not any(each.spec.transactional for each in functions.values()):
            return
        unsure = sorted(functions.keys() - self._reflected.get(assignment.primary or "", frozenset()))
        for table in unsure if best.wrong or len(unsure) <= _FEW_TABLES else ():
            fewer = {name: each for name, each in best.assignment.functions.items() if name != table}
            trial = self._trials.run(attrs.evolve(assignment, functions=fewer)) if fewer else None
            if trial is not None:
                yield trial
                best = min(best, trial, key=lambda each: each.wrong)

    def _by_column(self, base: Trial) -> tuple[Trial, Others]:
        """Return the best trial with functions that compare a column beside those by epoch, and others that fit."""
        known = self._known
        counts = self._counts(
            base, {table: known.get(table, own) for table, own in _leading(base, self._trials.tables)}
        )
        unknown = {table: _others_like(own) for table, own in counts.items() if table not in known}
        for table, own in self._counts(base, unknown).items():
            counts[table].update(own)
        least = {table: min(own.values())[0] for table, own in counts.items() if own}
        fitting = {
            table: {function: under_way for function, (wrong, under_way) in counts[table].items() if wrong == count}
            for table, count in least.items()
            if count * _EXPLAINED <= base.differing[table]
        }
        tables = Counter(function.spec for own in fitting.values() for function in own)
        # Of several that fit, a table has the one that leaves fewest changes unexplained, as if they had not been
        # applied yet, and of these the one that fits most tables.
        ordered = {
            table: sorted(own, key=lambda each: (own[each], -tables[each.spec]))  # it is used up here
            for table, own in fitting.items()
        }
        best = self._trials.run(_with(base, {table: own[0] for table, own in ordered.items()})) if fitting else None
        return (base, {}) if best is None else (best, {table: own[1:] for table, own in ordered.items() if own[1:]})

    @property
    def _known(self) -> dict[str, list[ConflictFunction]]:
        """By table, what fits in a smaller part."""
        if self._before is None:
            return {}
        others = self._before.others
        return {table: [own, *filter(None, others.get(table, ()))] for table, own in self._before.functions.items()}

    def _counts(
        self, base: Trial, candidates: Mapping[str, Sequence[ConflictFunction]]
    ) -> dict[str, dict[ConflictFunction, tuple[int, int]]]:
        """
        Return, by table and candidate, how many row changes differ, and how many are taken to be under way.

        The candidates of all tables take turns, so the latter are those of all tables together.
        """
        counts: dict[str, dict[ConflictFunction, tuple[int, int]]] = {table: {} for table in candidates}
        for number in range(max(map(len, candidates.values()), default=0)):
            tried = {table: own[number] for table, own in candidates.items() if number < len(own)}
            trial = self._trials.run(_with(base, tried))
            for table, function in tried.items():
                if trial is not None:
                    counts[table][function] = trial.differing.get(table, 0), trial.under_way
        return counts


_BY_COLUMN = [spec for spec in FUNCTIONS if spec.argument is Argument.COLUMN]
_LEADING = [spec for name in ("NDB$MAX", "NDB$OLD") for spec in _BY_COLUMN if spec.name == name]


def _leading(base: Trial, tables: Sequence[Table]) -> Iterator[tuple[str, list[ConflictFunction]]]:
    """Yield the tables in which something differs, and by column, the functions that show which one is right."""
    for table in tables:
        if base.differing.get(table.full_name, 0) and table.full_name not in base.assignment.functions:
            columns = comparable_columns(table)
            yield table.full_name, [ConflictFunction(spec, column) for spec in _LEADING for column in columns]


def _others_like(counts: Mapping[ConflictFunction, tuple[int, int]]) -> list[ConflictFunction]:
    """Return the other functions, of the columns of which the fewest row changes differ."""
    of_max = {function: wrong for function, (wrong, _) in counts.items() if function.spec is _LEADING[0]}
    columns = [function.column for function, count in of_max.items() if count == min(of_max.values())]
    return [ConflictFunction(spec, column) for column in columns for spec in _BY_COLUMN if spec not in _LEADING]


def _with(base: Trial, functions: Mapping[str, ConflictFunction]) -> Assignment:
    return attrs.evolve(base.assignment, functions={**base.assignment.functions, **functions})
