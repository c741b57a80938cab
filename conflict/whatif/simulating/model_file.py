"""
The file that describes a simulation: read, written, and laid over a preset; docs/model.md describes its entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import attrs

from conflict.config.text_file import located, parsed_toml, read_text
from conflict.documents import Must
from conflict.errors import ConfigurationError
from conflict.resolvers.user_policies import Given, add_functions, asked_function, policies_of_tables
from conflict.rules.functions import FUNCTIONS, Argument, FunctionSpec, typed_function
from conflict.rules.replication_table import Role
from conflict.whatif.simulating.configuration import (
    MOST_COLUMNS,
    MOST_EPOCHS,
    ApplierSettings,
    Latency,
    Link,
    Model,
    ModelTable,
    Site,
    refuse_unconnected,
)
from conflict.whatif.simulating.kernels.world import Stamp
from conflict.whatif.simulating.toml_entries import LONGEST, MILLISECOND, SECOND, TomlEntries
from conflict.whatif.simulating.workload_file import workload_of
from ndb_formats.errors import did_you_mean
from ndb_formats.rules.update_format import effective_format, parse_binlog_type

PRESETS = {
    # Transfers between two accounts: both rows are read, and written after a while if nobody changed them.
    "bank": """
        [[tables]]
        name = "accounts"
        recordcount = 100_000
        columns = 2
        [[tables]]
        name = "transfers"
        recordcount = 0
        columns = 4
        [workload]
        transactions_per_second = 200
        transactions = [[1, [["update", "accounts"], ["update", "accounts"], ["insert", "transfers"]]]]
        think_ms = 20
        check_reads = true
        retries = 3
        retry_delay_ms = 10
        affinity = 0.8
    """,
    # Orders take from stock; few articles sell most.
    "inventory": """
        [[tables]]
        name = "stock"
        recordcount = 10_000
        columns = 3
        [[tables]]
        name = "orders"
        recordcount = 0
        columns = 6
        [workload]
        transactions_per_second = 100
        transactions = [
            [6, [["update", "stock"], ["insert", "orders"]]],
            [3, [["update", "stock"], ["update", "stock"], ["insert", "orders"]]],
            [1, [["update", "stock"]]],
        ]
        requestdistribution = "zipfian"
    """,
    # Sessions are made, touched and removed, mostly where their user is; an ORM writes whole rows.
    "sessions": """
        [[tables]]
        name = "sessions"
        recordcount = 50_000
        columns = 5
        [workload]
        transactions_per_second = 500
        transactions = [[90, [["put", "sessions"]]], [10, [["swap", "sessions"]]]]
        columnsperupdate = "all"
        affinity = 0.95
    """,
    # A few counters that everybody raises.
    "counters": """
        [[tables]]
        name = "counters"
        recordcount = 200
        columns = 1
        x = "version"
        [workload]
        transactions_per_second = 100
        requestdistribution = "hotspot"
        hotspotdatafraction = 0.1
        hotspotopnfraction = 0.9
    """,
}


_TABLE_ENTRIES = ("tables", "clusters", "workload")
_BLOCKS = ("workload", "link", "applier")
WIDTH = 110


def model_text(document: Mapping[str, Any]) -> str:
    """Return the text of a document that `conflict.whatif.simulating.learning.learn` made."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    yield from _entries({name: value for name, value in document.items() if name not in _TABLE_ENTRIES})
    for table in document["tables"]:
        yield "\n[[tables]]"
        yield from _entries(table)
    for name, cluster in document["clusters"].items():
        yield f"\n[clusters.{_key(name)}]"
        yield from _entries({entry: value for entry, value in cluster.items() if entry not in _BLOCKS})
        for block in _BLOCKS:
            yield f"\n[clusters.{_key(name)}.{block}]"
            yield from _entries(cluster[block])


def _entries(entries: Mapping[str, Any]) -> Iterator[str]:
    for name, value in entries.items():
        line = f"{_key(name)} = {_value(value)}"
        if len(line) <= WIDTH or not isinstance(value, list):
            yield line
        else:
            yield f"{_key(name)} = ["
            yield from _folded(value)
            yield "]"


def _folded(values: list[Any]) -> Iterator[str]:
    """Yield the elements of a list, as many on a line as fit."""
    line = "   "
    for text in map(_value, values):
        if len(line) + len(text) > WIDTH:
            yield line
            line = "   "
        line += f" {text},"
    yield line


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return repr(float(value))
    return json.dumps(value)


STAMPS = {"none": Stamp.NONE, "clock": Stamp.CLOCK, "version": Stamp.VERSION}
MOST_TRANSACTIONS = 50_000_000
MOST_WORKERS = 1024  # of replica_parallel_workers
MOST_SPREAD = 10  # of the logarithm of a latency; one in 1,000 is then 10 ** 13 times the median
_LATENCIES = ("constant", "normal", "lognormal", "trace")


