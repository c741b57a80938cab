"""
When an applier judged the rows of an epoch, as far as the binlogs show it.

An applier judges a row some time before it commits the epoch. Until then a local transaction can change the row,
unless the applier has changed it itself: that locks the row. So a row that stayed as it was, or was refreshed, may have
been judged as it stood before a change that the binlog lists in front of the epoch. An applier that goes over an epoch
several times, because of transactions in conflict, has all the more time for that.

Each epoch apply is looked at by itself, on the rows as the binlogs show them (see
`conflict.engine.inference.background`), so that no explanation depends on another one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain, count, islice
from math import prod

import attrs

from conflict.engine.inference.background import Background, Recorded, Setups, background_of, epochs_known
from conflict.engine.inference.hypotheses import TooManyWaysError, answers, possible
from conflict.engine.inference.row_states import StatesOfRows, visit_applies
from conflict.engine.inference.rows import is_dated, is_partial
from conflict.engine.inference.trial_apply import RowsJudged, TrialApply
from conflict.engine.ledger.open_places import OpenEpoch, OpenRow, RowAnswer
from conflict.engine.reference.cluster import LoggedChange
from conflict.engine.reference.row_store import RowKey
from conflict.history.model import Cluster, History, Link
from conflict.history.scheduling.placing import Inference
from conflict.history.shown_effects import Effect
from conflict.history.timeline import OVERLAPPING, START, DefinitionChange, EpochApply, Position, RowMoment, Transaction
from conflict.rules.foreign_keys import linked_tables

# An epoch apply is tried so often, at most, to find the moments at which it does what its binlog shows.
MAX_TRIALS = 5_000
# More epoch applies than this without an explanation do not come from moments; another function was in force.
MAX_UNEXPLAINED = 50

Effects = Mapping[RowKey, Effect]
# By applying cluster and own position of an epoch apply, some of its rows; None for all.
Wanted = Mapping[str, Mapping[Position, AbstractSet[RowKey] | None]]
Assumed = dict[RowKey, Position]
# The rows that differ, until the next trial is made; and what was assumed.
_Trial = tuple[AbstractSet[RowKey], Callable[[], Assumed]]


@attrs.define
class Moments:
    """
    What was found.

    Attributes:
        found: By applying cluster and own position of an epoch apply, the rows that were judged earlier.
        inferences: The same, as answers to report.
        open_epochs: Epoch applies with rows whose moment is open.
        unexplained: How many epoch applies were not explained.
        not_examined: Epoch applies with a row that can have been judged in too many ways to look at all.
    """

    found: dict[tuple[str, Position], tuple[RowMoment, ...]] = attrs.field(factory=dict)
    inferences: list[Inference] = attrs.field(factory=list)
    open_epochs: list[OpenEpoch] = attrs.field(factory=list)
    unexplained: int = 0
    not_examined: int = 0

    def clusters(self, clusters: Iterable[Cluster]) -> tuple[Cluster, ...]:
        """Return clusters with these moments in their epoch applies."""
        return tuple(
            attrs.evolve(cluster, timeline=tuple(self._item(cluster.name, item) for item in cluster.timeline))
            for cluster in clusters
        )

    def _item(
        self, name: str, item: Transaction | EpochApply | DefinitionChange
    ) -> Transaction | EpochApply | DefinitionChange:
        if not isinstance(item, EpochApply) or not item.traced:
            return item
        return attrs.evolve(item, moments=self.found.get((name, (item.epoch, item.group)), ()))


def find_moments(
    history: History,
    setups: Setups,
    recorded: Recorded,
    *,
    skip_missing: bool = False,
    wanted: Wanted | None = None,
    states: StatesOfRows | None = None,
    known: Mapping[Link, Sequence[int]] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    start: Mapping[str, Background] | None = None,
) -> Moments:
    """
    Find the moments that explain the effects in the binlogs, and those that the binlogs leave open.

    Args:
        history: What happened, with every epoch apply at its place. Of the changes, those of the rows that the wanted
            epochs touch are enough.
        setups: Per cluster, how its server set up each table.
        recorded: Per cluster, the effects of its applier that its binlog shows.
        skip_missing: Skip operations that lack a value to compare, instead of stopping their applier.
        wanted: Which rows of which epoch applies to look at; None for all. Of an epoch with some rows, none may be of
            a rejected transaction.
        states: The states of the rows, if they need no replay (see `conflict.engine.inference.row_states`).
        known: Per link, the max replicated epoch before each epoch apply, if the History lacks some that do not decide.
        progress: Called with the epoch applies that were looked at, and their number.
        start: As for `background_of`; the epoch applies of the History then begin before its timelines, and rows are
            looked at that were changed since the applier can have begun, if functions judge row by row.

    Raises:
        HistoryError: The traces have no order of causes.
    """
    moments = Moments()
    applies = (
        {
            cluster.name: tuple(item for item in cluster.timeline if isinstance(item, EpochApply))
            for cluster in history.clusters
        }
        if start is None
        else history.applies
    )
    with_applies = attrs.evolve(history, applies=applies)
    links = with_applies.links
    before = {link: begun_after(own) for link, own in links.items()}
    done, total = count(1), sum(map(len, (before if wanted is None else wanted).values()))

    def visit(here: Background, apply: EpochApply, source: Background) -> None:
        name, place = here.cluster.name, (apply.epoch, apply.group)
        if wanted is not None and place not in wanted[name]:
            return
        progress(next(done), total)
        entries = here.cluster.arriving(source.cluster, apply.foreign_epoch)
        rows = None if wanted is None else wanted[name][place]
        if rows is not None:
            entries = [entry for entry in entries if entry.row in rows]
        if not entries or not recorded[name]:
            return
        known = _known_rows(here, source, apply, entries)
        entries = [entry for entry in entries if entry.row in known]
        if not entries:
            return
        shown = {key: effect for key, effect in recorded[name].get(place, {}).items() if key in known}
        if start is not None:
            entries = _contested_entries(here, place, before[name, apply.source][place][1], entries)
            shown = {key: shown[key] for key in dict.fromkeys(each.row for each in entries) if key in shown}
            if not entries:
                return
        trial = TrialApply(here, source, apply, entries, shown, skip_missing)
        _Search(here, apply, entries, shown, trial, *before[name, apply.source][place]).run(moments)

    replayed = with_applies, setups, recorded, known or epochs_known(links, history.clusters)
    if states is None:
        background_of(*replayed, visit, start=start)
    else:
        visit_applies(*replayed, visit, states=states, looked_at=_looked_at(applies, wanted))
    return moments


def _looked_at(applies: Mapping[str, Sequence[EpochApply]], wanted: Wanted | None) -> dict[str, set[int]]:
    """Return, per cluster, its own epochs that are looked at."""
    found: dict[str, set[int]] = {name: set() for name in applies}
    for name, own in applies.items():
        for apply in own:
            if wanted is None or (apply.epoch, apply.group) in wanted[name]:
                found[apply.source].add(apply.foreign_epoch)
    return found


def _known_rows(
    here: Background, source: Background, apply: EpochApply, entries: Sequence[LoggedChange]
) -> frozenset[RowKey]:
    """
    Return the rows of an epoch that are fully known; in a log that starts in the middle, these may not be all.

    Those are none if rows depend on each other, and some are not known: in tables with unique keys or foreign keys.
    Where transactions are rejected as wholes, they are those that no transaction links with a row that is not known. A
    secondary rejects none. Rows of tables without a primary key cannot be told apart.
    """
    setups = here.cluster.setups
    tables = {entry.change.table for entry in entries}
    if any(name in setups and not setups[name].table.primary_key for name in tables):
        return frozenset()
    rows = frozenset(entry.row for entry in entries)
    if here.cluster.cluster.start is None:
        return rows
    unclear = source.cluster.unclear.get(apply.foreign_epoch, set())
    states = {row: here.cluster.store.get(row) for row in rows}
    known = frozenset(
        row
        for row, state in states.items()
        if row not in unclear and (state is None or (is_dated(state) and not is_partial(state)))
    )
    if known == rows:
        return known
    if linked_tables(setups) or any(setup.table.unique_keys for setup in setups.values()):
        return frozenset()
    role = here.cluster.role
    linked = any(setup.deployed(role).rejects_transactions for setup in setups.values())
    return _apart(entries, known) if linked else known


def _apart(entries: Sequence[LoggedChange], known: frozenset[RowKey]) -> frozenset[RowKey]:
    """Return the known rows that no transaction, and no row that several touch, links with one that is not known."""
    transactions: dict[RowKey, set[int]] = {}
    touched: dict[int, set[RowKey]] = {}
    for entry in entries:
        transactions.setdefault(entry.row, set()).add(entry.group)
        touched.setdefault(entry.group, set()).add(entry.row)
    linked = transactions.keys() - known
    waiting = [*linked]
    while waiting:
        for transaction in transactions[waiting.pop()]:
            new = touched.pop(transaction, set()) - linked
            linked |= new
            waiting += new
    return known - linked


def _contested_entries(
    here: Background, place: Position, begun: Position, entries: Sequence[LoggedChange]
) -> list[LoggedChange]:
    """Return the operations on rows that were changed after a position; all, if these decide on others."""
    rows = dict.fromkeys(entry.row for entry in entries)
    contested = {row for row in rows if here.changes(row, begun, place)}
    tables = here.cluster.setups
    if contested and any(setup.deployed(here.cluster.role).rejects_transactions for setup in tables.values()):
        return list(entries)
    return [entry for entry in entries if entry.row in contested]


def begun_after(applies: Sequence[EpochApply]) -> dict[Position, tuple[Position, Position]]:
    """Return, per traced epoch apply, the positions before which one worker, and parallel ones, cannot have begun."""
    found, places = {}, [START] * OVERLAPPING
    for apply in applies:
        if apply.traced:
            found[apply.epoch, apply.group] = max(apply.arrived, places[-1]), max(apply.arrived, places[-OVERLAPPING])
        places.append((apply.epoch, apply.group))
    return found


@attrs.define
class _Search:
    """
    The search for the moments of one epoch apply.

    Attributes:
        here: The applying cluster, before the epoch is applied.
        apply: The epoch apply.
        entries: Its operations.
        shown: Its effects in the binlog.
        trial: Tries moments.
        begun: The own position before which it cannot have begun.
        overlapping: The same, if workers apply epochs in parallel.
    """

    here: Background
    apply: EpochApply
    entries: Sequence[LoggedChange]
    shown: Effects
    trial: TrialApply
    begun: Position
    overlapping: Position
    _too_many: bool = attrs.field(default=False, init=False)

    def run(self, moments: Moments) -> None:
        """Add what is found to `moments`."""
        contested = self._contested(self.begun)
        assumed: Assumed = {}
        differing = self.trial.at_commit.differing
        if differing and moments.unexplained < MAX_UNEXPLAINED:
            for after in dict.fromkeys((self.begun, self.overlapping)):
                candidates = self._contested(after)
                explained = self._explain(candidates, differing)
                if explained is not None:
                    assumed = explained
                    self._note(moments, assumed, candidates, len(differing))
                    break
            else:
                moments.unexplained += 1
        alone = {key: earlier for key, earlier in contested.items() if self.trial.judges_alone(key)}
        rejected = self.trial.rejected(assumed) if alone else []
        for key in {key for key, each in rejected if each.with_transaction}:
            alone.pop(key, None)
        open_rows = tuple(self._open_rows(alone, assumed))
        if open_rows:
            open_keys = {(row.table, row.key) for row in open_rows}
            others = tuple(each for key, each in rejected if key not in open_keys)
            place = self.apply.epoch, self.apply.group
            epoch = OpenEpoch(self.here.cluster.name, self.apply.foreign_epoch, place, open_rows, others)
            moments.open_epochs.append(epoch)
        moments.not_examined += self._too_many

    def _contested(self, begun: Position) -> dict[RowKey, list[Position]]:
        """Return the rows that were changed since `begun`, each with the moments before one of the changes."""
        found = {}
        place = self.apply.epoch, self.apply.group
        for key in dict.fromkeys(entry.row for entry in self.entries):
            changed = self.here.changes(key, begun, place)
            if changed:
                found[key] = [(epoch, group - 1) for epoch, group in reversed(changed)]
        return found

    def _explain(self, contested: Mapping[RowKey, list[Position]], differing: set[RowKey]) -> Assumed | None:
        """Return as few moments as possible with which the epoch does what the binlog shows; None if there are none."""
        # Rows that differ themselves come first: those of a function that judges row by row depend on nothing else.
        order = sorted(contested, key=lambda key: key not in differing)
        trials = chain(self._one_more({}, order, contested), self._together(order, contested))
        assumed, left = _least(({}, differing), islice(trials, MAX_TRIALS))
        while left:
            more = self._one_more(assumed, order, contested)
            better, remaining = _least((assumed, left), islice(more, MAX_TRIALS))
            if len(remaining) >= len(left):
                return None
            assumed, left = better, remaining
        return self._fewest(assumed)

    def _one_more(
        self, assumed: Assumed, order: Sequence[RowKey], contested: Mapping[RowKey, list[Position]]
    ) -> Iterator[_Trial]:
        """Try each other row at each of its moments, beside those that are assumed."""
        judged = self.trial.judged(assumed)
        for key in order:
            if key not in assumed:
                for after in contested[key]:
                    judged.judge({key: after})
                    yield judged.differing, partial(_with, assumed, key, after)
                judged.judge({key: None})

    def _together(self, order: Sequence[RowKey], contested: Mapping[RowKey, list[Position]]) -> Iterator[_Trial]:
        """
        Try all rows at one moment, the last one first, but for those that cannot have been judged then.

        From one moment to the one before, only the rows that changed in between are others.
        """
        changed: dict[Position, list[RowKey]] = {}
        for key in order:
            for after in contested[key]:
                changed.setdefault(after, []).append(key)
        every, possible = self.trial.judged({}), self.trial.judged({})
        for after in sorted(changed, reverse=True):
            before = set(every.impossible)
            every.judge(dict.fromkeys(changed[after], after))
            moved = (every.impossible ^ before).union(changed[after])
            possible.judge({key: None if key in every.impossible else every.moments[key] for key in moved})
            yield possible.differing, partial(_all_at, after, order, possible)

    def _fewest(self, assumed: Assumed) -> Assumed:
        """Return the assumption without the rows that it does not need."""
        judged = self.trial.judged(assumed)
        for key, after in assumed.items():
            judged.judge({key: None})
            if judged.differing:
                judged.judge({key: after})
        return {key: after for key, after in assumed.items() if key in judged.moments}

    def _note(
        self, moments: Moments, assumed: Assumed, contested: Mapping[RowKey, list[Position]], differing: int
    ) -> None:
        """Add an explanation of some differing rows."""
        name, place = self.here.cluster.name, (self.apply.epoch, self.apply.group)
        moments.found[name, place] = tuple(RowMoment(*key, after) for key, after in assumed.items())
        # Each row may also have been judged at the commit.
        candidates = prod(len(contested[key]) + 1 for key in assumed)
        moments.inferences.append(Inference(name, self.apply.foreign_epoch, len(assumed), candidates, differing))

    def _open_rows(self, contested: Mapping[RowKey, list[Position]], assumed: Assumed) -> Iterator[OpenRow]:
        """Yield the rows on which several moments have the effect that the binlog shows, but decide otherwise."""
        for key, earlier in contested.items():
            found = self._answers(key, assumed.get(key), earlier)
            if len(found) > 1:
                yield OpenRow(*key, found, 0)

    def _answers(self, key: RowKey, assumed: Position | None, earlier: Sequence[Position]) -> tuple[RowAnswer, ...]:
        """Return the different answers on a row that have the effect that the binlog shows; that of `assumed` first."""
        chosen = self.trial.answer(key, assumed)
        if chosen is None:
            return ()
        tried = possible(
            (None, *self.trial.different(key, earlier)),
            partial(self.trial.answer, key),
            lambda each: each[1] is self.shown.get(key),
        )
        if self.trial.singly:
            try:
                singly = self.trial.answers_singly(key, sorted(earlier))
                tried += [each for each in singly if each[1] is self.shown.get(key)]
            except TooManyWaysError:
                self._too_many = True
        found = answers([chosen, *tried], lambda each: _outcomes(each[0]))
        return tuple(same[0][0] for same in found.values())


def _least(known: tuple[Assumed, set[RowKey]], trials: Iterable[_Trial]) -> tuple[Assumed, set[RowKey]]:
    """Return the assumption that leaves the fewest differences, and these; the first of several."""
    assumed, differing = known
    for left, moments in trials:
        if len(left) < len(differing):
            assumed, differing = moments(), set(left)
        if not differing:
            break
    return assumed, differing


def _with(assumed: Assumed, key: RowKey, after: Position) -> Assumed:
    return {**assumed, key: after}


def _all_at(after: Position, order: Iterable[RowKey], judged: RowsJudged) -> Assumed:
    return {key: after for key in order if key in judged.moments}


def _outcomes(answer: RowAnswer) -> Hashable:
    return tuple((each.decision.verdict, each.decision.cause) for each in answer.operations), answer.counters
