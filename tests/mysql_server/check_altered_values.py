"""
What ALTER TABLE makes of stored values, held against a real server.

`make test-mysql` runs this; the name keeps it out of other test runs. MySQL is at `MYSQL_SOCKET`; the account has no
password, and the log of the server is read where it is. It takes a quarter of an hour.
"""

import json
import lzma
import os

from tests.corpora import RECORDINGS
from tests.mysql_server.altered_values import altered_values
from tests.mysql_server.connection import Connection


def test_the_server_converts_as_was_recorded():
    """What `make test` judges `altered_value` by is what this server does, to the byte; `RECORD` writes it anew."""
    with Connection(os.environ["MYSQL_SOCKET"], os.environ.get("MYSQL_USER") or "root") as server:
        found = altered_values(server)
    file = RECORDINGS / "definitions" / "altered_values.json.xz"
    if os.environ.get("RECORD"):
        file.write_bytes(lzma.compress(json.dumps(found).encode()))
    recorded = json.loads(lzma.decompress(file.read_bytes()))
    wrong = [
        f"{before} to {after}"
        for before, own in recorded["pairs"].items()
        for after, values in own.items()
        if found["pairs"][before][after] != values
    ]
    assert wrong == []