def load_model(path: Path) -> Model:
    """
    Read a file that describes a simulation.

    Raises:
        ConfigurationError: Something in it is missing or wrong.
    """
    document = model_document(path)
    with located(path):
        return parse_model(document)


def model_document(path: Path) -> dict[str, Any]:
    """
    Read the entries of a file that describes a simulation.

    Raises:
        ConfigurationError: It cannot be read, or is not TOML.
    """
    text = read_text(path)
    with located(path):
        return parsed_toml(text)


def parse_model(document: Mapping[str, Any], functions: Sequence[FunctionSpec] = FUNCTIONS) -> Model:
    """
    Return the simulation that a document describes.

    Args:
        document: The document.
        functions: The known functions; the document can define and name more.

    Raises:
        ConfigurationError: Something in it is missing or wrong.
    """
    top = TomlEntries("", with_preset(document))
    clusters = top.table("clusters")
    names = tuple(clusters.given) or ("A", "B")
    if len(names) < 2:
        message = f"[clusters] has {names[0]} alone; a simulation is of two or more clusters"
        raise ConfigurationError(message)
    common = dict(top.table("workload").given)
    known = _Functions(add_functions(functions, policies_of_tables(top.value("conflict_function", []))))
    tables = _tables(top, names, known)
    roles = (Role.PRIMARY, Role.SECONDARY) if len(names) == 2 else (Role.NONE,) * len(names)
    model = Model(
        tuple(
            _site(clusters.table(name), name, number, role, common, tables)
            for number, (name, role) in enumerate(zip(names, roles, strict=True), start=1)
        ),
        tables,
        top.time("seconds", 60, SECOND, low=0.001),
        None if top.value("drain_seconds") is None else top.time("drain_seconds", unit=SECOND),
        top.whole("seed", 1),
        known.known,
    )
    # `preset` was read before; the others say what the model was learnt from, for reports.
    for name in ("preset", "learnt_from", "not_arrived", "starts_in_the_middle"):
        top.value(name)
    top.finish()
    refuse_unconnected(model)
    assert model.setups  # which refuses what a server does
    _refuse_too_much(model)
    return model


