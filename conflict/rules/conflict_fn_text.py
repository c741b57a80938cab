"""
Parses `mysql.ndb_replication.conflict_fn` as the server does.

Source: `parse_conflict_fn_spec` of the server, and recordings of its messages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conflict.errors import ConfigurationError
from conflict.rules.functions import DEFAULT_GCI_BITS, FUNCTIONS, Argument, ConflictFunction, FunctionSpec
from ndb_formats.types.digits import whole_number

__all__ = ["MAX_GCI_BITS", "PARSE_ERROR", "parse_conflict_function"]

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
