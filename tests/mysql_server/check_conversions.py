"""
Which types an applier converts, held against a real server, for every pair of types and `replica_type_conversions`.

`make test-mysql` runs this; the name keeps it out of other test runs. MySQL is at `MYSQL_SOCKET`; the account has no
password, and the log of the server is read where it is.
"""

import json
import lzma
import os

import pytest

from tests.corpora import RECORDINGS
from tests.mysql_server.connection import Connection
from tests.mysql_server.replayed_conversions import TYPES, replayed
from tests.mysql_server.replayed_values import FAMILIES, replayed_values


def test_the_server_does_what_was_recorded():
    """What `make test` judges `check-replica` by is what this server does, to the pair; `RECORD` writes it anew."""
    with Connection(os.environ["MYSQL_SOCKET"], os.environ.get("MYSQL_USER") or "root") as server:
        found = {"types": [*TYPES], "goes_on": replayed(server)}
    file = RECORDINGS / "definitions" / "conversions.json"
    if os.environ.get("RECORD"):
        file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    recorded = json.loads(file.read_text("utf-8"))
    wrong = [
        f"{source} to {replica}: {here} here, {there} recorded"
        for source, row, old in zip(TYPES, found["goes_on"], recorded["goes_on"], strict=True)
        for replica, here, there in zip(TYPES, row, old, strict=True)
        if here != there
    ]
    assert recorded["types"] == found["types"]
    if wrong:
        pytest.fail("\n".join(wrong))


def test_the_server_stores_what_was_recorded():
    """The values that an applier stores, and the numbers of its errors, are the recorded ones."""
    with Connection(os.environ["MYSQL_SOCKET"], os.environ.get("MYSQL_USER") or "root") as server:
        found = {
            family: {"types": [*types], **replayed_values(server, family)} for family, (types, _) in FAMILIES.items()
        }
    file = RECORDINGS / "definitions" / "converted_values.json.xz"
    if os.environ.get("RECORD"):
        file.write_bytes(lzma.compress(json.dumps(found, indent=1).encode()))
    assert json.loads(lzma.decompress(file.read_bytes())) == found
