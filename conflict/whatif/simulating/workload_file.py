"""
The workload of a file that describes a simulation, in YCSB's words where it has words for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal

from conflict.documents import Must, read, whole
from conflict.whatif.simulating.configuration import ModelTable
from conflict.whatif.simulating.kernels.world import Wish
from conflict.whatif.simulating.key_choice import KeyChoice, Weighted, key_choice
from conflict.whatif.simulating.toml_entries import NOT_ALL_0, SECOND, Number, Rate, TomlEntries, Weights
from conflict.whatif.simulating.workload import InsertKeys, Listed, Mix, Pairs, Shapes, Workload

# Words for the wishes of a transaction that is listed, and the proportions of those that are not.
WISHES = {wish.name.lower(): wish for wish in Wish}
MOST_ROWS = 1_000_000  # of a transaction
_PROPORTIONS = {
    "readproportion": Wish.READ,
    "updateproportion": Wish.UPDATE,
    "insertproportion": Wish.INSERT,
    "deleteproportion": Wish.DELETE,
    "upsertproportion": Wish.PUT,
}
_OfRows = Annotated[list[Number], Must("a list of weights, one per row, which are not all 0", any)]
_PER_SLOT = "a list with a number per slot"
_DISTRIBUTION = ("zipfianconstant", "hotspotdatafraction", "hotspotopnfraction")
_OWN_WORDS = {"zipfianconstant": "constant", "hotspotdatafraction": "data", "hotspotopnfraction": "operations"}


def workload_of(words: TomlEntries, tables: Sequence[ModelTable]) -> Workload:
    """
    Return a workload.

    Args:
        words: Its entries.
        tables: The tables.

    Raises:
        ConfigurationError: An entry is wrong or not known.
    """
    numbers = {table.name: number for number, table in enumerate(tables)}
    columns = words.value("columnsperupdate", 1, Literal["all"] | Annotated[int, whole(1, 2**31 - 1)])
    found = Workload(
        rates=_rates(words),
        shapes=_shapes(words, numbers),
        slot=words.time("slot_seconds", 1, SECOND, low=0.001),
        by_epochs=words.word("slots", "users", ("users", "epochs")) == "epochs",
        keys=_keys(words, numbers),
        columns=0 if columns == "all" else columns,
        column_sets=_column_sets(words, tables),
        affinity=words.number("affinity", 0, high=1),
        inserts=_inserts(words, numbers),
        operations=words.whole("operationcount", 0, high=2**53),
        think=words.time("think_ms"),
        checks=words.value("check_reads", default=False, kind=bool),
        retries=words.whole("retries"),
        retry_delay=words.time("retry_delay_ms"),
    )
    words.finish()
    return found


def _shapes(words: TomlEntries, numbers: Mapping[str, int]) -> Shapes:
    if "transactions" in words:
        return _listed(words, numbers)
    return _pairs(words, numbers) if "wishes" in words else _mix(words, numbers)


def _inserts(words: TomlEntries, numbers: Mapping[str, int]) -> dict[int, InsertKeys]:
    """Return which keys inserts have: one word for all tables, or a word per table."""
    given = words.value("insertkeys", InsertKeys.OWN, InsertKeys | dict[str, InsertKeys])
    if not isinstance(given, dict):
        return dict.fromkeys(numbers.values(), given)
    _refuse_unknown(words, "insertkeys", numbers)
    return {numbers[name]: keys for name, keys in given.items()}


def _rates(words: TomlEntries) -> tuple[float, ...]:
    given = words.value("transactions_per_second", 100, Rate | Annotated[list[Rate], Must(_PER_SLOT, bool)])
    return tuple(map(float, given if isinstance(given, list) else [given]))


def _mix(words: TomlEntries, numbers: Mapping[str, int]) -> Mix:
    proportions = {wish: words.number(name, high=1) for name, wish in _PROPORTIONS.items()}
    if not any(proportions.values()):
        proportions = {Wish.UPDATE: 1.0}
    given = words.value("tables", {}, Weights)
    _refuse_unknown(words, "tables", numbers)
    tables = {numbers[name]: weight for name, weight in given.items()} or dict.fromkeys(numbers.values(), 1.0)
    return Mix(proportions, _sizes(words), tables, words.whole("tablespertransaction", 1, low=1, high=MOST_ROWS))


def _sizes(words: TomlEntries) -> dict[int, float]:
    """Return the weight of each number of rows per transaction: one number, or a table of weights."""
    given = words.value("rowspertransaction", 1, Annotated[int, whole(1, MOST_ROWS)] | dict[str, Number])
    if not isinstance(given, dict):
        return {given: 1.0}
    if not any(given.values()) or not all(size.isdecimal() and 0 < int(size) <= MOST_ROWS for size in given):
        words.refuse("rowspertransaction", f"a number of rows, or weights of numbers of rows, up to {MOST_ROWS:,}")
    return {int(size): weight for size, weight in given.items()}


def _pairs(words: TomlEntries, numbers: Mapping[str, int]) -> Pairs:
    """Return wishes with weights: [wish, table, weight]."""
    given: Any = words.value("wishes")
    try:
        pairs = tuple((WISHES[wish], numbers[table]) for wish, table, _ in given)
        weights = tuple(_weight(weight) for _, _, weight in given)
    except (TypeError, ValueError, KeyError):
        words.refuse("wishes", f"a list of [wish, table, weight]; wishes are {', '.join(WISHES)}")
    if not sum(weights):
        words.refuse("wishes", NOT_ALL_0)
    return Pairs(pairs, weights, _sizes(words), words.number("sametable", 0, high=1))


def _listed(words: TomlEntries, numbers: Mapping[str, int]) -> Listed:
    """Return transactions as they are listed: [weight, [[wish, table], ...]]."""
    given: Any = words.value("transactions")
    shapes, weights = [], []
    try:
        for weight, wishes in given:
            shapes.append(tuple((WISHES[wish], numbers[table]) for wish, table in wishes))
            weights.append(_weight(weight))
    except (TypeError, ValueError, KeyError):
        words.refuse("transactions", f"a list of [weight, [[wish, table], ...]]; wishes are {', '.join(WISHES)}")
    if not sum(weights) or not all(shapes):
        words.refuse("transactions", f"{NOT_ALL_0}, and a wish in each")
    return Listed(tuple(shapes), tuple(weights))


def _keys(words: TomlEntries, numbers: Mapping[str, int]) -> dict[int, KeyChoice]:
    """Return how rows are chosen: by weights where a table has some, else by the distribution."""
    parameters = {_OWN_WORDS[name]: words.number(name, low=0) for name in _DISTRIBUTION if name in words}
    common = key_choice(words.value("requestdistribution", "uniform", str), **parameters)
    found: dict[int, KeyChoice] = dict.fromkeys(numbers.values(), common)
    given = words.value("keyweights", {}, dict[str, _OfRows])
    _refuse_unknown(words, "keyweights", numbers)
    found |= {numbers[name]: Weighted(tuple(map(float, weights))) for name, weights in given.items()}
    return found


def _column_sets(words: TomlEntries, tables: Sequence[ModelTable]) -> dict[int, tuple[tuple[int, float], ...]]:
    """Return which columns updates of a table set, by table: [[[column numbers], weight], ...]."""
    given = words.table("columnsets")
    _refuse_unknown(words, "columnsets", [table.name for table in tables])
    found = {}
    for number, table in enumerate(tables):
        if table.name not in given:
            continue
        try:
            found[number] = tuple(
                (_mask(each, table.columns), _weight(weight)) for each, weight in given.value(table.name)
            )
        except (TypeError, ValueError):
            given.refuse(table.name, f"a list of [[numbers of columns, from 1 to {table.columns}], weight]")
        if not any(weight for _, weight in found[number]):
            given.refuse(table.name, NOT_ALL_0)
    return found


def _mask(columns: Sequence[int], known: int) -> int:
    """Return data columns, given by their numbers from 1, as bits; ValueError for a column that is not there."""
    if not all(column in range(1, known + 1) for column in columns):
        raise ValueError
    return sum(1 << (column - 1) for column in set(columns))


def _weight(given: object) -> float:
    """Return a weight; ValueError for what is none."""
    return float(read(Number, given))


def _refuse_unknown(words: TomlEntries, name: str, known: Collection[str]) -> None:
    given = words.given.get(name)
    if isinstance(given, dict) and given.keys() - set(known):
        words.refuse(name, f"a table with an entry per table: {', '.join(known)}")
