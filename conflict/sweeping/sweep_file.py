"""
The file that describes a sweep. docs/sweep.md describes its entries.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from conflict.config.local_paths import refuse_address
from conflict.config.text_file import located, parsed_toml, read_text
from conflict.errors import ConfigurationError
from conflict.model.model_file import parse_model, with_preset
from conflict.model.words import Words
from conflict.sweeping.axes import document_at

__all__ = ["Point", "Sweep", "load_sweep"]

Point = Mapping[str, Any]  # a value for each axis
_MOST_RUNS = 1_000_000


@attrs.frozen
class Sweep:
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


def load_sweep(path: Path, model_file: Path | None = None) -> Sweep:
    """
    Read a file that describes a sweep; every point of it is a model that can be simulated.

    Args:
        path: The file.
        model_file: The file of the model, in place of what the file says; None for that.

    Raises:
        ConfigurationError: Something in it is missing or wrong.
    """
    text = read_text(path)
    with located(path):
        words = Words("", parsed_toml(text))
        seeds = words.whole("seeds", 1, low=1)
        axes = _axes(words.table("grid"), seeds)
        given = words.value("model") if model_file is None else str(model_file.absolute())
        model = _model(given, path)
        words.value("model")  # known, also where the option takes its place
        words.finish()
        sweep = Sweep(model, axes, seeds)
        for point in sweep.points():
            try:
                parse_model(document_at(model, point))
            except ConfigurationError as error:
                where = ", ".join(f"{name} {value}" for name, value in point.items())
                message = f"at {where}: {_model_name(given)}{error}"
                raise ConfigurationError(message) from error
    return sweep


def _axes(words: Words, seeds: int) -> dict[str, tuple[Any, ...]]:
    axes: dict[str, tuple[Any, ...]] = {}
    points = 1
    if "seed" in words:
        words.refuse("seed", "no seeds as an axis, but their number as seeds, above [grid]")
    for name, values in words.given.items():
        if not isinstance(values, list) or not values or any(values.count(each) > 1 for each in values):
            words.refuse(name, "a list of different values")
        axes[name] = tuple(values)
        points *= len(values)
    if not axes:
        message = "[grid] has no axes; name some, each with a list of values"
        raise ConfigurationError(message)
    if points * seeds > _MOST_RUNS:
        message = f"[grid] makes {points * seeds:,} runs, {seeds:,} at each point; at most {_MOST_RUNS:,} are possible"
        raise ConfigurationError(message)
    return axes


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
