"""
Every single character of every character set, as a real MySQL server has it.

`make test-mysql` runs this. U+FFFD stands for bytes to which the server gives no character of Unicode; here they stay
bytes.
"""

import pytest

from ndb_formats.types.charsets import decode_text, encode_text
from tests.mysql_server.record_characters import CHARSETS, characters_of
from tests.mysql_server.server import MissingServerError, Server

_NONE = ("\ufffd", "")
# Of JIS X 0212: the codec that serves both has another tilde.
KNOWN = {("eucjpms", b"\x8f\xa2\xb7"), ("ujis", b"\x8f\xa2\xb7")}


@pytest.fixture(scope="module")
def server() -> Server:
    """Return the server, or end the run with what is missing."""
    try:
        return Server.from_environment()
    except MissingServerError as error:
        pytest.exit(str(error), returncode=2)


@pytest.mark.parametrize("charset", CHARSETS)
def test_every_character(server: Server, charset: str):
    """Decodes to the server's, and that encodes to bytes of the same character."""
    found = dict(characters_of(server, charset))
    letters = {
        code: letter for code, letter in found.items() if letter not in _NONE and (letter != "?" or code == b"?")
    }
    assert len(letters) >= 95
    wrong = {
        code: (decode_text(code, charset), letter)
        for code, letter in letters.items()
        if decode_text(code, charset) != letter and (charset, code) not in KNOWN
    }
    assert wrong == {}
    again = {
        code: letter
        for code, letter in letters.items()
        if (charset, code) not in KNOWN and decode_text(encode_text(letter, charset), charset) != letter
    }
    assert again == {}
