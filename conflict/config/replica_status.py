r"""
What ``SHOW REPLICA STATUS`` prints of the channels of a replica: the filters in force on each, and how far it is.

As lines below each other (``\G``), as a box (``mysql --table``) or with tabs (``mysql --batch``), with the present
names or those of ``SHOW SLAVE STATUS``.

Source: MySQL manual, "SHOW REPLICA STATUS Statement".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from conflict.config.text_file import located, read_text
from conflict.errors import ConfigurationError
from conflict.rules.replication_filter import FILTER_OPTIONS, ReplicationFilter
from ndb_formats.cursor import whole_number

_NEEDED = "replicate_do_db"
NO_CHANNEL = "Empty set"  # as the client says that there is no row
_LINE = re.compile(r"\s*(?P<name>[A-Za-z_]+): ?(?P<value>.*)")
_ROW = re.compile(r"\*{5,} *\d+\. row *\*{5,}")
# A rewrite rule has a comma of its own: (from,to).
_VALUE = re.compile(r"\([^()]*\)|[^,()]+")


@attrs.frozen
class ReplicaChannel:
    """
    A channel of a replica.

    Attributes:
        name: Its name; empty for the default channel.
        source_id: Server id of its source; 0 if it has not been connected, None if the text does not say it.
        filter: Its filters and rewrite rules.
        ignored: The server ids whose changes it leaves out.
        behind: How many seconds the applier is behind the source; None if it stands still, or the text does not say it.
        receiver_error: The error with which the receiver stopped; 0 without one.
        receiver_words: What the server says of it.
        receiver: ``Yes``, ``No`` or ``Connecting``; empty if the text does not say it.
        applier: ``Yes`` or ``No``; empty if the text does not say it.
        applier_error: The error with which the applier stopped; 0 without one.
        applier_words: What the server says of it.
        delay: How many seconds the applier waits before it applies a change.
        host: The host of the source to which the receiver connects; empty if the text does not say it.
        port: Its port; 0 if the text does not say it.
        user: The account with which the receiver connects; empty if the text does not say it.
        executed: Log and position of the source up to which changes are applied; empty and 0 if it is not said.
    """

    name: str
    source_id: int | None
    filter: ReplicationFilter
    ignored: frozenset[int] = frozenset()
    behind: int | None = None
    receiver_error: int = 0
    receiver_words: str = ""
    receiver: str = ""
    applier: str = ""
    applier_error: int = 0
    applier_words: str = ""
    delay: int = 0
    host: str = ""
    port: int = 0
    user: str = ""
    executed: tuple[str, int] = ("", 0)

    @property
    def state(self) -> str:
        """Which of its threads do not work, in words; empty if both do."""
        receiver = {"No": "its receiver is stopped", "Connecting": "its receiver has no connection"}
        parts = [receiver.get(self.receiver, "")]
        if self.applier == "No":
            parts.append(f"its applier is stopped{f' (error {self.applier_error})' * bool(self.applier_error)}")
        return ", ".join(filter(None, parts))


def load_replica_status(path: Path) -> tuple[ReplicaChannel, ...]:
    """
    Read the channels of a file.

    Raises:
        ConfigurationError: It cannot be read, or holds no such output; the message has the file.
    """
    text = read_text(path)
    with located(path):
        return parse_replica_status(text)


def parse_replica_status(text: str) -> tuple[ReplicaChannel, ...]:
    """
    Return the channels of a text; none if it is the client's "Empty set".

    Raises:
        ConfigurationError: It is no output of the statement.
    """
    if text.startswith(NO_CHANNEL):
        return ()
    channels = tuple(_channel(row) for row in _rows(text) if _NEEDED in row)
    if not channels:
        message = "it has no Replicate_Do_DB; give what SHOW REPLICA STATUS prints, with \\G, as a table or with tabs"
        raise ConfigurationError(message)
    return channels


def _rows(text: str) -> Iterator[dict[str, str]]:
    """Yield the rows, values by name in small letters."""
    lines = text.splitlines()
    header = next((line for line in lines if "Replicate_Do_DB" in line and not _LINE.fullmatch(line)), None)
    if header is None:
        yield from _below_each_other(lines)
        return
    names = [_name(each) for each in _cells(header)]
    for line in lines[lines.index(header) + 1 :]:
        cells = _cells(line)
        if len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def _cells(line: str) -> list[str]:
    cells = (
        line.strip("\n").split("\t") if "\t" in line else line.strip().removeprefix("|").removesuffix("|").split("|")
    )
    return [each.strip() for each in cells]


def _name(text: str) -> str:
    """Return the present name of a column, in small letters."""
    return text.lower().replace("master", "source").replace("slave", "replica")


def _below_each_other(lines: list[str]) -> Iterator[dict[str, str]]:
    row: dict[str, str] = {}
    for line in lines:
        if _ROW.search(line):
            yield row
            row = {}
        elif found := _LINE.fullmatch(line):
            row.setdefault(_name(found["name"]), found["value"].strip())
    yield row


def _channel(row: dict[str, str]) -> ReplicaChannel:
    options = {name: [each.strip() for each in _VALUE.findall(row.get(name, ""))] for name in FILTER_OPTIONS}
    ids = re.findall(r"\d+", row.get("replicate_ignore_server_ids", ""))
    source = row.get("source_server_id")
    return ReplicaChannel(
        row.get("channel_name", ""),
        None if source is None else whole_number(source),
        ReplicationFilter.of({name: [each for each in values if each] for name, values in options.items()}),
        frozenset(map(int, ids)),
        whole_number(row.get("seconds_behind_source", "")),
        whole_number(row.get("last_io_errno", "")) or 0,
        row.get("last_io_error", ""),
        row.get("replica_io_running", ""),
        row.get("replica_sql_running", ""),
        whole_number(row.get("last_sql_errno", "")) or 0,
        row.get("last_sql_error", ""),
        whole_number(row.get("sql_delay", "")) or 0,
        row.get("source_host", ""),
        whole_number(row.get("source_port", "")) or 0,
        row.get("source_user", ""),
        (row.get("relay_source_log_file", ""), whole_number(row.get("exec_source_log_pos", "")) or 0),
    )
