"""
Which types an applier converts, held against a real server, for every pair of types and `replica_type_conversions`.

`make test-mysql` runs this; the name keeps it out of other test runs. MySQL is at `MYSQL_SOCKET`; the account has no
password, and the log of the server is read where it is.
"""

import json
import os

import pytest

from tests.corpora import RECORDINGS
from tests.mysql_server.connection import Connection
from tests.mysql_server.replayed_conversions import TYPES, replayed


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
