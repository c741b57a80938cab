"""
What compressed parts of a binlog may unpack to: a small file can hold very much.

256 MiB for a transaction or an event, unless ``NDB_CONFLICT_UNPACKED_MIB`` says otherwise in the environment when
`ndb_formats.binlog_reader` is imported; Spark's tasks have it from the program that starts them. A server unpacks up
to 1 GiB (`max_allowed_packet`).
"""

from __future__ import annotations

from ndb_formats.errors import SettingError, UnsupportedError

__all__ = ["OPTION", "allow_unpacked", "check_unpacked"]

OPTION = "NDB_CONFLICT_UNPACKED_MIB"
_DEFAULT_MIB = "256"
_MIB = 1 << 20
_allowed = {OPTION: _DEFAULT_MIB}


def allow_unpacked(mib: str | None) -> None:
    """Allow so many MiB, or the default; what is no number is refused when it is needed."""
    _allowed[OPTION] = _DEFAULT_MIB if mib is None else mib


def check_unpacked(size: int) -> None:
    """
    Make sure that a compressed part may unpack to so many bytes.

    Raises:
        UnsupportedError: It may not.
        SettingError: What is allowed is no number.
    """
    text = _allowed[OPTION]
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        message = f"{OPTION} is {text[:40]!r}; give a number of MiB"
        raise SettingError(message)
    if size > int(text) * _MIB:
        message = f"it unpacks to {size:,} bytes, more than {text} MiB; set {OPTION} to allow it"
        raise UnsupportedError(message)
