"""
What has to be added up to know how many bytes a row takes in every format: the plan of the loop in `kernels.sizes`.

It grows like the register of tables: the loop stops at a variant of rows that is not registered, and continues when it
has been added here. All decisions on columns are those of `ndb_formats.rules`; here they become lists of columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from ndb_formats.columnar.kernels.sizes import DIFF_TWIN, NO_TWIN, ShapeMode, SizedShape, SizeOutcome, mask_hash
from ndb_formats.columnar.tables import BatchShape, Growing
from ndb_formats.constants import ColumnCode
from ndb_formats.events.row_image import DIFF_CODEC
from ndb_formats.events.rows_event import Operation
from ndb_formats.events.sizes import bitmap_size, rows_head_size
from ndb_formats.rules.formats import FORMATS, Format, KeyChange, change_columns
from ndb_formats.rules.relogging import SetColumns, known_values, set_columns, statement_operation
from ndb_formats.rules.row_image_rules import EventColumns
from ndb_formats.rules.update_format import changing_key_columns, is_ndb
from ndb_formats.schema.tables import Table
from ndb_formats.sizes.tables import CHANGES, SizedTable, SizedTables

# What can happen to a key, in the order of the compiled loop.
KEY_CHANGES = (KeyChange.NONE, KeyChange.SPELLING, KeyChange.KEY)
_OLD, _NEW = 0, 1
_BOUNDS = 2
_WORD = 64

_Int64 = npt.NDArray[np.int64]
Bits = npt.NDArray[np.uint64]


@attrs.frozen(eq=False)
class _Shape:
    """A shape of rows: its number in the register, its table, and the columns of its events."""

    source: BatchShape
    sized: SizedTable
    definition: Table | None
    columns: EventColumns
    operation: Operation


class SizePlan:
    """
    The shapes of rows, and their variants.

    Attributes:
        tables: The tables; new ones are added.
    """

    def __init__(self, tables: SizedTables) -> None:
        self.tables = tables
        self._shapes: list[_Shape] = []
        self._shape_rows = Growing(len(SizedShape), np.int64)
        self._specs, self._key_masks = Growing(4, np.int64), Growing(None, np.uint64)
        self._hashed = np.full(64, -1, np.int64)
        self._keys, self._masks = Growing(5, np.int64), Growing(None, np.uint64)
        self._set_bounds = Growing(None, np.int64)
        self._set_bounds.add(0)
        self._sets, self._set_columns = Growing(4, np.int64), Growing(None, np.int64)
        self._outcomes, self._events = (
            Growing(_BOUNDS * len(FORMATS) * len(SizeOutcome), np.int64),
            Growing(4, np.int64),
        )
        self._groups: dict[tuple[object, ...], int] = {}
        self._group_rows = Growing(2, np.int64)

    def __len__(self) -> int:
        return len(self._shapes)

    @property
    def shape_arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The argument `shapes` of `size_rows`."""
        tables = self.tables
        return (
            self._shape_rows.array,
            self._specs.array,
            self._key_masks.array,
            tables.defaults.array,
            tables.default_bytes.array,
        )

    @property
    def variant_arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """The argument `variants` of `size_rows`."""
        outcomes = self._outcomes.array.reshape(-1, _BOUNDS, len(FORMATS), len(SizeOutcome))
        return (
            self._hashed,
            self._keys.array,
            self._masks.array,
            self._set_bounds.array,
            self._sets.array,
            self._set_columns.array,
            outcomes,
            self._events.array,
            self._group_rows.array,
        )

    def add_shape(self, shape: BatchShape, *, in_epoch: bool) -> None:
        """
        Register the next shape of the register of tables.

        Args:
            shape: The shape, all of whose columns have cells.
            in_epoch: Whether its rows belong to an NDB epoch, so that a table that does not say its engine is NDB's.

        Raises:
            FormatError: The table's metadata cannot be read, or a default does not fit its column.
        """
        sized = self.tables.of(shape, in_epoch=in_epoch)
        definition = sized.definition
        columns = EventColumns(shape.operation, shape.before, shape.after)
        operation = shape.operation if definition is None else statement_operation(definition, columns)
        self._shapes.append(_Shape(shape, sized, definition, columns, operation))
        key: tuple[int, ...] = ()
        spelled: frozenset[int] = frozenset()
        if definition is not None:
            key, spelled = definition.key_ordinals, changing_key_columns(definition)
        count = len(shape.layout.codecs)
        row = {
            SizedShape.CELLS_AT: self._add_specs(shape),
            SizedShape.BEFORE: len(shape.before or ()),
            SizedShape.AFTER: len(shape.after or ()),
            SizedShape.COLUMNS: count,
            SizedShape.FIRST_COLUMN: sized.first_column,
            SizedShape.KIND: sized.number * len(CHANGES) + CHANGES.index(operation),
            SizedShape.MASKS_AT: self._key_masks.add(*_words(key, count), *_words(spelled, count)),
            SizedShape.MODE: _mode(definition, columns, operation),
            SizedShape.NDB: definition is not None and is_ndb(definition),
        }
        self._shape_rows.add([row[part] for part in SizedShape])

    def defined(self, shape: int) -> tuple[BatchShape, Table]:
        """Return a shape, and the definition of its table, which it must have."""
        found = self._shapes[shape]
        assert found.definition is not None
        return found.source, found.definition

    def add_variant(self, number: int, state: int, mask: Bits) -> None:
        """
        Register a variant.

        Args:
            number: Number of its shape.
            state: As in `SizeState.VARIANT`.
            mask: Its changed columns, bit n of word w for column 64w + n.
        """
        shape = self._shapes[number]
        width = len(shape.source.layout.codecs)
        changed = frozenset(each for each in range(width) if int(mask[each // _WORD]) >> each % _WORD & 1)
        key, unchanged = KEY_CHANGES[state >> 1], _is_unchanged(shape, changed)
        sets: dict[tuple[int, tuple[int, ...]], int] = {}
        outcomes = np.zeros((_BOUNDS, len(FORMATS), len(SizeOutcome)), np.int64)
        uncompared = False
        for place, form in enumerate(FORMATS):
            written = _written(shape, changed, form, reads=bool(state & 1))
            bounds = [
                _events(shape, form, marked, key, unchanged=unchanged) for marked in (written.certain, written.possible)
            ]
            hidden = bounds[0] != bounds[1]
            uncompared |= hidden and not written.compared
            # A statement of another engine sets the same columns in all its rows. NDB puts the rows of several
            # statements side by side: at most, those whose changed columns differ are in events of their own.
            apart = bounds[0] if hidden and form.of_ndb and shape.definition and is_ndb(shape.definition) else None
            for bound, events in enumerate(bounds):
                lacking = any(_lacks(shape, event, form) for event in events)
                first = self._add_events(shape, events, form, sets, apart if bound else None)
                outcomes[bound, place] = first, len(events), lacking, hidden
        masks_at = self._masks.add(*mask[: -(-width // _WORD)].tolist())
        any_hidden = bool(outcomes[..., SizeOutcome.HIDDEN].any())
        variant = self._keys.add([number, state, masks_at, any_hidden, uncompared])
        self._outcomes.add(outcomes.ravel().tolist())
        for image, columns in sets:
            self._add_set(shape, image, columns)
        self._set_bounds.add(self._sets.count)
        self._hash(variant)

    def _add_events(
        self,
        shape: _Shape,
        events: tuple[EventColumns, ...],
        form: Format,
        sets: dict[tuple[int, tuple[int, ...]], int],
        apart: tuple[EventColumns, ...] | None,
    ) -> int:
        """Add the events of a variant in one format, and the sets of columns that they need; return the first."""
        first = self._events.count
        for event in events:
            places = [
                -1 if columns is None else sets.setdefault((image, columns), len(sets))
                for image, columns in ((_OLD, event.before), (_NEW, event.after))
            ]
            mask = 0 if form.of_ndb else _diff_mask_size(shape, event)
            self._events.add([self._group(shape, event, apart), *places, mask])
        return first

    def _group(self, shape: _Shape, event: EventColumns, apart: tuple[EventColumns, ...] | None) -> int:
        """Return the number of the events that rows of one table, operation and columns share."""
        identity = (shape.sized.number, event, apart)
        if identity not in self._groups:
            bitmaps = sum(columns is not None for columns in (event.before, event.after))
            head = rows_head_size(len(shape.source.layout.codecs), bitmaps)
            kind = shape.sized.number * len(CHANGES) + CHANGES.index(event.operation)
            self._groups[identity] = self._group_rows.add((head, kind))
        return self._groups[identity]

    def _add_set(self, shape: _Shape, image: int, columns: tuple[int, ...]) -> None:
        """Add the columns of an image whose lengths are in the log; null bits and known defaults are constant."""
        known = _known(shape)[image]
        constant = bitmap_size(len(columns)) + sum(_default_size(shape, each) for each in columns if each not in known)
        chosen = [ordinal for ordinal in columns if ordinal in known]
        self._sets.add([image, self._set_columns.add(*chosen), len(chosen), constant])

    def _add_specs(self, shape: BatchShape) -> int:
        """Add the columns of both images; each of the after image knows its place in the before image."""
        first = self._specs.count
        before = shape.before or ()
        for image, columns in enumerate((before, shape.after or ())):
            for ordinal in columns:
                codec = DIFF_CODEC if image and ordinal in shape.diffs else shape.layout.codecs[ordinal]
                twin = before.index(ordinal) if image and ordinal in before else NO_TWIN
                if image and ordinal in shape.diffs:
                    twin = DIFF_TWIN
                self._specs.add([ordinal, codec.width if codec.prefixed else -1, codec.width, twin])
        return first

    def _hash(self, variant: int) -> None:
        if 2 * self._keys.count > len(self._hashed):
            self._hashed = np.full(2 * len(self._hashed), -1, np.int64)
            for number in range(self._keys.count):
                self._place(number)
        else:
            self._place(variant)

    def _place(self, variant: int) -> None:
        shape, state, masks_at = (int(part) for part in self._keys.array[variant, :3])
        words = -(-len(self._shapes[shape].source.layout.codecs) // _WORD)
        last = len(self._hashed) - 1
        at = int(mask_hash(shape, state, self._masks.array[masks_at : masks_at + words], words)) & last
        while self._hashed[at] >= 0:
            at = at + 1 & last
        self._hashed[at] = variant


def _words(columns: Iterable[int], count: int) -> list[int]:
    """Return columns as a mask in words of 64 bits."""
    number = sum(1 << ordinal for ordinal in columns)
    return [number >> start & (1 << _WORD) - 1 for start in range(0, count, _WORD)]


def _mode(definition: Table | None, columns: EventColumns, operation: Operation) -> ShapeMode:
    if definition is None or columns.after is None:
        return ShapeMode.NOTHING
    if columns.before is not None:
        return ShapeMode.UPDATE
    return ShapeMode.NOTHING if operation is Operation.UPDATE_ROW else ShapeMode.INSERT


def _written(shape: _Shape, changed: frozenset[int], form: Format, *, reads: bool) -> SetColumns:
    """Return the columns that the statement set; a read event has set none."""
    table, columns = shape.definition, shape.columns
    if table is None or reads:
        return SetColumns.known(())
    if is_ndb(table) and not form.of_ndb and shape.operation is Operation.WRITE_ROW:
        # NDB logs all stored columns of an insert, which does not tell those that it names.
        every = tuple(range(len(table.columns)))
        table, columns = attrs.evolve(table, engine=None), EventColumns(shape.operation, None, every)
    return set_columns(table, columns, changed)


def _events(
    shape: _Shape, form: Format, marked: frozenset[int], key: KeyChange, *, unchanged: bool
) -> tuple[EventColumns, ...]:
    """Return the columns of the events of a row in one format."""
    if shape.definition is None:
        return (shape.columns,)
    return change_columns(form.rule, shape.definition, shape.operation, marked, key=key, unchanged=unchanged)


def _is_unchanged(shape: _Shape, changed: frozenset[int]) -> bool:
    """Return whether an update is known to leave every value as it was."""
    before, after = frozenset(shape.source.before or ()), frozenset(shape.source.after or ())
    both = shape.source.before is not None and shape.source.after is not None
    return both and not changed and after <= before


def _known(shape: _Shape) -> tuple[frozenset[int], frozenset[int]]:
    """Return the columns whose old, and whose new, values are in the log."""
    if shape.definition is None:
        return frozenset(shape.source.before or ()), frozenset(shape.source.after or ())
    before, after = known_values(shape.definition, shape.columns, shape.operation)
    return before, after


def _diff_mask_size(shape: _Shape, event: EventColumns) -> int:
    """Return the bytes per row that say which JSON columns are diffs, in an event for partial updates."""
    if event.operation is not Operation.UPDATE_ROW:
        return 0
    documents = sum(wire.code is ColumnCode.JSON for wire in shape.source.layout.types)
    return 1 + (bitmap_size(documents) if frozenset(event.after or ()).intersection(shape.source.diffs) else 0)


def _default_size(shape: _Shape, ordinal: int) -> int:
    """Return the bytes of a column that an insert leaves out; 0 if the log and the definition do not tell."""
    if shape.operation is not Operation.WRITE_ROW:
        return 0
    return shape.sized.default_size(ordinal) or 0


def _lacks(shape: _Shape, event: EventColumns, form: Format) -> bool:
    """Return whether an event has columns whose values are neither in the log nor known defaults."""
    if shape.definition is None:
        return False
    if form.of_ndb and shape.source.diffs:
        return True  # NDB would log the whole document
    wanted = zip((event.before, event.after), _known(shape), strict=True)
    absent = [ordinal for columns, known in wanted for ordinal in columns or () if ordinal not in known]
    inserted = shape.operation is Operation.WRITE_ROW
    return any(not (inserted and shape.sized.default_size(ordinal) is not None) for ordinal in absent)