def with_preset(document: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return a document laid over the preset that it names, if it names one.

    Raises:
        ConfigurationError: There is no such preset.
    """
    rest = {key: value for key, value in document.items() if key != "preset"}
    if "preset" not in document:
        return rest
    name = document["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        message = f"preset {name!r} is not known{did_you_mean(str(name), PRESETS)}; give one of {', '.join(PRESETS)}"
        raise ConfigurationError(message)
    return _over(parsed_toml(PRESETS[name]), rest)


def _refuse_too_much(model: Model) -> None:
    """
    Refuse what memory does not hold.

    Raises:
        ConfigurationError: There are too many transactions or epochs.
    """
    seconds = model.duration / SECOND
    transactions = sum(sum(site.workload.rates) / len(site.workload.rates) * seconds for site in model.sites)
    if transactions > MOST_TRANSACTIONS:
        most = f"{MOST_TRANSACTIONS:,} are the most"
        message = f"that makes {transactions:,.0f} transactions, and {most}; simulate fewer seconds"
        raise ConfigurationError(message)
    epochs = model.epochs_in(next(model.ends()))
    if epochs > MOST_EPOCHS:
        message = (
            f"that makes {epochs:,.0f} epochs, and {MOST_EPOCHS:,} are the most; simulate fewer seconds, with shorter "
            "outages; one that has no end is [from], without its end"
        )
        raise ConfigurationError(message)


def _over(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with another one laid over it; lists are replaced."""
    merged = dict(under)
    for name, value in over.items():
        both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
        merged[name] = _over(merged[name], value) if both else value
    return merged


@attrs.define
class _Functions:
    """The functions that a document can use, and how it named those of a user's own."""

    known: tuple[FunctionSpec, ...]
    named: dict[str, str] = attrs.field(factory=dict)

    def asked(self, text: str) -> str:
        """Return a function as `conflict_fn` has it."""
        if text not in self.named:
            self.named[text], self.known = function_of_model(text, self.known)
        return self.named[text]


def function_of_model(given: Given, known: Sequence[FunctionSpec] = FUNCTIONS) -> tuple[str, tuple[FunctionSpec, ...]]:
    """
    Return a function as the tables of a model have it, and the functions that are known with it.

    Args:
        given: As for `asked_function`; the column that a resolver takes is x.
        known: The known functions.

    Raises:
        ConfigurationError: As of `asked_function`.
    """
    text, functions = asked_function(given, known)
    asks_column = isinstance(given, str) and "(" in given
    if len(functions) > len(known) and functions[-1].argument is Argument.COLUMN and not asks_column:
        text = f"{functions[-1].name}(x)"
    return text, functions


def _tables(top: TomlEntries, names: Sequence[str], functions: _Functions) -> tuple[ModelTable, ...]:
    """Return the tables; what a table does not say, the top of the file says for all."""
    general = {name: top.value(name) for name in ("function", "primary", "binlog_type", "x", "recordcount", "columns")}
    general = {name: value for name, value in general.items() if value is not None}
    given = top.value(
        "tables", [{"name": "usertable"}], Annotated[list[dict[str, Any]], Must("one [[tables]] per table", bool)]
    )
    tables = tuple(
        _table(TomlEntries(f"tables.{each.get('name', '?')}", {**general, **each}), names, functions) for each in given
    )
    known = [table.name for table in tables]
    if len(set(known)) < len(known) or not all(name.isidentifier() and len(name) <= 64 for name in known):
        top.refuse("tables", "tables that each have a name of their own, of up to 64 letters, digits and underscores")
    return tables


def _table(words: TomlEntries, names: Sequence[str], functions: _Functions) -> ModelTable:
    texts = _functions(words, names, functions)
    by_column = any("(x)" in text.replace(" ", "") for text in texts.values())
    binlog_type = parse_binlog_type(words.value("binlog_type", 7))
    if not effective_format(binlog_type).logged:
        words.refuse("binlog_type", "one under which changes are logged, else they reach no other cluster")
    table = ModelTable(
        words.value("name", "usertable", str),
        words.whole("recordcount", 1000, high=50_000_000),
        words.whole("columns", 4, low=1, high=MOST_COLUMNS),
        texts,
        binlog_type,
        STAMPS[words.word("x", "clock" if by_column else "none", tuple(STAMPS))],
        words.whole("row_bytes", 80),
    )
    words.finish()
    return table


def _functions(words: TomlEntries, names: Sequence[str], functions: _Functions) -> dict[str, str]:
    """Return the function of a table by cluster: one text for both, or for the primary; or a table by cluster."""
    given, primary = words.value("function", None, str | dict[str, str]), words.word("primary", names[0], names)
    if given is None:
        return {}
    if isinstance(given, dict):
        if given.keys() - set(names):
            words.refuse("function", f"a function per cluster: {', '.join(names)}")
        return {name: functions.asked(text) for name, text in given.items()}
    text = functions.asked(given)
    spec = typed_function(text, functions.known).spec
    return dict.fromkeys([primary] if spec.on_primary_alone else names, text)


def _site(
    words: TomlEntries, name: str, number: int, usual: Role, common: Mapping[str, Any], tables: Sequence[ModelTable]
) -> Site:
    """Return a cluster; its workload is the common one with its own entries laid over it."""
    work = TomlEntries(f"clusters.{name}.workload", _over(common, words.table("workload").given))
    site = Site(
        name,
        words.whole("server_id", number, low=1, high=2**32 - 1),
        workload_of(work, tables),
        words.value("role", usual, Role),
        _link(words.table("link")),
        _applier(words.table("applier")),
        words.time("epoch_ms", 100, low=1),
        words.time("checkpoint_ms", 2000, low=1),
        words.time("clock_skew_ms", 0, low=-(10.0**9)),
        words.value("replicates_from", None, Annotated[tuple[str, ...], Must("a list of names of clusters")]),
        words.value("ndb_log_transaction_dependency", False, bool),
    )
    if site.checkpoint < site.epoch:
        words.refuse("checkpoint_ms", "at least epoch_ms", site.checkpoint / MILLISECOND)
    words.finish()
    return site


_Moment = Annotated[
    list[float],
    Must(
        "[second, milliseconds]",
        lambda each: len(each) == 2 and 0 <= each[0] <= LONGEST / SECOND and 0 <= each[1] <= LONGEST / MILLISECOND,
    ),
]


def _link(words: TomlEntries) -> Link:
    kind = words.word("latency", "trace" if "trace_ms" in words else "constant", _LATENCIES)
    given = words.value("trace_ms", [], list[_Moment])
    if (kind == "trace") != bool(given):
        words.refuse("trace_ms", "a list of [second, milliseconds] for a latency that is a trace, and for no other", [])
    trace = tuple(sorted((round(moment * SECOND), round(each * MILLISECOND)) for moment, each in given))
    spread = words.time("spread") if kind == "normal" else words.number("spread", high=MOST_SPREAD)
    link = Link(
        Latency(kind, words.time("latency_ms", 0), spread, trace),
        words.whole("bytes_per_second", 0, high=2**53),
        words.spans("outages"),
    )
    words.finish()
    return link


def _applier(words: TomlEntries) -> ApplierSettings:
    applier = ApplierSettings(
        words.time("epoch_ms", 1),
        words.time("row_us", 10, 1),
        words.spans("stops"),
        words.whole("workers", 1, low=1, high=MOST_WORKERS),
    )
    words.finish()
    return applier
