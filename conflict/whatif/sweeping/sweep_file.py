"""
The file that describes a sweep, and what each axis of its grid does to the document of a model (docs/sweep.md).
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import attrs
import numpy as np

from conflict.config.text_file import located, parsed_toml, read_text, refuse_address
from conflict.documents import Must, read, whole
from conflict.errors import ConfigurationError
from conflict.resolvers.resolver import Resolver, Rule
from conflict.resolvers.user_policies import load_functions, reference_of
from conflict.whatif.estimates import SEEDS
from conflict.whatif.simulating.model_file import parse_model, with_preset
from conflict.whatif.simulating.toml_entries import Number

Document = dict[str, Any]


def document_at(base: Mapping[str, Any], point: Mapping[str, Any]) -> Document:
    """
    Return the document of a model at a point of a grid.

    Args:
        base: The document of the model; see `conflict.whatif.simulating.model_file.parse_model`. It stays as it is.
        point: A value for each axis: one of `AXES`, or an entry of the document, as ``workload.insertproportion``.

    Raises:
        ConfigurationError: An entry is inside something that is no table.
    """
    document: Document = copy.deepcopy(dict(base))
    # Entries first: an outage is in the middle of the seconds that the point gives.
    for name, value in sorted(point.items(), key=lambda axis: axis[0] in AXES):
        if name in AXES:
            AXES[name](document, value)
        else:
            _set(document, name, value)
    return document


def _set(document: Document, name: str, value: Any) -> None:
    """Set an entry, whose tables have dots between them."""
    *tables, entry = name.split(".")
    if tables[:1] == ["clusters"]:
        _clusters(document)  # both, in their order: the first one is the primary
    _table(document, *tables)[entry] = value


def _table(document: Document, *names: str) -> Document:
    """Return a table within a document, which is made if it is not there."""
    found = document
    for name in names:
        found = found.setdefault(name, {})
        if not isinstance(found, dict):
            message = (
                f"[grid] {'.'.join(names)}: {name} is no table of the model; give an entry such as workload.retries"
            )
            raise ConfigurationError(message)
    return found


def _clusters(document: Document) -> list[Document]:
    """Return the tables of both clusters."""
    clusters = _table(document, "clusters")
    return [_table(clusters, name) for name in list(clusters) or ["A", "B"]]


def _forget(cluster: Document, *names: str) -> None:
    """Remove what a cluster has of its own in its workload, so that the workload of all counts."""
    if "workload" in cluster:
        work = _table(cluster, "workload")
        for name in names:
            work.pop(name, None)


def _tables(document: Document) -> list[Document]:
    """Return the tables of a model that are described one by one."""
    tables = document.get("tables")
    return [table for table in tables if isinstance(table, dict)] if isinstance(tables, list) else []


def _binlog_type(document: Document, value: Any) -> None:
    document["binlog_type"] = value
    for table in _tables(document):
        table.pop("binlog_type", None)


def _function(document: Document, value: Any) -> None:
    """Give a function to the tables that have one, as `compare` does; to all of them if none has."""
    tables, common = _tables(document), document.get("function")
    without = [table for table in tables if not table.get("function", common)]
    document["function"] = value
    for table in tables:
        table.pop("function", None)
    for table in without if len(without) < len(tables) else []:
        table["function"] = {}


def _latency(document: Document, value: Any) -> None:
    for cluster in _clusters(document):
        link = _table(cluster, "link")
        link["latency_ms"] = value
        if link.pop("trace_ms", None) is not None:
            link.pop("latency", None)


def _clock_skew(document: Document, value: Any) -> None:
    _clusters(document)[-1]["clock_skew_ms"] = value


def _rate(document: Document, value: Any) -> None:
    for cluster in _clusters(document):
        _forget(cluster, "transactions_per_second")
    _table(document, "workload")["transactions_per_second"] = value


def _outage(document: Document, value: Any) -> None:
    seconds = read(Number, document.get("seconds", 60), "seconds")
    value = read(Number, value, "outage_seconds")
    for cluster in _clusters(document):
        _table(cluster, "link")["outages"] = [[seconds / 2, seconds / 2 + value]] if value else []


def _skew(document: Document, value: Any) -> None:
    for cluster in _clusters(document):
        _forget(cluster, "requestdistribution", "zipfianconstant")
    work = _table(document, "workload")
    work["requestdistribution"] = "zipfian" if value else "uniform"
    work.pop("zipfianconstant", None)
    if value:
        work["zipfianconstant"] = value


AXES: dict[str, Callable[[Document, Any], None]] = {
    "function": _function,
    "binlog_type": _binlog_type,
    "latency_ms": _latency,
    "clock_skew_ms": _clock_skew,
    "zipfianconstant": _skew,
    "transactions_per_second": _rate,
    "outage_seconds": _outage,
}


Point = Mapping[str, Any]  # a value for each axis
_MOST_RUNS = 1_000_000


@attrs.frozen
class Design:
    """
    A grid of simulations.

    Attributes:
        model: The document that all of them begin with.
        axes: By name, the values that are tried.
        seeds: How many runs there are at each point.
    """

    model: Mapping[str, Any]
    axes: Mapping[str, tuple[Any, ...]]
    seeds: int = 1

    def points(self) -> Iterator[dict[str, Any]]:
        """Yield all points of the grid."""
        for values in itertools.product(*self.axes.values()):
            yield dict(zip(self.axes, values, strict=True))

    @property
    def first_seed(self) -> int:
        """The seed of the first run at each point."""
        return int(self.model.get("seed", 1))


def _differ(values: list[Any]) -> bool:
    return bool(values) and all(values.count(each) == 1 for each in values)


@attrs.frozen
class _File:
    """A file that describes a sweep."""

    grid: dict[str, Annotated[list[Any], Must("a list of different values", _differ)]] = attrs.field(factory=dict)
    seeds: Annotated[int, whole(1, 2**31 - 1)] = SEEDS
    model: Any = None


def load_sweep(path: Path, model: Path | Mapping[str, Any] | None = None) -> Design:
    """
    Read a file that describes a sweep; every point of it is a model that can be simulated.

    Args:
        path: The file.
        model: The model, or its file, in place of what the file says; None for that.

    Raises:
        ConfigurationError: Something in it is missing or wrong.
    """
    text = read_text(path)
    with located(path):
        file: _File = read(_File, parsed_toml(text))
        given = str(model.absolute()) if isinstance(model, Path) else file.model if model is None else model
        return _design(file, given, path)


def design_of(model: Path | Mapping[str, Any], grid: Mapping[str, Iterable[Any]]) -> Design:
    """
    Return the sweep of a model, or of that in a file, over a grid; every point of it can be simulated.

    Args:
        model: The model, or its file.
        grid: By axis, the values that are tried; numbers of numpy are those of Python, and resolvers are named.

    Raises:
        ConfigurationError: Something in it is missing or wrong.
    """
    axes = {name: [_plain(each) for each in values] for name, values in grid.items()}
    given = str(model.absolute()) if isinstance(model, Path) else model
    return _design(read(_File, {"grid": axes}), given, Path())


def _plain(value: Any) -> Any:
    """
    Return a value as a file has it.

    Raises:
        ConfigurationError: It is a resolver that is found by no name.
    """
    if callable(value):
        return _name_of(value)
    return value.item() if isinstance(value, np.generic) else value


def _name_of(given: Resolver | Rule) -> str:
    """Return the name by which the processes of a sweep find a resolver."""
    name = reference_of(given)
    try:
        found = load_functions([name])[-1]
    except ConfigurationError:
        found = None
    if not isinstance(given, Resolver) or found is not given.spec:
        message = (
            f"{name} does not lead back to a resolver, by which the processes of a sweep would find it; decorate a "
            "function at the top of a module with conflict.resolver, or name a program in [[conflict_function]]"
        )
        raise ConfigurationError(message)
    return name


def _design(file: _File, given: Any, path: Path) -> Design:
    """Return a sweep; `given` is its model, or the name of that one's file beside `path`."""
    design = Design(_model(given, path), _axes(file), file.seeds)
    for point in design.points():
        try:
            parse_model(document_at(design.model, point))
        except ConfigurationError as error:
            where = ", ".join(f"{name} {value}" for name, value in point.items())
            message = f"at {where}: {_model_name(given)}{error}"
            raise ConfigurationError(message) from error
    return design


def _axes(file: _File) -> dict[str, tuple[Any, ...]]:
    if "seed" in file.grid:
        message = "grid.seed is an axis; give the number of seeds as seeds, above [grid]"
        raise ConfigurationError(message)
    if not file.grid:
        message = "[grid] has no axes; name some, each with a list of values"
        raise ConfigurationError(message)
    runs = math.prod(map(len, file.grid.values())) * file.seeds
    if runs > _MOST_RUNS:
        message = f"[grid] makes {runs:,} runs, {file.seeds:,} at each point; at most {_MOST_RUNS:,} are possible"
        raise ConfigurationError(message)
    return {name: tuple(values) for name, values in file.grid.items()}


def _model_name(given: Any) -> str:
    return f"model {given}: " if isinstance(given, str) else ""


def _model(given: Any, path: Path) -> dict[str, Any]:
    """Return the document of the model; `given` is it, or the name of its file beside `path`."""
    if isinstance(given, str):
        refuse_address(given, "model")
        file = path.parent / given
        text = read_text(file)
        with located(file):
            return with_preset(parsed_toml(text))
    if not isinstance(given, Mapping):
        message = "there is no model; give the name of its file, or the model as a table, or the option --model"
        raise ConfigurationError(message)
    return with_preset(given)
