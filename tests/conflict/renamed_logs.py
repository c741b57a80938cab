"""Recordings of two clusters with their databases under other names, as appliers with rewrite rules make it."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

from ndb_formats.binlog_reader import read_headers
from ndb_formats.constants import EventType

__all__ = ["rename_on_b", "renamed_log"]

HEADER, CHECKSUM = 19, 4


def renamed_log(file: Path, old: str, new: Callable[[str], str]) -> bytes:
    """
    Return a log in which a database has another name of as many characters; checksums fit.

    Args:
        file: The log.
        old: The name.
        new: Returns the new one: of the database of a table, and of an empty name for that of statements.
    """
    data = bytearray(file.read_bytes())
    for position, header in read_headers(file):
        body = bytes(data[position + HEADER : position + header.size - CHECKSUM])
        if header.type_code == EventType.TABLE_MAP_EVENT:
            before = bytes([len(old)]) + old.encode() + b"\0"
            table = body.partition(before)[2]
            name = new(table[1 : 1 + table[0]].decode()) if table else old
            body = body.replace(before, before.replace(old.encode(), name.encode()))
        elif header.type_code == EventType.QUERY_EVENT:
            body = body.replace(old.encode() + b"\0", new("").encode() + b"\0")
        data[position + HEADER : position + header.size - CHECKSUM] = body
        whole = bytes(data[position : position + header.size - CHECKSUM])
        data[position + len(whole) : position + header.size] = zlib.crc32(whole).to_bytes(CHECKSUM, "little")
    return bytes(data)


def rename_on_b(recording: Path, folder: Path) -> str:
    """
    Write a recording whose cluster B has its database under another name, with the rules and filters of both appliers.

    Returns:
        The new name.
    """
    scenario = json.loads((recording / "scenario.json").read_text("utf-8"))
    old = scenario["database"]
    new = old[:-1] + "x"
    for node, files in scenario["binlog_files"].items():
        for name in files:
            file = recording / name
            data = renamed_log(file, old, lambda _: new) if node.startswith("B") else file.read_bytes()
            (folder / name).write_bytes(data)
    scenario["database_of"] = {"B": new}
    given = scenario.get("filters", {})
    scenario["filters"] = {
        node: f"REPLICATE_REWRITE_DB=(({old},{new})), {given.get(node, '').replace(old, new)}"
        if node.startswith("B")
        else f"REPLICATE_REWRITE_DB=(({new},{old})), {given.get(node, '')}"
        for node in scenario["binlog_files"]
    }
    scenario["ndb_replication"] += [{**row, "db": new} for row in scenario["ndb_replication"] if row["db"] == old]
    expected = json.loads((recording / "expected.json").read_text("utf-8"))
    of_b = expected.get("B", {})
    for part in ("error_log", "setup_messages"):
        if part in of_b:
            text = json.dumps(of_b[part])
            for mark in (".", "/", "`"):
                text = text.replace(f"{old}{mark}", f"{new}{mark}")
            of_b[part] = json.loads(text)
    (folder / "scenario.json").write_text(json.dumps(scenario))
    (folder / "expected.json").write_text(json.dumps(expected))
    return new
