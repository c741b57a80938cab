"""
Parses `mysql.ndb_replication.conflict_fn` as the server does.

Source: `parse_conflict_fn_spec` of the server, and recordings of its messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conflict.errors import ConfigurationError
from conflict.rules.functions import DEFAULT_GCI_BITS, FUNCTIONS, Argument, ConflictFunction, FunctionSpec
from ndb_formats.errors import did_you_mean
from ndb_formats.types.digits import whole_number

__all__ = ["MAX_GCI_BITS", "PARSE_ERROR", "parse_conflict_function", "typed_function", "what_was_meant"]

MAX_GCI_BITS = 31
PARSE_ERROR = "Error in parsing conflict function. Message: "  # of server error 1626
_UNSIGNED_LONG = re.compile(r"[\t\n\v\f\r]*(?P<sign>[+-]?)(?P<digits>0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", re.ASCII)


def parse_conflict_function(text: str, functions: Sequence[FunctionSpec] = FUNCTIONS) -> ConflictFunction:
    """
    Parse a `conflict_fn` text: a name, '(', at most one argument and ')', with spaces allowed in between.

    The longest name that the text starts with is its name. In ``NDB$MAXIMUM(x)`` that is ``NDB$MAX``, and the error is
    the missing '(' after it.

    Args:
        text: The text.
        functions: The known functions.

    Raises:
        ConfigurationError: With the server's message and the position of the error.
    """
    rest = text.lstrip(" ")
    found = [spec for spec in functions if rest.startswith(spec.name)]
    if not found:
        raise _parse_error(text, "unknown conflict resolution function", rest)
    spec = max(found, key=lambda each: len(each.name))
    rest = rest[len(spec.name) :].lstrip(" ")
    if not rest.startswith("("):
        raise _parse_error(text, "missing '('", rest)
    rest = rest[1:].lstrip(" ")
    argument = rest[: _argument_end(rest)]
    rest = rest[len(argument) :]
    if spec.argument is Argument.COLUMN and not argument:
        raise _parse_error(text, "missing function argument", rest)
    bits = _gci_bits(argument) if spec.argument is Argument.GCI_BITS else DEFAULT_GCI_BITS
    if bits > MAX_GCI_BITS:
        raise _parse_error(text, "Too many extra Gci bits", rest)
    rest = rest.lstrip(" ")
    if not rest.startswith(")"):
        raise _parse_error(text, "missing ')'", rest)
    rest = rest[1:].lstrip(" ")
    if rest:
        raise _parse_error(text, "garbage in the end", rest)
    return ConflictFunction(spec, argument if spec.argument is Argument.COLUMN else None, bits)


def typed_function(text: str, functions: Sequence[FunctionSpec] = FUNCTIONS) -> ConflictFunction:
    """
    Parse a function that a user typed: as `parse_conflict_function`, and the message says what was probably meant.

    Raises:
        ConfigurationError: As there.
    """
    try:
        return parse_conflict_function(text, functions)
    except ConfigurationError as error:
        message = f"{error}{what_was_meant(text, functions)}"
        raise ConfigurationError(message) from error


def what_was_meant(text: str, functions: Sequence[FunctionSpec] = FUNCTIONS) -> str:
    """Return, for a message, what a text that cannot be parsed may mean; a shell replaces ``$MAX`` by nothing."""
    if not text.strip():
        return "; for no function give NULL"
    name, _, rest = text.partition("(")
    name = name.strip()
    if name == "NDB":
        meant = f"NDB$MAX({rest.strip()}" if rest.strip(" )") else "NDB$EPOCH()"
        return f"; a shell takes $... out of double quotes: use single quotes, as in '{meant}'"
    plain = name.replace("\\", "")
    plain = plain if "$" in plain else f"NDB${plain}"
    known = (spec.name for spec in functions)
    near = did_you_mean(name if plain == name else plain.lower(), known, 0.75)  # "NDB$" alone makes any two alike
    return near + (r"; inside single quotes no \ stands before $" if "\\" in name else "")


def _argument_end(text: str) -> int:
    return next((index for index, character in enumerate(text) if character in " )"), len(text))


def _gci_bits(argument: str) -> int:
    """
    Return the number that the server reads from an argument: the low 32 bits of C's ``strtoul`` with base 0.

    Without digits it is 0; ``0x`` starts a hexadecimal and ``0`` an octal number; a minus sign subtracts from 2^64.
    """
    if not argument:
        return DEFAULT_GCI_BITS
    found = _UNSIGNED_LONG.match(argument)
    if found is None:
        return 0
    digits = found["digits"].lower()
    if digits.startswith("0"):
        size = int(digits, 16 if digits.startswith("0x") else 8)
    else:
        number = whole_number(digits)
        size = 2**64 if number is None else number
    if size >= 2**64:
        size = 2**64 - 1
    elif found["sign"] == "-":
        size = 2**64 - size
    return size % 2**32


def _parse_error(text: str, what: str, where: str) -> ConfigurationError:
    return ConfigurationError(f"{PARSE_ERROR}{text}, {what} at '{where}'")
