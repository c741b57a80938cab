"""
Temporal types: packed bytes to MySQL's text and back.

The values are text because zero dates ('2024-00-00'), long times ('-838:59:59') and invalid dates have no Python type.
TIMESTAMP is in UTC.

Layouts (source: MySQL `my_time.cc`):

    DATE        3 bytes LE: day 5 bits, month 4, year 15
    TIME2       3 bytes BE + fraction, offset 0x800000: hour 10 bits, minute 6, second 6
    DATETIME2   5 bytes BE + fraction, offset 0x8000000000: year*13+month 17 bits, day 5, hour 5, minute 6, second 6
    TIMESTAMP2  4 bytes BE seconds since 1970 + fraction
    fraction    (precision + 1) // 2 bytes BE, hundredths, ten-thousandths or millionths
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ndb_formats.errors import CorruptError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ZERO_TIMESTAMP = "0000-00-00 00:00:00"


def fraction_bytes(precision: int) -> int:
    """Return how many bytes hold a fraction of `precision` digits."""
    return (precision + 1) // 2


def _fraction_text(stored: int, precision: int) -> str:
    if precision == 0:
        return ""
    digits = f"{stored:0{2 * fraction_bytes(precision)}d}"
    return "." + digits[:precision]


def _split_fraction(text: str, precision: int) -> tuple[str, int]:
    whole, _, digits = text.partition(".")
    return whole, int(digits.ljust(2 * fraction_bytes(precision), "0") or "0")


def decode_date(data: bytes) -> str:
    """Return a DATE as ``YYYY-MM-DD``."""
    packed = int.from_bytes(data, "little")
    return f"{packed >> 9:04d}-{packed >> 5 & 15:02d}-{packed & 31:02d}"


def encode_date(text: str) -> bytes:
    """Return the 3 bytes of a DATE."""
    year, month, day = map(int, text.split("-"))
    return (year << 9 | month << 5 | day).to_bytes(3, "little")


def decode_time2(data: bytes, precision: int) -> str:
    """Return a TIME as ``[-]HH:MM:SS[.fraction]``."""
    bits = 8 * fraction_bytes(precision)
    packed = int.from_bytes(data, "big") - (0x800000 << bits)
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    whole, fraction = packed >> bits, packed & ((1 << bits) - 1)
    clock = f"{whole >> 12 & 0x3FF:02d}:{whole >> 6 & 63:02d}:{whole & 63:02d}"
    return sign + clock + _fraction_text(fraction, precision)


def encode_time2(text: str, precision: int) -> bytes:
    """Return the bytes of a TIME."""
    size = fraction_bytes(precision)
    whole, fraction = _split_fraction(text.lstrip("-"), precision)
    hour, minute, second = map(int, whole.split(":"))
    packed = (hour << 12 | minute << 6 | second) << 8 * size | fraction
    packed = -packed if text.startswith("-") else packed
    return (packed + (0x800000 << 8 * size)).to_bytes(3 + size, "big")


def decode_datetime2(data: bytes, precision: int) -> str:
    """Return a DATETIME as ``YYYY-MM-DD HH:MM:SS[.fraction]``."""
    packed = int.from_bytes(data[:5], "big") - 0x8000000000
    month_count, rest = packed >> 22, packed & 0x3FFFFF
    year, month = divmod(month_count, 13)
    date = f"{year:04d}-{month:02d}-{rest >> 17:02d}"
    clock = f"{rest >> 12 & 31:02d}:{rest >> 6 & 63:02d}:{rest & 63:02d}"
    return f"{date} {clock}{_fraction_text(int.from_bytes(data[5:], 'big'), precision)}"


def encode_datetime2(text: str, precision: int) -> bytes:
    """Return the bytes of a DATETIME."""
    date, clock = text.split(" ")
    clock, fraction = _split_fraction(clock, precision)
    year, month, day = map(int, date.split("-"))
    hour, minute, second = map(int, clock.split(":"))
    packed = (year * 13 + month) << 22 | day << 17 | hour << 12 | minute << 6 | second
    whole = (packed + 0x8000000000).to_bytes(5, "big")
    return whole + fraction.to_bytes(fraction_bytes(precision), "big")


def _utc_text(seconds: int) -> str:
    if seconds == 0:
        return _ZERO_TIMESTAMP
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M:%S")


def decode_timestamp2(data: bytes, precision: int) -> str:
    """Return a TIMESTAMP as UTC text; zero seconds are MySQL's zero date."""
    fraction = _fraction_text(int.from_bytes(data[4:], "big"), precision)
    return _utc_text(int.from_bytes(data[:4], "big")) + fraction


def encode_timestamp2(text: str, precision: int) -> bytes:
    """Return the bytes of a TIMESTAMP given as UTC text."""
    whole, fraction = _split_fraction(text, precision)
    seconds = 0
    if whole != _ZERO_TIMESTAMP:
        moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        seconds = int((moment - _EPOCH).total_seconds())
    return seconds.to_bytes(4, "big") + fraction.to_bytes(fraction_bytes(precision), "big")


_MOST_OLD_TIME, _MOST_OLD_PARTS = 8385959, (12, 31, 23, 59, 59)
_OLD_FORM = (
    "with a fraction of seconds, MariaDB's form from before 10.1 (mysql56_temporal_format=OFF) has a size that a log "
    "does not tell"
)


def decode_old_time(data: bytes) -> str:
    """Return a TIME of servers before MySQL 5.6 (decimal HHMMSS, signed)."""
    packed = int.from_bytes(data, "little", signed=True)
    sign, packed = ("-", -packed) if packed < 0 else ("", packed)
    if packed > _MOST_OLD_TIME or packed // 100 % 100 >= 60 or packed % 100 >= 60:
        message = f"holds {sign}{packed}, which is no TIME; {_OLD_FORM}"
        raise CorruptError(message)
    return f"{sign}{packed // 10000:02d}:{packed // 100 % 100:02d}:{packed % 100:02d}"


def encode_old_time(text: str) -> bytes:
    """Return the 3 bytes of a TIME of servers before MySQL 5.6."""
    hour, minute, second = map(int, text.lstrip("-").split(":"))
    packed = hour * 10000 + minute * 100 + second
    return (-packed if text.startswith("-") else packed).to_bytes(3, "little", signed=True)


def decode_old_datetime(data: bytes) -> str:
    """Return a DATETIME of servers before MySQL 5.6 (decimal YYYYMMDDHHMMSS)."""
    digits = f"{int.from_bytes(data, 'little'):014d}"
    parts = [int(digits[-10:][start : start + 2]) for start in range(0, 10, 2)]
    if len(digits) > 14 or any(part > most for part, most in zip(parts, _MOST_OLD_PARTS, strict=True)):
        message = f"holds {digits}, which is no DATETIME; {_OLD_FORM}"
        raise CorruptError(message)
    date = f"{digits[:-10]}-{digits[-10:-8]}-{digits[-8:-6]}"
    return f"{date} {digits[-6:-4]}:{digits[-4:-2]}:{digits[-2:]}"


def encode_old_datetime(text: str) -> bytes:
    """Return the 8 bytes of a DATETIME of servers before MySQL 5.6."""
    return int("".join(filter(str.isdigit, text))).to_bytes(8, "little")
