"""
What is told of channels that go on from another SQL node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from conflict.telling.shown_text import counted
from conflict.telling.value import Table, Telling

Document = Mapping[str, Any]


def tell_channels(moved: Document) -> Telling:
    """Return what is told of a document of `conflict.operating.channel.channels.MovedChannels`."""
    channels = moved["channels"]
    remarks = list({each["sentence"]: each for channel in channels for each in channel["remarks"]}.values())
    serious = [f"{each['sentence']}." for each in remarks if each["lost"] or each["contradicts"]]
    return Telling(
        "Where channels go on",
        _headline(moved),
        tuple(_sentences(moved)),
        tuple(_tables(moved)),
        alarms=[f"Changes may be missing: {each}" for each in serious],
        warnings=[f"{each['sentence']}." for each in remarks if not (each["lost"] or each["contradicts"])],
        commands=[
            (f"On the SQL node of {channel['replica'] or 'the replica'} that takes the channel:", channel["statement"])
            for channel in channels
            if channel["statement"] is not None
        ],
    )


def _headline(moved: Document) -> str:
    known = [each for each in moved["channels"] if each["file"] is not None]
    if not moved["channels"]:
        return f"No cluster here replicates from {moved['source']}; give --after-epoch."
    if not known:
        return f"Nothing tells where a channel goes on in the log of server {moved['server']}."
    first = known[0]
    channel = _name(moved, first)
    return (
        f"The channel {channel} goes on at {first['file']}, position {first['position']}, of server {moved['server']}."
    )


def _name(moved: Document, channel: Document) -> str:
    return f"{moved['source']} → {channel['replica']}" if channel["replica"] else f"from {moved['source']}"


def _sentences(moved: Document) -> Iterator[str]:
    for channel in moved["channels"]:
        if channel["through"] is not None:
            already = ", to which it goes" if channel["through"] == moved["server"] else ""
            yield (
                f"{channel['replica']} applied epoch {channel['after_epoch']} last, as its log shows, from the log of "
                f"server {channel['through']}{already}. Later epochs that changed nothing there leave no trace, and "
                "come again; mysql.ndb_apply_status knows them: --after-epoch."
            )
    if any(each["statement"] is not None for each in moved["channels"]):
        yield (
            f"Where the SQL node had another source, add SOURCE_HOST, SOURCE_PORT and SOURCE_USER of server "
            f"{moved['server']}, which no log tells."
        )


def _tables(moved: Document) -> Sequence[Table]:
    rows = [
        (
            _name(moved, each),
            None if each["after_epoch"] is None else str(each["after_epoch"]),
            each["file"],
            None if each["position"] is None else str(each["position"]),
            each["following_epochs"],
        )
        for each in moved["channels"]
    ]
    headings = ("channel", "after epoch", "file", "position", "later epochs")
    first, last = moved["first_epoch"], moved["last_epoch"]
    note = f"The log of server {moved['server']} holds {counted(moved['epochs'], 'epoch')}, {first} to {last}."
    return [Table("Where channels go on", headings, rows, note=note, texts=4)] if rows else []
