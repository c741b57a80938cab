"""
How long epochs and global checkpoints of a cluster last, from its config.ini.

Source: MySQL manual, "Defining NDB Cluster Data Nodes": TimeBetweenEpochs and TimeBetweenGlobalCheckpoints.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import attrs

from conflict.config.text_file import located, read_text
from conflict.errors import ConfigurationError
from ndb_formats.types.digits import whole_number

__all__ = ["EpochTimes", "load_epoch_times", "parse_epoch_times"]

_SECTION = re.compile(r"\[(?P<name>[^\]]*)\]")
_SETTING = re.compile(r"(?P<name>\w+)\s*[=:]\s*(?P<value>.*)")
_OF_DATA_NODES = ("ndbd default", "db default", "ndbd", "db")
_FIELDS = {"timebetweenepochs": "between_epochs", "timebetweenglobalcheckpoints": "between_checkpoints"}


@attrs.frozen
class EpochTimes:
    """
    The two times, in milliseconds.

    Attributes:
        between_epochs: ``TimeBetweenEpochs``; 0 makes one epoch of each global checkpoint.
        between_checkpoints: ``TimeBetweenGlobalCheckpoints``.
    """

    between_epochs: int = 100
    between_checkpoints: int = 2000

    @property
    def epochs(self) -> int:
        """How many epochs a global checkpoint has."""
        return math.ceil(self.between_checkpoints / self.between_epochs) if self.between_epochs else 1


def load_epoch_times(path: Path) -> EpochTimes:
    """
    Read the times from a cluster's config.ini.

    Raises:
        ConfigurationError: It cannot be read, or a time is no number; the message has the file and the line.
    """
    text = read_text(path)
    with located(path):
        return parse_epoch_times(text)


def parse_epoch_times(text: str) -> EpochTimes:
    """
    Return the times that a config.ini sets for its data nodes; of nodes that differ, those with most epochs.

    Raises:
        ConfigurationError: The text has no section for data nodes, or a time is no number.
    """
    shared, nodes, here, known = dict[str, int](), list[dict[str, int]](), dict[str, int](), False
    for number, full_line in enumerate(text.splitlines(), 1):
        line = full_line.split("#", 1)[0].strip()
        if section := _SECTION.fullmatch(line):
            here = {}
            name = " ".join(section["name"].lower().split())
            known = known or name in _OF_DATA_NODES
            if name in _OF_DATA_NODES[:2]:
                here = shared
            elif name in _OF_DATA_NODES:
                nodes.append(here)
        elif setting := _SETTING.fullmatch(line):
            field = _FIELDS.get(setting["name"].lower())
            if field is not None:
                here[field] = _milliseconds(setting["name"], setting["value"], number)
    if not known:
        message = "it has no section [ndbd] or [ndbd default]; give the config.ini of the management node"
        raise ConfigurationError(message)
    times = [EpochTimes(**{**shared, **node}) for node in nodes] or [EpochTimes(**shared)]
    return max(times, key=lambda each: each.epochs)


def _milliseconds(name: str, value: str, line: int) -> int:
    milliseconds = whole_number(value.strip())
    if milliseconds is None:
        message = f"line {line}: {name} is {value.strip()[:40]!r}; give a number of milliseconds"
        raise ConfigurationError(message)
    return milliseconds
