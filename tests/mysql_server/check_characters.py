"""
Every single character of every character set, as real servers of MySQL and MariaDB have it.

`make test-mysql` runs this, on `MYSQL_SOCKET` and `MARIADB_SOCKET`. U+FFFD stands for bytes to which the server gives
no character of Unicode; here they stay bytes.
"""

import os
from collections.abc import Iterator

import pytest

from ndb_formats.types.charsets import decode_text, encode_text
from tests.mysql_server.connection import Connection
from tests.mysql_server.record_characters import CHARSETS, characters_of

_NONE = ("\ufffd", "")
# Of JIS X 0212: the codec that serves both has another tilde.
KNOWN = {("eucjpms", b"\x8f\xa2\xb7"), ("ujis", b"\x8f\xa2\xb7")}


@pytest.fixture(scope="module", params=["MYSQL_SOCKET", "MARIADB_SOCKET"])
def server(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Yield a server; end the run if its socket is not given."""
    socket = os.environ.get(request.param, "")
    if not socket:
        pytest.exit(f"{request.param} is not set: make test-mysql MYSQL_SOCKET=... MARIADB_SOCKET=...", returncode=2)
    with Connection(socket, os.environ.get("MYSQL_USER") or "root") as found:
        found.run("SET NAMES utf8mb4")
        yield found


@pytest.mark.parametrize("charset", CHARSETS)
def test_every_character(server: Connection, charset: str):
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
