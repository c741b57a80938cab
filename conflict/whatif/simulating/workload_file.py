"""
The workload of a file that describes a simulation, in YCSB's words where it has words for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conflict.whatif.simulating.configuration import ModelTable
from conflict.whatif.simulating.kernels.world import Wish
from conflict.whatif.simulating.key_choice import KeyChoice, Weighted, key_choice
from conflict.whatif.simulating.toml_entries import SECOND, TomlEntries, is_number
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
    columns = words.value("columnsperupdate", 1)
    if columns != "all":
        columns = words.whole("columnsperupdate", 1, low=1)
    found = Workload(
        rates=_rates(words),
        shapes=_shapes(words, numbers),
        slot=words.time("slot_seconds", 1, SECOND, low=0.001),
        by_epochs=words.text("slots", "users", ("users", "epochs")) == "epochs",
        keys=_keys(words, numbers),
        columns=0 if columns == "all" else columns,
        column_sets=_column_sets(words, tables),
        affinity=words.number("affinity", 0, high=1),
        inserts=_inserts(words, numbers),
        operations=words.whole("operationcount", 0, high=2**53),
        think=words.time("think_ms"),
        checks=words.switch("check_reads"),
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
    given, known = words.value("insertkeys", InsertKeys.OWN.value), tuple(InsertKeys)
    if not isinstance(given, Mapping):
        return dict.fromkeys(numbers.values(), InsertKeys(words.text("insertkeys", InsertKeys.OWN.value, known)))
    each = words.table("insertkeys")
    _refuse_unknown(words, "insertkeys", given, numbers)
    return {numbers[name]: InsertKeys(each.text(name, InsertKeys.OWN.value, known)) for name in given}


def _rates(words: TomlEntries) -> tuple[float, ...]:
    given = words.value("transactions_per_second", 100)
    rates = given if isinstance(given, list) else [given]
    if not rates or not all(is_number(each, high=10**9) for each in rates):
        words.refuse("transactions_per_second", "a number, or a list with a number per slot")
    return tuple(float(each) for each in rates)


def _mix(words: TomlEntries, numbers: Mapping[str, int]) -> Mix:
    proportions = {wish: words.number(name, high=1) for name, wish in _PROPORTIONS.items()}
    if not any(proportions.values()):
        proportions = {Wish.UPDATE: 1.0}
    given = words.weights("tables")
    _refuse_unknown(words, "tables", given, numbers)
    tables = {numbers[name]: weight for name, weight in given.items()} or dict.fromkeys(numbers.values(), 1.0)
    return Mix(proportions, _sizes(words), tables, words.whole("tablespertransaction", 1, low=1, high=MOST_ROWS))


def _sizes(words: TomlEntries) -> dict[int, float]:
    """Return the weight of each number of rows per transaction: one number, or a table of weights."""
    given = words.value("rowspertransaction", 1)
    if isinstance(given, Mapping):
        weights = words.weights("rowspertransaction")
        if not weights or not all(size.isdecimal() and 0 < int(size) <= MOST_ROWS for size in weights):
            words.refuse("rowspertransaction", f"a number of rows, or weights of numbers of rows, up to {MOST_ROWS:,}")
        return {int(size): weight for size, weight in weights.items()}
    return {words.whole("rowspertransaction", 1, low=1, high=MOST_ROWS): 1.0}


def _pairs(words: TomlEntries, numbers: Mapping[str, int]) -> Pairs:
    """Return wishes with weights: [wish, table, weight]."""
    given: Any = words.value("wishes")
    try:
        pairs = tuple((WISHES[wish], numbers[table]) for wish, table, _ in given)
        weights = tuple(_weight(weight) for _, _, weight in given)
    except (TypeError, ValueError, KeyError):
        words.refuse("wishes", f"a list of [wish, table, weight]; wishes are {', '.join(WISHES)}")
    if not sum(weights):
        words.refuse("wishes", "weights of which one is not 0")
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
        words.refuse("transactions", "weights of which one is not 0, and a wish in each")
    return Listed(tuple(shapes), tuple(weights))


def _keys(words: TomlEntries, numbers: Mapping[str, int]) -> dict[int, KeyChoice]:
    """Return how rows are chosen: by weights where a table has some, else by the distribution."""
    parameters = {_OWN_WORDS[name]: words.number(name, low=0) for name in _DISTRIBUTION if name in words}
    common = key_choice(words.text("requestdistribution", "uniform"), **parameters)
    found: dict[int, KeyChoice] = dict.fromkeys(numbers.values(), common)
    weights = words.table("keyweights")
    _refuse_unknown(words, "keyweights", weights.given, numbers)
    for name in weights.given:
        each = weights.value(name)
        if not isinstance(each, list) or not all(map(is_number, each)) or not sum(each):
            weights.refuse(name, "a list of weights, one per row")
        found[numbers[name]] = Weighted(tuple(float(weight) for weight in each))
    return found


def _column_sets(words: TomlEntries, tables: Sequence[ModelTable]) -> dict[int, tuple[tuple[int, float], ...]]:
    """Return which columns updates of a table set, by table: [[[column numbers], weight], ...]."""
    given = words.table("columnsets")
    _refuse_unknown(words, "columnsets", given.given, {table.name: 0 for table in tables})
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
        if not sum(weight for _, weight in found[number]):
            given.refuse(table.name, "weights of which one is not 0")
    return found


def _mask(columns: Sequence[int], known: int) -> int:
    """Return data columns, given by their numbers from 1, as bits; ValueError for a column that is not there."""
    if not all(column in range(1, known + 1) for column in columns):
        raise ValueError
    return sum(1 << (column - 1) for column in set(columns))


def _weight(given: object) -> float:
    """Return a weight; ValueError for what is none."""
    if not is_number(given):
        raise ValueError
    return float(given)


def _refuse_unknown(words: TomlEntries, name: str, given: Mapping[str, Any], numbers: Mapping[str, int]) -> None:
    if given.keys() - numbers.keys():
        words.refuse(name, f"an entry per table: {', '.join(numbers)}")
