"""
A server's variables, from its option file or from what the server says of itself.

    my.cnf              the groups that mysqld reads: [mysqld], [server], [mysqld-9.7]; else a variable has its default
    SHOW VARIABLES      as a table with lines around it, or as names and values with tabs between them (`mysql --batch`)
    JSON                an object of names and values, or the rows of SHOW VARIABLES as objects

The content of a file tells which of these it is.

Source: MySQL manual, "Using Option Files", "NDB Cluster System Variables"; defaults are those of NDB Cluster 9.

How long epochs and global checkpoints of a cluster last, from its config.ini.

Source: MySQL manual, "Defining NDB Cluster Data Nodes": TimeBetweenEpochs and TimeBetweenGlobalCheckpoints.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from conflict.config.text_file import located, read_text
from conflict.errors import ConfigurationError
from conflict.rules.replication_filter import FILTER_OPTIONS
from conflict.rules.server_variables import VARIABLE_OF, VARIABLES
from ndb_formats.cursor import whole_number
from ndb_formats.rules.update_format import switch

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


# Of the variables that matter to replication between clusters.
DEFAULTS: Mapping[str, str] = {
    "binlog_format": "ROW",
    "log_bin": "ON",
    "log_replica_updates": "ON",
    "ndb_applier_conflict_role": "NONE",
    "ndb_log_apply_status": "OFF",
    "ndb_log_bin": "OFF",
    "ndb_log_exclusive_reads": "OFF",
    "ndb_log_row_slice_count": "1",
    "ndb_log_row_slice_id": "0",
    "ndb_log_transaction_id": "OFF",
    "ndb_log_update_as_write": "ON",
    "ndb_log_update_minimal": "OFF",
    "ndb_log_updated_only": "ON",
    "replica_type_conversions": "",
    "server_id": "1",
}
# Variables that are on or off.
_SWITCHES = {each.name for each in VARIABLES if each.default in ("ON", "OFF")} - {"gtid_mode", "replica_skip_errors"}
# Options that a server takes more than once: all values count.
_REPEATED = (*FILTER_OPTIONS, "binlog_do_db", "binlog_ignore_db")
_GROUP = re.compile(r"\[(?P<name>[^\]]*)\]")
_OF_EVERY_SERVER = {"datadir", "hostname", "port", "version"}
_READ_BY_SERVER = re.compile(r"(mysqld|server|mysqld-\d+\.\d+)", re.IGNORECASE)
_SWITCHED = {"skip": ("OFF", "ON"), "disable": ("OFF", "ON"), "enable": ("ON", "OFF")}


@attrs.frozen(eq=False)
class ServerVariables(Mapping[str, str]):
    """
    A server's variables: values by name, names in small letters with underscores, and in their present spelling.

    Attributes:
        known: The values.
        options: Names and values as they are written, in order; names with underscores, in their own spelling.
        complete: Whether a variable that is not written has its default, as in an option file.
    """

    known: Mapping[str, str]
    options: tuple[tuple[str, str], ...] = ()
    complete: bool = False

    def __getitem__(self, name: str) -> str:
        return self.known[name]

    @property
    def are_all(self) -> bool:
        """Whether they are all that a running server printed: it has no others, and those have these names."""
        return not self.complete and self.known.keys() >= _OF_EVERY_SERVER

    @property
    def lack_ndb(self) -> bool:
        """Whether they are those of a server without NDB."""
        return self.are_all and not any(name.startswith("ndb_") for name in self.known)

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)


def as_server_variables(given: Mapping[str, str]) -> ServerVariables:
    """Return variables that are a mapping of names to values as such a value."""
    return given if isinstance(given, ServerVariables) else ServerVariables(given, tuple(given.items()))


def load_server_variables(path: Path) -> ServerVariables:
    """
    Read a server's variables from a file.

    Raises:
        ConfigurationError: It cannot be read, or holds no variables; the message has the file and the line.
    """
    text = read_text(path)
    with located(path):
        return parse_server_variables(text)


def parse_server_variables(text: str) -> ServerVariables:
    """
    Return a server's variables.

    Raises:
        ConfigurationError: The text holds no variables.
        SettingError: A variable that is on or off has another value.
    """
    in_force: Mapping[str, str] = {}
    if text.lstrip().startswith("{") or re.match(r"\s*\[\s*[{\]]", text):
        options = list(_from_json(text))
    elif groups := [match["name"].strip() for line in text.splitlines() if (match := _GROUP.match(line.strip()))]:
        read = any(map(_READ_BY_SERVER.fullmatch, groups))
        options, in_force = (list(_from_option_file(text)), DEFAULTS) if read else ([], {})
    else:
        options = list(_from_rows(text))
    found = {**in_force, **_together(options)}
    if not found:
        message = (
            "it holds no variables; give a my.cnf with a group [mysqld], or what SHOW GLOBAL VARIABLES prints, as text "
            "or JSON"
        )
        raise ConfigurationError(message)
    for name, value in found.items():
        if name in _SWITCHES:
            switch(name, value)
    return ServerVariables(found, tuple(options), complete=bool(in_force))


def _together(options: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return options by name: of one that is set more than once the last value counts, of a filter all do."""
    found: dict[str, str] = {}
    for written, value in options:
        name = VARIABLE_OF[written].name if written in VARIABLE_OF else written
        found[name] = f"{found[name]},{value}" if name in _REPEATED and name in found else value
    return found


def _name(text: str) -> str:
    return text.strip().lower().replace("-", "_")


def _from_json(text: str) -> Iterator[tuple[str, str]]:
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        message = f"line {error.lineno}: this is not JSON ({error.msg})"
        raise ConfigurationError(message) from error
    if isinstance(document, list):
        document = dict(map(_row_of_json, document))
    for name, value in document.items():
        if isinstance(value, dict | list):
            message = f"the value of {name} is not a text or a number; give an object of names and values of one server"
            raise ConfigurationError(message)
        yield _name(name), _text(value)


def _row_of_json(row: Any) -> tuple[str, Any]:
    cells = {str(name).lower(): value for name, value in row.items()} if isinstance(row, dict) else {}
    if "variable_name" not in cells or not {"value", "variable_value"} & set(cells):
        message = "a row has no Variable_name and Value; give the rows of SHOW GLOBAL VARIABLES"
        raise ConfigurationError(message)
    return str(cells["variable_name"]), cells.get("value", cells.get("variable_value"))


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "ON" if value else "OFF"
    return "" if value is None else str(value)


def _from_option_file(text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of the groups that mysqld reads."""
    for number, line in lines_of_groups(text, _READ_BY_SERVER):
        if line.startswith("!"):
            message = f"line {number}: {line} is not followed; give what SHOW GLOBAL VARIABLES prints instead"
            raise ConfigurationError(message)
        yield option_of_line(line)


def lines_of_groups(text: str, groups: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """
    Yield number and text of the options of an option file, and of its directives (``!include``), which may be anywhere.

    Args:
        text: The file.
        groups: The names of the groups whose options are wanted.
    """
    ours = False
    for number, full_line in enumerate(text.splitlines(), 1):
        line = full_line.strip()
        group = _GROUP.match(line)
        if group is not None:
            ours = groups.fullmatch(group["name"].strip()) is not None
        elif line.startswith("!") or (ours and line and line[0] not in "#;"):
            yield number, line


def option_of_line(line: str) -> tuple[str, str]:
    """
    Return name, with underscores, and value of a line of an option file; ON, of an option without a value.

    A prefix turns an option off or on; with the value 0 it does the opposite (recorded of MySQL 9.7.4).
    """
    name, equals, value = line.partition("=")
    name = _name(name.removeprefix("--")).removeprefix("loose_")
    value = value.strip()
    quoted = re.match(r"""(["'])(.*?)\1""", value)
    value = quoted[2] if quoted else re.sub(r"(^|\s)#.*$", "", value).strip()
    prefix, _, rest = name.partition("_")
    if prefix in _SWITCHED and rest and name not in VARIABLE_OF:
        return rest, _SWITCHED[prefix][value == "0"]
    # What log_bin is set to is the base name of the files, OFF and 0 too.
    return name, value if equals and name != "log_bin" else "ON"


def _from_rows(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if not line.strip() or line.startswith("+-"):
            continue
        if line.startswith("|"):
            name, _, value = line.strip().strip("|").partition("|")
        else:
            name, tab, value = line.partition("\t")
            if not tab:
                continue
        if name.strip().lower() != "variable_name":
            yield _name(name), value.strip()
